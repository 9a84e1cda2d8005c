/* rewrite.h - two lists of kernels for one graph, a slow one and a fast one, and in words why. */
#ifndef MC_SYNTH_REWRITE_H
#define MC_SYNTH_REWRITE_H

#include "synth/cost.h"

#define REWRITE_RATIO 1.5 /* at least, by cost.h */

/* Draws another fusion and other schedules for the graph until one differs from k by REWRITE_RATIO. k and *level are
 * then the fast one. False if none of some tries does. */
bool rewrite_find(const struct dag *g, struct rng *r, struct arena *a, struct kernels *k, enum fusion *level,
                  struct kernels *slow);
/* What makes the slow one slow and what the fast one does instead, from both costs and schedules. Caller frees. */
char *rewrite_answer(const struct kernels *slow, const struct kernels *fast);

#endif
