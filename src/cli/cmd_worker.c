/* cmd_worker.c - 'musacoder worker': takes jobs from a queue and judges them, until it is stopped or drained. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "eval/build/build_remote.h"
#include "eval/eval.h"
#include "queue/queue.h"
#include "store/blob.h"

#define QUEUE_WAIT_S 60.0 /* for a queue that is not there yet */

static const struct opt rows[] = {
    {"worker", "queue", OPT_STR, NULL, "the queue: a file, or postgres://USER@HOST/DATABASE"},
    {"worker", "backend", OPT_STR, "sim", "whose jobs it takes: sim, cuda, musa"},
    {"worker", "kind", OPT_CHOICE, "both", "both|build|run: all of it, compile for others, or leave compiling to them"},
    {"worker", "jobs", OPT_INT, "0", "candidates at once; 0 = 1.5 for each CPU, on a GPU 3"},
    {"worker", "builds", OPT_INT, "0", "kind build: compilers at once; 0 = one for each CPU"},
    {"worker", "artefacts", OPT_STR, NULL, "where builds above 1 MiB travel: a shared folder, or s3://BUCKET/PREFIX"},
    {"worker", "artefacts-keep", OPT_REAL, "24", "hours that a build stays in that folder; 0 = for good"},
    {"worker", "artefacts-limit", OPT_STR, "100GiB", "bytes in that folder: the oldest go; 0 = no limit"},
    {"worker", "device", OPT_INT, "-1", "which GPU it judges on, as the driver counts them; -1: the first"},
    {"worker", "name", OPT_STR, NULL, "its name in the queue; default HOST-PID"},
    {"worker", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail"},
    {"worker", "cache-limit", OPT_STR, "10GiB", "size of the cache folder; 0 = no limit"},
    {0},
};

static char *worker_default_name(void)
{
    char host[256] = "host";

    gethostname(host, sizeof host - 1);
    return xasprintf("%s-%d", host, (int)getpid());
}

static bool worker_is_kind(const struct opts *o, const char *kind)
{
    return !strcmp(opts_str(o, "kind"), kind);
}

/* How many builds at a time; 0: this worker builds nothing. */
static int worker_builds_of(const struct opts *o)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int n = (int)opts_int(o, "builds");

    return worker_is_kind(o, "run") ? 0 : n > 0 ? n : worker_is_kind(o, "both") || cpus < 1 ? 1 : (int)cpus;
}

/* ev NULL: it builds alone. */
static char *worker_info_of(const struct opts *o, const struct eval *ev)
{
    char host[256] = "host", *text;
    json_t *v;

    gethostname(host, sizeof host - 1);
    v = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i}", "backend", opts_str(o, "backend"), "kind", opts_str(o, "kind"),
                  "host", host, "pid", (int)getpid(), "jobs", ev ? eval_jobs(ev) : 0, "builds", worker_builds_of(o));
    text = json_text(v);
    json_decref(v);
    return text;
}

/* Tells what the worker takes. */
static void worker_say(const struct opts *o, const struct eval_worker_config *c, const struct eval *ev)
{
    fprintf(stderr, "worker %s: takes", c->name);
    if (ev)
        fprintf(stderr, " '%s' from %s, %d candidate%s at once", c->lane, c->queue, eval_jobs(ev),
                buf_plural(eval_jobs(ev)));
    if (c->builds)
        fprintf(stderr, "%s '%s'%s%s, %d build%s at once", ev ? ";" : "", c->build_lane, ev ? "" : " from ",
                ev ? "" : c->queue, c->builds, buf_plural(c->builds));
    fprintf(stderr, "%s\n", worker_is_kind(o, "run") ? "; others build for it" : "");
}

/* worker_check() has seen that it is a size. */
static uint64_t worker_artefacts_limit(const struct opts *o)
{
    uint64_t n = 0;

    size_parse("artefacts-limit", opts_str(o, "artefacts-limit"), &n, NULL);
    return n;
}

/* Serves a queue until stopped. */
static int worker_work(const struct opts *o, const struct eval_config *ec, struct eval *ev, struct err *e)
{
    char *name = opts_has(o, "name") ? xstrdup(opts_str(o, "name")) : worker_default_name(),
        *info = worker_info_of(o, ev);
    char *lane = xasprintf("run:%s", opts_str(o, "backend"));
    char *build_lane = xasprintf("build:%s", opts_str(o, "backend"));
    const struct eval_worker_config c = {.queue = opts_str(o, "queue"), .name = name, .lane = lane,
                                         .build_lane = build_lane, .builds = worker_builds_of(o),
                                         .artefacts = opts_str(o, "artefacts"),
                                         .artefacts_limit = worker_artefacts_limit(o),
                                         .artefacts_keep_s = 3600 * opts_real(o, "artefacts-keep"),
                                         .no_jail = ec->no_jail, .cache_limit = ec->cache_limit, .info = info};
    int rc;

    worker_say(o, &c, ev);
    rc = eval_worker(ev, &c, e);
    free(build_lane);
    free(lane);
    free(info);
    free(name);
    return rc < 0 ? -1 : EXIT_OK;
}

