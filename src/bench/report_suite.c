/* report_suite.c - the report's sections about a suite with levels: tiles, results, verdicts, speed, time, what was
 * left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/levels.h"
#include "bench/report_parts.h"
#include "bench/speed.h"
#include "bench/stats.h"
#include "bench/suite.h"
#include "bench/svg.h"
#include "bench/svg_dist.h"

#define MAX_LEVELS (SUITE_MAX_LEVEL + 1)

static const json_t *report_suite_levels_of(const json_t *bench)
{
    return json_object_get(bench, "levels");
}

bool report_is_suite(const struct report *r)
{
    return r->n == 1 && json_array_size(report_suite_levels_of(r->stages[0].bench)) > 0;
}

static double report_suite_at(const json_t *obj, const char *key)
{
    return json_num_value(json_object_get(obj, key));
}

static const json_t *report_suite_all_of(const json_t *bench)
{
    const json_t *list = report_suite_levels_of(bench);

    return json_array_get(list, json_array_size(list) - 1);
}

static const char *report_suite_best_k(const json_t *level)
{
    const char *key, *last = "1";
    const json_t *v;

    json_object_foreach(json_object_get(level, "pass_at"), key, v)
        last = key;
    return last;
}

static const json_t *report_suite_speed_of(const json_t *level, enum speed_baseline b)
{
    return json_object_get(json_object_get(level, "speed"), baseline_key(b));
}

static void report_suite_percent(struct buf *out, double p)
{
    if (isfinite(p))
        buf_addf(out, "%.1f&#8239;%%", 100 * p);
    else
        buf_adds(out, "<span class=dim>&ndash;</span>");
}

static void report_suite_ratio(struct buf *out, double x)
{
    if (isfinite(x))
        buf_addf(out, "%.3g&#215;", x);
    else
        buf_adds(out, "<span class=dim>&ndash;</span>");
}

static void report_suite_interval(struct buf *out, const json_t *ci)
{
    double lo = json_num_value(json_array_get(ci, 0)), hi = json_num_value(json_array_get(ci, 1));

    if (isfinite(lo) && isfinite(hi))
        buf_addf(out, " <small class=dim>%.0f&#8288;&ndash;&#8288;%.0f</small>", 100 * lo, 100 * hi);
}

/* ---- tiles ---- */

static void report_suite_open_tile(struct buf *out, const char *label)
{
    buf_addf(out, "<div class=tile><div class=label>%s</div><div class=big>", label);
}

void report_suite_tiles(struct buf *out, const struct report *r)
{
    const json_t *b = r->stages[0].bench, *all = report_suite_all_of(b), *ci = json_object_get(all, "avg_ci");
    const char *k = report_suite_best_k(all);
    char label[96];

    buf_adds(out, "<div class=\"tiles many\">");
    snprintf(label, sizeof label, strcmp(k, "1") ? "Avg@%s" : "Pass@%s", k);
    report_suite_open_tile(out, label);
    report_suite_percent(out, report_suite_at(all, "avg"));
    if (json_is_array(ci))
        buf_addf(out, "<small style=\"display:block\">95&#8239;%%: %.0f&ndash;%.0f</small>",
                 100 * json_number_value(json_array_get(ci, 0)), 100 * json_number_value(json_array_get(ci, 1)));
    buf_adds(out, "</div></div>");
    if (strcmp(k, "1")) {
        snprintf(label, sizeof label, "Pass@%s", k);
        report_suite_open_tile(out, label);
        report_suite_percent(out, report_suite_at(json_object_get(all, "pass_at"), k));
        buf_adds(out, "</div></div>");
    }
    for (enum speed_baseline i = 0; i < N_BASELINES; i++)
        if (json_is_object(report_suite_speed_of(all, i))) {
            snprintf(label, sizeof label, "&gt;&#8239;%g&#215; %s", json_f64(b, "faster_than", 1.1), baseline_name(i));
            report_suite_open_tile(out, label);
            report_suite_percent(out, report_suite_at(report_suite_speed_of(all, i), "faster"));
            buf_adds(out, "</div></div>");
        }
    report_suite_open_tile(out, "judged");
    buf_addf(out, "%.0f<small style=\"display:block\">programs of %.0f tasks</small></div></div>",
             report_suite_at(all, "samples"), report_suite_at(all, "judged_tasks"));
    buf_adds(out, "</div>\n");
}

