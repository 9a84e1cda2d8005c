/* test_mirrorpop.c - the off-policy measures against products of ratios, and the order of the filters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "objective/mirrorpop.h"

/* Independent: m_t = max(rho, 1/rho) on probabilities; the mean log of a product of m_t. */
static void against_products(void **state)
{
    (void)state;
    struct rng g;
    struct err e = ERR_INIT;
    float l[40], b[40];

    rng_seed(&g, 11, 0);
    for (int trial = 0; trial < 2000; trial++) {
        size_t n = 1 + rng_below(&g, 40);
        long double prod = 1, mirror = 1, sum_exp = 0;
        double scale = pow(10, -3 + 3 * rng_f64(&g));
        struct offpolicy m;

        for (size_t t = 0; t < n; t++) {
            b[t] = (float)(-3 * rng_f64(&g) - 1.5);
            l[t] = b[t] + (float)(scale * (2 * rng_f64(&g) - 1));
            long double rho = expl(l[t]) / expl(b[t]), mt = rho > 1 ? rho : 1 / rho;
            prod *= rho;
            mirror *= mt;
            sum_exp += mt;
        }
        assert_int_equal(offpolicy_measure(l, b, n, &m, &e), 0);
        assert_true(fabsl(m.signed_mean - logl(prod) / n) < 1e-6L);
        assert_true(fabsl(m.mirror - logl(mirror) / n) < 1e-6L);
        // NeMo's mean of max ratios <= e^d implies MirrorPop(d), which implies the signed filter (d).
        double d = 0.02;
        if (sum_exp / n <= expl(d))
            assert_true(mirrorpop_keep(&m, d));
        if (mirrorpop_keep(&m, d))
            assert_true(fabs(m.signed_mean) <= d);
    }
}

static void cancellation(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct offpolicy m;
    float b[4] = {-1, -1, -1, -1}, l[4] = {-0.5f, -1.5f, -0.5f, -1.5f};

    assert_int_equal(offpolicy_measure(l, b, 4, &m, &e), 0);
    assert_true(fabs(m.signed_mean) < 1e-7 && fabs(m.mirror - 0.5) < 1e-7);
    assert_false(mirrorpop_keep(&m, MIRRORPOP_DELTA));
    assert_int_equal(offpolicy_measure(b, b, 4, &m, &e), 0);
    assert_true(m.mirror == 0 && mirrorpop_keep(&m, 0));
}

static void edges(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct offpolicy m = {7, 7};
    float nan_[2] = {-1, NAN}, ok[2] = {-1, -1}, low[1] = {-INFINITY}, pos[1] = {0.5f};

    assert_int_equal(offpolicy_measure(ok, ok, 0, &m, &e), -1);
    assert_int_equal(offpolicy_measure(nan_, ok, 2, &m, &e), -1);
    assert_int_equal(offpolicy_measure(ok, nan_, 2, &m, &e), -1);
    assert_int_equal(offpolicy_measure(pos, ok, 1, &m, &e), -1);
    assert_int_equal(offpolicy_measure(low, low, 1, &m, &e), -1);
    assert_true(m.mirror == 7);
    assert_int_equal(offpolicy_measure(low, ok, 1, &m, &e), 0); // a token the policy now forbids: clamped
    assert_true(m.signed_mean == -20 && m.mirror == 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_products), cmocka_unit_test(cancellation),
                                       cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
