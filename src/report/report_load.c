/* report_load.c - reads a run folder for the report. Nothing here is fatal: a run that is half done has a report
 * too. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "report/report_parts.h"

/* Once: a stage that cannot be read is met again where the folders are listed. */
static void report_load_note(struct report *r, const char *text)
{
    json_t *note = json_utf8(text, strlen(text)), *other;
    size_t i;

    json_array_foreach(r->notes, i, other)
        if (json_equal(note, other)) {
            json_decref(note);
            return;
        }
    json_array_append_new(r->notes, note);
}

/* The file's JSON, new; NULL where it is absent, and noted where it is broken. */
static json_t *report_load_read_optional(struct report *r, const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    struct err e = ERR_INIT;
    json_t *v = NULL;

    if (file_exists(path) && !(v = json_read(path, &e)))
        report_load_note(r, e.msg);
    free(path);
    return v;
}

/* A callback of the reader: appends a line to the array ctx. */
static int report_load_collect_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    return json_is_object(v) ? json_array_append(ctx, v) : 0;
}

/* A callback of jsonl_each: keeps an answer's text under its key. */
static int report_load_collect_sample(json_t *v, size_t line, void *ctx, struct err *e)
{
    char *key = xasprintf("%s/%lld/%lld", json_str(v, "task", ""), (long long)json_i64(v, "sample", 0),
                          (long long)json_i64(v, "turn", 1));

    (void)line, (void)e;
    json_object_set(ctx, key, json_object_get(v, "text"));
    free(key);
    return 0;
}

/* Reads a file of lines; what is wrong with it is noted. */
static void report_load_read_lines(struct report *r, const char *dir, const char *name,
                                   int (*f)(json_t *, size_t, void *, struct err *), json_t *into)
{
    char *path = path_join(dir, name);
    struct err e = ERR_INIT;

    if (file_exists(path) && jsonl_each(path, f, into, &e) < 0)
        report_load_note(r, e.msg);
    free(path);
}

/* Adds the benchmark with its verdicts and samples; takes bench. */
static void report_load_fill_stage(struct report *r, const char *dir, const char *name, json_t *bench)
{
    struct report_stage *s = &r->stages[r->n++];

    s->bench = bench;
    s->name = xstrdup(name ? name : json_str(bench, "name", "benchmark"));
    s->verdicts = json_array();
    s->samples = json_object();
    report_load_read_lines(r, dir, "verdicts.jsonl", report_load_collect_line, s->verdicts);
    report_load_read_lines(r, dir, "samples.jsonl", report_load_collect_sample, s->samples);
}

/* Adds the benchmark in dir, if there is one and it is as its command left it. */
static void report_load_add_stage(struct report *r, const char *dir, const char *name)
{
    struct err e = ERR_INIT;
    json_t *bench;

    if (r->n < REPORT_MAX_STAGES && listing_check(dir, &e) < 0)
        report_load_note(r, e.msg);
    else if (r->n < REPORT_MAX_STAGES && (bench = report_load_read_optional(r, dir, "bench.json")))
        report_load_fill_stage(r, dir, name, bench);
}

static bool report_load_has_stage(const struct report *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->stages[i].name, name))
            return true;
    return false;
}

/* In the order of the summary, then whatever else there is by name. */
static void report_load_load_stages(struct report *r, const char *run)
{
    char *root = path_join(run, "bench"), **names;
    const json_t *v;
    size_t i, n;

    json_array_foreach(json_object_get(r->summary, "stages"), i, v) {
        const char *name = json_str(v, "name", "");
        char *dir = path_join(root, name);
        if (*name && !strchr(name, '/') && !report_load_has_stage(r, name))
            report_load_add_stage(r, dir, name);
        free(dir);
    }
    if (file_is_dir(root) && dir_list(root, &names, &n, NULL) == 0) {
        for (i = 0; i < n; i++) {
            char *dir = path_join(root, names[i]);
            if (!report_load_has_stage(r, names[i]))
                report_load_add_stage(r, dir, names[i]);
            free(dir);
        }
        names_free(names, n);
    }
    if (r->n == 0)
        report_load_add_stage(r, run, NULL);
    free(root);
}

/* The last part of the path, owned. */
static char *report_load_last_part(const char *path)
{
    size_t n = strlen(path);
    const char *s;

    while (n > 1 && path[n - 1] == '/')
        n--;
    for (s = path + n; s > path && s[-1] != '/'; s--)
        ;
    return xstrndup(s, (size_t)(path + n - s));
}

void report_load(const char *run, struct report *r)
{
    char *recipe = path_join(run, "recipe.yaml");
    struct buf b;

    memset(r, 0, sizeof *r);
    r->notes = json_array();
    r->metrics = json_array();
    r->title = report_load_last_part(run);
    r->summary = report_load_read_optional(r, run, "summary.json");
    buf_init(&b, 1 << 20);
    if (file_exists(recipe) && file_read(recipe, &b, NULL) == 0)
        r->recipe = xstrdup(b.p);
    buf_free(&b);
    free(recipe);
    report_load_read_lines(r, run, "metrics.jsonl", report_load_collect_line, r->metrics);
    report_load_load_stages(r, run);
}

void report_unload(struct report *r)
{
    for (int i = 0; i < r->n; i++) {
        free(r->stages[i].name);
        json_decref(r->stages[i].bench);
        json_decref(r->stages[i].verdicts);
        json_decref(r->stages[i].samples);
    }
    free(r->title);
    free(r->recipe);
    json_decref(r->summary);
    json_decref(r->metrics);
    json_decref(r->notes);
    memset(r, 0, sizeof *r);
}
