/* test_diagnose.c - what follows from traced operators and verdicts: families, balance, rates, weights, prompts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "synth/diagnose.h"
#include "synth/problem.h"
#include "task/task.h"

static void check_family(const char *operators, const char *want)
{
    json_t *v = json_parse(operators, strlen(operators), "test", NULL);

    assert_string_equal(diagnose_family(v), want);
    json_decref(v);
}

static void the_rarest_family_counts(void **state)
{
    (void)state;
    check_family("{\"relu\":1}", "elementwise");
    check_family("{\"view\":2,\"t\":1}", "plumbing");
    check_family("{}", "plumbing");
    check_family("{\"t\":1,\"addmm\":1,\"relu\":1,\"sum\":1}", "matmul");
    check_family("{\"convolution\":1,\"native_batch_norm\":1}", "convolution");
    check_family("{\"native_layer_norm\":1,\"mul\":3}", "normalisation");
    check_family("{\"linalg_vector_norm\":1}", "reduction"); // no layer
    check_family("{\"clamp_min\":1}", "elementwise");        // no minimum
    check_family("{\"_softmax\":1,\"bmm\":2}", "softmax");
    check_family("{\"max_pool2d_with_indices\":1}", "pooling");
}

static json_t *some_families(void)
{
    json_t *v = json_object();

    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%02d", i);
        json_object_set_new(v, name, json_string(i < 12 ? "elementwise" : i < 18 ? "reduction" : "matmul"));
    }
    return v;
}

static void families_take_turns(void **state)
{
    json_t *found = some_families(), *picked = diagnose_balanced(found, 8), *all = diagnose_balanced(found, 99), *name;
    int of[3] = {0};
    size_t i;
    (void)state;

    json_array_foreach(picked, i, name) {
        const char *family = json_str(found, json_string_value(name), "");
        of[*family == 'e' ? 0 : *family == 'r' ? 1 : 2]++;
    }
    assert_int_equal(of[0], 3), assert_int_equal(of[1], 3), assert_int_equal(of[2], 2);
    assert_int_equal(json_array_size(all), 20);
    json_decref(found), json_decref(picked), json_decref(all);
}

/* Of elementwise tasks most pass, of reductions none; matmul is not asked. */
static void write_verdicts(const char *dir)
{
    char *path = path_join(dir, "verdicts.jsonl");

    for (int i = 0; i < 18; i++) {
        bool passed = i < 9, compiled = i < 15;
        json_t *v = json_pack("{s:o, s:i, s:{s:s, s:{s:b}, s:{s:f}}}", "task", json_sprintf("t%02d", i), "turn", 1,
                              "verdict", "status", passed ? "passed" : "failed", "compile", "ok", compiled,
                              "performance", "speedup_eager", 1.0 + i);
        assert_int_equal(jsonl_append(path, v, NULL), 0);
        json_object_set_new(v, "turn", json_integer(2)); // a second turn counts for nothing
        assert_int_equal(jsonl_append(path, v, NULL), 0);
        json_decref(v);
    }
    free(path);
}

static void weak_families_weigh_more(void **state)
{
    char *dir = dir_temp("diagnose", NULL);
    json_t *found = some_families(), *rates, *weights, *r;
    (void)state;

    write_verdicts(dir);
    rates = diagnose_rates(found, NULL, dir, NULL);
    assert_non_null(rates);
    assert_int_equal(json_object_size(rates), 2);
    r = json_object_get(rates, "elementwise");
    assert_int_equal(json_i64(r, "samples", 0), 12);
    assert_true(fabs(json_f64(r, "correct", 0) - 0.75) < 1e-9);
    assert_true(fabs(json_f64(r, "speedup", 0) - 5) < 1e-9); // the median of 1 to 9
    r = json_object_get(rates, "reduction");
    assert_true(fabs(json_f64(r, "compile_rate", 0) - 0.5) < 1e-9);
    assert_true(json_is_null(json_object_get(r, "speedup")));
    weights = diagnose_weights(rates);
    /* 1 - 10/14 and 1 - 1/8, over their mean */
    assert_true(fabs(json_f64(weights, "math", 0) - (4 / 14.0) / ((4 / 14.0 + 7 / 8.0) / 2)) < 1e-9);
    assert_true(fabs(json_f64(weights, "loss", 0) - (7 / 8.0) / ((4 / 14.0 + 7 / 8.0) / 2)) < 1e-9);
    assert_null(json_object_get(weights, "matmul"));
    json_decref(found), json_decref(rates), json_decref(weights);
    dir_remove(dir, NULL);
    free(dir);
}

