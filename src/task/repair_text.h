/* repair_text.h - the words of a repair, in two forms: which line of a broken program is wrong and why, then the whole
 * program; or the lines that change, with their numbers, and nothing else.
 *
 * Pure text. In the first form the programs are compared line by line, without indentation where that suffices to tell
 * them apart. Of the places where they differ, the one that shares the longest run of characters with the judge's words
 * is named: words quote a line that does not compile (lines quoted around it do not count), a name that is unknown, a
 * shape or a value that came out.
 *
 * Edits are of the kernel's source, the first string in three quotes that holds "__global__", and of what stands
 * below it: the class that calls the kernel. Lines are numbered as the judge numbers them, from 1 behind the opening
 * quotes, and from the program's first line:
 *   9 |     int i = first + u * 256;
 *   line 61 |         return ops.relu_forward(x)
 * As an answer such a line takes the place of that line. One number several times puts several lines there, a number
 * alone takes its line away. Other lines of an answer are words. */
#ifndef MC_TASK_REPAIR_TEXT_H
#define MC_TASK_REPAIR_TEXT_H

#include <stddef.h>

/* "The faulty line is `out[i] = x[i];`. It should be `out[i] = x[i] + y[i];`: <why>.", a blank line, and 'fixed' in a
 * Python fence. Both are Python files; why is a clause without a full stop, or NULL; said is what the judge said, or
 * NULL: then the first place is named. Caller frees. */
char *repair_text_answer(const char *broken, const char *fixed, const char *why, const char *said);

/* The numbered lines of a response's kernel, and from its class on, without blank ones and #include; NULL where it
 * holds no kernel. Caller frees. */
char *mend_listing(const char *response);

#define MEND_LINES 6 /* that a record's edits change, at most: a parameter has four places, a loop two or three */
/* What turns one Python file into the other, as edits; NULL unless they differ in the kernel's source and below it
 * alone, in at most 'most' lines. Caller frees. */
char *mend_edits(const char *broken, const char *fixed, int most);

/* The shortest such edits, of MEND_LINES lines, that turn a response's program into that of one of the others; NULL
 * where all are further off, or one is equal. What holds no fence is a program itself. Caller frees. */
char *mend_nearest(const char *response, const char *const *others, size_t n);

/* The response that answers as if the program had been written out: 'before', an earlier response, with the edits of
 * 'answer'. NULL where the answer is a whole program itself, holds no edit, or one of a line that is not there. */
char *mend_apply(const char *before, const char *answer);

#endif
