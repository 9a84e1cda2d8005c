/* test_context.c - what counts as a constant, as a read, as an echo: requests against a life's tables, no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "exec/context.h"

static const struct wire_info info = {.reserved = (uint64_t)1 << 36, .shared_optin = 1 << 17, .threads_block = 1024,
                                      .dim = {1024, 1024, 64}, .grid = {0x7fffffff, 65535, 65535}};
static struct client_context l;
static uint64_t block;

static int fresh(void **state)
{
    (void)state;
    context_init(&l, &info, (uint64_t)1 << 32);
    block = pool_take(&l.pool, 1 << 20, POOL_CLIENT, 0);
    return 0;
}

static int gone(void **state)
{
    (void)state;
    context_free(&l);
    return 0;
}

static int ask(unsigned op, const void *body, const void *tail, size_t n)
{
    struct wire_request r = {.head = {.op = (uint16_t)op, .tail = (uint32_t)n}, .tail = tail};
    uint64_t result = 0;
    int code;

    memcpy(&r.body, body, wire_size(op));
    code = context_take(&l, &r, &result);
    return code ? code : context_log(&l, &r, result, NULL) ? 0 : -1;
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
    context_bound(&l, block, 8); /* the first was a parameter */
    assert_int_equal(l.log.counts.bytes_up, 8);
    context_bound(&l, block, 8);
    assert_int_equal(l.log.counts.bytes_up, 8);
    context_bound(&l, block + 4097, 100); /* not all of it */
    assert_int_equal(l.log.counts.bytes_up, 8);
}

static void test_a_table_that_was_copied_away_counts(void **state)
{
    const struct wire_copy copy = {block + 8192, block, 8, 0, 0};
    struct wire_strided part = {.to = block + 8192, .from = block + 68, .to_dtype = DT_F32, .from_dtype = DT_F32,
                                .dims = 1, .size = {1}, .to_stride = {1}, .from_stride = {1}};

    (void)state;
    up(0, "a table.", 8);
    up(64, "another.", 8);
    up(128, "weights!", 8);
    assert_int_equal(ask(WIRE_COPY, &copy, NULL, 0), 0);
    assert_int_equal(ask(WIRE_STRIDED, &part, NULL, 0), 0);
    context_bound(&l, block, 4096); /* the third one alone was not read */
    assert_int_equal(l.log.counts.bytes_up, 16);
}

static void test_a_table_that_a_kernel_may_have_read_counts(void **state)
{
    const struct wire_function_info f = {.max_threads = 1024};
    const struct wire_launch w = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

    (void)state;
    context_add_function(&l, context_add_module(&l, (const uint8_t *)"0123456789abcdef0123456789abcdef"), &f);
    up(0, "a table.", 8);
    assert_int_equal(ask(WIRE_LAUNCH, &w, "", 1), 0);
    up(64, "weights!", 8);
    context_bound(&l, block, 4096); /* the second one came after the kernel */
    assert_int_equal(l.log.counts.bytes_up, 8);
}

static void test_work_on_other_streams_reads_what_comes_later(void **state)
{
    const struct wire_copy copy = {block + 8192, block, 8, WIRE_STREAM_PER_THREAD, 0};

    (void)state;
    up(64, "earlier.", 8);
    assert_int_equal(ask(WIRE_COPY, &copy, NULL, 0), 0);
    up(0, "a table.", 8);
    context_bound(&l, block, 4096);
    assert_int_equal(l.log.counts.bytes_up, 16);
    context_clear(&l);
    block = pool_take(&l.pool, 1 << 20, POOL_CLIENT, 0);
    up(0, "weights!", 8);
    context_bound(&l, block, 4096);
    assert_int_equal(l.log.counts.bytes_up, 0);
}

