/* test_verdict_log.c - the verdict log: found again after reopening, little memory, a dead writer's last line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "verdicts/verdict_log.h"

#define N 3000

static char *folder, *path;

static json_t *verdict(int i)
{
    return json_pack("{s:s,s:i,s:s}", "status", i % 3 ? "failed" : "passed", "number", i, "feedback", "some words");
}

static void check(struct verdict_log *l, const char *key, int want)
{
    struct err e = ERR_INIT;
    json_t *v = NULL;

    assert_int_equal(verdict_log_find(l, key, &v, &e), want >= 0);
    if (want >= 0)
        assert_int_equal(json_i64(v, "number", -1), want);
    json_decref(v);
}

static void add(struct verdict_log *l, const char *key, int i)
{
    struct err e = ERR_INIT;
    json_t *v = verdict(i);

    assert_int_equal(verdict_log_add(l, key, "t", v, &e), 0);
    json_decref(v);
}

static void kept_on_disk(void **state)
{
    (void)state;
    struct verdict_log *l;
    struct err e = ERR_INIT;
    char key[32];

    assert_int_equal(verdict_log_open(path, &l, &e), 0);
    check(l, "k1", -1);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < N; i++) {
            snprintf(key, sizeof key, "k%d", i);
            if (pass == 0)
                add(l, key, i);
            if (i % 7 == 0)
                check(l, key, i);
        }
        assert_int_equal(verdict_log_count(l), N);
        assert_true(verdict_log_bytes(l) <= 44 * N); // 16 bytes an entry, at most 3/8 to 3/4 full
        verdict_log_close(l);
        assert_int_equal(verdict_log_open(path, &l, &e), 0);
    }
    check(l, "k3000", -1);
    add(l, "k5", 77777);
    check(l, "k5", 77777); // the latest entry wins
    verdict_log_close(l);
    assert_int_equal(verdict_log_open(path, &l, &e), 0);
    check(l, "k5", 77777);
    check(l, "k6", 6);
    verdict_log_close(l);
}

/* What a killed writer left is cut off, and the next entry is whole. */
static void unfinished_line(void **state)
{
    (void)state;
    static const char half[] = "{\"key\":\"k9\",\"task\":\"t\",\"verd";
    struct verdict_log *l;
    struct err e = ERR_INIT;

    assert_int_equal(file_append(path, half, sizeof half - 1, &e), 0);
    assert_int_equal(verdict_log_open(path, &l, &e), 0);
    add(l, "new", 5);
    check(l, "new", 5);
    verdict_log_close(l);
    assert_int_equal(verdict_log_open(path, &l, &e), 0);
    check(l, "new", 5);
    check(l, "k9", 9);
    verdict_log_close(l);
}

static void damage_in_the_middle(void **state)
{
    (void)state;
    struct verdict_log *l;
    struct err e = ERR_INIT;

    assert_int_equal(file_append(path, "{\"no\":1}\n", 9, &e), 0);
    assert_int_equal(verdict_log_open(path, &l, &e), -1);
    assert_non_null(strstr(e.msg, "is no verdict log entry; remove the file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_on_disk), cmocka_unit_test(unfinished_line),
                                       cmocka_unit_test(damage_in_the_middle)};
    struct err e = ERR_INIT;
    int rc;

    log_set_level(LOG_ERROR);
    folder = dir_temp("log", &e);
    path = path_join(folder, "verdicts.jsonl");
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove(folder, NULL);
    free(folder);
    free(path);
    return rc;
}
