/* test_retry.c - groups of the service's retry buffer: what is forgotten when one owner leaves too many unfinished,
 * and members that are asked for again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/retry_buffer.h"

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

/* Job id of a program of this content. */
static void join(const char *owner, const char *group, int size, int64_t id, const char *response)
{
    retry_join(r, owner, group, size, "p", response, id, response);
}

static void fails(int64_t id)
{
    json_t *v = json_pack("{s:s,s:s,s:s,s:f}", "status", "failed", "category", "timeout", "feedback", "too slow",
                          "reward", -0.5);

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

    join("alice", "g", 1, 1, "alice's");
    for (int i = 0; i < 6000; i++) {
        snprintf(group, sizeof group, "group %d", i);
        join("bob", group, 2, 100 + i, group);
        snprintf(last, sizeof last, "%s", group);
    }
    fails(1);
    expect("alice", "alice's");
    join("bob", "group 0", 2, 7, "another");
    fails(100);
    fails(7);
    expect("bob", ""); /* the first member of its first group was forgotten */
    join("bob", last, 2, 8, "another");
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
    join("alice", "g", 1, 20001, "small");
    for (int i = 0; i < 24; i++) {
        snprintf(group, sizeof group, "large %d", i);
        join("bob", group, 2, 20100 + i, large);
    }
    fails(20001);
    expect("alice", "small");
    free(large);
}

/* A job without a score is asked for again, and has another id then: it is the same member. */
static void group_of_two(const char *second)
{
    join("carol", "again", 2, 40001, "first");
    join("carol", "again", 2, 40002, second);
    fails(40001);
    fails(40002);
}

/* A request that comes again after its group was complete adds nothing; the same name with another program does. */
static void a_complete_group_counts_once(void **state)
{
    for (int i = 0; i < 4; i++)
        group_of_two("second");
    expect("carol", "first");
    expect("carol", "");
    group_of_two("third");
    expect("carol", "first");
    expect("carol", "");
}

static void asked_again_is_the_same_member(void **state)
{
    join("carol", "g", 2, 30001, "one");
    join("carol", "g", 2, 30002, "two");
    retry_ended(r, 30001, NULL);
    join("carol", "g", 2, 30003, "one");
    fails(30003);
    expect("carol", ""); /* "two" has not ended */
    join("carol", "g", 2, 30004, "two");
    fails(30002);
    expect("carol", "");
    fails(30004);
    expect("carol", "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owners_flood_forgets_its_own),
        cmocka_unit_test(one_owners_bytes_forget_its_own),
        cmocka_unit_test(a_complete_group_counts_once),
        cmocka_unit_test(asked_again_is_the_same_member),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
