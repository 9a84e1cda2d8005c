/* gen.c - see gen.h. A graph is drawn front to back: prologue, anchor, epilogue; sizes and constants come last, so
 * that the same graph can be drawn again with others. */
#include "synth/gen.h"

#include <math.h>
#include <string.h>

struct draw {
    struct rng *r;
    const struct gen_options *o;
    struct graph *g;
    double range; /* bound on |x| here */
    double range_h;
    bool have_h;
};

static bool chance(struct draw *d, double p)
{
    return rng_f64(d->r) < p;
}

static int between(struct draw *d, int lo, int hi)
{
    return lo + (int)rng_below(d->r, (uint64_t)(hi - lo + 1));
}

/* The bound of op's result when |x| <= bx and |y| <= by: the function on a grid that holds the ends and zero. */
static double bound_after(const struct op *op, double bx, double by, double c)
{
    double worst = 0;

    for (int i = -8; i <= 8; i++)
        for (int k = op->kind == OP_BINARY ? -8 : 8; k <= 8; k += 4) {
            double f = fabs(op->f(bx * i / 8, by * k / 8, c));
            worst = f > worst ? f : worst;
        }
    return isfinite(worst) ? worst : 1e300;
}

static struct node *push(struct draw *d, const struct op *op, int operand, bool save)
{
    struct node *p = &d->g->node[d->g->n++];

    *p = (struct node){op, operand, save, 0.5};
    return p;
}

static bool usable(const struct draw *d, const struct op *op, enum op_kind kind)
{
    if (op->kind != kind || (d->o->core_only && !(op->flags & OP_CORE)) || op->flags & OP_NEAR_ONE)
        return false;
    return op->max_in >= d->range && (kind != OP_BINARY || op->max_in >= GEN_RANGE);
}

/* A uniform draw among the operators of a kind that are usable here; NULL if there are none. */
static const struct op *pick(struct draw *d, enum op_kind kind)
{
    const struct op *found = NULL;
    uint64_t seen = 0;

    for (size_t i = 0; i < n_ops; i++)
        if (usable(d, &ops[i], kind) && rng_below(d->r, ++seen) == 0)
            found = &ops[i];
    return found;
}

/* One elementwise operator without operand. The same operator never follows itself. */
static void push_unary(struct draw *d, bool save)
{
    const struct op *op = NULL, *prev = d->g->n ? d->g->node[d->g->n - 1].op : NULL;

    for (int tries = 0; tries < 20 && (!op || op == prev); tries++)
        op = pick(d, chance(d, 0.35) ? OP_SCALAR : OP_UNARY);
    if (!op)
        op = op_find("tanh");
    push(d, op, OPERAND_NONE, save);
    if (save)
        d->range_h = bound_after(op, d->range, 0, 4), d->have_h = true;
    else
        d->range = bound_after(op, d->range, 0, 4);
}

static void push_binary(struct draw *d, int operand)
{
    const struct op *op = pick(d, OP_BINARY);
    double by = operand == OPERAND_H ? d->range_h : GEN_RANGE;

    if (!op || by > op->max_in)
        op = op_find("add");
    push(d, op, operand, false);
    d->range = bound_after(op, d->range, by, 0.5);
}

static int add_input(struct draw *d, enum role role)
{
    d->g->input[d->g->n_in] = role;
    return d->g->n_in++;
}

/* A run of n elementwise operators; with branch, one value is saved and joined back before the end. */
static void push_run(struct draw *d, int n, bool branch)
{
    d->have_h = false;
    if (branch && n >= 2) {
        push_unary(d, true);
        for (int i = 0; i < n - 2; i++)
            push_unary(d, false);
        push_binary(d, OPERAND_H);
        return;
    }
    for (int i = 0; i < n; i++)
        push_unary(d, false);
}

static void push_anchor(struct draw *d, const struct op *op)
{
    if (op->flags & OP_NEEDS_NEAR) {
        push(d, op_find("near_one"), OPERAND_NONE, false);
        d->range = 1.01;
    }
    d->g->anchor = d->g->n;
    push(d, op, OPERAND_NONE, false);
    d->range = fmin(d->range * 4096, 1e7); /* sums; the epilogue has to take them */
    if (op->anchor == ANCHOR_SOFTMAX || op->anchor == ANCHOR_NORM || op->anchor == ANCHOR_NORM2)
        d->range = GEN_RANGE * 4;
}

static const struct op *pick_anchor(struct draw *d, const char *family)
{
    const struct op *found = NULL;
    uint64_t seen = 0;

    for (size_t i = 0; i < n_ops; i++)
        if (ops[i].kind == OP_ANCHOR && !strcmp(ops[i].family, family) &&
            (!d->o->core_only || ops[i].flags & OP_CORE) && rng_below(d->r, ++seen) == 0)
            found = &ops[i];
    return found;
}

/* ---- families ---- */

