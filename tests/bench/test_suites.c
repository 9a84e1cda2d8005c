/* test_suites.c - KernelBench suites and comparisons with a judge of our own: what belongs to which task, every
 * number by hand, skips and missing samples counted apart, tasks made small once, and a page that holds what the
 * table holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/bench_compare.h"
#include "report/report.h"
#include "bench/speed.h"
#include "bench/suite.h"

#include "../lib/fake_verdict.h"

/* ---- the judge: a sample's text is what it becomes: "pass", "pass EAGER LO HI COMPILE [untrusted]", "skip WHY", a
 * category ---- */

static int big_tasks;

static json_t *speed(const char *text)
{
    double eager, lo, hi, compile;
    json_t *v;

    if (sscanf(text, "pass %lf %lf %lf %lf", &eager, &lo, &hi, &compile) != 4)
        return json_null();
    v = json_pack("{s:f,s:f,s:b}", "speedup_eager", eager, "speedup_compile", compile, "trusted",
                  !strstr(text, "untrusted"));
    if (lo > 0)
        json_object_set_new(v, "speedup_eager_ci", json_pack("[f,f]", lo, hi));
    return v;
}

static json_t *fake_judge(const struct verdict_request *item)
{
    const char *text = item->candidate;
    bool passed = !strncmp(text, "pass", 4), skip = !strncmp(text, "skip", 4);

    assert_null(strchr(item->task_name, '/')); /* the judge knows the task by its own name */
    big_tasks += strstr(item->task_code, "SIZE = 4096") != NULL;
    return json_pack("{s:s,s:s?,s:s,s:s,s:s,s:f,s:o,s:{s:f}}", "status", passed ? "passed" : skip ? "infra" : "failed",
                     "category", passed ? NULL : skip ? "infra" : text, "stage", skip ? "task" : "correctness",
                     "backend", "sim", "feedback", skip ? text + 5 : "", "reward", passed ? 1.0 : -1.0,
                     "performance", speed(text), "stage_ms", "load", 12.5);
}

/* ---- a small KernelBench ---- */

static char *dir, *spec;

static void put(const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name), *slash = strrchr(path, '/');

    *slash = 0;
    assert_int_equal(dir_make(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    free(path);
}

static char *get(const char *name)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (file_read(path, &b, &e) < 0)
        fail_msg("%s", e.msg);
    free(path);
    return buf_detach(&b);
}

#define TASK(x) "SIZE = 4096\nclass Model:\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n" \
                "    return []\n# " x "\n"

static int setup(void **state)
{
    struct err e = ERR_INIT;
    char *kb;

    if (!(dir = dir_temp("suites", &e)))
        return -1;
    kb = path_join(dir, "kb");
    spec = xasprintf("kernelbench:%s", kb);
    free(kb);
    put("kb/KernelBench/level1/2_Add.py", TASK("a"));
    put("kb/KernelBench/level1/10_ReLU.py", TASK("b"));
    put("kb/KernelBench/level1/19_Sum.py", TASK("c"));
    put("kb/KernelBench/level1/helper.py", "x = 1\n"); /* no task: a warning */
    put("kb/KernelBench/level2/2_Add.py", TASK("the same name on another level"));
    put("kb/KernelBench/level3/1_Broken.py", "this is no task\n");
    put("kb/KernelBench/level4/1_gpt.py", TASK("d"));
    put("s/level_1_problem_2_sample_0_kernel.py", "pass 2 1.9 2.1 1.2");
    put("s/level_1_problem_2_sample_1_kernel.py", "pass 1.15 1.05 1.25 0.9"); /* above 1.1, its lower bound is not */
    put("s/level_1_problem_10_sample_0_kernel.py", "compile_error");
    put("s/level_1_problem_10_sample_1_kernel.py", "pass 40 39 41 30 untrusted");
    put("s/level_2_problem_2_sample_0_kernel.py", "pass 1.15 0 0 1.15"); /* no interval: the point decides */
    put("s/level_3_problem_1_sample_0_kernel.py", "pass");
    put("s/level_4_problem_1_sample_0_kernel.py", "skip no model files");
    put("s/level_1_problem_77_sample_0_kernel.py", "pass"); /* belongs to no task */
    log_set_level(LOG_ERROR);
    return 0;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    free(spec);
    return rc;
}

static json_t *run_with(const char *out, const char *samples, struct bench_options o)
{
    char *to = path_join(dir, out), *from = path_join(dir, samples);
    struct err e = ERR_INIT;
    json_t *v = NULL;

    o.suite = spec;
    o.out = to;
    o.samples_dir = from;
    if (bench_run(&o, &v, &e) < 0 || report_write(to, &e) < 0)
        fail_msg("%s", e.msg);
    free(to);
    free(from);
    return v;
}

