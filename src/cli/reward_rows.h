/* reward_rows.h - the options 'speed-weight' and 'speed-cap' of commands that score verdicts (objective/reward.h). */
#ifndef MC_CLI_REWARD_ROWS_H
#define MC_CLI_REWARD_ROWS_H

#include "base/opt.h"
#include "objective/reward.h"

#define REWARD_ROWS(section)                                                                                        \
    {section, "speed-weight", OPT_REAL, "0.5",                                                                      \
     "from 0: a right kernel's reward is 1 + speed-weight x min(speedup over eager - 1, speed-cap)"},               \
    {section, "speed-cap", OPT_REAL, "4", "from 0: the largest speedup - 1 that is rewarded"}

/* The cap bounds nothing where the weight is 0: those are one set of parameters. */
static inline struct reward_params reward_params_of(const struct opts *o)
{
    double weight = opts_real(o, "speed-weight");

    return (struct reward_params){weight, weight == 0 ? REWARD_DEFAULT.nu_max : opts_real(o, "speed-cap")};
}

#endif
