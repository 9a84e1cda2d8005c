/* elementwise.h - what elementwise rows share: a row gives an expression over x, y, z and $f0.., and its fp64
 * meaning. */
#ifndef MC_SYNTH_ELEMENTWISE_H
#define MC_SYNTH_ELEMENTWISE_H

#include "synth/op.h"

#define ANY_RANK 0x3e /* 1 to 5 */

void map_ref(const struct op_call *c, const double *const in[], double *out);
void map_lower(const struct op_call *c, struct nest *k);
bool map_draw_other(struct rng *r, const struct op_limits *l, struct op_call *c); /* a second operand that broadcasts */

/* A row: name, family, expression over x, fp64 function. */
#define UNARY(NAME, FAMILY, EXPR, F) \
    .name = NAME, .family = FAMILY, .class = NEST_MAP, .ranks = ANY_RANK, .shape = shape_broadcast, .ref = map_ref, \
    .lower = map_lower, .expr = EXPR, .f = F

#endif
