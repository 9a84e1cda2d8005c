/* report_tables.c - the report's numbers: tiles, stage table with its chart, families, tasks, kinds of failure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/report_parts.h"
#include "bench/svg.h"

static double report_tables_share(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return v && !json_is_null(v) ? json_num_value(v) : NAN;
}

void report_percent(struct buf *out, const json_t *obj, const char *key)
{
    double p = report_tables_share(obj, key);

    if (isfinite(p))
        buf_addf(out, "%.1f&#8239;%%", 100 * p);
    else
        buf_adds(out, "<span class=dim>&ndash;</span>");
}

double report_avg_error(const json_t *bench)
{
    const json_t *list = json_object_get(bench, "per_task"), *v;
    double sum = 0, sq = 0, m = 0;
    size_t i;

    json_array_foreach(list, i, v) {
        double n = json_f64(v, "n", 0), p = n > 0 ? json_f64(v, "passed", 0) / n : 0;
        if (n <= 0)
            continue;
        sum += p;
        sq += p * p;
        m++;
    }
    return m < 2 ? NAN : 1.96 * sqrt(fmax(sq - sum * sum / m, 0) / (m - 1) / m);
}

static void report_tables_tile(struct buf *out, const char *label, const char *fmt,
                               ...) __attribute__((format(printf, 3, 4)));

static void report_tables_tile(struct buf *out, const char *label, const char *fmt, ...)
{
    va_list ap;

    buf_addf(out, "<div class=tile><div class=label>%s</div><div class=big>", label);
    va_start(ap, fmt);
    buf_vaddf(out, fmt, ap);
    va_end(ap);
    buf_adds(out, "</div></div>");
}

static void report_tables_tile_share(struct buf *out, const char *label, const struct report *r, const char *key)
{
    double last = report_tables_share(r->stages[r->n - 1].bench, key),
        first = report_tables_share(r->stages[0].bench, key), d = 100 * (last - first);
    struct buf delta;

    if (!isfinite(last))
        return;
    buf_init(&delta, 4096);
    if (r->n > 1 && isfinite(d)) {
        buf_addf(&delta, "<small class=%s>%+.1f points since ", d >= 0 ? "up" : "down", d);
        html_text(&delta, r->stages[0].name);
        buf_adds(&delta, "</small>");
    }
    report_tables_tile(out, label, "%.1f&#8239;%%%s", 100 * last, delta.p);
    buf_free(&delta);
}

/* What the keys pass_at_8 and avg_at_8 are of, in every stage of a run. */
static int report_tables_k_of(const struct report *r)
{
    return (int)json_i64(r->stages[0].bench, "k", 8);
}

static int report_tables_samples_of(const struct report *r)
{
    return (int)json_i64(r->stages[0].bench, "samples", report_tables_k_of(r));
}

void report_tiles(struct buf *out, const struct report *r)
{
    char took[32], name[48];

    buf_adds(out, "<div class=tiles>");
    if (r->n) {
        const json_t *b = r->stages[r->n - 1].bench;
        snprintf(name, sizeof name, "Avg@%d%s", report_tables_samples_of(r), r->n > 1 ? ", last stage" : "");
        report_tables_tile_share(out, name, r, "avg_at_8");
        snprintf(name, sizeof name, "Pass@%d%s", report_tables_k_of(r), r->n > 1 ? ", last stage" : "");
        report_tables_tile_share(out, name, r, "pass_at_8");
        report_tables_tile(out, r->summary ? "held-out tasks" : "tasks", "%lld <small>&times; %lld samples</small>",
                           (long long)json_i64(b, "tasks", 0), (long long)json_i64(b, "samples", 0));
    }
    if (r->summary) {
        format_duration(json_f64(r->summary, "seconds", 0), took, sizeof took);
        report_tables_tile(out, "first stage to report", "%s", took);
    }
    buf_adds(out, "</div>\n");
}

/* ---- stages ---- */

static bool report_tables_any(const struct report *r, const char *key)
{
    for (int i = 0; i < r->n; i++)
        if (isfinite(report_tables_share(r->stages[i].bench, key)))
            return true;
    return false;
}

static bool report_tables_several_turns(const struct report *r)
{
    for (int i = 0; i < r->n; i++)
        if (json_i64(r->stages[i].bench, "turns", 1) > 1)
            return true;
    return false;
}

