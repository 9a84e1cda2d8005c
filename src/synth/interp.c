/* interp.c - see interp.h. Straightforward on purpose: it is the independent statement of what tasks mean. */
#include "synth/interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "task/trivial.h"

const char *const regime_names[N_REGIMES] = {"normal", "uniform", "signed", "large", "structured"};

static struct tensor tensor_new(int d0, int d1, int rank)
{
    struct tensor t = {.dims = {d0, d1}, .rank = rank};

    t.n = rank == 0 ? 1 : rank == 1 ? (size_t)d0 : (size_t)d0 * (size_t)d1;
    t.v = xcalloc(t.n, sizeof *t.v);
    return t;
}

void interp_free(struct tensor *t, int n)
{
    for (int i = 0; i < n; i++)
        free(t[i].v), t[i].v = NULL;
}

static double draw_value(enum regime regime, struct rng *r, size_t i, size_t n)
{
    switch (regime) {
    case REGIME_UNIFORM: return rng_f64(r);
    case REGIME_SIGNED: return i % 2 ? rng_f64(r) : -2 * rng_f64(r) - 0.1;
    case REGIME_LARGE: return 100 * rng_f64(r) - 50;
    case REGIME_STRUCTURED: return i % 7 == 3 || i + 1 == n || i == 0 ? 1 : (double)(i % 251) / 50 - 2;
    case REGIME_NORMAL:
    case N_REGIMES: break;
    }
    return rng_normal(r);
}

void interp_inputs(const struct graph *g, enum regime regime, struct rng *r, struct tensor in[GRAPH_INPUTS])
{
    for (int i = 0; i < g->n_in; i++) {
        bool parameter = g->input[i] == ROLE_WEIGHT || g->input[i] == ROLE_BIAS;
        int dims[2], rank;

        graph_input_dims(g, i, dims, &rank);
        in[i] = tensor_new(dims[0], dims[1], rank);
        for (size_t k = 0; k < in[i].n; k++)
            in[i].v[k] = parameter ? rng_normal(r) / sqrt(g->K) : draw_value(regime, r, k, in[i].n);
    }
}

/* ---- anchors: each makes a new tensor from x ---- */

static double fold(const struct op *op, double a, double v)
{
    const char *acc = op->text.acc;

    if (strstr(acc, "fabsf($v)") && strstr(acc, "fmaxf"))
        return fmax(a, fabs(v));
    if (strstr(acc, "fmaxf"))
        return fmax(a, v);
    if (strstr(acc, "fminf"))
        return fmin(a, v);
    if (strstr(acc, "fabsf"))
        return a + fabs(v);
    if (strstr(acc, "$v * $v"))
        return a + v * v;
    return strstr(acc, "a * $v") ? a * v : a + v;
}

static double identity(const struct op *op)
{
    return op->text.init[0] == '-' ? -INFINITY : op->text.init[0] == 'I' ? INFINITY : op->text.init[0] == '1';
}

static struct tensor reduce(const struct graph *g, const struct op *op, const struct tensor *x)
{
    int by = op->anchor == ANCHOR_FULL_REDUCE ? 0 : op->anchor == ANCHOR_ROW_REDUCE ? 1 : 2;
    struct tensor out = tensor_new(by == 1 ? g->M : g->N, 1, by ? 1 : 0);
    double length = (double)(x->n / out.n);

    for (size_t i = 0; i < out.n; i++)
        out.v[i] = identity(op);
    for (size_t i = 0; i < x->n; i++) {
        double *a = &out.v[by == 0 ? 0 : by == 1 ? i / (size_t)g->N : i % (size_t)g->N];
        *a = fold(op, *a, x->v[i]);
    }
    for (size_t i = 0; i < out.n; i++)
        out.v[i] = strstr(op->name, "_mean") ? out.v[i] / length : strstr(op->name, "_l2") ? sqrt(out.v[i]) : out.v[i];
    return out;
}

