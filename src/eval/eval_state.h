/* eval_state.h - the judge's long-lived state. Inside src/eval only. */
#ifndef MC_EVAL_EVAL_STATE_H
#define MC_EVAL_EVAL_STATE_H

#include <pthread.h>

#include "eval/server/identity.h"
#include "eval/server/judge_server.h"
#include "store/store.h"

struct eval {
    struct judge_servers servers;
    struct identity identities[BACKENDS]; /* of servers, started or not */
    struct store *store;
    struct single_flight *flights; /* candidates that are being judged right now (eval.c) */
    pthread_cond_t landed;       /* one of them is not any more */
    pthread_mutex_t lock;        /* the store, identities, flights */
    struct daemon_client *daemon_client; /* who judges candidates of daemon_backend; NULL: this process does */
    const struct judge_backend *daemon_backend;
    char settings[65];           /* hash of settings.h's SETTINGS_ANSWER: goes into every key of a verdict */
    double trim_at; /* now_s() from when on the cache's size is looked at again; under lock */
};

#endif
