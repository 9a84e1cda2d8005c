/* test_tolerance.c - what the tolerance is for, over dtypes, shapes and distributions: every honest order of the same
 * sums passes each draw, zeros and scaled answers pass none that decides, a dropped last term fails some draw. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "eval/check/compare.h"

static struct rng rng;

static double uniform(void)
{
    return rng_f64(&rng);
}

static double normal(void)
{
    return rng_normal(&rng);
}

/* v as the type holds it. */
static double rounded(enum dtype d, double v)
{
    uint8_t cell[16] = {0};
    struct tensor t = {.dtype = d, .ndim = 1, .shape = {1}, .n = 1, .data = cell};

    tensor_put(d, cell, 0, v);
    return tensor_at(&t, 0);
}

/* ---- draws: the five distributions of the judge, a spike at the end, and scales near zero ---- */

enum regime { NORMAL, UNIFORM, SIGNED, LARGE, STRUCTURED, SPIKE, TINY, N_REGIMES };

static double value_of(enum regime g, int64_t i)
{
    switch (g) {
    case UNIFORM: return uniform();
    case SIGNED: return uniform() * 6 - 3;
    case LARGE: return normal() * 100;
    case STRUCTURED: return (double)((i * 3 + i / 13 * 5 + 7) % 17 - 8);
    case TINY: return normal() * 1e-3;
    default: return normal();
    }
}

/* As runner/reference.py: more than the tolerance of a sum over all elements. */
static double spike_of(int64_t n, enum dtype d)
{
    double rel = d == DT_F16 ? 0x1p-10 : d == DT_BF16 ? 0x1p-7 : 2e-5, x = 8 * fmax(1, (double)n * rel);

    return d == DT_F16 ? fmin(x, 1000) : x;
}

static void fill(double *x, int64_t n, enum regime g, enum dtype d)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = rounded(d, value_of(g, i));
    if (g == SPIKE)
        x[n - 1] = rounded(d, spike_of(n, d));
}

/* ---- programs: rows of k terms, summed in some order ---- */

enum op { SUM, DOT, MSE, SOFTMAX, N_OPS };
enum order { EXACT, LANES8, SERIAL, BACKWARDS, LANES32, PAIRS, N_ORDERS, SHORT = N_ORDERS };

struct problem {
    enum op op;
    enum dtype dtype;
    int64_t rows, k;
    double *x, *w;
};

static float sum_pairs(const float *t, int64_t n)
{
    return n == 1 ? t[0] : sum_pairs(t, n / 2) + sum_pairs(t + n / 2, n - n / 2);
}

static float sum_lanes(const float *t, int64_t n, int lanes)
{
    float part[32] = {0};

    for (int64_t i = 0; i < n; i++)
        part[i % lanes] += t[i];
    return sum_pairs(part, lanes);
}

static float sum_serial(const float *t, int64_t n, bool backwards)
{
    float s = 0;

    for (int64_t i = 0; i < n; i++)
        s += t[backwards ? n - 1 - i : i];
    return s;
}

static double sum_terms(const double *t, int64_t n, enum order order)
{
    float *f, s;
    double exact = 0;

    if (order == EXACT) {
        for (int64_t i = 0; i < n; i++)
            exact += t[i];
        return exact;
    }
    f = xcalloc((size_t)n, sizeof *f);
    for (int64_t i = 0; i < n; i++)
        f[i] = (float)t[i];
    s = order == LANES8    ? sum_lanes(f, n, 8)
      : order == SERIAL    ? sum_serial(f, n, false)
      : order == BACKWARDS ? sum_serial(f, n, true)
      : order == LANES32   ? sum_lanes(f, n, 32)
      : order == PAIRS     ? sum_pairs(f, n)
                           : sum_serial(f, n - 1, false);
    free(f);
    return s;
}

static void terms_of(const struct problem *p, int64_t row, bool exact, double *t)
{
    const double *x = p->x + row * p->k, *w = p->w + (p->op == MSE ? row * p->k : 0);
    double top = -INFINITY, v;

    for (int64_t i = 0; p->op == SOFTMAX && i < p->k; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < p->k; i++) {
        v = p->op == SUM ? x[i] : p->op == DOT ? x[i] * w[i] : p->op == MSE ? (x[i] - w[i]) * (x[i] - w[i])
          : exact ? exp(x[i] - top) : (double)expf((float)(x[i] - top));
        t[i] = exact ? v : (double)(float)v;
    }
}

