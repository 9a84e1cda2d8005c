/* test_sidecar.c - NAME.yaml beside NAME.py: what is accepted, what is refused with which words, and the task's
 * address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/sidecar.h"
#include "task/task.h"

static const char code[] = "class Model:\n    pass\n\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n"
                           "    return []\n";

static struct task with(const char *yaml)
{
    struct err e = ERR_INIT;
    struct task t;
    json_t *raw = yaml_parse(yaml, strlen(yaml), "x.yaml", &e);

    if (!raw || task_make("x", code, strlen(code), &t, &e) < 0 || task_attach(&t, raw, "x.yaml", &e) < 0)
        fail_msg("%s: %s", yaml, e.msg);
    json_decref(raw);
    return t;
}

static void everything(void **state)
{
    struct task t = with("tolerance: {abs: 0.001}\nregimes: [normal, task]\nvariants:\n"
                         "  - name: odd\n    sizes: {batch_size: 3, \"shape[1]\": 17}\n    layout: {1: strided}\n"
                         "  - name: half\n    dtype: float16\n    tolerance: {abs: 1, rel: 1e-2}\n"
                         "    regimes: [large]\n"
                         "  - name: turned\n    layout: transposed\n");
    char text[200];

    (void)state;
    assert_int_equal(task_variants(&t), 3);
    assert_null(task_variant_name(&t, 0));
    assert_string_equal(task_variant_name(&t, 2), "half");
    assert_true(json_f64(task_setting(&t, 0, "tolerance"), "abs", -1) == 0.001);
    assert_true(json_f64(task_setting(&t, 1, "tolerance"), "rel", -1) == 0);
    assert_true(json_f64(task_setting(&t, 2, "tolerance"), "abs", -1) == 1);
    assert_int_equal(json_array_size(task_setting(&t, 1, "regimes")), 2);
    assert_int_equal(json_array_size(task_setting(&t, 2, "regimes")), 1);
    task_variant_text(&t, 1, text, sizeof text);
    assert_string_equal(text, "batch_size = 3, shape[1] = 17, input 1 strided");
    task_variant_text(&t, 2, text, sizeof text);
    assert_string_equal(text, "float16");
    task_variant_text(&t, 3, text, sizeof text);
    assert_string_equal(text, "inputs transposed");
    task_variant_text(&t, 0, text, sizeof text);
    assert_string_equal(text, "");
    task_free(&t);
}

struct refusal {
    const char *yaml, *words;
};

static void refusals(void **state)
{
    static const struct refusal cases[] = {
        {"variant: []\n", "no key 'variant'; did you mean 'variants'?"},
        {"tolerence: {abs: 1}\n", "did you mean 'tolerance'?"},
        {"colour: red\n", "known: tolerance, regimes, effects, variants"},
        {"- a\n", "expected keys with values"},
        {"tolerance: 0.1\n", "{abs: NUMBER, rel: NUMBER}"},
        {"tolerance: {abs: -1}\n", "at least 0"},
        {"tolerance: {abs: tiny}\n", "at least 0"},
        {"tolerance: {atol: 1}\n", "part of a tolerance 'atol'"},
        {"tolerance: {abs: 1, matched: 1.01}\n", "from 0.5 to 1"},
        {"tolerance: {abs: 1, matched: 0}\n", "from 0.5 to 1"},
        {"tolerance: {abs: 1, most: -1}\n", "at least 0"},
        {"regimes: normal\n", "regimes is a list"},
        {"regimes: []\n", "regimes is a list"},
        {"regimes: [norma]\n", "no regime 'norma'; did you mean 'normal'?"},
        {"regimes: [large, large]\n", "listed twice"},
        {"variants: {}\n", "variants is a list"},
        {"variants: [{dtype: float16}]\n", "variant 1: it needs a name"},
        {"variants: [{name: a b, dtype: float16}]\n", "letters, digits"},
        {"variants: [{name: a}]\n", "variant 'a': it changes nothing"},
        {"variants: [{name: a, dtype: float16}, {name: a, dtype: float16}]\n", "variant 'a': the name is given twice"},
        {"variants: [{name: a, dtype: float_16}]\n", "no dtype 'float_16'; did you mean 'float16'?"},
        {"variants: [{name: a, size: {N: 2}}]\n", "variant 'a': no key 'size'; did you mean 'sizes'?"},
        {"variants: [{name: a, sizes: {N: 2.5}}]\n", "size 'N' must be a whole number"},
        {"variants: [{name: a, sizes: {N: -2}}]\n", "must be 0 to 2^40"},
        {"variants: [{name: a, sizes: [2]}]\n", "sizes is {NAME: INTEGER"},
        {"variants: [{name: a, layout: transpose}]\n", "no layout 'transpose'; did you mean 'transposed'?"},
        {"variants: [{name: a, layout: {x: transposed}}]\n", "'x' is no index of an input"},
        {"variants: [{name: a, layout: {99: transposed}}]\n", "'99' is no index of an input"},
        {"variants: [{name: a, layout: [strided, 3]}]\n", "a layout is a word"},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *raw = yaml_parse(cases[i].yaml, strlen(cases[i].yaml), "t.yaml", &e), *v;

        assert_non_null(raw);
        e = (struct err)ERR_INIT;
        v = sidecar_check(raw, "t.yaml", &e);
        if (v || e.kind != ERR_INPUT || !strstr(e.msg, cases[i].words) || !strstr(e.msg, "'t.yaml'"))
            fail_msg("%s: got '%s', want '%s'", cases[i].yaml, e.msg, cases[i].words);
        json_decref(raw);
    }
}

/* Checking what was checked changes nothing: a queue's worker checks again. */
static void normal_form_is_stable(void **state)
{
    struct task t = with("tolerance: {rel: 1}\nvariants: [{name: a, layout: {2: strided}, sizes: {N: 2}}]\n"), u;
    struct err e = ERR_INIT;
    char *text = json_text(t.sidecar);
    json_t *again = json_parse(text, strlen(text), "payload", &e);

    (void)state;
    assert_int_equal(task_make("x", code, strlen(code), &u, &e), 0);
    assert_int_equal(task_attach(&u, again, "payload", &e), 0);
    assert_string_equal(t.sha256, u.sha256);
    assert_true(json_equal(t.sidecar, u.sidecar));
    json_decref(again);
    free(text);
    task_free(&t);
    task_free(&u);
}

