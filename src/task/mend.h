/* mend.h - the words of a repair: which line of a broken program is wrong and why, then the whole program.
 *
 * Pure text. The faulty place is where the two programs first differ, line by line; what they share at the end is left
 * out, so that a line that is missing and a line too many are told from a line that is wrong. */
#ifndef MC_MEND_H
#define MC_MEND_H

/* "The faulty line is `out[i] = x[i];`. It should be `out[i] = x[i] + y[i];`: <why>.", a blank line, and 'fixed' in a
 * Python fence. Both are Python files; why is a clause without a full stop, or NULL. Caller frees. */
char *mend_answer(const char *broken, const char *fixed, const char *why);

#endif
