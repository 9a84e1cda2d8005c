/* verdict_service.h - workers of a queue as a service: programs go in, verdict records come out; verdicts.h is its
 * client.
 *
 * A service owns a queue file and N worker processes ('musacoder eval --worker --queue FILE'), which die with us and
 * are restarted when they crash; or it uses a queue that has workers of its own. Work comes in batches; the verdicts
 * of a batch come back in the order of its items.
 * Equal items (same task, candidate, options) are evaluated once. */
#ifndef MC_VERDICTS_VERDICT_SERVICE_H
#define MC_VERDICTS_VERDICT_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct verdict_service;
struct verdict_batch;

struct verdict_config {
    int workers;               /* processes; 0 = 1. Each runs several candidates at once: see 'jobs' */
    int jobs;                  /* --jobs of each worker; 0 = the number of CPUs */
    const char *folder;        /* where the queue file goes; NULL: a private temporary folder, removed at the end */
    char *const *worker_argv;  /* for tests: run this instead, with "--queue FILE --name NAME" appended; NULL: ours */
    int max_attempts;          /* leases per job before it is reported as infra; 0 = 3 */
    const char *queue;         /* of 'musacoder worker's that are there already: none is started; NULL: a private one */
};

struct verdict_request {
    const char *task_code;  /* the task file's text */
    const char *task_name;  /* "19_ReLU" */
    const char *candidate;  /* a response, or a Python file's text */
    bool is_response;       /* extract the code from it first */
    const json_t *options;  /* {"protocol","trials","timeout","backend",...}: eval's flags; NULL: defaults */
    const json_t *sidecar;  /* struct task's: variants, tolerances; NULL: none */
};

int verdict_service_start(const struct verdict_config *c, struct verdict_service **ret, struct err *e);
void verdict_service_stop(struct verdict_service *s); /* NULL is fine */

/* Copies the requests and returns at once: workers begin while the caller goes on (sampling, training). */
int verdict_batch_submit(struct verdict_service *s, const struct verdict_request *items, int n,
                         struct verdict_batch **ret, struct err *e);
/* Blocks until all are there. on_progress (may be NULL) is called with (done, n) on change. Ctrl-C: -1 with ERR_STOP.
 * *ret: a new json array of n verdict records (schema musacoder.verdict/1); an item whose worker kept dying has
 * "status":"infra". The batch is freed in every case. */
int verdict_batch_wait(struct verdict_service *s, struct verdict_batch *b, void (*on_progress)(int done, int n, void *),
                       void *ctx, json_t **ret, struct err *e);
/* How many are there now; does not block. -1: the queue cannot be asked. */
int verdict_batch_done(struct verdict_service *s, struct verdict_batch *b, struct err *e);
void verdict_batch_cancel(struct verdict_service *s, struct verdict_batch *b);

/* Looks after the workers and waits until the queue changes, a quarter of a second at most. Ctrl-C: -1 with ERR_STOP.
 * */
int verdict_service_wait(struct verdict_service *s, struct err *e);

/* Shorthand: submit and wait. */
int verdict_many(struct verdict_service *s, const struct verdict_request *items, int n, json_t **ret, struct err *e);

#endif