static void address_covers_both(void **state)
{
    struct task none, a = with("tolerance: {abs: 1}\n"), b = with("tolerance: {abs: 2}\n"),
        c = with("tolerance: {abs: 1.0}\n");
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(task_make("x", code, strlen(code), &none, &e), 0);
    assert_string_not_equal(a.sha256, none.sha256);
    assert_string_not_equal(a.sha256, b.sha256);
    assert_string_equal(a.sha256, c.sha256);
    assert_int_equal(task_attach(&a, NULL, "x", &e), 0);
    assert_string_equal(a.sha256, none.sha256);
    task_free(&none);
    task_free(&a);
    task_free(&b);
    task_free(&c);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char *path = path_join(folder, name);
    struct err e = ERR_INIT;

    if (file_write(path, text, strlen(text), &e) < 0)
        fail_msg("%s", e.msg);
    free(path);
}

static void beside_the_task(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("sidecar", &e), *path = path_join(dir, "7_Task.py");
    struct task t;

    (void)state;
    write_text(dir, "7_Task.py", code);
    assert_int_equal(task_read(path, &t, &e), 0);
    assert_null(t.sidecar);
    task_free(&t);
    write_text(dir, "7_Task.yaml", "variants:\n  - {name: odd, sizes: {N: 3}}\n");
    assert_int_equal(task_read(path, &t, &e), 0);
    assert_int_equal(task_variants(&t), 1);
    task_free(&t);
    write_text(dir, "7_Task.yaml", "variants: [\n");
    assert_int_equal(task_read(path, &t, &e), -1);
    assert_non_null(strstr(e.msg, "7_Task.yaml' is not valid YAML: line"));
    dir_remove(dir, NULL);
    free(dir);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),          cmocka_unit_test(refusals),
        cmocka_unit_test(normal_form_is_stable), cmocka_unit_test(address_covers_both),
        cmocka_unit_test(beside_the_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
