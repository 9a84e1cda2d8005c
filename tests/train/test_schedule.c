/* test_schedule.c - learning-rate curves at known points, and the plateau test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/schedule.h"

static void points(void **state)
{
    (void)state;
    struct schedule s = {SCHED_COSINE, 1.0, 0.03, 0.1, 200}; // 6 warm-up steps

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points), cmocka_unit_test(plateau)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
