/* test_schedule.c - learning-rate curves at known points, and the plateau test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/lr_schedule.h"

static void points(void **state)
{
    (void)state;
    struct lr_schedule s = {SCHED_COSINE, 1.0, 0.03, 0.1, 200}; // 6 warm-up steps

    assert_true(fabs(schedule_lr(&s, 0) - 1.0 / 6) < 1e-12);
    assert_true(fabs(schedule_lr(&s, 5) - 1) < 1e-12 && fabs(schedule_lr(&s, 6) - 1) < 1e-12);
    assert_true(fabs(schedule_lr(&s, 6 + 97) - 0.55) < 1e-12); // half way down
    assert_true(fabs(schedule_lr(&s, 200) - 0.1) < 1e-12 && fabs(schedule_lr(&s, 900) - 0.1) < 1e-12);
    s.kind = SCHED_LINEAR;
    assert_true(fabs(schedule_lr(&s, 6 + 97) - 0.55) < 1e-12);
    s.kind = SCHED_CONSTANT;
    assert_true(schedule_lr(&s, 150) == 1);
    s.warmup = 0;
    assert_true(schedule_lr(&s, 0) == 1);
    s.kind = SCHED_WSD; // the last 30 of 200 steps
    assert_true(schedule_lr(&s, 170) == 1 && fabs(schedule_lr(&s, 185) - 0.55) < 1e-12);
    assert_true(fabs(schedule_lr(&s, 200) - 0.1) < 1e-12);
    assert_true(schedule_warm(0, 4) == 0.25 && schedule_warm(3, 4) == 1 && schedule_warm(9, 4) == 1);
    assert_true(schedule_warm(0, 0) == 1);
    for (int64_t i = 1; i < 200; i++) {
        s.kind = SCHED_COSINE;
        assert_true(schedule_lr(&s, i) <= schedule_lr(&s, i - 1));
    }
}

static void plateau(void **state)
{
    (void)state;
    double falling[] = {4, 3, 2, 1}, flat[] = {4, 2, 1.999, 2.1, 1.998}, one[] = {1};

    assert_false(plateau_reached(falling, 4, 2, 0.01));
    assert_true(plateau_reached(flat, 5, 3, 0.01));
    assert_false(plateau_reached(flat, 5, 4, 0.01));
    assert_false(plateau_reached(one, 1, 1, 0.01));
    assert_false(plateau_reached(NULL, 0, 2, 0.01));
}

/* Index of the first validation at which the curve counts as flat, or n. */
static size_t first_flat(const double *v, size_t n)
{
    for (size_t i = 1; i <= n; i++)
        if (plateau_reached(v, i, 3, 0.01))
            return i - 1;
    return n;
}

/* Curves of real runs, rounded. */
static void plateau_of_measured_curves(void **state)
{
    (void)state;
    // 700 steps of the quick start: at the end the loss still falls by 5 % of itself, which is 0.3 % of its way
    double demo[] = {1.2897, .6137, .3774, .2523, .2193, .1594, .1488, .1164, .0863, .0706, .0621, .0600, .0592, .0643};
    // 1400 steps: from the tenth validation on it only rises
    double longer[] = {.8895, .4949, .3188, .1824, .1356, .1154, .1017, .0884, .0799, .0640, .0667, .0732, .0704,
                       .0654};
    double smoke[] = {3.5231, 2.2979, 1.8363, 1.5703, 1.4320, 1.3576};   // stopped while it still learns
    double onward[] = {.0635, .0627, .0640, .0626, .0631, .0625};        // starts at its floor
    double exponential[40], nan_curve[] = {NAN, NAN, NAN, NAN, NAN};

    assert_int_equal(12, first_flat(demo, 14));
    assert_int_equal(12, first_flat(longer, 14));
    assert_int_equal(6, first_flat(smoke, 6));
    assert_int_equal(4, first_flat(onward, 6));
    for (int i = 0; i < 40; i++)
        // best before - best after = e^(-.2(i-3)) - e^(-.2i) = .01 (1 - e^-.2i): i = 22.1
        exponential[i] = exp(-0.2 * i);
    assert_int_equal(23, first_flat(exponential, 40));
    assert_int_equal(5, first_flat(nan_curve, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points), cmocka_unit_test(plateau),
                                       cmocka_unit_test(plateau_of_measured_curves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
