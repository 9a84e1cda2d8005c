/* bench_sum.c - the result of a benchmark from its verdicts: counts, means over tasks, families, categories. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/machine.h"
#include "base/mem.h"
#include "bench/levels.h"
#include "bench/passk.h"
#include "bench/bench_run.h"
#include "bench/speed.h"
#include "task/extract.h"

struct bench_sums {
    struct task_counts *first, *best, *compile; /* per task; 'compile' counts faster against torch.compile */
    struct task_counts *whole; /* per task: answers that are not cut off before their program is closed */
    double score;
    int judged, cut, infra, timed;
    int success[BENCH_MAX_TURNS]; /* trajectories that passed in turn k */
    json_t *categories;
};

/* What Faster Rate compares, NaN without a trusted measurement. */
static double bench_sum_claim(const json_t *verdict, enum speed_baseline k)
{
    struct speed s = verdict_speed(verdict, k);

    return speed_claim(&s);
}

/* Counts a verdict under 'passed' or its category. */
static void bench_sum_count_category(json_t *categories, const json_t *verdict)
{
    const char *name = verdict_passed(verdict) ? "passed" : json_str(verdict, "category", "infra");

    json_count(categories, name, 1);
}

/* The first turn that passed, from 0; -1: none. */
static int bench_sum_passed_turn(const struct bench_run *b, int task, int sample)
{
    for (int k = 0; k < b->o.turns; k++) {
        const json_t *v = bench_attempt(b, task, sample, k)->verdict;
        if (!v)
            break;
        if (verdict_passed(v))
            return k;
    }
    return -1;
}

/* Counts one sample's verdicts over its turns. */
static void bench_sum_add_sample(const struct bench_run *b, int task, int sample, struct bench_sums *s)
{
    const struct attempt *a = bench_attempt(b, task, sample, 0);
    int turn = bench_sum_passed_turn(b, task, sample);
    bool passed = verdict_passed(a->verdict);
    double eager = bench_sum_claim(a->verdict, BASE_EAGER), min = b->o.faster_than;

    bench_sum_count_category(s->categories, a->verdict);
    if (verdict_infra(a->verdict)) {
        s->infra++;
        return;
    }
    s->judged++;
    s->cut += a->cut;
    if (!a->text || extract_is_whole(a->text, !a->cut))
        s->whole[task].n++, s->whole[task].passed += passed;
    s->score += json_f64(a->verdict, "reward", 0);
    s->timed += !isnan(eager);
    s->first[task].n++;
    s->best[task].n++;
    s->compile[task].n++;
    s->first[task].passed += passed;
    s->first[task].faster += is_faster_than(passed, eager, min);
    s->compile[task].faster += is_faster_than(passed, bench_sum_claim(a->verdict, BASE_COMPILE), min);
    s->best[task].passed += turn >= 0;
    if (turn >= 0)
        s->success[turn]++;
}

/* A sample that is not there is a judged failure, unless its task cannot be judged. */
static void bench_sum_add_missing(const struct bench_run *b, struct bench_sums *s)
{
    for (int i = 0; i < b->suite.n; i++) {
        int n = b->o.samples_dir && !b->suite.skips[i] ? b->o.samples - b->n_samples[i] : 0;
        if (b->n_samples[i] && verdict_is_skip(bench_attempt(b, i, 0, 0)->verdict))
            continue;
        s->first[i].n += n;
        s->best[i].n += n;
        s->compile[i].n += n;
    }
}

/* Each task's counts and rates. New. */
static json_t *bench_sum_per_task(const struct bench_run *b, const struct bench_sums *s)
{
    json_t *list = json_array();

    for (int i = 0; i < b->suite.n; i++) {
        const struct task_counts *t = &s->first[i];
        double p = t->n ? pass_at_k(t->n, t->passed, t->n < 8 ? t->n : 8) : NAN;
        json_array_append_new(list, json_pack("{s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:o}", "task", b->suite.tasks[i].name,
                                              "family", b->suite.families[i], "n", t->n, "passed", t->passed, "whole",
                                              s->whole[i].n, "whole_passed", s->whole[i].passed, "best_passed",
                                              s->best[i].passed, "pass_at_8", json_num(p)));
    }
    return list;
}

