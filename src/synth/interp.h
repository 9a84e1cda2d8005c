/* interp.h - what a graph computes, in fp64 C, and whether it is worth asking for.
 *
 * Five input regimes as in the strict protocol: normal, uniform, signed, large, structured. A graph is worthwhile if
 * its
 * result is finite in all of them, does not move when inputs move by rounding, and cannot be passed without work:
 * zeros,
 * a constant, the input, and the graph with any one operator dropped must all differ visibly from it in some regime. */
#ifndef MC_SYNTH_INTERP_H
#define MC_SYNTH_INTERP_H

#include <stddef.h>

#include "base/rng.h"
#include "synth/graph.h"

enum regime { REGIME_NORMAL, REGIME_UNIFORM, REGIME_SIGNED, REGIME_LARGE, REGIME_STRUCTURED, N_REGIMES };
extern const char *const regime_names[N_REGIMES];

struct tensor {
    double *v;
    int dims[2], rank;
    size_t n;
};

/* Fills the graph's inputs (parameters too); v of each is allocated, interp_free releases. */
void interp_inputs(const struct graph *g, enum regime regime, struct rng *r, struct tensor in[GRAPH_INPUTS]);
/* skip: index of a node to drop, or -1. Returns 0, or -1 if the graph without it has no meaning (shape changes). */
int interp_run(const struct graph *g, const struct tensor in[GRAPH_INPUTS], int skip, struct tensor *ret);
void interp_free(struct tensor *t, int n);

/* why: NULL, or receives "not finite", "ill conditioned", "zeros pass", "a constant passes", "the input passes",
 * "passes without NAME". */
bool interp_worthwhile(const struct graph *g, char why[64]);

#endif
