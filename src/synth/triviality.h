/* triviality.h - is a graph worth asking for? Its result must be finite, and must not be what a program without work
 * returns. */
#ifndef MC_SYNTH_TRIVIALITY_H
#define MC_SYNTH_TRIVIALITY_H

#include "synth/dag.h"

/* Evaluates the graph in fp64 on three input distributions (normal, uniform, large). NULL if it is worthwhile, else
 * why not: "not finite", "zeros pass", "a constant passes", "an input passes", "an operator may be dropped",
 * "plumbing passes" (views and copies alone). */
const char *triviality_reason(const struct dag *g, struct rng *r);

/* Mutation-kill score of the graph's inputs, at the loop IR: up to TRIVIALITY_MUTANTS bugs (a reduction that is one
 * short, a wrong combination, an identity of 0, an index off by one, a sign, a constant, a final step left out, a
 * last element that is never written), each in one node. Killed: some regime's result differs by more than a judge
 * lets pass. */
#define TRIVIALITY_MUTANTS 4
struct triviality_kill {
    int mutants, killed;
};
struct triviality_kill triviality_kill_score(const struct dag *g, struct rng *r);

#endif
