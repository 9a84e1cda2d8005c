/* bench_compare.c - see bench_compare.h. Reading order: bench_compare at the end; load a side, pair the tasks, sum up
 * groups. */
#include "bench/bench_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "bench/passk.h"
#include "bench/bench_run.h"
#include "bench/speed.h"
#include "bench/stats.h"

/* ---- one side ---- */

struct speed_sum { /* of logs, over passed samples with a trusted time */
    double point, lo, hi;
    int n;
    bool bounded; /* every one had an interval */
};

struct side_task {
    const char *name, *family; /* borrowed from bench.json */
    int n, passed;
    char *first;               /* "passed", a category, "missing"; NULL: not judged */
    struct speed_sum by[N_BASELINES];
};

struct bench_compare_side {
    const char *dir;
    json_t *bench;
    json_t *index; /* name -> position */
    struct side_task *t;
    int n;
};

static void bench_compare_side_free(struct bench_compare_side *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->t[i].first);
    free(s->t);
    json_decref(s->index);
    json_decref(s->bench);
}

/* Adds a timed verdict's logarithms to the sum. */
static void bench_compare_add_speed(struct speed_sum *sum, const struct speed *v)
{
    if (!v->timed)
        return;
    sum->bounded = (sum->n == 0 || sum->bounded) && v->lo > 0 && isfinite(v->hi);
    sum->point += log(v->point);
    sum->lo += v->lo > 0 ? log(v->lo) : 0;
    sum->hi += v->hi > 0 ? log(v->hi) : 0;
    sum->n++;
}

/* A callback of jsonl_each: counts a first turn's verdict for its task. */
static int bench_compare_take_verdict(json_t *line, size_t at, void *ctx, struct err *e)
{
    struct bench_compare_side *s = ctx;
    const json_t *v = json_object_get(line, "verdict"), *pos = json_object_get(s->index, json_str(line, "task", ""));
    struct side_task *t;

    (void)at, (void)e;
    if (!pos || json_i64(line, "turn", 1) != 1 || verdict_infra(v))
        return 0;
    t = &s->t[json_integer_value(pos)];
    if (json_i64(line, "sample", -1) == 0 && (!t->first || !strcmp(t->first, "missing"))) {
        free(t->first);
        t->first = xstrdup(verdict_passed(v) ? "passed" : json_str(v, "category", "failed"));
    }
    for (enum speed_baseline k = 0; k < N_BASELINES && verdict_passed(v); k++) {
        struct speed got = verdict_speed(v, k);
        bench_compare_add_speed(&t->by[k], &got);
    }
    return 0;
}

/* Turns sums into means. */
static void bench_compare_finish_speeds(struct bench_compare_side *s)
{
    for (int i = 0; i < s->n; i++)
        for (enum speed_baseline k = 0; k < N_BASELINES; k++) {
            struct speed_sum *v = &s->t[i].by[k];
            v->point = v->n ? v->point / v->n : NAN;
            v->lo = v->n && v->bounded ? v->lo / v->n : NAN;
            v->hi = v->n && v->bounded ? v->hi / v->n : NAN;
        }
}

/* Makes the side's table of tasks, with its index by name. */
static void bench_compare_index_tasks(struct bench_compare_side *s)
{
    const json_t *list = json_object_get(s->bench, "per_task"), *v;
    bool fail = !strcmp(json_str(json_object_get(s->bench, "missing"), "policy", ""), "fail");
    size_t i;

    s->index = json_object();
    s->t = xcalloc(json_array_size(list) + 1, sizeof *s->t);
    json_array_foreach(list, i, v) {
        struct side_task *t = &s->t[s->n];
        t->name = json_str(v, "task", "");
        t->family = json_str(v, "family", "all");
        t->n = (int)json_i64(v, "n", 0);
        t->passed = (int)json_i64(v, "passed", 0);
        if (fail && t->n > 0)
            t->first = xstrdup("missing"); /* until its verdict is found */
        json_object_set_new(s->index, t->name, json_integer(s->n++));
    }
}

