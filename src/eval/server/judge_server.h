/* judge_server.h - one fork server per backend (two device packages do not fit into one Python process), what it was
 * built with, and the slots on its device. Started when first asked for. Inside src/eval only. */
#ifndef MC_EVAL_SERVER_JUDGE_SERVER_H
#define MC_EVAL_SERVER_JUDGE_SERVER_H

#include <jansson.h>
#include <pthread.h>
#include <semaphore.h>

#include "eval/build/judge_backend.h"
#include "eval/server/device_context.h"
#include "eval/server/executors.h"
#include "eval/server/options.h"
#include "eval/server/spares.h"
#include "eval/schedule/schedule.h"
#include "proc/forkserver.h"

#define REFERENCE_LIST 32
struct reference_list {
    struct reference *items[REFERENCE_LIST]; /* most recent first */
};

/* What stays on a backend's device between candidates, whether or not its fork server runs. */
struct judge_kept {
    pthread_mutex_t lock; /* the lists, and who opens the timer */
    struct reference_list refs;
    struct baseline_list *baselines; /* NULL: there was none yet */
    void (*baselines_stop)(struct judge_kept *k, bool all, int idle); /* baseline_list_stop, once there is a list */
    struct spares spares;
    struct device_context_set contexts; /* the judge's device, for values */
    struct device *timer; /* opened by who first times, used while holding the device alone; NULL: not yet */
};

struct judge_server {
    const struct judge_backend *backend;
    struct judge_servers *all;
    struct judge_kept *kept;
    bool started;
    struct forkserver *fs; /* under lock: server_revive replaces it */
    struct forkserver *clients; /* under lock: of candidates, where their processes have no device; else NULL */
    /* under lock: for children that use torch.compile, NULL until server_expect_baseline */
    struct forkserver *compilers;
    struct executors executors; /* of candidates without a device, between two of them */
    json_t *info;          /* forkserver_info of the first one */
    char *toolchain;      /* everything outside task, candidate and options that a verdict depends on */
    char *compiler;       /* build_toolchain_id */
    char runner_sha[65];  /* of runner/ and the device package */
    char *device;         /* "NVIDIA H200, driver 580.159.04"; "" on sim */
    char *uuid;           /* names the device; NULL on sim */
    char *arch;           /* for build_opts: "sm_90"; NULL on sim */
    size_t device_memory; /* bytes; 0 on sim */
    char **devices, **folders; /* backend's; NULL-terminated or NULL */
    size_t n_devices, n_folders;
    sem_t run_slots;
    int device_lock;      /* daemon_device's; -1: there is none */
    struct schedule schedule; /* of claims, and of the device */
    _Atomic int beginning;   /* so many are being made right now, */
    _Atomic double begun_at; /* and the last one was ready at this time of now_s() */
};

/* The servers of one process, and what they share. */
struct judge_servers {
    struct eval_config config;
    struct judge_server each[BACKENDS];
    struct judge_kept kept[BACKENDS];
    pthread_mutex_t lock; /* starts of fork servers */
    sem_t build_slots;
    char secret[65];      /* goes into every seed; see reference_seed */
};

void servers_init(struct judge_servers *s, const struct eval_config *c, int build_slots);
/* What b's device is (nothing on sim), if all is there that judging needs but Python. ERR_ENV, which names what is
 * missing and the remedy. Starts nothing and makes no context. */
int judge_server_look(const struct judge_backend *b, struct device_facts *ret, struct err *e);
/* The server of backend b, started if it is not: seconds. ERR_ENV with the remedy when the backend cannot be used. */
int server_get(struct judge_servers *s, const struct judge_backend *b, struct judge_server **ret, struct err *e);
/* Something will be timed: what baselines import begins to be imported, where that is not done yet. */
void server_expect_baseline(struct judge_server *sv);
/* A fork server that died (out of memory, killed) is started again. */
int server_revive(struct judge_server *sv, struct err *e);
void servers_close(struct judge_servers *s); /* after what is kept was freed by its rooms */

struct server_child {
    const char *role;      /* of runner/main.py */
    struct jail_spec jail; /* devices and the driver's folders are added */
    bool client;           /* a candidate that has no device: nothing of one is given to it */
    bool compiles;         /* may start compilers (what torch.compile needs). Never with a candidate's code inside */
    bool published;        /* torch's own TF32 defaults, as KernelBench runs; else TF32 is off */
    /* of the device: CUDA_DEVICE_MAX_CONNECTIONS; 0: as many as the driver makes (8). Each takes time when the
     * context is made and when it ends, under a lock that all processes of a machine wait for: one is enough for one
     * stream, and twice as many processes start in a second then */
    int queues;
};
/* Spawns a child and waits until its device is ready, which is nobody's run time. A device that does not answer is
 * ERR_ENV: infra. *ret is freed by child_free. */
int server_spawn(struct judge_server *sv, const struct server_child *c, struct child **ret, struct err *e);
/* Does the device still answer a new process? ERR_ENV if not. One that somebody else is making answers for it: contexts
 * are dear. */
int server_check(struct judge_server *sv, struct err *e);

#endif
