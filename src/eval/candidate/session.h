/* session.h - the judge's conversation with one candidate's jailed process (runner/front_role.py).
 *
 * Clock: only time in which the candidate runs counts against the budget, on a shared device as schedule.h says, else
 * as proc/run_clock.h does.
 * While a build request is served the clock stands still and the run slot is free for others. */
#ifndef MC_EVAL_SESSION_H
#define MC_EVAL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "eval/build/build.h"
#include "eval/schedule/schedule.h"
#include "proc/forkserver.h"
#include "proc/frame.h"

struct eval_options;
struct judge_server;

enum call_fault {
    CALL_OK,
    CALL_TIMEOUT, /* the run budget is used up */
    CALL_DIED,    /* the process ended: session->end says how */
    CALL_FORGED,  /* bytes on the channel that are not our protocol */
    CALL_INFRA    /* our fault or the machine's */
};

#define SESSION_MAX_BUILDS 32

struct session {
    struct judge_server *server;
    const struct eval_options *opt;
    struct child *child;
    pid_t device_pid;     /* of the process that runs its kernels, whose run time counts too; 0: none */
    struct child_end end; /* valid after CALL_DIED */
    bool ended, slot, alone;
    struct device_lock device_lock; /* a share of the device while it has a slot, where the device has a clock */
    double used_s;        /* run time so far */
    double build_s;       /* wall time spent serving builds */
    double wait_s;        /* wall time spent waiting for a run or build slot, and for the device */
    double wait_device_s; /* of this, for the device */
    int builds, builds_failed, builds_cached;
    int builds_refused;   /* failed, and what is missing is a vendor's library: legality's matter, not the compiler's */
    double compile_ms;    /* sum over requests of the time that compiling takes on a cache miss */
    bool build_timed_out;
    json_t *sources;      /* {"cuda_source": text} of the last build: findings name lines of it */
    json_t *diagnostics;  /* of failed builds */
    json_t *dropped;      /* of all builds: flags of the candidate that no compiler got, each once */
    json_t *findings;     /* of the builds: {"kind","name"}, what libraries refer to and must not */
    json_t *error;        /* text of the first failed build, or NULL */
    char *built;          /* path of the last library that was built, or NULL */
    int (*on_image)(void *ctx, const char *path, struct err *e); /* of a build's device code; NULL: nobody wants it */
    void *image_ctx;
};

/* alone: nobody else may use the device while this one has a slot. */
int session_open(struct judge_server *sv, const struct eval_options *o, bool alone,
                 struct session **ret, struct err *e);
/* Sends a request, serves builds, waits for the reply. ret is filled on CALL_OK only (frame_free it). */
enum call_fault session_call(struct session *s, const json_t *head, const char *blob, size_t n_blob, struct frame *ret,
                             struct err *e);
/* As session_call, with descriptors instead of a blob; the caller keeps its own. */
enum call_fault session_give(struct session *s, const json_t *head, const int *fds, int n, struct frame *ret,
                             struct err *e);
/* Line 'line' of the source that findings call 'file', without its indentation; false if there is none. */
bool session_source_line(const struct session *s, const char *file, int64_t line, char *ret, size_t n);
/* Ends the process, if it has not ended, and returns what it wrote to its output. Valid until session_close. */
const char *session_output(struct session *s);
/* Gives slot and share of the device away, and takes them again (waits): for who wants the device alone. */
void session_rest(struct session *s);
void session_wake(struct session *s);
/* between two calls: to whoever wants the device alone, and waits until that is done */
void session_give_way(struct session *s);
void session_close(struct session *s); /* kills the process and waits until it is gone; NULL is fine */

#endif
