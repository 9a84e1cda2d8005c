/* worth.h - is a graph worth asking for? Its result must be finite, and must not be what a program without work
 * returns. */
#ifndef MC_SYNTH_WORTH_H
#define MC_SYNTH_WORTH_H

#include "synth/dag.h"

/* Evaluates the graph in fp64 on three regimes (normal, uniform, large). NULL if it is worthwhile, else why not:
 * "not finite", "zeros pass", "a constant passes", "an input passes", "an operator may be dropped", "plumbing
 * passes" (views and copies alone). */
const char *worth_reason(const struct dag *g, struct rng *r);

#endif
