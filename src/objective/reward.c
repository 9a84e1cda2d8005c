/* reward.c - see reward.h. */
#include "objective/reward.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* The trusted section of a passed verdict; NULL if it has none. */
static const json_t *reward_trusted(const json_t *verdict)
{
    const json_t *perf = json_object_get(verdict, "performance");

    return json_is_object(perf) && json_flag(perf, "trusted", false) ? perf : NULL;
}

/* The reward's part for speed: lambda min(max(speedup - 1, 0), nu_max); 0 where no time is trusted. */
static double reward_speed_term(const json_t *verdict, struct reward_params p)
{
    const json_t *perf = reward_trusted(verdict);
    double nu = json_num_at(perf, "speedup_eager");

    if (!perf || !isfinite(nu))
        return 0;
    return p.lambda * fmin(fmax(nu - 1, 0), p.nu_max);
}

double reward_speedup_lower(const json_t *verdict, const char *baseline)
{
    const json_t *perf = reward_trusted(verdict), *low;
    char key[64];
    double x;

    if (!perf || strcmp(json_str(verdict, "status", ""), "passed"))
        return NAN;
    snprintf(key, sizeof key, "speedup_%s_ci", baseline);
    low = json_array_get(json_object_get(perf, key), 0);
    snprintf(key, sizeof key, "speedup_%s", baseline);
    x = json_num_value(low ? low : json_object_get(perf, key));
    return isfinite(x) ? x : NAN;
}

bool reward_is_faster(const json_t *verdict, const char *baseline, double threshold)
{
    return reward_speedup_lower(verdict, baseline) > threshold; /* false for NaN */
}

bool reward_of(const json_t *verdict, struct reward_params p, double *ret)
{
    const char *status = json_str(verdict, "status", ""), *category = json_str(verdict, "category", "");
    double q = json_num_value(json_object_get(json_object_get(verdict, "correctness"), "q"));

    if (!strcmp(status, "infra") || !strcmp(category, "infra") || !strcmp(status, "unsupported"))
        return false;
    if (reward_is_default(p)) /* not said */
        p = REWARD_DEFAULT;
    if (!strcmp(status, "passed"))
        *ret = 1 + reward_speed_term(verdict, p);
    else if (!strcmp(category, "correctness_error") && q > 0 && q < 1)
        *ret = -0.5 + 0.5 * q;
    else
        *ret = -1;
    return true;
}

bool reward_recorded(const json_t *verdict, double *ret)
{
    const json_t *said = json_object_get(verdict, "reward");

    if (!said)
        return reward_of(verdict, REWARD_DEFAULT, ret);
    *ret = json_number_value(said);
    return json_is_number(said);
}