/* ---- results ---- */

static void report_suite_results_chart(struct buf *out, const json_t *bench)
{
    const json_t *list = report_suite_levels_of(bench), *v;
    const char *k = report_suite_best_k(report_suite_all_of(bench));
    char pass[24], avg[24];
    const char *const names[] = {pass, avg};
    struct svg_bar bars[MAX_LEVELS];
    int n = 0;
    size_t i;

    snprintf(pass, sizeof pass, "Pass@%s", k);
    snprintf(avg, sizeof avg, "Avg@%s", k);
    json_array_foreach(list, i, v) {
        const json_t *ci = json_object_get(v, "avg_ci");
        if (n < MAX_LEVELS && report_suite_at(v, "judged_tasks") > 0)
            bars[n++] = (struct svg_bar){json_str(v, "name", ""),
                                         {report_suite_at(json_object_get(v, "pass_at"), k),
                                          report_suite_at(v, "avg")}, NAN,
                                         {json_number_value(json_array_get(ci, 0)),
                                          json_number_value(json_array_get(ci, 1))}};
    }
    svg_bars(out, "Solved", names, bars, n);
}

static void report_suite_results_row(struct buf *out, const json_t *v)
{
    const json_t *at_k = json_object_get(v, "pass_at");
    const char *k = report_suite_best_k(v);

    buf_addf(out, "<tr><th>%s<td>%.0f<td>%.0f<td>%.0f<td>%.0f<td>%.0f<td>%.0f", json_str(v, "name", ""),
             report_suite_at(v, "tasks"),
             report_suite_at(v, "judged_tasks"), report_suite_at(v, "samples"), report_suite_at(v, "missing"),
             report_suite_at(v, "skipped"), report_suite_at(v, "infra"));
    buf_adds(out, "<td>");
    report_suite_percent(out, report_suite_at(v, "avg"));
    report_suite_interval(out, json_object_get(v, "avg_ci"));
    if (strcmp(k, "1")) {
        buf_adds(out, "<td>");
        report_suite_percent(out, report_suite_at(at_k, k));
    }
    for (enum speed_baseline b = 0; b < N_BASELINES; b++)
        if (json_is_object(report_suite_speed_of(v, b))) {
            buf_adds(out, "<td>");
            report_suite_percent(out, report_suite_at(report_suite_speed_of(v, b), "faster"));
        }
}

static void report_suite_results_head(struct buf *out, const json_t *bench)
{
    const json_t *all = report_suite_all_of(bench);
    const char *k = report_suite_best_k(all);

    buf_adds(out, "<div class=scroll><table class=dense><thead><tr><th>level<th>tasks<th>judged<th>programs<th>"
                  "missing<th>skipped<th>infra");
    if (strcmp(k, "1"))
        buf_addf(out, "<th>Avg@%s<th>Pass@%s", k, k);
    else
        buf_adds(out, "<th>Pass@1");
    for (enum speed_baseline b = 0; b < N_BASELINES; b++)
        if (json_is_object(report_suite_speed_of(all, b)))
            buf_addf(out, "<th>&gt;&#8239;%g&#215; %s", json_f64(bench, "faster_than", 1.1), baseline_key(b));
    buf_adds(out, "<tbody>");
}

void report_suite_results(struct buf *out, const struct report *r)
{
    const json_t *b = r->stages[0].bench, *list = report_suite_levels_of(b), *v;
    long long shrunk = json_i64(b, "shrink_to", 0);
    size_t i;

    buf_adds(out, "<section><h2>Results</h2>");
    report_suite_results_chart(out, b);
    report_suite_results_head(out, b);
    json_array_foreach(list, i, v)
        report_suite_results_row(out, v);
    buf_addf(out, "</table></div><p class=note>Means over tasks with judged programs; Pass@k is the unbiased estimate, "
                  "Avg@k is also that of "
                  "Pass@1. Small figures: 95&#8239;%% "
                  "interval, a bootstrap over tasks. Missing samples %s. Judged by backend <code>%s</code>.",
             !strcmp(json_str(json_object_get(b, "missing"), "policy", ""), "fail") ? "count as failures"
             : "are left out", json_str(b, "backend", "?"));
    if (shrunk)
        buf_addf(out, " Tasks were made small first: no tensor above %lld elements, so a program that hard-codes the "
                      "published sizes "
                      "may fail here.", shrunk);
    buf_adds(out, "</p></section>\n");
}

