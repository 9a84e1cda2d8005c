/* test_stats.c - paired tests against enumerations written the slow way: all coin flips, all sign patterns, all
 * resamples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/numbers.h"
#include "bench/stats.h"

/* All 2^n outcomes: how many are at least as lopsided. */
static double flips(int wins, int losses)
{
    int n = wins + losses, least = wins < losses ? wins : losses, hit = 0;

    for (unsigned set = 0; set < 1u << n; set++) {
        int k = __builtin_popcount(set);
        hit += k <= least || k >= n - least;
    }
    return (double)hit / (1u << n);
}

static void test_sign(void **state)
{
    for (int a = 0; a <= 9; a++)
        for (int b = 0; b <= 9; b++)
            if (fabs(stats_sign_p(a, b) - flips(a, b)) > 1e-12)
                fail_msg("%d against %d: %g, counted %g", a, b, stats_sign_p(a, b), flips(a, b));
    assert_true(stats_sign_p(0, 0) == 1);
    assert_true(fabs(stats_sign_p(10, 2) - 158 / 4096.0) < 1e-12); /* 2 (1 + 12 + 66) / 2^12 */
    assert_true(isnan(stats_sign_p(-1, 2)));
    assert_true(stats_sign_p(600, 1200) < 1e-40 && stats_sign_p(600, 1200) > 0); /* no underflow */
}

/* The mean rank of each |d| by counting, and the share of sign patterns with a rank sum at least as far from the
 * middle. */
static void signed_ranks(const double *d, int n, double *w_plus, double *p)
{
    double x[16], rank[16], middle = 0, w = 0;
    int m = 0, hit = 0;

    for (int i = 0; i < n; i++)
        if (d[i] != 0)
            x[m++] = d[i];
    for (int i = 0; i < m; i++) {
        int below = 0, equal = 0;
        for (int j = 0; j < m; j++) {
            below += fabs(x[j]) < fabs(x[i]);
            equal += fabs(x[j]) == fabs(x[i]);
        }
        rank[i] = below + (equal + 1) / 2.0;
        middle += rank[i] / 2;
        w += x[i] > 0 ? rank[i] : 0;
    }
    for (unsigned set = 0; set < 1u << m; set++) {
        double v = 0;
        for (int i = 0; i < m; i++)
            v += set >> i & 1 ? rank[i] : 0;
        hit += fabs(v - middle) >= fabs(w - middle) - 1e-9;
    }
    *w_plus = w;
    *p = (double)hit / (1u << m);
}

static void test_wilcoxon(void **state)
{
    struct rng g;

    rng_seed(&g, 5, 0);
    for (int round = 0; round < 200; round++) {
        double d[12], w, p;
        int n = 1 + (int)rng_below(&g, 12), steps = round % 2 ? 4 : 1000; /* few steps: many ties and zeros */
        struct wilcoxon got;
        for (int i = 0; i < n; i++)
            d[i] = ((double)rng_below(&g, (uint64_t)steps) - steps / 3) / steps;
        signed_ranks(d, n, &w, &p);
        got = stats_wilcoxon(d, n);
        assert_true(got.exact);
        if (fabs(got.w_plus - w) > 1e-9 || fabs(got.p - p) > 1e-12)
            fail_msg("round %d: W+ %g p %g, enumerated %g %g", round, got.w_plus, got.p, w, p);
    }
}

static void test_wilcoxon_edges(void **state)
{
    const double none[] = {0, 0, NAN}, six[] = {1, 2, 3, 4, 5, 6, INFINITY};
    double many[WILCOXON_EXACT_MAX + 1];
    struct wilcoxon a, b, w = stats_wilcoxon(none, 3);
    struct rng g;

    assert_true(w.n == 0 && w.p == 1);
    w = stats_wilcoxon(six, 7);
    assert_true(w.n == 6 && w.w_plus == 21 && fabs(w.p - 2 / 64.0) < 1e-12);
    rng_seed(&g, 6, 0); /* where the exact test ends, the approximation continues it */
    for (int i = 0; i <= WILCOXON_EXACT_MAX; i++)
        many[i] = rng_normal(&g) + 0.1;
    a = stats_wilcoxon(many, WILCOXON_EXACT_MAX);
    b = stats_wilcoxon(many, WILCOXON_EXACT_MAX + 1);
    assert_true(a.exact && !b.exact && a.p > 1e-6 && a.p < 0.9);
    assert_true(fabs(a.p - b.p) < 0.15 * a.p + 0.01);
}

