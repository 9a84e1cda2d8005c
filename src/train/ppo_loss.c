/* ppo_loss.c - see ppo_loss.h. */
#include "train/ppo_loss.h"

#include <math.h>

/* Loss, ratio and derivative of one token; see ppo_loss.h. ERR_BUG: a value is not finite. */
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
    /* At the clamp the ratio no longer depends on logp. */
    ret->dlogp = ret->clipped || fabs(logp - old) >= LOG_RATIO_MAX ? 0 : plain;
    return 0;
}
