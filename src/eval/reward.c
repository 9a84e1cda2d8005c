/* reward.c - see reward.h. */
#include "eval/reward.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static double speed_term(const json_t *verdict, struct reward_params p)
{
    const json_t *perf = json_object_get(verdict, "performance");
    double nu = json_num_value(json_object_get(perf, "speedup_eager"));

    if (!json_is_object(perf) || !json_flag(perf, "trusted", false) || !isfinite(nu))
        return 0;
    return p.lambda * fmin(fmax(nu - 1, 0), p.nu_max);
}

bool reward_of(const json_t *verdict, struct reward_params p, double *ret)
{
    const char *status = json_str(verdict, "status", ""), *category = json_str(verdict, "category", "");
    double q = json_num_value(json_object_get(json_object_get(verdict, "correctness"), "q"));

    if (!strcmp(status, "infra") || !strcmp(category, "infra"))
        return false;
    if (!strcmp(status, "passed"))
        *ret = 1 + speed_term(verdict, p);
    else if (!strcmp(category, "correctness_error") && q > 0 && q < 1)
        *ret = -0.5 + 0.5 * q;
    else
        *ret = -1;
    return true;
}