static const json_t *level(const json_t *v, const char *name)
{
    const json_t *l;
    size_t i;

    json_array_foreach(json_object_get(v, "levels"), i, l)
        if (!strcmp(json_str(l, "name", ""), name))
            return l;
    fail_msg("no '%s'", name);
    return NULL;
}

static double at(const json_t *v, const char *key)
{
    return json_num_value(json_object_get(v, key));
}

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-12)
        fail_msg("%.15g is not %.15g", a, b);
}

static void counts(const json_t *l, int tasks, int done, int samples, int missing, int skipped)
{
    if (at(l, "tasks") != tasks || at(l, "judged_tasks") != done || at(l, "samples") != samples ||
        at(l, "missing") != missing ||
        at(l, "skipped") != skipped) {
        char *text = json_text(l);
        fail_msg("counts of %s", text);
    }
}

static const json_t *by(const json_t *l, const char *baseline)
{
    return json_object_get(json_object_get(l, "speed"), baseline);
}

static double fast(const json_t *l, const char *baseline, const char *p)
{
    return at(json_object_get(by(l, baseline), "fast_p"), p);
}

static void test_levels(void **state)
{
    json_t *v = run_with("skip", "s", (struct bench_options){0});
    const json_t *l1 = level(v, "level 1"), *all = level(v, "all"), *skipped = json_object_get(v, "skipped");

    assert_int_equal(json_i64(v, "samples", 0), 2); /* as many as the folder has */
    counts(l1, 3, 2, 4, 2, 0);
    counts(level(v, "level 2"), 1, 1, 1, 1, 0);
    counts(level(v, "level 3"), 1, 0, 0, 0, 1);
    counts(level(v, "level 4"), 1, 0, 0, 0, 1);
    counts(all, 6, 3, 5, 3, 2);
    near(at(l1, "avg"), (1 + 0.5) / 2);
    near(at(json_object_get(l1, "pass_at"), "1"), 0.75);
    near(at(json_object_get(l1, "pass_at"), "2"), 1);
    near(at(all, "avg"), (1 + 0.5 + 1) / 3);
    near(at(v, "avg_at_8"), (1 + 0.5 + 1) / 3);
    near(at(by(l1, "eager"), "faster"), 1 / 4.0);   /* 2x; 1.15x by a lower bound of 1.05 is not; 40x is not trusted */
    near(at(by(l1, "compile"), "faster"), 1 / 4.0);
    near(at(by(level(v, "level 2"), "eager"), "faster"), 1);
    near(at(v, "faster_eager"), 2 / 5.0);
    near(fast(l1, "eager", "0"), (1 + 0) / 2.0);    /* of 10_ReLU, the passed one has no trusted time */
    near(fast(l1, "eager", "1"), (1 + 0) / 2.0);    /* fast_p takes the point */
    near(fast(l1, "eager", "1.5"), 0.5 / 2);
    near(fast(l1, "compile", "1"), 0.5 / 2);
    near(fast(l1, "eager", "2"), 0);                /* more than 2, not 2 */
    near(at(by(l1, "eager"), "geomean"), sqrt(2 * 1.15));
    near(at(by(l1, "eager"), "untrusted"), 1);
    assert_int_equal(json_array_size(skipped), 2);
    assert_non_null(strstr(json_str(json_array_get(skipped, 0), "reason", ""), "class Model"));
    assert_string_equal(json_str(json_array_get(skipped, 1), "reason", ""), "no model files");
    assert_int_equal(json_i64(json_object_get(v, "missing"), "samples", 0), 3);
    assert_int_equal(json_i64(json_object_get(v, "missing"), "tasks", 0), 1);
    assert_int_equal(json_i64(json_object_get(v, "strays"), "n", 0), 1);
    near(at(json_object_get(all, "categories"), "skipped"), 2);
    near(at(json_object_get(all, "categories"), "passed"), 4);
    json_decref(v);
}

