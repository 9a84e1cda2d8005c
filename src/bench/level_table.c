/* level_table.c - a suite's result and a comparison as text for a terminal. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "bench/bench.h"
#include "bench/bench_compare.h"
#include "bench/levels.h"
#include "bench/speed.h"

/* Prints a share in percent. */
static void level_table_share(FILE *out, double p)
{
    if (isnan(p))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %7.1f%%", 100 * p);
}

/* Prints a ratio. */
static void level_table_ratio(FILE *out, double x)
{
    if (isnan(x))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %7.3gx", x);
}

static double level_table_end_of(const json_t *obj, const char *key, size_t i)
{
    return json_num_value(json_array_get(json_object_get(obj, key), i));
}

/* The largest k of Pass@k, as text. */
static const char *level_table_best_k(const json_t *level)
{
    const char *key, *last = "1";
    const json_t *v;

    json_object_foreach(json_object_get(level, "pass_at"), key, v)
        last = key;
    return last;
}

static const json_t *level_table_speed_of(const json_t *level, enum speed_baseline k)
{
    return json_object_get(json_object_get(level, "speed"), baseline_key(k));
}

/* Prints how many pass, a row for each level. */
static void level_table_pass(FILE *out, const json_t *result)
{
    const json_t *list = json_object_get(result, "levels"), *v;
    const char *k = level_table_best_k(json_array_get(list, 0));
    bool several = strcmp(k, "1") != 0;
    char avg[24], pass[24], faster[24];
    size_t i;

    snprintf(avg, sizeof avg, "%s@%s", several ? "Avg" : "Pass", k);
    snprintf(pass, sizeof pass, "Pass@%s", k);
    snprintf(faster, sizeof faster, ">%gx", json_f64(result, "faster_than", 1.1));
    fprintf(out, "%-9s %6s %6s %7s %7s %7s %5s %8s", "", "tasks", "judged", "samples", "missing", "skipped",
            "infra", avg);
    fprintf(out, several ? " %8s" : "%s", several ? pass : "");
    fprintf(out, " %-17s %8s %8s\n", "  95 % interval", faster, "compile");
    json_array_foreach(list, i, v) {
        fprintf(out, "%-9s %6.0f %6.0f %7.0f %7.0f %7.0f %5.0f", json_str(v, "name", ""), json_num_at(v, "tasks"),
                json_num_at(v, "judged_tasks"), json_num_at(v, "samples"), json_num_at(v, "missing"),
                json_num_at(v, "skipped"), json_num_at(v, "infra"));
        level_table_share(out, json_num_at(v, "avg"));
        if (several)
            level_table_share(out, json_num_at(json_object_get(v, "pass_at"), k));
        level_table_share(out, level_table_end_of(v, "avg_ci", 0));
        level_table_share(out, level_table_end_of(v, "avg_ci", 1));
        for (enum speed_baseline b = 0; b < N_BASELINES; b++)
            level_table_share(out, json_num_at(level_table_speed_of(v, b), "faster"));
        fputc('\n', out);
    }
    if (several)
        fprintf(out, "%s is also the unbiased Pass@1\n", avg);
    if (json_num_at(result, "cut_share") > 0)
        fprintf(out, "%.1f %% of the answers are cut off; of the whole ones %.1f %% pass\n",
                100 * json_num_at(result, "cut_share"), 100 * json_num_at(result, "whole_pass_rate"));
}

/* Prints fast_p against one baseline. */
static void level_table_fast(FILE *out, const json_t *result, enum speed_baseline b)
{
    const json_t *list = json_object_get(result, "levels"), *v;
    size_t i;

    if (!json_is_object(level_table_speed_of(json_array_get(list, 0), b)))
        return;
    fprintf(out, "\nfast_p against %s\n%-9s", baseline_name(b), "");
    for (int p = 0; p < N_FAST_P; p++)
        fprintf(out, " %8s", fast_p_name[p]);
    fprintf(out, " %8s %8s %6s %9s\n", "geomean", "median", "timed", "untrusted");
    json_array_foreach(list, i, v) {
        const json_t *s = level_table_speed_of(v, b);
        fprintf(out, "%-9s", json_str(v, "name", ""));
        for (int p = 0; p < N_FAST_P; p++)
            level_table_share(out, json_num_at(json_object_get(s, "fast_p"), fast_p_name[p]));
        level_table_ratio(out, json_num_at(s, "geomean"));
        level_table_ratio(out, json_num_at(s, "median"));
        fprintf(out, " %6.0f %9.0f\n", json_num_at(s, "timed"), json_num_at(s, "untrusted"));
    }
}

