/* report_compare.c - a comparison (bench_compare.h) as a page: differences of the share that passes, ratios of speed,
 * what changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench_compare.h"
#include "bench/report_parts.h"
#include "bench/speed.h"
#include "bench/stats.h"
#include "bench/svg.h"
#include "bench/svg_dist.h"

#define MAX_ROWS 64 /* families in a chart; the tables hold all */

static double report_compare_at(const json_t *obj, const char *key)
{
    return json_num_value(json_object_get(obj, key));
}

static double report_compare_end_of(const json_t *obj, const char *key, size_t i)
{
    return json_num_value(json_array_get(json_object_get(obj, key), i));
}

static const json_t *report_compare_groups_of(const json_t *v)
{
    return json_object_get(v, "groups");
}

static const json_t *report_compare_all_of(const json_t *v)
{
    return json_array_get(report_compare_groups_of(v), json_array_size(report_compare_groups_of(v)) - 1);
}

static const json_t *report_compare_speed_of(const json_t *group, enum speed_baseline b)
{
    return json_object_get(json_object_get(group, "speed"), baseline_key(b));
}

static void report_compare_p_text(struct buf *out, double p)
{
    if (p < 1e-4)
        buf_adds(out, "&lt;&#8239;0.0001");
    else
        buf_addf(out, "%.4f", p);
}

static void report_compare_points(struct buf *out, double d)
{
    if (isfinite(d))
        buf_addf(out, "%+.1f", 100 * d);
    else
        buf_adds(out, "<span class=dim>&ndash;</span>");
}

static void report_compare_ratio(struct buf *out, double x)
{
    if (isfinite(x))
        buf_addf(out, "%.3g&#215;", x);
    else
        buf_adds(out, "<span class=dim>&ndash;</span>");
}

/* ---- what is compared ---- */

static void report_compare_side(struct buf *out, const char *letter, const json_t *s)
{
    buf_addf(out, "<tr><th>%s<td>", letter);
    html_text(out, json_str(s, "name", "?"));
    buf_adds(out, "<td><code>");
    html_text(out, json_str(s, "dir", "?"));
    buf_adds(out, "</code><td>");
    html_text(out, json_str(s, "backend", "?"));
    buf_addf(out, "<td>%lld", (long long)json_i64(s, "samples", 0));
}

static void report_compare_sides(struct buf *out, const json_t *v)
{
    const json_t *note;
    size_t i;

    buf_adds(out, "<section><h2>Compared</h2><div class=scroll><table class=left><thead><tr><th><th>name<th>run "
                  "folder<th>backend"
                  "<th>samples of each task<tbody>");
    report_compare_side(out, "A", json_object_get(v, "a"));
    report_compare_side(out, "B", json_object_get(v, "b"));
    buf_addf(out, "</table></div><p class=note>%.0f tasks were judged on both sides",
             report_compare_at(report_compare_all_of(v), "tasks"));
    if (report_compare_at(v, "only_a") + report_compare_at(v, "only_b") > 0)
        buf_addf(out, "; %.0f only in A and %.0f only in B are left out", report_compare_at(v, "only_a"),
                 report_compare_at(v, "only_b"));
    buf_adds(out, ".</p>");
    json_array_foreach(json_object_get(v, "notes"), i, note) {
        buf_adds(out, "<p class=note><b>Mind:</b> ");
        html_text(out, json_string_value(note));
        buf_adds(out, ".</p>");
    }
    buf_adds(out, "</section>\n");
}

