/* queue.h - at-least-once job queue on SQLite. A claimed job is leased, not removed: if the worker dies, the lease
 * expires and another worker gets it. queue_finish is therefore idempotent (keyed by job id; the first result stays).
 *
 * Jobs are (key, payload) pairs of text; putting a key that is there already changes nothing and returns its id.
 * Any number of processes and threads; each opens its own struct queue. */
#ifndef MC_QUEUE_H
#define MC_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct queue;

struct queue_job {
    int64_t id;
    char *key, *payload; /* owned: queue_job_free */
    int attempt;         /* 1 for the first lease */
    int64_t lease;       /* proves that we are the holder */
};

struct queue_stats {
    int64_t waiting, leased, done, failed;
};

int queue_open(const char *path, struct queue **ret, struct err *e); /* made when missing */
void queue_close(struct queue *q);

int queue_put(struct queue *q, const char *key, const char *payload, int64_t *ret_id, struct err *e);
/* Takes the oldest waiting job (or one whose lease expired) for lease_s seconds. Waits up to wait_s.
 * Returns 1 with a job, 0 if there was none, -1 on error. */
int queue_claim(struct queue *q, const char *worker, double lease_s, double wait_s, struct queue_job *ret, struct err *e);
void queue_job_free(struct queue_job *j);
/* Extends the lease. Returns 1 if still ours, 0 if it was lost (drop the work), -1 on error. */
int queue_heartbeat(struct queue *q, const struct queue_job *j, double lease_s, struct err *e);
/* Stores the result; finishing twice, or after the lease was lost, is fine: the first result stays. */
int queue_finish(struct queue *q, int64_t id, const char *result, struct err *e);
/* Gives the job back; after max_attempts leases it ends as failed with this reason as its result. */
int queue_fail(struct queue *q, const struct queue_job *j, const char *reason, int max_attempts, struct err *e);
/* Hands the leases of a dead worker back at once, without waiting for them to expire. Returns how many, or -1. */
int queue_release_worker(struct queue *q, const char *worker, struct err *e);

/* Waiting jobs that had max_attempts leases end as failed with this reason: they keep killing their workers.
 * Returns how many, or -1. */
int queue_give_up(struct queue *q, int max_attempts, const char *reason, struct err *e);

/* Fetches the result of a job. Returns 1 and *ret_result (owned; *ret_failed for a failed job), 0 if not yet, -1. */
int queue_result(struct queue *q, int64_t id, char **ret_result, bool *ret_failed, struct err *e);
/* Waits until something in the queue may have changed (a write by anybody), at most wait_s. */
void queue_wait_change(struct queue *q, double wait_s);
int queue_forget(struct queue *q, int64_t id, struct err *e); /* removes a finished job */
int queue_stats(struct queue *q, struct queue_stats *ret, struct err *e);

#endif
