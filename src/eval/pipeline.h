/* pipeline.h - the stage table: extract, load, correctness, compile, legality, performance, reward, feedback. */
#ifndef MC_EVAL_PIPELINE_H
#define MC_EVAL_PIPELINE_H

#include "eval/eval.h"

/* One candidate, once, no cache. 0 and a new record (status infra included), -1 only for a broken task or Ctrl-C. */
struct server;
int pipeline_run(struct eval *ev, struct server *sv, const struct task *task, const struct eval_candidate *c,
                 const struct eval_options *o,
                 bool alone, json_t **ret, struct err *e);

#endif
