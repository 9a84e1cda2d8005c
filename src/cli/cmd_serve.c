/* cmd_serve.c - 'musacoder serve': the judge over HTTP, with workers of its own on this machine. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "chat/endpoint.h"
#include "cli/cli.h"
#include "cli/reward_rows.h"
#include "eval/eval.h"
#include "queue/queue.h"
#include "serve/serve.h"

#define RESTART_S 2.0 /* a worker that ends is started again after this */
#define GRACE_S 5.0   /* from SIGTERM to SIGKILL */

static const struct opt rows[] = {
    {"serve", "queue", OPT_STR, NULL,
     "the queue: a file, or postgres://USER@HOST/DATABASE; default: a file in the data folder"},
    {"serve", "address", OPT_STR, "127.0.0.1", "where it listens; other machines need --tokens",
     INTO(struct serve_config, address)},
    {"serve", "port", OPT_INT, "8642", "0 = any free one", INTO(struct serve_config, port)},
    {"serve", "tokens", OPT_STR, NULL, 
     "a file of lines 'TOKEN OWNER [operator]'; owners share the judge fairly and see their own jobs; operators see "
     "all, and drain workers", INTO(struct serve_config, tokens)},
    {"serve", "host", OPT_STR, NULL,
     "without tokens: names besides localhost and addresses that it may be called by, commas between",
     INTO(struct serve_config, host)},
    {"serve", "backend", OPT_STR, "sim", "of requests that name none, and of the workers",
     INTO(struct serve_config, backend)},
    REWARD_ROWS("serve"),
    {"serve", "workers", OPT_INT, "1",
     "workers on this machine; 0 = none: others run 'musacoder worker --queue URL'"},
    {"serve", "threads", OPT_INT, "4", "threads that answer requests", INTO(struct serve_config, threads)},
    {"serve", "wait-max", OPT_REAL, "600", "seconds a call waits for its verdicts; then it gets tickets",
     INTO(struct serve_config, wait_s)},
    {"serve", "keep-hours", OPT_REAL, "24", "how long results are kept"},
    {"serve", "queue-max", OPT_INT, "100000", "jobs in the queue; beyond it requests get 429",
     INTO(struct serve_config, queue_max)},
    {"serve", "owner-max", OPT_INT, "0", "jobs of one owner in the queue; 0 = no limit",
     INTO(struct serve_config, owner_max)},
    {"serve", "compat", OPT_CHOICE, "none", "none|kernelgym: also answer the endpoints of KernelGYM's clients"},
    {"serve", "model", OPT_STR, NULL,
     "a model folder: answer OpenAI's /v1/chat/completions and /v1/completions from it"},
    {"serve", "model-name", OPT_STR, NULL, "as clients call it (default: the folder's name)"},
    {"serve", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs"},
    {"serve", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of the model's operands on a device"},
    {"serve", "max-len", OPT_INT, "0", "tokens of a prompt and its answer; 0 = 8192, or what the model has"},
    {"serve", "max-batch", OPT_INT, "16", "samples drawn at a time; fewer if memory does not suffice"},
    {0},
};

struct serve_pool {
    pid_t *pid;
    double *ended; /* when it ended, for the pause before the next */
    int n;
    const char *queue, *backend;
};

/* Starts worker i of the pool as a child that ends with us. */
static void serve_start_worker(struct serve_pool *p, int i)
{
    char *name = xasprintf("local-%d-%d", (int)getpid(), i);
    pid_t parent = getpid();

    if ((p->pid[i] = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent)
            execl("/proc/self/exe", "musacoder", "worker", "--queue", p->queue, "--backend", p->backend, "--name",
                  name, (char *)NULL);
        _exit(127);
    }
    if (p->pid[i] < 0)
        p->pid[i] = 0;
    free(name);
}

/* What a dead worker had is free at once, not when its leases end. */
static void serve_release(const struct serve_pool *p, int i)
{
    char *name = xasprintf("local-%d-%d", (int)getpid(), i);
    struct queue *q = NULL;

    if (queue_open(p->queue, &q, NULL) == 0)
        queue_release_worker(q, name, "the worker that judged it died, each time", NULL);
    queue_close(q);
    free(name);
}

/* Starts workers that ended, not more often than each RESTART_S. */
static void serve_look_after(struct serve_pool *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->pid[i] && waitpid(p->pid[i], NULL, WNOHANG) == p->pid[i]) {
            p->pid[i] = 0;
            p->ended[i] = now_s();
            log_warn("worker %d ended; it is started again", i);
            serve_release(p, i);
        }
        if (!p->pid[i] && now_s() > p->ended[i] + RESTART_S)
            serve_start_worker(p, i);
    }
}

