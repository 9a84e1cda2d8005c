/* stage_perf.c - performance. On sim nothing is timed: the section is null and the reward has no speed term. */
#include "eval/job.h"
#include "eval/record.h"

static int perf_run(struct job *j, struct err *e)
{
    (void)e;
    record_set(j->rec, "performance", json_null());
    record_set(j->rec, "stage", json_string("performance"));
    return 0;
}

const struct stage stage_perf = {"performance", perf_run, false};
