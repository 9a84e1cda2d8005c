/* pipeline.h - the stage table: extract, load, correctness, compile, legality, performance, reward, feedback. */
#ifndef MC_EVAL_PIPELINE_H
#define MC_EVAL_PIPELINE_H

#include "eval/candidate/job.h"
#include "eval/schedule/retry.h"
#include "eval/schedule/schedule.h"

struct judge_server;

/* One candidate, once, no cache. 0 and a new record, -1 with *e only for a broken task or Ctrl-C. Where the record's
 * status is infra, *ret_void says why (its kind is not ERR_NONE); else it is untouched. how: from RETRY_ALONE on
 * the device is to be used by nobody else meanwhile, and what happens there is the candidate's doing. claim: what it
 * has of the device's memory and the machine's. It may grow; where RETRY_AGAIN is seen to need more than there is
 * room for, it ends before anything is there, with LACK_DEVICE. */
int pipeline_run(struct judge_server *sv, const struct task *task, const struct eval_candidate *c,
                 const struct eval_options *o, enum retry_step how, struct reservation *reservation, json_t **ret,
                 struct err *ret_void, struct err *e);

#endif