/* The verdict of another task of that name says nothing of this one; with a sidecar, both are hashed. */
static void verdicts_of_other_tasks_do_not_count(void **state)
{
    static const char code[] = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n";
    char *dir = dir_temp("diagnose", NULL), *path = path_join(dir, "verdicts.jsonl"), *file = path_join(dir, "t.py");
    char *sidecar = path_join(dir, "t.yaml");
    json_t *found = json_pack("{s:s}", "t", "matmul"), *tasks = json_pack("{s:s}", "t", code), *marks, *rates;
    struct task t = {0};
    (void)state;

    assert_int_equal(file_write(file, code, strlen(code), NULL), 0);
    assert_int_equal(file_write(sidecar, "tolerance: {rel: 0.5}\n", 22, NULL), 0);
    assert_int_equal(task_read(file, &t, NULL), 0);
    marks = diagnose_marks(tasks, dir);
    assert_non_null(strstr(json_str(marks, "t", ""), t.sha256));
    for (int i = 0; i < 2; i++) {
        json_t *v = json_pack("{s:s, s:i, s:{s:s, s:s}}", "task", "t", "turn", 1, "verdict", "status", "passed",
                              "task_sha256", i ? t.sha256 : "0123");
        assert_int_equal(jsonl_append(path, v, NULL), 0);
        json_decref(v);
        rates = diagnose_rates(found, marks, dir, NULL);
        assert_int_equal(json_i64(json_object_get(rates, "matmul"), "samples", 0), i);
        json_decref(rates);
    }
    task_free(&t);
    json_decref(found), json_decref(tasks), json_decref(marks);
    dir_remove(dir, NULL);
    free(dir), free(path), free(file), free(sidecar);
}

static int read_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(ctx, v);
    return 0;
}

/* Nothing is lost, and of a family with 16 times the weight most stand in front. */
static void weak_prompts_come_first(void **state)
{
    char *dir = dir_temp("diagnose", NULL), *from = path_join(dir, "prompts.jsonl"), *to = path_join(dir, "out.jsonl");
    json_t *found = json_object(), *lines = json_array(), *rates, *v;
    int front = 0;
    size_t i;
    (void)state;

    rates = json_pack("{s:{s:f}, s:{s:f}}", "reduction", "weight", 4.0, "elementwise", "weight", 0.25);
    for (int k = 0; k < 200; k++) {
        char name[16];
        snprintf(name, sizeof name, "p%03d", k);
        json_object_set_new(found, name, json_string(k % 2 ? "reduction" : "elementwise"));
        v = json_pack("{s:{s:s, s:s}}", "extra_info", "name", name, "task_code", "x");
        assert_int_equal(jsonl_append(from, v, NULL), 0);
        json_decref(v);
    }
    assert_int_equal(diagnose_prompts(from, found, rates, 1, 0, to, NULL), 0);
    assert_int_equal(jsonl_each(to, read_line, lines, NULL), 0);
    assert_int_equal(json_array_size(lines), 200);
    json_array_foreach(lines, i, v)
        front += i < 50 && !strcmp(json_str(found, json_str(json_object_get(v, "extra_info"), "name", ""), ""),
                                   "reduction");
    assert_true(front > 40);
    json_decref(found), json_decref(lines), json_decref(rates);
    dir_remove(dir, NULL);
    free(dir), free(from), free(to);
}

static int reductions_drawn(const json_t *weights)
{
    struct dag_table *t = dag_table_weighted(NULL, weights);
    struct dag_limits l = {.l = {.max_numel = 256, .max_work = 1 << 14, .dtypes = 1}, .min_ops = 1, .max_ops = 1};
    struct dag *g = malloc(sizeof *g);
    int n = 0;
    struct rng r;

    rng_seed(&r, 2, 0);
    for (int i = 0; i < 2000; i++) {
        dag_draw(t, &r, &l, g);
        n += !strcmp(g->node[0].c.op->family, "reduction");
    }
    dag_table_free(t);
    free(g);
    return n;
}

static void weights_are_drawn_by(void **state)
{
    json_t *none = json_object(), *four = json_pack("{s:f}", "reduction", 4.0),
           *quarter = json_pack("{s:f}", "reduction", 0.25);
    int plain = reductions_drawn(NULL);
    (void)state;

    assert_int_equal(reductions_drawn(none), plain); // weights of 1 change nothing
    assert_true(reductions_drawn(four) > 2 * plain);
    assert_true(reductions_drawn(quarter) < plain / 2);
    json_decref(none), json_decref(four), json_decref(quarter);
}

static void check_weights(const char *text, const char *word)
{
    char *dir = dir_temp("diagnose", NULL), *path = path_join(dir, "w.json");
    struct err e = ERR_INIT;

    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    assert_null(diagnose_weights_read(path, &e));
    assert_non_null(strstr(e.msg, word));
    dir_remove(dir, NULL);
    free(dir), free(path);
}

static void wrong_weights_are_refused(void **state)
{
    (void)state;
    check_weights("{\"reductions\": 2}", "no family 'reductions'");
    check_weights("{\"reduction\": 0}", "0.01 to 100");
    check_weights("{\"reduction\": \"much\"}", "0.01 to 100");
    check_weights("[1]", "no object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rarest_family_counts), cmocka_unit_test(families_take_turns),
        cmocka_unit_test(weak_families_weigh_more), cmocka_unit_test(verdicts_of_other_tasks_do_not_count),
        cmocka_unit_test(weak_prompts_come_first),
        cmocka_unit_test(weights_are_drawn_by),     cmocka_unit_test(wrong_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