/* Reads one run folder. ERR_INPUT: it is no finished benchmark. */
static int bench_compare_side_load(const char *dir, struct bench_compare_side *ret, struct err *e)
{
    char *path = path_join(dir, "bench.json"), *lines = path_join(dir, "verdicts.jsonl");
    struct bench_compare_side s = {.dir = dir};
    int rc = 0;

    if (!file_exists(path) || !file_exists(lines))
        rc = err_set(e, ERR_INPUT, "'%s' is no finished benchmark; 'musacoder bench --out %s' makes one", dir, dir);
    else if (listing_check(dir, e) < 0 || !(s.bench = json_read(path, e)))
        rc = -1;
    if (rc == 0) {
        bench_compare_index_tasks(&s);
        rc = jsonl_each(lines, bench_compare_take_verdict, &s, e);
        bench_compare_finish_speeds(&s);
    }
    free(path);
    free(lines);
    if (rc < 0)
        bench_compare_side_free(&s);
    else
        *ret = s;
    return rc;
}

/* ---- pairs ---- */

struct bench_compare_pair {
    const struct side_task *a, *b;
};

struct pairs {
    struct bench_compare_pair *v;
    int n, only_a, only_b;
    double faster_than;
};

/* Pairs the tasks that both sides judged. */
static void bench_compare_make_pairs(const struct bench_compare_side *a, const struct bench_compare_side *b,
                                     struct pairs *p)
{
    int judged_b = 0;

    p->v = xcalloc((size_t)a->n + 1, sizeof *p->v);
    for (int i = 0; i < b->n; i++)
        judged_b += b->t[i].n > 0;
    for (int i = 0; i < a->n; i++) {
        const json_t *pos = json_object_get(b->index, a->t[i].name);
        const struct side_task *other = pos ? &b->t[json_integer_value(pos)] : NULL;
        if (a->t[i].n > 0 && other && other->n > 0)
            p->v[p->n++] = (struct bench_compare_pair){&a->t[i], other};
        else
            p->only_a += a->t[i].n > 0;
    }
    p->only_b = judged_b - p->n;
}

static bool bench_compare_first_passed(const struct side_task *t)
{
    return t->first && !strcmp(t->first, "passed");
}

static double bench_compare_log_ratio(const struct bench_compare_pair *p, enum speed_baseline k)
{
    return p->b->by[k].point - p->a->by[k].point; /* NaN unless both are timed */
}

/* How the task changed, as a word. */
static const char *bench_compare_kind_of(const struct bench_compare_pair *p, double faster_than)
{
    double share = avg_at_n(p->b->n, p->b->passed) - avg_at_n(p->a->n, p->a->passed),
        r = bench_compare_log_ratio(p, BASE_EAGER);
    const struct speed_sum *a = &p->a->by[BASE_EAGER], *b = &p->b->by[BASE_EAGER];

    if (p->a->first && p->b->first && bench_compare_first_passed(p->a) != bench_compare_first_passed(p->b))
        return bench_compare_first_passed(p->b) ? "gained" : "lost";
    if (share != 0)
        return share > 0 ? "better" : "worse";
    if (isfinite(a->lo) && isfinite(b->lo))
        return b->lo > a->hi ? "faster" : b->hi < a->lo ? "slower" : NULL;
    return r > log(faster_than) ? "faster" : r < -log(faster_than) ? "slower" : NULL;
}

/* ---- groups ---- */

/* Means of both sides and their difference with its 95 % interval and sign test. New. */
static json_t *bench_compare_avg_part(const struct bench_compare_pair *p, int n)
{
    double *d = xcalloc((size_t)n + 1, sizeof *d), a = 0, b = 0;
    struct interval ci;
    int better = 0, worse = 0;
    json_t *v;

    for (int i = 0; i < n; i++) {
        double x = avg_at_n(p[i].a->n, p[i].a->passed), y = avg_at_n(p[i].b->n, p[i].b->passed);
        a += x / n;
        b += y / n;
        d[i] = y - x;
        better += d[i] > 0;
        worse += d[i] < 0;
    }
    ci = stats_change_interval(d, n);
    v = json_pack("{s:f,s:f,s:f,s:o,s:i,s:i,s:f}", "a", a, "b", b, "difference", stats_mean(d, n), "ci",
                  json_interval(ci.lo, ci.hi), "better", better, "worse", worse, "p",
                  stats_sign_p(better, worse));
    free(d);
    return v;
}

