/* eval.h - MooreEval: from a task and a candidate to a verdict record.
 *
 * struct eval owns the fork server, the verdict cache and the slots for running and compiling. eval_one is thread-safe:
 * call it from as many threads as candidates should be in flight; a candidate that waits for its build holds no run
 * slot, so compiling and running go side by side. */
#ifndef MC_EVAL_H
#define MC_EVAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "eval/server/options.h"
#include "task/task.h"

struct eval;

/* Can this backend be used here? Milliseconds; starts nothing. ERR_INPUT: no such backend. ERR_ENV with
 * one sentence: no Python, compiler, GPU. */
int eval_backend_check(const char *backend, struct err *e);

/* Milliseconds without 'start'. ERR_ENV, here or from eval_one: no Python, compiler, jail, GPU. */
int eval_open(const struct eval_config *c, struct eval **ret, struct err *e);
void eval_close(struct eval *ev); /* NULL is fine */
int eval_jobs(const struct eval *ev);

/* Returns 0 and a new verdict record: from the cache ("cached": true; milliseconds, nothing is started), from a
 * thread that is judging the same candidate right now (single flight, the same mark), or judged. An infra verdict has
 * been retried twice. Returns -1 with ERR_INPUT when the task itself is unusable (no verdict about the candidate is
 * possible), ERR_STOP for Ctrl-C. */
int eval_one(struct eval *ev, const struct task *task, const struct eval_candidate *c, const struct eval_options *o,
             json_t **ret, struct err *e);

/* Many candidates of one task, several in flight. each() is called in order of the items, from the caller's thread, as
 * soon as an item and all before it are done; verdict is borrowed. Stops at the first -1 (of eval_one or of each). */
int eval_many(struct eval *ev, const struct task *task, const struct eval_candidate *cs, int n,
              const struct eval_options *o,
              int (*each)(int i, const json_t *verdict, void *ctx, struct err *e), void *ctx, struct err *e);

/* What ends an owner (daemon/daemon.h): nobody asked for so long. $MUSACODER_OWNER_IDLE, for tests, else DAEMON_IDLE_S.
 * Serves the socket of the backend of c until then; digest: as who starts it knows it. */
int eval_daemon_run(const struct eval_config *c, const char *digest, struct err *e);

struct eval_worker_config {
    const char *queue; /* url */
    const char *name;  /* of the worker, unique in its queue */
    const char *lane;  /* whose jobs it judges; NULL: "" */
    const char *build_lane; /* whose builds it makes for workers that only run */
    int builds;             /* so many of them at once; 0: none */
    const char *artefacts;  /* of those builds: build_remote.h */
    uint64_t artefacts_limit; /* bytes there; 0: no limit */
    double artefacts_keep_s;  /* how long they stay there; 0: for good */
    bool no_jail;           /* of those builds */
    uint64_t cache_limit;   /* without ev: bytes that builds may take; 0: no limit */
    bool child;        /* it ends when its parent does, and announces itself to nobody (verdicts/verdict_service.h) */
    const char *info;  /* JSON text: what it says of itself to the queue, unless it is a child */
};

/* ev: NULL for a worker that builds alone. Takes jobs of a verdict queue until the process is stopped, its parent
 * goes away, or the queue asks it to drain. What it has then is given back (stop) or finished (drain). */
int eval_worker(struct eval *ev, const struct eval_worker_config *c, struct err *e);

#endif