static void report_tables_cell(struct buf *out, const json_t *b, const char *key)
{
    buf_adds(out, "<td>");
    report_percent(out, b, key);
}

static void report_tables_stage_row(struct buf *out, const struct report_stage *s, bool turns, bool faster)
{
    double err = report_avg_error(s->bench);
    char took[32];

    buf_adds(out, "<tr><th>");
    html_text(out, s->name);
    report_tables_cell(out, s->bench, "pass_at_1");
    report_tables_cell(out, s->bench, "pass_at_8");
    report_tables_cell(out, s->bench, "avg_at_8");
    if (isfinite(err))
        buf_addf(out, " <small class=dim>&plusmn;%.1f</small>", 100 * err);
    if (turns) { /* a benchmark of one turn has no 'any turn' */
        const json_t *b = json_i64(s->bench, "turns", 1) > 1 ? s->bench : NULL;
        report_tables_cell(out, b, "best_pass_at_8");
        report_tables_cell(out, b, "best_avg_at_8");
    }
    if (faster) {
        report_tables_cell(out, s->bench, "faster_eager");
        report_tables_cell(out, s->bench, "faster_compile");
    }
    report_tables_cell(out, s->bench, "cut_share");
    report_tables_cell(out, s->bench, "whole_pass_rate");
    format_duration(json_f64(s->bench, "seconds", 0), took, sizeof took);
    buf_addf(out, "<td>%lld<td>%s\n", (long long)json_i64(s->bench, "infra", 0), took);
}

static void report_tables_stage_chart(struct buf *out, const struct report *r)
{
    char pass[32], avg[32];
    const char *const names[] = {pass, avg};
    struct svg_bar bars[REPORT_MAX_STAGES];

    snprintf(pass, sizeof pass, "Pass@%d", report_tables_k_of(r));
    snprintf(avg, sizeof avg, "Avg@%d", report_tables_samples_of(r));
    for (int i = 0; i < r->n; i++)
        bars[i] = (struct svg_bar){r->stages[i].name,
                                   {report_tables_share(r->stages[i].bench, "pass_at_8"),
                                    report_tables_share(r->stages[i].bench, "avg_at_8")},
                                   report_avg_error(r->stages[i].bench), {0}};
    svg_bars(out, r->n > 1 ? "Held-out tasks solved after each stage" : "Tasks solved", names, bars, r->n);
}

void report_stage_table(struct buf *out, const struct report *r)
{
    bool turns = report_tables_several_turns(r), faster = report_tables_any(r, "faster_eager");
    int k, n;

    if (r->n == 0)
        return;
    k = report_tables_k_of(r), n = report_tables_samples_of(r);
    buf_adds(out, "<section><h2>Results</h2>");
    report_tables_stage_chart(out, r);
    buf_addf(out, "<div class=scroll><table><thead><tr><th>stage<th>Pass@1<th>Pass@%d<th>Avg@%d", k, n);
    if (turns)
        buf_addf(out, "<th>Pass@%d, any turn<th>Avg@%d, any turn", k, n);
    if (faster)
        buf_adds(out, "<th>faster than eager<th>than compile");
    buf_adds(out, "<th>cut off<th>given a whole program<th>infra<th>time<tbody>");
    for (int i = 0; i < r->n; i++)
        report_tables_stage_row(out, &r->stages[i], turns, faster);
    buf_addf(out, "</table></div><p class=note>Pass@%d: at least one of %d programs passes MooreEval (unbiased "
                  "estimate). "
                  "Avg@%d: share that passes; &plusmn; is a 95&#8239;%% interval over tasks. All numbers are of first "
                  "responses",
             k, k, n);
    buf_adds(out, turns ? "; <i>any turn</i> counts programs repaired after the judge's feedback." : ".");
    buf_addf(out, " Verdicts by backend <code>%s</code>%s.</p></section>\n",
             json_str(r->stages[0].bench, "backend", "?"), faster ? "" : ", where speed is not measured");
}

/* ---- families and tasks ---- */

static void report_tables_heat(struct buf *out, double p, const char *text)
{
    if (isfinite(p))
        buf_addf(out, "<td class=heat style=\"--p:%.3f\"%s>%s", p, p > 0.8 ? " data-dark" : "", text);
    else
        buf_adds(out, "<td class=dim>&ndash;");
}

