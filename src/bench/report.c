/* report.c - puts the sections together. See report.h; reading order of the page is that of report_build. */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/report_parts.h"
#include "bench/svg.h"

static void head(struct buf *out, const struct report *r)
{
    buf_adds(out, "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width,"
                  "initial-scale=1\"><title>");
    html_text(out, r->title);
    buf_adds(out, " - musacoder</title><style>\n");
    buf_adds(out, report_css);
    buf_adds(out, "</style></head><body><main>\n");
}

static void title(struct buf *out, const struct report *r)
{
    char day[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(day, sizeof day, "%Y-%m-%d", localtime_r(&now, &tm));
    buf_adds(out, "<h1>");
    html_text(out, r->title);
    buf_adds(out, "</h1><p class=sub>");
    if (r->n > 1)
        buf_adds(out, "A model learns to write GPU kernels; MooreEval judges every program.");
    else
        buf_adds(out, "Programs that a model wrote, judged by MooreEval.");
    buf_addf(out, " <span class=dim>%s</span></p>\n", day);
}

static void recipe(struct buf *out, const struct report *r)
{
    if (!r->recipe)
        return;
    buf_adds(out, "<section><h2>Recipe</h2><details><summary>what ran, with every option resolved</summary><pre>");
    html_text(out, r->recipe);
    buf_adds(out, "</pre></details></section>\n");
}

static void notes(struct buf *out, const struct report *r)
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

int report_build(const char *run, struct buf *out, struct err *e)
{
    struct report r;

    if (!file_is_dir(run))
        return err_set(e, ERR_INPUT, "'%s' is not a run folder", run);
    report_load(run, &r);
    head(out, &r);
    title(out, &r);
    report_tiles(out, &r);
    report_stage_table(out, &r);
    report_families(out, &r);
    report_failures(out, &r);
    report_curves(out, &r);
    report_examples(out, &r);
    report_tasks(out, &r);
    recipe(out, &r);
    notes(out, &r);
    buf_adds(out, "<footer>Made by <code>musacoder</code> from bench.json, verdicts.jsonl and metrics.jsonl of this run. "
                  "The page is one file and loads nothing.</footer>\n<div id=tip></div></main><script>\n");
    buf_adds(out, report_js);
    buf_adds(out, "</script></body></html>\n");
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
