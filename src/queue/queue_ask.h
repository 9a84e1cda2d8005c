/* queue_ask.h - a verdict asked of a queue: what a job's payload is, its key, and asking again for what failed for our
 * reasons. */
#ifndef MC_QUEUE_QUEUE_ASK_H
#define MC_QUEUE_QUEUE_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "queue/queue.h"

/* A job's payload: {"task_code","task_name","candidate","is_response","options"[,"sidecar"][,"mended":true: the
 * candidate's text was not UTF-8]}; new. Strings become valid UTF-8. The result is the verdict record as JSON text. A
 * worker claims with this lease, sends a heartbeat at a third of it, and finishes the job (queue.h). */
#define VERDICT_LEASE_S 30.0

json_t *ask_payload(const char *task_code, const char *task_name, const char *candidate, bool is_response,
                    const json_t *options, const json_t *sidecar);

/* The program of one candidate of POST /v1/eval: "..." (a response), {"code": ...} or {"response": ...}; borrowed,
 * NULL: neither. */
const char *ask_candidate(const json_t *one, bool *ret_is_response);
/* Candidate i of such a body, {"task":{"name","code"},"candidates":[..],"options","sidecar"}, as a payload: new. NULL
 * with ERR_INPUT: it is none. */
json_t *ask_of_body(const json_t *body, size_t i, struct err *e);

/* The key of a payload's text: its SHA-256. */
void ask_key(const char *payload_text, char ret[65]);

/* Puts the payload under its content's hash. how: lane, owner, priority, attempts; its key and payload are set here.
 * A result that says 'infra', and a job that failed or was cancelled, is forgotten and asked for again. Returns 1 if
 * a worker has to do it, 0 if it is in the queue or done already, -1. ret_key may be NULL: the payload's key, which
 * stays when a job is asked for again and its id changes. */
int ask_put(struct queue *q, const json_t *payload, const struct queue_item *how, int64_t *ret_id, char ret_key[65],
            struct err *e);

#endif