/* Prints the counts of verdicts by category; the last entry of 'levels' has those of all levels. */
static void level_table_verdict_list(FILE *out, const json_t *result)
{
    const json_t *list = json_object_get(result, "levels"), *v;
    const char *name;
    const char *sep = "";

    fprintf(out, "\nverdicts: ");
    json_object_foreach(json_object_get(json_array_get(list, json_array_size(list) - 1), "categories"), name, v) {
        fprintf(out, "%s%s %lld", sep, name, (long long)json_integer_value(v));
        sep = ", ";
    }
    fputc('\n', out);
}

/* Prints what is missing, skipped or belongs to no task. */
static void level_table_left_out(FILE *out, const json_t *result)
{
    const json_t *missing = json_object_get(result, "missing"), *list = json_object_get(result, "skipped"), *v;
    long long n = json_i64(missing, "samples", 0), strays = json_i64(json_object_get(result, "strays"), "n", 0);
    size_t i;

    if (n)
        fprintf(out, "missing: %lld samples, %lld tasks without any; %s\n", n, (long long)json_i64(missing, "tasks", 0),
                !strcmp(json_str(missing, "policy", ""), "fail") ? "counted as failures"
                                                                : "left out (--missing fail counts them as failures)");
    if (strays)
        fprintf(out, "strays: %lld sample files belong to no task of the suite\n", strays);
    json_array_foreach(list, i, v) {
        if (i == 10) {
            fprintf(out, "skipped: %zu more, see bench.json\n", json_array_size(list) - i);
            break;
        }
        fprintf(out, "skipped: %s: %.160s\n", json_str(v, "task", ""), json_str(v, "reason", ""));
    }
}

void bench_level_table(FILE *out, const json_t *result)
{
    long long shrunk = json_i64(result, "shrink_to", 0);

    fprintf(out, "%s, backend %s, up to %lld sample%s of each task", json_str(result, "suite", "?"),
            json_str(result, "backend", "?"), (long long)json_i64(result, "samples", 0),
            json_i64(result, "samples", 0) == 1 ? "" : "s");
    if (shrunk)
        fprintf(out, ", tasks made small: no tensor above %lld elements", shrunk);
    fprintf(out, "\n\n");
    level_table_pass(out, result);
    for (enum speed_baseline b = 0; b < N_BASELINES; b++)
        level_table_fast(out, result, b);
    level_table_verdict_list(out, result);
    level_table_left_out(out, result);
}

/* ---- comparison ---- */

/* Prints a p-value. */
static void level_table_p_value(FILE *out, double p)
{
    if (p < 1e-4)
        fprintf(out, " %8s", "<0.0001");
    else
        fprintf(out, " %8.4f", p);
}

/* Prints the comparison of two runs' averages. */
static void level_table_avg(FILE *out, const json_t *v)
{
    const json_t *g;
    size_t i;

    fprintf(out, "%-14s %5s %8s %8s %8s %-17s %6s %5s %8s | %6s %6s %8s\n", "", "tasks", "Avg A", "Avg B", "B - A",
            "  95 % interval", "better", "worse", "sign p", "only A", "only B", "McNemar");
    json_array_foreach(json_object_get(v, "groups"), i, g) {
        const json_t *a = json_object_get(g, "avg"), *f = json_object_get(g, "first");
        fprintf(out, "%-14.14s %5.0f", json_str(g, "name", ""), json_num_at(g, "tasks"));
        level_table_share(out, json_num_at(a, "a"));
        level_table_share(out, json_num_at(a, "b"));
        fprintf(out, " %+7.1f%%", 100 * json_num_at(a, "difference"));
        level_table_share(out, level_table_end_of(a, "ci", 0));
        level_table_share(out, level_table_end_of(a, "ci", 1));
        fprintf(out, " %6.0f %5.0f", json_num_at(a, "better"), json_num_at(a, "worse"));
        level_table_p_value(out, json_num_at(a, "p"));
        fprintf(out, " | %6.0f %6.0f", json_num_at(f, "only_a"), json_num_at(f, "only_b"));
        level_table_p_value(out, json_num_at(f, "p"));
        fputc('\n', out);
    }
}

