/* baseline.h - what candidates of a task are compared with: its reference in a process of its own
 * (runner/baseline.py), kept while candidates of the task are judged. Times are taken with each candidate anew,
 * interleaved; what is slow to make, the times of torch.compile and of a vendor's library as multiples of eager's,
 * is kept under path_cache("baseline"), keyed by task, sizes, device, driver, versions and TF32 policy. Only a
 * quotient is kept, never a time: both its sides were measured in turn on one device.
 *
 * Trust: the process runs the task's own text, which comes from who asks for the verdict, and what torch.compile
 * makes of it. No candidate's code, no candidate's library and no message of a candidate reaches it. So it is the
 * one role beside foreign code that may start programs (Triton's and Inductor's assembler, compiler and linker);
 * for the rest it is jailed as a candidate is: no network, read-only /usr and Python, a user of its own, memory and
 * process limits, and what is compiled goes to the jail's private /tmp, which nobody else can read or write and
 * which ends with the process. A task that is itself hostile gains that it may start what lies in /usr, inside that
 * jail. */
#ifndef MC_EVAL_BASELINE_H
#define MC_EVAL_BASELINE_H

#include <pthread.h>
#include <stdbool.h>

#include "eval/perf/measure.h"
#include "eval/reference/reference.h"
#include "eval/schedule/schedule.h"
#include "proc/forkserver.h"

struct eval;
struct job;

struct baseline {
    char key[65];
    struct child *child;       /* NULL: not started, or given up */
    pthread_mutex_t lock;      /* one conversation at a time */
    bool compiling;            /* the conversation is baseline_compile's, which has neither lock nor device */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t change;
        bool compiling, started, compile_settled;
    } shown;                   /* as it was when 'lock' was last given back: for who must not wait for it */
    int users;
    json_t *fresh;             /* which input leaves change with every call */
    json_t *facts;             /* runner/baseline.py, put */
    struct perf_work work;
    bool compile_made, library_made; /* the process has the compiled model, and looked for a library's call */
    bool compile_known;        /* the next two are settled */
    struct perf_estimate compile_of_eager; /* value NaN: none */
    char *compile_error;       /* "Name: message", or NULL */
    bool compiles;             /* the process may start compilers */
    uint64_t area_of;          /* streamed.h's number of the area that the process has mapped; 0: none */
    bool library_known;        /* the next two are settled */
    struct perf_estimate library_of_eager; /* value NaN: no single call of a vendor's library does the task */
    char *library_call;        /* "mm", "softmax", ...; NULL: none */
};

#define BASELINE_LIST 32
#define BASELINE_IDLE 2 /* processes that stay although nobody uses them */
struct baseline_list {
    struct baseline *items[BASELINE_LIST]; /* most recent first */
};

struct baseline_place {
    const char *role, *device; /* of the fork server's table; "cuda:0", "cpu" */
    const char *machine;       /* device name, driver, torch version: what a time depends on */
    bool tf32;
};

/* The baseline of h's task. Never NULL. */
struct baseline *baseline_get(const struct reference_held *h, const struct baseline_place *p);
/* For all that follows: waits for its other users. Who locks has the device already, shared or alone (schedule.h), and
 * gives it back after unlocking: so nobody with the lock waits for the device. Another user may have given the
 * process up meanwhile, or have it compile: then there is nothing to do but to unlock, to give the device back and
 * to wait (baseline_wait). */
void baseline_lock(struct baseline *b);
void baseline_unlock(struct baseline *b);
/* Until nobody compiles. For who holds neither the lock nor the device; does not wait for the lock. ERR_STOP on
 * Ctrl-C. */
int baseline_wait(struct baseline *b, struct err *e);
/* When the lock was last given back, did its process run with all that is prepared once, torch.compile's part too where
 * with_compile? As baseline_wait. */
bool baseline_ready(struct baseline *b, bool with_compile);
/* Gives up its process if it has mapped another area than h's task has now, or may not compile what h's options
 * want compiled. Without the lock. */
void baseline_check(struct baseline *b, const struct reference_held *h);
/* Starts the process of a locked baseline if there is none, sharing the device. ERR_ENV: it cannot be had. */
int baseline_start(struct baseline *b, const struct reference_held *h, const struct baseline_place *p, struct err *e);
/* NULL is fine. The caller shares the device. */
void baseline_release(struct judge_kept *k, struct baseline *b);
/* The device has back what torch keeps for later. */
void baseline_rest(struct baseline *b);
void baseline_give_up(struct baseline *b); /* its process is not to be used again: the next holder starts another */

/* The draw of a reference whose inputs are the base of every call's data. */
const struct ref_draw *baseline_base(const struct reference *r);
/* torch.compile takes seconds of CPU, during which the device is others': so it goes in two steps.
 * baseline_begin_compile, with the lock: is there anything to compile? Then the conversation is the caller's, who
 * unlocks, gives the device back and calls baseline_compile, holding nothing: it takes a share of 'device' (schedule.h)
 * whenever the process asks for one, and ends what the first began. mode: "default", "max-autotune" (asks at once).
 * What fails is in compile_error, and a process that hangs or dies is given up; -1 only when the device could not
 * be had or on Ctrl-C: then nothing is known. Then, holding the device alone, baseline_time_compiled measures
 * compile / eager, once. */
bool baseline_begin_compile(struct baseline *b, const char *mode);
int baseline_compile(struct baseline *b, const char *mode, struct schedule *device, struct err *e);
extern double baseline_compile_s; /* of compiling, waiting for the device not counted; tests make it short */
void baseline_time_compiled(struct baseline *b, const char *mode, const struct measure_plan *p);

/* The same for the one call of a vendor's library that does the whole task: baseline_library looks for it
 * (runner/baseline.py, library), baseline_time_library measures library / eager, once; 1 where eager is that call. */
void baseline_library(struct baseline *b);
void baseline_time_library(struct baseline *b, const struct measure_plan *p);

void baseline_list_free(struct judge_kept *k);
/* Gives up processes: of all baselines, before the fork server that they are children of goes; or of those that nobody
 * uses, except the 'idle' most recent ones (the caller shares the device, where it has a clock). What is known about
 * them stays. Who talks to one sees it die. */
void baseline_list_stop(struct judge_kept *k, bool all, int idle);

#endif