static void softmax_row(const struct op *op, const double *x, double *o, int n)
{
    double m = -INFINITY, s = 0;

    for (int j = 0; j < n; j++)
        m = fmax(m, x[j]);
    for (int j = 0; j < n; j++)
        s += exp(x[j] - m);
    for (int j = 0; j < n; j++)
        o[j] = strcmp(op->name, "softmax") ? x[j] - m - log(s) : exp(x[j] - m) / s;
}

static void layer_norm_row(const double *x, double *o, int n)
{
    double mean = 0, var = 0;

    for (int j = 0; j < n; j++)
        mean += x[j] / n;
    for (int j = 0; j < n; j++)
        var += (x[j] - mean) * (x[j] - mean) / n;
    for (int j = 0; j < n; j++)
        o[j] = (x[j] - mean) / sqrt(var + 1e-5);
}

static void norm_row(const struct op *op, const double *x, double *o, int n)
{
    double a = 0;

    for (int j = 0; j < n; j++)
        a = fold(op, a, x[j]);
    for (int j = 0; j < n; j++)
        o[j] = !strcmp(op->name, "rms_norm")   ? x[j] / sqrt(a / n + 1e-5)
               : !strcmp(op->name, "l2_norm")  ? x[j] / fmax(sqrt(a), 1e-12)
               : !strcmp(op->name, "l1_norm")  ? x[j] / fmax(a, 1e-12)
               : !strcmp(op->name, "max_norm") ? x[j] / (a + 1)
                                               : x[j] - a / n;
}

static void scan_row(const struct op *op, const double *x, double *o, int n)
{
    double a = identity(op);

    for (int k = 0; k < n; k++) {
        int j = op->flags & OP_REVERSE ? n - 1 - k : k;

        a = fold(op, a, x[j]);
        o[j] = op->flags & OP_EXCLUSIVE ? a - x[j] : a;
    }
}

static struct tensor by_rows(const struct graph *g, const struct op *op, const struct tensor *x)
{
    struct tensor out = tensor_new(g->M, g->N, 2);

    for (int r = 0; r < g->M; r++) {
        const double *in = x->v + (size_t)r * (size_t)g->N;
        double *o = out.v + (size_t)r * (size_t)g->N;

        if (op->anchor == ANCHOR_SOFTMAX)
            softmax_row(op, in, o, g->N);
        else if (op->anchor == ANCHOR_NORM2)
            layer_norm_row(in, o, g->N);
        else if (op->anchor == ANCHOR_NORM)
            norm_row(op, in, o, g->N);
        else
            scan_row(op, in, o, g->N);
    }
    return out;
}

static struct tensor product(const struct graph *g, const struct op *op, const struct tensor *x,
                             const struct tensor *y, const struct tensor *bias)
{
    struct tensor out = tensor_new(g->M, g->N, 2);

    for (int r = 0; r < g->M; r++)
        for (int j = 0; j < g->N; j++) {
            double a = bias ? bias->v[j] : 0;
            for (int q = 0; q < g->K; q++)
                a += x->v[op->flags & OP_A_T ? q * g->M + r : r * g->K + q] *
                     y->v[op->flags & OP_B_T ? j * g->K + q : q * g->N + j];
            out.v[r * g->N + j] = a;
        }
    return out;
}

static int copy_source(const struct graph *g, const char *name, int r, int j)
{
    int M = g->M, N = g->N;

    if (!strcmp(name, "transpose"))
        return j * N + r;
    if (!strcmp(name, "flip_cols"))
        return r * N + (N - 1 - j);
    if (!strcmp(name, "flip_rows"))
        return (M - 1 - r) * N + j;
    return !strcmp(name, "roll_cols") ? r * N + (j + N - 1) % N : (r + M - 1) % M * N + j;
}

static struct tensor copy(const struct graph *g, const struct op *op, const struct tensor *x)
{
    bool t = op->flags & OP_TRANSPOSES;
    struct tensor out = tensor_new(t ? g->N : g->M, t ? g->M : g->N, 2);