static void report_compare_tiles(struct buf *out, const json_t *v)
{
    const json_t *avg = json_object_get(report_compare_all_of(v), "avg"),
        *first = json_object_get(report_compare_all_of(v), "first"), *speed;
    double d = report_compare_at(avg, "difference");

    buf_addf(out, "<div class=tiles><div class=tile><div class=label>Avg@k of B</div><div class=big>%.1f&#8239;%% "
                  "<small>A %.1f</small><small class=%s>%+.1f points", 100 * report_compare_at(avg, "b"),
                  100 * report_compare_at(avg, "a"), d >= 0 ? "up" : "down", 100 * d);
    if (isfinite(report_compare_end_of(avg, "ci", 0)))
        buf_addf(out, ", %+.1f to %+.1f", 100 * report_compare_end_of(avg, "ci", 0),
                 100 * report_compare_end_of(avg, "ci", 1));
    buf_addf(out, "</small></div></div><div class=tile><div class=label>first samples, only A / only B</div><div "
                  "class=big>%.0f "
                  "<small>/</small> %.0f<small class=dim style=\"display:block\">McNemar p ",
                  report_compare_at(first, "only_a"), report_compare_at(first, "only_b"));
    report_compare_p_text(out, report_compare_at(first, "p"));
    buf_adds(out, "</small></div></div>");
    for (enum speed_baseline b = 0; b < N_BASELINES; b++) {
        if (!json_is_object(speed = report_compare_speed_of(report_compare_all_of(v), b)))
            continue;
        buf_addf(out, "<div class=tile><div class=label>speed B / A, over %s</div><div class=big>", baseline_name(b));
        report_compare_ratio(out, report_compare_at(speed, "ratio"));
        buf_adds(out, "<small class=dim style=\"display:block\">");
        if (isfinite(report_compare_end_of(speed, "ci", 0)))
            buf_addf(out, "%.3g to %.3g, ", report_compare_end_of(speed, "ci", 0),
                     report_compare_end_of(speed, "ci", 1));
        buf_adds(out, "Wilcoxon p ");
        report_compare_p_text(out, report_compare_at(speed, "p"));
        buf_adds(out, "</small></div></div>");
    }
    buf_adds(out, "</div>\n");
}

/* ---- shares ---- */

static void report_compare_share_row(struct buf *out, const json_t *g)
{
    const json_t *a = json_object_get(g, "avg"), *f = json_object_get(g, "first");

    buf_adds(out, "<tr><th>");
    html_text(out, json_str(g, "name", ""));
    buf_addf(out, "<td>%.0f<td>%.1f&#8239;%%<td>%.1f&#8239;%%<td>", report_compare_at(g, "tasks"),
             100 * report_compare_at(a, "a"), 100 * report_compare_at(a, "b"));
    report_compare_points(out, report_compare_at(a, "difference"));
    if (isfinite(report_compare_end_of(a, "ci", 0)))
        buf_addf(out, " <small class=dim>%+.1f to %+.1f</small>", 100 * report_compare_end_of(a, "ci", 0),
                 100 * report_compare_end_of(a, "ci", 1));
    buf_addf(out, "<td>%.0f / %.0f<td>", report_compare_at(a, "better"), report_compare_at(a, "worse"));
    report_compare_p_text(out, report_compare_at(a, "p"));
    buf_addf(out, "<td>%.0f / %.0f<td>", report_compare_at(f, "only_a"), report_compare_at(f, "only_b"));
    report_compare_p_text(out, report_compare_at(f, "p"));
}

static void report_compare_shares(struct buf *out, const json_t *v)
{
    struct svg_difference rows[MAX_ROWS];
    const json_t *g;
    size_t i;
    int n = 0;

    json_array_foreach(report_compare_groups_of(v), i, g) {
        const json_t *a = json_object_get(g, "avg");
        if (n < MAX_ROWS)
            rows[n++] = (struct svg_difference){json_str(g, "name", ""), report_compare_at(a, "difference"),
                                                report_compare_end_of(a, "ci", 0), report_compare_end_of(a, "ci", 1)};
    }
    buf_adds(out, "<section><h2>What passes</h2>");
    svg_differences(out, "Avg@k of B less that of A", rows, n);
    buf_adds(out, "<div class=scroll><table><thead><tr><th><th>tasks<th>Avg@k A<th>B<th>B &minus; A<th>tasks better / "
                  "worse<th>sign p"
                  "<th>only A / only B<th>McNemar p<tbody>");
    json_array_foreach(report_compare_groups_of(v), i, g)
        report_compare_share_row(out, g);
    buf_adds(out, "</table></div><p class=note>All tests are paired by task and two-sided. Intervals: bootstrap over "
                  "tasks. Sign test: "
                  "tasks whose share rose against those whose share fell. McNemar's exact test looks at the first "
                  "sample of each task. "
                  "One row in twenty is below 0.05 by chance alone.</p></section>\n");
}