/* First samples: how many only one side passes, and McNemar's test. New. */
static json_t *bench_compare_first_part(const struct bench_compare_pair *p, int n)
{
    int count[2][2] = {{0}}, tasks = 0;

    for (int i = 0; i < n; i++)
        if (p[i].a->first && p[i].b->first) {
            tasks++;
            count[bench_compare_first_passed(p[i].a)][bench_compare_first_passed(p[i].b)]++;
        }
    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:f}", "tasks", tasks, "both", count[1][1], "only_a", count[1][0], "only_b",
                     count[0][1], "neither", count[0][0], "p", stats_sign_p(count[0][1], count[1][0]));
}

/* The ratio of speedups over tasks that both sides time, with its interval. New; null without any. */
static json_t *bench_compare_speed_part(const struct bench_compare_pair *p, int n, enum speed_baseline k)
{
    double *d = xcalloc((size_t)n + 1, sizeof *d);
    int m = 0, faster = 0, slower = 0;
    json_t *v = json_null();
    struct interval ci;

    for (int i = 0; i < n; i++) {
        double r = bench_compare_log_ratio(&p[i], k);
        if (!isfinite(r))
            continue;
        d[m++] = r;
        faster += r > 0;
        slower += r < 0;
    }
    ci = stats_bootstrap_mean(d, m, 1);
    if (m)
        v = json_pack("{s:i,s:f,s:o,s:i,s:i,s:f}", "tasks", m, "ratio", exp(stats_mean(d, m)), "ci",
                      json_interval(exp(ci.lo), exp(ci.hi)), "faster", faster, "slower", slower, "p",
                      stats_wilcoxon(d, m).p);
    free(d);
    return v;
}

/* family NULL: all. */
static json_t *bench_compare_group(const struct pairs *p, const char *family)
{
    struct bench_compare_pair *in = xcalloc((size_t)p->n + 1, sizeof *in);
    json_t *v = json_object(), *speed = json_object();
    int n = 0;

    for (int i = 0; i < p->n; i++)
        if (!family || !strcmp(p->v[i].a->family, family))
            in[n++] = p->v[i];
    json_object_set_new(v, "name", json_string(family ? family : "all"));
    json_object_set_new(v, "tasks", json_integer(n));
    json_object_set_new(v, "avg", bench_compare_avg_part(in, n));
    json_object_set_new(v, "first", bench_compare_first_part(in, n));
    for (enum speed_baseline k = 0; k < N_BASELINES; k++)
        json_object_set_new(speed, baseline_key(k), bench_compare_speed_part(in, n, k));
    json_object_set_new(v, "speed", speed);
    free(in);
    return v;
}

/* The comparison of each family and of all. New. */
static json_t *bench_compare_groups(const struct pairs *p)
{
    json_t *list = json_array(), *seen = json_object();

    for (int i = 0; i < p->n; i++)
        if (!json_object_get(seen, p->v[i].a->family)) {
            json_object_set_new(seen, p->v[i].a->family, json_true());
            json_array_append_new(list, bench_compare_group(p, p->v[i].a->family));
        }
    if (json_array_size(list) == 1)
        json_array_clear(list); /* one family is all */
    json_array_append_new(list, bench_compare_group(p, NULL));
    json_decref(seen);
    return list;
}

/* ---- the record ---- */

static json_t *bench_compare_speed_value(double log_speed)
{
    return isfinite(log_speed) ? json_real(exp(log_speed)) : json_null();
}

/* One side's counts and times of a task. New. */
static json_t *bench_compare_side_of(const struct side_task *t)
{
    return json_pack("{s:i,s:i,s:s?,s:o,s:o}", "passed", t->passed, "n", t->n, "first", t->first, "eager",
                     bench_compare_speed_value(t->by[BASE_EAGER].point), "compile",
                     bench_compare_speed_value(t->by[BASE_COMPILE].point));
}

