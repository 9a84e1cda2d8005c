/* test_order.c - which work a call leaves behind: streams, events, synchronisations, as logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/order.h"

static struct exec_log l;

static int fresh(void **state)
{
    (void)state;
    return exec_log_init(&l, 1 << 20);
}

static int gone(void **state)
{
    (void)state;
    exec_log_free(&l);
    return 0;
}

static void begin(uint32_t call)
{
    const struct log_call m = {call, 0};

    exec_log_add(&l, LOG_CALL_BEGIN, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void end(uint32_t call)
{
    const struct log_call m = {call, 0};

    exec_log_add(&l, LOG_CALL_END, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void launch(uint32_t stream)
{
    const struct wire_launch m = {.stream = stream};

    exec_log_add(&l, WIRE_LAUNCH, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void stream(uint32_t s, uint32_t flags)
{
    const struct wire_stream_create m = {flags, 0};

    exec_log_add(&l, WIRE_STREAM_CREATE, 0, s, &m, sizeof m, NULL, 0, NULL);
}

static void event(unsigned op, uint32_t v, uint32_t s)
{
    const struct wire_event m = {v, s};

    exec_log_add(&l, op, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void sync_stream(uint32_t s)
{
    const struct wire_stream m = {s, 0};

    exec_log_add(&l, WIRE_STREAM_SYNC, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void sync_device(void)
{
    const struct wire_nothing m = {0};

    exec_log_add(&l, WIRE_DEVICE_SYNC, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void destroy(uint32_t s)
{
    const struct wire_stream m = {s, 0};

    exec_log_add(&l, WIRE_STREAM_DESTROY, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

static void bind(uint64_t addr, uint64_t n)
{
    const struct log_binding m = {.addr = addr, .n = n, .call = 1};

    exec_log_add(&l, LOG_BIND, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

/* A launch with an address among its arguments. */
static void launch_on(uint32_t stream, uint64_t addr)
{
    const struct wire_launch m = {.stream = stream};
    const uint64_t args[] = {7, addr};

    exec_log_add(&l, WIRE_LAUNCH, 0, 0, &m, sizeof m, args, sizeof args, NULL);
}

static bool ordered(uint32_t call)
{
    struct order_finding f;

    order_check(&l, call, &f);
    assert_int_equal(f.ordered, f.why[0] == 0);
    return f.ordered;
}

static void test_default_streams(void **state)
{
    (void)state;
    begin(1), launch(0), launch(1), launch(2), end(1);
    assert_true(ordered(0));
}

static void test_a_stream_of_its_own(void **state)
{
    struct order_finding f;

    (void)state;
    begin(1), stream(3, 1), launch(3), launch(3), end(1);
    order_check(&l, 0, &f);
    assert_false(f.ordered);
    assert_int_equal(f.stream, 3);
    assert_int_equal(f.work, 2);
}

static void test_a_blocking_stream_joins_the_legacy_one(void **state)
{
    (void)state;
    begin(1), stream(3, 0), launch(3), end(1);
    assert_true(ordered(0));
}

static void test_joined_by_an_event(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_WAIT, 1, 0), end(1);
    assert_true(ordered(0));
    begin(2), launch(3), event(WIRE_EVENT_RECORD, 1, 3), launch(3), event(WIRE_EVENT_WAIT, 1, 0), end(2);
    assert_false(ordered(0)); /* the second launch came after the record */
    assert_true(ordered(1));
}

static void test_through_another_stream(void **state)
{
    (void)state;
    begin(1), stream(3, 1), stream(4, 1), launch(3), event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_WAIT, 1, 4);
    launch(4), event(WIRE_EVENT_RECORD, 2, 4), event(WIRE_EVENT_WAIT, 2, 0), end(1);
    assert_true(ordered(0));
}

static void test_an_event_that_was_never_recorded_orders_nothing(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), event(WIRE_EVENT_WAIT, 1, 0), end(1);
    assert_false(ordered(0));
}

/* Whatever a stream does later is work: an answer may come by a copy that nobody waits for. */
static void test_copies_and_fills_are_work(void **state)
{
    const struct wire_copy copy = {.stream = 3};
    const struct wire_memset set = {.stream = 3};
    const struct wire_fill fill = {.stream = 3};
    const struct wire_strided strided = {.stream = 3};
    const struct wire_up up = {.stream = 3};
    const struct wire_arange arange = {.stream = 3};
    const struct wire_random random = {.stream = 3};
    const struct {
        unsigned op;
        const void *body;
        size_t n;
    } rows[] = {{WIRE_COPY, &copy, sizeof copy},          {LOG_ECHO, &copy, sizeof copy},
                {WIRE_MEMSET, &set, sizeof set},          {WIRE_FILL, &fill, sizeof fill},
                {WIRE_STRIDED, &strided, sizeof strided}, {WIRE_UP, &up, sizeof up},
                {WIRE_ARANGE, &arange, sizeof arange},    {WIRE_RANDOM, &random, sizeof random}};
    uint32_t call = 0;

    (void)state;
    stream(3, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(++call), exec_log_add(&l, rows[i].op, 0, 0, rows[i].body, rows[i].n, NULL, 0, NULL), end(call);
        assert_false(ordered(call));
        begin(++call), exec_log_add(&l, rows[i].op, 0, 0, rows[i].body, rows[i].n, NULL, 0, NULL);
        event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_WAIT, 1, 0), end(call);
        assert_true(ordered(call));
    }
}