/* ---- speed ---- */

static int report_compare_ratios_of(const json_t *v, const char *family, double **ret)
{
    const json_t *t;
    double *x = NULL;
    size_t i;
    int n = 0;

    json_array_foreach(json_object_get(v, "tasks"), i, t) {
        double r = report_compare_at(t, "ratio");
        if (!isfinite(r) || (strcmp(family, "all") && strcmp(json_str(t, "family", ""), family)))
            continue;
        x = xrealloc(x, (size_t)(n + 1) * sizeof *x);
        x[n++] = r;
    }
    stats_sort(x, n);
    *ret = x;
    return n;
}

static void report_compare_speed_chart(struct buf *out, const json_t *v)
{
    const struct svg_mark marks[] = {{1, "as fast as A"}};
    struct svg_dist rows[MAX_ROWS];
    double *x[MAX_ROWS];
    const json_t *g;
    size_t i;
    int n = 0;

    json_array_foreach(report_compare_groups_of(v), i, g)
        if (n < MAX_ROWS) {
            int m = report_compare_ratios_of(v, json_str(g, "name", ""), &x[n]);
            rows[n] = (struct svg_dist){json_str(g, "name", ""), x[n], m};
            n++;
        }
    svg_dists(out, "B's speedup over eager divided by A's, one dot per task that both solve", SVG_RATIO, rows, n,
              marks, 1);
    for (int k = 0; k < n; k++)
        free(x[k]);
}

static void report_compare_speed_rows(struct buf *out, const json_t *v, enum speed_baseline b)
{
    const json_t *g, *s;
    size_t i;

    json_array_foreach(report_compare_groups_of(v), i, g) {
        if (!json_is_object(s = report_compare_speed_of(g, b)))
            continue;
        buf_adds(out, "<tr><th>");
        html_text(out, json_str(g, "name", ""));
        buf_addf(out, "<td>%s<td>%.0f<td>", baseline_name(b), report_compare_at(s, "tasks"));
        report_compare_ratio(out, report_compare_at(s, "ratio"));
        if (isfinite(report_compare_end_of(s, "ci", 0)))
            buf_addf(out, " <small class=dim>%.3g to %.3g</small>", report_compare_end_of(s, "ci", 0),
                     report_compare_end_of(s, "ci", 1));
        buf_addf(out, "<td>%.0f / %.0f<td>", report_compare_at(s, "faster"), report_compare_at(s, "slower"));
        report_compare_p_text(out, report_compare_at(s, "p"));
    }
}

static void report_compare_speeds(struct buf *out, const json_t *v)
{
    buf_adds(out, "<section><h2>Speed</h2>");
    if (!json_is_object(report_compare_speed_of(report_compare_all_of(v), BASE_EAGER)) &&
        !json_is_object(report_compare_speed_of(report_compare_all_of(v), BASE_COMPILE))) {
        buf_adds(out, "<p class=note>No task has a trusted time on both sides.</p></section>\n");
        return;
    }
    report_compare_speed_chart(out, v);
    buf_adds(out, "<div class=scroll><table><thead><tr><th><th>against<th>tasks<th>ratio B / A<th>faster / slower<th>"
                  "Wilcoxon p<tbody>");
    for (enum speed_baseline b = 0; b < N_BASELINES; b++)
        report_compare_speed_rows(out, v, b);
    buf_adds(out, "</table></div><p class=note>Only tasks that both sides solve with a trusted time: what is solved on "
                  "one side only has no "
                  "ratio. Above 1&#215;, B is faster. A task's speedup is the geometric mean over its passed "
                  "programs.</p></section>\n");
}