/* Every resample of four values, equally likely; the interval is that distribution's quantiles. */
static void test_bootstrap(void **state)
{
    const double x[] = {0.1, 0.2, 0.7, 1.5}, equal[] = {0, 0, 0};
    double means[256];
    struct interval got = stats_bootstrap_mean(x, 4, 1), again = stats_bootstrap_mean(x, 4, 1);

    for (int i = 0; i < 256; i++)
        means[i] = (x[i & 3] + x[i >> 2 & 3] + x[i >> 4 & 3] + x[i >> 6 & 3]) / 4;
    numbers_sort(means, 256);
    assert_true(got.lo >= means[3] && got.lo <= means[10]);    /* 256 x 2.5 % = 6.4 */
    assert_true(got.hi >= means[245] && got.hi <= means[252]);
    assert_true(got.lo == again.lo && got.hi == again.hi);
    assert_true(isnan(stats_bootstrap_mean(x, 1, 1).lo));
    assert_true(isnan(stats_bootstrap_mean(x, 0, 1).hi));
    assert_true(isnan(stats_bootstrap_mean(equal, 3, 1).lo));
}

/* Many normal values: the interval is that of the textbook, mean +- 1.96 s / sqrt(n). */
static void test_bootstrap_normal(void **state)
{
    double x[500], mean = 0, var = 0, half;
    struct interval got;
    struct rng g;

    rng_seed(&g, 9, 0);
    for (int i = 0; i < 500; i++)
        mean += (x[i] = 3 + 2 * rng_normal(&g)) / 500;
    for (int i = 0; i < 500; i++)
        var += (x[i] - mean) * (x[i] - mean) / 500;
    half = 1.96 * sqrt(var / 500);
    got = stats_bootstrap_mean(x, 500, 2);
    assert_true(fabs(got.lo - (mean - half)) < 0.05 * half && fabs(got.hi - (mean + half)) < 0.05 * half);
}

/* Wilson's interval in numbers of Newcombe (1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29), and at the ends. */
static void test_wilson(void **state)
{
    static const double cases[][4] = {{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611},
                                      {1, 29, 0.0061, 0.1718}};
    struct interval all = stats_wilson(1, 20);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct interval got = stats_wilson(cases[i][0] / cases[i][1], cases[i][1]);
        assert_true(fabs(got.lo - cases[i][2]) < 5e-5 && fabs(got.hi - cases[i][3]) < 5e-5);
    }
    assert_true(fabs(all.lo - (1 - 0.1611)) < 5e-5 && all.hi == 1);
    assert_true(isnan(stats_wilson(0.5, 0).lo) && isnan(stats_wilson(NAN, 3).hi));
}

/* Shares of tasks: never of no width, as wide as tasks differ, never narrower than all programs allow. */
static void test_share_interval(void **state)
{
    double none[10] = {0}, half[10], split[10];
    struct interval one = stats_wilson(0, 10), same = stats_wilson(0.5, 10), few = stats_wilson(0.5, 80), got;

    for (int i = 0; i < 10; i++)
        half[i] = i % 2 ? 0.49 : 0.51, split[i] = i % 2;
    got = stats_share_interval(none, 10, 80);
    assert_true(got.lo == one.lo && got.hi == one.hi && got.hi > 0.25);
    got = stats_share_interval(split, 10, 80); /* a task passes as a whole: as many trials as tasks */
    assert_true(fabs(got.lo - same.lo) < 1e-9 && fabs(got.hi - same.hi) < 1e-9);
    got = stats_share_interval(half, 10, 80); /* tasks hardly differ: as many trials as programs */
    assert_true(fabs(got.lo - few.lo) < 1e-9 && fabs(got.hi - few.hi) < 1e-9);
    assert_true(isnan(stats_share_interval(none, 0, 0).lo));
    got = stats_change_interval(none, 10);
    assert_true(got.lo == -one.hi && got.hi == one.hi);
    got = stats_change_interval(split, 10);
    assert_true(got.lo > 0.1 && got.hi < 0.9);
}

static void test_quantile(void **state)
{
    double x[] = {4, 1, 3, 2};

    numbers_sort(x, 4);
    assert_true(stats_quantile(x, 4, 0) == 1 && stats_quantile(x, 4, 1) == 4);
    assert_true(fabs(stats_quantile(x, 4, 0.5) - 2.5) < 1e-12);
    assert_true(fabs(stats_quantile(x, 4, 0.25) - 1.75) < 1e-12);
    assert_true(isnan(stats_quantile(x, 0, 0.5)) && isnan(stats_mean(x, 0)));
    assert_true(stats_mean(x, 4) == 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sign),      cmocka_unit_test(test_wilcoxon),
        cmocka_unit_test(test_wilcoxon_edges), cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_bootstrap_normal), cmocka_unit_test(test_wilson),
        cmocka_unit_test(test_share_interval), cmocka_unit_test(test_quantile),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
