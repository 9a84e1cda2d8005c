/* published.c - what the MusaCoder paper (arXiv 2606.04847, section 5) reports on the same suites: figures of others,
 * on their machines, by their judge. They are printed beside ours and marked; nothing here measured them. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "bench/bench.h"

#define NONE NAN
#define TASKS 250   /* levels 1 to 3 */
#define SAMPLES 8

struct published_row {
    const char *model;
    double pass, avg, eager, compile; /* per cent; NONE: not reported */
};

static const struct published_row kernelbench[] = {
    {"Qwen3.5-9B", 23.6, 7.05, 0.9, 0.5},
    {"Qwen3.6-27B", 67.2, 35.60, 3.4, 1.6},
    {"Kimi K2.6", 84.0, 69.10, 3.3, 1.4},
    {"GLM-5.1", 85.6, 76.25, 7.4, 3.9},
    {"DeepSeek-V4-ProMax", 84.8, 60.05, 5.7, 3.0},
    {"Claude Opus 4.7", 87.2, 77.30, 11.8, 7.5},
    {"MusaCoder-9B-SFT", 69.6, 61.60, NONE, NONE},
    {"MusaCoder-9B-RL", 83.6, 77.20, 12.6, 7.9},
    {"MusaCoder-27B-SFT", 84.8, 79.40, 6.3, 4.1},
    {"MusaCoder-27B-RL", 93.2, 88.60, 15.0, 9.2},
    {0},
};

static const struct published_row musa_kernelbench[] = {
    {"DeepSeek-V4-Pro", 92.0, 56.9, 5.7, NONE},    {"GLM-5.1", 88.0, 66.4, 6.9, NONE},
    {"MusaCoder-9B-RL", 84.4, 72.3, 6.4, NONE},    {"MusaCoder-27B-SFT", 79.6, 63.5, 5.2, NONE},
    {"MusaCoder-27B-RL", 92.4, 81.7, 12.5, NONE}, {0},
};

/* Prints a column of nine characters: percent, or '-' for NaN. */
static void published_percent(FILE *out, double p)
{
    if (isnan(p))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %7.1f%%", p);
}

/* Prints one line of the table; all four numbers in percent. */
static void published_print_row(FILE *out, const char *name, double pass, double avg, double eager, double compile)
{
    fprintf(out, "%-28.28s", name);
    published_percent(out, pass);
    published_percent(out, avg);
    published_percent(out, eager);
    published_percent(out, compile);
    fputc('\n', out);
}

/* A share of the result in percent; NaN where it lacks. */
static double published_share(const json_t *result, const char *key)
{
    return 100 * json_num_at(result, key);
}

/* What keeps a result from standing beside the published ones; "": nothing that can be seen. */
static const char *published_unlike(const json_t *result)
{
    if (json_i64(result, "tasks", 0) != TASKS)
        return "of other tasks than levels 1 to 3";
    if (json_i64(result, "k", 0) != SAMPLES)
        return "of fewer than 8 samples a task";
    if (json_i64(result, "shrink_to", 0))
        return "of tasks that were made small";
    return strcmp(json_str(result, "backend", ""), "sim") ? "" : "of the emulator, without times";
}

void bench_published(FILE *out, const json_t *result)
{
    const char *suite = json_str(result, "suite", ""), *why = published_unlike(result);
    char own[40];
    const struct published_row *r = !strncmp(suite, "musa-kernelbench", 16) ? musa_kernelbench
                          : !strncmp(suite, "kernelbench", 11)    ? kernelbench
                                                                  : NULL;

    if (!r)
        return;
    fprintf(out, "\npublished by the MusaCoder paper, not measured here: levels 1 to 3, 250 tasks, 8 samples\n");
    fprintf(out, "%-28s %8s %8s %8s %8s\n", "", "Pass@8", "Avg@8", "faster", "compile");
    for (; r->model; r++)
        published_print_row(out, r->model, r->pass, r->avg, r->eager, r->compile);
    snprintf(own, sizeof own, "%.16s (of %lld)", json_str(result, "name", "this run"),
             (long long)json_i64(result, "samples", SAMPLES));
    published_print_row(out, own, published_share(result, "pass_at_8"), published_share(result, "avg_at_8"),
                        published_share(result, "faster_eager"), published_share(result, "faster_compile"));
    if (*why)
        fprintf(out, "The last row is this run: %s, so it does not compare with the others.\n", why);
    else
        fprintf(out, "The last row is this run: another judge on another device.\n");
}
