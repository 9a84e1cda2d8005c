/* workloads.c - see workloads.h. */
#include "eval/stage/workloads.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "eval/verdict/codes.h"
#include "eval/verdict/feedback.h"
#include "eval/verdict/record.h"
#include "objective/reward.h"

/* ---- rows ---- */

/* The times of a workload for its row. New; null: it was not timed. */
static json_t *workloads_speed_row(const json_t *perf)
{
    static const char *const keys[] = {"candidate_ms", "eager_ms", "speedup_eager", "speedup_eager_ci", "compile_ms",
                                       "speedup_compile", "speedup_compile_ci", "trusted", "reasons", NULL};
    json_t *row;

    if (!json_is_object(perf))
        return json_null();
    row = json_object();
    for (const char *const *k = keys; *k; k++)
        if (json_object_get(perf, *k))
            json_object_set(row, *k, json_object_get(perf, *k));
    return row;
}

/* Why a workload cannot be judged; NULL for one that was. */
static const char *workloads_refused(const json_t *rec)
{
    return json_str(rec, "refused", NULL);
}

/* The row of workload i in a merged record: name, status, trials, times. New. */
static json_t *workloads_row(const struct task *t, int i, const json_t *rec)
{
    const json_t *correct = json_object_get(rec, "correctness"), *perf = json_object_get(rec, "performance");
    char is[300];
    json_t *row;

    task_workload_text(t, i, is, sizeof is);
    row = json_pack("{s:s,s:o,s:O?,s:O?,s:O?}", "name", task_workload_name(t, i), "is", json_utf8(is, strlen(is)),
                    "status", json_object_get(rec, "status"), "category", json_object_get(rec, "category"), "stage",
                    json_object_get(rec, "stage"));
    json_object_set_new(row, "trials", json_integer(json_i64(correct, "trials", 0)));
    json_object_set_new(row, "passed", json_integer(json_i64(correct, "passed", 0)));
    json_object_set_new(row, "performance", workloads_speed_row(perf));
    json_object_set(row, "reward", json_object_get(rec, "reward"));
    if (json_object_get(perf, "log_sha256"))
        json_object_set(row, "log_sha256", json_object_get(perf, "log_sha256"));
    json_object_set(row, "task_sha256", json_object_get(rec, "task_sha256"));
    if (workloads_refused(rec))
        json_object_set(row, "refused", json_object_get(rec, "refused"));
    return row;
}

/* ---- together ---- */

enum { WORKLOADS_LAST = 4 }; /* the rank of a workload that cannot be judged */

/* Cheating weighs more than any other failure, in whichever row it shows. */
static int workloads_rank(const json_t *rec)
{
    static const char *const order[] = {"failed", "infra", "unsupported", "passed"};

    if (!strcmp(json_str(rec, "category", ""), "cheating"))
        return -1;
    if (workloads_refused(rec))
        return WORKLOADS_LAST;
    for (int i = 0; i < WORKLOADS_LAST; i++)
        if (!strcmp(json_str(rec, "status", ""), order[i]))
            return i;
    return 1;
}

/* Of failures alike the one that earns least, so that words, counts and reward are of one row. */
static int workloads_deciding(json_t *const *records, int n, struct reward_params p)
{
    int best = 0;
    double least = 0, reward = 0;

    for (int i = 0; i < n; i++) {
        int more = workloads_rank(records[best]) - workloads_rank(records[i]);
        if (!reward_of(records[i], p, &reward))
            reward = 0;
        if (i > 0 && more <= 0 && (more < 0 || reward >= least))
            continue;
        best = i;
        least = reward;
    }
    return best;
}

/* at: index within an interval, -1 for a number. NaN where a row has none. */
static double workloads_mean(json_t *const *records, int n, const char *key, int at)
{
    double sum = 0;
    int judged = 0;

    for (int i = 0; i < n; i++) {
        const json_t *v = json_object_get(json_object_get(records[i], "performance"), key);
        if (workloads_refused(records[i]))
            continue;
        sum += log(json_num_value(at < 0 ? v : json_array_get(v, (size_t)at)));
        judged++;
    }
    return exp(sum / judged);
}

/* Sets the geometric means of the workloads' times and speedups in perf, where every one of them has the figure. */
static void workloads_set_means(json_t *perf, json_t *const *records, int n)
{
    static const char *const plain[] = {"candidate_ms", "eager_ms", "compile_ms", "speedup_eager", "speedup_compile",
                                        NULL};
    static const char *const both[] = {"speedup_eager_ci", "speedup_compile_ci", NULL};

    for (const char *const *k = plain; *k; k++) {
        double x = workloads_mean(records, n, *k, -1);
        if (isfinite(x))
            json_object_set_new(perf, *k, json_num(x));
    }
    for (const char *const *k = both; *k; k++) {
        double lo = workloads_mean(records, n, *k, 0), hi = workloads_mean(records, n, *k, 1);
        if (isfinite(lo) && isfinite(hi))
            json_object_set_new(perf, *k, json_pack("[o,o]", json_num(lo), json_num(hi)));
    }
}

