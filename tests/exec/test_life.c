/* test_life.c - what counts as a constant, as a read, as an echo: requests against a life's tables, no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/life.h"

static const struct wire_info info = {.reserved = (uint64_t)1 << 36, .shared_optin = 1 << 17, .threads_block = 1024,
                                      .dim = {1024, 1024, 64}, .grid = {0x7fffffff, 65535, 65535}};
static struct life l;
static uint64_t block;

static int fresh(void **state)
{
    (void)state;
    life_init(&l, &info, (uint64_t)1 << 32);
    block = pool_take(&l.pool, 1 << 20, POOL_FRONT, 0);
    return 0;
}

static int gone(void **state)
{
    (void)state;
    life_free(&l);
    return 0;
}

static int ask(unsigned op, const void *body, const void *tail, size_t n)
{
    struct wire_request r = {.head = {.op = (uint16_t)op, .tail = (uint32_t)n}, .tail = tail};
    uint64_t result = 0;
    int code;

    memcpy(&r.body, body, wire_size(op));
    code = life_take(&l, &r, &result);
    return code ? code : life_log(&l, &r, result, NULL) ? 0 : -1;
}

static void up(uint64_t at, const char *data, size_t n)
{
    const struct wire_up m = {block + at, 0, 0};

    assert_int_equal(ask(WIRE_UP, &m, data, n), 0);
}

static void test_uploads_of_the_construction(void **state)
{
    (void)state;
    up(0, "weights!", 8);
    up(4096, "weights!", 8); /* the same bytes to a table of its own: they count */
    assert_int_equal(l.log.counts.bytes_up, 16);
    life_laid(&l, block, 8); /* the first was a parameter */
    assert_int_equal(l.log.counts.bytes_up, 8);
    life_laid(&l, block, 8);
    assert_int_equal(l.log.counts.bytes_up, 8);
    life_laid(&l, block + 4097, 100); /* not all of it */
    assert_int_equal(l.log.counts.bytes_up, 8);
}

static void test_uploads_of_calls_count_by_content(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 3; k++) {
        life_call_begin(&l, k, 0);
        up(0, "strides.", 8);
        life_call_end(&l);
    }
    assert_int_equal(l.log.counts.bytes_up, 8);
    assert_int_equal(l.call_up, 8);
    life_call_begin(&l, 4, 0);
    up(0, "another.", 8);
    assert_int_equal(l.log.counts.bytes_up, 16);
}

static void test_values_and_large_arguments_count(void **state)
{
    const struct wire_function_info f = {.max_threads = 1024};
    struct wire_memset m = {.addr = block, .count = 4, .width = 4, .value = {1}};
    const struct wire_launch w = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    static const char args[4096] = {1};

    (void)state;
    life_add_function(&l, life_add_module(&l, (const uint8_t *)"0123456789abcdef0123456789abcdef"), &f);
    ask(WIRE_MEMSET, &m, NULL, 0);
    ask(WIRE_MEMSET, &m, NULL, 0);
    assert_int_equal(l.log.counts.bytes_up, 16);
    ask(WIRE_LAUNCH, &w, args, 256);
    assert_int_equal(l.log.counts.bytes_up, 16);
    ask(WIRE_LAUNCH, &w, args, 257);
    ask(WIRE_LAUNCH, &w, args, 257);
    assert_int_equal(l.log.counts.bytes_up, 16 + 257);
    assert_int_equal(l.log.counts.launches, 3);
    assert_int_equal(l.log.counts.kernels, 1);
}

static void test_reads_count_within_calls(void **state)
{
    const struct wire_down m = {block, 64, 0, 0};

    (void)state;
    ask(WIRE_DOWN, &m, NULL, 0);
    assert_int_equal(l.log.counts.bytes_down, 0);
    life_call_begin(&l, 1, 0);
    ask(WIRE_DOWN, &m, NULL, 0);
    assert_int_equal(l.log.counts.bytes_down, 64);
    assert_int_equal(l.call_reads, 1);
}

static void test_an_echo_needs_the_range_to_live(void **state)
{
    (void)state;
    life_came_down(&l, block, "abcd", 4);
    assert_non_null(life_echo(&l, "abcd", 4));
    assert_null(life_echo(&l, "abcx", 4));
    assert_null(life_echo(&l, "abc", 3));
    pool_give(&l.pool, block, POOL_FRONT);
    assert_null(life_echo(&l, "abcd", 4));
}

static void test_views(void **state)
{
    const int64_t size[2] = {3, 4}, row[2] = {4, 1}, over[2] = {1, 1}, zero[2] = {0, 1}, minus[2] = {-1, 1};
    uint64_t n;

    (void)state;
    assert_true(wire_view_span(8, 2, size, row, &n));
    assert_int_equal(n, 48);
    assert_true(wire_view_injective(2, size, row));
    assert_false(wire_view_injective(2, size, over));
    assert_false(wire_view_injective(2, size, zero));
    assert_false(wire_view_span(8, 2, size, minus, &n));
    assert_false(wire_view_span(99, 2, size, row, &n));
    assert_false(wire_view_span(8, 13, size, row, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uploads_of_the_construction, fresh, gone),
        cmocka_unit_test_setup_teardown(test_uploads_of_calls_count_by_content, fresh, gone),
        cmocka_unit_test_setup_teardown(test_values_and_large_arguments_count, fresh, gone),
        cmocka_unit_test_setup_teardown(test_reads_count_within_calls, fresh, gone),
        cmocka_unit_test_setup_teardown(test_an_echo_needs_the_range_to_live, fresh, gone),
        cmocka_unit_test_setup_teardown(test_views, fresh, gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
