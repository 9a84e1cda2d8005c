/* triviality.c - see triviality.h. */
#include "synth/triviality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { REGIMES = 3 };

static double triviality_draw(struct rng *r, int regime)
{
    return regime == 0 ? rng_normal(r) : regime == 1 ? rng_f64(r) : rng_normal(r) * 50;
}

/* Draws the graph's inputs and parameters of that distribution; returns how many. The caller frees. */
static int triviality_draw_leaves(const struct dag *g, struct rng *r, int regime, double *leaf[])
{
    int n = 0;

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *v = &g->value[i];
        int64_t m = tdesc_numel(&v->t);
        int below = dag_bound(g, i);
        struct op_interval d = dag_domain(g, i);
        if (v->kind == VALUE_NODE)
            continue;
        leaf[n] = xcalloc((size_t)m + 1, sizeof(double));
        for (int64_t k = 0; k < m; k++)
            leaf[n][k] = v->t.dtype == DT_I64     ? (double)rng_below(r, below ? (uint64_t)below : 20)
                         : v->kind == VALUE_PARAM ? rng_normal(r) * 0.2
                         : d.lo < d.hi            ? d.lo + (d.hi - d.lo) * rng_f64(r)
                                                  : triviality_draw(r, regime);
        n++;
    }
    return n;
}

struct spread {
    double largest, lo, hi;
    bool finite;
};

/* Extremes of y, and whether all of it is finite and equal. */
static struct spread triviality_spread_of(const double *y, int64_t n)
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
static double triviality_tolerance(const struct dag *g)
{
    bool half = false;

    for (int i = 0; i < g->n_values; i++)
        half |= g->value[i].t.dtype == DT_F16 || g->value[i].t.dtype == DT_BF16;
    return half ? 6e-2 : 1e-2;
}

/* v: every value; the result is what y is. */
static bool triviality_may_be_dropped(const struct dag *g, double *const v[], double most, int node)
{
    const struct op_call *c = &g->node[node].c;
    int64_t n = tdesc_numel(&g->value[dag_result(g)].t);
    bool same = tdesc_numel(&c->in[0]) == tdesc_numel(&c->out);
    const double *y = v[dag_result(g)];
    double *z;

    if (!same)
        return false;
    z = dag_eval_with(g, v, node, NULL);
    for (int64_t i = 0; i < n && same; i++)
        same = fabs(z[i] - y[i]) <= most;
    free(z);
    return same;
}

/* True where returning an input would pass for the result y. */
static bool triviality_an_input_passes(const struct dag *g, double *const leaf[], const double *y, double largest)
{
    const struct tdesc *t = &g->value[dag_result(g)].t;
    int64_t n = tdesc_numel(t);

    for (int i = 0, k = 0; i < g->n_values; i++) {
        bool same = g->value[i].kind == VALUE_INPUT && tdesc_same_shape(&g->value[i].t, t);
        if (g->value[i].kind == VALUE_NODE)
            continue;
        for (int64_t j = 0; j < n && same; j++)
            same = fabs(leaf[k][j] - y[j]) <= triviality_tolerance(g) * largest;
        if (same)
            return true;
        k++;
    }
    return false;
}

/* Views and copies: a judge lets them be done without a kernel of one's own, and so refuses such a task. */
static bool triviality_is_movement(const struct dag *g)
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