static int64_t outputs(const struct problem *p)
{
    return p->op == SOFTMAX ? p->rows * p->k : p->op == MSE ? 1 : p->rows;
}

/* The answer before it is rounded to the output's type; EXACT: the oracle. */
static void run(const struct problem *p, enum order order, double *out)
{
    int64_t n = p->op == MSE ? p->rows * p->k : p->k;
    struct problem flat = *p;
    double *t = xcalloc((size_t)n, sizeof *t), s;

    if (p->op == MSE)
        flat.k = n, flat.rows = 1;
    for (int64_t r = 0; r < flat.rows; r++) {
        terms_of(&flat, r, order == EXACT, t);
        s = sum_terms(t, n, order);
        for (int64_t i = 0; p->op == SOFTMAX && i < n; i++)
            out[r * n + i] = t[i] / s;
        if (p->op != SOFTMAX)
            out[r] = p->op == MSE ? s / (double)n : s;
    }
    free(t);
}

/* ---- the judge ---- */

static double unit_of(enum dtype d)
{
    return d == DT_F16 ? 0x1p-11 : d == DT_BF16 ? 0x1p-8 : 0x1p-24;
}

static void shaken(const double *from, int64_t n, double u, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] * (1 + u * (2 * uniform() - 1));
}

/* As runner/reference.py: several tries where there are few outputs. */
static double moved_by_rounding(const struct problem *p, const double *oracle, int64_t n_w)
{
    int64_t n = outputs(p), n_x = p->rows * p->k;
    struct problem q = *p;
    double *out = xcalloc((size_t)n, sizeof *out), worst = 0;

    q.x = xcalloc((size_t)n_x, sizeof *q.x);
    q.w = xcalloc((size_t)n_w, sizeof *q.w);
    for (int64_t k = 0; k < 8; k += n) {
        shaken(p->x, n_x, unit_of(p->dtype), q.x);
        shaken(p->w, n_w, unit_of(p->dtype), q.w);
        run(&q, EXACT, out);
        for (int64_t i = 0; i < n; i++)
            worst = fmax(worst, fabs(out[i] - oracle[i]));
    }
    free(q.x);
    free(q.w);
    free(out);
    return worst;
}

struct judged {
    enum dtype dtype;
    int64_t n;
    double *oracle;
    uint8_t *bytes, *eager;
    struct tolerance tol;
    double max_abs;
};

static bool accepts(const struct judged *j, const double *answer)
{
    struct tensor want = {.dtype = DT_F64, .ndim = 1, .shape = {j->n}, .n = j->n, .data = (uint8_t *)j->oracle};
    struct tensor got = {.dtype = j->dtype, .ndim = 1, .shape = {j->n}, .n = j->n, .data = j->bytes}, eager = got;
    struct comparison c;

    for (int64_t i = 0; i < j->n; i++)
        tensor_put(j->dtype, j->bytes, i, answer[i]);
    eager.data = j->eager;
    compare_tensors(&eager, &want, &got, &j->tol, &c);
    return c.kind == CMP_SAME;
}

static void judge_make(const struct problem *p, int64_t n_w, struct judged *j)
{
    struct tensor e = {.dtype = p->dtype, .ndim = 1};
    struct noise noise = {0};
    double *answer;

    j->dtype = p->dtype;
    j->n = e.n = e.shape[0] = outputs(p);
    j->oracle = xcalloc((size_t)j->n, sizeof *j->oracle);
    j->bytes = xcalloc((size_t)j->n, 16);
    j->eager = xcalloc((size_t)j->n, 16);
    answer = xcalloc((size_t)j->n, sizeof *answer);
    run(p, EXACT, j->oracle);
    run(p, LANES8, answer);
    e.data = j->eager;
    for (int64_t i = 0; i < j->n; i++) {
        tensor_put(p->dtype, j->eager, i, answer[i]);
        noise.n1 = fmax(noise.n1, fabs(tensor_at(&e, i) - j->oracle[i]) - unit_of(p->dtype) * fabs(j->oracle[i]));
        noise.max_abs = fmax(noise.max_abs, fabs(j->oracle[i]));
    }
    free(answer);
    noise.n2 = moved_by_rounding(p, j->oracle, n_w);
    noise.fan_in = fmax(1, (double)(p->rows * p->k) / (double)j->n);
    j->max_abs = noise.max_abs;
    j->tol = tolerance_strict(p->dtype, p->dtype, &noise);
}

static void judge_free(struct judged *j)
{
    free(j->oracle);
    free(j->bytes);
    free(j->eager);
}