static void test_missing_fail(void **state)
{
    json_t *v = run_with("fail", "s", (struct bench_options){.missing_fail = true, .faster_than = 1.16});
    const json_t *l1 = level(v, "level 1"), *all = level(v, "all");

    counts(l1, 3, 3, 6, 2, 0);
    counts(level(v, "level 4"), 1, 0, 0, 0, 1); /* a task that cannot be judged misses nothing */
    near(at(l1, "avg"), (1 + 0.5 + 0) / 3);
    near(at(all, "avg"), (1 + 0.5 + 0 + 0.5) / 4);
    near(at(json_object_get(all, "pass_at"), "2"), 3 / 4.0);
    near(at(by(all, "eager"), "faster"), 1 / 8.0); /* 1.15x no longer counts */
    near(at(v, "avg_at_8"), at(all, "avg"));
    near(at(v, "pass_at_8"), 3 / 4.0);
    near(at(v, "faster_eager"), 1 / 8.0);
    json_decref(v);
}

static void test_files(void **state)
{
    static const char *const in_page[] = {"\"name\":\"level 1\"", "no model files", "\"strays\":{\"n\":1,",
                                          "level4/1_gpt", "\"missing\":{\"policy\":\"skip\",\"samples\":3"};
    json_t *v = run_with("skip", "s", (struct bench_options){0}); /* again: nothing is judged */
    char *csv = get("skip/samples.csv"), *levels = get("skip/levels.csv"), *page = get("skip/report.html");
    int n = fake_judged;

    json_decref(run_with("skip", "s", (struct bench_options){0}));
    assert_int_equal(fake_judged, n);
    assert_non_null(strstr(csv, "\nlevel1/2_Add,1,0,"));
    assert_non_null(strstr(csv, ",passed,,correctness,1,,,,2,1.9,2.1,1.2,,,1,,12.5,,,,\n"));
    assert_non_null(strstr(csv, "\nlevel1/19_Sum,1,1,,missing,,,,,"));
    assert_non_null(strstr(csv, "level_4_problem_1_sample_0_kernel.py,skipped,,task,"));
    assert_non_null(strstr(levels, "\nlevel 1,3,2,4,2,0,0,0.75,"));
    assert_non_null(strstr(levels, "\nlevel 4,1,0,0,0,1,0,,,,,,"));
    for (size_t i = 0; i < sizeof in_page / sizeof *in_page; i++)
        if (!strstr(page, in_page[i]))
            fail_msg("the page does not say '%s'", in_page[i]);
    assert_null(strstr(page, " src=")); /* loads nothing */
    assert_null(strstr(page, " href="));
    free(csv);
    free(levels);
    free(page);
    json_decref(v);
}

static void test_limits(void **state)
{
    json_t *v = run_with("limit", "s", (struct bench_options){.levels = "1,2", .limit = 1, .samples = 1});
    struct bench_options bad = {.suite = "mybench:x", .samples_dir = "s", .out = "o"};
    struct err e = ERR_INIT;
    json_t *none;

    assert_int_equal(json_i64(v, "tasks", 0), 2); /* the first of each level, in natural order */
    near(at(level(v, "all"), "samples"), 2);
    assert_int_equal(json_i64(json_object_get(v, "strays"), "n", 0), 5);
    json_decref(v);
    assert_int_equal(bench_run(&bad, &none, &e), -1);
    assert_non_null(strstr(e.msg, "kernelbench:DIR"));
    bad.suite = spec;
    bad.levels = "one";
    assert_int_equal(bench_run(&bad, &none, &e), -1);
    assert_non_null(strstr(e.msg, "names no levels"));
    bad.levels = NULL;
    bad.samples_dir = dir; /* nothing in it that is a sample */
    assert_int_equal(bench_run(&bad, &none, &e), -1);
    assert_non_null(strstr(e.msg, "no sample of a task"));
    bad = (struct bench_options){.tasks = "t", .samples_dir = "s", .out = "o", .shrink_to = 8};
    assert_int_equal(bench_run(&bad, &none, &e), -1);
    assert_non_null(strstr(e.msg, "--suite"));
}

/* Other layouts: level folders, one folder per task, lines of JSON. */
static void test_layouts(void **state)
{
    json_t *v;

    put("l/level1/2_Add/a.py", "pass");
    put("l/level1/2_Add/b.txt", "pass");
    put("l/level1/10_ReLU_0.py", "pass");
    put("l/level2/2_Add_sample_0.py", "runtime_error");
    put("l/19_Sum.md", "pass");
    v = run_with("layouts", "l", (struct bench_options){0});
    counts(level(v, "level 1"), 3, 3, 4, 2, 0);
    near(at(level(v, "level 1"), "avg"), 1);
    near(at(level(v, "level 2"), "avg"), 0);
    assert_int_equal(json_i64(json_object_get(v, "strays"), "n", 0), 0);
    assert_true(json_is_null(by(level(v, "all"), "eager"))); /* nothing was timed */
    json_decref(v);
    put("j/samples.jsonl", "{\"task\":\"10_ReLU\",\"text\":\"pass\"}\n{\"task\":\"2_Add\",\"level\":2,"
                           "\"text\":\"pass\"}\n"
                           "{\"task\":\"level1/2_Add\",\"text\":\"timeout\"}\n"
                           "{\"task\":\"nobody\",\"text\":\"pass\"}\n");
    v = run_with("lines", "j", (struct bench_options){0});
    near(at(level(v, "level 1"), "avg"), 0.5);
    near(at(level(v, "level 2"), "avg"), 1);
    assert_int_equal(json_i64(json_object_get(v, "strays"), "n", 0), 1);
    json_decref(v);
}

