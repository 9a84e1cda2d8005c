/* test_model_card.c - a card says what the run folder says: stages, options, shares with the k that was drawn, splits,
 * and where the weights come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "report/model_card.h"

static char *dir;

static void put(const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);

    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    free(path);
}

static char *card(void)
{
    struct err e = ERR_INIT;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (model_card_build(dir, "9.9", &b, &e) < 0)
        fail_msg("%s", e.msg);
    return buf_detach(&b);
}

static void holds(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("the card lacks '%s':\n%s", what, text);
}

static void says_what_the_run_says(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char *data = path_join(dir, "data"), *text;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    put("recipe.yaml", "{\"name\": \"mine\", \"seed\": 7, \"stages\": \"sft rl_single\", \"sft\": {\"steps\": 30, "
                       "\"lr\": 0.003},"
                       " \"rl_single\": {\"steps\": 2, \"average\": 0.5}, \"bench\": {}}");
    assert_int_equal(model_card_build(dir, "9.9", &b, &e), -1); // it has not ended
    assert_non_null(strstr(e.msg, "summary.json"));
    buf_free(&b);
    put("summary.json", "{\"held_out_tasks\": 3, \"stages\": [{\"name\": \"sft\", \"k\": 2, \"samples\": 4, "
                        "\"pass_at_8\": 0.5,"
                        "\"avg_at_8\": 0.25, \"whole_pass_rate\": \"nan\", \"families\": {\"same\": {\"avg_at_8\": "
                        "0.125}}}]}");
    text = card();
    holds(text, "# mine\n");
    holds(text, "began as random numbers");
    holds(text, "- **sft** - `steps: 30`, `lr: 0.003`\n- **rl_single** - `steps: 2`, `average: 0.5`\n");
    holds(text, "3 held-out tasks, 4 answers each, judged by MooreEval (sim)");
    holds(text, "| stage | Pass@2 | Avg@4 | Avg of whole answers | same |\n|---|---|---|---|---|\n");
    holds(text, "| sft | 50.0 | 25.0 | | 12.5 |\n");
    holds(text, "musacoder 9.9, seed 7.");
    assert_null(strstr(text, "## Data"));
    assert_null(strstr(text, "base_model"));
    free(text);
    assert_int_equal(dir_make(data, &e), 0);
    put("data/stats.json", "{\"records\": {\"train\": 2500000, \"repairs\": 0}}");
    put("recipe.yaml", "{\"name\": \"mine\", \"model\": \"Some/Base\", \"stages\": \"sft\"}");
    text = card();
    holds(text, "base_model: Some/Base\n");
    holds(text, "that model's licence and terms hold");
    holds(text, "Records: train 2.5 million.\n");
    free(text);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_the_run_says)};
    struct err e = ERR_INIT;
    int rc;

    dir = dir_temp("card", &e);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove(dir, NULL);
    free(dir);
    return rc;
}
