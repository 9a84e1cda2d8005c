/* ratio.h - the log of an importance ratio: log pi(a) - log mu(a), policy over rollout policy. Pure. */
#ifndef MC_RATIO_H
#define MC_RATIO_H

#include "base/err.h"

#define LOG_RATIO_MAX 20.0

/* logp - old, clamped to +-LOG_RATIO_MAX. Log-probs are <= 0 up to rounding and may be -inf on one side only;
 * NaN, values above 1e-3 and (-inf, -inf) are refused. */
int log_ratio(double logp, double old, double *ret, struct err *e);

#endif
