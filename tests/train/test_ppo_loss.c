/* test_ppo_loss.c - clipped loss against the piecewise definition on probabilities, gradient by central differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/ppo_loss.h"

static const struct ppo_clip paper = PPO_CLIP_DEFAULT;

/* By cases, as the PPO paper's figure: for A > 0 the surrogate is flat above 1 + eps_high, for A < 0 below 1 -
 * eps_low. */
static long double by_cases(long double p, long double q, long double adv)
{
    long double rho = p / q;

    if (adv > 0 && rho > 1.28L)
        return -adv * 1.28L;
    if (adv < 0 && rho < 0.8L)
        return -adv * 0.8L;
    return -adv * rho;
}

static double loss_at(double l, double o, double a)
{
    struct ppo_token t;
    struct err e = ERR_INIT;

    assert_int_equal(ppo_token_loss(&paper, l, o, a, &t, &e), 0);
    return t.loss;
}

static void random_tokens(void **state)
{
    (void)state;
    struct rng g;
    struct err e = ERR_INIT;
    struct ppo_token t;
    int clipped = 0;

    rng_seed(&g, 3, 0);
    for (int i = 0; i < 20000; i++) {
        double o = -4 * rng_f64(&g) - 1, l = o + 1.6 * (rng_f64(&g) - 0.5), a = 2 * rng_normal(&g), h = 1e-6;

        assert_int_equal(ppo_token_loss(&paper, l, o, a, &t, &e), 0);
        assert_true(fabsl(t.loss - by_cases(expl(l), expl(o), a)) < 1e-12L);
        clipped += t.clipped;
        if (fabs(exp(l - o) - 1.28) < 1e-4 || fabs(exp(l - o) - 0.8) < 1e-4)
            continue; // at a kink the derivative is one-sided
        double num = (loss_at(l + h, o, a) - loss_at(l - h, o, a)) / (2 * h);
        assert_true(fabs(num - t.dlogp) < 1e-6 * (1 + fabs(t.dlogp)));
    }
    assert_true(clipped > 1000);
}

static void edges(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct ppo_token t = {0};

    assert_int_equal(ppo_token_loss(&paper, NAN, -1, 1, &t, &e), -1);
    assert_int_equal(ppo_token_loss(&paper, -1, NAN, 1, &t, &e), -1);
    assert_int_equal(ppo_token_loss(&paper, -1, -1, NAN, &t, &e), -1);
    assert_int_equal(ppo_token_loss(&paper, 1, -1, 1, &t, &e), -1);
    assert_int_equal(ppo_token_loss(&paper, -INFINITY, -INFINITY, 1, &t, &e), -1);
    assert_int_equal(ppo_token_loss(&paper, -1, -1, 0, &t, &e), 0);
    assert_true(t.loss == 0 && t.dlogp == 0);
    // On policy the loss is -A and its gradient too: the REINFORCE gradient.
    assert_int_equal(ppo_token_loss(&paper, -2, -2, 3, &t, &e), 0);
    assert_true(t.loss == -3 && t.dlogp == -3 && t.ratio == 1 && !t.clipped);
    // Clamped log-ratio: finite loss, no gradient.
    assert_int_equal(ppo_token_loss(&paper, -1e-3, -900, -1, &t, &e), 0);
    assert_true(isfinite(t.loss) && fabs(t.loss / exp(20) - 1) < 1e-12 && t.dlogp == 0);
    assert_int_equal(ppo_token_loss(&paper, -INFINITY, -1, -1, &t, &e), 0);
    assert_true(isfinite(t.loss) && t.dlogp == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_tokens), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
