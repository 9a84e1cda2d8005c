/* stage_reward.c - settles the category and scores the record. */
#include "base/json.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"
#include "objective/reward.h"

/* The stage: settles status and reward. */
static int stage_reward_run(struct job *j, struct err *e)
{
    double r;

    (void)e;
    record_settle(j->rec);
    record_set(j->rec, "reward", reward_of(j->rec, j->opt->reward, &r) ? json_num(r) : json_null());
    return 0;
}

const struct stage stage_reward = {"reward", stage_reward_run, true};
