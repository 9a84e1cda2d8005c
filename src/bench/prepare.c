/* prepare.c - what happens to tasks before anything is judged: they are made small where that is asked for, and tasks
 * that cannot be judged become named skips. shrunk.jsonl in the run folder remembers, so that a continued run does
 * not try again. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench_run.h"

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
                     task_base(b->suite.tasks[task].name), "backend", json_str(b->o.verdict, "backend", "sim"),
                     "status", "infra", "category", "infra", "stage", "task", "reward", "feedback", text);
}

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

static int prepare_shrink_one(struct bench_run *b, int task, const char *path, struct err *e)
{
    const struct task *t = &b->suite.tasks[task];
    struct task plain = *t;
    struct err why = ERR_INIT;
    json_t *line = NULL;
    int rc;

    plain.name = (char *)task_base(t->name);
    rc = b->o.shrink(&plain, b->o.shrink_to, &line, b->o.shrink_ctx, &why);
    if (rc < 0 && why.kind != ERR_INPUT) {
        if (e)
            *e = why;
        return -1;
    }
    if (rc < 0)
        line = json_pack("{s:o}", "error", json_utf8(why.msg, strlen(why.msg)));
    json_object_set_new(line, "task", json_string(t->name));
    json_object_set_new(line, "sha256", json_string(t->sha256));
    rc = jsonl_append(path, line, e);
    if (rc == 0)
        rc = prepare_apply(b, task, line, e);
    json_decref(line);
    return rc;
}

static int prepare_remember(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    return json_object_set(ctx, json_str(v, "task", ""), v);
}

static int prepare_shrink_all(struct bench_run *b, struct err *e)
{
    char *path = path_join(b->o.out, "shrunk.jsonl");
    json_t *known = json_object();
    struct progress bar;
    int rc = jsonl_continue(path, prepare_remember, known, e), todo = 0, done = 0;

    for (int i = 0; i < b->suite.n; i++)
        todo += prepare_has_work(b, i) && !b->suite.skips[i];
    progress_start(&bar, "shrink", 0, (uint64_t)todo);
    for (int i = 0; i < b->suite.n && rc == 0; i++) {
        const json_t *line = json_object_get(known, b->suite.tasks[i].name);
        if (!prepare_has_work(b, i) || b->suite.skips[i])
            continue;
        if (stop_requested())
            rc = err_set(e, ERR_STOP, "interrupted while tasks were made small");
        else if (line && !strcmp(json_str(line, "sha256", ""), b->suite.tasks[i].sha256))
            rc = prepare_apply(b, i, line, e);
        else
            rc = prepare_shrink_one(b, i, path, e);
        progress_at(&bar, (uint64_t)++done);
    }
    progress_end(&bar);
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