static void test_uploads_of_calls_count_by_content(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 3; k++) {
        context_call_begin(&l, k, 0);
        up(0, "strides.", 8);
        context_call_end(&l);
    }
    assert_int_equal(l.log.counts.bytes_up, 8);
    assert_int_equal(l.call_up, 8);
    context_call_begin(&l, 4, 0);
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
    context_add_function(&l, context_add_module(&l, (const uint8_t *)"0123456789abcdef0123456789abcdef"), &f);
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
    context_call_begin(&l, 1, 0);
    ask(WIRE_DOWN, &m, NULL, 0);
    assert_int_equal(l.log.counts.bytes_down, 64);
    assert_int_equal(l.call_reads, 1);
}

static void test_a_comparison_costs_what_it_compares(void **state)
{
    const struct wire_equal m = {.a = block, .b = block, .a_dtype = DT_F32, .b_dtype = DT_F32, .dims = 2,
                                 .size = {5, 7}, .a_stride = {7, 1}, .b_stride = {0, 1}};

    (void)state;
    context_call_begin(&l, 1, 0);
    assert_int_equal(ask(WIRE_EQUAL, &m, NULL, 0), 0);
    assert_int_equal(l.call_compared, 140);
    assert_int_equal(l.call_down, 1);
    context_call_end(&l);
    context_call_begin(&l, 2, 0);
    assert_int_equal(l.call_compared, 0);
}

/* An element of a complex array has two parts: behind the last of a real one there is none. */
static void test_complex_is_not_compared_with_real(void **state)
{
    static const uint32_t pairs[][2] = {{DT_C128, DT_F64}, {DT_F64, DT_C128}, {DT_C64, DT_F32}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct wire_equal m = {.a = block, .b = block, .a_dtype = pairs[i][0], .b_dtype = pairs[i][1], .dims = 1,
                                     .size = {4}, .a_stride = {1}, .b_stride = {1}};

        assert_int_not_equal(ask(WIRE_EQUAL, &m, NULL, 0), 0);
    }
}

static void test_what_was_asked_for_in_vain(void **state)
{
    const struct wire_note m = {WIRE_LACK_GRAPHS, 0}, none = {WIRE_LACK_COUNT, 0};

    (void)state;
    assert_int_equal(ask(WIRE_NOTE, &m, NULL, 0), 0);
    assert_int_equal(l.lacks, 1u << WIRE_LACK_GRAPHS);
    assert_int_not_equal(ask(WIRE_NOTE, &none, NULL, 0), 0);
    assert_int_equal(l.lacks, 1u << WIRE_LACK_GRAPHS);
}

/* ---- casts read values as what they are ---- */

static void cast_of(uint64_t to, uint32_t to_dtype, uint64_t from, uint32_t from_dtype, int64_t from_stride)
{
    const struct wire_strided m = {.to = block + to, .from = block + from, .to_dtype = to_dtype,
                                   .from_dtype = from_dtype, .dims = 1, .size = {16}, .to_stride = {1},
                                   .from_stride = {from_stride}};

    assert_int_equal(ask(WIRE_STRIDED, &m, NULL, 0), 0);
}

static void test_casts_from_another_type(void **state)
{
    const struct wire_copy copy = {block + 4096, block, 64, 0, 0};

    (void)state;
    context_typed(&l, block, 64, DT_F32);
    context_call_begin(&l, 1, 0);
    cast_of(8192, DT_F16, 0, DT_F32, 1);
    assert_int_equal(l.reinterpreted, 0);
    cast_of(16384, DT_F32, 8192, DT_F16, 1); /* back again */
    assert_int_equal(l.reinterpreted, 0);
    cast_of(8192, DT_F32, 0, DT_I8, 4); /* the byte of the sign */
    assert_int_equal(l.reinterpreted, 1);
    ask(WIRE_COPY, &copy, NULL, 0); /* by way of other memory */
    cast_of(8192, DT_I64, 4096, DT_I32, 1);
    assert_int_equal(l.reinterpreted, 2);
    cast_of(32768, DT_I8, 0, DT_I8, 4); /* byte by byte */
    cast_of(8192, DT_F32, 32768, DT_I8, 1);
    assert_int_equal(l.reinterpreted, 3);
    assert_int_equal(l.casts, 5);
}

