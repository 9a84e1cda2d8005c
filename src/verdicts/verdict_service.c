/* verdict_service.c - one queue file and its worker processes, which are watched while somebody waits. */
#include "verdicts/verdict_service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "queue/queue_ask.h"
#include "queue/queue.h"

#define DEATHS_MAX 5      /* this many deaths in a row without one finished job: the worker cannot work here */
#define WAIT_S 0.25       /* how often workers are looked after while waiting */
#define STOP_GRACE_S 2.0  /* from SIGTERM to SIGKILL */

struct verdict_worker {
    pid_t pid; /* 0: not running */
    char name[32];
    int starts;
};

struct verdict_service {
    struct queue *q;
    char *folder, *file; /* of the queue that is ours; folder NULL: it is another's */
    bool own_folder;
    int lock;           /* of own_folder's: what we leave when we are killed is swept by the next; 0: none */
    struct verdict_worker *workers;
    int lifeline[2];    /* a pipe that nobody writes to: the workers read its end when we are gone; 0: none */
    int n_workers, jobs, max_attempts;
    char *const *argv;
    int deaths;         /* in a row */
    int64_t done_seen;  /* finished jobs at the last death */
};

struct verdict_asked { /* of one request; owned text, NULL: not said */
    char *task, *backend, *protocol;
};

struct verdict_batch {
    int64_t *ids;
    struct verdict_asked *asked; /* for records of our own */
    json_t **records;
    int n, done;
};

/* ---- workers ---- */

/* A worker's command line; the caller frees list and words. */
static char **verdict_worker_argv(struct verdict_service *s, const struct verdict_worker *w)
{
    char **argv = xcalloc(64, sizeof *argv);
    int n = 0;

    if (s->argv) {
        for (; s->argv[n] && n < 50; n++)
            argv[n] = xstrdup(s->argv[n]);
    } else {
        argv[n++] = xstrdup("/proc/self/exe");
        argv[n++] = xstrdup("eval");
        argv[n++] = xstrdup("--worker");
        argv[n++] = xstrdup("--jobs");
        argv[n++] = xasprintf("%d", s->jobs);
    }
    argv[n++] = xstrdup("--queue");
    argv[n++] = xstrdup(s->file);
    argv[n++] = xstrdup("--name");
    argv[n++] = xstrdup(w->name);
    return argv;
}

static char *verdict_log_path(struct verdict_service *s)
{
    return path_join(s->folder, "workers.log");
}

/* Starts a worker in a process group of its own. */
static int verdict_worker_start(struct verdict_service *s, struct verdict_worker *w, struct err *e)
{
    char **argv, *log = verdict_log_path(s);
    pid_t parent = getpid();
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    size_t n = 0;

    snprintf(w->name, sizeof w->name, "%d.%d.%d", (int)parent, (int)(w - s->workers), ++w->starts);
    argv = verdict_worker_argv(s, w);
    while (argv[n])
        n++;
    w->pid = fork();
    if (w->pid == 0) {
        setpgid(0, 0); /* Ctrl-C is ours: we decide what becomes of the workers */
        dup2(s->lifeline[0], 0); /* ends with this process, whichever thread forked: PDEATHSIG is a thread's */
        dup2(out, 1);
        dup2(out, 2);
        if (getppid() == parent)
            execv(argv[0], argv);
        _exit(127);
    }
    if (w->pid < 0)
        err_sys(e, "cannot start a verdict worker");
    names_free(argv, n);
    free(log);
    close(out);
    return w->pid < 0 ? (w->pid = 0, -1) : 0;
}

/* Copies the last line of the workers' log. */
static void verdict_last_log_line(struct verdict_service *s, char *out, size_t n)
{
    char *path = verdict_log_path(s), *line;
    struct buf b;

    buf_init(&b, 1 << 20);
    if (file_exists(path))
        file_read(path, &b, NULL);
    while (b.n && strchr("\r\n", b.p[b.n - 1]))
        b.p[--b.n] = 0;
    line = strrchr(b.p, '\n');
    snprintf(out, n, "%s", line ? line + 1 : b.p);
    buf_free(&b);
    free(path);
}

/* Gives a dead worker's jobs back and starts it again. ERR_ENV: too many died without a verdict. */
static int verdict_worker_died(struct verdict_service *s, struct verdict_worker *w, int status, struct err *e)
{
    struct queue_stats st;
    char why[400];

    w->pid = 0;
    verdict_last_log_line(s, why, sizeof why);
    if (queue_release_worker(s->q, w->name, "the worker that judged it died each time", e) < 0 ||
        queue_stats(s->q, &st, e) < 0)
        return -1;
    s->deaths = st.done > s->done_seen ? 1 : s->deaths + 1;
    s->done_seen = st.done;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && st.done == 0 && s->deaths >= 2)
        return err_set(e, ERR_ENV, "verdict workers cannot start: %s",
                       *why ? why : "no word from them; try 'musacoder doctor'");
    if (s->deaths > DEATHS_MAX * s->n_workers)
        return err_set(e, ERR_ENV, "verdict workers keep dying: %s",
                       *why ? why : "no word from them; try 'musacoder doctor'");
    log_debug("verdict worker %s ended (status %d): %s", w->name, status, why);
    return verdict_worker_start(s, w, e);
}

