/* mixture.h - which examples each step sees: a multi-task mixture, fixed for the whole run before step 1.
 *
 * A kind's share is one of tokens, prompts included: each draw takes the next example of the kind that is furthest
 * behind its share, in that kind's shuffled pass (a new shuffle when it is used up), until the step holds
 * batch_tokens. The plan is a function of data, shares and seed, so a resumed run needs no cursor but the step.
 * easy_first: the first pass of each kind is by difficulty, easiest first; equals stay shuffled, and what says no
 * difficulty keeps its shuffled place. */
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

/* text: "rft=0.4,knowledge=0.1"; kinds not named share what is left in proportion to their tokens. share:
 * DATA_MAX_KINDS entries, sum 1; a kind without an example in pick has 0, and the others its part. ERR_INPUT: shares
 * above 1 in all, all zero, a name that no record has, unless a stage makes such records and may make none (rft,
 * own, repair, review). NULL or "": as many tokens as each kind has. pick: indices of the examples that may be used
 * (the training side), n_pick > 0. */
int mixture_shares(const struct dataset *d, const uint32_t *pick, size_t n_pick, const char *text, double *share,
                   struct err *e);

/* Of a run of so many tokens, no kind that a stage of the loop made (rft, own, repair, review) is shown more than
 * MIXTURE_PASSES times over: the rest of its share goes to the other kinds in proportion, with a warning. A model that
 * sees 14 records a hundred times has learned them by heart and forgotten the rest; past 16 passes a repeated token
 * teaches next to nothing (Muennighoff et al. 2023, Scaling Data-Constrained Language Models, section 6). */
#define MIXTURE_PASSES 16
void mixture_limit(const struct dataset *d, const uint32_t *pick, size_t n_pick, double *share, double run_tokens);

/* Every step has at least one example. share: of mixture_shares for the same pick. */
void mixture_plan(struct mixture *m, const struct dataset *d, const uint32_t *pick, size_t n_pick, const double *share,
                  int64_t steps, int64_t batch_tokens, uint64_t seed, bool easy_first);
void mixture_free(struct mixture *m);

#endif
