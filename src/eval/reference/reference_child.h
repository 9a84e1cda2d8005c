/* reference_child.h - the reference's process as the judge talks to it: what it is asked for, one request and its
 * answer (runner/reference.py, runner/streamed.py), and what its errors mean. Inside src/eval only. */
#ifndef MC_EVAL_REFERENCE_CHILD_H
#define MC_EVAL_REFERENCE_CHILD_H

#include "eval/reference/reference.h"
#include "proc/frame.h"

#define REFERENCE_TIMEOUT_S 120.0

/* A process of streamed.py for the task: one that has ended another task (spares.h), or a new one. It answers "frames"
 * too, which are all draws with their values. */
int reference_start(const struct reference_want *w, struct child **ret, struct err *e);
/* A new one that answers this task alone and cannot serve another: where to make processes is cheap. */
int reference_start_alone(const struct reference_want *w, struct child **ret, struct err *e);
/* The caller is done with one of reference_start: it may serve another task. Waits for its last answer. */
void reference_end(const struct reference_want *w, struct child *child);
/* {"op":"task",..}; NULL if the task is no UTF-8 text. */
json_t *reference_request(const struct reference_want *w);
/* One request (reference taken; NULL: of reference_request) and its answer; fds: n_fds descriptors that ride along.
 * ERR_INPUT: the task is at fault; LACK_DEVICE, LACK_HOST: memory was short. *ret_lost (may be NULL): there was no
 * answer, and one that comes later would be another request's. */
int reference_ask(struct child *c, const struct reference_want *w, json_t *req, const int *fds, int n_fds,
                  double deadline, struct frame *ret, bool *ret_lost, struct err *e);

#endif