/* Ends all workers, by SIGKILL after GRACE_S. */
static void serve_stop_workers(struct serve_pool *p)
{
    double until = now_s() + GRACE_S;

    for (int i = 0; i < p->n; i++)
        if (p->pid[i])
            kill(p->pid[i], SIGTERM);
    for (int i = 0; i < p->n; i++)
        while (p->pid[i] && waitpid(p->pid[i], NULL, WNOHANG) == 0) {
            if (now_s() > until)
                kill(p->pid[i], SIGKILL);
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
}

/* Keeps the workers running until the server is stopped. */
static void serve_until_stopped(const struct serve_config *c, int workers)
{
    struct serve_pool p = {.n = workers, .queue = c->queue, .backend = c->backend};

    p.pid = xcalloc((size_t)workers + 1, sizeof *p.pid);
    p.ended = xcalloc((size_t)workers + 1, sizeof *p.ended);
    for (int i = 0; i < workers; i++)
        p.ended[i] = -RESTART_S;
    while (!stop_requested()) {
        serve_look_after(&p);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    serve_stop_workers(&p);
    free(p.pid);
    free(p.ended);
}

/* ERR_INPUT for an option out of its range. */
static int serve_check(const struct opts *o, struct err *e)
{
    if (opts_has(o, "queue") && folder_check_above(opts_str(o, "queue"), "a queue", e) < 0)
        return -1;
    if (opts_int(o, "port") < 0 || opts_int(o, "port") > 65535)
        return err_set(e, ERR_INPUT, "--port is 0 to 65535");
    if (opts_int(o, "threads") < 1 || opts_int(o, "threads") > 256)
        return err_set(e, ERR_INPUT, "--threads is 1 to 256");
    if (opts_int(o, "workers") < 0 || opts_int(o, "workers") > 256)
        return err_set(e, ERR_INPUT, "--workers is 0 to 256");
    if (opts_int(o, "max-len") < 0 || opts_int(o, "max-len") > 1 << 24)
        return err_set(e, ERR_INPUT, "--max-len starts at 0");
    if (opts_int(o, "max-batch") < 1 || opts_int(o, "max-batch") > 4096)
        return err_set(e, ERR_INPUT, "--max-batch is 1 to 4096");
    if (opts_int(o, "workers") > 0 && eval_backend_check(opts_str(o, "backend"), e) < 0)
        return -1;
    return 0;
}

/* A misspelt option is the caller's mistake, and no worker has to find it. */
static int serve_check_options(const json_t *options, struct err *e)
{
    struct eval_options ignored;

    return eval_options_parse(options, &ignored, e);
}

static void serve_stop_model(void *endpoint)
{
    endpoint_stop(endpoint);
}

/* The model's routes, when there is a model. */
static int serve_open_model(const struct opts *o, struct endpoint **ret, struct serve_config *c, struct err *e)
{
    struct endpoint_config m = {.dir = opts_str(o, "model"),
                                .name = opts_str(o, "model-name"),
                                .device = opts_str(o, "device"),
                                .dtype = opts_str(o, "dtype"),
                                .max_len = (int)opts_int(o, "max-len"),
                                .max_batch = (int)opts_int(o, "max-batch")};

    if (!m.dir)
        return 0;
    if (endpoint_open(&m, ret, e) < 0)
        return -1;
    c->more = endpoint_routes();
    c->more_ctx = *ret;
    c->more_metrics = endpoint_metrics;
    c->more_stop = serve_stop_model;
    return 0;
}

/* The command; an exit code, or -1 with e. */
static int serve_run(const struct opts *o, struct err *e)
{
    char *file = path_data("serve/queue.db");
    struct serve_config c = {.queue = opts_has(o, "queue") ? opts_str(o, "queue") : file,
                             .keep_s = 3600 * opts_real(o, "keep-hours"), .reward = reward_params_of(o),
                             .check_options = serve_check_options, .own_workers = opts_int(o, "workers") > 0,
                             .kernelgym = !strcmp(opts_str(o, "compat"), "kernelgym")};
    struct serve *s = NULL;
    struct endpoint *model = NULL;
    int rc = serve_check(o, e) < 0 || opts_store(o, &c, e) < 0 || serve_open_model(o, &model, &c, e) < 0
                 ? -1 : serve_start(&c, &s, e);

    if (rc == 0) {
        if (model)
            fprintf(stderr, "serve: model '%s' on %s, /v1/chat/completions\n", endpoint_name(model),
                    opts_str(o, "device"));
        fprintf(stderr, "serve: http://%s:%d, queue %s\n", c.address, serve_port(s), c.queue);
        fprintf(stderr, "serve: what it does is at http://%s:%d/, its API at /docs\n", c.address, serve_port(s));
        serve_until_stopped(&c, (int)opts_int(o, "workers"));
        serve_stop(s);
        fprintf(stderr, "serve: stopped; jobs that have no verdict wait in %s for the next server\n", c.queue);
    }
    endpoint_close(model);
    free(file);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_serve = {
    "serve",
    "the judge over HTTP",
    "[options]",
    "Answers POST /v1/eval with verdicts: a task and 1 to 256 candidates go into a queue, workers judge them, and "
    "the call\n"
    "waits for the records ('?wait=SECONDS' at most; 0: tickets at once). The same content is judged once.\n"
    "  curl -d '{\"task\": {\"name\": \"relu\", \"code\": \"...\"}, \"candidates\": [{\"code\": \"...\"}]}' \\\n"
    "       http://127.0.0.1:8642/v1/eval\n"
    "With --model DIR it also answers as an OpenAI server does (/v1/models, /v1/chat/completions, /v1/completions), "
    "for any\n"
    "client: musacoder agent --model http://127.0.0.1:8642/v1 --task TASK.py\n"
    "Also: / (a page), /v1/jobs (the newest), /v1/jobs/ID (GET, DELETE), /v1/verdicts/SHA, /v1/runs (pass rates of\n"
    "runs that requests name), /v1/retry/draw, /v1/events (a stream), /v1/stats, /v1/workers/NAME/drain,\n"
    "/v1/models/ID, /healthz, /readyz, /metrics, /docs and /openapi.json, which describe them.\n"
    "Stop it with Ctrl-C or SIGTERM: jobs in hand go back into the queue, and the next server goes on with them.\n"
    "Exit code: 0 stopped, 2 usage, 3 the machine is unfit.\n\n",
    rows,
    serve_run, 0};
