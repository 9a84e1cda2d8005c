/* hypothesis.c - see hypothesis.h. A row of tables is a guess; the first one that explains every sample is told. */
#include "eval/check/hypothesis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))
#define REDUCED_MOST ((int64_t)1 << 20) /* elements of an input that is reduced again */
#define LINES_MOST 4096                 /* places along an axis that may each have a term of their own */

typedef const struct hypothesis_case hcase;

/* ---- samples ---- */

/* The distance between the elements that are tried. */
static int64_t hypothesis_step(const struct tensor *t)
{
    return t->n / HYPOTHESIS_SAMPLES + 1;
}

/* True if a guess explains what was got. */
static bool hypothesis_near(hcase *c, double got, double guess)
{
    return fabs(got - guess) <= c->tol->abs + 4 * c->tol->rel * fabs(guess) || (isnan(got) && isnan(guess));
}

/* Does guess(i) explain each sample of got? A guess of NaN is none. */
static bool hypothesis_explains(hcase *c, double (*guess)(hcase *c, int64_t i, const void *ctx), const void *ctx)
{
    int64_t step = hypothesis_step(c->got), told = 0;

    for (int64_t i = 0; i < c->got->n; i += step) {
        double g = guess(c, i, ctx), got = tensor_at(c->got, i);

        if (isnan(g))
            continue;
        if (!hypothesis_near(c, got, g))
            return false;
        told += !hypothesis_near(c, got, tensor_at(c->want, i));
    }
    return told > 0;
}

/* Writes the sentence to out. Always true. */
static bool hypothesis_say(char *out, size_t n, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(out, n, format, ap);
    va_end(ap);
    return true;
}

/* ---- a factor ---- */

/* A guess: the expected value times *ctx. */
static double hypothesis_scaled(hcase *c, int64_t i, const void *ctx)
{
    return tensor_at(c->want, i) * *(const double *)ctx;
}

/* got / want where want is largest. */
static double hypothesis_factor(hcase *c)
{
    int64_t step = hypothesis_step(c->want);
    double most = 0, factor = NAN;

    for (int64_t i = 0; i < c->want->n; i += step)
        if (fabs(tensor_at(c->want, i)) > most) {
            most = fabs(tensor_at(c->want, i));
            factor = tensor_at(c->got, i) / tensor_at(c->want, i);
        }
    return factor;
}

static bool hypothesis_same_factor(double a, double b)
{
    return fabs(a - b) <= 1e-4 * fabs(b);
}

/* "* 3.0" or "/ 3.0" of the task's text that makes the factor, where it is left out. */
static bool hypothesis_literal(hcase *c, double factor, char *out, size_t n)
{
    for (const char *s = c->source; s && *s; s++) {
        char *end;
        double v;

        if ((*s != '*' && *s != '/') || s[1] == *s || (s > c->source && s[-1] == *s))
            continue;
        v = strtod(s + 1, &end);
        if (end == s + 1 || v == 0 || v == 1 || !hypothesis_same_factor(factor, *s == '*' ? 1 / v : v))
            continue;
        return hypothesis_say(out, n, "your result is the reference's without `%c %.*s`", *s,
                              (int)(end - s - 1 - (ptrdiff_t)strspn(s + 1, " ")), s + 1 + strspn(s + 1, " "));
    }
    return false;
}

/* Writes to out that the result is off by the length of an input's axis, where 'factor' is such a length or its
 * inverse. */
static bool hypothesis_length(hcase *c, double factor, char *out, size_t n)
{
    for (int t = 0; t < c->n_inputs; t++)
        for (int a = 0; a < c->inputs[t].ndim; a++) {
            double len = (double)c->inputs[t].shape[a];

            if (len > 1 && hypothesis_same_factor(factor, len))
                return hypothesis_say(out, n, "your result is the reference's times %.0f, the length of axis %d of "
                                      "input %d: is a sum taken for a mean?", len, a, t);
            if (len > 1 && hypothesis_same_factor(factor, 1 / len))
                return hypothesis_say(out, n, "your result is the reference's divided by %.0f, the length of axis %d "
                                      "of input %d: is a mean taken for a sum?", len, a, t);
        }
    return false;
}

