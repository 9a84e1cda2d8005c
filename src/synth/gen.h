/* gen.h - draws operator graphs constructively: every draw is valid, no solver and no search. Bounds on |value| are
 * propagated while drawing (inputs reach RANGE), so an operator is only placed where it stays well conditioned. */
#ifndef MC_SYNTH_GEN_H
#define MC_SYNTH_GEN_H

#include "base/rng.h"
#include "synth/graph.h"

#define GEN_RANGE 260.0 /* the largest |input| of the five regimes: ramps run to 250 */

struct gen_options {
    bool core_only;    /* operators flagged OP_CORE only */
    int max_ops;       /* elementwise operators in a chain, or around an anchor (2..8) */
    int max_elements;  /* of every tensor */
    bool nice_numbers; /* constants from a short list, else two random decimals */
};

/* family: an index into families[]. */
void gen_graph(struct rng *r, int family, const struct gen_options *o, struct graph *ret);
/* New sizes and constants for the same graph. */
void gen_resize(struct rng *r, const struct gen_options *o, struct graph *g);

#endif