static void test_each_call_joins_its_own(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), end(1);
    begin(2), sync_stream(3), launch(3), sync_stream(3), end(2);
    assert_true(ordered(2));
    assert_false(ordered(0)); /* the first call's answer was not there yet */
}

static void test_the_host_waits(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), sync_stream(3), end(1);
    assert_true(ordered(0));
    begin(2), launch(3), sync_device(), end(2);
    assert_true(ordered(0));
    begin(3), launch(3), event(WIRE_EVENT_RECORD, 1, 3), event(WIRE_EVENT_SYNC, 1, 0), end(3);
    assert_true(ordered(0));
    begin(4), sync_device(), launch(3), end(4);
    assert_false(ordered(0));
    begin(5), launch(3), sync_stream(0), end(5);
    assert_false(ordered(0));
}

static void test_destroying_a_stream_joins_nothing(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), destroy(3), end(1);
    assert_false(ordered(0));
}

static void test_a_stream_of_the_same_number_joins_its_own_work(void **state)
{
    (void)state;
    begin(1), stream(3, 1), launch(3), destroy(3), stream(3, 1), launch(3), event(WIRE_EVENT_RECORD, 1, 3);
    event(WIRE_EVENT_WAIT, 1, 0), end(1);
    assert_false(ordered(0));
    exec_log_clear(&l);
    begin(1), stream(3, 1), launch(3), event(WIRE_EVENT_RECORD, 1, 3), destroy(3), stream(3, 1);
    event(WIRE_EVENT_WAIT, 1, 0), end(1);
    assert_true(ordered(0));
}

#define INPUT 0x400000001000u

static void test_inputs_are_waited_for(void **state)
{
    (void)state;
    stream(3, 1), bind(INPUT, 64), begin(1), bind(INPUT, 64);
    launch_on(3, INPUT + 32), event(WIRE_EVENT_RECORD, 2, 3), event(WIRE_EVENT_WAIT, 2, 0), end(1);
    assert_false(ordered(0));
    exec_log_clear(&l);
    stream(3, 1), begin(1), bind(INPUT, 64), event(WIRE_EVENT_RECORD, 1, 0), event(WIRE_EVENT_WAIT, 1, 3);
    launch_on(3, INPUT + 32), event(WIRE_EVENT_RECORD, 2, 3), event(WIRE_EVENT_WAIT, 2, 0), end(1);
    assert_true(ordered(0));
    begin(2), bind(INPUT, 64), event(WIRE_EVENT_WAIT, 1, 3), launch_on(3, INPUT), sync_stream(3), end(2);
    assert_false(ordered(0)); /* that event was the first call's */
    assert_true(ordered(1));
}

static void test_the_host_waits_for_inputs(void **state)
{
    (void)state;
    stream(3, 1), begin(1), bind(INPUT, 64), sync_stream(0), launch_on(3, INPUT), sync_stream(3), end(1);
    assert_true(ordered(0));
}

static void test_what_names_no_input_waits_for_none(void **state)
{
    (void)state;
    stream(3, 1), stream(4, 0), begin(1), bind(INPUT, 64), launch_on(3, INPUT + 64), launch_on(4, INPUT);
    sync_stream(3), end(1);
    assert_true(ordered(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_default_streams, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_stream_of_its_own, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_blocking_stream_joins_the_legacy_one, fresh, gone),
        cmocka_unit_test_setup_teardown(test_joined_by_an_event, fresh, gone),
        cmocka_unit_test_setup_teardown(test_through_another_stream, fresh, gone),
        cmocka_unit_test_setup_teardown(test_an_event_that_was_never_recorded_orders_nothing, fresh, gone),
        cmocka_unit_test_setup_teardown(test_copies_and_fills_are_work, fresh, gone),
        cmocka_unit_test_setup_teardown(test_each_call_joins_its_own, fresh, gone),
        cmocka_unit_test_setup_teardown(test_the_host_waits, fresh, gone),
        cmocka_unit_test_setup_teardown(test_destroying_a_stream_joins_nothing, fresh, gone),
        cmocka_unit_test_setup_teardown(test_a_stream_of_the_same_number_joins_its_own_work, fresh, gone),
        cmocka_unit_test_setup_teardown(test_inputs_are_waited_for, fresh, gone),
        cmocka_unit_test_setup_teardown(test_the_host_waits_for_inputs, fresh, gone),
        cmocka_unit_test_setup_teardown(test_what_names_no_input_waits_for_none, fresh, gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
