/* pipeline.h - the stage table: extract, load, correctness, compile, legality, performance, reward, feedback. */
#ifndef MC_EVAL_PIPELINE_H
#define MC_EVAL_PIPELINE_H

#include "eval/eval.h"

struct server;

/* One candidate, once, no cache. 0 and a new record, -1 with *e only for a broken task or Ctrl-C. Where the record's status is
 * infra, *ret_void says why (its kind is not ERR_NONE); else it is untouched. alone: the device is to be used by nobody
 * else meanwhile, and what happens there is the candidate's doing. */
int pipeline_run(struct eval *ev, struct server *sv, const struct task *task, const struct eval_candidate *c,
                 const struct eval_options *o, bool alone, json_t **ret, struct err *ret_void, struct err *e);

#endif
