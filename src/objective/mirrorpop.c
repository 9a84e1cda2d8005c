/* mirrorpop.c - see mirrorpop.h. */
#include "objective/mirrorpop.h"

#include <math.h>

#include "objective/ratio.h"

int offpolicy_measure(const float *logp, const float *behav, size_t n, struct offpolicy *ret, struct err *e)
{
    double sum = 0, abs_sum = 0, x;

    if (n == 0)
        return err_set(e, ERR_BUG, "an empty response has no off-policy measure");
    for (size_t t = 0; t < n; t++) {
        if (log_ratio(logp[t], behav[t], &x, e) < 0)
            return err_prefix(e, "token %zu", t);
        sum += x;
        abs_sum += fabs(x);
    }
    ret->signed_mean = sum / (double)n;
    ret->mirror = abs_sum / (double)n;
    return 0;
}
