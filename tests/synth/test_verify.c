/* test_verify.c - verdicts for synthesis: the backend is the user's, infra is tried once more, a task that cannot be
 * judged is left out, a journal continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/fake_verdict.h"
#include "base/file.h"
#include "base/log.h"
#include "synth/verify.h"

static int asked, infra_times;
static char backend[16];
static bool all_unlucky;
static const char *at_fault = "judge";
static char *folder, *path;

static json_t *fake_judge(const struct verdict_request *item)
{
    asked++;
    snprintf(backend, sizeof backend, "%s", json_str(item->options, "backend", "?"));
    if ((all_unlucky || strstr(item->candidate, "unlucky")) && infra_times-- > 0)
        return json_pack("{s:s,s:s,s:s}", "status", "infra", "category", "infra", "at_fault", at_fault);
    return json_pack("{s:s,s:s}", "status", "passed", "program", item->candidate);
}

static int verify(const char *where, json_t **ret)
{
    static const struct verify_item items[] = {{"a", "task", "lucky"}, {"b", "task", "unlucky"}};
    struct verify_options o = {.trials = 2, .log = path, .backend = where};
    struct err e = ERR_INIT;

    return verify_all(&o, items, 2, ret, &e);
}

static void backend_and_journal(void **state)
{
    (void)state;
    json_t *v = NULL;

    assert_int_equal(verify("cuda", &v), 0);
    assert_string_equal(backend, "cuda");
    assert_int_equal(asked, 2);
    assert_string_equal(json_str(json_array_get(v, 1), "program", ""), "unlucky");
    json_decref(v);
    assert_int_equal(verify("cuda", &v), 0);
    assert_int_equal(asked, 2); // all in the journal
    json_decref(v);
    assert_int_equal(verify(NULL, &v), 0); // another backend is another verdict
    assert_string_equal(backend, "sim");
    assert_int_equal(asked, 4);
    json_decref(v);
}

static void infra_once_more(void **state)
{
    (void)state;
    json_t *v = NULL;

    unlink(path);
    asked = 0;
    infra_times = 1;
    assert_int_equal(verify("sim", &v), 0);
    assert_int_equal(asked, 3);
    assert_string_equal(json_str(json_array_get(v, 1), "status", ""), "passed");
    json_decref(v);
    unlink(path);
    infra_times = 9;
    assert_int_equal(verify("sim", &v), -1); // the machine is unfit
}

/* One task that nobody can judge is no reason to end a run of thousands: its verdict is final. */
static void unfit_task_is_left_out(void **state)
{
    (void)state;
    json_t *v = NULL;

    unlink(path);
    asked = 0;
    infra_times = 9;
    at_fault = "request";
    assert_int_equal(verify("sim", &v), 0);
    assert_int_equal(asked, 3); // twice: a reference may be late once
    assert_string_equal(json_str(json_array_get(v, 0), "status", ""), "passed");
    assert_string_equal(json_str(json_array_get(v, 1), "status", ""), "infra");
    json_decref(v);
    assert_int_equal(verify("sim", &v), 0);
    assert_int_equal(asked, 3); // the journal has it
    json_decref(v);
    unlink(path);
    infra_times = 1;
    assert_int_equal(verify("sim", &v), 0);
    assert_string_equal(json_str(json_array_get(v, 1), "status", ""), "passed");
    json_decref(v);
    unlink(path);
    infra_times = 9;
    all_unlucky = true; // the judge's machine is at fault, whatever it says
    assert_int_equal(verify("sim", &v), -1);
    all_unlucky = false;
    at_fault = "judge";
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(backend_and_journal), cmocka_unit_test(infra_once_more),
                                       cmocka_unit_test(unfit_task_is_left_out)};
    struct err e = ERR_INIT;
    int rc;

    log_set_level(LOG_ERROR);
    folder = dir_temp("verify", &e);
    path = path_join(folder, "verdicts.log.jsonl");
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove(folder, NULL);
    free(folder);
    free(path);
    return rc;
}