/* ---- tasks made small ---- */

static _Atomic int shrunk; // several threads ask

static int make_small(const struct task *t, int64_t max, json_t **ret, void *ctx, struct err *e)
{
    shrunk++;
    assert_ptr_equal(ctx, &shrunk);
    assert_int_equal(max, 64);
    assert_null(strchr(t->name, '/'));
    if (strstr(t->code, "# b"))
        return err_set(e, ERR_INPUT, "task '%s': nothing in it is a size", t->name);
    *ret = json_pack("{s:s,s:i,s:i}", "source", "class Model:\n    pass\ndef get_inputs():\n    return []\n"
                                                "def get_init_inputs():\n"
                                                "    return []\n", "before", 4096, "after", 64);
    return 0;
}

static void test_shrink(void **state)
{
    struct bench_options o = {.shrink_to = 64, .shrink = make_small, .shrink_ctx = &shrunk};
    char *out = path_join(dir, "small"), *from = path_join(dir, "s");
    struct err e = ERR_INIT;
    json_t *v = NULL;

    big_tasks = 0;
    o.suite = spec;
    o.out = out;
    o.samples_dir = from;
    fake_stop_after = fake_judged + 1; /* stopped after one verdict, then continued */
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    fake_stop_after = 0;
    assert_int_equal(shrunk, 4); /* only tasks with samples; the broken one is a skip already */
    v = run_with("small", "s", o);
    assert_int_equal(shrunk, 4); /* remembered */
    assert_int_equal(big_tasks, 0);
    counts(level(v, "level 1"), 3, 1, 2, 2, 1);
    assert_int_equal(json_i64(v, "shrink_to", 0), 64);
    assert_non_null(strstr(json_str(json_array_get(json_object_get(v, "skipped"), 0), "reason", ""),
                           "nothing in it is a size"));
    json_decref(v);
    o.shrink_to = 0; /* other tasks: not the same benchmark */
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "another 'shrink_to'"));
    free(out);
    free(from);
}

/* ---- comparison ---- */

static json_t *compare(const char *a, const char *b)
{
    char *x = path_join(dir, a), *y = path_join(dir, b);
    struct err e = ERR_INIT;
    json_t *v = NULL;

    if (bench_compare(x, y, 1.1, &v, &e) < 0)
        fail_msg("%s", e.msg);
    free(x);
    free(y);
    return v;
}

static const json_t *last_group(const json_t *v)
{
    const json_t *list = json_object_get(v, "groups");

    return json_array_get(list, json_array_size(list) - 1);
}

static void test_precision(void **state)
{
    struct suite own, half;
    struct err e = ERR_INIT;

    assert_int_equal(suite_load_spec(spec, NULL, 0, &own, NULL), 0);
    assert_int_equal(suite_load_spec(spec, NULL, 0, &half, NULL), 0);
    assert_int_equal(suite_set_precision(&half, "fp16", &e), 0);
    assert_string_not_equal(own.sha256, half.sha256);
    for (int i = 0; i < own.n; i++) {
        if (own.skips[i])
            continue;
        assert_null(strstr(own.tasks[i].code, "float16"));
        assert_non_null(strstr(half.tasks[i].code, "\n#@workload: {\"dtype\":\"float16\"}\n"));
        assert_string_not_equal(own.tasks[i].sha256, half.tasks[i].sha256);
    }
    assert_int_equal(suite_set_precision(&half, "fp8", &e), -1);
    suite_free(&own);
    suite_free(&half);
}

static const json_t *task(const json_t *v, const char *name)
{
    const json_t *t;
    size_t i;

    json_array_foreach(json_object_get(v, "tasks"), i, t)
        if (!strcmp(json_str(t, "task", ""), name))
            return t;
    fail_msg("no task '%s'", name);
    return NULL;
}

