/* test_recipe.c - recipes: what is accepted, and the one line that says what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "train/recipe.h"

static const char *const sections[] = {"synth", "sft", "rl_single", "rl_multi", NULL};

static json_t *parse(const char *text, struct err *e)
{
    *e = (struct err)ERR_INIT;
    return recipe_parse(text, strlen(text), "r.yaml", sections, e);
}

static void refuses(const char *text, const char *part)
{
    struct err e;

    assert_null(parse(text, &e));
    if (!strstr(e.msg, part))
        fail_msg("'%s' does not say '%s'", e.msg, part);
    assert_int_equal(e.kind, ERR_INPUT);
}

static void good(void **state)
{
    (void)state;
    struct err e;
    json_t *r = parse("name: t\nseed: 3\nstages: synth sft\nsft:\n  steps: 10\n  lr: 1e-3\nsynth:\n", &e);

    assert_non_null(r);
    assert_int_equal(json_i64(json_object_get(r, "sft"), "steps", 0), 10);
    assert_int_equal(recipe_set(r, "sft.steps=20", sections, &e), 0);
    assert_string_equal(json_str(json_object_get(r, "sft"), "steps", ""), "20");
    assert_int_equal(recipe_set(r, "rl_multi.turns=3", sections, &e), 0);
    assert_int_equal(recipe_set(r, "synth.tasks=a=b", sections, &e), 0);
    assert_string_equal(json_str(json_object_get(r, "synth"), "tasks", ""), "a=b");
    assert_int_equal(recipe_set(r, "stages=sft", sections, &e), 0);
    json_decref(r);
}

static void bad(void **state)
{
    (void)state;
    refuses("stagse: sft\n", "did you mean 'stages'?");
    refuses("rl_singel: {steps: 1}\n", "did you mean 'rl_single'?");
    refuses("stages: synth sftt\n", "did you mean 'sft'?");
    refuses("stages: sft sft\n", "twice");
    refuses("stages: [sft, synth]\n", "single value");
    refuses("sft: 5\n", "wants keys");
    refuses("- a\n- b\n", "mapping");
    refuses("sft: {steps: 1\n", "r.yaml");
    refuses("sft: {}\nsft: {}\n", "sft");
}

static void bad_sets(void **state)
{
    (void)state;
    struct err e;
    json_t *r = parse("stages: sft\n", &e);

    assert_int_equal(recipe_set(r, "sft.steps", sections, &e), -1);
    assert_int_equal(recipe_set(r, "=3", sections, &e), -1);
    assert_int_equal(recipe_set(r, "synht.tasks=3", sections, &e), -1);
    assert_non_null(strstr(e.msg, "did you mean 'synth'?"));
    assert_int_equal(recipe_set(r, "sedd=3", sections, &e), -1);
    assert_int_equal(recipe_set(r, "stages=nothing", sections, &e), -1);
    json_decref(r);
}

static void based(void **state)
{
    (void)state;
    static const char a[] = "name: a\nseed: 1\nstages: synth sft\nsft: {steps: 10, lr: 1}\n";
    static const char b[] = "base: a.yaml\nname: b\nstages: sft\nsft: {steps: 20}\n", c[] = "base: c.yaml\n";
    struct err e = ERR_INIT;
    char *dir = dir_temp("recipe", &e), *pa = path_join(dir, "a.yaml"), *pb = path_join(dir, "b.yaml"),
         *pc = path_join(dir, "c.yaml");
    json_t *r;

    assert_int_equal(file_write(pa, a, sizeof a - 1, &e) + file_write(pb, b, sizeof b - 1, &e) +
                     file_write(pc, c, sizeof c - 1, &e), 0);
    r = recipe_read(pb, sections, &e);
    assert_non_null(r);
    assert_string_equal(json_str(r, "name", ""), "b");
    assert_string_equal(json_str(r, "stages", ""), "sft");
    assert_null(json_object_get(r, "base"));
    assert_int_equal(json_i64(json_object_get(r, "sft"), "steps", 0), 20);
    assert_int_equal(json_i64(json_object_get(r, "sft"), "lr", 0), 1);
    json_decref(r);
    assert_null(recipe_read(pc, sections, &e)); // a circle
    assert_non_null(strstr(e.msg, "deeper"));
    dir_remove(dir, NULL);
    free(dir);
    free(pa);
    free(pb);
    free(pc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(bad_sets),
                                       cmocka_unit_test(based)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
