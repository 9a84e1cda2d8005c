/* test_data_movement.c - casts by the executor: what a type cannot hold leaves a mark and no part of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "exec/data_movement.h"

static uint64_t cast(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype, int64_t n)
{
    const struct wire_strided m = {.to_dtype = to_dtype, .from_dtype = from_dtype, .dims = 1, .size = {n},
                                   .to_stride = {1}, .from_stride = {1}};

    return movement_host_strided(to, from, &m);
}

static void test_whole_numbers_that_do_not_fit(void **state)
{
    static const int64_t wide[] = {1, 255, 300, -1, 256 + 7};
    uint8_t bytes[5];
    int32_t words[5];

    (void)state;
    assert_int_equal(cast(bytes, DT_U8, wide, DT_I64, 5), 3);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], 255);
    for (int i = 2; i < 5; i++)
        assert_int_equal(bytes[i], 0x80);
    assert_int_equal(cast(words, DT_I32, wide, DT_I64, 5), 0);
    assert_int_equal(words[4], 263);
    assert_int_equal(cast(words, DT_I32, (const int64_t[]){INT64_C(1) << 32 | 5}, DT_I64, 1), 1);
    assert_int_equal((uint32_t)words[0], 0x80808080u);
}

static void test_roundings_of_floats_are_no_change(void **state)
{
    const float x[] = {1.1f, -3e-9f};
    uint16_t half[2];

    (void)state;
    assert_int_equal(cast(half, DT_BF16, x, DT_F32, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers_that_do_not_fit),
        cmocka_unit_test(test_roundings_of_floats_are_no_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