/* Writes to out that the result is off by one factor which something explains. False: nothing does. */
static bool hypothesis_try_factor(hcase *c, char *out, size_t n)
{
    double factor = hypothesis_factor(c);

    return isfinite(factor) && hypothesis_explains(c, hypothesis_scaled, &factor) &&
           (hypothesis_literal(c, factor, out, n) || hypothesis_length(c, factor, out, n));
}

/* ---- places ---- */

static int64_t hypothesis_width(const struct tensor *t)
{
    return t->ndim ? t->shape[t->ndim - 1] : 1;
}

/* want's last two axes exchanged in memory. */
static double hypothesis_turned(hcase *c, int64_t i, const void *ctx)
{
    const struct tensor *w = c->want;
    int64_t b = w->shape[w->ndim - 1], a = w->shape[w->ndim - 2], k = i % (a * b);

    (void)ctx;
    return tensor_at(w, i - k + k % a * b + k / a);
}

/* Expected element i of a result whose last axis is reversed. */
static double hypothesis_mirrored(hcase *c, int64_t i, const void *ctx)
{
    int64_t b = hypothesis_width(c->want);

    (void)ctx;
    return tensor_at(c->want, i - i % b + b - 1 - i % b);
}

/* A guess: the expected value *ctx elements away. */
static double hypothesis_moved(hcase *c, int64_t i, const void *ctx)
{
    int64_t from = i + *(const int64_t *)ctx;

    return from < 0 || from >= c->want->n ? NAN : tensor_at(c->want, from);
}

/* Writes to out that the values are right and stand elsewhere: transposed, mirrored or shifted. False: they are not.
 * */
static bool hypothesis_try_places(hcase *c, char *out, size_t n)
{
    int64_t row = hypothesis_width(c->want);
    const int64_t by[] = {1, -1, row, -row};

    if (c->want->ndim >= 2 && hypothesis_explains(c, hypothesis_turned, NULL))
        return hypothesis_say(out, n, "your result is the reference's with its last two axes exchanged");
    if (row > 1 && hypothesis_explains(c, hypothesis_mirrored, NULL))
        return hypothesis_say(out, n, "your result is the reference's with its last axis reversed");
    for (size_t k = 0; k < N_OF(by); k++)
        if (c->want->n > 2 * row && row > 1 && hypothesis_explains(c, hypothesis_moved, &by[k]))
            return hypothesis_say(out, n, "your result is the reference's, one %s too %s", k < 2 ? "element" : "row",
                                  k % 2 ? "late" : "early");
    return false;
}

/* ---- a function ---- */

static double hypothesis_relu(double x) { return x > 0 ? x : 0; }
static double hypothesis_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double hypothesis_silu(double x) { return x / (1 + exp(-x)); }
static double hypothesis_gelu(double x) { return 0.5 * x * (1 + erf(x * M_SQRT1_2)); }
static double hypothesis_square(double x) { return x * x; }

static const struct {
    const char *name;
    double (*f)(double x);
} hypothesis_functions[] = {
    {"relu", hypothesis_relu}, {"sigmoid", hypothesis_sigmoid}, {"tanh", tanh}, {"silu", hypothesis_silu},
    {"gelu", hypothesis_gelu}, {"exp", exp}, {"log", log}, {"abs", fabs}, {"square", hypothesis_square},
    {"sqrt", sqrt}};

/* A guess: function *ctx of the expected value. */
static double hypothesis_once_more(hcase *c, int64_t i, const void *ctx)
{
    return hypothesis_functions[*(const size_t *)ctx].f(tensor_at(c->want, i));
}