/* ---- the property ---- */

static const char *const op_names[] = {"sum", "dot", "mse", "softmax"};
static const char *const order_names[] = {"exact", "8 lanes", "serial", "backwards", "32 lanes", "pairs"};

static void name_it(const struct problem *p, enum regime g, const char *what)
{
    fail_msg("%s %s %lld x %lld, regime %d: %s", op_names[p->op], dt_name(p->dtype), (long long)p->rows,
             (long long)p->k, (int)g, what);
}

/* Of one draw: 1 if it decides; *caught: it finds the dropped term. */
static int one_draw(const struct problem *p, enum regime g, int64_t n_w, bool *caught)
{
    struct judged j;
    double *answer, tol;
    int decides;

    judge_make(p, n_w, &j);
    answer = xcalloc((size_t)j.n, sizeof *answer);
    for (enum order o = EXACT; j.tol.usable && o < N_ORDERS; o++) {
        run(p, o, answer);
        if (!accepts(&j, answer))
            name_it(p, g, order_names[o]);
    }
    memset(answer, 0, (size_t)j.n * sizeof *answer);
    if (j.tol.decides && accepts(&j, answer))
        name_it(p, g, "zeros pass");
    tol = j.tol.rel + j.tol.abs / j.max_abs;
    for (int64_t i = 0; i < j.n; i++)
        answer[i] = j.oracle[i] * (1 + 4 * tol);
    if (j.tol.decides && accepts(&j, answer))
        name_it(p, g, "scaled passes");
    run(p, SHORT, answer);
    *caught = *caught || (j.tol.usable && !accepts(&j, answer));
    decides = j.tol.decides;
    judge_free(&j);
    free(answer);
    return decides;
}

/* All draws of one task. */
static void one_task(enum op op, enum dtype dtype, int64_t rows, int64_t k)
{
    struct problem p = {.op = op, .dtype = dtype, .rows = rows, .k = k};
    int64_t n_w = op == MSE ? rows * k : k;
    bool caught = false;
    int decide = 0;

    p.x = xcalloc((size_t)(rows * k), sizeof *p.x);
    p.w = xcalloc((size_t)n_w, sizeof *p.w);
    for (enum regime g = NORMAL; g < N_REGIMES; g++) {
        if (op == SOFTMAX && g == TINY) /* terms that are all alike: serial sums err in one direction, like u k */
            continue;
        fill(p.x, rows * k, g, dtype);
        fill(p.w, n_w, g == SPIKE ? NORMAL : g, dtype);
        decide += one_draw(&p, g, n_w, &caught);
    }
    free(p.x);
    free(p.w);
    if (decide < 4)
        name_it(&p, N_REGIMES, "fewer than four draws decide");
    if (!caught)
        name_it(&p, N_REGIMES, "nothing finds a dropped last term");
}

static void test_honest_pass_and_wrong_fail(void **state)
{
    static const enum dtype dtypes[] = {DT_F32, DT_F16, DT_BF16};
    static const int64_t shapes[][2] = {{1, 1000}, {64, 64}, {37, 1000}, {8, 4096}, {3, 70000}};
    const char *seeds = getenv("TOLERANCE_SEEDS");

    (void)state;
    for (int seed = 0; seed < (seeds ? atoi(seeds) : 1); seed++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (enum op op = SUM; op < N_OPS; op++) {
                    rng_seed(&rng, (uint64_t)seed, s);
                    one_task(op, dtypes[d], shapes[s][0], shapes[s][1]);
                }
}

/* A scale by 1.1 of numbers up to 3: two roundings are anybody's, a constant of 1.115 or 1.104 is nobody's. */
static void test_a_constant_in_half_precision(void **state)
{
    static const struct {
        enum dtype d;
        double u, off;
    } rows[] = {{DT_BF16, 0x1p-8, 1.115 - 1.1}, {DT_F16, 0x1p-11, 1.104 - 1.1}};

    for (int i = 0; i < 2; i++) {
        const struct noise n = {.n2 = 3.3 * rows[i].u, .max_abs = 3.3, .fan_in = 1};
        struct tolerance t = tolerance_strict(rows[i].d, rows[i].d, &n);
        double allowed = t.abs + t.rel * 3.3;

        assert_true(t.decides);
        assert_true(2 * 3.3 * rows[i].u < allowed && 3 * rows[i].off > allowed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_honest_pass_and_wrong_fail),
                                       cmocka_unit_test(test_a_constant_in_half_precision)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
