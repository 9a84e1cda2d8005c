/* test_rules.c - facts of lives and replays, each with the category that they must get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/rules.h"

/* An honest program: right by replay, wrong without its launches. */
static struct rules_facts honest(void)
{
    return (struct rules_facts){.ran = true, .replay_right = true, .launches = 3, .counts = {.launches = 6},
                                .input_bytes = 1 << 20, .output_bytes = 1 << 20, .ordered = true};
}

/* A program whose host looks: wrong by replay, right as it was lived. */
static struct rules_facts recorded_run(uint64_t bytes, uint32_t replies)
{
    struct rules_facts f = honest();

    f.replay_right = false, f.live_right = true;
    f.most = (struct rules_reads){.bytes = bytes, .up = bytes, .replies = replies};
    return f;
}

static struct rules_finding decide(const struct rules_facts *f)
{
    struct rules_finding r;

    rules_decide(f, &r);
    assert_int_equal(r.category == RULES_PASSED || r.category == RULES_BLAMED, r.code == NULL);
    assert_int_equal(r.code == NULL, r.text[0] == 0);
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
    /* it looks at everything; the log alone is right */
    f.most = (struct rules_reads){.bytes = 1 << 20, .compared = 1 << 20, .replies = 400};
    is(&f, RULES_PASSED, NULL);
    f.lacks = 1u << WIRE_LACK_MANAGED; /* asked for, refused, done without */
    is(&f, RULES_PASSED, NULL);
}

static void test_host_computes(void **state)
{
    struct rules_facts f = recorded_run(65, 1);

    (void)state;
    is(&f, RULES_CHEATING, "host_computes");
    f.sizes_vary = true; /* somebody must read how large the output is */
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f.sizes_vary = false;
    f.most.up = 0, f.most.given = f.output_bytes; /* the answer may be in arguments */
    is(&f, RULES_CHEATING, "host_computes");
    f.most.given--; /* a loop until convergence; sizes of groups */
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f = recorded_run(16, 17);
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f = recorded_run(16, 16);
    f.most.compared = 65; /* sixteen bits of comparisons find a number */
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f.live_right = false;
    is(&f, RULES_BLAMED, NULL);
}

static void test_live(void **state)
{
    struct rules_facts f = recorded_run(64, 16);

    (void)state;
    assert_int_equal(decide(&f).category, RULES_PASSED);
    assert_true(decide(&f).live);
    assert_true(rules_live(&f));
    f.input_bytes = 64; /* then four bytes are a sixteenth */
    f.most.bytes = f.most.up = 5;
    is(&f, RULES_CHEATING, "host_computes");
    f.most.bytes = 4;
    assert_true(decide(&f).live);
    f.input_bytes = 8;
    is(&f, RULES_CHEATING, "host_computes");
}

static void test_small_outputs_are_not_the_hosts(void **state)
{
    struct rules_facts f = recorded_run(4, 1);

    (void)state;
    f.output_bytes = 64;
    assert_true(decide(&f).live);
    f.output_bytes = 63; /* a sixteenth of it is less than what was read */
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f.output_bytes = 4; /* a loss */
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
}

static void test_who_did_the_work(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.torch_op = "aten::mm";
    is(&f, RULES_CHEATING, "operator");
    assert_non_null(strstr(decide(&f).text, "aten::mm"));
    f = honest(), f.library = "cublasSgemm";
    is(&f, RULES_CHEATING, "library_call");
    f = honest(), f.judge = "simt_set_check";
    is(&f, RULES_CHEATING, "judge_call");
    f = honest(), f.launches = 0;
    is(&f, RULES_CHEATING, "no_kernel");
    f.replay_right = false; /* right or not */
    is(&f, RULES_CHEATING, "no_kernel");
    f = honest(), f.movement_right = true;
    is(&f, RULES_CHEATING, "decoy_kernels");
    f = honest(), f.movement_most = true;
    is(&f, RULES_UNSUPPORTED, "plumbing_moves");
    f.replay_right = false; /* a wrong answer stays wrong */
    is(&f, RULES_BLAMED, NULL);
    f = honest(), f.last.casts_changed = 1;
    is(&f, RULES_CHEATING, "casts_compute");
    f = honest(), f.last.reinterpreted = 1;
    is(&f, RULES_CHEATING, "casts_compute");
}

