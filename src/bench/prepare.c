/* prepare.c - what happens to tasks before anything is judged: they are made small where that is asked for, and tasks
 * that cannot be judged become named skips. shrunk.jsonl in the run folder remembers, so that a continued run does
 * not try again. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "bench/bench_run.h"

/* True where a sample of the task has no verdict yet. */
static bool prepare_has_work(const struct bench_run *b, int task)
{
    for (int j = 0; j < b->n_samples[task]; j++) {
        const struct attempt *a = bench_attempt(b, task, j, 0);
        if (!a->verdict)
            return true;
    }
    return false;
}

/* The verdict of a sample whose task is to blame: the same that a verifier gives when the reference fails. */
static json_t *prepare_skip_record(const struct bench_run *b, int task)
{
    const char *why = b->suite.skips[task];
    json_t *text = json_utf8(why, strlen(why));

    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:n,s:o}", "schema", "musacoder.verdict/1", "task",
                     path_name(b->suite.tasks[task].name), "backend", json_str(b->o.verdict, "backend", "sim"),
                     "status", "infra", "category", "infra", "stage", "task", "reward", "feedback", text);
}

/* Gives all samples of a task that cannot be judged the record that says so. */
static int prepare_settle_skip(struct bench_run *b, int task, struct err *e)
{
    if (b->o.model) { /* nothing is sampled for it */
        b->n_samples[task] = 0;
        return 0;
    }
    for (int j = 0; j < b->n_samples[task]; j++) {
        struct attempt *a = bench_attempt(b, task, j, 0);
        if (a->verdict)
            continue;
        a->verdict = prepare_skip_record(b, task);
        if (bench_store_verdict(b, task, j, 0, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- making small ---- */

/* Takes what a line of shrunk.jsonl says: the task's new source, or why there is none. */
static int prepare_apply(struct bench_run *b, int task, const json_t *line, struct err *e)
{
    const char *source = json_str(line, "source", NULL), *why = json_str(line, "error", NULL);
    struct task small, *t = &b->suite.tasks[task];

    if (why) {
        b->suite.skips[task] = xstrdup(why);
        return 0;
    }
    if (task_make(t->name, source ? source : "", source ? strlen(source) : 0, &small, e) < 0)
        return err_prefix(e, "task '%s' made small", t->name);
    if (task_attach(&small, t->sidecar, t->name, e) < 0) {
        task_free(&small);
        return -1;
    }
    task_free(t);
    *t = small;
    return 0;
}

struct prepare_work {
    struct bench_run *b;
    const json_t *known; /* what shrunk.jsonl held */
    const char *path;
    pthread_mutex_t lock; /* of everything below, of the suite and of the file */
    struct progress bar;
    int next, done, rc;
    struct err err;
};

/* Without the lock: *ret is new, a line of shrunk.jsonl. */
static int prepare_shrink_one(const struct bench_run *b, const struct task *t, json_t **ret, struct err *e)
{
    struct task plain = *t;
    struct err why = ERR_INIT;
    int rc;

    plain.name = (char *)path_name(t->name);
    rc = b->o.shrink(&plain, b->o.shrink_to, ret, b->o.shrink_ctx, &why);
    if (rc < 0 && why.kind != ERR_INPUT && why.kind != ERR_ENV) {
        *e = why;
        return -1;
    }
    if (rc < 0)
        *ret = json_pack("{s:o, s:b}", "error", json_utf8(why.msg, strlen(why.msg)), "again", why.kind == ERR_ENV);
    json_object_set_new(*ret, "task", json_string(t->name));
    json_object_set_new(*ret, "sha256", json_string(t->sha256));
    return 0;
}

/* With the lock, which is given back while the task is made small. */
static int prepare_work_task(struct prepare_work *w, int i, struct err *e)
{
    const struct task *t = &w->b->suite.tasks[i];
    json_t *line = json_object_get(w->known, t->name);
    int rc;

    if (line && !strcmp(json_str(line, "sha256", ""), t->sha256))
        return prepare_apply(w->b, i, line, e);
    pthread_mutex_unlock(&w->lock);
    line = NULL;
    rc = prepare_shrink_one(w->b, t, &line, e);
    pthread_mutex_lock(&w->lock);
    if (rc == 0 && json_flag(line, "again", false)) { /* once more, with nobody beside it who begins */
        json_decref(line);
        line = NULL;
        rc = prepare_shrink_one(w->b, t, &line, e);
    }
    if (rc == 0 && !json_flag(line, "again", false)) /* what the machine lacked is asked again by the next run */
        rc = jsonl_append_sealed(w->path, line, e);
    if (rc == 0)
        rc = prepare_apply(w->b, i, line, e);
    json_decref(line);
    return rc;
}

/* A thread that makes tasks small until there is none. */
static void *prepare_work_thread(void *arg)
{
    struct prepare_work *w = arg;

    pthread_mutex_lock(&w->lock);
    while (w->rc == 0 && w->next < w->b->suite.n) {
        struct err e = ERR_INIT;
        int i = w->next++, rc;

        if (!prepare_has_work(w->b, i) || w->b->suite.skips[i])
            continue;
        rc = stop_requested() ? err_set(&e, ERR_STOP, "interrupted while tasks were made small")
           : prepare_work_task(w, i, &e);
        if (rc < 0 && w->rc == 0) {
            w->rc = rc;
            w->err = e;
        }
        progress_at(&w->bar, (uint64_t)++w->done);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A callback of the reader: keeps a line in the object ctx by its task's name. */
static int prepare_remember(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    return json_object_set(ctx, json_str(v, "task", ""), v);
}

/* As many tasks at once as there are processors; this thread is one of them. */
static void prepare_work_all(struct prepare_work *w, int todo)
{
    int cpus = machine_processors(), n = cpus < todo ? cpus : todo, started = 0;
    pthread_t *threads = xcalloc((size_t)(n > 1 ? n : 1), sizeof *threads);

    while (started < n - 1 && pthread_create(&threads[started], NULL, prepare_work_thread, w) == 0)
        started++;
    prepare_work_thread(w);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* Makes all tasks small that are larger than the limit; earlier results are remembered. */
static int prepare_shrink_all(struct bench_run *b, struct err *e)
{
    char *path = path_join(b->o.out, "shrunk.jsonl");
    json_t *known = json_object();
    struct prepare_work w = {.b = b, .known = known, .path = path, .lock = PTHREAD_MUTEX_INITIALIZER};
    int rc = jsonl_continue(path, prepare_remember, known, e), todo = 0;

    for (int i = 0; i < b->suite.n; i++)
        todo += prepare_has_work(b, i) && !b->suite.skips[i];
    if (rc == 0) {
        progress_start(&w.bar, "shrink", 0, (uint64_t)todo);
        prepare_work_all(&w, todo);
        progress_end(&w.bar);
        if (w.rc < 0 && e)
            *e = w.err;
        rc = w.rc;
    }
    json_decref(known);
    free(path);
    return rc;
}

int bench_prepare(struct bench_run *b, struct err *e)
{
    if (b->o.shrink_to && prepare_shrink_all(b, e) < 0)
        return -1;
    for (int i = 0; i < b->suite.n; i++)
        if (b->suite.skips[i] && prepare_settle_skip(b, i, e) < 0)
            return -1;
    return 0;
}
