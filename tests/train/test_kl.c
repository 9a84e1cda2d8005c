/* test_kl.c - KL estimators: expectation over a whole distribution, gradients by differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/kl.h"

static double value(enum kl_kind k, double l, double r)
{
    double v, d;
    struct err e = ERR_INIT;

    assert_int_equal(kl_token(k, l, r, &v, &d, &e), 0);
    return v;
}

/* Summed over all outcomes with weights pi, k1 and k3 are exactly KL(pi || ref); k2 is close for near policies. */
static void unbiased(void **state)
{
    (void)state;
    struct rng g;
    double p[6], q[6];

    rng_seed(&g, 8, 0);
    for (int trial = 0; trial < 500; trial++) {
        double sp = 0, sq = 0;
        long double kl = 0, e1 = 0, e2 = 0, e3 = 0;

        for (int i = 0; i < 6; i++) {
            sp += p[i] = 0.1 + rng_f64(&g);
            sq += q[i] = p[i] * exp(0.1 * rng_normal(&g));
        }
        for (int i = 0; i < 6; i++) {
            long double a = p[i] / (long double)sp, b = q[i] / (long double)sq;

            kl += a * logl(a / b);
            e1 += a * value(KL_K1, log(p[i] / sp), log(q[i] / sq));
            e2 += a * value(KL_K2, log(p[i] / sp), log(q[i] / sq));
            e3 += a * value(KL_K3, log(p[i] / sp), log(q[i] / sq));
        }
        assert_true(fabsl(e1 - kl) < 1e-9L && fabsl(e3 - kl) < 1e-9L && fabsl(e2 - kl) < 0.2L * kl + 1e-6L);
    }
}

static void gradients(void **state)
{
    (void)state;
    struct rng g;
    struct err e = ERR_INIT;

    rng_seed(&g, 9, 0);
    for (int k = KL_K1; k <= KL_K3; k++)
        for (int i = 0; i < 3000; i++) {
            double l = -3 * rng_f64(&g) - 2, r = l + 3 * (rng_f64(&g) - 0.5), v, d, h = 1e-5;

            assert_int_equal(kl_token(k, l, r, &v, &d, &e), 0);
            double num = (value(k, l + h, r) - value(k, l - h, r)) / (2 * h);
            assert_true(fabs(num - d) < 1e-5 * (1 + fabs(d)));
            if (k == KL_K3)
                assert_true(v >= 0);
        }
}

static void edges(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    double v = 1, d = 1;
    enum kl_kind k;

    assert_int_equal(kl_token(KL_K3, -1, -1, &v, &d, &e), 0);
    assert_true(v == 0 && d == 0);
    assert_int_equal(kl_token(KL_K3, NAN, -1, &v, &d, &e), -1);
    assert_int_equal(kl_token(KL_NONE, NAN, -1, &v, &d, &e), 0); // off: nothing is looked at
    assert_int_equal(kl_token(KL_K3, -40, -1, &v, &d, &e), 0);
    assert_true(v == 10 && d == 0);
    assert_int_equal(kl_kind_of("k1", &k, &e), -1);
    assert_int_equal(kl_kind_of("k3", &k, &e), 0);
    assert_int_equal(k, KL_K3);
    assert_int_equal(kl_kind_of("js", &k, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unbiased), cmocka_unit_test(gradients),
                                       cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
