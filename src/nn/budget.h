/* budget.h - the bytes that training a model needs on each GPU, before anything is allocated: the planner's own
 * figures. Pure: no device and no weights are touched. */
#ifndef MC_NN_BUDGET_H
#define MC_NN_BUDGET_H

#include <stdbool.h>

#include "base/buf.h"
#include "nn/model.h"

/* Bytes. State: weights, gradients and moments, of each GPU. step: activations and what a step needs
 * beside them; step_again: where layers keep their inputs alone. sequence: keys, values and states of one sampled
 * sequence. */
struct model_budget {
    size_t weights, gradients, moments, step, step_again, sequence;
};

/* parts: ranks that share the moments (sft --zero 1), or 1; divided: master weights and gradients too (--zero 2).
 * dtype: "bf16" (NULL too) or "fp32". limits: of one
 * micro-batch. max_len: of a sampled sequence; 0: none. */
struct model_budget model_budget(const struct model_config *c, const char *dtype, const struct train_limits *limits,
                                 int max_len, int parts, bool divided);
/* Lines for people, each behind 'lead': the parts, the sum beside 'card' bytes of one GPU, and what would help. */
void model_budget_tell(const struct model_config *c, const struct model_budget *b, const char *lead, size_t card,
                       struct buf *out);

#endif
