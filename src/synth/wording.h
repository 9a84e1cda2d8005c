/* wording.h - other words for the same thing: names of a program's sizes and kernels, what an operator computes in one
 * line. With one wording everything is written as ever; choices come from the caller's random stream. */
#ifndef MC_SYNTH_WORDING_H
#define MC_SYNTH_WORDING_H

#include "synth/dag.h"

/* Ways to write names, layouts, requests (task/prompt.h) and questions (knowledge.h); the first is the plain one. */
#define WORDINGS 8

/* Which of the first n wordings; 0 where n is 0 or 1, and nothing is drawn then. */
int wording_draw(struct rng *r, int n);

/* Renames N, D0, D1, .., out, i, row and kernel of a terse program in way 'wording'; a name that the program has
 * already is not given twice. */
void wording_names(struct afun *f, int wording);

/* "hardswish(x) = x * min(max(x + 3, 0), 6) / 6", "amax: the largest along the reduced axes". False, and nothing is
 * added, where the name says it all ("atan(x) = atan(x)"). */
bool wording_formula(const struct op_call *c, struct buf *out);
/* One comment for each operator of the graph, in front of the first kernel. */
void wording_explain(const struct dag *g, struct arena *a, struct afun *f);

#endif
