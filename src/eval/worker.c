/* worker.c - 'worker' and 'eval --worker': claims jobs from a queue, several in flight, until the queue's owner goes
 * away: verdicts (queue/queue_ask.h), and builds for workers that only run (build_remote.h). Every thread holds its own
 * connection and renews its own leases. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build_remote.h"
#include "eval/eval.h"
#include "eval/request.h"
#include "eval/verdict/record.h"
#include "queue/queue.h"
#include "queue/queue_ask.h"
#include "store/blob.h"
#include "store/limit.h"

#define ANNOUNCE_S 5.0
#define ANNOUNCE_LEASE_S 20.0

struct eval_worker {
    struct eval *ev; /* NULL: it builds alone */
    const struct eval_worker_config *c;
    pid_t parent;
    atomic_bool drain, ended;
};

/* What a thread does with the jobs of its lane. */
struct trade {
    struct eval_worker *w;
    const char *lane;
    char *(*answer)(struct eval_worker *w, const struct queue_job *job, struct err *e);
};

#define RENEW_S 1.0 /* how soon a cancelled or lost job is left alone */

/* One lease being renewed while its owner works. */
struct renewal {
    struct queue *q;
    const struct queue_job *job;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool done;
    atomic_bool lost; /* somebody else has it, or nobody wants it any more */
};

/* The monotonic time in s seconds. */
static struct timespec worker_after(double s)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)s;
    return at;
}