/* ---- verdicts ---- */

void report_suite_verdicts(struct buf *out, const struct report *r)
{
    static const char *const keys[] = {"passed", "correctness_error", "runtime_error", "compile_error",
                                       "extraction_error", "cheating", "timeout", "infra", "skipped"};
    static const char *const names[] = {"passed", "wrong result", "runtime error", "compile error", "no program",
                                        "cheating", "timeout", "infra", "task skipped"};
    static const char *const classes[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};
    enum { N = sizeof keys / sizeof *keys };
    const json_t *list = report_suite_levels_of(r->stages[0].bench),
        *all = json_object_get(report_suite_all_of(r->stages[0].bench), "categories"), *v;
    const char *shown[N], *shown_class[N];
    double counts[MAX_LEVELS][N];
    struct svg_stack rows[MAX_LEVELS];
    int n = 0, m = 0;
    size_t i;

    for (int k = 0; k < N; k++) /* kinds that never occur are left out */
        if (report_suite_at(all, keys[k]) > 0) {
            shown[n] = names[k];
            shown_class[n++] = classes[k];
        }
    json_array_foreach(list, i, v) {
        const json_t *c = json_object_get(v, "categories");
        int j = 0;
        if (m == MAX_LEVELS || json_object_size(c) == 0)
            continue;
        for (int k = 0; k < N; k++)
            if (report_suite_at(all, keys[k]) > 0)
                counts[m][j++] = json_f64(c, keys[k], 0);
        rows[m] = (struct svg_stack){json_str(v, "name", ""), counts[m]};
        m++;
    }
    if (!m)
        return;
    buf_adds(out, "<section><h2>Verdicts</h2>");
    svg_stacks(out, "What became of the programs", rows, m, shown, shown_class, n);
    buf_adds(out, "</section>\n");
}

/* ---- values of the verdicts, by row ---- */

struct report_suite_column {
    double *x, *w;
    int n;
};

static void report_suite_push(struct report_suite_column *c, double x, double w)
{
    if (!isfinite(x) || x <= 0)
        return;
    c->x = xrealloc(c->x, (size_t)(c->n + 1) * sizeof *c->x);
    c->w = xrealloc(c->w, (size_t)(c->n + 1) * sizeof *c->w);
    c->x[c->n] = x;
    c->w[c->n++] = w;
}

static void report_suite_columns_free(struct report_suite_column *c, int n)
{
    for (int i = 0; i < n; i++) {
        free(c[i].x);
        free(c[i].w);
    }
}

static int report_suite_level_of_task(const char *name)
{
    int k = !strncmp(name, "level", 5) ? name[5] - '0' : 0;

    return k >= 1 && k <= SUITE_MAX_LEVEL ? k : 0;
}

/* Each program weighs 1 / (its task's programs x its level's tasks), so that sums of weights are fast_p. */
static void report_suite_speeds_by_level(const struct report_stage *s, enum speed_baseline b,
                                         struct report_suite_column of[MAX_LEVELS])
{
    const json_t *line, *t;
    double tasks[MAX_LEVELS] = {0};
    json_t *n_of = json_object();
    size_t i;

    json_array_foreach(json_object_get(s->bench, "per_task"), i, t) {
        const char *name = json_str(t, "task", "");
        json_object_set(n_of, name, json_object_get(t, "n"));
        tasks[report_suite_level_of_task(name)] += json_i64(t, "n", 0) > 0;
    }
    json_array_foreach(s->verdicts, i, line) {
        const char *name = json_str(line, "task", "");
        const json_t *v = json_object_get(line, "verdict");
        struct speed got = verdict_speed(v, b);
        int k = report_suite_level_of_task(name);
        if (got.timed && json_i64(line, "turn", 1) == 1 && !strcmp(json_str(v, "status", ""), "passed"))
            report_suite_push(&of[k], got.point, 1 / (json_f64(n_of, name, 1) * tasks[k]));
    }
    json_decref(n_of);
}