/* Is want f(got) everywhere? */
static bool hypothesis_lacks(hcase *c, size_t f)
{
    const struct hypothesis_case turned = {.want = c->got, .got = c->want, .tol = c->tol};

    return hypothesis_explains(&turned, hypothesis_once_more, &f);
}

/* Writes to out that a function is missing, or applied twice. False: none explains it. */
static bool hypothesis_try_function(hcase *c, char *out, size_t n)
{
    for (size_t f = 0; f < N_OF(hypothesis_functions); f++) {
        if (hypothesis_lacks(c, f))
            return hypothesis_say(out, n, "the reference's value is %s of yours: is it missing?",
                                  hypothesis_functions[f].name);
        if (hypothesis_explains(c, hypothesis_once_more, &f))
            return hypothesis_say(out, n, "your value is %s of the reference's: is it there once too often?",
                                  hypothesis_functions[f].name);
    }
    return false;
}

/* ---- a term for each place along an axis ---- */

struct hypothesis_line {
    int64_t inner, length; /* of the axis: elements behind it; places along it */
    bool factor;
    double term[LINES_MOST]; /* NaN: not met yet */
};

/* Got over expected (factor) or got less expected; NaN where it says nothing. */
static double hypothesis_difference(hcase *c, int64_t i, bool factor)
{
    double want = tensor_at(c->want, i), got = tensor_at(c->got, i);

    return factor ? (fabs(want) > 1e-3 ? got / want : NAN) : got - want;
}

/* Expected element i with the line's term or factor. */
static double hypothesis_with_term(hcase *c, int64_t i, const void *ctx)
{
    const struct hypothesis_line *l = ctx;
    double t = l->term[i / l->inner % l->length], want = tensor_at(c->want, i);

    return l->factor ? want * t : want + t;
}

/* Few places, each seen several times, and not the same term everywhere: a scalar is another mistake. */
static bool hypothesis_try_line(hcase *c, struct hypothesis_line *l)
{
    int64_t step = hypothesis_step(c->got);
    double least = INFINITY, most = -INFINITY;

    for (int64_t k = 0; k < l->length; k++)
        l->term[k] = NAN;
    for (int64_t i = 0; i < c->got->n; i += step) {
        double *t = &l->term[i / l->inner % l->length];

        *t = isnan(*t) ? hypothesis_difference(c, i, l->factor) : *t;
        least = fmin(least, *t), most = fmax(most, *t);
    }
    return most - least > 8 * c->tol->abs && isfinite(most - least) && hypothesis_explains(c, hypothesis_with_term, l);
}

/* Writes to out that the result misses or repeats a term along one axis. False: no axis explains it. */
static bool hypothesis_try_terms(hcase *c, char *out, size_t n)
{
    struct hypothesis_line *l = malloc(sizeof *l);
    bool found = false;

    for (int factor = 0; l && factor < 2 && !found; factor++) {
        l->inner = 1;
        for (int a = c->want->ndim - 1; a >= 0 && !found; l->inner *= c->want->shape[a], a--) {
            l->length = c->want->shape[a], l->factor = factor;
            if (l->length < 2 || l->length > LINES_MOST || l->length * 4 > c->want->n / hypothesis_step(c->want))
                continue;
            if ((found = hypothesis_try_line(c, l)))
                hypothesis_say(out, n, factor ? "each place along axis %d is wrong by a factor of its own: is a scale "
                               "missing, or an eps in it?" : "each place along axis %d is wrong by a number of its "
                               "own that is added: is a bias missing, or there twice?", a);
        }
    }
    free(l);
    return found;
}

/* ---- reductions of an input ---- */

struct hypothesis_reduction {
    const struct tensor *t;
    int axis, op;
};
static const char *const hypothesis_ops[] = {"sum", "mean", "maximum", "minimum"};

