/* bench_table.c - results as text: one row per result, then Avg@n by family with one column per result. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "bench/bench.h"

/* Prints a share in percent; '-' where there is none. */
static void bench_table_percent(FILE *out, const json_t *v, const char *key)
{
    const json_t *x = json_object_get(v, key);
    double p = x && !json_is_null(x) ? json_num_value(x) : NAN;

    if (isnan(p))
        fprintf(out, " %9s", "-");
    else
        fprintf(out, " %8.1f%%", 100 * p);
}

/* What the keys pass..._at_8 and avg..._at_8 are of: fewer samples than 8 are measured as they are, an average is of
 * all. */
static int bench_table_k_of(const json_t *result, bool average)
{
    int k = (int)json_i64(result, "k", 8);

    return average ? (int)json_i64(result, "samples", k) : k;
}

struct bench_column {
    const char *title, *key;
    enum { PLAIN, PASS, AVERAGE } of;
    bool best; /* of all turns */
};

/* Each number once: with one turn the best is the first, with one sample all are Pass@1. */
static bool bench_table_shows(const json_t *result, const struct bench_column *c)
{
    return !(c->best && json_i64(result, "turns", 1) < 2) &&
           !(c->of && !c->best && bench_table_k_of(result, c->of == AVERAGE) == 1);
}

/* Prints the main table, a row for each result. */
static void bench_table_main(FILE *out, const json_t *const *results, int n)
{
    static const struct bench_column cols[] = {
        {"Pass@", "pass_at_8", PASS, false}, {"Avg@", "avg_at_8", AVERAGE, false},
        {"best P@", "best_pass_at_8", PASS, true}, {"best A@", "best_avg_at_8", AVERAGE, true},
        {"faster", "faster_eager", PLAIN, false}, {"cut off", "cut_share", PLAIN, false},
        {"of whole", "whole_pass_rate", PLAIN, false}};
    const size_t n_cols = sizeof cols / sizeof *cols;
    char title[24];

    fprintf(out, "%-12s %9s", "", "Pass@1");
    for (size_t k = 0; k < n_cols; k++) {
        if (!bench_table_shows(results[0], &cols[k]))
            continue;
        snprintf(title, sizeof title, "%s%.0d", cols[k].title,
                 cols[k].of ? bench_table_k_of(results[0], cols[k].of == AVERAGE) : 0);
        fprintf(out, " %9s", title);
    }
    fprintf(out, " %6s %11s\n", "infra", "unsupported");
    for (int i = 0; i < n; i++) {
        fprintf(out, "%-12.12s", json_str(results[i], "name", "?"));
        bench_table_percent(out, results[i], "pass_at_1");
        for (size_t k = 0; k < n_cols; k++)
            if (bench_table_shows(results[0], &cols[k]))
                bench_table_percent(out, results[i], cols[k].key);
        fprintf(out, " %6lld %11lld\n", (long long)json_i64(results[i], "infra", 0),
                (long long)json_i64(results[i], "unsupported", 0));
    }
}

/* Prints Avg@k by family, where there are several. */
static void bench_table_family(FILE *out, const json_t *const *results, int n)
{
    const json_t *families = json_object_get(results[n - 1], "families"), *v;
    const char *name;
    char title[32];

    if (json_object_size(families) < 2)
        return;
    snprintf(title, sizeof title, "Avg@%d by family", bench_table_k_of(results[0], true));
    fprintf(out, "\n%-20s %5s", title, "tasks");
    for (int i = 0; i < n; i++)
        fprintf(out, " %9.9s", json_str(results[i], "name", "?"));
    fputc('\n', out);
    json_object_foreach((json_t *)families, name, v) {
        fprintf(out, "%-20.20s %5lld", name, (long long)json_i64(v, "tasks", 0));
        for (int i = 0; i < n; i++)
            bench_table_percent(out, json_object_get(json_object_get(results[i], "families"), name), "avg_at_8");
        fputc('\n', out);
    }
}

/* Prints how many failed, by category. */
static void bench_table_failures(FILE *out, const json_t *result)
{
    const json_t *v;
    const char *name;
    bool first = true;

    json_object_foreach(json_object_get(result, "categories"), name, v)
        if (strcmp(name, "passed")) {
            fprintf(out, "%s %s %lld", first ? "\nfailures:" : ",", name, (long long)json_integer_value(v));
            first = false;
        }
    if (!first)
        fputc('\n', out);
}

/* "20 tasks x 8 samples, T 0.7, top-p 0.95, backend sim"; without T where nobody here sampled. */
static void bench_table_head(FILE *out, const json_t *r)
{
    long long tasks = json_i64(r, "tasks", 0), samples = json_i64(r, "samples", 0);

    fprintf(out, "%lld task%s x %lld sample%s", tasks, buf_plural(tasks), samples, buf_plural(samples));
    if (json_is_number(json_object_get(r, "temperature")))
        fprintf(out, ", T %g, top-p %g", json_f64(r, "temperature", 0), json_f64(r, "top_p", 0));
    fprintf(out, ", backend %s\n\n", json_str(r, "backend", "?"));
}

void bench_table(FILE *out, const json_t *const *results, int n)
{
    if (n == 0)
        return;
    bench_table_head(out, results[0]);
    bench_table_main(out, results, n);
    bench_table_family(out, results, n);
    if (n == 1)
        bench_table_failures(out, results[0]);
}
