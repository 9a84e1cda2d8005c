/* report.c - puts the sections together. See report.h; reading order of the page is that of report_model_sections or
 * report_suite_sections. */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/report_parts.h"
#include "bench/svg.h"

void report_open(struct buf *out, const char *title, const char *sub)
{
    char day[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(day, sizeof day, "%Y-%m-%d", localtime_r(&now, &tm));
    buf_adds(out, "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
                  "content=\"width=device-width,"
                  "initial-scale=1\"><title>");
    html_text(out, title);
    buf_adds(out, " - musacoder</title><style>\n");
    buf_adds(out, report_css);
    buf_adds(out, "</style></head><body><main>\n<h1>");
    html_text(out, title);
    buf_addf(out, "</h1><p class=sub>%s <span class=dim>%s</span></p>\n", sub, day);
}

void report_close(struct buf *out, const char *made_from)
{
    buf_addf(out, "<footer>Made by <code>musacoder</code> from %s. The page is one file and loads nothing.</footer>\n"
                  "<div id=tip></div></main><script>\n", made_from);
    buf_adds(out, report_js);
    buf_adds(out, "</script></body></html>\n");
}

static const char *report_sub_title(const struct report *r)
{
    if (report_is_suite(r))
        return "Programs for KernelBench, judged by MooreEval.";
    return r->n > 1 ? "A model learns to write GPU kernels; MooreEval judges every program."
                    : "Programs that a model wrote, judged by MooreEval.";
}

static void report_recipe(struct buf *out, const struct report *r)
{
    if (!r->recipe)
        return;
    buf_adds(out, "<section><h2>Recipe</h2><details><summary>what ran, with every option resolved</summary><pre>");
    html_text(out, r->recipe);
    buf_adds(out, "</pre></details></section>\n");
}

static void report_notes(struct buf *out, const struct report *r)
{
    const json_t *v;
    size_t i;

    if (r->n == 0)
        buf_adds(out, "<section><p>No benchmark has finished yet.</p></section>\n");
    if (json_array_size(r->notes) == 0)
        return;
    buf_adds(out, "<section><h2>Left out</h2><ul>");
    json_array_foreach(r->notes, i, v) {
        buf_adds(out, "<li>");
        html_text(out, json_string_value(v));
    }
    buf_adds(out, "</ul></section>\n");
}

static void report_model_sections(struct buf *out, const struct report *r)
{
    report_tiles(out, r);
    report_stage_table(out, r);
    report_families(out, r);
    report_failures(out, r);
    report_curves(out, r);
    report_examples(out, r);
    report_tasks(out, r);
}

static void report_suite_sections(struct buf *out, const struct report *r)
{
    report_suite_tiles(out, r);
    report_suite_results(out, r);
    report_suite_verdicts(out, r);
    report_suite_speed(out, r);
    report_suite_time(out, r);
    report_suite_left_out(out, r);
    report_examples(out, r);
    report_tasks(out, r);
}

int report_build(const char *run, struct buf *out, struct err *e)
{
    struct report r;

    if (!file_is_dir(run))
        return err_set(e, ERR_INPUT, "'%s' is not a run folder", run);
    report_load(run, &r);
    report_open(out, report_is_suite(&r) ? r.stages[0].name : r.title, report_sub_title(&r));
    if (report_is_suite(&r))
        report_suite_sections(out, &r);
    else
        report_model_sections(out, &r);
    report_recipe(out, &r);
    report_notes(out, &r);
    report_close(out, "bench.json, verdicts.jsonl and metrics.jsonl of this run");
    report_unload(&r);
    return out->cut ? err_set(e, ERR_BUG, "the report of '%s' is larger than %zu bytes", run, out->max) : 0;
}

int report_write(const char *run, struct err *e)
{
    char *path = path_join(run, "report.html");
    struct buf out;
    int rc;

    buf_init(&out, BUF_MAX_TEXT);
    rc = report_build(run, &out, e);
    if (rc == 0)
        rc = file_write(path, out.p, out.n, e);
    buf_free(&out);
    free(path);
    return rc;
}
