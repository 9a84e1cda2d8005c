/* attempt.c - one attempt of a benchmark, and what its verdict says. */
#include <string.h>

#include "base/json.h"
#include "bench/bench_run.h"
#include "task/repair_text.h"

struct attempt *bench_attempt(const struct bench_run *b, int task, int sample, int turn)
{
    return &b->slots[task * b->o.samples + sample].turn[turn];
}

const char *bench_program(const struct bench_run *b, int task, int sample, int turn)
{
    struct attempt *a = bench_attempt(b, task, sample, turn);

    if (turn > 0 && a->text && !a->written)
        a->written = mend_apply(bench_program(b, task, sample, turn - 1), a->text);
    return a->written ? a->written : a->text;
}

bool bench_goes_on(const struct bench_run *b, int task, int sample, int turn)
{
    const struct attempt *a = bench_attempt(b, task, sample, turn);

    return a->verdict && !verdict_passed(a->verdict) && !verdict_infra(a->verdict);
}

bool verdict_passed(const json_t *verdict)
{
    return !strcmp(json_str(verdict, "status", ""), "passed");
}

bool verdict_infra(const json_t *verdict)
{
    const char *status = json_str(verdict, "status", "infra");

    return verdict && strcmp(status, "passed") && strcmp(status, "failed") && strcmp(status, "unsupported");
}