/* Prints the comparison of two runs' speedups. */
static void level_table_speed(FILE *out, const json_t *v, enum speed_baseline b)
{
    const json_t *g;
    size_t i;
    bool head = false;

    json_array_foreach(json_object_get(v, "groups"), i, g) {
        const json_t *s = json_object_get(json_object_get(g, "speed"), baseline_key(b));
        if (!json_is_object(s))
            continue;
        if (!head)
            fprintf(out, "\n%-14.14s %5s %8s %-17s %6s %6s %8s   (B's speedup over %s / A's)\n", "speed", "tasks",
                    "ratio", "  95 % interval", "faster", "slower", "Wilcoxon", baseline_name(b));
        head = true;
        fprintf(out, "%-14.14s %5.0f", json_str(g, "name", ""), json_num_at(s, "tasks"));
        level_table_ratio(out, json_num_at(s, "ratio"));
        level_table_ratio(out, level_table_end_of(s, "ci", 0));
        level_table_ratio(out, level_table_end_of(s, "ci", 1));
        fprintf(out, " %6.0f %6.0f", json_num_at(s, "faster"), json_num_at(s, "slower"));
        level_table_p_value(out, json_num_at(s, "p"));
        fputc('\n', out);
    }
}

/* Prints one task that changed. */
static void level_table_change_line(FILE *out, const json_t *t)
{
    const json_t *a = json_object_get(t, "a"), *b = json_object_get(t, "b");
    double r = json_num_at(t, "ratio");

    fprintf(out, "  %-7s %-44.44s %3.0f/%-3.0f -> %3.0f/%-3.0f", json_str(t, "kind", ""), json_str(t, "task", ""),
            json_num_at(a, "passed"), json_num_at(a, "n"), json_num_at(b, "passed"), json_num_at(b, "n"));
    if (isfinite(r))
        fprintf(out, "  %.3gx", r);
    else
        fprintf(out, "  %s -> %s", json_str(a, "first", "-"), json_str(b, "first", "-"));
    fputc('\n', out);
}

void bench_compare_table(FILE *out, const json_t *v)
{
    const json_t *a = json_object_get(v, "a"), *b = json_object_get(v, "b"), *t;
    int changed = 0;
    size_t i;

    fprintf(out, "A: %s (%s)\nB: %s (%s)\n", json_str(a, "name", "?"), json_str(a, "dir", "?"),
            json_str(b, "name", "?"), json_str(b, "dir", "?"));
    if (json_num_at(v, "only_a") + json_num_at(v, "only_b") > 0)
        fprintf(out, "judged on one side only: %.0f tasks of A, %.0f of B; they are left out\n",
                json_num_at(v, "only_a"), json_num_at(v, "only_b"));
    json_array_foreach(json_object_get(v, "notes"), i, t)
        fprintf(out, "note: %s\n", json_string_value(t));
    fputc('\n', out);
    level_table_avg(out, v);
    for (enum speed_baseline k = 0; k < N_BASELINES; k++)
        level_table_speed(out, v, k);
    json_array_foreach(json_object_get(v, "tasks"), i, t)
        if (json_str(t, "kind", NULL)) {
            if (changed++ == 0)
                fprintf(out, "\nchanged:\n");
            if (changed <= 60)
                level_table_change_line(out, t);
        }
    if (changed > 60)
        fprintf(out, "  and %d more\n", changed - 60);
    if (!changed)
        fprintf(out, "\nno task changed\n");
}