/* Of all whole answers alike, whatever their task. */
static double bench_sum_whole_rate(const struct bench_run *b, const struct bench_sums *s)
{
    double n = 0, passed = 0;

    for (int i = 0; i < b->suite.n; i++)
        n += s->whole[i].n, passed += s->whole[i].passed;
    return n > 0 ? passed / n : NAN;
}

/* Means over the tasks of each family, in order of first appearance. */
static json_t *bench_sum_families(const struct bench_run *b, const struct bench_sums *s)
{
    struct task_counts *sub = xcalloc((size_t)b->suite.n, sizeof *sub),
        *best = xcalloc((size_t)b->suite.n, sizeof *best);
    json_t *out = json_object();

    for (int i = 0; i < b->suite.n; i++) {
        const char *name = b->suite.families[i];
        int m = 0;
        if (json_object_get(out, name))
            continue;
        for (int j = i; j < b->suite.n; j++)
            if (!strcmp(b->suite.families[j], name)) {
                sub[m] = s->first[j];
                best[m++] = s->best[j];
            }
        json_object_set_new(out, name, json_pack("{s:i,s:o,s:o,s:o}", "tasks", m, "pass_at_8",
                                                 json_num(suite_pass_at_k(sub, m, 8)), "avg_at_8",
                                                 json_num(suite_avg(sub, m)), "best_avg_at_8",
                                                 json_num(suite_avg(best, m))));
    }
    free(sub);
    free(best);
    return out;
}

/* How many samples pass by each turn. New. */
static json_t *bench_sum_turn_counts(const struct bench_run *b, const struct bench_sums *s)
{
    json_t *list = json_array();

    for (int k = 0; k < b->o.turns; k++)
        json_array_append_new(list, json_integer(s->success[k]));
    return list;
}

/* Of the samples that failed in turn 1, how many passed later. */
static json_t *bench_sum_recovery(const struct bench_run *b, const struct bench_sums *s)
{
    int failed = s->judged - s->success[0], later = 0;

    for (int k = 1; k < b->o.turns; k++)
        later += s->success[k];
    return b->o.turns > 1 && failed > 0 ? json_num((double)later / failed) : json_null();
}

/* The backend that the verdicts name; "" without any. */
static const char *bench_sum_backend_of(const struct bench_run *b)
{
    for (int i = 0; i < b->suite.n; i++)
        for (int j = 0; j < b->n_samples[i]; j++) {
            const char *s = json_str(bench_attempt(b, i, j, 0)->verdict, "backend", NULL);
            if (s)
                return s;
        }
    return json_str(b->o.verdict, "backend", "sim");
}

static void bench_sum_set(json_t *v, const char *key, json_t *x)
{
    json_object_set_new(v, key, x);
}

