/* watch.c - reads the metrics of a run that goes on, and makes a text and a page's data of them. */
#include "report/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define RECENT 10

/* A callback of the reader: appends a line to the array ctx. */
static int watch_add_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    return json_array_append(ctx, v);
}

int watch_read(const char *run, json_t **ret_lines, double *ret_idle, struct err *e)
{
    char *path = path_join(run, "metrics.jsonl");
    json_t *lines = json_array();
    struct stat st;
    int rc = 0;

    if (stat(path, &st) < 0)
        rc = err_set(e, ERR_INPUT, "'%s' has no metrics.jsonl: no stage of it trains yet, or it is no run; give "
                                   "the folder of a run that sft, rft, rl or run writes", run);
    if (rc == 0)
        rc = jsonl_each(path, watch_add_line, lines, e);
    free(path);
    if (rc < 0) {
        json_decref(lines);
        return -1;
    }
    *ret_lines = lines;
    *ret_idle = difftime(time(NULL), st.st_mtime);
    return 0;
}

/* ---- one quantity of the newest stage ---- */

static const struct watch_row {
    const char *key, *label;
    bool percent;
} rows[] = {
    {"loss", "loss", false},          {"val_loss", "validation loss", false}, {"reward", "reward", false},
    {"pass_rate", "pass rate", true}, {"best_pass_rate", "pass rate, any turn", true}, {"entropy", "entropy", false},
    {"grad_norm", "gradient norm", false}, {"kl", "kl", false}, {"masked_share", "masked by MirrorPop", true},
    {"off_policy_mirror", "off-policy measure", false}, {"response_length", "response length", false},
    {"logprob_mismatch_tokens", "log-probs that differ", false}, {"sampling_s", "sampling, s", false},
    {"judging_s", "judging, s", false}, {"learning_s", "learning, s", false}, {"tokens_s", "tokens a second", false},
    {"lr", "learning rate", false},
};

static const json_t *watch_last_line(const json_t *lines)
{
    return json_array_get(lines, json_array_size(lines) - 1);
}

/* The key's finite values in the last line's stage; caller frees. */
static double *watch_course(const json_t *lines, const char *key, size_t *ret_n)
{
    const char *stage = json_str(watch_last_line(lines), "stage", "");
    double *v = xmalloc((json_array_size(lines) + 1) * sizeof *v);
    const json_t *line;
    size_t i, n = 0;

    json_array_foreach((json_t *)lines, i, line) {
        const json_t *x = json_object_get(line, key);
        if (x && !strcmp(json_str(line, "stage", ""), stage) && isfinite(json_num_value(x)))
            v[n++] = json_num_value(x);
    }
    *ret_n = n;
    return v;
}

static double watch_mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

/* Each character is the mean of its share of the steps. */
static void watch_spark(struct buf *out, const double *v, size_t n, size_t width)
{
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double lo = INFINITY, hi = -INFINITY;
    size_t cells = n < width ? n : width;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < cells; i++) {
            size_t from = i * n / cells, to = (i + 1) * n / cells;
            double x = watch_mean(v + from, to - from);
            lo = fmin(lo, x), hi = fmax(hi, x);
            if (pass)
                buf_adds(out, block[hi > lo ? (int)((x - lo) / (hi - lo) * 7.999) : 0]);
        }
}

/* Appends seconds in the unit that reads best. */
static void watch_duration(struct buf *out, double s)
{
    if (s < 120)
        buf_addf(out, "%.0f s", s);
    else if (s < 7200)
        buf_addf(out, "%.0f min", s / 60);
    else
        buf_addf(out, "%.1f h", s / 3600);
}

/* "rl, step 12, 34 min, last step 5 s ago" */
static void watch_heading(struct buf *out, const json_t *lines, double idle)
{
    const json_t *last = watch_last_line(lines);

    if (!last) {
        buf_adds(out, "no step is finished yet");
        return;
    }
    buf_addf(out, "%s, step %lld, ", json_str(last, "stage", "?"), (long long)json_i64(last, "step", 0));
    watch_duration(out, json_f64(last, "time_s", 0));
    buf_adds(out, ", last step ");
    watch_duration(out, idle);
    buf_adds(out, " ago");
}

/* Appends a number in a column of eleven characters, as percent where the row says so. */
static void watch_value(struct buf *out, const struct watch_row *r, double x)
{
    char text[40];

    if (r->percent)
        snprintf(text, sizeof text, "%.1f %%", 100 * x);
    else
        snprintf(text, sizeof text, fabs(x) >= 1e5 || (x != 0 && fabs(x) < 1e-3) ? "%.2e" : "%.4g", x);
    buf_addf(out, " %10s", text);
}

void watch_text(struct buf *out, const char *run, const json_t *lines, double idle, int width)
{
    int room = width > 60 ? width - 50 : 10;

    buf_addf(out, "%s: ", run);
    watch_heading(out, lines, idle);
    buf_addf(out, "\n%-24s %10s %10s\n", "", "last", "recently");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        double *v = watch_course(lines, rows[i].key, &n);
        size_t recent = n < RECENT ? n : RECENT;
        if (n) {
            buf_addf(out, "%-24s", rows[i].label);
            watch_value(out, &rows[i], v[n - 1]);
            watch_value(out, &rows[i], watch_mean(v + n - recent, recent));
            buf_adds(out, "  ");
            watch_spark(out, v, n, (size_t)room);
            buf_addc(out, '\n');
        }
        free(v);
    }
}

/* ---- the page ---- */

#define MOST_TILES 6

/* Figures with their last value and recent mean, as a list. New. */
static json_t *watch_tiles(const json_t *lines)
{
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof rows / sizeof *rows && json_array_size(list) < MOST_TILES; i++) {
        size_t n;
        double *v = watch_course(lines, rows[i].key, &n);
        size_t recent = n < RECENT ? n : RECENT;
        if (n)
            json_array_append_new(list, json_pack("{s:s,s:f,s:f,s:i,s:b}", "label", rows[i].label, "last", v[n - 1],
                                                  "mean", watch_mean(v + n - recent, recent), "n", (int)recent,
                                                  "percent", rows[i].percent));
        free(v);
    }
    return list;
}

json_t *watch_data(const char *run, const json_t *lines, double idle, int every)
{
    const char *name = strrchr(run, '/') && strrchr(run, '/')[1] ? strrchr(run, '/') + 1 : run;
    struct buf about;
    json_t *page;

    buf_init(&about, 4096);
    watch_heading(&about, lines, idle);
    page = json_pack("{s:s,s:s,s:o,s:s,s:s,s:O,s:o,s:i}", "schema", "musacoder.report/1", "kind", "watch", "title",
                     json_utf8(name, strlen(name)), "about", about.p, "from",
                     every ? "metrics.jsonl by 'musacoder watch', which writes it anew while it runs"
                           : "metrics.jsonl by 'musacoder watch --once'", "metrics", lines,
                     "tiles", watch_tiles(lines), "reload", every);
    buf_free(&about);
    return page;
}
