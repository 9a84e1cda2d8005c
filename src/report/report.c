/* report.c - a run folder, or a comparison, as the data of the page of results (report/page.h). */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/speed.h"
#include "report/page.h"
#include "report/report_parts.h"

/* Of one kind of page; facts, to which the caller adds, begin with the day. New. */
static json_t *report_head(const char *kind, const char *title, const char *about, const char *from)
{
    char day[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(day, sizeof day, "%Y-%m-%d", localtime_r(&now, &tm));
    return json_pack("{s:s,s:s,s:o,s:s,s:s,s:[[s,s]]}", "schema", "musacoder.report/1", "kind", kind, "title",
                     json_utf8(title, strlen(title)), "about", about, "from", from, "facts", "written", day);
}

/* A fact that there is; takes text over. */
static void report_add_fact(json_t *page, const char *name, json_t *text)
{
    if (json_is_string(text))
        json_array_append_new(json_object_get(page, "facts"), json_pack("[s,o]", name, text));
    else
        json_decref(text);
}

/* A fact as text, new; null where it is absent. */
static json_t *report_fact_of(const json_t *bench, const char *key)
{
    const json_t *v = json_object_get(bench, key);
    char *text;
    json_t *ret;

    if (!v || json_is_null(v) || json_is_string(v))
        return json_incref((json_t *)v);
    text = json_is_real(v) ? xasprintf("%g", json_real_value(v)) : json_text(v);
    ret = json_string(text);
    free(text);
    return ret;
}

/* The GPU that timed a program, as its verdict names it; NULL where none did. */
static json_t *report_gpu_of(const struct report_stage *s)
{
    const json_t *line, *name;
    size_t i;

    json_array_foreach(s->verdicts, i, line) {
        name = json_object_get(json_object_get(json_object_get(json_object_get(line, "verdict"), "performance"),
                                               "device"), "name");
        if (name)
            return json_incref((json_t *)name);
    }
    return NULL;
}

/* Adds where and how the run was made. */
static void report_add_facts(json_t *page, const struct report *r)
{
    static const char *const facts[][2] = {{"made_by", "made by"}, {"machine", "machine"}};
    static const char *const more[][2] = {{"seed", "seed"}, {"backend", "backend"}, {"model", "model"},
                                          {"suite", "tasks"}, {"temperature", "temperature"}, {"top_p", "top-p"}};
    const struct report_stage *s = r->n ? &r->stages[r->n - 1] : NULL;

    if (!s)
        return;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        report_add_fact(page, facts[i][1], report_fact_of(s->bench, facts[i][0]));
    report_add_fact(page, "GPU", report_gpu_of(s));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (r->n == 1 || strcmp(more[i][0], "model"))
            report_add_fact(page, more[i][1], report_fact_of(s->bench, more[i][0]));
}

/* What the charts need of each first response's verdict. */
static json_t *report_programs(const struct report_stage *s)
{
    json_t *list = json_array();
    const json_t *line;
    size_t i;

    json_array_foreach(s->verdicts, i, line) {
        const json_t *v = json_object_get(line, "verdict");
        bool passed = !strcmp(json_str(v, "status", ""), "passed");
        json_t *p;
        if (json_i64(line, "turn", 1) != 1)
            continue;
        p = json_pack("{s:s,s:O?}", "task", json_str(line, "task", ""), "ms", json_object_get(v, "stage_ms"));
        for (enum speed_baseline b = 0; b < N_BASELINES; b++) {
            struct speed speed = verdict_speed(v, b);
            if (speed.timed && passed)
                json_object_set_new(p, baseline_key(b), json_num(speed.point));
        }
        json_array_append_new(list, p);
    }
    return list;
}

static bool report_is_suite(const struct report *r)
{
    return r->n == 1 && json_array_size(json_object_get(r->stages[0].bench, "levels")) > 0;
}

/* The page's head, by what was run. New. */
static json_t *report_start(const struct report *r)
{
    static const char from[] = "bench.json, verdicts.jsonl and metrics.jsonl of this run";

    if (report_is_suite(r))
        return report_head("suite", r->stages[0].name, "Programs for a suite of tasks, judged by MooreEval.", from);
    if (r->summary || r->n > 1)
        return report_head("run", r->title, "A model learns to write GPU kernels; MooreEval judges every program.",
                           from);
    return report_head("bench", r->title, r->n && json_is_string(json_object_get(r->stages[0].bench, "model"))
                       ? "Programs that a model wrote, judged by MooreEval."
                       : "A folder of programs, judged by MooreEval.", from);
}

/* The page's data, new. */
static json_t *report_page_of(const struct report *r)
{
    json_t *page = report_start(r);

    report_add_facts(page, r);
    json_object_set_new(page, "stages", report_stages(r));
    json_object_set(page, "metrics", r->metrics);
    json_object_set(page, "notes", r->notes);
    if (r->n) {
        json_object_set_new(page, "programs", report_programs(&r->stages[r->n - 1]));
        json_object_set_new(page, "examples", report_examples(&r->stages[r->n - 1]));
    }
    if (r->summary)
        json_object_set(page, "seconds", json_object_get(r->summary, "seconds"));
    if (r->recipe)
        json_object_set_new(page, "recipe", json_utf8(r->recipe, strlen(r->recipe)));
    return page;
}

int report_data(const char *run, json_t **ret, struct err *e)
{
    struct report r;

    if (!file_is_dir(run))
        return err_set(e, ERR_INPUT, "'%s' is not a run folder", run);
    report_load(run, &r);
    *ret = report_page_of(&r);
    report_unload(&r);
    return 0;
}

int report_write(const char *run, struct err *e)
{
    char *path = path_join(run, "report.html");
    json_t *page = NULL;
    int rc = report_data(run, &page, e);

    if (rc == 0)
        rc = page_write(page, path, e);
    json_decref(page);
    free(path);
    return rc;
}

/* of bench_compare.h; new */
static json_t *report_compare_data(const json_t *compared)
{
    char *title = xasprintf("%s against %s", json_str(json_object_get(compared, "b"), "name", "B"),
                            json_str(json_object_get(compared, "a"), "name", "A"));
    json_t *page = report_head("compare", title, "Two benchmarks, task by task: B against A.",
                               "bench.json and verdicts.jsonl of the two runs");

    json_object_set(page, "compare", (json_t *)compared);
    free(title);
    return page;
}

int report_compare_write(const json_t *compared, const char *path, struct err *e)
{
    json_t *page = report_compare_data(compared);
    int rc = page_write(page, path, e);

    json_decref(page);
    return rc;
}
