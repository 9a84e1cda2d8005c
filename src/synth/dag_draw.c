/* dag_draw.c - see dag_draw.h. */
#include "synth/dag_draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define WEIGHTED 8192
#define WEIGHT_STEPS 4 /* copies of a row of weight 1, where weights are given: the least weight is a quarter */

/* Rows by rank of the operand and whether it is int64, repeated by weight. */
struct dag_table {
    const struct opdef *row[TENSOR_RANK][2][WEIGHTED];
    int n[TENSOR_RANK][2];
    const struct opdef *clamp;
};

static bool dag_draw_is_anchor(const struct opdef *op)
{
    return op->class != NEST_MAP && op->class != NEST_REDUCE && op->class != NEST_ROW;
}

/* Families with many rows are not drawn more often for it. */
static int dag_draw_weight_of(const struct opdef *op, int rows_of_family)
{
    int w = op->class == NEST_MAP ? 60 : dag_draw_is_anchor(op) ? 40 : 30;

    w = w / (rows_of_family ? rows_of_family : 1);
    return w ? w : 1;
}

/* How many of n operators are of that family. */
static int dag_draw_count_family(const struct opdef *const *row, int n, const char *family)
{
    int k = 0;

    for (int i = 0; i < n; i++)
        k += !strcmp(row[i]->family, family);
    return k;
}

/* Adds an operator 'weight' times to the tables of the ranks and types that it takes. */
static void dag_draw_add_row(struct dag_table *t, const struct opdef *op, int weight)
{
    for (int rank = 0; rank < TENSOR_RANK; rank++)
        for (int ints = 0; ints < 2; ints++)
            for (int i = 0; i < weight && op->ranks >> rank & 1 && (!ints || op->takes_ints); i++)
                if (t->n[rank][ints] < WEIGHTED)
                    t->row[rank][ints][t->n[rank][ints]++] = op;
}

static int dag_draw_copies_of(const struct opdef *op, int weight, const json_t *weights)
{
    int n = weights ? (int)lround(WEIGHT_STEPS * weight * json_f64(weights, op->family, 1)) : weight;

    return n > 0 ? n : 1;
}

struct dag_table *dag_table_new(const uint8_t *allowed)
{
    return dag_table_weighted(allowed, NULL);
}

struct dag_table *dag_table_weighted(const uint8_t *allowed, const json_t *weights)
{
    struct dag_table *t = xcalloc(1, sizeof *t);
    int n;
    const struct opdef *const *row = op_rows(&n);

    for (int i = 0; i < n; i++)
        if (!allowed || allowed[i])
            dag_draw_add_row(t, row[i],
                             dag_draw_copies_of(row[i],
                                                dag_draw_weight_of(row[i],
                                                                   dag_draw_count_family(row, n, row[i]->family)),
                                                                   weights));
    t->clamp = op_find_row("clamp");
    return t;
}

void dag_table_free(struct dag_table *t)
{
    free(t);
}

/* ---- intervals ---- */

static double dag_draw_largest(struct op_interval x)
{
    return fmax(fabs(x.lo), fabs(x.hi));
}

/* The interval of a monotone function's values. */
static struct op_interval dag_draw_image(const struct op_call *c, struct op_interval x)
{
    double a[OP_INPUTS] = {x.lo}, b[OP_INPUTS] = {x.hi}, p, q;

    p = c->op->f(a, c), q = c->op->f(b, c);
    return p < q ? (struct op_interval){p, q} : (struct op_interval){q, p};
}

/* Bounds of a result's values where the operator has no rule of its own, from the inputs' largest. */
static struct op_interval dag_draw_free_range(const struct dag *g, const struct op_call *c, const int16_t in[])
{
    double m = dag_draw_largest(g->value[in[0]].range), k;

