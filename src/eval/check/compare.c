/* compare.c - see compare.h. One pass marks the wrong elements, then rules look for a shape in the marks. */
#include "eval/check/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "eval/check/compare_parts.h"

/* The index of flat element 'flat' as "[2, 0, 7]". */
static void compare_index_text(const struct tensor *t, int64_t flat, char *out, size_t n)
{
    int64_t idx[TENSOR_MAX_DIMS], rest = flat;
    size_t k = (size_t)snprintf(out, n, "[");

    if (t->dtype == DT_C64 || t->dtype == DT_C128)
        rest /= 2;
    for (int d = t->ndim - 1; d >= 0; d--) {
        idx[d] = t->shape[d] ? rest % t->shape[d] : 0;
        rest /= t->shape[d] ? t->shape[d] : 1;
    }
    for (int d = 0; d < t->ndim && k < n; d++)
        k += (size_t)snprintf(out + k, n - k, "%s%lld", d ? ", " : "", (long long)idx[d]);
    if (k < n)
        snprintf(out + k, n - k, "]");
}

/* ---- patterns ---- */

/* The CPU's own answers to compare_source's question. */
struct marks {
    const uint8_t *bad;
    int64_t n;
};

/* Wrong exactly inside the range of groups? A group is wrong if most of it is. */
static void compare_group_marks(void *ctx, int64_t inner, int64_t n_groups, struct compare_groups *ret)
{
    const struct marks *m = ctx;
    struct compare_groups g = {.n = n_groups, .first = -1, .last = -1};
    int64_t *wrong = xcalloc((size_t)n_groups, sizeof *wrong), per = m->n / n_groups, prev = -1, gap;
    bool even = true;

    for (int64_t i = 0; i < m->n; i++)
        wrong[i / inner % n_groups] += m->bad[i] != 0;
    for (int64_t k = 0; k < n_groups; k++) {
        if (wrong[k] * 10 < per * 8) {
            g.stray += wrong[k];
            continue;
        }
        gap = prev >= 0 ? k - prev : 0;
        if (prev >= 0 && g.step && gap != g.step)
            even = false;
        if (prev >= 0 && !g.step)
            g.step = gap;
        g.first = g.first < 0 ? k : g.first;
        g.last = prev = k;
        g.n_bad++;
    }
    if (!even)
        g.step = 0;
    free(wrong);
    *ret = g;
}

/* Facts of the n_groups groups of 'inner' neighbouring elements. */
static struct compare_groups compare_group_by(const struct compare_source *s, int64_t inner, int64_t n_groups)
{
    struct compare_groups g = {.n = n_groups, .first = -1, .last = -1};

    s->group(s->ctx, inner, n_groups, &g);
    return g;
}

/* Where the wrong ones among rows, columns or blocks form a run: its description. False: they form none. */
static bool compare_group_text(const struct compare_groups *g, const char *what, char *out, size_t n)
{
    long long first = g->first, last = g->last, bad = g->n_bad, all = g->n;

    if (g->n < 2 || bad == 0 || bad == all || g->stray > 0)
        return false;
    if (last - first + 1 == bad) {
        if (bad == 1)
            snprintf(out, n, "only %s %lld of %lld", what, first, all);
        else if (last == all - 1)
            snprintf(out, n, "last %lld of %lld %ss (from %s %lld on)", bad, all, what, what, first);
        else if (first == 0)
            snprintf(out, n, "first %lld of %lld %ss", bad, all, what);
        else
            snprintf(out, n, "%ss %lld to %lld of %lld", what, first, last, all);
        return true;
    }
    if (g->step > 1 && bad > 2 && (first + g->step * bad >= all || first - g->step < 0)) {
        snprintf(out, n, "every %lld%s %s, starting at %lld", (long long)g->step,
                 g->step == 2 ? "nd" : g->step == 3 ? "rd" : "th", what, first);
        return true;
    }
    return false;
}

