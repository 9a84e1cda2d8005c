/* kl.c - see kl.h. */
#include "train/kl.h"

#include <math.h>
#include <string.h>

#include "train/ppo_loss.h"

#define KL_K3_MAX 10.0

int kl_kind_of(const char *name, enum kl_kind *ret, struct err *e)
{
    if (!strcmp(name, "none"))
        *ret = KL_NONE;
    else if (!strcmp(name, "k2"))
        *ret = KL_K2;
    else if (!strcmp(name, "k3"))
        *ret = KL_K3;
    else if (!strcmp(name, "k1"))
        return err_set(e, ERR_INPUT, "k1 as a loss has a gradient of mean zero; use k2 or k3");
    else
        return err_set(e, ERR_INPUT, "no KL estimator '%s'; use none, k2 or k3", name);
    return 0;
}

int kl_token(enum kl_kind kind, double logp, double ref, double *value, double *dlogp, struct err *e)
{
    double d;

    *value = *dlogp = 0;
    if (kind == KL_NONE)
        return 0;
    if (log_ratio(ref, logp, &d, e) < 0)
        return -1;
    if (kind == KL_K1) {
        *value = -d;
        *dlogp = 1;
    } else if (kind == KL_K2) {
        *value = d * d / 2;
        *dlogp = -d;
    } else {
        *value = expm1(d) - d;
        *dlogp = -expm1(d);
        if (*value > KL_K3_MAX) {
            *value = KL_K3_MAX;
            *dlogp = 0;
        }
    }
    if (fabs(ref - logp) >= LOG_RATIO_MAX)
        *dlogp = 0;
    return 0;
}
