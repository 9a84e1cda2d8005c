/* numbers.h - order of numbers, without NaN. */
#ifndef MC_NUMBERS_H
#define MC_NUMBERS_H

#include <stddef.h>

void numbers_sort(double *x, size_t n);     /* ascending */
double numbers_median(double *x, size_t n); /* sorts x; the mean of the middle two of an even n; NaN: n is 0 */

#endif
