/* queue.h - at-least-once job queue on a SQLite file or a PostgreSQL server. A claimed job is leased, not
 * removed: if the worker dies, the lease expires and another worker gets it. A lease is a number: a worker
 * that lost it is fenced, and nothing that it finishes afterwards is kept.
 *
 * A job is a payload of text under a key; a key has one job and one result. A lane names who may do it
 * ("run:sim", "build"). Within a lane the higher priority goes first; owners of equal priority take turns,
 * whatever each has waiting. Leases run on the database's clock. Any number of processes and threads; each
 * thread opens its own struct queue. */
#ifndef MC_QUEUE_H
#define MC_QUEUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct queue;

#define QUEUE_ATTEMPTS 3 /* leases of a job, unless it says otherwise */
#define QUEUE_VERSION 5  /* of the tables */

enum queue_state { QUEUE_WAITING, QUEUE_LEASED, QUEUE_DONE, QUEUE_FAILED, QUEUE_CANCELLED };

struct queue_item {
    const char *key, *payload;
    const char *lane;  /* NULL: "" */
    const char *owner; /* whose share it counts against; NULL: "" */
    int priority;      /* higher first */
    int attempts;      /* leases before it ends as failed; 0: QUEUE_ATTEMPTS */
};

struct queue_job {
    int64_t id;
    char *key, *payload; /* owned: queue_job_free */
    int attempt;         /* 1 for the first lease */
    int64_t lease;       /* proves that we are the holder */
};

struct queue_stats {
    int64_t waiting, leased, done, failed, cancelled;
    double oldest_s; /* how long the first of the waiting has waited; 0: none */
};

/* url: a path, whose file is made when missing, or "postgres://USER@HOST/DATABASE". */
int queue_open(const char *url, struct queue **ret, struct err *e);
void queue_close(struct queue *q); /* NULL is fine */

/* Puts a job, unless its key has one already; *ret_id: the key's job. Returns 1 if it is new, 0 if it was
 * there, -1. */
int queue_put(struct queue *q, const struct queue_item *item, int64_t *ret_id, struct err *e);
/* Takes the next waiting job of the lane (NULL: "") for lease_s seconds. Waits up to wait_s.
 * Returns 1 with a job, 0 if there was none, -1 on error. */
int queue_claim(struct queue *q, const char *lane, const char *worker, double lease_s, double wait_s,
                struct queue_job *ret, struct err *e);
void queue_job_free(struct queue_job *j);
/* Extends the lease. Returns 1 if still ours, 0 if it was lost or the job was cancelled (drop the work), -1
 * on error. */
int queue_heartbeat(struct queue *q, const struct queue_job *j, double lease_s, struct err *e);
/* Stores the result. Returns 1 if this lease's result is the job's, 0 if the lease was lost: nothing was
 * stored. -1. */
int queue_finish(struct queue *q, const struct queue_job *j, const char *result, struct err *e);
/* This attempt failed: the job waits again, or ends as failed with this reason if it has no attempts left. */
int queue_fail(struct queue *q, const struct queue_job *j, const char *reason, struct err *e);
/* Gives the job back undone, as if it had not been claimed: a worker that has to leave. */
int queue_give_back(struct queue *q, const struct queue_job *j, struct err *e);
/* Ends the leases of a dead worker at once, as if they had expired: this attempt counts, with the reason. How
 * many, or -1. */
int queue_release_worker(struct queue *q, const char *worker, const char *reason, struct err *e);
/* A job that has not ended ends as cancelled, at once. A worker that runs it hears so at its next heartbeat, and what
 * it finishes is not kept. Returns the job's state. */
int queue_cancel(struct queue *q, int64_t id, struct err *e);

/* A job's state (enum queue_state), with its result if it has ended (owned; the reason if it failed), or -1.
 * ret_result may be NULL. */
int queue_result(struct queue *q, int64_t id, char **ret_result, struct err *e);
/* What was asked: owned, or NULL (ERR_INPUT: no such job). */
char *queue_payload(struct queue *q, int64_t id, struct err *e);
/* Whose job it is: owned, or NULL (ERR_INPUT: no such job). */
char *queue_owner(struct queue *q, int64_t id, struct err *e);
/* The job of a key: 1 and its id, 0 if there is none, -1. */
int queue_find(struct queue *q, const char *key, int64_t *ret_id, struct err *e);
/* Ids of jobs that ended at *cursor or later, oldest first, at most n; sets *cursor. Begin with 0 for all. Lanes
 * "build:.." are left out: their jobs are parts of others. Jobs that ended within a quarter of a second before the
 * cursor come again, because commits overlap: look them up in a set. Returns how many, -1. */
int queue_ended(struct queue *q, double *cursor, int64_t *ids, int n, struct err *e);
/* Where queue_ended's cursor stands for "from now on". 0 or -1. */
int queue_ended_now(struct queue *q, double *ret_cursor, struct err *e);
/* The newest jobs of an owner (NULL: of all), at most n: new
 * [{"id","state","owner","lane","priority","attempt","worker", "waited_s"}], waited_s: since it was put, until it
 * ended; NULL: error. state: one of enum queue_state, or -1: any. */
json_t *queue_list(struct queue *q, const char *owner, int state, int n, struct err *e);
/* Waits until something in the queue may have changed (a write by anybody), at most wait_s. */
void queue_wait_change(struct queue *q, double wait_s);
int queue_forget(struct queue *q, int64_t id, struct err *e); /* removes an ended job */
/* Removes what ended more than keep_s ago, and workers that are gone. Returns how many jobs, or -1. */
int queue_sweep(struct queue *q, double keep_s, struct err *e);
/* Of all lanes but "build:..": those jobs are parts of others. */
int queue_stats(struct queue *q, struct queue_stats *ret, struct err *e);
/* Jobs of one owner that wait or run, or -1. */
int64_t queue_owner_load(struct queue *q, const char *owner, struct err *e);

/* Workers say that they are there by a leased row: {"lanes":[..],"device":..,...}. Returns 1, or 0 if this
 * worker is asked to drain (finish what it has and leave), or -1. */
int queue_worker_announce(struct queue *q, const char *worker, const char *info, double lease_s,
                          struct err *e);
int queue_worker_drain(struct queue *q, const char *worker,
                       struct err *e); /* 1 asked, 0 no such worker, -1 */
int queue_worker_gone(struct queue *q, const char *worker, struct err *e);
json_t *queue_workers(struct queue *q,
                      struct err *e); /* new: [{"name","info","leased","drain"}] of the living; NULL: error */

/* A word that belongs to the queue, made by whoever asks first (say 'fresh' to be it): the secret of the
 * judge's draws. */
char *queue_setting(struct queue *q, const char *name, const char *fresh,
                    struct err *e); /* owned; NULL: error */
/* Sets it, whatever it was. */
int queue_setting_set(struct queue *q, const char *name, const char *value, struct err *e);
/* Another name of a job, for as long as the job is kept. A name given again is the later job's. */
int queue_alias(struct queue *q, const char *name, int64_t id, struct err *e);
int queue_alias_find(struct queue *q, const char *name, int64_t *ret_id, struct err *e); /* 1, 0 none, -1 */

#endif
