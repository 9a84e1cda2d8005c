/* test_workloads.c - many shapes, one verdict: the merging of records, pure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "eval/stage/workloads.h"
#include "task/task.h"

#define CODE "n = 4\nclass Model:\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"

static struct task task;

static int begin(void **state)
{
    static const char sidecar[] = "tolerance: {abs: 0.5}\nvariants: [{name: v, dtype: float16}]\n"
                                  "workloads: [{name: a, sizes: {n: 5}}, {name: b, dtype: bfloat16, tolerance: "
                                  "{rel: 0.1}}]\n";
    json_t *raw = yaml_parse(sidecar, strlen(sidecar), "t.yaml", NULL);
    int rc = task_make("t", CODE, strlen(CODE), &task, NULL) < 0 || task_attach(&task, raw, "t.yaml", NULL) < 0;

    json_decref(raw);
    return rc;
}

static int end(void **state)
{
    task_free(&task);
    return 0;
}

static json_t *record_of(const char *status, const char *category, double speedup, bool trusted)
{
    json_t *r = json_pack("{s:s,s:s,s:s,s:s,s:s?,s:s,s:{s:i,s:i,s:f},s:s}", "schema", "musacoder.verdict/2",
                          "task", "t", "backend", "cuda", "status", status, "category", category, "stage",
                          "correctness", "correctness", "trials", 4, "passed", category ? 2 : 4, "q",
                          category ? 0.5 : 1.0, "task_sha256", "x");

    json_object_set_new(r, "reasons", category ? json_pack("[{s:s,s:s,s:s}]", "category", category, "stage",
                                                           "correctness", "message", "wrong") : json_array());
    json_object_set_new(r, "performance", speedup > 0 ?
                        json_pack("{s:f,s:f,s:f,s:[f,f],s:b,s:[s]}", "candidate_ms", 1.0, "eager_ms", speedup,
                                  "speedup_eager", speedup, "speedup_eager_ci", speedup / 2, speedup * 2, "trusted",
                                  trusted, "reasons", trusted ? "fine" : "throttled") : json_null());
    return r;
}

static json_t *merged(json_t *a, json_t *b, json_t *c)
{
    json_t *all[] = {a, b, c}, *out = workloads_merge(&task, all, c ? 3 : b ? 2 : 1, REWARD_DEFAULT);

    for (int i = 0; i < 3; i++)
        json_decref(all[i]);
    return out;
}

static double at(const json_t *v, const char *section, const char *key)
{
    return json_num_value(json_object_get(section ? json_object_get(v, section) : v, key));
}

static void speed_is_a_geometric_mean(void **state)
{
    json_t *v = merged(record_of("passed", NULL, 1, true), record_of("passed", NULL, 2, true),
                       record_of("passed", NULL, 4, true));
    const json_t *ci = json_object_get(json_object_get(v, "performance"), "speedup_eager_ci");

    assert_string_equal(json_str(v, "status", ""), "passed");
    assert_true(fabs(at(v, "performance", "speedup_eager") - 2) < 1e-9);
    assert_true(fabs(json_num_value(json_array_get(ci, 0)) - 1) < 1e-9);
    assert_true(fabs(json_num_value(json_array_get(ci, 1)) - 4) < 1e-9);
    assert_true(json_flag(json_object_get(v, "performance"), "trusted", false));
    assert_true(fabs(at(v, NULL, "reward") - 1.5) < 1e-9);
    assert_int_equal(at(v, "correctness", "trials"), 12);
    assert_int_equal(json_array_size(json_object_get(v, "workloads")), 3);
    assert_string_equal(json_str(json_array_get(json_object_get(v, "workloads"), 1), "is", ""), "n = 5");
    assert_string_equal(json_str(v, "task_sha256", ""), task.sha256);
    assert_null(json_object_get(v, "workload"));
    assert_non_null(strstr(json_str(v, "feedback", ""), "All 3 workloads passed"));
    json_decref(v);
}

static void one_row_without_trust_earns_nothing(void **state)
{
    json_t *v = merged(record_of("passed", NULL, 8, true), record_of("passed", NULL, 8, false),
                       record_of("passed", NULL, 8, true));

    assert_false(json_flag(json_object_get(v, "performance"), "trusted", true));
    assert_true(at(v, NULL, "reward") == 1);
    json_decref(v);
    v = merged(record_of("passed", NULL, 8, true), record_of("passed", NULL, 0, true),
               record_of("passed", NULL, 8, true));
    assert_false(json_flag(json_object_get(v, "performance"), "trusted", true));
    assert_null(json_object_get(json_object_get(v, "performance"), "speedup_eager"));
    json_decref(v);
    v = merged(record_of("passed", NULL, 0, true), record_of("passed", NULL, 0, true), NULL);
    assert_true(json_is_null(json_object_get(v, "performance")));
    json_decref(v);
}

static void the_words_name_the_shape_that_fails(void **state)
{
    json_t *v = merged(record_of("passed", NULL, 2, true), record_of("infra", "infra", 0, true),
                       record_of("failed", "correctness_error", 0, true));

    assert_string_equal(json_str(v, "status", ""), "failed");
    assert_string_equal(json_str(json_object_get(v, "workload"), "name", ""), "b");
    assert_non_null(strstr(json_str(v, "feedback", ""), "Workload 'b' (bfloat16), one of 3."));
    assert_true(json_is_null(json_object_get(v, "performance")));
    assert_true(at(v, NULL, "reward") == -0.25);
    json_decref(v);
    v = merged(record_of("passed", NULL, 2, true), record_of("infra", "infra", 0, true), NULL);
    assert_string_equal(json_str(v, "status", ""), "infra");
    assert_true(json_is_null(json_object_get(v, "reward")));
    json_decref(v);
    v = merged(record_of("failed", "compile_error", 0, true), NULL, NULL);
    assert_true(workloads_decided(v));
    assert_null(json_object_get(v, "workload"));
    json_decref(v);
}

/* Whichever row it shows in; and of failures alike the words are those of the row that the reward is of. */
static void cheating_decides_and_the_worst_row_pays(void **state)
{
    json_t *worse = record_of("failed", "correctness_error", 0, true);
    json_t *v = merged(record_of("failed", "correctness_error", 0, true), record_of("failed", "cheating", 0, true),
                       NULL);

    (void)state;
    assert_string_equal(json_str(v, "category", ""), "cheating");
    assert_true(at(v, NULL, "reward") == -1);
    json_decref(v);
    json_object_set_new(json_object_get(worse, "correctness"), "q", json_real(0.25));
    v = merged(record_of("failed", "correctness_error", 0, true), worse, record_of("passed", NULL, 2, true));
    assert_true(at(v, NULL, "reward") == -0.375);
    assert_string_equal(json_str(json_object_get(v, "workload"), "name", ""), "a");
    assert_non_null(strstr(json_str(v, "feedback", ""), "2 of 4 trials pass")); /* that row's own */
    json_decref(v);
}

