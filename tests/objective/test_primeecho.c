/* test_primeecho.c - trajectory reward against hand-computed values and an enumeration of trajectories. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "objective/primeecho.h"

static const struct primeecho paper = PRIMEECHO_DEFAULT;

static double reward(double s1, double s2, double s3, int turns, int passed)
{
    double s[3] = {s1, s2, s3}, r = NAN;
    struct err e = ERR_INIT;

    assert_int_equal(primeecho_reward(&paper, s, turns, passed, &r, &e), 0);
    return r;
}

static void by_hand(void **state)
{
    (void)state;
    assert_true(fabs(reward(1, 0, 0, 1, 1) - 1.15) < 1e-12);
    assert_true(fabs(reward(-1, 1, 0, 2, 2) - (-0.75 + 0.25 + 0.08)) < 1e-12); // -0.42
    assert_true(fabs(reward(-1, -1, 1, 3, 3) - (-0.5)) < 1e-12);               // no bonus in turn 3
    assert_true(fabs(reward(-1, -0.2, -1, 3, 0) - (-0.8)) < 1e-12);            // best turn is not the last
    assert_true(fabs(reward(-1, 0, 0, 1, 0) + 1) < 1e-12);
    assert_true(fabs(reward(-0.1, -1, -1, 3, 0) + 0.1) < 1e-12);               // turn 1 is the best
}

/* Over a grid: the reward is monotone in every score and equals the maximum over k of alpha s1 + (1-alpha) s_k. */
static void enumerated(void **state)
{
    (void)state;
    static const double grid[] = {-1, -0.5, 0, 0.3, 1, 2.5};

    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++)
            for (int c = 0; c < 6; c++) {
                double s[3] = {grid[a], grid[b], grid[c]}, want = -INFINITY;

                for (int k = 0; k < 3; k++) {
                    double v = (3 * s[0] + s[k]) / 4;

                    want = v > want ? v : want;
                }
                assert_true(fabs(reward(s[0], s[1], s[2], 3, 0) - want) < 1e-12);
                if (c < 5)
                    assert_true(reward(s[0], s[1], grid[c + 1], 3, 0) >= reward(s[0], s[1], s[2], 3, 0));
            }
}

static void refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    double s[2] = {1, NAN}, r = 7;

    assert_int_equal(primeecho_reward(&paper, s, 0, 0, &r, &e), -1);
    assert_int_equal(primeecho_reward(&paper, s, 2, 0, &r, &e), -1);
    assert_int_equal(primeecho_reward(&paper, s, 1, 2, &r, &e), -1);
    assert_true(r == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(enumerated),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
