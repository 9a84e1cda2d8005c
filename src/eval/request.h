/* request.h - a request for a verdict as JSON, judged: of a queue (queue/queue_ask.h), or of a caller of an owner. */
#ifndef MC_EVAL_REQUEST_H
#define MC_EVAL_REQUEST_H

#include "eval/eval.h"

/* payload: as queue/queue_ask.h makes it. more: what such a request cannot say, "fresh" and "capsule"; NULL: nothing.
 * caller: whose turn it is (schedule.h). As eval_one; ERR_INPUT: it is no request. */
int request_judge(struct eval *ev, const json_t *payload, const json_t *more, int64_t caller, json_t **ret,
                  struct err *e);

#endif
