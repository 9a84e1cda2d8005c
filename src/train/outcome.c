/* outcome.c - reads a verdict as training counts it. */
#include "train/outcome.h"

#include <string.h>

#include "base/json.h"

/* What a verdict's status means for training. */
static enum outcome_kind outcome_kind_of(const char *status, const json_t *reward)
{
    if (!strcmp(status, "unsupported"))
        return OUTCOME_UNSUPPORTED;
    if (!json_is_number(reward))
        return OUTCOME_INFRA;
    return !strcmp(status, "passed") ? OUTCOME_PASSED : !strcmp(status, "failed") ? OUTCOME_FAILED : OUTCOME_INFRA;
}

struct outcome outcome_of(const json_t *verdict, const struct reward_params *reward)
{
    const json_t *own = json_object_get(verdict, "reward");
    struct outcome o = {.category = json_str(verdict, "category", ""), .feedback = json_str(verdict, "feedback", "")};

    o.kind = outcome_kind_of(json_str(verdict, "status", "infra"), own);
    if (o.kind != OUTCOME_PASSED && o.kind != OUTCOME_FAILED)
        return o;
    o.score = json_number_value(own);
    if (reward)
        reward_of(verdict, *reward, &o.score);
    return o;
}
