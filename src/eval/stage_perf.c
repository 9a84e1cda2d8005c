/* stage_perf.c - stage performance: the record's section is null where the backend has no clock. */
#include "base/json.h"
#include "eval/record.h"
#include "eval/stage_perf.h"

static int perf_run(struct job *j, struct err *e)
{
    record_set(j->rec, "performance", json_null());
    record_set(j->rec, "stage", json_string("performance"));
    return j->opt->perf && j->server->backend->timed ? perf_by_replay(j, e) : 0;
}

const struct stage stage_perf = {"performance", perf_run, false};
