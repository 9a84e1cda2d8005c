/* test_suite_names.c - suites: natural order of names, families, limits, what is no task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bench/suite.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    return (dir = dir_temp("report", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    return rc;
}

static void put(const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name), *slash = strrchr(path, '/');

    *slash = 0;
    assert_int_equal(dir_make(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    free(path);
}

static void test_natural(void **state)
{
    static const char *const order[] = {"1_a", "2_a", "2_b", "10_a", "a1", "a01", "a2", "a10", "b"};

    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++) {
            int c = natural_compare(order[i], order[j]);
            bool tie = (i == 4 && j == 5) || (i == 5 && j == 4); /* equal numbers: any fixed order */
            if (!tie)
                assert_true(i < j ? c < 0 : i > j ? c > 0 : c == 0);
            assert_true((c < 0) == (natural_compare(order[j], order[i]) > 0));
        }
}

#define TASK "class Model:\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"

static void test_suite(void **state)
{
    struct err e = ERR_INIT;
    struct suite s, again;
    char *path = path_join(dir, "tasks");

    put("tasks/chain_10.py", TASK);
    put("tasks/chain_9.py", TASK);
    put("tasks/19_ReLU.py", TASK "#");
    put("tasks/notes.txt", "x");
    assert_int_equal(suite_load(path, 0, &s, &e), 0);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.tasks[0].name, "19_ReLU");
    assert_string_equal(s.tasks[1].name, "chain_9");
    assert_string_equal(s.families[0], "all");
    assert_string_equal(s.families[2], "chain");
    assert_int_equal(suite_find(&s, "chain_10"), 2);
    assert_int_equal(suite_find(&s, "chain"), -1);
    assert_int_equal(suite_load(path, 2, &again, &e), 0);
    assert_int_equal(again.n, 2);
    assert_string_not_equal(again.sha256, s.sha256);
    suite_free(&again);
    suite_free(&s);
    put("broken/x.py", "print(1)\n");
    free(path);
    path = path_join(dir, "broken");
    assert_int_equal(suite_load(path, 0, &s, &e), -1);
    assert_int_equal(suite_load("/nonexistent", 0, &s, &e), -1);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_natural), cmocka_unit_test(test_suite)};

    return cmocka_run_group_tests_name("suite_names", tests, setup, teardown);
}
