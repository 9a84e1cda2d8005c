/* test_plan.c - buffers that live together never overlap, those that do not may; what is refused is what would be
 * used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "nn/buffer_plan.h"

static void test_random_plans(void **state)
{
    struct rng r;

    (void)state;
    rng_seed(&r, 11, 0);
    for (int round = 0; round < 200; round++) {
        struct buffer_plan p = {.n = 0};
        size_t sum = 0, peak = 0;
        int n = 2 + (int)rng_below(&r, 20);
        for (int i = 0; i < n; i++) {
            int from = (int)rng_below(&r, 6);
            plan_add(&p, "x", 1 + rng_below(&r, 5000), from, from + (int)rng_below(&r, 3), NULL);
            sum += p.item[i].bytes;
        }
        plan_layout(&p);
        for (int phase = 0; phase < 9; phase++) {
            size_t live = 0;
            for (int i = 0; i < n; i++)
                live += p.item[i].from <= phase && phase <= p.item[i].to ? p.item[i].bytes : 0;
            peak = live > peak ? live : peak;
        }
        assert_true(p.bytes >= peak && p.bytes <= sum);
        for (int i = 0; i < n; i++) {
            const struct plan_item *a = &p.item[i];
            assert_int_equal(a->at % 256, 0);
            assert_true(a->at + a->bytes <= p.bytes);
            for (int j = 0; j < i; j++) {
                const struct plan_item *b = &p.item[j];
                bool together = a->from <= b->to && b->from <= a->to;
                assert_true(!together || a->at + a->bytes <= b->at || b->at + b->bytes <= a->at);
            }
        }
    }
}

static void test_places_are_shared(void **state)
{
    struct buffer_plan p = {.n = 0};
    char slab[2048], *early, *late, *always;

    (void)state;
    plan_add(&p, "early", 1000, 0, 0, &early);
    plan_add(&p, "late", 1000, 1, 1, &late);
    plan_add(&p, "always", 500, 0, 1, &always);
    plan_layout(&p);
    assert_int_equal(p.bytes, 1536);
    plan_place(&p, slab);
    assert_ptr_equal(early, late);
    assert_true(always == slab + 1024 || always == slab);
}

static void test_refusal(void **state)
{
    struct buffer_plan p = {.n = 0};
    struct err e = ERR_INIT;

    (void)state;
    plan_add(&p, "activations", 5000000, 0, 0, NULL);
    plan_add(&p, "dust", 10, 0, 0, NULL);
    plan_layout(&p);
    assert_int_equal(plan_check(&p, 1000000, "weights", p.bytes + 1000000, "buy more", &e), 0);
    assert_int_equal(plan_check(&p, 1000000, "weights", p.bytes + 999999, "buy more", &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "buy more"));
    assert_non_null(strstr(e.msg, "activations 5"));
    assert_null(strstr(e.msg, "dust"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans), cmocka_unit_test(test_places_are_shared),
                                       cmocka_unit_test(test_refusal)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
