/* graph.c - hash, split, shapes and text of operator graphs. */
#include "synth/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define MAX_VERTICES (GRAPH_NODES + GRAPH_INPUTS)
#define WL_ROUNDS 8
#define HOLD_OUT_ONE_IN 8

enum anchor graph_anchor(const struct graph *g)
{
    return g->anchor < 0 ? ANCHOR_NONE : g->node[g->anchor].op->anchor;
}

int graph_epilogue(const struct graph *g)
{
    return g->anchor < 0 ? g->n : g->anchor + 1;
}

/* ---- vertices and edges ---- */

struct dag {
    uint64_t label[MAX_VERTICES];
    int in[MAX_VERTICES][3], n_in[MAX_VERTICES];
    bool commutes[MAX_VERTICES];
    int n;
};

/* The extra inputs of an anchor: the second matrix, or weight and bias. */
static void add_anchor_inputs(struct dag *d, const struct graph *g, int v)
{
    for (int i = 1; i < g->n_in; i++)
        if (g->input[i] == ROLE_B || g->input[i] == ROLE_WEIGHT || g->input[i] == ROLE_BIAS)
            d->in[v][d->n_in[v]++] = i;
}

static void build_dag(const struct graph *g, struct dag *d)
{
    int x = 0, h = -1;

    memset(d, 0, sizeof *d);
    for (int i = 0; i < g->n_in; i++)
        d->label[d->n++] = hash64(&g->input[i], sizeof g->input[i], 11);
    for (int i = 0; i < g->n; i++) {
        const struct node *p = &g->node[i];
        int v = d->n++;

        d->label[v] = hash64(p->op->name, strlen(p->op->name), 7);
        d->in[v][d->n_in[v]++] = x;
        if (p->operand != OPERAND_NONE)
            d->in[v][d->n_in[v]++] = p->operand == OPERAND_H ? h : p->operand;
        if (p->op->kind == OP_ANCHOR)
            add_anchor_inputs(d, g, v);
        d->commutes[v] = p->op->flags & OP_COMMUTES;
        *(p->save ? &h : &x) = v;
    }
    d->label[x] ^= 0x5e5e5e5e5e5e5e5eull; /* the result */
}

static int order_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* One round: own colour, colours of the inputs in order (sorted if commutative), sorted colours of the consumers
 * together with the slot in which they consume. */
static uint64_t recolour(const struct dag *d, const uint64_t *colour, int v)
{
    uint64_t in[4] = {colour[v]}, out[3 * MAX_VERTICES];
    size_t n_out = 0;

    for (int k = 0; k < d->n_in[v]; k++)
        in[1 + k] = colour[d->in[v][k]];
    if (d->commutes[v])
        qsort(in + 1, (size_t)d->n_in[v], sizeof *in, order_u64);
    for (int u = 0; u < d->n; u++)
        for (int k = 0; k < d->n_in[u]; k++)
            if (d->in[u][k] == v)
                out[n_out++] = hash64(&colour[u], sizeof colour[u], d->commutes[u] ? 99 : (uint64_t)k);
    qsort(out, n_out, sizeof *out, order_u64);
    return hash64(out, n_out * sizeof *out, hash64(in, sizeof *in * (size_t)(1 + d->n_in[v]), 3));
}

uint64_t graph_hash(const struct graph *g)
{
    uint64_t colour[MAX_VERTICES], next[MAX_VERTICES];
    struct dag d;

    build_dag(g, &d);
    memcpy(colour, d.label, sizeof colour);
    for (int round = 0; round < WL_ROUNDS; round++) {
        for (int v = 0; v < d.n; v++)
            next[v] = recolour(&d, colour, v);
        memcpy(colour, next, sizeof colour);
    }
    qsort(colour, (size_t)d.n, sizeof *colour, order_u64);
    return hash64(colour, sizeof *colour * (size_t)d.n, 1);
}

bool graph_held_out(uint64_t hash)
{
    return hash64(&hash, sizeof hash, 2026) % HOLD_OUT_ONE_IN == 0;
}

/* ---- names, shapes, text ---- */

/* The name says how it broadcasts, so a reader of one line knows how to index it. */
char graph_input_name(const struct graph *g, int i)
{
    switch (g->input[i]) {
    case ROLE_ROW:
    case ROLE_BIAS: return 'b';
    case ROLE_COL: return 'c';
    case ROLE_WEIGHT: return 'w';
    case ROLE_FULL:
    case ROLE_A:
    case ROLE_B: break;
    }
    return "xyzu"[i];
}

void graph_input_dims(const struct graph *g, int i, int dims[2], int *rank)
{
    unsigned f = g->anchor < 0 ? 0 : g->node[g->anchor].op->flags;
    int a = g->M, b = g->N;

    *rank = 2;
    switch (g->input[i]) {
    case ROLE_FULL: break;
    case ROLE_ROW:
    case ROLE_BIAS: *rank = 1, a = g->N; break;
    case ROLE_COL: b = 1; break;
    case ROLE_A: a = f & OP_A_T ? g->K : g->M, b = f & OP_A_T ? g->M : g->K; break;
    case ROLE_B:
    case ROLE_WEIGHT: a = f & OP_B_T ? g->N : g->K, b = f & OP_B_T ? g->K : g->N; break;
    }
    dims[0] = a, dims[1] = b;
}

void graph_output_dims(const struct graph *g, int dims[2], int *rank)
{
    enum anchor a = graph_anchor(g);

    *rank = 2, dims[0] = g->M, dims[1] = g->N;
    if (a == ANCHOR_ROW_REDUCE || a == ANCHOR_COL_REDUCE)
        *rank = 1, dims[0] = a == ANCHOR_ROW_REDUCE ? g->M : g->N;
    else if (a == ANCHOR_FULL_REDUCE)
        *rank = 0;
    else if (a == ANCHOR_COPY && g->node[g->anchor].op->flags & OP_TRANSPOSES)
        dims[0] = g->N, dims[1] = g->M;
}

void graph_text(const struct graph *g, struct buf *out)
{
    static const char *const role_names[] = {"full", "row", "col", "a", "b", "weight", "bias"};

    for (int i = 0; i < g->n_in; i++)
        buf_addf(out, "%s%c:%s", i ? " " : "", graph_input_name(g, i), role_names[g->input[i]]);
    buf_adds(out, " |");
    for (int i = 0; i < g->n; i++) {
        const struct node *p = &g->node[i];

        buf_addf(out, " %s%s", p->save ? "h=" : "", p->op->name);
        if (p->op->kind == OP_SCALAR)
            buf_addf(out, "(%g)", p->c);
        else if (p->operand != OPERAND_NONE)
            buf_addf(out, "(%c)", p->operand == OPERAND_H ? 'h' : graph_input_name(g, p->operand));
    }
}