    for (int r = 0; r < out.dims[0]; r++)
        for (int j = 0; j < out.dims[1]; j++)
            out.v[r * out.dims[1] + j] = x->v[copy_source(g, op->name, r, j)];
    return out;
}

static struct tensor run_anchor(const struct graph *g, const struct op *op, const struct tensor *x,
                                const struct tensor *in)
{
    switch (op->anchor) {
    case ANCHOR_ROW_REDUCE:
    case ANCHOR_COL_REDUCE:
    case ANCHOR_FULL_REDUCE: return reduce(g, op, x);
    case ANCHOR_MATMUL: return product(g, op, x, &in[1], NULL);
    case ANCHOR_LINEAR: return product(g, op, x, &in[1], &in[2]);
    case ANCHOR_COPY: return copy(g, op, x);
    case ANCHOR_NONE:
    case ANCHOR_SOFTMAX:
    case ANCHOR_NORM:
    case ANCHOR_NORM2:
    case ANCHOR_SCAN: break;
    }
    return by_rows(g, op, x);
}

/* ---- elementwise, and the walk ---- */

static double operand_at(const struct graph *g, const struct tensor *y, enum role role, size_t i)
{
    return role == ROLE_ROW ? y->v[i % (size_t)g->N] : role == ROLE_COL ? y->v[i / (size_t)g->N] : y->v[i];
}

static struct tensor elementwise(const struct graph *g, const struct node *p, const struct tensor *x,
                                 const struct tensor *h, const struct tensor *in)
{
    struct tensor out = tensor_new(x->dims[0], x->dims[1], x->rank);

    for (size_t i = 0; i < x->n; i++) {
        double y = 0;
        if (p->operand == OPERAND_H)
            y = h->v[i];
        else if (p->operand >= 0)
            y = operand_at(g, &in[p->operand], g->input[p->operand], i);
        out.v[i] = p->op->f(x->v[i], y, p->c);
    }
    return out;
}

static bool can_skip(const struct node *p)
{
    enum anchor a = p->op->anchor;

    if (p->op->kind == OP_ANCHOR)
        return a == ANCHOR_SOFTMAX || a == ANCHOR_NORM || a == ANCHOR_NORM2 || a == ANCHOR_SCAN ||
               (a == ANCHOR_COPY && !(p->op->flags & OP_TRANSPOSES));
    return true;
}

int interp_run(const struct graph *g, const struct tensor in[GRAPH_INPUTS], int skip, struct tensor *ret)
{
    struct tensor x = tensor_new(in[0].dims[0], in[0].dims[1], in[0].rank), h = {0};

    if (skip >= 0 && !can_skip(&g->node[skip])) {
        interp_free(&x, 1);
        return -1;
    }
    memcpy(x.v, in[0].v, sizeof *x.v * x.n);
    for (int i = 0; i < g->n; i++) {
        const struct node *p = &g->node[i];
        struct tensor y;

        if (i == skip && !p->save)
            continue;
        if (i == skip) /* a dropped branch operator: the branch holds x itself */
            y = tensor_new(x.dims[0], x.dims[1], x.rank), memcpy(y.v, x.v, sizeof *x.v * x.n);
        else
            y = p->op->kind == OP_ANCHOR ? run_anchor(g, p->op, &x, in) : elementwise(g, p, &x, &h, in);
        interp_free(p->save ? &h : &x, 1);
        *(p->save ? &h : &x) = y;
    }
    interp_free(&h, 1);
    *ret = x;
    return 0;
}

/* ---- is it worth asking for? ---- */

static double rms(const struct tensor *t)
{
    double s = 0;

    for (size_t i = 0; i < t->n; i++)
        s += t->v[i] * t->v[i] / (double)t->n;
    return sqrt(s);
}

