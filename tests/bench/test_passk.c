/* test_passk.c - pass@k against the enumeration of all k-subsets; means over tasks; edge cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "bench/passk.h"

/* Of all subsets of n samples with k elements, the share that holds one of the first c. */
static double enumerate(int n, int c, int k)
{
    int hit = 0, all = 0;

    for (unsigned set = 0; set < 1u << n; set++) {
        if (__builtin_popcount(set) != k)
            continue;
        all++;
        hit += (set & ((1u << c) - 1)) != 0;
    }
    return (double)hit / all;
}

static void test_enumeration(void **state)
{
    for (int n = 1; n <= 12; n++)
        for (int c = 0; c <= n; c++)
            for (int k = 1; k <= n; k++)
                assert_true(fabs(pass_at_k(n, c, k) - enumerate(n, c, k)) < 1e-12);
}

static void test_edges(void **state)
{
    assert_true(isnan(pass_at_k(0, 0, 1)));
    assert_true(isnan(pass_at_k(8, 9, 1)));
    assert_true(isnan(pass_at_k(8, -1, 1)));
    assert_true(isnan(pass_at_k(8, 1, 0)));
    assert_true(isnan(pass_at_k(8, 1, 9)));
    assert_true(pass_at_k(8, 0, 8) == 0);
    assert_true(pass_at_k(8, 1, 8) == 1);
    assert_true(pass_at_k(1, 1, 1) == 1);
    assert_true(fabs(pass_at_k(100000, 1, 8) - 8e-5) < 1e-12); /* no overflow */
    assert_true(fabs(pass_at_k(1000, 3, 1) - 0.003) < 1e-12);   /* k = 1 is the mean */
    assert_true(isnan(avg_at_n(0, 0)));
    assert_true(avg_at_n(8, 2) == 0.25);
}

static void test_faster(void **state)
{
    assert_true(is_faster_than(true, 1.11, FASTER_MIN));
    assert_false(is_faster_than(true, 1.1, FASTER_MIN)); /* more than 1.1 */
    assert_false(is_faster_than(false, 9, FASTER_MIN));
    assert_false(is_faster_than(true, NAN, FASTER_MIN));
}

static void test_suite(void **state)
{
    const struct task_counts t[] = {{8, 8, 4}, {8, 0, 0}, {8, 1, 1}, {0, 0, 0}, {2, 1, 0}}; /* the fourth: all infra */

    assert_true(fabs(suite_avg(t, 5) - (1 + 0 + 0.125 + 0.5) / 4) < 1e-12);
    assert_true(fabs(suite_pass_at_k(t, 5, 8) - (1 + 0 + 1 + 1) / 4.0) < 1e-12);
    assert_true(fabs(suite_pass_at_k(t, 5, 1) - suite_avg(t, 5)) < 1e-12);
    assert_true(fabs(suite_faster_rate(t, 5) - 5 / 26.0) < 1e-12);
    assert_true(isnan(suite_avg(t + 3, 1)));
    assert_true(isnan(suite_pass_at_k(t, 0, 8)));
    assert_true(isnan(suite_faster_rate(t, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumeration),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_faster),
        cmocka_unit_test(test_suite),
    };

    return cmocka_run_group_tests_name("passk", tests, NULL, NULL);
}