void report_families(struct buf *out, const struct report *r)
{
    const json_t *families, *v;
    const char *name;

    if (r->n == 0)
        return;
    families = json_object_get(r->stages[r->n - 1].bench, "families");
    if (json_object_size(families) < 2)
        return;
    buf_adds(out, "<section><h2>By family</h2><p class=note>Share that passes on the tasks of each family.</p>"
                  "<div class=scroll><table class=heatmap><thead><tr><th>family<th>tasks");
    for (int i = 0; i < r->n; i++) {
        buf_adds(out, "<th>");
        html_text(out, r->stages[i].name);
    }
    buf_adds(out, "<tbody>");
    json_object_foreach((json_t *)families, name, v) {
        buf_adds(out, "<tr><th>");
        html_text(out, name);
        buf_addf(out, "<td>%lld", (long long)json_i64(v, "tasks", 0));
        for (int i = 0; i < r->n; i++) {
            double p = report_tables_share(json_object_get(json_object_get(r->stages[i].bench, "families"), name),
                                           "avg_at_8");
            char text[32];
            snprintf(text, sizeof text, "%.0f&#8239;%%", 100 * p);
            report_tables_heat(out, p, text);
        }
    }
    buf_adds(out, "</table></div></section>\n");
}

static const json_t *report_tables_task_of(const json_t *bench, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(bench, "per_task"), i, v)
        if (!strcmp(json_str(v, "task", ""), name))
            return v;
    return NULL;
}

void report_tasks(struct buf *out, const struct report *r)
{
    const json_t *v;
    size_t i;

    if (r->n == 0)
        return;
    buf_adds(out, "<section><h2>By task</h2><details><summary>Programs that passed, task by task</summary>"
                  "<div class=scroll><table class=heatmap><thead><tr><th>task");
    for (int k = 0; k < r->n; k++) {
        buf_adds(out, "<th>");
        html_text(out, r->stages[k].name);
    }
    buf_adds(out, "<tbody>");
    json_array_foreach(json_object_get(r->stages[r->n - 1].bench, "per_task"), i, v) {
        const char *name = json_str(v, "task", "");
        buf_adds(out, "<tr><th>");
        html_text(out, name);
        for (int k = 0; k < r->n; k++) {
            const json_t *t = report_tables_task_of(r->stages[k].bench, name);
            double n = json_f64(t, "n", 0), c = json_f64(t, "passed", 0);
            char text[32];
            snprintf(text, sizeof text, "%.0f / %.0f", c, n);
            report_tables_heat(out, n > 0 ? c / n : NAN, text);
        }
    }
    buf_adds(out, "</table></div></details></section>\n");
}

/* ---- failures ---- */

void report_failures(struct buf *out, const struct report *r)
{
    static const char *const keys[] = {"passed", "correctness_error", "runtime_error", "compile_error",
                                       "extraction_error", "cheating", "timeout", "infra"};
    static const char *const names[] = {"passed", "wrong result", "runtime error", "compile error", "no program",
                                        "cheating", "timeout", "infra"};
    static const char *const classes[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
    enum { N = sizeof keys / sizeof *keys };
    struct svg_stack rows[REPORT_MAX_STAGES];
    double *counts = xcalloc((size_t)r->n * N + 1, sizeof *counts);
    const char *shown[N], *shown_class[N];
    int n = 0;

    for (int k = 0; k < N; k++) { /* kinds that never occur are left out */
        bool occurs = false;
        for (int i = 0; i < r->n; i++) {
            counts[i * N + n] = json_f64(json_object_get(r->stages[i].bench, "categories"), keys[k], 0);
            occurs |= counts[i * N + n] > 0;
        }
        if (occurs) {
            shown[n] = names[k];
            shown_class[n++] = classes[k];
        }
    }
    for (int i = 0; i < r->n; i++)
        rows[i] = (struct svg_stack){r->stages[i].name, counts + i * N};
    if (n) {
        buf_adds(out, "<section><h2>What goes wrong</h2>");
        svg_stacks(out, "Verdicts on first responses", rows, r->n, shown, shown_class, n);
        buf_adds(out, "</section>\n");
    }
    free(counts);
}