/* Starts workers that are missing and takes care of those that died. */
static int verdict_look_after(struct verdict_service *s, struct err *e)
{
    for (int i = 0; i < s->n_workers; i++) {
        struct verdict_worker *w = &s->workers[i];
        int status;
        if (!w->pid) {
            if (verdict_worker_start(s, w, e) < 0)
                return -1;
        } else if (waitpid(w->pid, &status, WNOHANG) == w->pid && verdict_worker_died(s, w, status, e) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A queue of our own, and who works on it. */
static int verdict_begin_own(struct verdict_service *s, const struct verdict_config *c, struct err *e)
{
    int cpus = machine_processors();

    s->own_folder = !c->folder;
    s->folder = c->folder ? xstrdup(c->folder) : folder_temp("musacoder-verdicts", &s->lock, e);
    s->n_workers = c->workers > 0 ? c->workers : 1;
    s->jobs = c->jobs > 0 ? c->jobs : cpus + (cpus + 1) / 2;
    s->argv = c->worker_argv;
    s->workers = xcalloc((size_t)s->n_workers, sizeof *s->workers);
    if (!s->folder || dir_make(s->folder, e) < 0)
        return -1;
    if (pipe2(s->lifeline, O_CLOEXEC) < 0)
        return err_sys(e, "cannot start a verdict worker");
    s->file = path_join(s->folder, "queue.db");
    return queue_open(s->file, &s->q, e) < 0 ? -1 : verdict_look_after(s, e);
}

/* Makes the service and its queue; *ret is stopped by verdict_service_stop. */
int verdict_service_start(const struct verdict_config *c, struct verdict_service **ret, struct err *e)
{
    struct verdict_service *s = xcalloc(1, sizeof *s);

    s->max_attempts = c->max_attempts > 0 ? c->max_attempts : 3;
    if ((c->queue ? queue_open(c->queue, &s->q, e) : verdict_begin_own(s, c, e)) < 0) {
        verdict_service_stop(s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* Ends all workers, by SIGKILL after STOP_GRACE_S. */
static void verdict_stop_workers(struct verdict_service *s)
{
    double deadline = now_s() + STOP_GRACE_S;
    int alive = 0;

    for (int i = 0; i < s->n_workers; i++)
        if (s->workers[i].pid)
            kill(s->workers[i].pid, SIGTERM), alive++;
    while (alive) {
        for (int i = 0; i < s->n_workers; i++) {
            struct verdict_worker *w = &s->workers[i];
            if (!w->pid)
                continue;
            if (now_s() > deadline)
                kill(w->pid, SIGKILL);
            if (waitpid(w->pid, NULL, now_s() > deadline ? 0 : WNOHANG) != 0)
                w->pid = 0, alive--;
        }
        if (alive)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void verdict_service_stop(struct verdict_service *s)
{
    if (!s)
        return;
    verdict_stop_workers(s);
    queue_close(s->q);
    if (s->own_folder && s->folder)
        dir_remove(s->folder, NULL);
    if (s->lock)
        close(s->lock);
    for (int i = 0; i < 2 && s->lifeline[1]; i++)
        close(s->lifeline[i]);
    free(s->workers);
    free(s->folder);
    free(s->file);
    free(s);
}

/* ---- batches ---- */

/* Frees a batch; NULL is fine. */
static void verdict_batch_free(struct verdict_batch *b)
{
    for (int i = 0; b && i < b->n; i++) {
        json_decref(b->records[i]);
        free(b->asked[i].task);
        free(b->asked[i].backend);
        free(b->asked[i].protocol);
    }
    if (b) {
        free(b->records);
        free(b->asked);
        free(b->ids);
    }
    free(b);
}

static char *verdict_option_text(const struct verdict_request *r, const char *key)
{
    const char *text = json_str(r->options, key, NULL);

    return text ? xstrdup(text) : NULL;
}

static struct verdict_asked verdict_asked_of(const struct verdict_request *r)
{
    return (struct verdict_asked){.task = xstrdup(r->task_name), .backend = verdict_option_text(r, "backend"),
                                  .protocol = verdict_option_text(r, "protocol")};
}

int verdict_batch_submit(struct verdict_service *s, const struct verdict_request *items, int n,
                         struct verdict_batch **ret, struct err *e)
{
    struct queue_item how = {.attempts = s->max_attempts};
    struct verdict_batch *b = xcalloc(1, sizeof *b);
    int rc = verdict_look_after(s, e);

    b->ids = xcalloc((size_t)n, sizeof *b->ids);
    b->asked = xcalloc((size_t)n, sizeof *b->asked);
    b->records = xcalloc((size_t)n, sizeof *b->records);
    for (b->n = 0; rc == 0 && b->n < n; b->n++) {
        const struct verdict_request *r = &items[b->n];
        json_t *payload = ask_payload(r->task_code, r->task_name, r->candidate, r->is_response, r->options, r->sidecar);
        char *lane = s->folder ? NULL : xasprintf("run:%s", json_str(r->options, "backend", "sim"));
        b->asked[b->n] = verdict_asked_of(r);
        how.lane = lane;
        rc = ask_put(s->q, payload, &how, &b->ids[b->n], NULL, e) < 0 ? -1 : 0;
        free(lane);
        json_decref(payload);
    }
    if (rc < 0)
        verdict_batch_free(b);
    else
        *ret = b;
    return rc;
}

/* A record that says why there is no verdict. New. */
static json_t *verdict_infra_record(const struct verdict_asked *a, const char *why)
{
    json_t *v = json_pack("{s:s,s:o,s:s,s:s,s:s,s:n,s:o}", "schema", "musacoder.verdict/1", "task",
                          json_utf8(a->task, strlen(a->task)), "status", "infra", "category", "infra", "stage", "queue",
                          "reward", "feedback", json_utf8(why, strlen(why))); /* it may be cut inside a character */

    if (a->backend)
        json_object_set_new(v, "backend", json_string(a->backend));
    if (a->protocol)
        json_object_set_new(v, "protocol", json_string(a->protocol));
    return v;
}

/* Fetches what has come since; returns the count, or -1. */
static int verdict_collect(struct verdict_service *s, struct verdict_batch *b, struct err *e)
{
    for (int i = 0; i < b->n; i++) {
        struct err ignored = ERR_INIT;
        char *text = NULL;
        bool failed;
        int state = b->records[i] ? QUEUE_WAITING : queue_result(s->q, b->ids[i], &text, &ignored);
        if (state < 0 && ignored.kind != ERR_INPUT) /* ERR_INPUT: others who use this queue forgot the job */
            return err_set(e, ignored.kind, "%s", ignored.msg);
        if (state >= 0 && state < QUEUE_DONE)
            continue;
        failed = state != QUEUE_DONE;
        if (!failed && !(b->records[i] = json_parse(text, strlen(text), "verdict", &ignored)))
            failed = true;
        if (failed)
            b->records[i] = verdict_infra_record(&b->asked[i], *ignored.msg ? ignored.msg : text);
        b->done++;
        free(text);
    }
    return b->done;
}

int verdict_batch_done(struct verdict_service *s, struct verdict_batch *b, struct err *e)
{
    return verdict_collect(s, b, e) < 0 ? -1 : b->done;
}

int verdict_service_wait(struct verdict_service *s, struct err *e)
{
    if (verdict_look_after(s, e) < 0)
        return -1;
    if (stop_requested())
        return err_set(e, ERR_STOP, "interrupted while waiting for verdicts");
    queue_wait_change(s->q, WAIT_S);
    return 0;
}

int verdict_batch_wait(struct verdict_service *s, struct verdict_batch *b, void (*on_progress)(int, int, void *),
                       void *ctx, json_t **ret, struct err *e)
{
    json_t *all;
    int before = -1;

    for (;;) {
        if (verdict_collect(s, b, e) < 0)
            goto fail;
        if (on_progress && b->done != before)
            on_progress(b->done, b->n, ctx);
        before = b->done;
        if (b->done == b->n)
            break;
        if (verdict_service_wait(s, e) < 0)
            goto fail;
    }
    all = json_array();
    for (int i = 0; i < b->n; i++)
        json_array_append(all, b->records[i]);
    verdict_batch_free(b);
    *ret = all;
    return 0;
fail:
    verdict_batch_free(b);
    return -1;
}

void verdict_batch_cancel(struct verdict_service *s, struct verdict_batch *b)
{
    (void)s; /* its jobs stay in the queue: their verdicts are worth having if the same work is asked for again */
    verdict_batch_free(b);
}

int verdict_many(struct verdict_service *s, const struct verdict_request *items, int n, json_t **ret, struct err *e)
{
    struct verdict_batch *b;

    if (verdict_batch_submit(s, items, n, &b, e) < 0)
        return -1;
    return verdict_batch_wait(s, b, NULL, NULL, ret, e);
}
