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
#include "base/machine.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "eval/build/build_remote.h"
#include "eval/eval.h"
#include "queue/queue.h"
#include "store/blob.h"

#define QUEUE_WAIT_S 60.0 /* for a queue that is not there yet */

struct worker_settings {
    struct eval_config judge;
    struct eval_worker_config work;
    const char *kind, *jail, *artefacts_limit, *cache_limit;
    double artefacts_keep_h;
    int device, builds;
};

static const struct opt rows[] = {
    {"worker", "queue", OPT_STR, NULL, "the queue: a file, or postgres://USER@HOST/DATABASE",
     INTO(struct worker_settings, work.queue)},
    {"worker", "backend", OPT_STR, "sim", "whose jobs it takes: sim, cuda, musa",
     INTO(struct worker_settings, judge.backend)},
    {"worker", "kind", OPT_CHOICE, "both", "both|build|run: all of it, compile for others, or leave compiling to them",
     INTO(struct worker_settings, kind)},
    {"worker", "jobs", OPT_INT, "0", "candidates at once; 0 = 1.5 for each CPU, on a GPU 3",
     INTO(struct worker_settings, judge.jobs)},
    {"worker", "builds", OPT_INT, "0", "kind build: compilers at once; 0 = one for each CPU",
     INTO(struct worker_settings, builds)},
    {"worker", "artefacts", OPT_STR, NULL, "where builds above 1 MiB travel: a shared folder, or s3://BUCKET/PREFIX",
     INTO(struct worker_settings, work.artefacts)},
    {"worker", "artefacts-keep", OPT_REAL, "24", "hours that a build stays in that folder; 0 = for good",
     INTO(struct worker_settings, artefacts_keep_h)},
    {"worker", "artefacts-limit", OPT_STR, "100GiB", "bytes in that folder: the oldest go; 0 = no limit",
     INTO(struct worker_settings, artefacts_limit)},
    {"worker", "device", OPT_INT, "-1", "which GPU it judges on, as the driver counts them; -1: the first",
     INTO(struct worker_settings, device)},
    {"worker", "name", OPT_STR, NULL, "its name in the queue; default HOST-PID",
     INTO(struct worker_settings, work.name)},
    {"worker", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail",
     INTO(struct worker_settings, jail)},
    {"worker", "cache-limit", OPT_STR, "10GiB", "size of the cache folder; 0 = no limit",
     INTO(struct worker_settings, cache_limit)},
    {0},
};

/* HOST-PID; owned. */
static char *worker_default_name(void)
{
    char host[256] = "host";

    gethostname(host, sizeof host - 1);
    return xasprintf("%s-%d", host, (int)getpid());
}

static bool worker_is_kind(const struct worker_settings *s, const char *kind)
{
    return !strcmp(s->kind, kind);
}

/* How many builds at a time; 0: this worker builds nothing. */
static int worker_builds_of(const struct worker_settings *s)
{
    return worker_is_kind(s, "run") ? 0 : s->builds > 0 ? s->builds
           : worker_is_kind(s, "both") ? 1 : machine_processors();
}

/* What the worker says of itself to the queue: JSON text, owned. ev NULL: it builds alone. */
static char *worker_info_of(const struct worker_settings *s, const struct eval *ev)
{
    char host[256] = "host", *text;
    json_t *v;

    gethostname(host, sizeof host - 1);
    v = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i}", "backend", s->judge.backend, "kind", s->kind, "host", host,
                  "pid", (int)getpid(), "jobs", ev ? eval_jobs(ev) : 0, "builds", s->work.builds);
    text = json_text(v);
    json_decref(v);
    return text;
}

/* Tells what the worker takes. */
static void worker_say(const struct worker_settings *s, const struct eval *ev)
{
    const struct eval_worker_config *c = &s->work;

    fprintf(stderr, "worker %s: takes", c->name);
    if (ev)
        fprintf(stderr, " '%s' from %s, %d candidate%s at once", c->lane, c->queue, eval_jobs(ev),
                buf_plural(eval_jobs(ev)));
    if (c->builds)
        fprintf(stderr, "%s '%s'%s%s, %d build%s at once", ev ? ";" : "", c->build_lane, ev ? "" : " from ",
                ev ? "" : c->queue, c->builds, buf_plural(c->builds));
    fprintf(stderr, "%s\n", worker_is_kind(s, "run") ? "; others build for it" : "");
}