/* ---- changed tasks ---- */

static void report_compare_outcome(struct buf *out, const json_t *t)
{
    buf_addf(out, "<td>%.0f / %.0f<td>", report_compare_at(t, "passed"), report_compare_at(t, "n"));
    html_text(out, json_str(t, "first", "-"));
    buf_adds(out, "<td>");
    report_compare_ratio(out, report_compare_at(t, "eager"));
}

static int report_compare_changed_rows(struct buf *out, const json_t *v, const char *kind, const char *class)
{
    const json_t *t;
    size_t i;
    int n = 0;

    json_array_foreach(json_object_get(v, "tasks"), i, t) {
        if (strcmp(json_str(t, "kind", ""), kind))
            continue;
        n++;
        buf_adds(out, "<tr><th>");
        html_text(out, json_str(t, "task", ""));
        buf_addf(out, "<td><span class=\"badge %s\">%s</span>", class, kind);
        report_compare_outcome(out, json_object_get(t, "a"));
        report_compare_outcome(out, json_object_get(t, "b"));
        buf_adds(out, "<td>");
        report_compare_ratio(out, report_compare_at(t, "ratio"));
    }
    return n;
}

static void report_compare_changes(struct buf *out, const json_t *v)
{
    static const char *const kinds[][2] = {{"lost", "bad"}, {"gained", "ok"}, {"worse", "bad"}, {"better", "ok"},
                                           {"slower", "bad"}, {"faster", "ok"}};
    struct buf rows;
    int n = 0;

    buf_init(&rows, BUF_MAX_TEXT);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        n += report_compare_changed_rows(&rows, v, kinds[i][0], kinds[i][1]);
    buf_addf(out, "<section><h2>Changed tasks: %d</h2>", n);
    if (n) {
        buf_addf(out, "<details%s><summary>task by task, losses first</summary>", n <= 60 ? " open" : "");
        buf_adds(out, "<div class=scroll><table class=\"left dense\"><thead><tr><th>task<th><th>A passed<th>A first<th>"
                      "speedup<th>B passed<th>B "
                      "first<th>speedup<th>B / A<tbody>");
        buf_add(out, rows.p, rows.n);
        buf_addf(out, "</table></div><p class=note><b>gained, lost</b>: the first sample. <b>better, worse</b>: the "
                      "share that passes. "
                      "<b>faster, slower</b>: the speedup's intervals do not touch or, without intervals, the ratio "
                      "exceeds %g&#215;.</p></details>",
                 report_compare_at(v, "faster_than"));
    }
    buf_adds(out, "</section>\n");
    buf_free(&rows);
}

void report_compare_build(const json_t *v, struct buf *out)
{
    struct buf title;

    buf_init(&title, 4096);
    buf_addf(&title, "%s against %s", json_str(json_object_get(v, "b"), "name", "B"),
             json_str(json_object_get(v, "a"), "name", "A"));
    report_open(out, title.p, "Two benchmarks, task by task: B against A.");
    report_compare_tiles(out, v);
    report_compare_sides(out, v);
    report_compare_shares(out, v);
    report_compare_speeds(out, v);
    report_compare_changes(out, v);
    report_close(out, "bench.json and verdicts.jsonl of the two runs");
    buf_free(&title);
}

int report_compare_write(const json_t *v, const char *path, struct err *e)
{
    struct buf out;
    int rc;

    buf_init(&out, BUF_MAX_TEXT);
    report_compare_build(v, &out);
    rc = out.cut ? err_set(e, ERR_BUG, "the page '%s' is larger than %zu bytes", path, out.max)
        : file_write(path, out.p, out.n, e);
    buf_free(&out);
    return rc;
}
