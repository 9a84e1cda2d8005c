/* test_outcome.c - what a verdict counts as in training, and its score under other weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/outcome.h"

static void kinds(void **state)
{
    json_t *passed = json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.5),
           *failed = json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "compile_error", "reward", -1.0,
                               "feedback", "wrong"),
           *unsupported = json_pack("{s:s,s:f}", "status", "unsupported", "reward", -1.0), // not to be read
           *infra = json_pack("{s:s,s:n}", "status", "infra", "reward");
    struct outcome o = outcome_of(passed, NULL);

    assert_int_equal(o.kind, OUTCOME_PASSED);
    assert_true(o.score == 1.5 && !*o.category);
    o = outcome_of(failed, NULL);
    assert_int_equal(o.kind, OUTCOME_FAILED);
    assert_true(o.score == -1);
    assert_string_equal(o.feedback, "wrong");
    o = outcome_of(unsupported, &(struct reward_params){0.25, 1});
    assert_int_equal(o.kind, OUTCOME_UNSUPPORTED);
    assert_true(o.score == 0);
    o = outcome_of(infra, NULL);
    assert_int_equal(o.kind, OUTCOME_INFRA);
    assert_true(o.score == 0);
    assert_int_equal(outcome_of(NULL, NULL).kind, OUTCOME_INFRA);
    json_decref(passed), json_decref(failed), json_decref(unsupported), json_decref(infra);
}

/* Other weights score the same record anew. */
static void weights_of_the_reward(void **state)
{
    struct reward_params none = {0, 4}, half = {0.25, 1};
    json_t *fast = json_pack("{s:s,s:n,s:f,s:{s:f,s:b}}", "status", "passed", "category", "reward", 2.0, "performance",
                             "speedup_eager", 3.0, "trusted", 1);

    assert_true(outcome_of(fast, NULL).score == 2);
    assert_true(outcome_of(fast, &none).score == 1);
    assert_true(outcome_of(fast, &half).score == 1.25);
    json_decref(fast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds), cmocka_unit_test(weights_of_the_reward)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
