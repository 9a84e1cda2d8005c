/* policy.h - one policy-gradient step from groups of rollouts: forward, off-policy mask, clipped loss, KL, backward.
 *
 * A training sequence is prompt + first response; only the response carries loss. rho = policy / rollout policy, both
 * at the rollout temperature. Sequences with advantage 0 are skipped unless KL, entropy or further terms ask for
 * them; they still count in the denominators. */
#ifndef MC_TRAIN_POLICY_H
#define MC_TRAIN_POLICY_H

#include <stdbool.h>

#include "base/err.h"
#include "objective/loss_terms.h"
#include "nn/model.h"
#include "train/aggregate.h"
#include "train/kl.h"
#include "train/pack.h"
#include "train/ppo_loss.h"

struct policy_seq {
    const int32_t *ids; /* (n_prompt + n) */
    int n_prompt, n;    /* n >= 1 tokens of response */
    const float *behav; /* (n) log-probs at sampling */
    double adv;
    const int32_t *kept; /* as in struct pack_seq, of the response; NULL: all ids */
    const int *kept_to;
};

struct policy_options {
    struct ppo_clip clip;
    enum aggregate_kind aggregate;
    bool after_mask;
    double norm;          /* of seq_mean_token_sum_norm */
    enum kl_kind kl;
    double kl_coef, entropy_coef;
    struct loss_terms terms; /* beside these */
    bool mirrorpop;
    double delta, temperature;
};

struct policy_stats {
    double loss, kl;          /* aggregated */
    double entropy;           /* token mean over the sequences looked at, exact */
    double signed_mean, mirror; /* mean over sequences of |signed|, and of MirrorPop's measure */
    double clip_share;        /* of the tokens looked at */
    double masked_share;      /* of the sequences looked at: left out by MirrorPop */
    double masked[2], of_sign[2]; /* counts of those with advantage [0] below 0, [1] above: left out; all */
    double n_seqs, n_tokens;  /* looked at */
};

/* Adds gradients to m. ref (a frozen model with model_train_begin done) is needed when kl is on, else NULL.
 * pack: scratch whose max_tokens holds the longest sequence. */
int policy_gradient(struct model *m, struct model *ref, struct pack *pack, const struct policy_seq *seqs, size_t n,
                    const struct policy_options *o, struct policy_stats *ret, struct err *e);

/* Log-probs of the same tokens by the training pass, beside what was sampled with. */
struct policy_mismatch {
    double tokens, differ;  /* looked at; with other bits */
    double mean, worst;     /* of |difference| */
};
/* ret: (n) arrays of seqs[i].n log-probs, made by the caller. */
int policy_logprobs(struct model *m, struct pack *pack, const struct policy_seq *seqs, size_t n, double temperature,
                    float *const *ret, struct policy_mismatch *ret_mismatch, struct err *e);

#endif