/* Ascending by x, weights beside them (Shell's sort: a few thousand values). */
static void report_suite_sort_column(struct report_suite_column *c)
{
    for (int gap = c->n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < c->n; i++) {
            double x = c->x[i], w = c->w[i];
            int j = i;
            for (; j >= gap && c->x[j - gap] > x; j -= gap) {
                c->x[j] = c->x[j - gap];
                c->w[j] = c->w[j - gap];
            }
            c->x[j] = x;
            c->w[j] = w;
        }
}

/* ---- speed ---- */

static void report_suite_fast_table(struct buf *out, const json_t *bench, enum speed_baseline b)
{
    const json_t *v;
    size_t i;

    buf_addf(out, "<div class=scroll><table><thead><tr><th>fast<sub>p</sub>, p =");
    for (int p = 0; p < N_FAST_P; p++)
        buf_addf(out, "<th>%s", fast_p_name[p]);
    buf_adds(out, "<th>geometric mean<th>median<th>timed<th>not trusted<tbody>");
    json_array_foreach(report_suite_levels_of(bench), i, v) {
        const json_t *s = report_suite_speed_of(v, b);
        buf_addf(out, "<tr><th>%s", json_str(v, "name", ""));
        for (int p = 0; p < N_FAST_P; p++) {
            buf_adds(out, "<td>");
            report_suite_percent(out, report_suite_at(json_object_get(s, "fast_p"), fast_p_name[p]));
        }
        buf_adds(out, "<td>");
        report_suite_ratio(out, report_suite_at(s, "geomean"));
        buf_adds(out, "<td>");
        report_suite_ratio(out, report_suite_at(s, "median"));
        buf_addf(out, "<td>%.0f<td>%.0f", report_suite_at(s, "timed"), report_suite_at(s, "untrusted"));
    }
    buf_adds(out, "</table></div>");
}

static void report_suite_speed_charts(struct buf *out, const struct report_stage *s, enum speed_baseline b)
{
    static const char *const names[] = {"?", "level 1", "level 2", "level 3", "level 4", "level 5", "level 6",
                                        "level 7", "level 8", "level 9"};
    const struct svg_mark marks[] = {{1, "as fast"}, {json_f64(s->bench, "faster_than", 1.1), "faster"}};
    struct report_suite_column of[MAX_LEVELS] = {{0}};
    struct svg_dist rows[MAX_LEVELS];
    struct svg_exceed series[MAX_LEVELS];
    char title[96];
    int n = 0;

    report_suite_speeds_by_level(s, b, of);
    for (int k = 0; k < MAX_LEVELS; k++) {
        report_suite_sort_column(&of[k]);
        if (of[k].n == 0)
            continue;
        rows[n] = (struct svg_dist){names[k], of[k].x, of[k].n};
        series[n++] = (struct svg_exceed){names[k], of[k].x, of[k].w, of[k].n};
    }
    if (n) {
        snprintf(title, sizeof title, "Speedup over %s, a dot per program", baseline_name(b));
        svg_dists(out, title, SVG_RATIO, rows, n, marks, 2);
        snprintf(title, sizeof title, "Share of tasks solved more than p times as fast as %s", baseline_name(b));
        svg_exceeds(out, title, series, n < 6 ? n : 6, marks, 2);
    }
    report_suite_columns_free(of, MAX_LEVELS);
}

void report_suite_speed(struct buf *out, const struct report *r)
{
    const struct report_stage *s = &r->stages[0];
    bool any = false;

    buf_adds(out, "<section><h2>Speed</h2>");
    for (enum speed_baseline b = 0; b < N_BASELINES; b++) {
        if (!json_is_object(report_suite_speed_of(report_suite_all_of(s->bench), b)))
            continue;
        any = true;
        buf_addf(out, "<h3>against %s</h3>", baseline_name(b));
        report_suite_speed_charts(out, s, b);
        report_suite_fast_table(out, s->bench, b);
    }
    if (any)
        buf_addf(out, "<p class=note>fast<sub>p</sub>: share that passes and is more than p times as fast, by the "
                      "measured value. Faster "
                      "Rate (Results) asks more: the lower bound of the speedup's interval must exceed %g&#215;. A "
                      "time that the judge "
                      "does not trust is no speed.</p>", json_f64(s->bench, "faster_than", 1.1));
    else
        buf_addf(out,
                 "<p class=note>Not measured: on backend <code>%s</code> a time would say nothing about a GPU.</p>",
                 json_str(s->bench, "backend", "?"));
    buf_adds(out, "</section>\n");
}