/* Adds the reasons of distrust that are not there yet. */
static void workloads_add_reasons(json_t *reasons, const json_t *perf)
{
    const json_t *x;
    size_t i, k;

    json_array_foreach(json_object_get(perf, "reasons"), i, x) {
        for (k = 0; k < json_array_size(reasons) && !json_equal(json_array_get(reasons, k), x); k++)
            ;
        if (k == json_array_size(reasons))
            json_array_append(reasons, (json_t *)x);
    }
}

/* null where no row was timed. */
static json_t *workloads_performance(json_t *const *records, int n)
{
    json_t *perf, *reasons = json_array();
    bool trusted = true;
    int timed = 0, judged = 0;

    for (int i = 0; i < n; i++) {
        const json_t *one = json_object_get(records[i], "performance");
        if (workloads_refused(records[i]))
            continue;
        judged++;
        timed += json_is_object(one);
        trusted = trusted && json_flag(one, "trusted", false);
        workloads_add_reasons(reasons, one);
    }
    if (!timed) {
        json_decref(reasons);
        return json_null();
    }
    perf = json_pack("{s:b,s:o,s:s,s:i}", "trusted", trusted, "reasons", reasons, "by",
                     "geometric mean of workloads", "workloads", judged);
    workloads_set_means(perf, records, n);
    return perf;
}

/* Puts the trials and passed trials of all workloads into the record's correctness section. */
static void workloads_sum_trials(json_t *rec, json_t *const *records, int n)
{
    json_t *correct = json_deep_copy(json_object_get(rec, "correctness"));
    int64_t trials = 0, passed = 0;

    for (int i = 0; i < n; i++) {
        trials += json_i64(json_object_get(records[i], "correctness"), "trials", 0);
        passed += json_i64(json_object_get(records[i], "correctness"), "passed", 0);
    }
    if (json_is_object(correct)) {
        json_object_set_new(correct, "trials", json_integer(trials));
        json_object_set_new(correct, "passed", json_integer(passed));
    }
    if (correct)
        json_object_set_new(rec, "correctness", correct);
}

/* Sets reward, code and words of a merged record. */
static void workloads_say(json_t *rec, struct reward_params p)
{
    struct buf words;
    double reward;

    json_object_set_new(rec, "reward", reward_of(rec, p, &reward) ? json_num(reward) : json_null());
    json_object_set_new(rec, "code", json_string(code_of(rec)->id));
    buf_init(&words, FEEDBACK_MAX);
    feedback_text(rec, &words);
    json_object_set_new(rec, "feedback", json_utf8(words.p, words.n));
    buf_free(&words);
}

json_t *workloads_refusal(const struct task *workload, const char *backend, const char *protocol, const char *why)
{
    json_t *rec = record_refusal(workload->name, backend, protocol, why);

    json_object_set_new(rec, "at_fault", json_string("request"));
    json_object_set_new(rec, "task_sha256", json_string(workload->sha256));
    json_object_set_new(rec, "refused", json_utf8(why, strlen(why)));
    return rec;
}

bool workloads_all_refused(json_t *const *records, int n)
{
    for (int i = 0; i < n; i++)
        if (!workloads_refused(records[i]))
            return false;
    return true;
}

json_t *workloads_merge(const struct task *t, json_t *const *records, int n, struct reward_params p)
{
    int deciding = workloads_deciding(records, n, p);
    json_t *rec = json_copy(records[deciding]), *rows = json_array(), *row;
    bool passed = !strcmp(json_str(rec, "status", ""), "passed");

    for (int i = 0; i < n; i++)
        json_array_append_new(rows, workloads_row(t, i, records[i]));
    row = json_array_get(rows, (size_t)deciding);
    if (!passed && !workloads_decided(rec))
        json_object_set_new(rec, "workload", json_pack("{s:O,s:O}", "name", json_object_get(row, "name"), "is",
                                                       json_object_get(row, "is")));
    json_object_set_new(rec, "task_sha256", json_string(t->sha256));
    if (passed)
        workloads_sum_trials(rec, records, n);
    json_object_set_new(rec, "performance", passed ? workloads_performance(records, n) : json_null());
    json_object_set_new(rec, "workloads", rows);
    workloads_say(rec, p);
    return rec;
}

bool workloads_decided(const json_t *record)
{
    static const char *const shapeless[] = {"extraction_error", "compile_error"};
    const char *category = json_str(record, "category", "");

    return !strcmp(category, shapeless[0]) || !strcmp(category, shapeless[1]);
}
