/* test_advantage.c - advantages against brute force in long double by other formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "objective/advantage.h"

/* Sample variance from all pairs: s^2 = sum_{i<j} (r_i - r_j)^2 / (n (n - 1)). */
static long double pair_std(const double *r, const bool *ok, size_t n)
{
    long double s = 0;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        k += ok[i];
        for (size_t j = 0; j < i; j++)
            if (ok[i] && ok[j])
                s += ((long double)r[i] - r[j]) * ((long double)r[i] - r[j]);
    }
    return sqrtl(s / ((long double)k * (k - 1)));
}

/* r_i minus the mean of the others, by enumeration. */
static long double leave_one_out(const double *r, const bool *ok, size_t n, size_t i, size_t *ret_k)
{
    long double s = 0;
    size_t k = 0;

    for (size_t j = 0; j < n; j++)
        if (ok[j] && j != i)
            s += r[j], k++;
    *ret_k = k + 1;
    return r[i] - s / k;
}

static void random_groups(void **state)
{
    (void)state;
    struct rng g;
    struct err e = ERR_INIT;
    double r[9], a[9];
    bool ok[9];

    rng_seed(&g, 5, 0);
    for (int trial = 0; trial < 3000; trial++) {
        size_t n = 2 + rng_below(&g, 8), valid = 0, k = 0;

        for (size_t i = 0; i < n; i++) {
            r[i] = rng_below(&g, 2) ? rng_normal(&g) : (double)rng_below(&g, 3) - 1;
            ok[i] = rng_below(&g, 5) != 0;
            valid += ok[i];
        }
        for (int kind = ADV_GRPO; kind <= ADV_DR_GRPO; kind++) {
            assert_int_equal(advantage_group(kind, 1e-6, r, ok, n, a, &e), valid < 2 ? 0 : (int)valid);
            for (size_t i = 0; i < n; i++) {
                long double want = 0;

                if (ok[i] && valid >= 2) {
                    long double loo = leave_one_out(r, ok, n, i, &k), dr = loo * (k - 1) / k;

                    want = kind == ADV_RLOO ? loo : kind == ADV_DR_GRPO ? dr : dr / (pair_std(r, ok, n) + 1e-6L);
                }
                assert_true(fabsl(a[i] - want) < 1e-9L * (1 + fabsl(want)));
            }
        }
    }
}

static void hand_case(void **state)
{
    (void)state;
    double r[4] = {1, -1, -1, -1}, a[4];
    struct err e = ERR_INIT;

    // mean -0.5, sample std 1: A = 1.5, -0.5, -0.5, -0.5 (up to eps)
    assert_int_equal(advantage_group(ADV_GRPO, 0, r, NULL, 4, a, &e), 4);
    assert_true(fabs(a[0] - 1.5) < 1e-12 && fabs(a[3] + 0.5) < 1e-12);
}

/* Their mean may round to another number: the rounding error over eps must not pass for a signal. */
static void equal_rewards_are_no_signal(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    double r[8], a[8];
    bool ok[8];
    struct rng g;

    rng_seed(&g, 6, 0);
    for (int trial = 0; trial < 2000; trial++) {
        double value = rng_normal(&g);

        for (size_t i = 0; i < 8; i++) {
            ok[i] = i < 2 || rng_below(&g, 4) != 0;
            // one sum in two orders: equal but for the last bit
            r[i] = ok[i] ? (rng_below(&g, 2) ? value + 0.3 + 0.1 : value + (0.3 + 0.1)) : rng_normal(&g);
        }
        for (int kind = ADV_GRPO; kind <= ADV_DR_GRPO; kind++) {
            assert_true(advantage_group(kind, 1e-6, r, ok, 8, a, &e) >= 2);
            for (size_t i = 0; i < 8; i++)
                assert_true(a[i] == 0);
        }
    }
}

static void edges(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    double one[1] = {3}, same[4] = {2, 2, 2, 2}, bad[2] = {1, NAN}, a[4] = {9, 9, 9, 9};
    bool none[4] = {0}, lone[4] = {false, true, false, false}, skip_nan[2] = {true, false};

    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, one, NULL, 1, a, &e), 0);
    assert_true(a[0] == 0);
    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, NULL, NULL, 0, NULL, &e), 0);
    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, same, NULL, 4, a, &e), 4);
    for (int i = 0; i < 4; i++)
        assert_true(a[i] == 0);
    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, same, none, 4, a, &e), 0);
    assert_int_equal(advantage_group(ADV_RLOO, 1e-6, same, lone, 4, a, &e), 0);
    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, bad, NULL, 2, a, &e), -1);
    assert_int_equal(advantage_group(ADV_GRPO, 1e-6, bad, skip_nan, 2, a, &e), 0); // an infra sample needs no reward
    enum advantage_kind k;
    assert_int_equal(advantage_kind_of("rloo", &k, &e), 0);
    assert_int_equal(k, ADV_RLOO);
    assert_int_equal(advantage_kind_of("ppo", &k, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_groups), cmocka_unit_test(hand_case),
                                       cmocka_unit_test(equal_rewards_are_no_signal), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
