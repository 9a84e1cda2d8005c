/* test_changed.c - new tokens of a repair against an exhaustive search on short lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/changed.h"

/* Is the list a subsequence of before? */
static int within(const int32_t *before, size_t n, const int32_t *list, size_t k)
{
    size_t at = 0;

    for (size_t i = 0; i < n && at < k; i++)
        at += before[i] == list[at];
    return at == k;
}

/* The most ids of after that can be kept: all subsets. */
static size_t most_kept(const int32_t *before, size_t n, const int32_t *after, size_t m)
{
    size_t best = 0;

    for (unsigned set = 0; set < 1u << m; set++) {
        int32_t kept[16];
        size_t k = 0;

        for (size_t i = 0; i < m; i++)
            if (set >> i & 1)
                kept[k++] = after[i];
        if (k > best && within(before, n, kept, k))
            best = k;
    }
    return best;
}

static void against_all_subsets(void **state)
{
    (void)state;
    struct rng r;

    rng_seed(&r, 8, 0);
    for (int trial = 0; trial < 2000; trial++) {
        int32_t before[10], after[10], kept[10];
        uint8_t mask[10];
        size_t n = rng_below(&r, 11), m = rng_below(&r, 9), k = 0;

        for (size_t i = 0; i < n; i++)
            before[i] = (int32_t)rng_below(&r, 4);
        for (size_t i = 0; i < m; i++)
            after[i] = (int32_t)rng_below(&r, 4);
        changed_tokens(before, n, after, m, mask);
        for (size_t i = 0; i < m; i++)
            if (!mask[i])
                kept[k++] = after[i];
        assert_true(within(before, n, kept, k));
        assert_int_equal(k, most_kept(before, n, after, m));
    }
}

/* Long answers: a line that changed is found between equal ends; two that share nothing take no quadratic memory. */
static void long_answers(void **state)
{
    (void)state;
    size_t n = 100000;
    int32_t *a = xcalloc(n, sizeof *a), *b = xcalloc(n, sizeof *b);
    uint8_t *mask = xcalloc(n, 1);

    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = (int32_t)(i % 977);
    b[500] = b[501] = -1;
    changed_tokens(a, n, b, n, mask);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mask[i], i == 500 || i == 501);
    for (size_t i = 0; i < n; i++)
        b[i] = -2;
    changed_tokens(a, n, b, n, mask);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mask[i], 1);
    free(a);
    free(b);
    free(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_all_subsets), cmocka_unit_test(long_answers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
