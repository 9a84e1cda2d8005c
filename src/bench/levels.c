/* levels.c - see levels.h. First counts per task, then sums over the tasks of a level. */
#include "bench/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "bench/passk.h"
#include "bench/bench_run.h"
#include "bench/speed.h"
#include "bench/stats.h"

const double fast_p_at[N_FAST_P] = {0, 0.5, 0.8, 1, 1.5, 2};
const char *const fast_p_name[N_FAST_P] = {"0", "0.5", "0.8", "1", "1.5", "2"};

struct task_sum {
    int n, passed, missing, infra, skipped; /* samples; n: judged, with missing ones where they count */
    struct {
        int faster, timed, untrusted, fast[N_FAST_P];
    } by[N_BASELINES];
};

struct levels_sums {
    const struct bench_run *b;
    struct task_sum *tasks; /* (suite.n) */
    bool measured;          /* some verdict has a performance section */
};

/* Adds a verdict's speedups to its task. */
static void levels_add_speed(struct levels_sums *s, int task, const json_t *verdict)
{
    for (enum speed_baseline k = 0; k < N_BASELINES; k++) {
        struct speed v = verdict_speed(verdict, k);
        s->tasks[task].by[k].timed += v.timed;
        s->tasks[task].by[k].untrusted += v.untrusted;
        s->tasks[task].by[k].faster += is_faster_than(true, speed_claim(&v), s->b->o.faster_than);
        for (int p = 0; p < N_FAST_P; p++)
            s->tasks[task].by[k].fast[p] += v.timed && v.point > fast_p_at[p];
    }
}

/* Counts a sample's verdict for its task. */
static void levels_add_sample(struct levels_sums *s, int task, const json_t *verdict)
{
    struct task_sum *t = &s->tasks[task];

    s->measured |= json_is_object(json_object_get(verdict, "performance"));
    if (verdict_is_skip(verdict)) {
        t->skipped++;
    } else if (verdict_infra(verdict)) {
        t->infra++;
    } else {
        t->n++;
        if (verdict_passed(verdict)) {
            t->passed++;
            levels_add_speed(s, task, verdict);
        }
    }
}

/* Counts all tasks' samples. */
static void levels_count_tasks(struct levels_sums *s)
{
    const struct bench_run *b = s->b;

    s->tasks = xcalloc((size_t)b->suite.n + 1, sizeof *s->tasks);
    for (int i = 0; i < b->suite.n; i++) {
        for (int j = 0; j < b->n_samples[i]; j++)
            levels_add_sample(s, i, bench_attempt(b, i, j, 0)->verdict);
        if (!b->o.samples_dir || b->suite.skips[i] || s->tasks[i].skipped)
            continue; /* a task that cannot be judged misses nothing */
        s->tasks[i].missing = b->o.samples - b->n_samples[i];
        if (b->o.missing_fail)
            s->tasks[i].n += s->tasks[i].missing;
    }
}

/* ---- one level ---- */

struct levels_group {
    const struct levels_sums *s;
    int *of, n;               /* its tasks */
    struct task_counts *c;    /* (n) of what is being averaged */
};

/* The mean over tasks of the share of passed samples. */
static double levels_mean_share(const struct levels_group *g)
{
    return suite_avg(g->c, g->n);
}

static void levels_set(json_t *v, const char *key, json_t *x)
{
    json_object_set_new(v, key, x);
}

/* Sets a level's counts of tasks and samples. */
static void levels_set_counts(json_t *v, const struct levels_group *g)
{
    int judged = 0, n = 0, levels_missing = 0, levels_skipped = 0, infra = 0;

    for (int i = 0; i < g->n; i++) {
        const struct task_sum *t = &g->s->tasks[g->of[i]];
        judged += t->n > 0;
        n += t->n;
        levels_missing += t->missing;
        infra += t->infra;
        levels_skipped += t->skipped || g->s->b->suite.skips[g->of[i]];
    }
    levels_set(v, "tasks", json_integer(g->n));
    levels_set(v, "judged_tasks", json_integer(judged));
    levels_set(v, "samples", json_integer(n));
    levels_set(v, "missing", json_integer(levels_missing));
    levels_set(v, "skipped", json_integer(levels_skipped));
    levels_set(v, "infra", json_integer(infra));
}

static double levels_task_avg(const struct task_counts *t, int k)
{
    return avg_at_n(t->n, t->passed);
}

