/* mirrorpop.h - which rollouts are too far off policy to learn from (MusaCoder paper, MirrorPop).
 *
 * rho_t = pi(a_t) / mu(a_t): trainer policy over rollout policy. With x_t = log rho_t, a sequence of T tokens is kept
 * iff mean_t |x_t| <= delta. The usual filter looks at |mean_t x_t|, where deviations above and below 1 cancel;
 * |mean x| <= mean |x|, so MirrorPop never keeps what the signed filter drops. */
#ifndef MC_MIRRORPOP_H
#define MC_MIRRORPOP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define MIRRORPOP_DELTA 0.02

struct offpolicy {
    double signed_mean; /* mean_t log rho_t */
    double mirror;      /* mean_t |log rho_t| */
};

/* logp, behav: n log-probs each, n >= 1. Log-ratios are clamped to [-20, 20]. Fails on n = 0, a NaN, or +inf. */
int offpolicy_measure(const float *logp, const float *behav, size_t n, struct offpolicy *ret, struct err *e);

static inline bool mirrorpop_keep(const struct offpolicy *m, double delta)
{
    return m->mirror <= delta;
}

#endif