const char *triviality_reason(const struct dag *g, struct rng *r)
{
    int64_t n = tdesc_numel(&g->value[dag_result(g)].t);
    bool zeros = true, constant = true, input = true, idle[DAG_NODES], any = false;
    double lo = INFINITY, hi = -INFINITY;

    if (triviality_is_movement(g))
        return "plumbing passes";
    for (int i = 0; i < g->n_nodes; i++)
        idle[i] = true;
    for (int regime = 0; regime < REGIMES; regime++) {
        double *leaf[DAG_VALUES], *v[DAG_VALUES], *y;
        int leaves = triviality_draw_leaves(g, r, regime, leaf);
        struct spread s;
        dag_eval_all(g, (const double *const *)leaf, v);
        y = v[dag_result(g)];
        s = triviality_spread_of(y, n);
        lo = fmin(lo, s.lo), hi = fmax(hi, s.hi);
        zeros = zeros && s.largest < 1e-2;
        constant = constant && hi - lo <= triviality_tolerance(g) * s.largest;
        input = input && triviality_an_input_passes(g, leaf, y, s.largest);
        for (int i = 0; i < g->n_nodes && s.finite; i++)
            idle[i] = idle[i] && triviality_may_be_dropped(g, v, triviality_tolerance(g) / 10 * s.largest, i);
        dag_values_free(g, v);
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

/* ---- mutants ---- */

/* Makes one edit at the first place that fits; returns the tree, changed (copied along the path) or as it was. Indices
 * of loads and the conditions that guard them stay: nothing may be read out of bounds. */
static struct ax *triviality_edit_first(struct arena *a, struct ax *x,
                                        struct ax *(*edit)(struct arena *, const struct ax *), bool *done)
{
    struct ax *y = x ? edit(a, x) : NULL;

    if (y)
        return *done = true, y;
    for (int i = x && x->kind == AX_COND; x && x->kind != AX_LOAD && i < x->n && !*done; i++) {
        struct ax *kid = triviality_edit_first(a, x->kid[i], edit, done);
        if (*done) {
            y = arena_alloc(a, sizeof *y);
            *y = *x;
            y->kid = arena_alloc(a, sizeof *y->kid * (size_t)x->n);
            memcpy(y->kid, x->kid, sizeof *y->kid * (size_t)x->n);
            y->kid[i] = kid;
            return y;
        }
    }
    return x;
}

static struct ax *triviality_edit_sign(struct arena *a, const struct ax *x)
{
    if (x->kind != AX_BINARY || (strcmp(x->s, "+") && strcmp(x->s, "-")))
        return NULL;
    return ax_bin(a, x->s[0] == '+' ? "-" : "+", x->kid[0], x->kid[1]);
}

/* x times 1.5; NULL if it is no number but 0. */
static struct ax *triviality_edit_constant(struct arena *a, const struct ax *x)
{
    struct ax *y;

    if (x->kind != AX_FLOAT || x->f == 0)
        return NULL;
    y = arena_alloc(a, sizeof *y);
    *y = *x;
    y->f *= 1.5;
    return y;
}

/* The neighbour in the last dimension, where there is one. */
static struct ax *triviality_edit_index(struct arena *a, const struct ax *x)
{
    struct ax *y, *more, *test, *choice;
    int last = x->n - 1;

    if (x->kind != AX_LOAD || last < 0 || x->ext[last].n < 2)
        return NULL;
    more = ax_bin(a, "+", x->kid[last], ax_int(a, 1));
    test = ax_bin(a, "<", more, ax_int(a, x->ext[last].n));
    choice = ax_new(a, AX_COND, NULL, 3);
    choice->kid[0] = test, choice->kid[1] = more, choice->kid[2] = x->kid[last];
    y = arena_alloc(a, sizeof *y);
    *y = *x;
    y->kid = arena_alloc(a, sizeof *y->kid * (size_t)x->n);
    memcpy(y->kid, x->kid, sizeof *y->kid * (size_t)x->n);
    y->kid[last] = choice;
    return y;
}

/* x where it is positive, else 0. */
static struct ax *triviality_clipped(struct arena *a, struct ax *x)
{
    struct ax *zero = ax_new(a, AX_FLOAT, NULL, 0), *choice = ax_new(a, AX_COND, NULL, 3);

    choice->kid[0] = ax_bin(a, ">", x, zero), choice->kid[1] = x, choice->kid[2] = zero;
    return choice;
}

enum bug { BUG_SHORT, BUG_IDENTITY, BUG_COMBINE, BUG_FIN, BUG_SIGN, BUG_CONSTANT, BUG_INDEX, BUG_TAIL, N_BUGS };

/* Edits the first place where edit gives something; false: none. */
static bool triviality_edit_anywhere(struct nest *k, struct ax *(*edit)(struct arena *, const struct ax *))
{
    bool done = false;

    for (int i = 0; i < k->n_stats && !done && k->class != NEST_CONTRACT && k->class != NEST_ATTEND; i++)
        k->stat[i].elem = triviality_edit_first(k->arena, k->stat[i].elem, edit, &done);
    if (!done)
        k->out = triviality_edit_first(k->arena, k->out, edit, &done);
    return done;
}

/* Shortens the reduced dimension by one; false: there is none. */
static bool triviality_one_short(struct nest *k)
{
    int group = k->class == NEST_CONTRACT ? 3 : 1;

    if (k->class != NEST_REDUCE && k->class != NEST_WINDOW && k->class != NEST_CONTRACT)
        return false;
    for (int d = k->n_dims - 1; d >= 0; d--)
        if (k->dim[d].group == group && k->dim[d].n > 1)
            return k->dim[d].n--, true;
    return false;
}

/* False where the nest has no place for the bug. BUG_TAIL is a matter of the result. */
static bool triviality_put_bug(struct nest *k, enum bug bug)
{
    struct stat *s = &k->stat[0];
    bool sums = k->n_stats && k->class != NEST_ATTEND;

    switch (bug) {
    case BUG_SHORT: return triviality_one_short(k);
    case BUG_IDENTITY:
        if (!sums || (s->c != C_MAX && s->c != C_ARGMAX))
            return false;
        s->elem = triviality_clipped(k->arena, s->elem);
        return true;
    case BUG_COMBINE:
        if (!sums || (s->c != C_SUM && s->c != C_MAX))
            return false;
        s->c = s->c == C_SUM ? C_MAX : C_MIN;
        return true;
    case BUG_FIN:
        if (!sums || !s->fin)
            return false;
        s->fin = NULL;
        return true;
    case BUG_SIGN: return triviality_edit_anywhere(k, triviality_edit_sign);
    case BUG_CONSTANT: return triviality_edit_anywhere(k, triviality_edit_constant);
    case BUG_INDEX: return triviality_edit_anywhere(k, triviality_edit_index);
    case BUG_TAIL: return true;
    case N_BUGS: break;
    }
    return false;
}

/* True where the mutant's result z differs from the right one y by more than a tenth of the tolerance. */
static bool triviality_tells(const struct dag *g, const double *y, const double *z, int64_t n)
{
    struct spread s = triviality_spread_of(y, n);

    for (int64_t i = 0; i < n; i++)
        if (!(fabs(z[i] - y[i]) <= triviality_tolerance(g) / 10 * s.largest))
            return true;
    return false;
}

/* All values by regime; a regime is drawn when the ones before it have told nothing. */
struct triviality_leaves {
    double *v[REGIMES][DAG_VALUES];
    struct rng *r;
};

/* Draws the inputs of a distribution and their output, once. */
static void triviality_need_regime(const struct dag *g, struct triviality_leaves *l, int regime)
{
    double *leaf[DAG_VALUES];
    int n;

    if (l->v[regime][0])
        return;
    n = triviality_draw_leaves(g, l->r, regime, leaf);
    dag_eval_all(g, (const double *const *)leaf, l->v[regime]);
    for (int i = 0; i < n; i++)
        free(leaf[i]);
}

/* True where the bug in a node's nest changes the result by more than the tolerance, on some distribution. */
static bool triviality_is_killed(const struct dag *g, struct triviality_leaves *l, int node, const struct nest *k,
                                 enum bug bug)
{
    int last = dag_result(g);
    int64_t n = tdesc_numel(&g->value[last].t);
    bool dead = false;

    for (int r = 0; r < REGIMES && !dead; r++) {
        double *z;
        triviality_need_regime(g, l, r);
        if (bug == BUG_TAIL) {
            z = xcalloc((size_t)n, sizeof *z);
            memcpy(z, l->v[r][last], sizeof *z * (size_t)(n - 1));
        } else {
            z = dag_eval_with(g, l->v[r], node, k);
        }
        dead = triviality_tells(g, l->v[r][last], z, n);
        free(z);
    }
    return dead;
}

/* One bug in one node, if the node has a place for it. */
static void triviality_try_bug(const struct dag *g, struct triviality_leaves *l, int node, enum bug bug,
                               struct triviality_kill *ret)
{
    struct arena a = {0};
    struct nest k;

    op_lower(&g->node[node].c, &a, &k);
    if (triviality_put_bug(&k, bug)) {
        ret->mutants++;
        ret->killed += triviality_is_killed(g, l, node, &k, bug);
    }
    arena_free(&a);
}

struct triviality_kill triviality_kill_score(const struct dag *g, struct rng *r)
{
    struct triviality_kill k = {0};
    struct triviality_leaves l = {.r = r};
    int first = (int)rng_below(r, (uint64_t)g->n_nodes * N_BUGS);

    for (int i = 0; i < g->n_nodes * N_BUGS && k.mutants < TRIVIALITY_MUTANTS; i++) {
        int at = (first + i) % (g->n_nodes * N_BUGS);
        if (at % N_BUGS != BUG_TAIL || at / N_BUGS == g->n_nodes - 1)
            triviality_try_bug(g, &l, at / N_BUGS, (enum bug)(at % N_BUGS), &k);
    }
    for (int i = 0; i < REGIMES; i++)
        dag_values_free(g, l.v[i]);
    return k;
}
