/* arrange.h - how a program arranged the model's weights while it was constructed: transposed, padded, cast, side by
 * side, under names of its own. Read off the values that the construction's seed gives both models. Pure. */
#ifndef MC_EVAL_CANDIDATE_ARRANGE_H
#define MC_EVAL_CANDIDATE_ARRANGE_H

#include "eval/check/tensor.h"

#define ARRANGE_ZERO (-1) /* nothing of the model: a zero that pads */

/* For each element of 'packed' the element of rows[0..n) that it holds, counted through all rows; or ARRANGE_ZERO.
 * A value that stands in several places is the one that its neighbours' order asks for. The array is the caller's
 * to free; NULL where it is no such arrangement: a table, a product, values of another seed, or a constant. */
int64_t *arrange_read(const struct tensor *rows, size_t n, const struct tensor *packed);

/* Element i, counted through all rows; 0 for ARRANGE_ZERO. */
double arrange_value(const struct tensor *rows, size_t n, int64_t i);

#endif
