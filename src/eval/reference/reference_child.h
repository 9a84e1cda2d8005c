/* reference_child.h - the reference's process as the judge talks to it: what it is asked for, one request and its
 * answer (runner/reference.py, runner/streamed.py), and what its errors mean. Inside src/eval only. */
#ifndef MC_EVAL_REFERENCE_CHILD_H
#define MC_EVAL_REFERENCE_CHILD_H

#include "eval/reference/reference.h"
#include "proc/frame.h"

#define REFERENCE_TIMEOUT_S 120.0

/* A child of that role. */
int reference_start(const struct reference_want *w, const char *role, struct child **ret, struct err *e);
/* {"op":"task",..}; NULL if the task is no UTF-8 text. */
json_t *reference_request(const struct reference_want *w);
/* One request (reference taken; NULL: of reference_request) and its answer; fds: n_fds descriptors that ride along.
 * ERR_INPUT: the task is at fault; LACK_DEVICE, LACK_HOST: memory was short. *ret_lost (may be NULL): there was no
 * answer, and one that comes later would be another request's. */
int reference_ask(struct child *c, const struct reference_want *w, json_t *req, const int *fds, int n_fds,
                  double deadline, struct frame *ret, bool *ret_lost, struct err *e);

#endif
