/* lines.h - lines of a source text as a compiler numbers them. */
#ifndef MC_LINES_H
#define MC_LINES_H

#include <stdint.h>

/* Where the line begins that a compiler calls number 'line': "#line N" gives the line below it the number N. Of several
 * the last one, which is of the file that follows its headers. NULL where there is none, or no text. */
const char *lines_find(const char *text, int64_t line);
/* What "#line N" at s says of the next line; 0 where s is another line. */
int64_t lines_directive(const char *s);

#endif
