/* test_runs.c - what is counted of a run's turn: each program once, however often it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "serve/runs.h"

static void ends(struct runs *r, int64_t id, const char *status)
{
    json_t *v = json_pack("{s:s,s:s*}", "status", status, "category", strcmp(status, "infra") ? NULL : "infra");

    json_object_set_new(v, "reward", strcmp(status, "infra") ? json_real(1) : json_null());

    runs_ended(r, id, v);
    json_decref(v);
}

static void expect(struct runs *r, int asked, int judged, int passed, int unscored)
{
    json_t *all = runs_json(r, NULL), *one = json_array_get(all, 0);

    assert_int_equal(json_i64(one, "asked", -1), asked);
    assert_int_equal(json_i64(one, "judged", -1), judged);
    assert_int_equal(json_i64(one, "passed", -1), passed);
    assert_int_equal(json_i64(one, "unscored", -1), unscored);
    json_decref(all);
}

static void infra_and_then_a_verdict_is_one(void **state)
{
    struct runs *r = runs_new();

    runs_join(r, NULL, "run", 1, "program", 1);
    ends(r, 1, "infra");
    expect(r, 1, 0, 0, 1);
    runs_join(r, NULL, "run", 1, "program", 1); /* sent again meanwhile */
    expect(r, 1, 0, 0, 1);
    runs_join(r, NULL, "run", 1, "program", 2);
    expect(r, 1, 0, 0, 0);
    ends(r, 1, "infra"); /* told twice */
    expect(r, 1, 0, 0, 0);
    ends(r, 2, "passed");
    expect(r, 1, 1, 1, 0);
    ends(r, 2, "passed");
    runs_join(r, NULL, "run", 1, "program", 3); /* its job was swept, and is judged anew */
    ends(r, 3, "passed");
    expect(r, 1, 1, 1, 0);
    runs_free(r);
}

/* More than are remembered: what was forgotten leaves the others' chains whole. */
static void many_are_each_themselves(void **state)
{
    enum { N = 150000 };
    struct runs *r = runs_new();
    char key[32];

    for (int i = 1; i <= N; i++) {
        snprintf(key, sizeof key, "program %d", i);
        runs_join(r, NULL, "run", 1, key, i);
        if (i % 3 == 0)
            runs_join(r, NULL, "run", 1, key, N + i);
    }
    expect(r, N, 0, 0, 0);
    for (int i = 1; i <= N; i++)
        ends(r, i % 3 == 0 ? N + i : i, "passed");
    expect(r, N, 65536, 65536, 0);
    runs_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infra_and_then_a_verdict_is_one),
        cmocka_unit_test(many_are_each_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
