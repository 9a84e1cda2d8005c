/* pack.h - how a program arranged the model's weights while it was constructed: transposed, padded, cast, side by side,
 * under names of its own. Read off the values that the construction's seed gives both models. Pure. */
#ifndef MC_EVAL_RECORDING_PACK_H
#define MC_EVAL_RECORDING_PACK_H

#include "eval/check/tensor.h"

#define PACK_ZERO (-1) /* nothing of the model: a zero that pads */

/* For each element of 'packed' the element of rows[0..n) that it holds, counted through all rows; or PACK_ZERO. A value
 * that stands in several places is the one that its neighbours' order asks for. The array is the caller's to free;
 * NULL where it is no such arrangement: a table, a product, values of another seed, or a constant. */
int64_t *pack_read(const struct tensor *rows, size_t n, const struct tensor *packed);

/* Element i, counted through all rows; 0 for PACK_ZERO. */
double pack_value(const struct tensor *rows, size_t n, int64_t i);

#endif
