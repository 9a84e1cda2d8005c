/* numbers.c - see numbers.h. */
#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>

static int numbers_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void numbers_sort(double *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, numbers_ascending);
}

double numbers_median(double *x, size_t n)
{
    numbers_sort(x, n);
    return n == 0 ? NAN : n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}
