/* test_retry.c - groups of the service's retry buffer: what is forgotten when one owner leaves too many unfinished. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/retry.h"

static char *dir;
static struct retry *r;

static int start(void **state)
{
    struct err e = ERR_INIT;
    char *path;

    dir = dir_temp("test-retry", NULL);
    path = path_join(dir, "q.db");
    r = retry_new();
    if (retry_open(r, path, &e) < 0)
        return -1;
    free(path);
    return 0;
}

static int stop(void **state)
{
    retry_free(r);
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static void fails(int64_t id)
{
    json_t *v = json_pack("{s:s,s:s,s:s}", "status", "failed", "category", "timeout", "feedback", "too slow");

    retry_ended(r, id, v);
    json_decref(v);
}

/* The response that an owner may draw, or "". */
static char *drawn(const char *owner)
{
    json_t *v = retry_draw(r, owner, 1.0, NULL);
    char *text = xstrdup(json_is_object(v) ? json_string_value(json_object_get(v, "response")) : "");

    json_decref(v);
    return text;
}

static void expect(const char *owner, const char *response)
{
    char *text = drawn(owner);

    assert_string_equal(text, response);
    free(text);
}

static void one_owners_flood_forgets_its_own(void **state)
{
    char group[32], last[32] = "";

    retry_join(r, "alice", "g", 1, "p", 1, "alice's");
    for (int i = 0; i < 6000; i++) {
        snprintf(group, sizeof group, "group %d", i);
        retry_join(r, "bob", group, 2, "p", 100 + i, group);
        snprintf(last, sizeof last, "%s", group);
    }
    fails(1);
    expect("alice", "alice's");
    retry_join(r, "bob", "group 0", 2, "p", 7, "another");
    fails(100);
    fails(7);
    expect("bob", ""); /* the first member of its first group was forgotten */
    retry_join(r, "bob", last, 2, "p", 8, "another");
    fails(100 + 5999);
    fails(8);
    expect("bob", last);
}

static void one_owners_bytes_forget_its_own(void **state)
{
    size_t n = (size_t)12 << 20;
    char *large = xcalloc(n + 1, 1), group[32];

    for (size_t i = 0; i < n; i++)
        large[i] = 'x';
    retry_join(r, "alice", "g", 1, "p", 20001, "small");
    for (int i = 0; i < 24; i++) {
        snprintf(group, sizeof group, "large %d", i);
        retry_join(r, "bob", group, 2, "p", 20100 + i, large);
    }
    fails(20001);
    expect("alice", "small");
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owners_flood_forgets_its_own),
        cmocka_unit_test(one_owners_bytes_forget_its_own),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
