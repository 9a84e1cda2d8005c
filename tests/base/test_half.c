/* test_half.c - half precision, bfloat16 and the two types of 8 bits against their definitions, computed anew in double
 * precision: every value read, every one and every border between two neighbours written, and floats of all sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/half.h"
#include "base/rng.h"

/* sign x 2^(exponent - bias) x 1.mantissa (IEEE 754, 3.4); man bits of mantissa, the sign in bit 15. */
struct format {
    int man;
    float (*read)(uint16_t);
    uint16_t (*write)(float);
};

static const struct format formats[] = {{10, f16_to_f32, f16_from_f32}, {7, bf16_to_f32, bf16_from_f32}};

static int bias_of(const struct format *f)
{
    return (1 << (14 - f->man)) - 1;
}

/* By definition. The largest exponent is read like any other: 2^(bias + 1) stands where infinity is. */
static double value(const struct format *f, unsigned x)
{
    int bias = bias_of(f), exp = (int)(x & 0x7fff) >> f->man, man = (int)x & ((1 << f->man) - 1);
    double v = exp ? ldexp((1 << f->man) + man, exp - bias - f->man) : ldexp(man, 1 - bias - f->man);

    return x >> 15 ? -v : v;
}

static unsigned infinity_of(const struct format *f)
{
    return (unsigned)(2 * bias_of(f) + 1) << f->man;
}

/* The nearest by bisection over the magnitudes, ties to the even pattern; not NaN. */
static unsigned nearest(const struct format *f, double v)
{
    unsigned lo = 0, hi = infinity_of(f), sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v), middle;

    if (a >= value(f, hi))
        return sign | hi;
    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;

        *(value(f, mid) <= a ? &lo : &hi) = mid;
    }
    middle = (value(f, lo) + value(f, hi)) / 2;
    return sign | (a < middle || (a == middle && !(lo & 1)) ? lo : hi);
}

static void expect(const struct format *f, float x)
{
    unsigned got = f->write(x), want = nearest(f, x);

    if (got != want)
        fail_msg("%d bits of mantissa: %a is written as %04x, not %04x", f->man, x, got, want);
}

static void test_read(void **state)
{
    for (const struct format *f = formats; f < formats + 2; f++)
        for (unsigned x = 0; x < 0x10000; x++) {
            float got = f->read((uint16_t)x);
            unsigned a = x & 0x7fff;

            if (a > infinity_of(f))
                assert_true(isnan(got));
            else if (a == infinity_of(f))
                assert_true(isinf(got));
            else
                assert_true(got == value(f, x));
            assert_int_equal(!!signbit(got), x >> 15);
        }
}

static void test_every_value_comes_back(void **state)
{
    for (const struct format *f = formats; f < formats + 2; f++)
        for (unsigned x = 0; x < 0x10000; x++) {
            uint16_t back = f->write(f->read((uint16_t)x));

            if ((x & 0x7fff) <= infinity_of(f))
                assert_int_equal(back, x);
            else
                assert_true(isnan(f->read(back)) && (back ^ x) < 0x8000);
        }
}

static void test_borders(void **state)
{
    for (const struct format *f = formats; f < formats + 2; f++)
        for (unsigned x = 0; x < infinity_of(f); x++) {
            float middle = (float)((value(f, x) + value(f, x + 1)) / 2); /* exact */

            for (int sign = -1; sign <= 1; sign += 2) {
                expect(f, (float)sign * middle);
                expect(f, (float)sign * nextafterf(middle, 0));
                expect(f, (float)sign * nextafterf(middle, INFINITY));
            }
        }
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff); /* the largest, and the first that rounds to infinity */
    assert_int_equal(f16_from_f32(65520), 0x7c00);
    assert_int_equal(bf16_from_f32(1.00390625f), 0x3f80); /* 1 + 2^-8: a tie, to even */
    assert_int_equal(bf16_from_f32(1.01171875f), 0x3f82); /* 1 + 3 x 2^-8 */
}

static void test_any_float(void **state)
{
    struct rng r;

    rng_seed(&r, 1, 0);
    for (int i = 0; i < 200000; i++) {
        float x = f32_of_bits((uint32_t)rng_u64(&r));

        for (const struct format *f = formats; f < formats + 2; f++) {
            if (isnan(x))
                assert_true(isnan(f->read(f->write(x))));
            else
                expect(f, x);
        }
    }
}

/* ---- 8 bits ---- */

static const struct byte_format {
    int man, last; /* last: the pattern of the largest finite value */
    float (*read)(uint8_t);
    uint8_t (*write)(float);
} byte_formats[] = {{3, 0x7e, f8e4_to_f32, f8e4_from_f32}, {2, 0x7b, f8e5_to_f32, f8e5_from_f32}};

/* By definition (arXiv 2209.05433, table 1); exact. */
static double byte_value(const struct byte_format *f, int x)
{
    int bias = (1 << (6 - f->man)) - 1, exp = x >> f->man, man = x & ((1 << f->man) - 1);

    return exp ? ldexp((1 << f->man) + man, exp - bias - f->man) : ldexp(man, 1 - bias - f->man);
}

static void test_bytes_are_read_and_come_back(void **state)
{
    for (const struct byte_format *f = byte_formats; f < byte_formats + 2; f++)
        for (int x = 0; x <= f->last; x++) {
            assert_true(f->read((uint8_t)x) == byte_value(f, x) && f->read((uint8_t)(x | 0x80)) == -byte_value(f, x));
            assert_int_equal(f->write(f->read((uint8_t)x)), x);
            assert_int_equal(f->write(f->read((uint8_t)(x | 0x80))), x | 0x80);
        }
    assert_true(isnan(f8e4_to_f32(0x7f)) && isinf(f8e5_to_f32(0x7c)) && isnan(f8e5_to_f32(0x7d)));
}

static void test_bytes_are_nearest(void **state)
{
    for (const struct byte_format *f = byte_formats; f < byte_formats + 2; f++)
        for (int x = 0; x < f->last; x++) {
            float middle = (float)((byte_value(f, x) + byte_value(f, x + 1)) / 2); /* exact */

            assert_int_equal(f->write(middle), x + (x & 1));
            assert_int_equal(f->write(nextafterf(middle, 0)), x);
            assert_int_equal(f->write(nextafterf(-middle, -INFINITY)), (x + 1) | 0x80);
        }
}

static void test_bytes_beyond_their_ends(void **state)
{
    assert_int_equal(f8e4_from_f32(464), 0x7e);
    assert_int_equal(f8e4_from_f32(nextafterf(464, 500)), 0x7f);
    assert_int_equal(f8e4_from_f32(-INFINITY), 0xff);
    assert_int_equal(f8e5_from_f32(nextafterf(61440, 0)), 0x7b);
    assert_int_equal(f8e5_from_f32(61440), 0x7c);
    assert_true(isnan(f8e4_to_f32(f8e4_from_f32(NAN))) && isnan(f8e5_to_f32(f8e5_from_f32(NAN))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_every_value_comes_back),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_any_float),
        cmocka_unit_test(test_bytes_are_read_and_come_back),
        cmocka_unit_test(test_bytes_are_nearest),
        cmocka_unit_test(test_bytes_beyond_their_ends),
    };

    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
