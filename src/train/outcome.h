/* outcome.h - how a verdict counts in training. Pure functions of the record. */
#ifndef MC_TRAIN_OUTCOME_H
#define MC_TRAIN_OUTCOME_H

#include <jansson.h>

#include "objective/reward.h"

/* Only passed and failed are scored; the others leave their group. */
enum outcome_kind { OUTCOME_FAILED, OUTCOME_PASSED, OUTCOME_UNSUPPORTED, OUTCOME_INFRA };

struct outcome {
    enum outcome_kind kind;
    double score;         /* the verdict's reward; 0 when it is not scored */
    const char *category; /* "" when passed; borrowed from the verdict */
    const char *feedback; /* "" when there is none; borrowed likewise */
};

/* reward: scores are reward_of the record by these; NULL: the record's own reward. */
struct outcome outcome_of(const json_t *verdict, const struct reward_params *reward);

#endif
