/* ties.c - see ties.h. */
#include "eval/check/ties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A line of values has 'length' elements, 'inner' apart, and 'named' indices into it. */
struct lines {
    int64_t outer, length, inner, named;
};

/* Shape of values and indices as outer x length x inner lines along p->dim. False: the two do not fit. */
static bool lines_of(const struct ties *p, const struct tensor *index, struct lines *ret)
{
    struct lines l = {1, p->values.n, 1, index->n};
    int64_t of_each;

    if (p->dim >= p->values.ndim || dt_components(p->values.dtype) != 1)
        return false;
    for (int d = 0; p->dim >= 0 && d < p->values.ndim; d++)
        *(d < p->dim ? &l.outer : d > p->dim ? &l.inner : &l.length) *= d == p->dim ? 1 : p->values.shape[d];
    if (p->dim >= 0)
        l.length = p->values.shape[p->dim];
    of_each = l.outer * l.inner;
    if (!of_each || index->n % of_each)
        return false;
    l.named = index->n / of_each;
    *ret = l;
    return true;
}

static bool equal_values(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* What stands for element i of the answer. */
static int64_t resolved(const struct ties *p, const struct lines *l, const struct tensor *expected,
                        const struct tensor *got, int64_t i)
{
    int64_t line = i / (l->inner * l->named) * l->length * l->inner + i % l->inner;
    int64_t e = tensor_int_at(expected, i), g = tensor_int_at(got, i);

    if (g == e || g < 0 || g >= l->length || e < 0 || e >= l->length)
        return g;
    if (!equal_values(tensor_at(&p->values, line + e * l->inner), tensor_at(&p->values, line + g * l->inner)))
        return g;
    return e;
}

/* One line, whose first index is element 'first' of the answer. seen: of each place, zero before the first line, the
 * last line that named it. */
static void resolve_line(const struct ties *p, const struct lines *l, const struct tensor *expected,
                         const struct tensor *got, int64_t first, int64_t line, int64_t *seen, uint8_t *out)
{
    for (int64_t k = 0; k < l->named; k++) {
        int64_t i = first + k * l->inner, g = tensor_int_at(got, i), v = resolved(p, l, expected, got, i);
        bool there = g >= 0 && g < l->length;

        if (p->unique && there && seen[g] == line + 1)
            v = -1;
        if (there)
            seen[g] = line + 1;
        if (v != g)
            tensor_put(got->dtype, out, i, (double)v);
    }
}

uint8_t *ties_resolved(const struct ties *p, const struct tensor *expected, const struct tensor *got)
{
    struct lines l;
    int64_t *seen;
    uint8_t *out;

    if (!lines_of(p, expected, &l) || got->n != expected->n)
        return NULL;
    seen = xcalloc((size_t)l.length + 1, sizeof *seen);
    out = xmalloc((size_t)got->n * dt_size(got->dtype) + 1);
    memcpy(out, got->data, (size_t)got->n * dt_size(got->dtype));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++)
            resolve_line(p, &l, expected, got, o * l.named * l.inner + i, o * l.inner + i, seen, out);
    free(seen);
    return out;
}
