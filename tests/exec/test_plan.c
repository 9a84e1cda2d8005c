/* test_plan.c - the memory plan: the large tasks of KernelBench on 80 GB, properties over random sizes, tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "exec/memory_plan.h"

#define GIB(x) ((uint64_t)((x) * 1073741824.0))

static const uint64_t h100 = (uint64_t)81559 << 20;

/* Shapes of level 1 as they are today, in GiB. */
static void test_large_tasks_fit(void **state)
{
    static const struct {
        double inputs, outputs, peak, free; /* free: at least so much for the candidate */
    } rows[] = {{6, 6, 6, 60}, {6, 6, 12, 54}, {8, 8, 8, 56}, {16, 0.13, 0.13, 56}, {5, 4, 8, 59}, {8, 0, 8, 56},
                {0.02, 0.02, 16.06, 56}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan_sizes s = {.inputs = GIB(rows[i].inputs), .outputs = GIB(rows[i].outputs),
                               .eager_peak = GIB(rows[i].peak), .state = 1000};
        struct memory_plan p;

        memory_plan_make(&s, h100, &p);
        assert_true(p.fits && p.recording >= GIB(rows[i].free) && p.usable < h100);
    }
}

static void test_what_does_not_fit(void **state)
{
    struct plan_sizes s = {.inputs = GIB(30), .outputs = GIB(30), .eager_peak = GIB(30)};
    struct buf b;
    struct memory_plan p;

    (void)state;
    memory_plan_make(&s, h100, &p);
    assert_false(p.fits);
    buf_init(&b, 1000);
    plan_text(&p, &b);
    assert_string_equal(b.p, "a candidate may hold 13.9 of 76.4 GiB, and needs 30.0");
    buf_free(&b);
}

/* A reference that took all there is, because nothing else was there, leaves a life twice what it needs. */
static void test_a_greedy_reference(void **state)
{
    struct plan_sizes s = {.inputs = GIB(8), .outputs = GIB(8), .eager_peak = GIB(8), .reference_peak = GIB(70)};
    struct memory_plan p;

    (void)state;
    memory_plan_make(&s, h100, &p);
    assert_true(p.fits && p.recording == 2 * p.least);
    s.reference_peak = GIB(20);
    memory_plan_make(&s, h100, &p);
    assert_true(p.reference == GIB(20) && p.recording == p.usable - p.judge - GIB(20));
}

/* All that is there at once fits; more memory never takes anything away. */
static void test_properties(void **state)
{
    struct rng rng;

    (void)state;
    rng_seed(&rng, 5, 0);
    for (int i = 0; i < 20000; i++) {
        struct plan_sizes s = {rng_u64(&rng) >> (24 + rng_below(&rng, 20)), rng_u64(&rng) >> (26 + rng_below(&rng, 20)),
                               rng_u64(&rng) >> (24 + rng_below(&rng, 20)), rng_u64(&rng) >> (24 + rng_below(&rng, 20)),
                               rng_below(&rng, 2) * (rng_u64(&rng) >> (24 + rng_below(&rng, 20)))};
        uint64_t device = (uint64_t)1 << (30 + rng_below(&rng, 8));
        struct memory_plan p, q;

        memory_plan_make(&s, device, &p);
        memory_plan_make(&s, 2 * device, &q);
        assert_true(!p.recording || p.judge + p.reference + p.recording <= p.usable);
        assert_true(!p.recording || p.judge + p.timing + p.recording <= p.usable);
        assert_true(q.fits >= p.fits && q.recording >= p.recording);
    }
}

static void test_tiles_cover_once(void **state)
{
    static const int64_t cases[][2] = {{0, 1}, {1, 1}, {1000, 7}, {1 << 26, 4096}, {(1 << 26) + 5, 4099},
                                       {3000000000, 393216}, {3000000000, 2000000000}, {200000000, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = cases[i][0], row = cases[i][1], from, at = 0;
        struct plan_tiles t = plan_tiles_make(n, row, 4);

        for (int64_t k = 0; k < plan_tiles_count(&t); k++) {
            int64_t len = plan_tile(&t, k, &from);

            assert_true(from == at && len > 0 && (uint64_t)len * 4 <= PLAN_TILE);
            if (row > 0 && (uint64_t)row * 4 <= PLAN_TILE)
                assert_int_equal(from % row, 0);
            at += len;
        }
        assert_true(at == n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large_tasks_fit), cmocka_unit_test(test_what_does_not_fit),
                                       cmocka_unit_test(test_a_greedy_reference), cmocka_unit_test(test_properties),
                                       cmocka_unit_test(test_tiles_cover_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
