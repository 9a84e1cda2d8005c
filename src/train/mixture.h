/* mixture.h - which examples each step sees: a multi-task mixture, fixed for the whole run before step 1.
 *
 * Each draw picks a kind with probability weight_k n_k / sum, then the next example of that kind's shuffled pass (a new
 * shuffle when it is used up), until the step holds batch_tokens. The plan is a function of data, weights and seed, so
 * a resumed run needs no cursor but the step. easy_first: the first pass of each kind is by difficulty,
 * easiest first; equals stay shuffled, and what says no difficulty keeps its shuffled place. */
#ifndef MC_TRAIN_MIXTURE_H
#define MC_TRAIN_MIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "train/data.h"

struct mixture {
    uint32_t *order; /* indices into dataset.ex */
    size_t *start;   /* (steps + 1): step s sees order[start[s], start[s + 1]) */
    int64_t steps;
};

/* text: "generate=1,repair=0.5"; kinds not named get 1; a name that no record has is refused, unless a stage makes such
 * records and may make none (rft, own, repair, review); all zero is refused. NULL or ""
 * means all 1. weight: DATA_MAX_KINDS entries. */
int mixture_weights(const struct dataset *d, const char *text, double *weight, struct err *e);

/* pick: indices of the examples that may be used (the training side), n_pick > 0. Every step has at least one example. */
int mixture_plan(struct mixture *m, const struct dataset *d, const uint32_t *pick, size_t n_pick, const double *weight,
                 int64_t steps, int64_t batch_tokens, uint64_t seed, bool easy_first, struct err *e);
void mixture_free(struct mixture *m);

#endif
