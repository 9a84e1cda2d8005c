/* compile_tasks.c - what torch.compile costs the judge, and what it gains, task by task, without a candidate: the
 * baseline of each task is started, compiled and timed against eager, as stage performance does for the first
 * candidate.
 *
 *   compile_tasks [--backend cuda|sim] [--jobs N] [--seconds N] [--mode default|max-autotune]
 *                 --out RESULTS.jsonl TASK.py...
 *
 * One line a task: {"task","reference_s","start_s","compile_s","timing_s",
 * "compile_of_eager":[value,lo,hi]|null,"error"}. compile_s: from the request to the answer, others' turns on the
 * device included. Tasks that RESULTS holds already are left out, so the same command goes on where --seconds or
 * Ctrl-C cut it short. A cache that knows a task's quotient answers for it: an empty MUSACODER_CACHE_DIR measures. On
 * sim MUSACODER_TEST_TIMED=1 gives it the machine's clock.
 * Exit code 0: all tasks have a line, 3: some are left. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "eval/eval.h"
#include "eval/perf/baseline.h"
#include "eval/process/job.h"
#include "eval/process/streamed.h"

static const struct opt rows[] = {
    {NULL, "backend", OPT_CHOICE, "cuda", "cuda|sim: where tasks run"},
    {NULL, "jobs", OPT_INT, "4", "tasks side by side; times are taken alone"},
    {NULL, "seconds", OPT_REAL, "100000", "begin no other task after so long"},
    {NULL, "mode", OPT_CHOICE, "default", "default|max-autotune: torch.compile's"},
    {NULL, "out", OPT_STR, NULL, "results, JSON Lines"},
    {NULL, NULL, OPT_BOOL, NULL, NULL},
};

struct work {
    struct eval *ev;
    struct judge_server *sv;
    struct eval_options o;
    char **tasks, machine[256];
    int n, done;
    const char *out;
    json_t *known; /* names of RESULTS */
    double until, t0;
    atomic_int next;
    pthread_mutex_t lock; /* of out and done */
};

struct took {
    double reference_s, start_s, compile_s, timing_s, since;
};

static double lap(struct took *t)
{
    double now = now_s(), s = now - t->since;

    t->since = now;
    return s;
}

/* The draws of a task, whose inputs a baseline's data are like. */
static int make_draws(struct job *j, struct err *e)
{
    struct device_lock share = {0};
    int rc;

    if (reference_get(j, "random", e) < 0 || reference_own(j, e) < 0 ||
        device_lock_take(&j->server->schedule, false, &share, e) < 0)
        return -1;
    rc = reference_all(j, e);
    device_lock_drop(&share);
    return rc;
}

static int start(struct job *j, struct baseline *b, const struct baseline_place *p, bool *ret_compiles, struct err *e)
{
    struct device_lock share = {0};
    int rc;

    if (device_lock_take(&j->server->schedule, false, &share, e) < 0)
        return -1;
    baseline_lock(b);
    rc = baseline_start(b, j, p, e);
    *ret_compiles = rc == 0 && baseline_begin_compile(b, j->opt->compile_mode);
    baseline_unlock(b);
    device_lock_drop(&share);
    return rc;
}

static int time_alone(struct job *j, struct baseline *b, struct err *e)
{
    struct measure_plan plan = MEASURE_PLAN_DEFAULT;
    struct device_lock alone = {0};

    if (device_lock_take(&j->server->schedule, true, &alone, e) < 0)
        return -1;
    plan.input_bytes = j->ref->streamed ? j->ref->streamed->area.size : baseline_base(j->ref)->inputs.n;
    baseline_lock(b);
    if (b->child)
        baseline_time_compiled(b, j->opt->compile_mode, &plan);
    baseline_unlock(b);
    device_lock_drop(&alone);
    return 0;
}

static int measure(struct work *w, struct job *j, struct baseline **ret, struct took *t, struct err *e)
{
    const struct judge_backend *back = w->sv->backend;
    struct baseline_place p = {.role = back->baseline, .device = back->place, .machine = w->machine};
    bool compiles;

    t->since = now_s();
    if (make_draws(j, e) < 0)
        return -1;
    t->reference_s = lap(t);
    *ret = baseline_get(j, &p);
    if (start(j, *ret, &p, &compiles, e) < 0)
        return -1;
    t->start_s = lap(t);
    if (compiles && baseline_compile(*ret, j->opt->compile_mode, &w->sv->schedule, e) < 0)
        return -1;
    t->compile_s = lap(t);
    if (time_alone(j, *ret, e) < 0)
        return -1;
    t->timing_s = lap(t);
    return 0;
}