static void test_compare(void **state)
{
    const json_t *all, *avg, *first, *eager;
    json_t *v;

    /* twice as fast as the mean of 2 and 1.15 ... */
    put("s2/level_1_problem_2_sample_0_kernel.py", "pass 4 3.8 4.2 2.4");
    put("s2/level_1_problem_2_sample_1_kernel.py", "pass 2.3 2.2 2.4 1.8");
    put("s2/level_1_problem_10_sample_0_kernel.py", "pass 1 0.9 1.1 1");
    put("s2/level_1_problem_10_sample_1_kernel.py", "timeout");
    put("s2/level_1_problem_19_sample_0_kernel.py", "pass");
    put("s2/level_2_problem_2_sample_0_kernel.py", "correctness_error");
    json_decref(run_with("two", "s2", (struct bench_options){0}));
    v = compare("skip", "two");
    all = last_group(v);
    avg = json_object_get(all, "avg");
    first = json_object_get(all, "first");
    eager = by(all, "eager");
    near(at(all, "tasks"), 3);
    near(at(v, "only_b"), 1); /* 19_Sum */
    near(at(avg, "difference"), (0 + 0 - 1) / 3.0);
    near(at(avg, "worse"), 1);
    near(at(avg, "better"), 0);
    near(at(avg, "p"), 1);
    near(at(first, "only_a"), 1);
    near(at(first, "only_b"), 1);
    near(at(first, "both"), 1);
    near(at(eager, "tasks"), 1); /* 10_ReLU has no trusted time in A, level 2 fails in B */
    near(at(eager, "ratio"), 2);
    near(at(by(all, "compile"), "ratio"), 2);
    assert_string_equal(json_str(task(v, "level1/2_Add"), "kind", ""), "faster");
    assert_string_equal(json_str(task(v, "level1/10_ReLU"), "kind", ""), "gained");
    assert_string_equal(json_str(task(v, "level2/2_Add"), "kind", ""), "lost");
    json_decref(v);
}

static void test_compare_itself(void **state)
{
    json_t *v = compare("skip", "skip");
    const json_t *avg = json_object_get(last_group(v), "avg"), *t;
    struct err e = ERR_INIT;
    json_t *none;
    size_t i;

    near(at(avg, "difference"), 0);
    near(at(avg, "p"), 1);
    near(at(by(last_group(v), "eager"), "ratio"), 1);
    near(at(by(last_group(v), "eager"), "p"), 1);
    json_array_foreach(json_object_get(v, "tasks"), i, t)
        assert_true(json_is_null(json_object_get(t, "kind")));
    json_decref(v);
    assert_int_equal(bench_compare("/nonexistent", "/nonexistent", 1.1, &none, &e), -1);
    assert_non_null(strstr(e.msg, "no finished benchmark"));
}

/* A table that somebody has edited is no benchmark's. */
static void test_compare_edited(void **state)
{
    char *path = path_join(dir, "skip/bench.json"), *side = path_join(dir, "skip");
    struct err e = ERR_INIT;
    json_t *none = NULL;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    assert_int_equal(file_read(path, &b, &e), 0);
    assert_int_equal(file_append(path, "\n", 1, &e), 0);
    assert_int_equal(bench_compare(side, side, 1.1, &none, &e), -1);
    assert_non_null(strstr(e.msg, "has changed since it was made"));
    assert_int_equal(file_write(path, b.p, b.n, &e), 0);
    json_decref(compare("skip", "skip"));
    buf_free(&b);
    free(path), free(side);
}

/* ---- small parts ---- */

static void test_speed(void **state)
{
    json_t *v = json_pack("{s:{s:f,s:[f,f],s:s}}", "performance", "speedup_eager", 3.0, "speedup_eager_ci", 2.5, 3.5,
                          "speedup_compile", "nan");
    struct speed s = verdict_speed(v, BASE_EAGER), none = verdict_speed(v, BASE_COMPILE);

    assert_true(s.timed && s.point == 3 && speed_claim(&s) == 2.5 && s.hi == 3.5);
    assert_true(!none.timed && !none.untrusted && isnan(speed_claim(&none)));
    json_object_set_new(json_object_get(v, "performance"), "trusted", json_false());
    s = verdict_speed(v, BASE_EAGER);
    assert_true(!s.timed && s.untrusted && isnan(speed_claim(&s)));
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),  cmocka_unit_test(test_missing_fail), cmocka_unit_test(test_files),
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_layouts),      cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_compare_itself),
        cmocka_unit_test(test_compare_edited), cmocka_unit_test(test_speed),
    };

    return cmocka_run_group_tests_name("suites", tests, setup, teardown);
}
