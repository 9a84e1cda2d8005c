/* primeecho.h - PrimeEcho trajectory reward (MusaCoder paper, section on multi-turn RL):
 *   R = alpha s_1 + (1 - alpha) max_k s_k + b_early
 * s_k is the score of turn k; b_early is 'bonus1' when turn 1 passed, 'bonus2' when turn 2 did, else 0.
 * Later turns only shape the reward: the policy gradient covers the first response alone. */
#ifndef MC_PRIMEECHO_H
#define MC_PRIMEECHO_H

#include "base/err.h"

struct primeecho {
    double alpha;  /* 0.75 */
    double bonus1; /* 0.15 */
    double bonus2; /* 0.08 */
};

#define PRIMEECHO_DEFAULT {0.75, 0.15, 0.08}

/* score: one entry per turn played, turns >= 1. passed_turn: 1-based turn of the first pass, 0 if none.
 * Fails on no turns, a score that is not finite, or passed_turn outside the trajectory. */
int primeecho_reward(const struct primeecho *p, const double *score, int turns, int passed_turn, double *ret,
                     struct err *e);

#endif
