/* bench_csv.c - a suite's result as two CSV files (RFC 4180, a header line, empty cells for what was not measured). */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "bench/levels.h"
#include "bench/bench_run.h"
#include "bench/speed.h"

/* Appends a cell, quoted where that is needed. */
static void bench_csv_cell(struct buf *out, const char *s)
{
    if (out->n && out->p[out->n - 1] != '\n')
        buf_addc(out, ',');
    if (!strpbrk(s, ",\"\r\n")) {
        buf_adds(out, s);
        return;
    }
    buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            buf_addc(out, '"');
        buf_addc(out, *s);
    }
    buf_addc(out, '"');
}

/* A number that is not there is an empty cell. Never the first cell of a row. */
static void bench_csv_number(struct buf *out, double v)
{
    buf_addc(out, ',');
    if (isfinite(v))
        buf_addf(out, "%.6g", v);
}

/* ---- samples.csv ---- */

static const char samples_head[] =
    "suite_task,level,sample,file,status,category,stage,reward,candidate_ms,eager_ms,compile_ms,speedup_eager,"
    "speedup_eager_lo,"
    "speedup_eager_hi,speedup_compile,speedup_compile_lo,speedup_compile_hi,trusted,extract_ms,load_ms,"
    "compile_stage_ms,"
    "correctness_ms,legality_ms,performance_ms\n";

/* Appends a verdict's times in ms and speedups. */
static void bench_csv_speeds(struct buf *out, const json_t *verdict)
{
    const json_t *perf = json_object_get(verdict, "performance");

    bench_csv_number(out, json_num_at(perf, "candidate_ms"));
    bench_csv_number(out, json_num_at(perf, "eager_ms"));
    bench_csv_number(out, json_num_at(perf, "compile_ms"));
    for (enum speed_baseline k = 0; k < N_BASELINES; k++) {
        struct speed s = verdict_speed(verdict, k);
        bench_csv_number(out, s.point);
        bench_csv_number(out, s.lo);
        bench_csv_number(out, s.hi);
    }
    bench_csv_cell(out, !json_is_object(perf) ? "" : json_flag(perf, "trusted", true) ? "1" : "0");
}

/* Appends a sample's row; one that is missing or skipped says so. */
static void bench_csv_sample_row(struct buf *out, const struct bench_run *b, int task, int sample)
{
    static const char *const stages[] = {"extract", "load", "compile", "correctness", "legality", "performance"};
    const struct attempt *a = sample < b->n_samples[task] ? bench_attempt(b, task, sample, 0) : NULL;
    const json_t *v = a ? a->verdict : NULL, *ms = json_object_get(v, "stage_ms");
    const char *none = b->suite.skips[task] ? "skipped" : "missing";

    bench_csv_cell(out, b->suite.tasks[task].name);
    bench_csv_number(out, b->suite.levels[task]);
    bench_csv_number(out, sample);
    bench_csv_cell(out, a && a->file ? a->file : "");
    bench_csv_cell(out, !v ? none : verdict_is_skip(v) ? "skipped" : json_str(v, "status", ""));
    bench_csv_cell(out, v && !verdict_is_skip(v) ? json_str(v, "category", "") : "");
    bench_csv_cell(out, json_str(v, "stage", ""));
    bench_csv_number(out, json_num_at(v, "reward"));
    bench_csv_speeds(out, v);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        bench_csv_number(out, json_num_at(ms, stages[i]));
    buf_addc(out, '\n');
}

/* ---- levels.csv ---- */

/* Appends the head of the table of levels. */
static void bench_csv_level_head(struct buf *out, const json_t *level)
{
    const json_t *v;
    const char *key;

    buf_adds(out, "level,tasks,judged_tasks,samples,missing,skipped,infra,avg,avg_lo,avg_hi");
    json_object_foreach(json_object_get(level, "pass_at"), key, v)
        buf_addf(out, ",pass_at_%s", key);
    for (enum speed_baseline k = 0; k < N_BASELINES; k++) {
        buf_addf(out, ",faster_%s", baseline_key(k));
        for (int p = 0; p < N_FAST_P; p++)
            buf_addf(out, ",fast_%s_%s", fast_p_name[p], baseline_key(k));
        buf_addf(out, ",geomean_%s", baseline_key(k));
    }
    buf_addc(out, '\n');
}

/* Appends a level's row. */
static void bench_csv_level_row(struct buf *out, const json_t *level)
{
    static const char *const counts[] = {"tasks", "judged_tasks", "samples", "missing", "skipped", "infra", "avg"};
    const json_t *ci = json_object_get(level, "avg_ci"), *v;
    const char *key;

    bench_csv_cell(out, json_str(level, "name", ""));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        bench_csv_number(out, json_num_at(level, counts[i]));
    bench_csv_number(out, json_num_value(json_array_get(ci, 0)));
    bench_csv_number(out, json_num_value(json_array_get(ci, 1)));
    json_object_foreach(json_object_get(level, "pass_at"), key, v)
        bench_csv_number(out, json_num_value(v));
    for (enum speed_baseline k = 0; k < N_BASELINES; k++) {
        const json_t *s = json_object_get(json_object_get(level, "speed"), baseline_key(k));
        bench_csv_number(out, json_num_at(s, "faster"));
        for (int p = 0; p < N_FAST_P; p++)
            bench_csv_number(out, json_num_at(json_object_get(s, "fast_p"), fast_p_name[p]));
        bench_csv_number(out, json_num_at(s, "geomean"));
    }
    buf_addc(out, '\n');
}

/* Writes a table to the run's folder. */
static int bench_csv_write_text(struct listing *l, const char *name, const struct buf *text, struct err *e)
{
    return text->cut ? err_set(e, ERR_INPUT, "'%s' would be larger than %zu bytes", name, text->max)
                     : listing_write(l, name, text->p, text->n, e);
}

int bench_write_csv(const struct bench_run *b, struct listing *l, const json_t *result, struct err *e)
{
    const json_t *list = json_object_get(result, "levels"), *v;
    struct buf out;
    size_t i;
    int rc;

    buf_init(&out, BUF_MAX_TEXT);
    buf_adds(&out, samples_head);
    for (int t = 0; t < b->suite.n; t++)
        for (int j = 0; j < (b->o.samples_dir ? b->o.samples : b->n_samples[t]); j++)
            bench_csv_sample_row(&out, b, t, j);
    rc = bench_csv_write_text(l, "samples.csv", &out, e);
    buf_clear(&out);
    bench_csv_level_head(&out, json_array_get(list, 0));
    json_array_foreach(list, i, v)
        bench_csv_level_row(&out, v);
    if (rc == 0)
        rc = bench_csv_write_text(l, "levels.csv", &out, e);
    buf_free(&out);
    return rc;
}
