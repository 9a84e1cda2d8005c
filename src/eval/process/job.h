/* job.h - the judge's long-lived state, and one candidate's way through the stages: what the stages share. Inside
 * src/eval only. */
#ifndef MC_EVAL_JOB_H
#define MC_EVAL_JOB_H

#include <pthread.h>
#include <semaphore.h>

#include "eval/check/compare.h"
#include "eval/process/identity.h"
#include "eval/process/options.h"
#include "eval/process/reference.h"
#include "eval/process/judge_server.h"
#include "eval/process/session.h"
#include "eval/schedule/schedule.h"
#include "proc/forkserver.h"
#include "store/store.h"

struct daemon_client;

struct eval {
    struct eval_config config;
    struct judge_server servers[BACKENDS];
    struct identity identities[BACKENDS]; /* of servers, started or not */
    struct device_context_set device_contexts[BACKENDS]; /* the judge's device, for values */
    struct store *store;
    struct single_flight *flights; /* candidates that are being judged right now (eval.c) */
    pthread_cond_t landed;       /* one of them is not any more */
    pthread_mutex_t lock;        /* the store, identities, flights, the list of references */
    pthread_mutex_t server_lock; /* starts of fork servers */
    sem_t build_slots;
    struct daemon_client *daemon_client; /* who judges candidates of daemon_backend; NULL: this process does */
    const struct judge_backend *daemon_backend;
    struct reference_list refs;
    char secret[65];             /* goes into every seed; see reference_seed */
    char settings[65];           /* hash of settings.h's SETTINGS_ANSWER: goes into every key of a verdict */
    struct baseline_list *baselines;
    void (*baselines_stop)(struct eval *ev, bool all, int idle); /* baseline_list_stop; NULL: there are no baselines */
    struct device *timer; /* opened by who first times, used while holding the device alone; NULL: not yet */
    bool stopping;
    double trim_at; /* now_s() from when on the cache's size is looked at again; under lock */
};

struct job {
    struct eval *ev;
    struct judge_server *server; /* of the backend */
    const struct task *task;
    const struct eval_candidate *cand;
    const struct eval_options *opt;
    const struct protocol *protocol; /* of opt */
    json_t *rec;
    struct extraction extraction;
    char *code;             /* NUL-terminated copy of the extracted program */
    struct reference *ref;  /* held; NULL before stage load */
    bool owns;              /* its areas (reference_own) */
    struct session *session; /* NULL before stage load */
    struct recording *recording; /* NULL before the session is open */
    double reference_s;     /* wall time until the expected values were there */
    const char *params;     /* how parameters were made equal: "none", "name", "order", "seed" */
    int variant;            /* of the task (task_variant) that the candidate is constructed for; 0: as it is written */
    bool second;            /* the candidate lives a second time, of a secret seed (reference.h, has_second) */
    struct reservation *reservation; /* of memory; NULL: nothing is claimed */
    bool yields;            /* until its first reference is there: ends where the claim cannot grow to what is needed */
    bool alone;             /* on the device: a try after one that others may have disturbed */
    bool ready;             /* the candidate was constructed */
    bool ran;               /* forward returned at least once */
    bool all_passed;        /* all draws that were run */
    bool reproduced;        /* a draw was written down for --repro */
    bool slow;              /* it got fewer draws, because each call took longer than stage.h's SLOW_S */
    double call_s;          /* of run time (schedule.h): the fastest call for a draw; 0: none ended */
    json_t *state;          /* the candidate's parameters and buffers: [{name,kind,dtype,shape}], owned */
    json_t *findings;       /* of the executor, owned array */
};

#endif
