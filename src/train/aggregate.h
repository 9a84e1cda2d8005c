/* aggregate.h - from per-token losses to one number: loss = sum_i w_i sum_t L_it, as a weight per sequence.
 *   token_mean               w_i = 1 / sum_j T_j
 *   seq_mean_token_mean      w_i = 1 / (N T_i)
 *   seq_mean_token_sum       w_i = 1 / N
 *   seq_mean_token_sum_norm  w_i = 1 / (N norm), norm a constant such as the length limit (Dr. GRPO)
 * The denominators count sequences and tokens *before* masking (off-policy, infra): dropping a sequence makes the step
 * smaller, it does not make the others louder. 'after_mask' switches to the count of what is left (verl's way). */
#ifndef MC_AGGREGATE_H
#define MC_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum aggregate_kind { AGG_TOKEN_MEAN, AGG_SEQ_MEAN_TOKEN_MEAN, AGG_SEQ_MEAN_TOKEN_SUM, AGG_SEQ_MEAN_TOKEN_SUM_NORM };

int aggregate_kind_of(const char *name, enum aggregate_kind *ret, struct err *e);

/* len[i]: loss tokens of sequence i (0 allowed); keep[i] false: masked (NULL: all kept). Fills w, n entries; masked and
 * empty sequences get 0. norm is used by the last kind only. Nothing left gives all zeros. */
void aggregate_weights(enum aggregate_kind kind, bool after_mask, double norm, const size_t *len, const bool *keep,
                       size_t n, double *w);

#endif