/* Element i of the input reduced along an axis by the operation of ctx. */
static double hypothesis_reduced(hcase *c, int64_t i, const void *ctx)
{
    const struct hypothesis_reduction *r = ctx;
    int64_t inner = 1, len = r->t->shape[r->axis], at;
    double sum = 0, most = -INFINITY, least = INFINITY;

    (void)c;
    for (int a = r->axis + 1; a < r->t->ndim; a++)
        inner *= r->t->shape[a];
    at = i / inner * inner * len + i % inner;
    for (int64_t k = 0; k < len; k++) {
        double x = tensor_at(r->t, at + k * inner);

        sum += x, most = fmax(most, x), least = fmin(least, x);
    }
    return r->op == 0 ? sum : r->op == 1 ? sum / (double)len : r->op == 2 ? most : least;
}

/* The reduction of an input that gives these values. */
static bool hypothesis_which(hcase *c, const struct tensor *values, struct hypothesis_reduction *ret)
{
    const struct hypothesis_case same = {.want = values, .got = values, .tol = c->tol};
    int64_t step = hypothesis_step(values);

    for (int t = 0; t < c->n_inputs; t++)
        for (int a = 0; a < c->inputs[t].ndim && c->inputs[t].n <= REDUCED_MOST; a++)
            for (int op = 0; op < 4 && c->inputs[t].n > 0 && c->inputs[t].n == values->n * c->inputs[t].shape[a];
                 op++) {
                int64_t i = 0;

                *ret = (struct hypothesis_reduction){&c->inputs[t], a, op};
                while (i < values->n && hypothesis_near(&same, tensor_at(values, i), hypothesis_reduced(c, i, ret)))
                    i += step;
                if (i >= values->n)
                    return true;
            }
    return false;
}

/* Writes to out that another reduction, or another axis, gives the result. */
static bool hypothesis_try_reduction(hcase *c, char *out, size_t n)
{
    struct hypothesis_reduction want, got;

    if (!hypothesis_which(c, c->want, &want) || !hypothesis_which(c, c->got, &got))
        return false;
    return hypothesis_say(out, n, "your result is the %s over axis %d, the reference's the %s over axis %d",
                          hypothesis_ops[got.op], got.axis, hypothesis_ops[want.op], want.axis);
}

/* A guess: the input ctx itself. */
static double hypothesis_input(hcase *c, int64_t i, const void *ctx)
{
    (void)c;
    return tensor_at(ctx, i);
}

/* Writes to out that the result is an input. */
static bool hypothesis_try_input(hcase *c, char *out, size_t n)
{
    for (int t = 0; t < c->n_inputs; t++)
        if (c->inputs[t].n == c->got->n && hypothesis_explains(c, hypothesis_input, &c->inputs[t]))
            return hypothesis_say(out, n, "your result is input %d as it came", t);
    return false;
}

void hypothesis_find(const struct hypothesis_case *c, char *out, size_t n)
{
    static bool (*const tries[])(hcase *c, char *out, size_t n) = {
        hypothesis_try_input, hypothesis_try_factor, hypothesis_try_reduction, hypothesis_try_places,
        hypothesis_try_function, hypothesis_try_terms};

    *out = 0;
    if (c->want->n != c->got->n || c->want->n < 1 || !dt_is_float(c->got->dtype) || dt_components(c->got->dtype) != 1)
        return;
    for (size_t i = 0; i < N_OF(tries) && !*out; i++)
        if (!tries[i](c, out, n))
            *out = 0;
}

double hypothesis_typical_error(const struct hypothesis_case *c)
{
    double *v = malloc(sizeof *v * (HYPOTHESIS_SAMPLES + 1)), median = NAN;
    int64_t step = hypothesis_step(c->got);
    size_t n = 0;

    for (int64_t i = 0; v && i < c->got->n && c->got->n == c->want->n; i += step) {
        double want = tensor_at(c->want, i), off = fabs(tensor_at(c->got, i) - want);

        if (isfinite(off) && off > c->tol->abs + c->tol->rel * fabs(want))
            v[n++] = off;
    }
    if (n) {
        numbers_sort(v, n);
        median = v[n / 2];
    }
    free(v);
    return median;
}
