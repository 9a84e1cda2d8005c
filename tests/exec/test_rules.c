/* test_rules.c - facts of lives and replays, each with the category that they must get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/rules.h"

/* An honest program: right live and replayed, wrong without its launches. */
static struct rules_facts honest(void)
{
    return (struct rules_facts){.live_right = true, .replay_right = true, .last = {.launches = 3},
                                .counts = {.launches = 6}, .input_bytes = 1 << 20, .ordered = true};
}

static struct rules_finding decide(const struct rules_facts *f)
{
    struct rules_finding r;

    rules_decide(f, &r);
    assert_int_equal(r.category == RULES_PASSED, r.code == NULL);
    assert_int_equal(r.category == RULES_PASSED, r.text[0] == 0);
    return r;
}

static void is(const struct rules_facts *f, enum rules_category c, const char *code)
{
    struct rules_finding r = decide(f);

    assert_int_equal(r.category, c);
    if (code)
        assert_string_equal(r.code, code);
    assert_false(r.live);
}

static void test_honest(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    is(&f, RULES_PASSED, NULL);
    f.last.bytes_down = 1 << 20; /* it looks at everything for fun, and the log alone is right */
    f.last.reads = 400;
    is(&f, RULES_PASSED, NULL);
}

static void test_host_computes(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.replay_right = false;
    f.last.bytes_down = 65;
    f.last.reads = 1;
    is(&f, RULES_CHEATING, "host_computes");
    f.last.bytes_down = 0;
    is(&f, RULES_UNSUPPORTED, "not_replayable");
    f.last.bytes_down = 16, f.last.reads = 17;
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
}

static void test_live(void **state)
{
    struct rules_facts f = honest();
    struct rules_finding r;

    (void)state;
    f.replay_right = false;
    f.last.bytes_down = 64, f.last.reads = 16;
    r = decide(&f);
    assert_int_equal(r.category, RULES_PASSED);
    assert_true(r.live);
    f.input_bytes = 64; /* then four bytes are a sixteenth */
    f.last.bytes_down = 5;
    is(&f, RULES_CHEATING, "host_computes");
    f.last.bytes_down = 4;
    assert_true(decide(&f).live);
    f.input_bytes = 8;
    is(&f, RULES_CHEATING, "host_computes");
}

static void test_who_did_the_work(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.torch_op = "aten::mm";
    is(&f, RULES_CHEATING, "torch_computes");
    assert_non_null(strstr(decide(&f).text, "aten::mm"));
    f = honest(), f.last.launches = 0;
    is(&f, RULES_CHEATING, "no_kernel");
    f = honest(), f.plumbing_right = true;
    is(&f, RULES_CHEATING, "kernels_decide_nothing");
    f.task_is_plumbing = true;
    is(&f, RULES_TASK, "plumbing_task"); /* nobody is accused where the task is at fault */
    f = honest(), f.last.casts_changed = 1;
    is(&f, RULES_CHEATING, "casts_compute");
}

static void test_wrong_is_not_cheating(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.live_right = f.replay_right = false;
    is(&f, RULES_CORRECTNESS, "wrong");
    f.last.launches = 0;
    f.last.bytes_down = 1 << 20;
    is(&f, RULES_CORRECTNESS, "wrong");
    f.last.error = WIRE_ILLEGAL_ADDRESS;
    strcpy(f.last.why, "kernel: an illegal memory access");
    is(&f, RULES_RUNTIME, "device_error");
}

static void test_constants(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.counts.bytes_up = 65536;
    is(&f, RULES_PASSED, NULL);
    f.counts.bytes_up = 65537;
    is(&f, RULES_UNSUPPORTED, "host_table");
    f.constants_known = 1;
    is(&f, RULES_PASSED, NULL);
    f.constants_known = UINT64_MAX; /* never less than nothing */
    is(&f, RULES_PASSED, NULL);
}

static void test_order_and_log(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.ordered = false;
    is(&f, RULES_CORRECTNESS, "unjoined_stream");
    f = honest(), f.log_full = true;
    is(&f, RULES_UNSUPPORTED, "log_full");
    f = honest(), f.replay_right = false, f.replay_error = WIRE_REFUSED, f.replay_why = "another address";
    is(&f, RULES_UNSUPPORTED, "not_replayable");
    assert_non_null(strstr(decide(&f).text, "another address"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest),    cmocka_unit_test(test_host_computes),
        cmocka_unit_test(test_live),      cmocka_unit_test(test_who_did_the_work),
        cmocka_unit_test(test_wrong_is_not_cheating), cmocka_unit_test(test_constants),
        cmocka_unit_test(test_order_and_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