/* Would got be taken for want at a generous tolerance? */
static bool passes(const struct tensor *want, const struct tensor *got, double tolerance)
{
    double scale = rms(want);

    if (want->n != got->n)
        return false;
    for (size_t i = 0; i < want->n; i++)
        if (!(fabs(want->v[i] - got->v[i]) <= tolerance * (scale + fabs(want->v[i]))))
            return false;
    return true;
}

static bool all_finite(const struct tensor *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!isfinite(t->v[i]) || fabs(t->v[i]) > 1e12)
            return false;
    return true;
}

/* Inputs moved by a few units in the last place of fp32 must not move the result by more than a tolerance. */
static bool well_conditioned(const struct graph *g, struct tensor *in, const struct tensor *want)
{
    struct tensor moved;
    struct rng r;
    bool ok;

    rng_seed(&r, 4, 4);
    for (int i = 0; i < g->n_in; i++)
        for (size_t k = 0; k < in[i].n; k++)
            in[i].v[k] *= 1 + 2e-7 * (2 * rng_f64(&r) - 1);
    interp_run(g, in, -1, &moved);
    ok = passes(want, &moved, 2e-5);
    interp_free(&moved, 1);
    return ok;
}

#define BATTERY_TOLERANCE 1e-2

static bool judge(enum trivial k, const double *got, void *ctx)
{
    const struct tensor *want = ctx;
    struct tensor t = *want;

    (void)k;
    t.v = (double *)got;
    return passes(want, &t, BATTERY_TOLERANCE);
}

struct null_run {
    struct battery trivial;
    bool dropped[GRAPH_NODES]; /* still passing without this node in every regime so far */
};

static void run_battery(const struct graph *g, const struct tensor *in, struct tensor *want, struct null_run *b)
{
    struct trivial_case c = {want->v, want->n, in[0].n == want->n ? in[0].v : NULL, NULL};
    struct tensor t;

    battery_run(&b->trivial, &c, judge, want);
    for (int i = 0; i < g->n; i++) {
        if (!b->dropped[i] || interp_run(g, in, i, &t) < 0) {
            b->dropped[i] = false;
            continue;
        }
        b->dropped[i] = passes(want, &t, BATTERY_TOLERANCE);
        interp_free(&t, 1);
    }
}

static bool refuse(char why[64], const char *reason, const char *name)
{
    if (why)
        snprintf(why, 64, "%s%s", reason, name);
    return false;
}

static bool battery_verdict(const struct graph *g, const struct null_run *b, char why[64])
{
    bool zeros = battery_passed(&b->trivial, TRIVIAL_ZEROS), input = battery_passed(&b->trivial, TRIVIAL_INPUT);

    if (zeros || input || battery_passed(&b->trivial, TRIVIAL_ONES) || battery_passed(&b->trivial, TRIVIAL_CONSTANT))
        return refuse(why, zeros ? "zeros pass" : input ? "the input passes" : "a constant passes", "");
    for (int i = 0; i < g->n; i++)
        if (b->dropped[i])
            return refuse(why, "passes without ", g->node[i].op->name);
    return true;
}

bool interp_worthwhile(const struct graph *g, char why[64])
{
    struct null_run b = {0};
    struct tensor in[GRAPH_INPUTS], want;
    bool finite = true, stable = true;
    struct rng r;

    memset(b.dropped, 1, sizeof b.dropped);
    rng_seed(&r, graph_hash(g), 1);
    for (int regime = 0; regime < N_REGIMES && finite && stable; regime++) {
        interp_inputs(g, (enum regime)regime, &r, in);
        interp_run(g, in, -1, &want);
        finite = all_finite(&want);
        if (finite) {
            run_battery(g, in, &want, &b);
            stable = well_conditioned(g, in, &want);
        }
        interp_free(&want, 1);
        interp_free(in, g->n_in);
    }
    if (!finite || !stable)
        return refuse(why, finite ? "ill conditioned" : "not finite", "");
    return battery_verdict(g, &b, why);
}