static json_t *row_of(const struct task *task, const struct took *t, const struct baseline *b, const struct err *e)
{
    const struct perf_estimate *x = b ? &b->compile_of_eager : NULL;
    const char *error = e->msg[0] ? e->msg : b ? b->compile_error : NULL;
    json_t *ratio = x && isfinite(x->value) ? json_pack("[f,f,f]", x->value, x->lo, x->hi) : json_null();

    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:o,s:s?}", "task", task->name, "reference_s", t->reference_s, "start_s",
                     t->start_s, "compile_s", t->compile_s, "timing_s", t->timing_s, "compile_of_eager", ratio, "error",
                     error);
}

static void say(struct work *w, json_t *row)
{
    char *text = json_text(row);
    struct err e = ERR_INIT;
    double took;

    pthread_mutex_lock(&w->lock);
    if (jsonl_append(w->out, row, &e) < 0)
        log_error("%s", e.msg);
    printf("%s\n", text);
    fflush(stdout);
    took = now_s() - w->t0;
    w->done++;
    fprintf(stderr, "\r%d of %d tasks, %.0f s, about %.0f s left ", w->done, w->n, took,
            took / w->done * (w->n - w->done));
    pthread_mutex_unlock(&w->lock);
    free(text);
}

static void one(struct work *w, const char *path)
{
    struct err e = ERR_INIT;
    struct took t = {0};
    struct baseline *b = NULL;
    struct task task;
    json_t *row;

    if (task_read(path, &task, &e) < 0) {
        log_error("%s", e.msg);
        return;
    }
    if (!json_object_get(w->known, task.name)) {
        struct job j = {.ev = w->ev, .server = w->sv, .task = &task, .opt = &w->o, .protocol = protocol_find("strict")};

        measure(w, &j, &b, &t, &e);
        row = row_of(&task, &t, b, &e);
        if (!stop_requested())
            say(w, row);
        json_decref(row);
        baseline_release(w->ev, b);
        reference_release(&j);
    }
    task_free(&task);
}

static void *run_tasks(void *arg)
{
    struct work *w = arg;
    int i;

    while (!stop_requested() && now_s() < w->until && (i = atomic_fetch_add(&w->next, 1)) < w->n)
        one(w, w->tasks[i]);
    return NULL;
}

static int take_known(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_object_set(ctx, json_str(v, "task", ""), json_true());
    return 0;
}

static int open_device(struct work *w, struct err *e)
{
    struct eval_config c = {.jobs = 1, .backend = w->o.backend, .start = true};
    const struct device_info *d;

    if (eval_open(&c, &w->ev, e) < 0 || server_get(w->ev, backend_find(w->o.backend), &w->sv, e) < 0)
        return -1;
    if (!w->sv->backend->timed)
        return err_set(e, ERR_INPUT, "backend '%s' has no clock", w->o.backend);
    if (device_open(w->sv->backend->clock, 0, &w->ev->timer, e) < 0)
        return -1;
    d = device_info(w->ev->timer);
    snprintf(w->machine, sizeof w->machine, "%s %s torch %s", d->name, d->driver_version,
             json_str(w->sv->info, "torch", "?"));
    return 0;
}

static int run(struct opts *o, struct err *e)
{
    struct work w = {.o = EVAL_OPTIONS_DEFAULT, .tasks = o->args, .n = o->n_args, .out = opts_str(o, "out"),
                     .known = json_object()};
    int jobs = (int)opts_int(o, "jobs");
    pthread_t *threads = xcalloc((size_t)jobs + 1, sizeof *threads);

    w.o.backend = opts_str(o, "backend"), w.o.compile_mode = opts_str(o, "mode"), w.o.trials = 1;
    if ((file_exists(w.out) && jsonl_each(w.out, take_known, w.known, e) < 0) || open_device(&w, e) < 0)
        return -1;
    pthread_mutex_init(&w.lock, NULL);
    w.t0 = now_s();
    w.until = w.t0 + opts_real(o, "seconds");
    for (int i = 0; i < jobs; i++)
        pthread_create(&threads[i], NULL, run_tasks, &w);
    for (int i = 0; i < jobs; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "\ncompile_tasks: %.1f s%s\n", now_s() - w.t0,
            w.next < w.n ? "; the same command does the rest" : "");
    eval_close(w.ev);
    json_decref(w.known);
    pthread_mutex_destroy(&w.lock);
    free(threads);
    return w.next < w.n || stop_requested() ? 3 : 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct opts o;
    int rc;

    stop_install();
    if (opts_parse(rows, argc - 1, argv + 1, NULL, &o, &e) < 0 || o.help || !o.n_args || !opts_str(&o, "out")) {
        fprintf(stderr, "%s%scompile_tasks --out RESULTS.jsonl TASK.py...\n", e.msg, e.msg[0] ? "\n" : "");
        opts_help(stderr, rows);
        return 2;
    }
    if ((rc = run(&o, &e)) < 0)
        fprintf(stderr, "compile_tasks: %s\n", e.msg);
    opts_free(&o);
    return rc < 0 ? 3 : rc;
}
