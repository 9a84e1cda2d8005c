/* worth.c - see worth.h. */
#include "synth/worth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { REGIMES = 3 };

static double draw(struct rng *r, int regime)
{
    return regime == 0 ? rng_normal(r) : regime == 1 ? rng_f64(r) : rng_normal(r) * 50;
}

static int draw_leaves(const struct dag *g, struct rng *r, int regime, double *leaf[])
{
    int n = 0;

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *v = &g->value[i];
        int64_t m = tdesc_numel(&v->t);
        int below = dag_bound(g, i);
        if (v->kind == VALUE_NODE)
            continue;
        leaf[n] = xcalloc((size_t)m + 1, sizeof(double));
        for (int64_t k = 0; k < m; k++)
            leaf[n][k] = v->t.dtype == DT_I64     ? (double)rng_below(r, below ? (uint64_t)below : 20)
                         : v->kind == VALUE_PARAM ? rng_normal(r) * 0.2
                                                  : draw(r, regime);
        n++;
    }
    return n;
}

struct spread {
    double largest, lo, hi;
    bool finite;
};

static struct spread spread_of(const double *y, int64_t n)
{
    struct spread s = {0, INFINITY, -INFINITY, true};

    for (int64_t i = 0; i < n; i++) {
        s.finite = s.finite && isfinite(y[i]);
        s.largest = fmax(s.largest, fabs(y[i]));
        s.lo = fmin(s.lo, y[i]), s.hi = fmax(s.hi, y[i]);
    }
    return s;
}

/* What a judge may let pass, as a share of the largest value. */
static double tolerance(const struct dag *g)
{
    bool half = false;

    for (int i = 0; i < g->n_values; i++)
        half |= g->value[i].t.dtype == DT_F16 || g->value[i].t.dtype == DT_BF16;
    return half ? 6e-2 : 1e-2;
}

static bool may_be_dropped(const struct dag *g, double *const leaf[], const double *y, double most, int node)
{
    const struct call *c = &g->node[node].c;
    int64_t n = tdesc_numel(&g->value[dag_result(g)].t);
    bool same = tdesc_numel(&c->in[0]) == tdesc_numel(&c->out);
    double *z;

    if (!same)
        return false;
    z = dag_eval_without(g, (const double *const *)leaf, node);
    for (int64_t i = 0; i < n && same; i++)
        same = fabs(z[i] - y[i]) <= most;
    free(z);
    return same;
}

static bool an_input_passes(const struct dag *g, double *const leaf[], const double *y, double largest)
{
    const struct tdesc *t = &g->value[dag_result(g)].t;
    int64_t n = tdesc_numel(t);

    for (int i = 0, k = 0; i < g->n_values; i++) {
        bool same = g->value[i].kind == VALUE_INPUT && tdesc_same_shape(&g->value[i].t, t);
        if (g->value[i].kind == VALUE_NODE)
            continue;
        for (int64_t j = 0; j < n && same; j++)
            same = fabs(leaf[k][j] - y[j]) <= tolerance(g) * largest;
        if (same)
            return true;
        k++;
    }
    return false;
}

/* Views and copies: a judge lets them be done without a kernel of one's own, and so refuses such a task. */
static bool is_plumbing(const struct dag *g)
{
    static const char *const rows[] = {"permute", "transpose", "narrow", "cat", "pad", "pixel_shuffle"};

    for (int i = 0; i < g->n_nodes; i++) {
        bool moves = false;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            moves |= !strcmp(g->node[i].c.op->name, rows[k]);
        if (!moves)
            return false;
    }
    return true;
}

const char *worth_reason(const struct dag *g, struct rng *r)
{
    int64_t n = tdesc_numel(&g->value[dag_result(g)].t);
    bool zeros = true, constant = true, input = true, idle[DAG_NODES], any = false;
    double lo = INFINITY, hi = -INFINITY;

    if (is_plumbing(g))
        return "plumbing passes";
    for (int i = 0; i < g->n_nodes; i++)
        idle[i] = true;
    for (int regime = 0; regime < REGIMES; regime++) {
        double *leaf[DAG_VALUES], *y;
        int leaves = draw_leaves(g, r, regime, leaf);
        struct spread s;
        y = dag_eval(g, (const double *const *)leaf);
        s = spread_of(y, n);
        lo = fmin(lo, s.lo), hi = fmax(hi, s.hi);
        zeros = zeros && s.largest < 1e-2;
        constant = constant && hi - lo <= tolerance(g) * s.largest;
        input = input && an_input_passes(g, leaf, y, s.largest);
        for (int i = 0; i < g->n_nodes && s.finite; i++)
            idle[i] = idle[i] && may_be_dropped(g, leaf, y, tolerance(g) / 10 * s.largest, i);
        free(y);
        for (int i = 0; i < leaves; i++)
            free(leaf[i]);
        if (!s.finite)
            return "not finite";
    }
    for (int i = 0; i < g->n_nodes; i++)
        any |= idle[i];
    return zeros      ? "zeros pass"
           : constant ? "a constant passes"
           : input    ? "an input passes"
           : any      ? "an operator may be dropped"
                      : NULL;
}