/* Whatever a front asks for by itself: a cast that drops values is refused, not counted in one life only. */
static void test_casts_that_drop_are_refused(void **state)
{
    static const uint32_t rows[][2] = {{DT_I32, DT_F32}, {DT_I64, DT_F64}, {DT_BOOL, DT_F32}, {DT_BOOL, DT_I32},
                                       {DT_F32, DT_C64}, {DT_C64, DT_F32}};
    struct wire_strided m = {.to = block, .from = block + 4096, .dims = 1, .size = {16}, .to_stride = {1},
                             .from_stride = {1}};

    (void)state;
    context_call_begin(&l, 1, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        m.to_dtype = rows[i][0], m.from_dtype = rows[i][1];
        assert_int_equal(ask(WIRE_STRIDED, &m, NULL, 0), WIRE_REFUSED);
    }
    m.to_dtype = DT_F32, m.from_dtype = DT_I64;
    assert_int_equal(ask(WIRE_STRIDED, &m, NULL, 0), 0);
    m.to_dtype = DT_I32; /* what does not fit leaves a mark (element.h) */
    assert_int_equal(ask(WIRE_STRIDED, &m, NULL, 0), 0);
}

static void test_casts_of_what_a_kernel_wrote(void **state)
{
    const struct wire_free m = {block, 0, 0};

    (void)state;
    context_call_begin(&l, 1, 0);
    cast_of(8192, DT_I64, 0, DT_I32, 1); /* the first cast says what it is */
    cast_of(8192, DT_I64, 0, DT_I32, 1);
    assert_int_equal(l.reinterpreted, 0);
    cast_of(8192, DT_F64, 0, DT_F32, 1);
    assert_int_equal(l.reinterpreted, 1);
    ask(WIRE_FREE, &m, NULL, 0);
    assert_int_equal(pool_take(&l.pool, 1 << 20, POOL_CLIENT, 0), block);
    cast_of(8192, DT_F64, 0, DT_F32, 1); /* other memory at the same place */
    assert_int_equal(l.reinterpreted, 1);
}

static void test_an_echo_needs_the_range_to_live(void **state)
{
    (void)state;
    context_came_down(&l, block, "abcd", 4);
    assert_non_null(context_echo(&l, "abcd", 4));
    assert_null(context_echo(&l, "abcx", 4));
    assert_null(context_echo(&l, "abc", 3));
    pool_give(&l.pool, block, POOL_CLIENT);
    assert_null(context_echo(&l, "abcd", 4));
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
        cmocka_unit_test_setup_teardown(test_a_table_that_was_copied_away_counts, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_table_that_a_kernel_may_have_read_counts, fresh, gone),
        cmocka_unit_test_setup_teardown(test_work_on_other_streams_reads_what_comes_later, fresh, gone),
        cmocka_unit_test_setup_teardown(test_uploads_of_calls_count_by_content, fresh, gone),
        cmocka_unit_test_setup_teardown(test_values_and_large_arguments_count, fresh, gone),
        cmocka_unit_test_setup_teardown(test_reads_count_within_calls, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_comparison_costs_what_it_compares, fresh, gone),
        cmocka_unit_test_setup_teardown(test_complex_is_not_compared_with_real, fresh, gone),
        cmocka_unit_test_setup_teardown(test_what_was_asked_for_in_vain, fresh, gone),
        cmocka_unit_test_setup_teardown(test_casts_from_another_type, fresh, gone),
        cmocka_unit_test_setup_teardown(test_casts_that_drop_are_refused, fresh, gone),
        cmocka_unit_test_setup_teardown(test_casts_of_what_a_kernel_wrote, fresh, gone),
        cmocka_unit_test_setup_teardown(test_an_echo_needs_the_range_to_live, fresh, gone),
        cmocka_unit_test_setup_teardown(test_views, fresh, gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