/* Serves a queue until stopped. ev NULL: it builds alone. */
static int worker_work(struct worker_settings *s, struct eval *ev, struct err *e)
{
    char *name = s->work.name ? xstrdup(s->work.name) : worker_default_name(), *info;
    char *lane = xasprintf("run:%s", s->judge.backend), *build_lane = xasprintf("build:%s", s->judge.backend);
    int rc;

    s->work.builds = worker_builds_of(s);
    s->work.name = name, s->work.lane = lane, s->work.build_lane = build_lane;
    s->work.info = info = worker_info_of(s, ev);
    worker_say(s, ev);
    rc = eval_worker(ev, &s->work, e);
    free(build_lane);
    free(lane);
    free(info);
    free(name);
    return rc < 0 ? -1 : EXIT_OK;
}

/* A worker that runs judges; one that only runs has builders of the queue do the rest. */
static int worker_judge(struct worker_settings *s, struct err *e)
{
    struct build_remote *remote = NULL;
    struct eval *ev;
    int rc = -1;

    if (worker_is_kind(s, "run") && build_remote_open(s->work.queue, s->work.artefacts, &remote, e) < 0)
        return -1;
    if (eval_backend_check(s->judge.backend, e) == 0 && eval_open(&s->judge, &ev, e) == 0) {
        rc = worker_work(s, ev, e);
        eval_close(ev);
    }
    build_remote_close(remote);
    return rc;
}

/* Opens the queue if it is there. A missing file is ERR_ENV, as its server may still make it; a missing folder is
 * ERR_INPUT, as it is misspelt. */
static int worker_open_once(const char *url, struct queue **ret, struct err *e)
{
    char *folder = path_folder(url);
    enum err_kind kind = file_is_dir(folder) ? ERR_ENV : ERR_INPUT;

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
static void worker_choose_device(int device)
{
    char n[16];

    if (device < 0)
        return;
    snprintf(n, sizeof n, "%d", device);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setenv("CUDA_VISIBLE_DEVICES", n, 1);
}

/* *s borrows from o. ERR_INPUT for options that cannot be. */
static int worker_settings_of(const struct opts *o, struct worker_settings *s, struct err *e)
{
    *s = (struct worker_settings){.judge.start = true};
    if (opts_store(o, s, e) < 0)
        return -1;
    if (!s->work.queue)
        return err_set(e, ERR_INPUT, "no queue; give --queue FILE or --queue postgres://USER@HOST/DATABASE");
    if (size_parse("artefacts-limit", s->artefacts_limit, &s->work.artefacts_limit, e) < 0)
        return -1;
    if (s->artefacts_keep_h < 0)
        return err_set(e, ERR_INPUT, "--artefacts-keep is hours, from 0");
    if (s->work.artefacts && blob_check(s->work.artefacts, e) < 0)
        return -1;
    s->work.artefacts_keep_s = 3600 * s->artefacts_keep_h;
    s->judge.no_jail = s->work.no_jail = !strcmp(s->jail, "none");
    s->judge.daemon_client = !worker_is_kind(s, "run"); /* else its builds are the queue's: it judges itself */
    if (size_parse("cache-limit", s->cache_limit, &s->judge.cache_limit, e) < 0)
        return -1;
    s->work.cache_limit = s->judge.cache_limit;
    return 0;
}

/* The command; an exit code, or -1 with e. */
static int worker_run(const struct opts *o, struct err *e)
{
    struct worker_settings s;
    char *id;

    if (worker_settings_of(o, &s, e) < 0)
        return -1;
    worker_choose_device(s.device);
    if (worker_is_kind(&s, "build")) { /* needs a compiler, and neither a device nor PyTorch */
        if (!(id = build_toolchain_id(&(struct build_opts){.target = s.judge.backend}, e)))
            return -1;
        free(id);
    }
    if (worker_take_secret(s.work.queue, e) < 0)
        return -1;
    return worker_is_kind(&s, "build") ? worker_work(&s, NULL, e) : worker_judge(&s, e);
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
