/* test_minibatch.c - cuts of a rollout batch: a partition, whole groups, equal shares; on all small cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/minibatch.h"

static void whole_groups(void **state)
{
    (void)state;
    struct rng r;
    int group[64];
    size_t cut[9];

    rng_seed(&r, 3, 0);
    for (int trial = 0; trial < 5000; trial++) {
        size_t n = rng_below(&r, 40), groups = 0;
        int parts = 1 + (int)rng_below(&r, 8), number = 0;

        for (size_t i = 0; i < n; i++) {
            number += i > 0 && rng_below(&r, 3) == 0 ? 1 + (int)rng_below(&r, 2) : 0;
            group[i] = number;
            groups += i == 0 || group[i] != group[i - 1];
        }
        minibatch_cut(group, n, parts, cut);
        assert_int_equal(cut[0], 0);
        assert_int_equal(cut[parts], n);
        for (int p = 0; p < parts; p++) {
            size_t in = 0;

            assert_true(cut[p] <= cut[p + 1]);
            if (cut[p] > 0 && cut[p] < n)
                assert_int_not_equal(group[cut[p] - 1], group[cut[p]]);
            for (size_t i = cut[p]; i < cut[p + 1]; i++)
                in += i == cut[p] || group[i] != group[i - 1];
            assert_true(in >= groups / (size_t)parts && in <= groups / (size_t)parts + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_groups)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