static double levels_task_pass(const struct task_counts *t, int k)
{
    return pass_at_k(t->n, t->passed, k < t->n ? k : t->n);
}

/* Of the mean of f over the tasks that have judged samples. */
static json_t *levels_interval(const struct levels_group *g, double (*f)(const struct task_counts *, int k), int k)
{
    double *x = xcalloc((size_t)g->n + 1, sizeof *x), programs = 0;
    struct interval ci;
    int n = 0;

    for (int i = 0; i < g->n; i++)
        if (g->c[i].n > 0) {
            x[n++] = f(&g->c[i], k);
            programs += g->c[i].n;
        }
    ci = stats_share_interval(x, n, programs);
    free(x);
    return json_interval(ci.lo, ci.hi);
}

/* Sets Pass@k for k = 1, 2, 4, .. and the average with its interval. */
static void levels_set_pass(json_t *v, const struct levels_group *g)
{
    int most = g->s->b->o.samples;
    json_t *at = json_object();
    char key[16];

    for (int k = 1;; k = 2 * k < most ? 2 * k : most) {
        snprintf(key, sizeof key, "%d", k);
        levels_set(at, key, json_num(suite_pass_at_k(g->c, g->n, k)));
        if (k >= most)
            break;
    }
    levels_set(v, "pass_at", at);
    levels_set(v, "avg", json_num(suite_avg(g->c, g->n)));
    levels_set(v, "avg_ci", levels_interval(g, levels_task_avg, 0));
    levels_set(v, "pass_ci", levels_interval(g, levels_task_pass, most));
}

/* Speedups of passed samples with a trusted time, ascending; *ret is new. */
static int levels_speeds_of(const struct levels_group *g, enum speed_baseline k, double **ret)
{
    const struct bench_run *b = g->s->b;
    double *x = NULL;
    int n = 0;

    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < b->n_samples[g->of[i]]; j++) {
            const json_t *verdict = bench_attempt(b, g->of[i], j, 0)->verdict;
            struct speed v = verdict_speed(verdict, k);
            if (!v.timed || !verdict_passed(verdict))
                continue;
            x = xrealloc(x, (size_t)(n + 1) * sizeof *x);
            x[n++] = v.point;
        }
    numbers_sort(x, (size_t)n);
    *ret = x;
    return n;
}

/* Shares of samples that are right and faster than p times the baseline. New. */
static json_t *levels_fast_p(const struct levels_group *g, enum speed_baseline k)
{
    json_t *v = json_object();

    for (int p = 0; p < N_FAST_P; p++) {
        for (int i = 0; i < g->n; i++)
            g->c[i] = (struct task_counts){.n = g->s->tasks[g->of[i]].n, .passed = g->s->tasks[g->of[i]].by[k].fast[p]};
        levels_set(v, fast_p_name[p], json_num(levels_mean_share(g)));
    }
    return v;
}

/* A level's speedups against one baseline. New; null where nothing was timed. */
static json_t *levels_speed(const struct levels_group *g, enum speed_baseline k)
{
    double *x, logs = 0;
    int n, timed = 0, untrusted = 0;
    json_t *v;

    if (!g->s->measured)
        return json_null();
    v = json_object();
    for (int i = 0; i < g->n; i++) {
        const struct task_sum *t = &g->s->tasks[g->of[i]];
        g->c[i] = (struct task_counts){.n = t->n, .faster = t->by[k].faster};
        timed += t->by[k].timed;
        untrusted += t->by[k].untrusted;
    }
    levels_set(v, "faster", json_num(suite_faster_rate(g->c, g->n)));
    levels_set(v, "fast_p", levels_fast_p(g, k));
    levels_set(v, "timed", json_integer(timed));
    levels_set(v, "untrusted", json_integer(untrusted));
    n = levels_speeds_of(g, k, &x);
    for (int i = 0; i < n; i++)
        logs += log(x[i]) / n;
    levels_set(v, "geomean", n ? json_real(exp(logs)) : json_null());
    levels_set(v, "median", n ? json_real(stats_quantile(x, n, 0.5)) : json_null());
    levels_set(v, "p10", n ? json_real(stats_quantile(x, n, 0.1)) : json_null());
    levels_set(v, "p90", n ? json_real(stats_quantile(x, n, 0.9)) : json_null());
    free(x);
    return v;
}

