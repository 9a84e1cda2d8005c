/* expression.h - layers that no table has: formulas as people write them out, drawn for one task. Who learns them has
 * to read the formula, as no name says what it computes. */
#ifndef MC_SYNTH_SURFACE_EXPRESSION_H
#define MC_SYNTH_SURFACE_EXPRESSION_H

#include "synth/surface/making.h"

/* A drawn kind of this form, in m's arena; NULL: the form has none. No formula is an unseen operator's (heldout.h):
 * no x / (c + |x|), x * clamp(x + 3, 0, 6), upper bound alone, division by a sum or mean of magnitudes, softmin. */
const struct kind *expression_draw_kind(struct making *m, enum form form);

#endif
