/* arrange.c - see arrange.h. */
#include "eval/candidate/arrange.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define UNKNOWN (-2) /* one of several elements of the same value */

struct named_value {
    double v;
    int64_t i;
};

static int by_value(const void *a, const void *b)
{
    const struct named_value *x = a, *y = b;

    return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : (x->i > y->i) - (x->i < y->i);
}

/* As packed's type holds it. */
static double as_type(enum dtype to, double v)
{
    uint8_t bytes[16];
    struct tensor t = {.dtype = to, .ndim = 1, .shape = {1}, .n = 1, .data = bytes};

    tensor_put(to, bytes, 0, v);
    return tensor_at(&t, 0);
}

double arrange_value(const struct tensor *rows, size_t n, int64_t i)
{
    for (size_t k = 0; i >= 0 && k < n; i -= rows[k++].n)
        if (i < rows[k].n)
            return tensor_at(&rows[k], i);
    return 0;
}

/* All values of floating rows but zeros, sorted. */
static struct named_value *book_of(const struct tensor *rows, size_t n, enum dtype to, int64_t *ret_n)
{
    struct named_value *book;
    int64_t all = 0, base = 0, m = 0;

    for (size_t k = 0; k < n; k++)
        all += rows[k].n;
    book = xmalloc((size_t)(all + 1) * sizeof *book);
    for (size_t k = 0; k < n; base += rows[k++].n)
        for (int64_t i = 0; dt_is_float(rows[k].dtype) && dt_components(rows[k].dtype) == 1 && i < rows[k].n; i++) {
            double v = as_type(to, tensor_at(&rows[k], i));

            if (v != 0 && isfinite(v))
                book[m++] = (struct named_value){v, base + i};
        }
    qsort(book, (size_t)m, sizeof *book, by_value);
    *ret_n = m;
    return book;
}

/* The first entry of value v; n: none. */
static int64_t arrange_find(const struct named_value *book, int64_t n, double v)
{
    int64_t lo = 0, hi = n;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (book[mid].v < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && book[lo].v == v ? lo : n;
}

/* True where element i is among those of value v. */
static bool stands_there(const struct named_value *book, int64_t n, double v, int64_t i)
{
    for (int64_t k = arrange_find(book, n, v); k < n && book[k].v == v; k++)
        if (book[k].i == i)
            return true;
    return false;
}

/* Among several: the one that goes on as the two elements on that side do. */
static bool arrange_settle(const struct named_value *book, int64_t n, const struct tensor *packed, int64_t *of,
                           int64_t i, int side)
{
    int64_t near = i + side, far = i + 2 * side, want;

    if (near < 0 || far < 0 || near >= packed->n || far >= packed->n || of[near] < 0 || of[far] < 0)
        return false;
    want = 2 * of[near] - of[far];
    if (!stands_there(book, n, tensor_at(packed, i), want))
        return false;
    of[i] = want;
    return true;
}

/* Those of several places, from both ends. How many stay unknown. */
static int64_t arrange_settle_all(const struct named_value *book, int64_t n, const struct tensor *packed, int64_t *of)
{
    int64_t left = 0;

    for (int64_t i = 0; i < packed->n; i++)
        if (of[i] == UNKNOWN)
            arrange_settle(book, n, packed, of, i, -1);
    for (int64_t i = packed->n - 1; i >= 0; i--)
        left += of[i] == UNKNOWN && !arrange_settle(book, n, packed, of, i, 1);
    return left;
}

int64_t *arrange_read(const struct tensor *rows, size_t n, const struct tensor *packed)
{
    int64_t m, known = 0, missing = 0, first = -1, *of;
    bool several = false;
    struct named_value *book;

    if (!dt_is_float(packed->dtype) || dt_components(packed->dtype) != 1 || packed->n < 2)
        return NULL;
    book = book_of(rows, n, packed->dtype, &m);
    of = xmalloc((size_t)packed->n * sizeof *of);
    for (int64_t i = 0; i < packed->n && !missing; i++) {
        double v = tensor_at(packed, i);
        int64_t at = v != 0 ? arrange_find(book, m, v) : m;
        bool one = at < m && (at + 1 == m || book[at + 1].v != v);

        of[i] = v == 0 ? ARRANGE_ZERO : one ? book[at].i : UNKNOWN;
        missing += v != 0 && at == m;
        known += one;
        several |= one && first >= 0 && of[i] != first;
        first = one ? of[i] : first;
    }
    /* one element many times is a number that the model happens to hold: a mask of ones beside a gate of 1 */
    if (missing || !known || (known > 1 && !several) || arrange_settle_all(book, m, packed, of)) {
        free(of);
        of = NULL;
    }
    free(book);
    return of;
}
