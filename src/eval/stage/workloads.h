/* workloads.h - many shapes, one verdict: the records of a task's workloads become one. Pure.
 *
 * A row for each: {"name","is","status","category","stage","trials","passed","performance","reward","log_sha256",
 * "task_sha256","refused"}; "performance" has candidate_ms, eager_ms, the speedups with their intervals, trusted and
 * reasons. "refused", only there where a workload cannot be judged, says why: such a row has no say in the rest.
 * The record is a copy of the deciding row's: one that cheats, else the failed one with the lowest reward, else infra,
 * else unsupported, else the first that passed; it has "workloads": the rows, and "workload": {"name","is"} of that row
 * where not all passed, unless the shape has nothing to do with it. Its trials are the sum of all where all passed. Its
 * times and speedups are geometric means over the rows that were judged, each bound of an interval that of the rows'
 * bounds: wider than what the rows together would allow, never narrower. trusted needs each of these rows'. Reward,
 * code and feedback are made anew. */
#ifndef MC_EVAL_STAGE_WORKLOADS_H
#define MC_EVAL_STAGE_WORKLOADS_H

#include <jansson.h>
#include <stdbool.h>

#include "objective/reward.h"
#include "task/task.h"

/* records: of workload 0 .. n - 1 of t, in order; n may be less than all where the rest would say the same. New. */
json_t *workloads_merge(const struct task *t, json_t *const *records, int n, struct reward_params p);
/* The record of a workload that cannot be judged: why is what its task lacks. New. */
json_t *workloads_refusal(const struct task *workload, const char *backend, const char *protocol, const char *why);
/* Can none of these workloads be judged? */
bool workloads_all_refused(json_t *const *records, int n);
/* True if a failure has nothing to do with the shape: the other workloads need no judging. */
bool workloads_decided(const json_t *record);

#endif
