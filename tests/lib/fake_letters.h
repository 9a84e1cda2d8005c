/* fake_letters.h - the fake verdict service's judge for training: a response passes when it holds at least fake_need
 * letters 'a'; its reward rises with their number. */
#ifndef MC_TEST_TRAIN_VERDICT_H
#define MC_TEST_TRAIN_VERDICT_H

#include "fake_verdict.h"

static int fake_need = 3, fake_calls, fake_infra_every;

static json_t *fake_judge(const struct verdict_request *item)
{
    int n = 0;

    fake_calls++;
    for (const char *text = item->candidate; *text; text++)
        n += *text == 'a';
    if (fake_infra_every && fake_calls % fake_infra_every == 0)
        return json_pack("{s:s,s:s,s:n}", "status", "infra", "category", "infra", "reward");
    if (n >= fake_need)
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.0);
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "correctness_error", "reward",
                     -1 + 0.5 * n / fake_need, "feedback", "too few");
}

#endif