    if (c->op->class == NEST_CONTRACT) {
        double w = c->n_in > 1 && g->value[in[1]].kind == VALUE_PARAM ? 0.2 : c->n_in > 1
            ? dag_draw_largest(g->value[in[1]].range) : 1;
        k = (double)tdesc_numel(&c->in[1]) / (double)(c->in[1].d[0] > 0 ? c->in[1].d[0] : 1);
        m = m * w * sqrt(k < 1 ? 1 : k) * 2;
    } else if (c->op->class == NEST_MAP) {
        for (int i = 1; i < c->n_in; i++)
            m = c->op->commutes ? fmax(m + dag_draw_largest(g->value[in[i]].range),
                                       m * dag_draw_largest(g->value[in[i]].range))
                                : m * fmax(1, dag_draw_largest(g->value[in[i]].range)) +
                                    dag_draw_largest(g->value[in[i]].range);
        m = fmax(m * m, 2 * m);
    } else {
        k = (double)tdesc_numel(&c->in[0]) / (double)(tdesc_numel(&c->out) > 0 ? tdesc_numel(&c->out) : 1);
        m = m * (c->op->class == NEST_SCAN ? c->in[0].d[c->in[0].rank - 1] : k < 1 ? 1 : k);
    }
    return (struct op_interval){-m, m};
}

/* Bounds of a call's result, by the operator's rule. */
static struct op_interval dag_draw_range_of(const struct dag *g, const struct op_call *c, const int16_t in[])
{
    struct op_interval r = g->value[in[0]].range;

    switch (c->op->range) {
    case RANGE_UNIT: return (struct op_interval){-1, 1};
    case RANGE_POSITIVE_UNIT: return (struct op_interval){0, 1};
    case RANGE_INDEX: return (struct op_interval){0, (double)tdesc_numel(&c->in[0])};
    case RANGE_MONOTONE: return c->op->f ? dag_draw_image(c, r) : r;
    case RANGE_SAME:
        for (int i = 1; i < c->n_in; i++)
            if (!c->below[i])
                r.lo = fmin(r.lo, g->value[in[i]].range.lo), r.hi = fmax(r.hi, g->value[in[i]].range.hi);
        return (struct op_interval){fmin(r.lo, 0), fmax(r.hi, 0)};
    case RANGE_FREE: break;
    }
    return dag_draw_free_range(g, c, in);
}

static double dag_draw_dtype_limit(int dtype)
{
    return dtype == DT_F16 ? 3e4 : dtype == DT_I64 ? 1e12 : 1e12;
}

static bool dag_draw_in_domain(const struct opdef *op, struct op_interval r)
{
    return op->domain.lo >= op->domain.hi || (r.lo >= op->domain.lo && r.hi <= op->domain.hi);
}

/* ---- growing ---- */

struct growth {
    const struct dag_table *t;
    struct rng *r;
    const struct dag_limits *l;
    struct dag *g;
    int anchors;
};

/* A live value of this very shape, or -1. */
static int dag_draw_live_like(struct growth *w, const struct tdesc *t, int not)
{
    int n = w->g->n_values, at = (int)draw_below(w->r, (uint64_t)n);

    for (int i = 0; i < n; i++) {
        const struct dag_value *v = &w->g->value[(at + i) % n];
        if ((at + i) % n != not && v->kind != VALUE_PARAM && v->t.dtype == t->dtype && tdesc_same_shape(&v->t, t))
            return (at + i) % n;
    }
    return -1;
}

/* Inputs of the graph; counted only where it is nearly full. */
static int dag_draw_inputs_of(const struct dag *g)
{
    int n = 0;

    for (int i = 0; g->n_values >= DAG_INPUTS - OP_INPUTS && i < g->n_values; i++)
        n += g->value[i].kind == VALUE_INPUT;
    return n;
}

/* How many ways the operator can be written. */
static int dag_draw_spellings(const struct opdef *op)
{
    int n = 0;

    while (n < OP_SPELLINGS && op->spell[n].call)
        n++;
    return n;
}

/* Adds the call on value v; false if there is no room, or values would grow too large. */
static bool dag_draw_place(struct growth *w, const struct op_call *c, int v)
{
    int in[OP_INPUTS], fresh = 0, n;
    struct dag *g = w->g;
    uint8_t spelling = (uint8_t)draw_below(w->r, (uint64_t)dag_draw_spellings(c->op));
    bool module = c->op->n_params && c->op->spell[spelling].init;

    in[0] = v;
    for (int i = 1; i < c->n_in; i++) {
        in[i] = c->below[i] || module ? -1 : draw_below(w->r, 3) ? dag_draw_live_like(w, &c->in[i], v) : -1;
        fresh += in[i] < 0 && !module;
    }
    if (dag_draw_inputs_of(g) + fresh > DAG_INPUTS - 1)
        return false;
    n = dag_add(g, c, in, spelling);
    if (n < 0)
        return false;
    g->value[g->node[n].out].range = dag_draw_range_of(g, c, g->node[n].in);
    if (dag_draw_largest(g->value[g->node[n].out].range) <= dag_draw_dtype_limit(c->out.dtype))
        return true;
    dag_pop(g);
    return false;
}

