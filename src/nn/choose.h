/* choose.h - one token from one row of logits: temperature, top-k, top-p (Holtzman et al., arXiv 1904.09751). */
#ifndef MC_CHOOSE_H
#define MC_CHOOSE_H

#include "base/rng.h"
#include "nn/ops/ops.h"

struct choice_rule {
    float temperature; /* 0: the largest logit, the lowest id among equals */
    float top_p;       /* 1: all */
    int top_k;         /* 0: all */
    int ids;           /* only ids below it are drawn; 0: all. The rest keep their share of the softmax */
};

struct choice_candidate {
    float p;
    int32_t id;
};

/* ret_kept: NULL, or set to how many ids could be drawn, the first of cand; 0: all. Then *ret_logp is
 * normalised over those. z (V) is not changed. scratch (V) and cand (V) are the caller's. *ret_logp is
 * log_softmax(z / T)[token] over the whole vocabulary (T = 1 when greedy). One uniform number is drawn per call
 * unless greedy. */
int32_t choose_token(const struct ops *op, int V, const float *z, const struct choice_rule *rule, struct rng *r,
                     float *scratch, struct choice_candidate *cand, int *ret_kept, float *ret_logp);

#endif
