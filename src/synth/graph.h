/* graph.h - an operator graph: a spine of operators on one running value x, an optional saved branch h that is joined
 * back, an optional anchor, and further input tensors.
 *
 *   x ─ prologue ─ anchor ─ epilogue ─> result        "h = torch.tanh(x)" ... "x = x * h" is a branch
 *
 * It is always a DAG with one result, and every node reaches it. Shapes and constants are attributes: the hash
 * ignores them. */
#ifndef MC_SYNTH_GRAPH_H
#define MC_SYNTH_GRAPH_H

#include <stdint.h>

#include "base/buf.h"
#include "synth/registry.h"

#define GRAPH_NODES 16
#define GRAPH_INPUTS 4

/* How an input lies against the value it meets. x itself is ROLE_FULL, or ROLE_A of a matmul. */
enum role { ROLE_FULL, ROLE_ROW /* (N) */, ROLE_COL /* (M,1) */, ROLE_A, ROLE_B, ROLE_WEIGHT, ROLE_BIAS };

enum { OPERAND_NONE = -1, OPERAND_H = -2 }; /* else an index of input[] */

struct node {
    const struct op *op;
    int operand;
    bool save; /* the result goes to h, x stays */
    double c;
};

struct graph {
    struct node node[GRAPH_NODES];
    int n, anchor; /* anchor: index of node, or -1 */
    enum role input[GRAPH_INPUTS]; /* input[0] is x; ROLE_WEIGHT and ROLE_BIAS are parameters, not arguments */
    int n_in;
    int M, N, K; /* sizes: x is (M,N), of a matmul (M,K); K is 1 when unused */
    const char *family;
};

/* Weisfeiler-Lehman hash: labels are operator names and input roles, edges are ordered unless the operator commutes;
 * eight rounds over both edge directions. Renaming, shapes, constants and the order of independent nodes do not
 * change it; operator order, sharing and broadcast pattern do. */
uint64_t graph_hash(const struct graph *g);

/* The split rule: a pure function of the hash, the same for every corpus. One graph in eight is held out. */
bool graph_held_out(uint64_t hash);

void graph_text(const struct graph *g, struct buf *out); /* "x y:row | mul_s(0.5) h=tanh add(h) | row_sum" */

enum anchor graph_anchor(const struct graph *g);
int graph_epilogue(const struct graph *g);              /* index of the first node behind the anchor */
void graph_input_dims(const struct graph *g, int i, int dims[2], int *rank);
void graph_output_dims(const struct graph *g, int dims[2], int *rank);
char graph_input_name(const struct graph *g, int i); /* x y z.., b and c for rows and columns, w for a weight */

#endif