/* Puts a clamp in front of *v, so that the operator's domain holds; *v becomes its result. False: no room. */
static bool dag_draw_guard(struct growth *w, const struct opdef *op, int *v)
{
    struct op_call c = {.op = w->t->clamp, .n_in = 1, .in = {w->g->value[*v].t}};

    if (!c.op || w->g->n_nodes + 2 > w->l->max_ops || c.in[0].dtype == DT_I64)
        return false;
    c.f[0] = op->domain.lo, c.f[1] = op->domain.hi;
    if (c.in[0].dtype == DT_F16) /* PyTorch refuses a bound that the tensor's type lacks */
        c.f[0] = fmax(c.f[0], -6e4), c.f[1] = fmin(c.f[1], 6e4);
    c.out = c.in[0];
    if (!dag_draw_place(w, &c, *v))
        return false;
    *v = w->g->node[w->g->n_nodes - 1].out;
    w->g->value[*v].range = op->domain;
    return true;
}

/* Adds one drawn operator to the graph. False: this draw did not fit; try again. */
static bool dag_draw_step(struct growth *w)
{
    struct dag *g = w->g;
    int v = draw_below(w->r, 6) ? dag_result(g) : (int)draw_below(w->r, (uint64_t)g->n_values), ints, rank;
    const struct opdef *op;
    struct op_call c;

    if (g->value[v].kind == VALUE_PARAM)
        v = dag_result(g);
    ints = g->value[v].t.dtype == DT_I64, rank = g->value[v].t.rank;
    if (!w->t->n[rank][ints])
        return false;
    op = w->t->row[rank][ints][draw_below(w->r, (uint64_t)w->t->n[rank][ints])];
    if ((dag_draw_is_anchor(op) && w->anchors >= w->l->anchors) ||
        !op_draw_on(op, w->r, &w->l->l, &g->value[v].t, &c) ||
        c.in[0].d[0] != g->value[v].t.d[0] || !tdesc_same_shape(&c.in[0], &g->value[v].t))
        return false;
    if (!dag_draw_in_domain(op, g->value[v].range) && !dag_draw_guard(w, op, &v))
        return false;
    if (!dag_draw_place(w, &c, v))
        return false;
    w->anchors += dag_draw_is_anchor(op);
    return true;
}

/* Draws the graph's first operator and inputs. False: this draw did not fit. */
static bool dag_draw_begin(struct growth *w)
{
    int rank = 1 + (int)draw_below(w->r, 5), n = w->t->n[rank][0];
    const struct opdef *op = n ? w->t->row[rank][0][draw_below(w->r, (uint64_t)n)] : NULL;
    struct tdesc x = {.dtype = DT_F32};
    struct op_call c;
    int in;

    if (!op)
        return false;
    while (!(w->l->l.dtypes >> x.dtype & 1))
        x.dtype = (uint8_t)draw_below(w->r, DT_I64);
    if (x.dtype == DT_F32 && w->l->l.dtypes & (1u << DT_F16 | 1u << DT_BF16) && !op->no_halves)
        do
            x.dtype = (uint8_t)draw_below(w->r, DT_I64);
        while (!(w->l->l.dtypes >> x.dtype & 1));
    draw_shape(w->r, rank, w->l->l.max_numel, &x);
    if (!op_draw_on(op, w->r, &w->l->l, &x, &c))
        return false;
    w->g->n_values = w->g->n_nodes = 0;
    in = dag_add_input(w->g, &c.in[0]);
    if (!dag_draw_in_domain(op, w->g->value[in].range) && !dag_draw_guard(w, op, &in))
        return false;
    if (!dag_draw_place(w, &c, in))
        return false;
    w->anchors = dag_draw_is_anchor(op);
    return true;
}

void dag_draw(const struct dag_table *t, struct rng *r, const struct dag_limits *l, struct dag *ret)
{
    struct growth w = {t, r, l, ret, 0};
    int want = l->min_ops + (int)draw_below(r, (uint64_t)(l->max_ops - l->min_ops + 1));

    while (!dag_draw_begin(&w))
        ;
    for (int tries = 0; ret->n_nodes < want && tries < 4 * want + 8; tries++)
        dag_draw_step(&w);
    dag_prune(ret);
}
