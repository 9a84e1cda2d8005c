/* ppo_loss.c - see ppo_loss.h. */
#include "train/ppo_loss.h"

#include <math.h>

#define LOGP_MAX 1e-3 /* log-softmax in float may exceed 0 by rounding */

int log_ratio(double logp, double old, double *ret, struct err *e)
{
    double x;

    if (isnan(logp) || isnan(old) || logp > LOGP_MAX || old > LOGP_MAX)
        return err_set(e, ERR_BUG, "log-probs %g (policy) and %g (rollout) are not log-probabilities", logp, old);
    x = logp - old;
    if (isnan(x))
        return err_set(e, ERR_BUG, "both policies give this token probability 0");
    *ret = fmin(fmax(x, -LOG_RATIO_MAX), LOG_RATIO_MAX);
    return 0;
}

int ppo_token_loss(const struct ppo_clip *c, double logp, double old, double adv, struct ppo_token *ret, struct err *e)
{
    double x, plain, bounded;

    if (!isfinite(adv))
        return err_set(e, ERR_BUG, "advantage %g is not finite", adv);
    if (log_ratio(logp, old, &x, e) < 0)
        return -1;
    ret->ratio = exp(x);
    plain = -adv * ret->ratio;
    bounded = -adv * fmin(fmax(ret->ratio, 1 - c->eps_low), 1 + c->eps_high);
    ret->clipped = bounded > plain;
    ret->loss = ret->clipped ? bounded : plain;
    // At the clamp the ratio no longer depends on logp.
    ret->dlogp = ret->clipped || fabs(logp - old) >= LOG_RATIO_MAX ? 0 : plain;
    return 0;
}