/* A thread that renews a job's lease until done; sets r->lost once the job is no longer ours. */
static void *worker_renew_thread(void *arg)
{
    struct renewal *r = arg;
    struct timespec at;

    pthread_mutex_lock(&r->lock);
    while (!r->done && !atomic_load(&r->lost)) {
        at = worker_after(RENEW_S);
        if (pthread_cond_clockwait(&r->change, &r->lock, CLOCK_MONOTONIC, &at) != 0 && !r->done &&
            queue_heartbeat(r->q, r->job, VERDICT_LEASE_S, NULL) == 0)
            atomic_store(&r->lost, true);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* p: the request, or NULL. at_fault says whether trying again is hopeless ("request") or may help. */
static json_t *worker_refusal(const json_t *p, const struct err *why)
{
    const json_t *asked = json_object_get(p, "options");
    const struct eval_options o = EVAL_OPTIONS_DEFAULT;
    json_t *rec = record_refusal(json_str(p, "task_name", "task"), json_str(asked, "backend", o.backend),
                                 json_str(asked, "protocol", o.protocol), why->msg);
    bool hopeless = why->kind == ERR_INPUT && why->lack == LACK_NONE;

    json_object_set_new(rec, "at_fault", json_string(hopeless ? "request" : "judge"));
    return rec;
}

/* The verdict of a job as JSON text; NULL if we were interrupted. */
static char *worker_answer_run(struct eval_worker *w, const struct queue_job *job, struct err *e)
{
    struct err why = ERR_INIT;
    json_t *p = json_parse(job->payload, strlen(job->payload), "verdict request", &why), *rec = NULL;
    char *text = NULL;

    if (!p || request_judge(w->ev, p, NULL, 0, &rec, &why) < 0)
        rec = why.kind == ERR_STOP ? NULL : worker_refusal(p, &why);
    if (!rec)
        *e = why;
    if (rec)
        text = json_text(rec);
    json_decref(rec);
    json_decref(p);
    return text;
}

/* A worker that judges tends all of the cache. */
static void worker_tend_builds(const struct eval_worker_config *c)
{
    static const char *const folders[] = {"build", NULL};
    const struct cache_limit l = {.bytes = c->cache_limit, .grace_s = CACHE_GRACE_S, .every_s = CACHE_EVERY_S};
    struct cache_trimmed done;
    struct err e = ERR_INIT;
    char *root = path_cache("");

    if (l.bytes && cache_trim(root, folders, &l, 0, &done, &e) < 0)
        log_warn("the cache's limit: %s", e.msg);
    free(root);
}

/* Artefacts are fetched within minutes; whoever puts them there tidies up. */
static void worker_tend_artefacts(const struct eval_worker_config *c)
{
    struct err e = ERR_INIT;

    if (c->artefacts && blob_tidy(c->artefacts, c->artefacts_limit, c->artefacts_keep_s, CACHE_EVERY_S, &e) < 0)
        log_warn("the limit of '%s': %s", c->artefacts, e.msg);
}

/* Answers a build job; the answer is owned, NULL with e. */
static char *worker_answer_build(struct eval_worker *w, const struct queue_job *job, struct err *e)
{
    if (!w->ev)
        worker_tend_builds(w->c);
    worker_tend_artefacts(w->c);
    return build_remote_answer(job->payload, w->c->artefacts, w->c->no_jail, e);
}

/* What was not done: by us it was given back, by the machine it failed. */
static int worker_leave_job(struct queue *q, const struct queue_job *job, const struct err *why, struct err *e)
{
    return why->kind == ERR_STOP || stop_requested() ? queue_give_back(q, job, e) : queue_fail(q, job, why->msg, e);
}

/* The renewing thread uses our connection only while we do not: from here to its join. A job whose lease was
 * lost is left as it is: the queue would not take its result. */
static int worker_serve_job(const struct trade *t, struct queue *q, const struct queue_job *job, struct err *e)
{
    struct renewal r = {
        .q = q, .job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    bool renewing = pthread_create(&thread, NULL, worker_renew_thread, &r) == 0;
    struct err why = ERR_INIT;
    char *text;
    int rc;

    stop_also(&r.lost);
    text = t->answer(t->w, job, &why);
    stop_also(NULL);
    if (renewing) {
        pthread_mutex_lock(&r.lock);
        r.done = true;
        pthread_cond_signal(&r.change);
        pthread_mutex_unlock(&r.lock);
        pthread_join(thread, NULL);
    }
    rc = text ? queue_finish(q, job, text, e) : worker_leave_job(q, job, &why, e);
    free(text);
    return rc < 0 ? -1 : 0;
}

/* False once it is to stop, to drain, or has lost its parent. */
static bool worker_goes_on(const struct eval_worker *w)
{
    return !stop_requested() && !atomic_load(&w->drain) && (!w->c->child || getppid() == w->parent);
}

/* A queue that fails (its disk is full, its server is away) may be well again: what was claimed comes back when its
 * lease ends. A worker of a process that needs its answers now leaves instead. */
static bool worker_sit_out(struct eval_worker *w, const struct err *e)
{
    if (e->kind == ERR_STOP)
        return false;
    log_error("worker: %s%s", e->msg, w->c->child ? "" : "; it tries again");
    for (int i = 0; i < 20 && worker_goes_on(w); i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return !w->c->child;
}

/* 0, or -1: the worker ends first. */
static int worker_do_open_queue(struct eval_worker *w, struct queue **ret)
{
    struct err e = ERR_INIT;

    while (worker_goes_on(w)) {
        if (queue_open(w->c->queue, ret, &e) == 0)
            return 0;
        if (!worker_sit_out(w, &e))
            break;
    }
    return -1;
}

/* A thread of a worker: claims and serves jobs of its lane until it is told to stop or the machine fails. */
static void *worker_thread(void *arg)
{
    const struct trade *t = arg;
    struct eval_worker *w = t->w;
    struct err e = ERR_INIT;
    struct queue_job job;
    struct queue *q = NULL;
    int got = 0;

    if (worker_do_open_queue(w, &q) < 0)
        return NULL;
    while (worker_goes_on(w)) {
        got = queue_claim(q, t->lane, w->c->name, VERDICT_LEASE_S, 1.0, &job, &e);
        if (got == 1) {
            got = worker_serve_job(t, q, &job, &e);
            queue_job_free(&job);
        }
        if (got < 0 && !worker_sit_out(w, &e))
            break;
    }
    queue_close(q);
    return NULL;
}

/* Keeps the worker's row alive, and hears whether it is to drain. */
static void *worker_announce_thread(void *arg)
{
    struct eval_worker *w = arg;
    struct queue *q = NULL;
    struct err e = ERR_INIT;
    double said = -ANNOUNCE_S;

    if (worker_do_open_queue(w, &q) < 0)
        return NULL;
    while (!atomic_load(&w->ended)) {
        if (now_s() > said + ANNOUNCE_S) {
            said = now_s();
            if (queue_worker_announce(q, w->c->name, w->c->info ? w->c->info : "{}", ANNOUNCE_LEASE_S, &e) == 0)
                atomic_store(&w->drain, true);
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    queue_worker_gone(q, w->c->name, NULL);
    queue_close(q);
    return NULL;
}

/* Standard input is a pipe that the parent holds open (queue/verdict.c): its end is the parent's. */
static void *worker_lifeline_thread(void *arg)
{
    struct eval_worker *w = arg;
    struct pollfd p = {.fd = 0};
    struct stat st;

    if (fstat(0, &st) < 0 || !S_ISFIFO(st.st_mode))
        return NULL;
    while (!atomic_load(&w->ended))
        if (poll(&p, 1, 200) > 0 && (p.revents & (POLLHUP | POLLERR))) {
            kill(getpid(), SIGTERM);
            break;
        }
    return NULL;
}

int eval_worker(struct eval *ev, const struct eval_worker_config *c, struct err *e)
{
    struct eval_worker w = {.ev = ev, .c = c, .parent = getppid()};
    struct trade run = {&w, c->lane, worker_answer_run}, build = {&w, c->build_lane, worker_answer_build};
    int n_run = ev ? eval_jobs(ev) * 2 : 0, n = n_run + c->builds, started = 0;
    pthread_t *threads = xcalloc((size_t)n, sizeof *threads), announcer, watcher;
    bool announced = false, watched = false;

    if (c->child)
        watched = pthread_create(&watcher, NULL, worker_lifeline_thread, &w) == 0;
    else
        announced = pthread_create(&announcer, NULL, worker_announce_thread, &w) == 0;
    while (started < n && pthread_create(&threads[started], NULL, worker_thread, started < n_run ? &run : &build) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&w.ended, true);
    if (announced)
        pthread_join(announcer, NULL);
    if (watched)
        pthread_join(watcher, NULL);
    free(threads);
    return started ? 0 : err_set(e, ERR_ENV, "cannot start a worker thread");
}
