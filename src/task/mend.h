/* mend.h - the words of a repair: which line of a broken program is wrong and why, then the whole program.
 *
 * Pure text. The programs are compared line by line, without indentation where that suffices to tell them apart. Of the
 * places where they differ, the one that shares the longest run of characters with the judge's words is named: words
 * quote a line that does not compile (lines quoted around it do not count), a name that is unknown, a shape or a value
 * that came out. */
#ifndef MC_MEND_H
#define MC_MEND_H

/* "The faulty line is `out[i] = x[i];`. It should be `out[i] = x[i] + y[i];`: <why>.", a blank line, and 'fixed' in a
 * Python fence. Both are Python files; why is a clause without a full stop, or NULL; said is what the judge said, or
 * NULL: then the first place is named. Caller frees. */
char *mend_answer(const char *broken, const char *fixed, const char *why, const char *said);

#endif