/* It has a row that says why, and no say in verdict, trust, times and trials. */
static void a_workload_that_cannot_be_judged_has_no_say(void **state)
{
    json_t *refused = workloads_refusal(&task, "cuda", "strict", "its answer is the same for all inputs");
    json_t *v;

    (void)state;
    assert_true(workloads_all_refused(&refused, 1));
    v = merged(refused, record_of("passed", NULL, 2, true), record_of("passed", NULL, 8, true));
    assert_string_equal(json_str(v, "status", ""), "passed");
    assert_true(json_flag(json_object_get(v, "performance"), "trusted", false));
    assert_true(fabs(at(v, "performance", "speedup_eager") - 4) < 1e-9);
    assert_int_equal(at(v, "correctness", "trials"), 8);
    assert_non_null(strstr(json_str(v, "feedback", ""), "2 of 3 workloads passed"));
    assert_string_equal(json_str(json_array_get(json_object_get(v, "workloads"), 0), "refused", ""),
                        "its answer is the same for all inputs");
    assert_null(json_object_get(v, "refused"));
    json_decref(v);
    refused = workloads_refusal(&task, "cuda", "strict", "no");
    v = merged(refused, record_of("failed", "correctness_error", 0, true), NULL);
    assert_string_equal(json_str(v, "status", ""), "failed");
    assert_string_equal(json_str(json_object_get(v, "workload"), "name", ""), "a");
    json_decref(v);
}

static void a_workload_is_a_task_of_its_own(void **state)
{
    struct task one;

    assert_int_equal(task_workloads(&task), 2);
    assert_int_equal(task_workload(&task, 0, &one, NULL), 0);
    assert_string_equal(one.code, CODE);
    assert_int_equal(task_variants(&one), 1);
    assert_int_equal(task_workloads(&one), 0);
    task_free(&one);
    assert_int_equal(task_workload(&task, 2, &one, NULL), 0);
    assert_non_null(strstr(one.code, "\n#@workload: {\"dtype\":\"bfloat16\"}\n"));
    assert_int_equal(task_variants(&one), 0);
    assert_true(at(task_setting(&one, 0, "tolerance"), NULL, "rel") == 0.1);
    task_free(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_is_a_geometric_mean),
        cmocka_unit_test(one_row_without_trust_earns_nothing),
        cmocka_unit_test(the_words_name_the_shape_that_fails),
        cmocka_unit_test(cheating_decides_and_the_worst_row_pays),
        cmocka_unit_test(a_workload_that_cannot_be_judged_has_no_say),
        cmocka_unit_test(a_workload_is_a_task_of_its_own),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
