/* ratio.c - see ratio.h. */
#include "objective/ratio.h"

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
