/* report_stages.c - the intervals of a run's stages, and what changed since the first: over tasks, paired by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/passk.h"
#include "bench/stats.h"
#include "report/report_parts.h"

static json_t *stages_interval(struct interval ci)
{
    return json_interval(ci.lo, ci.hi);
}

static bool stages_in_family(const json_t *task, const char *family)
{
    return !family || !strcmp(json_str(task, "family", ""), family);
}

static double stages_share(const json_t *task)
{
    return avg_at_n((int)json_i64(task, "n", 0), (int)json_i64(task, "passed", 0));
}

static double stages_pass(const json_t *task)
{
    return json_num_value(json_object_get(task, "pass_at_8"));
}

/* The interval of the mean of f over a family's judged tasks; family NULL: all. */
static json_t *stages_mean_interval(const json_t *bench, const char *family, double (*f)(const json_t *))
{
    const json_t *list = json_object_get(bench, "per_task"), *task;
    double *x = xcalloc(json_array_size(list) + 1, sizeof *x), programs = 0;
    json_t *ci;
    int n = 0;
    size_t i;

    json_array_foreach(list, i, task)
        if (stages_in_family(task, family) && isfinite(f(task))) {
            x[n++] = f(task);
            programs += json_f64(task, "n", 0);
        }
    ci = stages_interval(stats_share_interval(x, n, programs));
    free(x);
    return ci;
}

/* New object: the rows of a benchmark's tasks by name. */
static json_t *stages_tasks_by_name(const json_t *bench)
{
    json_t *by = json_object(), *task;
    size_t i;

    json_array_foreach(json_object_get(bench, "per_task"), i, task)
        json_object_set(by, json_str(task, "task", ""), task);
    return by;
}

/* {"difference","ci"} of the shares that pass, on the tasks that both judged; null without any. */
static json_t *stages_change(const json_t *bench, const json_t *first, const char *family)
{
    const json_t *list = json_object_get(bench, "per_task"), *task;
    double *d = xcalloc(json_array_size(list) + 1, sizeof *d);
    json_t *before = stages_tasks_by_name(first), *v = json_null();
    int n = 0;
    size_t i;

    json_array_foreach(list, i, task) {
        double x = stages_share(task) - stages_share(json_object_get(before, json_str(task, "task", "")));
        if (stages_in_family(task, family) && isfinite(x))
            d[n++] = x;
    }
    if (n)
        v = json_pack("{s:f,s:o}", "difference", stats_mean(d, n), "ci",
                      stages_interval(stats_change_interval(d, n)));
    free(d);
    json_decref(before);
    return v;
}

/* Each family's numbers at stage k. New. */
static json_t *stages_families(const struct report *r, int k)
{
    json_t *bench = r->stages[k].bench, *out = json_object(), *f;
    const char *name;

    json_object_foreach(json_object_get(bench, "families"), name, f)
        json_object_set_new(out, name, json_pack("{s:I,s:O?,s:o,s:o}", "tasks", (json_int_t)json_i64(f, "tasks", 0),
                                                 "avg", json_object_get(f, "avg_at_8"), "ci",
                                                 stages_mean_interval(bench, name, stages_share), "change",
                                                 k ? stages_change(bench, r->stages[0].bench, name) : json_null()));
    return out;
}

/* Stage k for the page. New. */
static json_t *stages_one(const struct report *r, int k)
{
    const struct report_stage *s = &r->stages[k];

    return json_pack("{s:s,s:O,s:o,s:o,s:o,s:o}", "name", s->name, "bench", s->bench, "avg_ci",
                     stages_mean_interval(s->bench, NULL, stages_share), "pass_ci",
                     stages_mean_interval(s->bench, NULL, stages_pass), "change",
                     k ? stages_change(s->bench, r->stages[0].bench, NULL) : json_null(), "families",
                     stages_families(r, k));
}

json_t *report_stages(const struct report *r)
{
    json_t *list = json_array();

    for (int k = 0; k < r->n; k++)
        json_array_append_new(list, stages_one(r, k));
    return list;
}