/* ---- time ---- */

#define SHORTEST 0.1 /* ms */

void report_suite_time(struct buf *out, const struct report *r)
{
    static const char *const keys[] = {"load", "compile", "reference", "correctness", "legality", "performance",
                                       "waiting"};
    enum { N = sizeof keys / sizeof *keys };
    const struct report_stage *s = &r->stages[0];
    struct report_suite_column of[N + 1] = {{0}};
    struct svg_dist rows[N + 1];
    const json_t *line, *ms;
    size_t i;

    json_array_foreach(s->verdicts, i, line) {
        const json_t *stages = json_object_get(json_object_get(line, "verdict"), "stage_ms");
        const char *key;
        double total = 0;
        for (int k = 0; k < N; k++)
            report_suite_push(&of[k], report_suite_at(stages, keys[k]) < SHORTEST ? SHORTEST
                              : report_suite_at(stages, keys[k]), 0);
        json_object_foreach((json_t *)stages, key, ms)
            total += strcmp(key, "waiting") ? json_num_value(ms) : 0;
        report_suite_push(&of[N], total, 0);
    }
    for (int k = 0; k <= N; k++) {
        report_suite_sort_column(&of[k]);
        rows[k] = (struct svg_dist){k < N ? keys[k] : "all stages", of[k].x, of[k].n};
        if (of[k].n && of[k].x[of[k].n - 1] <= SHORTEST)
            rows[k].n = 0; /* a stage that never does anything */
    }
    buf_adds(out, "<section><h2>Time to judge</h2>");
    svg_dists(out, "Time of each stage, a dot per program", SVG_MS, rows, N + 1, NULL, 0);
    buf_adds(out, "<p class=note>Below 0.1&#8239;ms counts as 0.1. <i>waiting</i> is for a free slot, <i>reference</i> "
                  "the task's own run, once per task and seed. <i>all stages</i> is without waiting.</p></section>\n");
    report_suite_columns_free(of, N + 1);
}

/* ---- left out ---- */

static void report_suite_skipped_list(struct buf *out, const json_t *list)
{
    const json_t *v;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    buf_addf(out, "<h3>Tasks skipped: %zu</h3><p class=note>The task itself cannot be judged here; its programs are "
                  "not counted.</p>"
                  "<div class=scroll><table class=left><thead><tr><th>task<th>programs<th>why<tbody>",
                  json_array_size(list));
    json_array_foreach(list, i, v) {
        buf_adds(out, "<tr><th>");
        html_text(out, json_str(v, "task", ""));
        buf_addf(out, "<td>%lld<td class=why>", (long long)json_i64(v, "samples", 0));
        html_text(out, json_str(v, "reason", ""));
    }
    buf_adds(out, "</table></div>");
}

void report_suite_left_out(struct buf *out, const struct report *r)
{
    const json_t *b = r->stages[0].bench, *missing = json_object_get(b, "missing"),
        *strays = json_object_get(b, "strays"), *v;
    long long n = json_i64(missing, "samples", 0), stray = json_i64(strays, "n", 0);
    size_t i;

    if (!n && !stray && json_array_size(json_object_get(b, "skipped")) == 0)
        return;
    buf_adds(out, "<section><h2>Left out</h2>");
    report_suite_skipped_list(out, json_object_get(b, "skipped"));
    if (n)
        buf_addf(out, "<h3>Missing samples: %lld</h3><p class=note>%lld tasks have no sample at all. They %s.</p>", n,
                 (long long)json_i64(missing, "tasks", 0),
                 !strcmp(json_str(missing, "policy", ""), "fail") ? "count as failures (<code>--missing fail</code>)"
                                                                : "are left out; <code>--missing fail</code> counts "
                                                                  "them as failures");
    if (stray) {
        buf_addf(out, "<h3>Stray files: %lld</h3><p class=note>They belong to no task of the suite:</p><ul>", stray);
        json_array_foreach(json_object_get(strays, "first"), i, v) {
            buf_adds(out, "<li><code>");
            html_text(out, json_string_value(v));
            buf_adds(out, "</code>");
        }
        buf_adds(out, "</ul>");
    }
    buf_adds(out, "</section>\n");
}