/* A worker that runs judges; one that only runs has builders of the queue do the rest. */
static int worker_judge(const struct opts *o, const struct eval_config *c, struct err *e)
{
    struct build_remote *remote = NULL;
    struct eval *ev;
    int rc = -1;

    if (worker_is_kind(o, "run") && build_remote_open(opts_str(o, "queue"), opts_str(o, "artefacts"), &remote, e) < 0)
        return -1;
    if (eval_backend_check(c->backend, e) == 0 && eval_open(c, &ev, e) == 0) {
        rc = worker_work(o, c, ev, e);
        eval_close(ev);
    }
    build_remote_close(remote);
    return rc;
}

/* Opens the queue if it is there. A missing file is ERR_ENV, as its server may still make it; a missing folder is
 * ERR_INPUT, as it is misspelt. */
static int worker_open_once(const char *url, struct queue **ret, struct err *e)
{
    char *folder = xstrdup(url), *slash = strrchr(folder, '/');
    enum err_kind kind = ERR_ENV;

    if (slash)
        slash[slash == folder] = 0;
    if (slash && !file_is_dir(folder))
        kind = ERR_INPUT;
    free(folder);
    if (!strstr(url, "://") && !file_exists(url))
        return err_set(e, kind, "no queue at '%s'; start 'musacoder serve --queue %s'", url, url);
    return queue_open(url, ret, e);
}

/* The queue's server may start after its workers. */
static int worker_open_queue(const char *url, struct queue **ret, struct err *e)
{
    double until = now_s() + QUEUE_WAIT_S;
    bool said = false;

    while (worker_open_once(url, ret, e) < 0) {
        if (e->kind != ERR_ENV || now_s() > until || stop_requested())
            return -1;
        if (!said)
            log_warn("%s; trying again for %.0f s", e->msg, QUEUE_WAIT_S);
        said = true;
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
    return 0;
}

/* The secret of the draws is the queue's: all of its workers judge on the same data. $MUSACODER_SECRET is what the
 * first one proposes; without it, random. */
static int worker_take_secret(const char *url, struct err *e)
{
    const char *env = getenv("MUSACODER_SECRET");
    char fresh[65], *secret;
    unsigned char raw[32];
    struct queue *q;

    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return err_sys(e, "no random numbers");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(fresh + 2 * i, 3, "%02x", raw[i]);
    if (worker_open_queue(url, &q, e) < 0)
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

/* The driver shows this process one GPU alone. */
static void worker_choose_device(const struct opts *o)
{
    char n[16];

    if (opts_int(o, "device") < 0)
        return;
    snprintf(n, sizeof n, "%d", (int)opts_int(o, "device"));
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setenv("CUDA_VISIBLE_DEVICES", n, 1);
}

static int worker_check(const struct opts *o, struct err *e)
{
    uint64_t n;

    if (!opts_has(o, "queue"))
        return err_set(e, ERR_INPUT, "no queue; give --queue FILE or --queue postgres://USER@HOST/DATABASE");
    if (size_parse("artefacts-limit", opts_str(o, "artefacts-limit"), &n, e) < 0)
        return -1;
    if (opts_real(o, "artefacts-keep") < 0)
        return err_set(e, ERR_INPUT, "--artefacts-keep is hours, from 0");
    return opts_has(o, "artefacts") ? blob_check(opts_str(o, "artefacts"), e) : 0;
}

/* The command; an exit code, or -1 with e. */
static int worker_run(const struct opts *o, struct err *e)
{
    struct eval_config c = {.jobs = (int)opts_int(o, "jobs"),
                            .no_jail = !strcmp(opts_str(o, "jail"), "none"),
                            .backend = opts_str(o, "backend"),
                            .start = true,
                            /* its builds are the queue's: it judges itself */
                            .daemon_client = !worker_is_kind(o, "run")};
    const struct build_opts target = {.target = c.backend};
    char *id;

    if (worker_check(o, e) < 0 || size_parse("cache-limit", opts_str(o, "cache-limit"), &c.cache_limit, e) < 0)
        return -1;
    worker_choose_device(o);
    if (worker_is_kind(o, "build")) { /* needs a compiler, and neither a device nor PyTorch */
        if (!(id = build_toolchain_id(&target, e)))
            return -1;
        free(id);
    }
    if (worker_take_secret(opts_str(o, "queue"), e) < 0)
        return -1;
    return worker_is_kind(o, "build") ? worker_work(o, &c, NULL, e) : worker_judge(o, &c, e);
}

const struct command cmd_worker = {
    "worker",
    "judge what a queue holds",
    "--queue URL [options]",
    "Takes verdict jobs from a queue, one of 'musacoder serve' for instance, and judges them. Any number of workers "
    "on any\n"
    "number of machines share a queue; a worker that dies loses nothing: its jobs' leases expire and others take "
    "them.\n"
    "Compiling and judging can be parted: '--kind build' takes the builds of others and needs no GPU and no PyTorch;\n"
    "'--kind run' needs no compiler. What was built travels through the queue, above 1 MiB through --artefacts, and\n"
    "is checked against its SHA-256.\n"
    "SIGTERM and Ctrl-C give the jobs in hand back and end it; the server's /v1/workers/NAME/drain lets it finish "
    "them.\n"
    "Exit code: 0 stopped or drained, 2 usage, 3 the machine is unfit ('musacoder doctor').\n\n",
    rows,
    worker_run, 0};
