/* job.h - one candidate's way through the stages: what the stages share. Inside src/eval only. */
#ifndef MC_EVAL_JOB_H
#define MC_EVAL_JOB_H

#include <pthread.h>
#include <semaphore.h>

#include "eval/baseline.h"
#include "eval/compare.h"
#include "eval/eval.h"
#include "eval/identity.h"
#include "eval/life.h"
#include "eval/reference.h"
#include "eval/room.h"
#include "eval/server.h"
#include "eval/session.h"
#include "proc/forkserver.h"
#include "store/store.h"

#define SLOW_S 0.3 /* of run time (share.h) for one call */
#define TASKS_AT_ONCE 24
#define TASKS_KEPT 2 /* of those that nobody is at, so many may keep their reference */
struct task_gate { /* tasks whose candidates are being judged on one device (eval.c); n 0: free */
    struct {
        char sha256[65];
        int n;
    } tasks[TASKS_AT_ONCE];
};

struct eval {
    struct eval_config config;
    struct server servers[BACKENDS];
    struct identity identities[BACKENDS]; /* of servers, started or not */
    struct desk_set desks[BACKENDS]; /* the judge's device, for values */
    struct store *store;
    struct task_gate gates[BACKENDS];
    struct flight *flights;      /* candidates that are being judged right now (eval.c) */
    pthread_cond_t landed;       /* one of them is not any more */
    pthread_mutex_t lock;        /* the store, identities, flights, the list of references */
    pthread_mutex_t server_lock; /* starts of fork servers */
    sem_t build_slots;
    struct reference_list refs;
    char secret[65];             /* goes into every seed; see reference_seed */
    struct baseline_list baselines;
    struct device *timer; /* opened by who first times, used while holding the device alone; NULL: not yet */
    bool stopping;
    double trim_at; /* now_s() from when on the cache's size is looked at again; under lock */
};

struct job {
    struct eval *ev;
    struct server *server; /* of the backend */
    const struct task *task;
    const struct eval_candidate *cand;
    const struct eval_options *opt;
    json_t *rec;
    struct extraction extraction;
    char *code;             /* NUL-terminated copy of the extracted program */
    struct reference *ref;  /* held; NULL before stage load */
    struct session *session; /* NULL before stage load */
    struct life *life;      /* NULL before the session is open */
    double reference_s;     /* wall time until the expected values were there */
    const char *params;     /* how parameters were made equal: "none", "name", "order", "seed" */
    int variant;            /* of the task's sidecar that the candidate is constructed for; 0: the task as written */
    struct room *claim;     /* of memory; NULL: nothing is claimed */
    bool yields;            /* until its first reference is there: ends where the claim cannot grow to what is needed */
    bool alone;             /* on the device: a try after one that others may have disturbed */
    bool ready;             /* the candidate was constructed */
    bool ran;               /* forward returned at least once */
    bool all_passed;        /* all draws that were run */
    bool slow;              /* it got fewer draws, because each call took longer than SLOW_S */
    double call_s;          /* of run time (share.h): the fastest call for a draw; 0: none ended */
    json_t *state;          /* the candidate's parameters and buffers: [{name,kind,dtype,shape}], owned */
    json_t *findings;       /* of the executor, owned array */
};

/* A stage returns 0 (go on), or -1 with *e for what is not the candidate's fault. It blames through the record. */
struct stage {
    const char *name;
    int (*run)(struct job *j, struct err *e);
    bool always; /* runs even after an earlier stage blamed */
};

extern const struct stage stage_extract, stage_load, stage_compile, stage_correct, stage_legality, stage_perf,
    stage_reward, stage_feedback;

bool job_blamed(const struct job *j);
/* reference_get into j->ref (what it held is released), on the clock of its own. */
int job_reference(struct job *j, const char *params, struct err *e);
/* Constructs ModelNew with the arguments of j->ref: sets ready and state, or blames. -1 only for infra. */
int job_construct(struct job *j, struct err *e);
/* Of a process that has ended: of the machine's memory it had half of what it may have, or more. */
bool job_was_large(const struct job *j);
/* Turns a failed session call into a blame (timeout, crash, tampering); -1 only for infra. */
int job_blame_call(struct job *j, enum call_fault fault, const char *stage, const char *during, struct err *e);
void job_blame_error(struct job *j, const json_t *head, const char *stage);
void compile_judge(struct job *j);
/* May draws that were right as they were lived, and not by replay, count as passed? */
bool legality_live(const struct job *j);
/* Does the evidence so far make the program a cheat, whatever comes? Runs nothing. */
bool legality_convicts(const struct job *j);
/* The judge's parameter values into the candidate, as far as they can be matched; sets params. -1 only for infra. */
int correct_parameters(struct job *j, struct err *e);
/* The record's "worst": output 'path' of a draw. New reference. */
json_t *correct_worst(const struct ref_draw *d, const char *path, const struct comparison *c, const struct tolerance *t);
/* Compares one reply with one draw. Fills the record's worst on the first failure. 1 = passed, 0 = failed. */
int correct_compare(struct job *j, const struct ref_draw *d, const struct frame *got, json_t **ret_worst,
                    double *max_abs, double *max_rel, struct err *e);

#endif
