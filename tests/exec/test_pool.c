/* test_pool.c - addresses of device memory: reuse, red zones, limits, what lies within one block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/pool.h"

#define BASE 0x200000000000ull

static struct pool fresh(uint64_t room, uint64_t limit)
{
    struct pool p;

    pool_init(&p, BASE, room, limit);
    return p;
}

static void test_lowest_place_is_used_again(void **state)
{
    struct pool p = fresh(1 << 20, 1 << 20);
    uint64_t a = pool_take(&p, 100, POOL_CLIENT, 0), b = pool_take(&p, 1, POOL_CLIENT, 0), c;

    (void)state;
    assert_int_equal(a, BASE);
    assert_int_equal(b, BASE + 1024); /* 512 for the bytes, 512 for the red zone */
    assert_true(pool_give(&p, a, POOL_CLIENT));
    c = pool_take(&p, 512, POOL_CLIENT, 0);
    assert_int_equal(c, a);
    assert_int_equal(pool_take(&p, 513, POOL_CLIENT, 0), BASE + 2048);
    pool_free(&p);
}

static void test_limits(void **state)
{
    struct pool p = fresh(1 << 20, 4096);

    (void)state;
    assert_int_equal(pool_take(&p, 0, POOL_CLIENT, 0), 0);
    assert_int_equal(pool_take(&p, 4097, POOL_CLIENT, 0), 0);
    assert_int_equal(pool_take(&p, UINT64_MAX, POOL_CLIENT, 0), 0);
    assert_int_equal(pool_take(&p, UINT64_MAX - 511, POOL_CLIENT, 0), 0);
    assert_int_not_equal(pool_take(&p, 4096, POOL_CLIENT, 0), 0);
    assert_int_equal(pool_take(&p, 1, POOL_CLIENT, 0), 0);
    assert_int_not_equal(pool_take(&p, 1 << 18, POOL_JUDGE, 0), 0); /* has no part in it */
    assert_true(pool_give(&p, BASE, POOL_CLIENT));
    assert_int_not_equal(pool_take(&p, 1, POOL_CLIENT, 0), 0);
    pool_free(&p);
}

static void test_owners_and_starts(void **state)
{
    struct pool p = fresh(1 << 20, 1 << 20);
    uint64_t a = pool_take(&p, 4096, POOL_JUDGE, 0);

    (void)state;
    assert_false(pool_give(&p, a, POOL_CLIENT));
    assert_false(pool_give(&p, a + 512, POOL_JUDGE));
    assert_true(pool_give(&p, a, POOL_JUDGE));
    assert_false(pool_give(&p, a, POOL_JUDGE));
    pool_free(&p);
}

static void test_find(void **state)
{
    struct pool p = fresh(1 << 20, 1 << 20);
    uint64_t a = pool_take(&p, 1000, POOL_CLIENT, 0), b = pool_take(&p, 1000, POOL_CLIENT, 0);

    (void)state;
    assert_non_null(pool_find(&p, a, 1000));
    assert_non_null(pool_find(&p, a + 999, 1));
    assert_null(pool_find(&p, a + 999, 2));
    assert_null(pool_find(&p, a, 1001));
    assert_null(pool_find(&p, a, UINT64_MAX));
    assert_null(pool_find(&p, a - 1, 1));
    assert_null(pool_find(&p, a + 1, UINT64_MAX - a));
    assert_ptr_equal(pool_find(&p, b, 1), &p.blocks[1]);
    assert_null(pool_find(&p, 0, 1));
    pool_free(&p);
}

static void test_at_a_place(void **state)
{
    struct pool p = fresh(1 << 20, 1 << 20);

    (void)state;
    assert_true(pool_take_at(&p, BASE + 2048, 512, POOL_CLIENT, 0));
    assert_false(pool_take_at(&p, BASE + 2048, 512, POOL_CLIENT, 0));
    assert_false(pool_take_at(&p, BASE + 2048 + 512, 512, POOL_CLIENT, 0)); /* the red zone */
    assert_false(pool_take_at(&p, BASE + 1536, 512, POOL_CLIENT, 0));      /* its own would reach over */
    assert_true(pool_take_at(&p, BASE + 1024, 512, POOL_CLIENT, 0));
    assert_false(pool_take_at(&p, BASE - 1024, 512, POOL_CLIENT, 0));
    assert_false(pool_take_at(&p, BASE + 4097, 512, POOL_CLIENT, 0));
    assert_false(pool_take_at(&p, BASE + (1 << 20), 512, POOL_CLIENT, 0));
    pool_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_place_is_used_again), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_owners_and_starts), cmocka_unit_test(test_find), cmocka_unit_test(test_at_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
