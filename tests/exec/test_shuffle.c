/* test_shuffle.c - another order that streams allow: latest first, and never before what an entry waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/shuffle.h"

static struct exec_log l;
static struct shuffle s;
static char played[64];

static int fresh(void **state)
{
    (void)state;
    memset(&s, 0, sizeof s);
    shuffle_init(&s);
    return exec_log_init(&l, 1 << 20);
}

static int gone(void **state)
{
    (void)state;
    shuffle_free(&s);
    exec_log_free(&l);
    return 0;
}

/* Entries carry a letter in their result; handles and addresses are numbers from their own range. */
static void put(unsigned op, uint64_t result, const void *body, size_t n, uint64_t bytes)
{
    size_t at = l.n;
    struct log_entry en;

    assert_true(exec_log_add(&l, op, 0, result, body, n, NULL, 0, NULL));
    assert_int_equal(exec_log_next(&l, &at, &en), 1);
    shuffle_add(&s, &en, bytes);
}

static void launch(char name, uint32_t stream)
{
    const struct wire_launch m = {.stream = stream};

    put(WIRE_LAUNCH, (uint64_t)name, &m, sizeof m, 0);
}

static void stream(uint32_t id, uint32_t flags)
{
    const struct wire_stream_create m = {.flags = flags};

    put(WIRE_STREAM_CREATE, id, &m, sizeof m, 0);
}

static void event(unsigned op, uint32_t id, uint32_t on)
{
    const struct wire_event m = {id, on};

    put(op, 0, &m, sizeof m, 0);
}

static void alloc(uint64_t addr)
{
    const struct wire_alloc m = {.bytes = 64};

    put(WIRE_ALLOC, addr, &m, sizeof m, 0);
}

static void release(uint64_t addr)
{
    const struct wire_free m = {.addr = addr};

    put(WIRE_FREE, 0, &m, sizeof m, 64);
}

static void one(void *ctx, const struct log_entry *en)
{
    bool marked = en->head.op == WIRE_LAUNCH || en->head.op == WIRE_EVENT_RECORD || en->head.op == WIRE_EVENT_WAIT ||
                  en->head.op == WIRE_FUNC_ATTR;
    char name[2] = {marked ? (char)en->head.result : en->head.op == WIRE_ALLOC ? '+'
                    : en->head.op == WIRE_FREE ? '-' : 0};

    (void)ctx;
    strcat(played, name);
}

static void expect(const char *order)
{
    played[0] = 0;
    shuffle_play(&s, one, NULL);
    assert_string_equal(played, order);
}

static void test_one_stream_keeps_its_order(void **state)
{
    (void)state;
    launch('a', 0), launch('b', 0), launch('c', 1);
    expect("abc");
}

static void test_streams_apart_run_latest_first(void **state)
{
    (void)state;
    stream(3, 1), stream(4, 1);
    launch('a', 3), launch('b', 4), launch('c', 0);
    expect("cba");
}

static void test_events_order(void **state)
{
    (void)state;
    stream(3, 1), stream(4, 1);
    launch('a', 3), event(WIRE_EVENT_RECORD, 1, 3), launch('b', 3), event(WIRE_EVENT_WAIT, 1, 4), launch('c', 4);
    expect("acb");
    event(WIRE_EVENT_WAIT, 1, 0), launch('d', 0), launch('e', 4); /* recorded, and done, before */
    expect("ed");
}

/* The same event for each stream of a loop: who waits for its first record does so before it is recorded again. */
static void test_an_event_recorded_again(void **state)
{
    static const struct wire_event on3 = {1, 3}, on4 = {1, 4}, on0 = {1, 0};

    (void)state;
    stream(3, 1), stream(4, 1);
    launch('a', 3), put(WIRE_EVENT_RECORD, 'r', &on3, sizeof on3, 0), put(WIRE_EVENT_WAIT, 'w', &on0, sizeof on0, 0);
    launch('b', 4), put(WIRE_EVENT_RECORD, 'R', &on4, sizeof on4, 0), put(WIRE_EVENT_WAIT, 'W', &on0, sizeof on0, 0);
    launch('c', 0);
    expect("barwRWc");
}

/* A function's limit changes for the launches behind it alone. */
static void test_a_limit_that_changes(void **state)
{
    static const struct wire_func_attr some = {.attr = 8, .value = 1024}, more = {.attr = 8, .value = 2048};

    (void)state;
    stream(3, 1), stream(4, 1);
    put(WIRE_FUNC_ATTR, 'f', &some, sizeof some, 0), launch('a', 3), put(WIRE_FUNC_ATTR, 'g', &more, sizeof more, 0);
    launch('b', 4);
    expect("fagb");
    put(WIRE_FUNC_ATTR, 'f', &some, sizeof some, 0), launch('a', 3), put(WIRE_FUNC_ATTR, 'g', &some, sizeof some, 0);
    launch('b', 4); /* nothing changes: the two launches race */
    expect("fbga");
}

/* What changes one handle waits for those who used it, and for nobody else. */
static void test_a_change_waits_for_its_users_alone(void **state)
{
    static const struct wire_func_attr other = {.function = 9, .attr = 8, .value = 1024};
    const struct wire_stream four = {4, 0};

    (void)state;
    stream(3, 1), stream(4, 1);
    launch('a', 3), put(WIRE_FUNC_ATTR, 'f', &other, sizeof other, 0), launch('b', 4);
    expect("bfa");
    launch('a', 3), launch('b', 4), put(WIRE_STREAM_DESTROY, 0, &four, sizeof four, 0), launch('c', 0);
    expect("cba");
    launch('a', 3), event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_DESTROY, 1, 0), launch('b', 4);
    expect("ba");
}

static void test_blocking_streams_and_the_legacy_one(void **state)
{
    (void)state;
    stream(3, 0);
    launch('a', 3), launch('b', 0), launch('c', 3);
    expect("abc");
}

static void test_the_host_waits(void **state)
{
    const struct wire_stream three = {3, 0};

    (void)state;
    stream(3, 1), stream(4, 1);
    launch('a', 3), launch('b', 4), put(WIRE_STREAM_SYNC, 0, &three, sizeof three, 0), launch('c', 4);
    expect("bac");
    launch('a', 3), event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_SYNC, 1, 0), launch('b', 4);
    expect("ab");
}

/* Memory that is given back and taken again: its first user comes before its second one, whatever the streams. */
static void test_memory_taken_again(void **state)
{
    (void)state;
    stream(3, 1);
    alloc(4096), launch('a', 3), release(4096), alloc(8192), launch('b', 0);
    expect("++ba-");
    alloc(4096), launch('a', 3), release(4096), alloc(4096), launch('b', 0);
    expect("+a-+b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_stream_keeps_its_order, fresh, gone),
        cmocka_unit_test_setup_teardown(test_streams_apart_run_latest_first, fresh, gone),
        cmocka_unit_test_setup_teardown(test_events_order, fresh, gone),
        cmocka_unit_test_setup_teardown(test_an_event_recorded_again, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_limit_that_changes, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_change_waits_for_its_users_alone, fresh, gone),
        cmocka_unit_test_setup_teardown(test_blocking_streams_and_the_legacy_one, fresh, gone),
        cmocka_unit_test_setup_teardown(test_the_host_waits, fresh, gone),
        cmocka_unit_test_setup_teardown(test_memory_taken_again, fresh, gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
