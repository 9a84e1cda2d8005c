/* reason.h - the six steps of a solution in words: semantics, scalar arithmetic, shapes, index map, boundaries,
 * pitfalls. Every sentence is derived from the graph, the loop nests and the tree that is printed as the program;
 * a check at the end compares every numeral of the text with the numbers that those hold. */
#ifndef MC_SYNTH_REASON_H
#define MC_SYNTH_REASON_H

#include "synth/fuse.h"

/* Appends the text. false, and nothing appended, if a numeral has no source (a bug of ours, counted by callers). */
bool reason_write(const struct dag *g, const struct kernels *k, const struct afun *cuda, struct buf *out);

#endif
