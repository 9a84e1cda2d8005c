/* test_verdicts.c - the client of the judge: what is asked once, what sticks, who is told, and which options reach the
 * judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../lib/fake_verdict.h"
#include "base/file.h"
#include "base/log.h"
#include "verdicts/verdicts.h"

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

static struct verdicts *open_client(const json_t *options)
{
    struct verdicts_config c = {.log = path, .options = options};
    struct err e = ERR_INIT;
    struct verdicts *v = NULL;

    assert_int_equal(verdicts_open(&c, &v, &e), 0);
    return v;
}

static const json_t *ask(struct verdicts *v, const char *task, const char *text)
{
    struct verdict_request r = {.task_code = task, .task_name = "t", .candidate = text, .is_response = true};
    struct err e = ERR_INIT;
    int ticket = verdicts_submit(v, &r, &e);

    assert_true(ticket >= 0);
    assert_int_equal(verdicts_wait(v, 0, NULL, NULL, &e), 0);
    return verdicts_get(v, ticket);
}

/* A scored verdict is asked for once, over restarts too; other options, tasks and programs are other questions. */
static void once(void **state)
{
    (void)state;
    json_t *flags = json_pack("{s:i}", "trials", 3);
    struct verdicts *j = open_client(NULL);
    int before;

    asked = 0;
    ask(j, "task", "once");
    verdicts_forget(j);
    ask(j, "task", "once");
    ask(j, "task", "once");
    assert_int_equal(asked, 1);
    verdicts_close(j);
    j = open_client(NULL);
    ask(j, "task", "once");
    assert_int_equal(asked, 1);
    ask(j, "another task", "once");
    ask(j, "task", "twice");
    assert_int_equal(asked, 3);
    assert_int_equal(verdicts_counts(j).submitted, 3);
    assert_int_equal(verdicts_counts(j).replayed, 1);
    verdicts_close(j);
    before = asked;
    j = open_client(flags);
    ask(j, "task", "once");
    assert_int_equal(asked, before + 1);
    verdicts_close(j);
    json_decref(flags);
}

/* What is not scored belongs to its step: replayed there, asked for again elsewhere. */
static void unscored_never_sticks(void **state)
{
    (void)state;
    static const char *const texts[] = {"INFRA again", "UNSUPPORTED again"};

    for (int i = 0; i < 2; i++) {
        struct verdicts *j = open_client(NULL);

        asked = 0;
        verdicts_step(j, 4);
        ask(j, "task", texts[i]);
        verdicts_close(j);
        j = open_client(NULL);
        verdicts_step(j, 4);
        ask(j, "task", texts[i]);
        assert_int_equal(asked, 1);
        verdicts_forget(j);
        verdicts_step(j, 5);
        ask(j, "task", texts[i]);
        assert_int_equal(asked, 2);
        verdicts_close(j);
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
        json_t *v = verdicts_options_of(&o);
        char *text = json_text(v);

        assert_string_equal(text, n ? "{\"backend\":\"cuda\",\"protocol\":\"kernelbench\",\"trials\":3,\"timeout\":2.5}"
                                    : "{}");
        free(text);
        json_decref(v);
        opts_free(&o);
    }
}

struct arrivals {
    int n, told[8];
};

static int on_arrival(void *ctx, int ticket, const json_t *verdict, struct err *e)
{
    struct arrivals *a = ctx;

    assert_non_null(verdict);
    a->told[a->n++] = ticket;
    return 0;
}

/* Without a log nothing is kept, equal programs are judged once, and each ticket is told once: of a wait that is
 * stopped, too, what was there by then. A file is another question than a response of the same text, and so is
 * another sidecar. */
static void each_ticket_is_told(void **state)
{
    json_t *sidecar = json_pack("{s:i}", "shapes", 1);
    struct verdict_request same = {.task_code = "task", .task_name = "t", .candidate = "a", .is_response = true},
                           file = {.task_code = "task", .task_name = "t", .candidate = "a"}, beside = file;
    struct arrivals a = {0};
    struct verdicts_config c = {.arrived = on_arrival, .ctx = &a};
    struct err e = ERR_INIT;
    struct verdicts *v;

    beside.sidecar = sidecar;
    asked = 0;
    assert_int_equal(verdicts_open(&c, &v, &e), 0);
    assert_int_equal(verdicts_submit(v, &same, &e), 0);
    assert_int_equal(verdicts_submit(v, &same, &e), 1);
    assert_int_equal(verdicts_submit(v, &file, &e), 2);
    assert_int_equal(verdicts_submit(v, &beside, &e), 3);
    assert_int_equal(asked, 3);
    assert_int_equal(verdicts_programs(v), 3);
    assert_int_equal(verdicts_ready(v), 4);
    assert_int_equal(verdicts_open_programs(v), 3);
    fake_judged = 0, fake_stop_after = 2;
    assert_int_equal(verdicts_wait(v, 0, NULL, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    assert_int_equal(a.n, 3);
    fake_stop_after = 0;
    verdicts_forget(v);
    assert_int_equal(verdicts_submit(v, &same, &e), 0);
    assert_int_equal(asked, 4); // forgotten, and there is no log
    assert_int_equal(verdicts_wait(v, 0, NULL, NULL, &e), 0);
    assert_int_equal(verdicts_wait(v, 0, NULL, NULL, &e), 0);
    assert_int_equal(a.n, 4); // once
    assert_int_equal(a.told[3], 0);
    verdicts_close(v);
    json_decref(sidecar);
}

/* Who says what lasts decides what the log keeps; without a step the rest is not kept at all. */
static bool nothing_lasts(void *ctx, const json_t *verdict)
{
    return false;
}

static void what_lasts(void **state)
{
    struct verdicts_config c = {.log = path, .lasts = nothing_lasts};
    struct err e = ERR_INIT;
    struct verdicts *v;

    asked = 0;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(verdicts_open(&c, &v, &e), 0);
        ask(v, "task", "PASS but not kept");
        assert_false(verdicts_known(v, 0));
        verdicts_close(v);
        assert_int_equal(asked, i);
    }
    c.lasts = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(verdicts_open(&c, &v, &e), 0);
        ask(v, "task", "PASS but not kept");
        assert_int_equal(verdicts_known(v, 0), i);
        verdicts_close(v);
    }
    assert_int_equal(asked, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(once), cmocka_unit_test(each_ticket_is_told),
                                       cmocka_unit_test(what_lasts),
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
