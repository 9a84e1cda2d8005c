/* ppo_loss.h - the clipped surrogate of one token, with separate bounds (PPO; "clip-higher" of DAPO).
 *   rho = exp(clamp(logp - old, -20, 20));  L = max(-A rho, -A clip(rho, 1 - eps_low, 1 + eps_high))
 *   dL/dlogp = -A rho where the unclipped term is the larger one, else 0. */
#ifndef MC_PPO_LOSS_H
#define MC_PPO_LOSS_H

#include <stdbool.h>

#include "base/err.h"
#include "objective/ratio.h"

struct ppo_clip {
    double eps_low;  /* 0.2 */
    double eps_high; /* 0.28 */
};

#define PPO_CLIP_DEFAULT {0.2, 0.28}

struct ppo_token {
    double loss;
    double dlogp;   /* dL/dlogp */
    double ratio;   /* rho */
    bool clipped;   /* the clipped term was active: no gradient */
};

int ppo_token_loss(const struct ppo_clip *c, double logp, double old, double adv, struct ppo_token *ret, struct err *e);

#endif