/* Counts of verdicts by category. New. */
static json_t *levels_categories(const struct levels_group *g)
{
    const struct bench_run *b = g->s->b;
    json_t *v = json_object();

    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < b->n_samples[g->of[i]]; j++) {
            const json_t *verdict = bench_attempt(b, g->of[i], j, 0)->verdict;
            const char *name = verdict_passed(verdict)    ? "passed"
                               : verdict_is_skip(verdict) ? "skipped"
                                                          : json_str(verdict, "category", "infra");
            levels_set(v, name, json_integer(json_i64(v, name, 0) + 1));
        }
    return v;
}

/* level 0: all. */
static json_t *levels_level(const struct levels_sums *s, int level)
{
    struct levels_group g = {.s = s, .of = xcalloc((size_t)s->b->suite.n + 1, sizeof *g.of),
                             .c = xcalloc((size_t)s->b->suite.n + 1, sizeof *g.c)};
    json_t *v = json_object(), *by = json_object();
    char name[24];

    for (int i = 0; i < s->b->suite.n; i++)
        if (!level || s->b->suite.levels[i] == level)
            g.of[g.n++] = i;
    for (int i = 0; i < g.n; i++)
        g.c[i] = (struct task_counts){.n = s->tasks[g.of[i]].n, .passed = s->tasks[g.of[i]].passed};
    snprintf(name, sizeof name, "level %d", level);
    levels_set(v, "name", json_string(level ? name : "all"));
    levels_set(v, "level", json_integer(level));
    levels_set_counts(v, &g);
    levels_set_pass(v, &g);
    for (enum speed_baseline k = 0; k < N_BASELINES; k++)
        levels_set(by, baseline_key(k), levels_speed(&g, k));
    levels_set(v, "speed", by);
    levels_set(v, "categories", levels_categories(&g));
    if (g.n == 0) {
        json_decref(v);
        v = NULL;
    }
    free(g.of);
    free(g.c);
    return v;
}

/* ---- what was not judged ---- */

/* Why the task cannot be judged; NULL: it can. */
static const char *levels_skip_reason(const struct bench_run *b, int task)
{
    if (b->suite.skips[task])
        return b->suite.skips[task];
    for (int j = 0; j < b->n_samples[task]; j++) {
        const json_t *v = bench_attempt(b, task, j, 0)->verdict;
        if (verdict_is_skip(v))
            return json_str(v, "feedback", "the task cannot be judged");
    }
    return NULL;
}

/* The skipped tasks with reasons. New. */
static json_t *levels_skipped(const struct bench_run *b)
{
    json_t *list = json_array();

    for (int i = 0; i < b->suite.n; i++) {
        const char *why = levels_skip_reason(b, i);
        if (why)
            json_array_append_new(list, json_pack("{s:s,s:o,s:i}", "task", b->suite.tasks[i].name, "reason",
                                                  json_utf8(why, strlen(why)), "samples", b->n_samples[i]));
    }
    return list;
}

/* Counts of missing samples and tasks. New. */
static json_t *levels_missing(const struct levels_sums *s)
{
    int samples = 0, tasks = 0;

    for (int i = 0; i < s->b->suite.n; i++) {
        samples += s->tasks[i].missing;
        tasks += s->tasks[i].missing == s->b->o.samples;
    }
    return json_pack("{s:s,s:i,s:i}", "policy", s->b->o.missing_fail ? "fail" : "skip", "samples", samples, "tasks",
                     tasks);
}

/* Programs that belong to no task. New. */
static json_t *levels_strays(const struct foreign *f)
{
    json_t *first = json_array();

    for (int i = 0; i < f->n_strays && i < 20; i++)
        json_array_append_new(first, json_utf8(f->strays[i], strlen(f->strays[i])));
    return json_pack("{s:i,s:o}", "n", f->n_strays, "first", first);
}

/* Sets "levels" and what is left out in 'into'. */
void levels_summary(const struct bench_run *b, json_t *into)
{
    struct levels_sums s = {.b = b};
    json_t *list = json_array();

    levels_count_tasks(&s);
    for (int k = 1; k <= SUITE_MAX_LEVEL; k++) {
        json_t *v = levels_level(&s, k);
        if (v)
            json_array_append_new(list, v);
    }
    json_array_append_new(list, levels_level(&s, 0));
    levels_set(into, "levels", list);
    levels_set(into, "missing", levels_missing(&s));
    levels_set(into, "skipped", levels_skipped(b));
    levels_set(into, "strays", levels_strays(&b->foreign));
    levels_set(into, "shrink_to", json_integer(b->o.shrink_to));
    free(s.tasks);
}
