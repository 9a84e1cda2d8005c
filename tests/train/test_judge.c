/* test_judge.c - the trainer's view of verdicts: what is asked once, what sticks, what a verdict counts as, and which
 * options reach the judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../queue/fake_verdict.h"
#include "base/file.h"
#include "base/log.h"
#include "train/judge.h"

static int asked;
static char *folder, *path;

static json_t *fake_judge(const struct verdict_request *item)
{
    asked++;
    if (strstr(item->candidate, "INFRA"))
        return json_pack("{s:s,s:s,s:n}", "status", "infra", "category", "infra", "reward");
    if (strstr(item->candidate, "UNSUPPORTED")) // a reward that must not be read
        return json_pack("{s:s,s:s,s:f}", "status", "unsupported", "category", "unsupported", "reward", -1.0);
    if (strstr(item->candidate, "FAST"))
        return json_pack("{s:s,s:n,s:f,s:{s:f,s:b}}", "status", "passed", "category", "reward", 2.0, "performance",
                         "speedup_eager", 3.0, "trusted", 1);
    if (strstr(item->candidate, "PASS"))
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.5);
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "compile_error", "reward", -1.0, "feedback",
                     item->candidate);
}

static struct judge *open_judge_with(const json_t *options, const struct reward_params *reward)
{
    struct judge_config c = {.log = path, .options = options, .reward = reward};
    struct err e = ERR_INIT;
    struct judge *j = NULL;

    assert_int_equal(judge_open(&c, &j, &e), 0);
    return j;
}

static struct judge *open_judge(const json_t *options)
{
    return open_judge_with(options, NULL);
}

static struct outcome ask(struct judge *j, const char *task, const char *text)
{
    struct err e = ERR_INIT;
    int ticket = judge_submit(j, task, "t", text, &e);

    assert_true(ticket >= 0);
    assert_int_equal(judge_wait(j, NULL, NULL, &e), 0);
    return judge_outcome(j, ticket);
}

static void kinds(void **state)
{
    (void)state;
    struct judge *j = open_judge(NULL);
    struct outcome o = ask(j, "task", "PASS");

    assert_int_equal(o.kind, OUTCOME_PASSED);
    assert_true(o.score == 1.5 && !*o.category);
    o = ask(j, "task", "wrong");
    assert_int_equal(o.kind, OUTCOME_FAILED);
    assert_true(o.score == -1);
    assert_string_equal(o.feedback, "wrong");
    o = ask(j, "task", "UNSUPPORTED");
    assert_int_equal(o.kind, OUTCOME_UNSUPPORTED);
    assert_true(o.score == 0);
    o = ask(j, "task", "INFRA");
    assert_int_equal(o.kind, OUTCOME_INFRA);
    judge_close(j);
}

/* Other weights score the same record anew, and nothing is judged again. */
static void weights_of_the_reward(void **state)
{
    (void)state;
    struct reward_params none = {0, 4}, half = {0.25, 1};
    struct judge *j = open_judge(NULL);
    int before;

    assert_true(ask(j, "weights", "FAST").score == 2);
    judge_close(j);
    before = asked;
    j = open_judge_with(NULL, &none);
    assert_true(ask(j, "weights", "FAST").score == 1);
    judge_close(j);
    j = open_judge_with(NULL, &half);
    assert_true(ask(j, "weights", "FAST").score == 1.25);
    assert_true(ask(j, "weights", "UNSUPPORTED").score == 0);
    judge_close(j);
    assert_int_equal(asked, before + 1);
}

/* A scored verdict is asked for once, over restarts too; other options, tasks and programs are other questions. */
static void once(void **state)
{
    (void)state;
    json_t *flags = json_pack("{s:i}", "trials", 3);
    struct judge *j = open_judge(NULL);
    int before;

    asked = 0;
    ask(j, "task", "once");
    judge_forget(j);
    ask(j, "task", "once");
    ask(j, "task", "once");
    assert_int_equal(asked, 1);
    judge_close(j);
    j = open_judge(NULL);
    ask(j, "task", "once");
    assert_int_equal(asked, 1);
    ask(j, "another task", "once");
    ask(j, "task", "twice");
    assert_int_equal(asked, 3);
    assert_int_equal(judge_counts(j).submitted, 3);
    assert_int_equal(judge_counts(j).replayed, 1);
    judge_close(j);
    before = asked;
    j = open_judge(flags);
    ask(j, "task", "once");
    assert_int_equal(asked, before + 1);
    judge_close(j);
    json_decref(flags);
}

/* What is not scored belongs to its step: replayed there, asked for again elsewhere. */
static void unscored_never_sticks(void **state)
{
    (void)state;
    static const char *const texts[] = {"INFRA again", "UNSUPPORTED again"};

    for (int i = 0; i < 2; i++) {
        struct judge *j = open_judge(NULL);

        asked = 0;
        judge_step(j, 4);
        ask(j, "task", texts[i]);
        judge_close(j);
        j = open_judge(NULL);
        judge_step(j, 4);
        ask(j, "task", texts[i]);
        assert_int_equal(asked, 1);
        judge_forget(j);
        judge_step(j, 5);
        ask(j, "task", texts[i]);
        assert_int_equal(asked, 2);
        judge_close(j);
    }
}

/* What the user set reaches the judge, and nothing else does. */
static void flags_of_a_command(void **state)
{
    (void)state;
    static const struct opt rows[] = {
        {"rl", "backend", OPT_CHOICE, NULL, "sim|cuda: where"},
        {"rl", "protocol", OPT_CHOICE, NULL, "strict|kernelbench: how"},
        {"rl", "trials", OPT_INT, NULL, "trials"}, {"rl", "timeout", OPT_REAL, NULL, "seconds"},
        {"rl", "steps", OPT_INT, "5", "steps"}, {0}};
    char *all[] = {"--backend", "cuda", "--protocol", "kernelbench", "--trials", "3", "--timeout", "2.5"};
    struct err e = ERR_INIT;
    struct opts o;

    for (int n = 0; n <= 8; n += 8) {
        assert_int_equal(opts_parse(rows, n, all, NULL, &o, &e), 0);
        json_t *v = judge_options_of(&o);
        char *text = json_text(v);

        assert_string_equal(text, n ? "{\"backend\":\"cuda\",\"protocol\":\"kernelbench\",\"trials\":3,\"timeout\":2.5}"
                                    : "{}");
        free(text);
        json_decref(v);
        opts_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds), cmocka_unit_test(weights_of_the_reward),
                                       cmocka_unit_test(once),
                                       cmocka_unit_test(unscored_never_sticks), cmocka_unit_test(flags_of_a_command)};
    struct err e = ERR_INIT;
    int rc;

    log_set_level(LOG_ERROR);
    folder = dir_temp("judge", &e);
    path = path_join(folder, "verdicts.jsonl");
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove(folder, NULL);
    free(folder);
    free(path);
    return rc;
}