static void draw_elementwise(struct draw *d, const char *family)
{
    bool broadcast = !strcmp(family, "broadcast");

    if (!strcmp(family, "unary")) {
        push_unary(d, false);
    } else if (!strcmp(family, "chain")) {
        int n = between(d, 2, d->o->max_ops);
        push_run(d, n, chance(d, 0.25));
        if (d->g->n < d->o->max_ops && chance(d, 0.3))
            push_binary(d, add_input(d, ROLE_FULL));
    } else { /* binary, broadcast: an operand, perhaps with something before and behind */
        push_run(d, between(d, 0, 1), false);
        push_binary(d, add_input(d, !broadcast ? ROLE_FULL : chance(d, 0.6) ? ROLE_ROW : ROLE_COL));
        push_run(d, between(d, 0, 1), false);
    }
}

static void draw_anchored(struct draw *d, const char *family)
{
    const struct op *op = pick_anchor(d, family);
    bool product = op->anchor == ANCHOR_MATMUL || op->anchor == ANCHOR_LINEAR;
    int around = between(d, 0, d->o->max_ops - 1), before = product ? 0 : between(d, 0, around);
    bool row_operand = op->anchor == ANCHOR_MATMUL || op->anchor == ANCHOR_NORM || op->anchor == ANCHOR_NORM2 ||
                       op->anchor == ANCHOR_SOFTMAX || op->anchor == ANCHOR_SCAN;

    if (product)
        d->g->input[0] = op->anchor == ANCHOR_MATMUL ? ROLE_A : ROLE_FULL;
    if (op->anchor == ANCHOR_LINEAR)
        d->g->input[0] = ROLE_A, add_input(d, ROLE_WEIGHT), add_input(d, ROLE_BIAS);
    else if (op->anchor == ANCHOR_MATMUL)
        add_input(d, ROLE_B);
    push_run(d, before, false);
    while (d->range > op->max_in && !(op->flags & OP_NEEDS_NEAR)) { /* bring a wild prologue back into bounds */
        d->g->node[d->g->n - 1].op = op_find("tanh");
        d->range = 1;
    }
    push_anchor(d, op);
    if (row_operand && chance(d, 0.3))
        push_binary(d, add_input(d, ROLE_ROW));
    push_run(d, around - before, false);
}

/* ---- sizes and constants ---- */

static int pick_int(struct draw *d, const int *v, int n)
{
    return v[rng_below(d->r, (uint64_t)n)];
}

static double draw_constant(struct draw *d)
{
    static const double nice[] = {0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.75, 0.8, 1.5, 2.0, 2.5, 3.0};

    if (d->o->nice_numbers)
        return nice[rng_below(d->r, sizeof nice / sizeof *nice)];
    return (double)between(d, 5, 400) / 100 + (chance(d, 0.5) ? 0.005 : 0);
}

static double draw_constant_for(struct draw *d, const struct op *op)
{
    double c = draw_constant(d);

    while (!strcmp(op->name, "leaky_relu") && c >= 0.9) /* a slope, not a gain */
        c = draw_constant(d);
    while (fabs(c - 1) < 0.05) /* times one is no operator */
        c = draw_constant(d);
    return c;
}

static void draw_sizes(struct draw *d)
{
    static const int rows[] = {3, 5, 6, 7, 9, 11, 12, 13, 16, 17, 21, 33, 40};
    static const int cols[] = {17, 31, 32, 33, 37, 50, 63, 64, 65, 70, 100, 127, 128, 130, 200, 257, 300};
    static const int sides[] = {7, 9, 13, 16, 17, 21, 25, 31, 32, 33, 35, 40};
    struct graph *g = d->g;
    enum anchor a = graph_anchor(g);
    int limit = d->o->max_elements;

#define DRAW(list) pick_int(d, list, (int)(sizeof list / sizeof *list))
    g->K = 1;
    do {
        if (a == ANCHOR_MATMUL || a == ANCHOR_LINEAR)
            g->M = DRAW(sides), g->N = DRAW(sides), g->K = DRAW(sides);
        else if (a == ANCHOR_COPY || a == ANCHOR_COL_REDUCE)
            g->M = DRAW(sides), g->N = DRAW(cols);
        else
            g->M = DRAW(rows), g->N = DRAW(cols);
        /* square and whole-block sizes hide index bugs: M, N, K differ, and few tensors end on a block's end */
    } while (g->M * g->N > limit || g->M * g->K > limit || g->N * g->K > limit || g->M == g->N || g->M == g->K ||
             g->N == g->K || (g->K == 1 && g->M * g->N % 64 == 0 && !chance(d, 0.15)));
#undef DRAW
}

void gen_resize(struct rng *r, const struct gen_options *o, struct graph *g)
{
    struct draw d = {.r = r, .o = o, .g = g};

    draw_sizes(&d);
    for (int i = 0; i < g->n; i++)
        if (g->node[i].op->kind == OP_SCALAR)
            g->node[i].c = draw_constant_for(&d, g->node[i].op);
}

void gen_graph(struct rng *r, int family, const struct gen_options *o, struct graph *ret)
{
    struct graph g = {.anchor = -1, .n_in = 1, .family = families[family]};
    struct draw d = {.r = r, .o = o, .g = &g, .range = GEN_RANGE};

    if (family < family_index("rowreduce"))
        draw_elementwise(&d, families[family]);
    else
        draw_anchored(&d, families[family]);
    gen_resize(r, o, &g);
    *ret = g;
}
