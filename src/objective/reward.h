/* reward.h - the reward of one candidate: a pure function of its verdict record, so any log can be re-scored.
 *
 * s = -1 if extraction, compile or run fails, if it is cheating, or if q = 0;
 *                 s = -0.5 + 0.5 q for 0 < q < 1;
 *                 s = 1 + lambda * min(max(nu - 1, 0), nu_max) for q = 1 and legal, nu = speedup over eager;
 *                     without a trusted time (performance null, as on sim, or trusted false) the speed term is 0.
 * infra is not the candidate's fault, unsupported is not wrong: neither has a reward. */
#ifndef MC_REWARD_H
#define MC_REWARD_H

#include <jansson.h>
#include <stdbool.h>

struct reward_params {
    double lambda, nu_max; /* both 0: not said, which is REWARD_DEFAULT. With lambda 0 the cap bounds nothing */
};

#define REWARD_DEFAULT ((struct reward_params){0.5, 4})

static inline bool reward_is_default(struct reward_params p)
{
    return (p.lambda == 0 && p.nu_max == 0) || (p.lambda == REWARD_DEFAULT.lambda && p.nu_max == REWARD_DEFAULT.nu_max);
}

/* False, with *ret untouched, for infra and unsupported records (they are never scored). */
bool reward_of(const json_t *verdict, struct reward_params p, double *ret);
/* The reward that the record names, else (a record without the key) reward_of with the default weights. */
bool reward_recorded(const json_t *verdict, double *ret);

/* Faster Rate counts a candidate as faster than "eager" or "compile" when it passed, its time is trusted
 * and the lower end of the speedup's 95 % interval is above the threshold. Without an interval: the speedup itself.
 * NaN when there is no trusted speedup over that baseline. */
double reward_speedup_lower(const json_t *verdict, const char *baseline);
bool reward_is_faster(const json_t *verdict, const char *baseline, double threshold);

#endif