/* Sets the run's facts: version, machine, model, options. */
static void bench_sum_set_head(json_t *v, const struct bench_run *b)
{
    const struct bench_options *o = &b->o;
    char *machine = machine_text();

    bench_sum_set(v, "schema", json_string("musacoder.bench/1"));
    bench_sum_set(v, "made_by", o->made_by ? json_string(o->made_by) : json_null());
    bench_sum_set(v, "machine", json_utf8(machine, strlen(machine)));
    free(machine);
    bench_sum_set(v, "name", json_utf8(o->name, strlen(o->name)));
    bench_sum_set(v, "model", o->model ? json_utf8(o->model, strlen(o->model)) : json_null());
    bench_sum_set(v, "suite", json_utf8(o->suite ? o->suite : o->tasks, strlen(o->suite ? o->suite : o->tasks)));
    bench_sum_set(v, "suite_sha256", json_string(b->suite.sha256));
    bench_sum_set(v, "backend", json_string(bench_sum_backend_of(b)));
    bench_sum_set(v, "protocol", json_string(json_str(o->verdict, "protocol", "strict")));
    bench_sum_set(v, "tasks", json_integer(b->suite.n));
    bench_sum_set(v, "samples", json_integer(o->samples));
    bench_sum_set(v, "k", json_integer(o->samples < 8 ? o->samples : 8));
    bench_sum_set(v, "turns", json_integer(o->turns));
    /* nobody here sampled what a folder holds */
    bench_sum_set(v, "temperature", o->samples_dir ? json_null() : json_real(o->temperature));
    bench_sum_set(v, "top_p", o->samples_dir ? json_null() : json_real(o->top_p));
    bench_sum_set(v, "seed", json_integer((json_int_t)o->seed));
    bench_sum_set(v, "faster_than", json_real(o->faster_than));
}

/* Sets Pass@k, averages and intervals. */
static void bench_sum_set_rates(json_t *v, const struct bench_run *b, const struct bench_sums *s)
{
    int n = b->suite.n;

    bench_sum_set(v, "pass_at_1", json_num(suite_pass_at_k(s->first, n, 1)));
    bench_sum_set(v, "pass_at_8", json_num(suite_pass_at_k(s->first, n, 8)));
    bench_sum_set(v, "avg_at_8", json_num(suite_avg(s->first, n)));
    bench_sum_set(v, "score", json_num(s->judged ? s->score / s->judged : NAN));
    bench_sum_set(v, "faster_eager", s->timed ? json_num(suite_faster_rate(s->first, n)) : json_null());
    bench_sum_set(v, "faster_compile", s->timed ? json_num(suite_faster_rate(s->compile, n)) : json_null());
    bench_sum_set(v, "best_pass_at_8", json_num(suite_pass_at_k(s->best, n, 8)));
    bench_sum_set(v, "best_avg_at_8", json_num(suite_avg(s->best, n)));
}

json_t *bench_summary(const struct bench_run *b, double seconds)
{
    size_t n = (size_t)b->suite.n;
    struct bench_sums s = {.first = xcalloc(n, sizeof *s.first), .best = xcalloc(n, sizeof *s.best),
                           .compile = xcalloc(n, sizeof *s.compile), .whole = xcalloc(n, sizeof *s.whole),
                           .categories = json_object()};
    json_t *v = json_object();

    for (int i = 0; i < b->suite.n; i++)
        for (int j = 0; j < b->n_samples[i]; j++)
            bench_sum_add_sample(b, i, j, &s);
    if (b->o.missing_fail)
        bench_sum_add_missing(b, &s);
    bench_sum_set_head(v, b);
    bench_sum_set_rates(v, b, &s);
    bench_sum_set(v, "turns_to_success", bench_sum_turn_counts(b, &s));
    bench_sum_set(v, "recovery", bench_sum_recovery(b, &s));
    bench_sum_set(v, "whole_pass_rate", json_num(bench_sum_whole_rate(b, &s)));
    bench_sum_set(v, "cut_share", json_num(s.judged ? (double)s.cut / s.judged : NAN));
    bench_sum_set(v, "infra", json_integer(s.infra));
    bench_sum_set(v, "unsupported", json_integer(json_i64(s.categories, "unsupported", 0)));
    bench_sum_set(v, "categories", s.categories);
    bench_sum_set(v, "families", bench_sum_families(b, &s));
    bench_sum_set(v, "per_task", bench_sum_per_task(b, &s));
    if (b->suite.levels)
        levels_summary(b, v);
    bench_sum_set(v, "seconds", json_real(seconds));
    free(s.first);
    free(s.best);
    free(s.compile);
    free(s.whole);
    return v;
}