static void test_wrong_is_not_cheating(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.replay_right = false;
    f.most.bytes = 1 << 20;
    is(&f, RULES_BLAMED, NULL);
    f.failed = true, f.launches = 0;
    is(&f, RULES_BLAMED, NULL);
}

static void test_what_is_missing_excuses(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.replay_right = false;
    f.lacks = 1u << WIRE_LACK_MANAGED;
    is(&f, RULES_BLAMED, NULL); /* a wrong answer stays wrong, */
    f.lacks = 1u << WIRE_LACK_CAPTURES;
    is(&f, RULES_UNSUPPORTED, "launch_captures"); /* but for launches that the front did not make: */
    f.launches = 0;
    is(&f, RULES_UNSUPPORTED, "launch_captures"); /* no program launched nothing because of them */
    f.replay_right = f.movement_right = true;
    is(&f, RULES_CHEATING, "decoy_kernels");
    f.movement_right = false, f.replay_right = false, f.launches = 3;
    f.lacks = 1u << WIRE_LACK_GRAPHS;
    f.failed = true;
    is(&f, RULES_UNSUPPORTED, "cuda_graphs");
    f.torch_op = "aten::mm";
    is(&f, RULES_CHEATING, "operator");
    f = honest(), f.replay_right = false, f.failed = true, f.lack = "inline_ptx", f.lack_why = "inline PTX";
    is(&f, RULES_UNSUPPORTED, "inline_ptx");
}

static void test_constants(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.counts.bytes_up = 65536;
    is(&f, RULES_PASSED, NULL);
    f.counts.bytes_up = 65537;
    is(&f, RULES_UNSUPPORTED, "host_table");
}

static void test_inputs_that_never_change(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.fixed_bytes = 4096;
    is(&f, RULES_PASSED, NULL); /* nobody looks */
    f.most.bytes = 64;
    is(&f, RULES_PASSED, NULL);
    f.most.bytes = 65;
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f.most = (struct rules_reads){.bytes = 16, .compared = 65, .replies = 16};
    is(&f, RULES_UNSUPPORTED, "host_control_flow");
    f.fixed_bytes = 64; /* no more than it may read anyhow */
    is(&f, RULES_PASSED, NULL);
    f.fixed_bytes = 4096, f.replay_right = false;
    is(&f, RULES_BLAMED, NULL);
}

static void test_tables_of_the_task(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.table_bytes = 1 << 17; /* the task holds as much itself */
    f.counts.bytes_up = (1 << 17) + (1 << 16);
    is(&f, RULES_PASSED, NULL);
    f.counts.bytes_up++;
    is(&f, RULES_UNSUPPORTED, "host_table");
    f.counts.bytes_up = 1 << 17;
    f.fixed_bytes = 8; /* what follows from inputs that never change is no table */
    is(&f, RULES_UNSUPPORTED, "host_table");
}

static void test_parameters_stay(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.altered = "net.weight";
    is(&f, RULES_CORRECTNESS, "parameter_changed");
    assert_non_null(strstr(decide(&f).text, "net.weight"));
    f.replay_right = false;
    is(&f, RULES_BLAMED, NULL);
}

static void test_order_and_log(void **state)
{
    struct rules_facts f = honest();

    (void)state;
    f.ordered = false;
    is(&f, RULES_CORRECTNESS, "unjoined_stream");
    f = honest(), f.log_full = true, f.replay_right = false;
    is(&f, RULES_UNSUPPORTED, "log_full");
    f = honest(), f.replay_right = false, f.refused = true, f.replay_why = "another address";
    is(&f, RULES_UNSUPPORTED, "not_replayable");
    assert_non_null(strstr(decide(&f).text, "another address"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest),
        cmocka_unit_test(test_host_computes),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_small_outputs_are_not_the_hosts),
        cmocka_unit_test(test_who_did_the_work),
        cmocka_unit_test(test_wrong_is_not_cheating),
        cmocka_unit_test(test_what_is_missing_excuses),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_inputs_that_never_change),
        cmocka_unit_test(test_tables_of_the_task),
        cmocka_unit_test(test_parameters_stay),
        cmocka_unit_test(test_order_and_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
