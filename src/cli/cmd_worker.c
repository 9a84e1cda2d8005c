/* cmd_worker.c - 'musacoder worker': takes jobs from a queue and judges them, until it is stopped or drained. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include "queue/queue.h"

static const struct opt rows[] = {
    {"worker", "queue", OPT_STR, NULL, "the queue: a file, or postgres://USER@HOST/DATABASE"},
    {"worker", "backend", OPT_STR, "sim", "whose jobs it takes: sim, cuda"},
    {"worker", "jobs", OPT_INT, "0", "candidates at once; 0 = 1.5 for each CPU, on a GPU 3"},
    {"worker", "name", OPT_STR, NULL, "its name in the queue; default HOST-PID"},
    {"worker", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail"},
    {"worker", "cache-limit", OPT_STR, "10GiB", "size of the cache folder; 0 = no limit"},
    {0},
};

static char *default_name(void)
{
    char host[256] = "host";

    gethostname(host, sizeof host - 1);
    return xasprintf("%s-%d", host, (int)getpid());
}

static char *info_of(const struct opts *o, const struct eval *ev)
{
    char host[256] = "host", *text;
    json_t *v;

    gethostname(host, sizeof host - 1);
    v = json_pack("{s:s,s:s,s:i,s:i}", "backend", opts_str(o, "backend"), "host", host, "pid", (int)getpid(), "jobs",
                  eval_jobs(ev));
    text = json_text(v);
    json_decref(v);
    return text;
}

static int work(const struct opts *o, struct eval *ev, struct err *e)
{
    char *name = opts_has(o, "name") ? xstrdup(opts_str(o, "name")) : default_name(), *info = info_of(o, ev);
    char *lane = xasprintf("run:%s", opts_str(o, "backend"));
    int rc;

    fprintf(stderr, "worker %s: takes '%s' from %s, %d candidates at once\n", name, lane, opts_str(o, "queue"),
            eval_jobs(ev));
    rc = eval_worker(
        ev, &(struct eval_worker_config){.queue = opts_str(o, "queue"), .name = name, .lane = lane, .info = info}, e);
    free(lane);
    free(info);
    free(name);
    return rc < 0 ? -1 : EXIT_OK;
}

/* The secret of the draws is the queue's: all of its workers judge on the same data. $MUSACODER_SECRET is what the first
 * one proposes; without it, random. */
static int take_secret(const char *url, struct err *e)
{
    const char *env = getenv("MUSACODER_SECRET");
    char fresh[65], *secret;
    unsigned char raw[32];
    struct queue *q;

    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return err_sys(e, "no random numbers");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(fresh + 2 * i, 3, "%02x", raw[i]);
    if (queue_open(url, &q, e) < 0)
        return -1;
    secret = queue_setting(q, "judge-secret", env && *env ? env : fresh, e);
    queue_close(q);
    if (!secret)
        return -1;
    if (env && *env && strcmp(env, secret))
        log_warn("MUSACODER_SECRET is not what this queue's workers use; the queue's is taken");
    setenv("MUSACODER_SECRET", secret, 1);
    free(secret);
    return 0;
}

static int worker_run(const struct opts *o, struct err *e)
{
    struct eval_config c = {.jobs = (int)opts_int(o, "jobs"),
                            .no_jail = !strcmp(opts_str(o, "jail"), "none"),
                            .backend = opts_str(o, "backend"),
                            .start = true};
    struct eval *ev;
    int rc;

    if (!opts_has(o, "queue"))
        return err_set(e, ERR_INPUT, "no queue; give --queue FILE or --queue postgres://USER@HOST/DATABASE");
    if (!strstr(opts_str(o, "queue"), "://") && !file_exists(opts_str(o, "queue")))
        return err_set(e, ERR_INPUT, "no queue at '%s'; start 'musacoder serve --queue %s' first", opts_str(o, "queue"),
                       opts_str(o, "queue"));
    if (o->n_args > 0)
        return err_set(e, ERR_INPUT, "unexpected '%s'; a worker takes its work from --queue", o->args[0]);
    if (size_parse("cache-limit", opts_str(o, "cache-limit"), &c.cache_limit, e) < 0 ||
        eval_backend_check(c.backend, e) < 0 || take_secret(opts_str(o, "queue"), e) < 0 || eval_open(&c, &ev, e) < 0)
        return -1;
    rc = work(o, ev, e);
    eval_close(ev);
    return rc;
}

const struct command cmd_worker = {
    "worker",
    "judge what a queue holds",
    "--queue URL [options]",
    "Takes verdict jobs from a queue, one of 'musacoder serve' for instance, and judges them. Any number of workers "
    "on any\n"
    "number of machines share a queue; a worker that dies loses nothing: its jobs' leases expire and others take "
    "them.\n"
    "SIGTERM and Ctrl-C give the jobs in hand back and end it; the server's /v1/workers/NAME/drain lets it finish "
    "them.\n"
    "Exit code: 0 stopped or drained, 2 usage, 3 the machine is unfit ('musacoder doctor').\n\n",
    rows,
    worker_run};