/* All elements from some flat index on: a grid that is too small, or a tail that is not handled. */
static bool compare_flat_text(const struct compare_source *m, char *out, size_t n)
{
    int64_t span = m->last - m->first + 1;
    const char *block = "";
    char mult[48] = "";

    if (m->n_bad * 10 < span * 9 || span == m->n)
        return false;
    for (int b = 1024; b >= 32 && !*mult; b /= 2)
        if (m->first && m->first % b == 0) {
            snprintf(mult, sizeof mult, ", a multiple of %d", b);
            block = mult;
        }
    if (m->last == m->n - 1)
        snprintf(out, n, "all elements from flat index %lld on%s", (long long)m->first, block);
    else if (m->first == 0)
        snprintf(out, n, "the first %lld elements in memory order", (long long)span);
    else
        snprintf(out, n, "flat indices %lld to %lld", (long long)m->first, (long long)m->last);
    return true;
}

/* Where the wrong elements recur with a small period: its description. False: they do not. */
static bool compare_periodic_text(const struct compare_source *m, char *out, size_t n)
{
    static const int periods[] = {2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    struct compare_groups g;

    for (size_t i = 0; i < sizeof periods / sizeof *periods && periods[i] * 2 <= m->n; i++) {
        g = compare_group_by(m, 1, periods[i]);
        if (g.n_bad == 1 && g.stray == 0) {
            snprintf(out, n, "every %dth element, starting at %lld", periods[i], (long long)g.first);
            return true;
        }
    }
    return false;
}

void compare_pattern_of(const struct compare_source *m, const int64_t *shape, int ndim, char *out, size_t n)
{
    struct compare_groups g;
    int64_t inner = 1;

    *out = 0;
    if (m->n_bad == 0)
        return;
    if (m->n_bad == m->n) {
        snprintf(out, n, "all elements");
        return;
    }
    if (ndim >= 2) {
        int64_t cols = shape[ndim - 1], rows = m->n / cols;

        g = compare_group_by(m, cols, rows);
        if (compare_group_text(&g, "row", out, n))
            return;
        g = compare_group_by(m, 1, cols);
        if (compare_group_text(&g, "column", out, n))
            return;
        inner = cols;
        for (int d = ndim - 2; d >= 0; inner *= shape[d], d--) {
            char what[32];

            snprintf(what, sizeof what, "index of dim %d", d);
            g = compare_group_by(m, inner, shape[d]);
            if (ndim > 2 && g.n_bad && g.n_bad < g.n && g.stray == 0 && g.last - g.first + 1 == g.n_bad) {
                snprintf(out, n, "indices %lld to %lld of dim %d (size %lld)", (long long)g.first, (long long)g.last, d,
                         (long long)g.n);
                return;
            }
        }
    }
    if (compare_flat_text(m, out, n) || compare_periodic_text(m, out, n))
        return;
    if (m->n_bad * 10 >= m->n * 9)
        snprintf(out, n, "nearly all elements");
}

void compare_pattern(const uint8_t *bad, const int64_t *shape, int ndim, char *out, size_t n)
{
    struct marks marks = {.bad = bad, .n = 1};
    struct compare_source s = {.first = -1, .last = -1, .group = compare_group_marks, .ctx = &marks};

    for (int d = 0; d < ndim; d++)
        marks.n *= shape[d];
    s.n = marks.n;
    for (int64_t i = 0; i < marks.n; i++)
        if (bad[i]) {
            s.first = s.first < 0 ? i : s.first;
            s.last = i;
            s.n_bad++;
        }
    compare_pattern_of(&s, shape, ndim, out, n);
}

/* ---- values ---- */

static bool compare_same_special(double expected, double got)
{
    return (isnan(expected) && isnan(got)) || (isinf(expected) && expected == got);
}

static bool compare_element_ok(double expected, double got, const struct tolerance *tol)
{
    if (!isfinite(expected) || !isfinite(got))
        return tol->allclose ? expected == got : compare_same_special(expected, got);
    return fabs(got - expected) <= tol->abs + tol->rel * fabs(tol->allclose ? got : expected);
}

#define RANGE_LOW ((int64_t)1 << 40) /* as in runner/reference.py: how far from 0 a range begins, at most */
#define RANGE_SPAN 20                /* bits, of its length */

/* A 64-bit whole number that rounding moves within a range: the oracle codes the range. */
static bool in_range(int64_t oracle, int64_t got)
{
    int64_t code = (int64_t)((uint64_t)oracle + ((uint64_t)1 << 62)), low = (code >> RANGE_SPAN) - RANGE_LOW;

    return code >= 0 && got >= low && got <= low + (code & (((int64_t)1 << RANGE_SPAN) - 1));
}

/* A whole number that rounding moves: a code below -2^61 says in which range it is right. */
static bool compare_any_is_right(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got,
                                 int64_t i)
{
    int64_t wide = -((int64_t)1 << 61);

    return oracle->dtype == DT_I64 && !dt_is_float(eager->dtype) && tensor_int_at(oracle, i) < wide &&
           tensor_int_at(eager, i) >= wide && in_range(tensor_int_at(oracle, i), tensor_int_at(got, i));
}

#define ANY_VALUE 0x1.5a5a5a5a5a5a5p+1001 /* as in runner/reference.py */

/* An element that a step throws anywhere: floor and the like of what rounding moves across it. */
static bool compare_is_thrown(const struct tensor *oracle, int64_t i)
{
    return oracle->dtype == DT_F64 && tensor_at(oracle, i) == ANY_VALUE;
}

/* Right where the oracle says so or, for integers, where the reference itself says otherwise and agrees with us. */
static bool compare_accept(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got, int64_t i,
                           const struct tolerance *tol)
{
    if (!dt_is_float(eager->dtype))
        return tensor_int_at(got, i) == tensor_int_at(eager, i) ||
               (!dt_is_float(oracle->dtype) && tensor_int_at(got, i) == tensor_int_at(oracle, i));
    return compare_element_ok(tensor_at(oracle, i), tensor_at(got, i), tol);
}

void compare_relation_text(const struct comparison *c, bool constant, bool scaled, bool shifted, char *out, size_t n)
{
    double got = c->first_got, scale = got / c->first_expected, shift = got - c->first_expected;

    *out = 0;
    if (c->n_bad < 2)
        return;
    if (constant && isnan(got))
        snprintf(out, n, "all of them nan (%s)", c->n_unwritten < 0 ? "never written?" : c->n_unwritten == c->n_nan
                 ? "never written" : c->n_unwritten ? "some never written" : "computed: overflow, inf - inf, 0 / 0");
    else if (constant)
        snprintf(out, n, "all of them %.6g", got);
    else if (scaled && fabs(scale + 1) < 1e-4)
        snprintf(out, n, "the sign is inverted");
    else if (scaled && isfinite(scale))
        snprintf(out, n, "got = expected * %.6g", scale);
    else if (shifted && isfinite(shift))
        snprintf(out, n, "got = expected %+.6g", shift);
}

/* What the wrong values have in common with the first of them. */
static void compare_relation(const struct comparison *c, const struct tensor *oracle, const struct tensor *got,
                             const uint8_t *bad, char *out, size_t n)
{
    double first = c->first_expected, value = c->first_got, scale = first != 0 ? value / first : NAN;
    double shift = value - first, o, g;
    bool constant = true, scaled = true, shifted = true;

    for (int64_t i = 0; i < oracle->n; i++) {
        if (!bad[i])
            continue;
        o = tensor_at(oracle, i), g = tensor_at(got, i);
        if (!isfinite(g) || !isfinite(o))
            shifted = scaled = false;
        constant = constant && (g == value || (isnan(g) && isnan(value)));
        shifted = shifted && fabs(g - o - shift) <= 1e-4 * (fabs(shift) + 1e-6 * fabs(o));
        scaled = scaled && fabs(g - o * scale) <= 1e-4 * fabs(g);
    }
    compare_relation_text(c, constant, scaled, shifted, out, n);
}

/* Does the element hold what the judge fills memory with, bytes of 0xff? Arithmetic makes another nan. */
static bool compare_is_unwritten(const struct tensor *t, int64_t i)
{
    size_t n = dt_size(t->dtype);
    const uint8_t *p = (const uint8_t *)t->data + (size_t)i * n;

    while (n && *p == 0xff)
        p++, n--;
    return !n;
}

/* Counts a wrong element and keeps it if it is the first or the worst. */
static void compare_note_bad(struct comparison *c, int64_t i, double expected, double value, double *worst)
{
    double diff = fabs(value - expected);

    c->n_bad++;
    c->n_nan += isnan(value);
    if (!isfinite(diff))
        diff = INFINITY;
    if (c->first < 0)
        c->first = i, c->first_expected = expected, c->first_got = value;
    if (c->worst < 0 || diff > *worst)
        c->worst = i, c->worst_expected = expected, c->worst_got = value, *worst = diff;
}

int compare_real_shape(const int64_t *shape, int ndim, enum dtype dtype, int64_t *ret)
{
    memcpy(ret, shape, (size_t)ndim * sizeof *shape);
    if (dt_components(dtype) == 2)
        ret[ndim++] = 2;
    return ndim;
}

void compare_describe(struct comparison *c, const struct tensor *t, const char *where, const char *what)
{
    snprintf(c->pattern, sizeof c->pattern, "%.78s%s%.78s", where, *where && *what ? "; " : "", what);
    compare_index_text(t, c->first, c->first_at, sizeof c->first_at);
    compare_index_text(t, c->worst, c->worst_at, sizeof c->worst_at);
}

/* Fills pattern and texts of a comparison that found wrong elements. */
static void compare_do_describe(struct comparison *c, const struct tensor *oracle, const struct tensor *got,
                                const uint8_t *bad)
{
    int64_t shape[TENSOR_MAX_DIMS + 1];
    char what[80], where[80];
    int nd = compare_real_shape(got->shape, got->ndim, got->dtype, shape);

    compare_pattern(bad, shape, nd, where, sizeof where);
    compare_relation(c, oracle, got, bad, what, sizeof what);
    compare_describe(c, got, where, what);
}

/* Fills c with how got differs from oracle under tol: counts, largest errors, first and worst places, pattern. */
static void compare_values(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got,
                           const struct tolerance *tol, struct comparison *c)
{
    uint8_t *bad = xcalloc((size_t)got->n + 1, 1);
    double worst = -1, o, g, diff;

    for (int64_t i = 0; i < got->n; i++) {
        if (compare_any_is_right(eager, oracle, got, i) || compare_is_thrown(oracle, i))
            continue;
        o = tensor_at(oracle, i), g = tensor_at(got, i), diff = fabs(g - o);
        if (isfinite(diff) && diff > c->max_abs)
            c->max_abs = diff;
        if (isfinite(diff) && o != 0 && diff / fabs(o) > c->max_rel)
            c->max_rel = diff / fabs(o);
        if (compare_accept(eager, oracle, got, i, tol))
            continue;
        bad[i] = 1;
        compare_note_bad(c, i, o, g, &worst);
        c->n_unwritten += isnan(g) && compare_is_unwritten(got, i);
    }
    if (c->n_bad) {
        c->kind = CMP_VALUES;
        compare_do_describe(c, oracle, got, bad);
    }
    free(bad);
}

bool compare_kinds(const struct tensor *eager, const struct tensor *got, struct comparison *ret)
{
    struct comparison c = {.kind = CMP_SAME, .n = got->n, .first = -1, .worst = -1};
    char want[80], have[80];

    tensor_shape_text(eager, want, sizeof want);
    tensor_shape_text(got, have, sizeof have);
    if (strcmp(want, have)) {
        c.kind = CMP_SHAPE;
        snprintf(c.detail, sizeof c.detail, "shape: expected %.60s, got %.60s", want, have);
    } else if (eager->dtype != got->dtype) {
        c.kind = CMP_DTYPE;
        snprintf(c.detail, sizeof c.detail, "dtype: expected %s, got %s", dt_name(eager->dtype), dt_name(got->dtype));
    }
    *ret = c;
    return c.kind == CMP_SAME;
}

static double compare_error_of(double expected, double got)
{
    double err = fabs(got - expected);

    return isfinite(err) ? err : INFINITY;
}

/* Adds a wrong tile, which begins at element 'from' of the whole tensor, to the comparison of the whole. */
static void compare_add_wrong(struct comparison *all, const struct tensor *whole, int64_t from,
                              const struct comparison *tile)
{
    bool only = all->n_bad == 0;

    if (only) {
        *all = (struct comparison){.kind = CMP_VALUES, .n = all->n, .max_abs = all->max_abs, .max_rel = all->max_rel,
                                   .first = from + tile->first, .worst = -1, .first_expected = tile->first_expected,
                                   .first_got = tile->first_got};
        compare_index_text(whole, all->first, all->first_at, sizeof all->first_at);
    }
    snprintf(all->pattern, sizeof all->pattern, "%s", only ? tile->pattern : "");
    all->n_bad += tile->n_bad;
    all->n_nan += tile->n_nan;
    all->n_unwritten = tile->n_unwritten < 0 ? -1 : all->n_unwritten + tile->n_unwritten;
    if (all->worst >= 0 &&
        compare_error_of(all->worst_expected, all->worst_got) >= compare_error_of(tile->worst_expected,
                                                                                  tile->worst_got))
        return;
    all->worst = from + tile->worst;
    all->worst_expected = tile->worst_expected, all->worst_got = tile->worst_got;
    compare_index_text(whole, all->worst, all->worst_at, sizeof all->worst_at);
}

void compare_add_tile(struct comparison *all, const struct tensor *whole, int64_t from, const struct comparison *tile)
{
    all->n += tile->n;
    all->max_abs = fmax(all->max_abs, tile->max_abs);
    all->max_rel = fmax(all->max_rel, tile->max_rel);
    if (tile->n_bad)
        compare_add_wrong(all, whole, from, tile);
}

/* True for numbers that are equal up to 1e-5; integers must be equal. */
static bool compare_same_number(const json_t *want, const json_t *got)
{
    double a = json_number_value(want), b = json_number_value(got);

    if (!json_is_real(want) || !json_is_number(got))
        return json_equal(want, got);
    return a == b || fabs(a - b) <= 1e-5 * fabs(a) + 1e-12;
}

bool compare_number(const json_t *want, const json_t *got, struct comparison *ret)
{
    double a = json_is_number(want) ? json_number_value(want) : NAN;
    double b = json_is_number(got) ? json_number_value(got) : NAN;
    bool ok = compare_same_number(want, got);

    *ret = (struct comparison){.kind = ok ? CMP_SAME : CMP_VALUES, .n = 1, .n_bad = !ok, .first_expected = a,
                               .first_got = b, .worst_expected = a, .worst_got = b};
    return ok;
}

bool compare_passes(const struct comparison *c, const struct tolerance *tol)
{
    double most = tol->most > 0 ? tol->most : INFINITY;

    if (c->kind != CMP_VALUES)
        return c->kind == CMP_SAME;
    if (!tol->usable)
        return true;
    return tol->matched > 0 && (double)c->n_bad <= (1 - tol->matched) * (double)c->n &&
           isfinite(c->worst_expected) && isfinite(c->worst_got) && c->n_nan == 0 && c->max_abs <= most;
}

void compare_tensors(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got,
                     const struct tolerance *tol, struct comparison *ret)
{
    if (compare_kinds(eager, got, ret))
        compare_values(eager, oracle, got, tol, ret);
}
