/* style.h - surface variety, drawn independently of strategy and schedule: identifiers, comments, spelling. A program
 * keeps its meaning; clustering by strategy must not be able to use these. */
#ifndef MC_SYNTH_STYLE_H
#define MC_SYNTH_STYLE_H

#include "base/buf.h"
#include "base/rng.h"
#include "synth/graph.h"

void style_dress(struct rng *r, const struct graph *g, const char *strategy, struct buf *program);

#endif