/* A row for each pair. New. */
static json_t *bench_compare_tasks_of(const struct pairs *p)
{
    json_t *list = json_array();

    for (int i = 0; i < p->n; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s?,s:o,s:o,s:o}", "task", p->v[i].a->name, "family",
                                              p->v[i].a->family, "kind",
                                              bench_compare_kind_of(&p->v[i], p->faster_than), "a",
                                              bench_compare_side_of(p->v[i].a), "b", bench_compare_side_of(p->v[i].b),
                                              "ratio",
                                              bench_compare_speed_value(
                                                  bench_compare_log_ratio(&p->v[i], BASE_EAGER))));
    return list;
}

/* A side's facts. New. */
static json_t *bench_compare_head_of(const struct bench_compare_side *s)
{
    return json_pack("{s:s,s:o,s:s,s:s,s:I,s:I,s:O?,s:O?,s:O?}", "name", json_str(s->bench, "name", "?"), "dir",
                     json_utf8(s->dir, strlen(s->dir)), "suite", json_str(s->bench, "suite", "?"), "backend",
                     json_str(s->bench, "backend", "?"), "samples",
                     (json_int_t)json_i64(s->bench, "samples", 0), "tasks", (json_int_t)json_i64(s->bench, "tasks", 0),
                     "made_by", json_object_get(s->bench, "made_by"), "machine", json_object_get(s->bench, "machine"),
                     "seed", json_object_get(s->bench, "seed"));
}

/* Adds the sentence where the sides' values of key differ. */
static void bench_compare_note_if_differs(json_t *notes, const struct bench_compare_side *a,
                                          const struct bench_compare_side *b, const char *key, const char *text)
{
    const json_t *x = json_object_get(a->bench, key), *y = json_object_get(b->bench, key);

    if ((x || y) && !(x && y && json_equal(x, y)))
        json_array_append_new(notes, json_string(text));
}

/* What makes the two runs hard to compare, as sentences. New. */
static json_t *bench_compare_notes_of(const struct bench_compare_side *a, const struct bench_compare_side *b)
{
    json_t *notes = json_array();

    bench_compare_note_if_differs(notes, a, b, "suite_sha256", "the two suites are not the same files; tasks are "
                                                               "matched by name");
    bench_compare_note_if_differs(notes, a, b, "backend", "the two ran on different backends");
    bench_compare_note_if_differs(notes, a, b, "protocol", "the two were judged under different protocols");
    bench_compare_note_if_differs(notes, a, b, "shrink_to", "the tasks were made small to different sizes");
    bench_compare_note_if_differs(notes, a, b, "samples", "the two have different numbers of samples per task");
    if (strcmp(json_str(json_object_get(a->bench, "missing"), "policy", "skip"),
               json_str(json_object_get(b->bench, "missing"), "policy", "skip")))
        json_array_append_new(notes, json_string("missing samples count as failures on one side only"));
    return notes;
}

/* The whole comparison. New. */
static json_t *bench_compare_record(const struct bench_compare_side *a, const struct bench_compare_side *b,
                                    const struct pairs *p)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:f,s:i,s:i,s:o,s:o}", "schema", "musacoder.bench.compare/1", "a",
                     bench_compare_head_of(a), "b", bench_compare_head_of(b), "notes", bench_compare_notes_of(a, b),
                     "faster_than", p->faster_than, "only_a",
                     p->only_a, "only_b", p->only_b, "groups", bench_compare_groups(p), "tasks",
                     bench_compare_tasks_of(p));
}

int bench_compare(const char *dir_a, const char *dir_b, double faster_than, json_t **ret, struct err *e)
{
    struct pairs p = {.faster_than = faster_than > 1 ? faster_than : FASTER_MIN};
    struct bench_compare_side a = {0}, b = {0};
    int rc = bench_compare_side_load(dir_a, &a, e);

    if (rc == 0 && (rc = bench_compare_side_load(dir_b, &b, e)) == 0) {
        bench_compare_make_pairs(&a, &b, &p);
        if (p.n == 0)
            rc = err_set(e, ERR_INPUT, "'%s' and '%s' have no judged task in common", dir_a, dir_b);
        else
            *ret = bench_compare_record(&a, &b, &p);
    }
    free(p.v);
    bench_compare_side_free(&a);
    bench_compare_side_free(&b);
    return rc;
}
