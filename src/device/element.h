/* element.h - the arithmetic of one element, the same text for the GPU's kernels and for the host backend, so that both
 * give the same bits: how an element is read, when it is right, what a wrong one adds to the tally, what a fill writes.
 * Compiled without contraction to fused multiply-add on both sides. Plain C11 and CUDA C++. */
#ifndef MC_DEVICE_ELEMENT_H
#define MC_DEVICE_ELEMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

#if defined(__CUDACC__) || defined(__MUSACC__)
#define EL_FN static __host__ __device__ __forceinline__
#else
#define EL_FN static inline
#endif

/* base/dtype.h's order; kernels cannot include it. Checked in kernels.h. */
enum { EL_BOOL, EL_U8, EL_I8, EL_I16, EL_I32, EL_I64, EL_F16, EL_BF16, EL_F32, EL_F64, EL_C64, EL_C128 };

/* ---- bits ---- */

EL_FN uint64_t el_f64_bits(double f)
{
    uint64_t b;

    memcpy(&b, &f, 8);
    return b;
}

EL_FN double el_bits_f64(uint64_t b)
{
    double f;

    memcpy(&f, &b, 8);
    return f;
}

EL_FN bool el_finite(double x)
{
    return (el_f64_bits(x) >> 52 & 0x7ff) != 0x7ff;
}

/* ---- reading ---- */

/* Real component i of memory of a dtype; complex dtypes are read by their components' type. */
EL_FN int64_t el_int(const void *p, int dtype, int64_t i)
{
    switch (dtype) {
    case EL_BOOL: return ((const uint8_t *)p)[i] != 0;
    case EL_U8: return ((const uint8_t *)p)[i];
    case EL_I8: return ((const int8_t *)p)[i];
    case EL_I16: return ((const int16_t *)p)[i];
    case EL_I32: return ((const int32_t *)p)[i];
    case EL_I64: return ((const int64_t *)p)[i];
    default: return 0;
    }
}

EL_FN double el_value(const void *p, int dtype, int64_t i)
{
    switch (dtype) {
    case EL_F16: return (double)f16_to_f32(((const uint16_t *)p)[i]);
    case EL_BF16: return (double)bf16_to_f32(((const uint16_t *)p)[i]);
    case EL_F32:
    case EL_C64: return (double)((const float *)p)[i];
    case EL_F64:
    case EL_C128: return ((const double *)p)[i];
    default: return (double)el_int(p, dtype, i);
    }
}

/* ---- comparing (eval/check/compare.c is the specification) ---- */

struct el_tolerance {
    double abs, rel;
    int32_t allclose, pad;
};

struct el_tally {
    int64_t n_bad, n_nan, first, last, worst; /* indices are -1 while nothing is wrong */
    double worst_err, max_abs, max_rel;
};

EL_FN void el_tally_init(struct el_tally *t)
{
    t->n_bad = t->n_nan = 0;
    t->first = t->last = t->worst = -1;
    t->worst_err = -1;
    t->max_abs = t->max_rel = 0;
}

/* Associative and commutative: any order of merging gives the same bits. */
EL_FN void el_tally_merge(struct el_tally *a, const struct el_tally *b)
{
    if (b->max_abs > a->max_abs)
        a->max_abs = b->max_abs;
    if (b->max_rel > a->max_rel)
        a->max_rel = b->max_rel;
    if (b->n_bad == 0)
        return;
    if (a->n_bad == 0 || b->first < a->first)
        a->first = b->first;
    if (b->last > a->last)
        a->last = b->last;
    if (a->n_bad == 0 || b->worst_err > a->worst_err || (b->worst_err == a->worst_err && b->worst < a->worst)) {
        a->worst = b->worst;
        a->worst_err = b->worst_err;
    }
    a->n_bad += b->n_bad;
    a->n_nan += b->n_nan;
}

/* Elements come in rising order of i within one tally. */
EL_FN void el_note_bad(struct el_tally *t, int64_t i, double o, double g)
{
    double err = fabs(g - o);

    if (!el_finite(err))
        err = el_bits_f64(0x7ff0000000000000ull);
    t->n_bad++;
    t->n_nan += g != g;
    if (t->first < 0)
        t->first = i;
    t->last = i;
    if (t->worst < 0 || err > t->worst_err) {
        t->worst = i;
        t->worst_err = err;
    }
}

/* Keeps max_abs and max_rel; err is finite. The product filters the division out: err / |o| rounds to more than max_rel
 * only if err > max_rel * |o|, and rounding is monotonic, so fl(max_rel * |o|) <= err. */
EL_FN void el_note_error(struct el_tally *t, double err, double o)
{
    double size = fabs(o);

    if (err > t->max_abs)
        t->max_abs = err;
    if (err >= t->max_rel * size && err > 0 && size > 0) {
        double rel = err / size;

        if (rel > t->max_rel)
            t->max_rel = rel;
    }
}

EL_FN bool el_special_right(double o, double g, const struct el_tolerance *tol)
{
    if (el_finite(o) && el_finite(g))
        return false; /* the difference overflowed */
    if (tol->allclose)
        return o == g;
    return (o != o && g != g) || (o == g && !el_finite(o));
}

/* One element of a floating dtype: right? The tally takes its errors. */
EL_FN bool el_float(struct el_tally *t, int64_t i, double o, double g, const struct el_tolerance *tol)
{
    double err = fabs(g - o);
    bool right;

    if (el_finite(err)) {
        el_note_error(t, err, o);
        right = err <= tol->abs + tol->rel * fabs(tol->allclose ? g : o);
    } else {
        right = el_special_right(o, g, tol);
    }
    if (!right)
        el_note_bad(t, i, o, g);
    return right;
}

/* What an element may be without changing a tally: bounds that a tally (any tally that will be merged) already reached.
 */
struct el_bounds {
    double max_abs, max_rel;
};

/* For operands of one type of at most 24 bits. d / |o| is compared through d <= fl(R |o|), with R = fl(d0 / |o0|) the
 * largest so far. That d / |o| then rounds to no more than R needs two ratios to be equal or apart by more than 2^-51:
 * where R < 1/2, |g| > |o| / 2, so d has at most 26 bits and |o| 24, and the cross products that tell ratios apart are
 * below 2^50. Where R is larger the bound is lowered instead. (Ties are common: errors of one last place, around powers
 * of two.) */
EL_FN struct el_bounds el_bounds_of(double max_abs, double max_rel)
{
    struct el_bounds b;

    b.max_abs = max_abs;
    b.max_rel = max_rel < 0.5 ? max_rel : max_rel * (1 - 0x1p-50);
    return b;
}

/* Right, and no larger an error than the bounds: el_float would change nothing but what b knows already. No branches.
 */
EL_FN bool el_dull(double o, double g, const struct el_bounds *b, const struct el_tolerance *tol)
{
    double err = fabs(g - o), size = fabs(o);

    return (err <= b->max_abs) & (err <= b->max_rel * size) &
           (err <= tol->abs + tol->rel * (tol->allclose ? fabs(g) : size));
}

/* One element of an integer dtype: 'agrees' says whether it equals what it may equal. */
EL_FN bool el_exact(struct el_tally *t, int64_t i, double o, double g, bool agrees)
{
    double err = fabs(g - o);

    if (el_finite(err))
        el_note_error(t, err, o);
    if (!agrees)
        el_note_bad(t, i, o, g);
    return agrees;
}

/* What wrong values may have in common with the first wrong one (o1, g1); bits of a set that only shrinks. */
enum { EL_CONSTANT = 1, EL_SCALED = 2, EL_SHIFTED = 4, EL_RELATIONS = 7 };

EL_FN int el_relation(double o, double g, double o1, double g1)
{
    double shift = g1 - o1, scale = g1 / o1;
    int held = 0;

    if (g == g1 || (g != g && g1 != g1))
        held |= EL_CONSTANT;
    if (!el_finite(g) || !el_finite(o) || !el_finite(g1) || !el_finite(o1))
        return held;
    if (o1 != 0 && fabs(g - o * scale) <= 1e-4 * fabs(g))
        held |= EL_SCALED;
    if (fabs(g - o - shift) <= 1e-4 * (fabs(shift) + 1e-6 * fabs(o)))
        held |= EL_SHIFTED;
    return held;
}

/* ---- random numbers ---- */

struct el_u4 {
    uint32_t v[4];
};

/* Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
EL_FN struct el_u4 el_philox(uint64_t counter, uint64_t seed)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    struct el_u4 r;

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    r.v[0] = c0, r.v[1] = c1, r.v[2] = c2, r.v[3] = c3;
    return r;
}

EL_FN float el_uniform_f32(uint32_t x)
{
    return (float)(x >> 8) * 0x1p-24f;
}

EL_FN double el_uniform_f64(uint32_t hi, uint32_t lo)
{
    return (double)((uint64_t)hi << 21 | lo >> 11) * 0x1p-53;
}

/* -log(y) for 0 < y <= 1 and normal: y = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = f p(f), p our own
 * Chebyshev fit of degree 8 (error 1e-8). Only operations that IEEE 754 rounds, fused where it says fma and nowhere
 * else: every device gives the same bits. */
#define EL_LOG1P_OVER_F(real, fma_)                                                                                    \
    p = (real)0.0874394535;                                                                                            \
    p = fma_(p, f, (real)-0.143773306);                                                                                \
    p = fma_(p, f, (real)0.149490955);                                                                                 \
    p = fma_(p, f, (real)-0.16560696);                                                                                 \
    p = fma_(p, f, (real)0.199569775);                                                                                 \
    p = fma_(p, f, (real)-0.250021535);                                                                                \
    p = fma_(p, f, (real)0.333341833);                                                                                 \
    p = fma_(p, f, (real)-0.49999987);                                                                                 \
    p = fma_(p, f, (real)0.999999974);

EL_FN float el_minus_log_f32(float y)
{
    uint32_t b = f32_bits(y);
    int e = (int32_t)(b - 0x3f3504f3u) >> 23;
    float f = f32_of_bits(b - ((uint32_t)e << 23)) - 1.0f, p;

    EL_LOG1P_OVER_F(float, fmaf)
    return -fmaf((float)e, 0.693147181f, f * p);
}

EL_FN double el_minus_log_f64(double y)
{
    uint64_t b = el_f64_bits(y);
    int e = (int)((int64_t)(b - 0x3fe6a09e667f3bcdull) >> 52);
    double f = el_bits_f64(b - ((uint64_t)(int64_t)e << 52)) - 1.0, p;

    EL_LOG1P_OVER_F(double, fma)
    return -fma((double)e, 0.6931471805599453, f * p);
}

/* The inverse of erf(x) / x as a polynomial in w = -log(1 - x^2): M. Giles, "Approximating the erfinv function", GPU
 * Computing Gems Jade, 2011, single precision (relative error about 3e-7, also where it is evaluated in double). */
#define EL_ERFINV(real, w, root_, fma_)                                                                                \
    if (w < (real)5) {                                                                                                 \
        w = w - (real)2.5;                                                                                             \
        p = (real)2.81022636e-08;                                                                                      \
        p = fma_(p, w, (real)3.43273939e-07);                                                                          \
        p = fma_(p, w, (real)-3.5233877e-06);                                                                          \
        p = fma_(p, w, (real)-4.39150654e-06);                                                                         \
        p = fma_(p, w, (real)0.00021858087);                                                                           \
        p = fma_(p, w, (real)-0.00125372503);                                                                          \
        p = fma_(p, w, (real)-0.00417768164);                                                                          \
        p = fma_(p, w, (real)0.246640727);                                                                             \
        p = fma_(p, w, (real)1.50140941);                                                                              \
    } else {                                                                                                           \
        w = root_(w) - (real)3;                                                                                        \
        p = (real)-0.000200214257;                                                                                     \
        p = fma_(p, w, (real)0.000100950558);                                                                          \
        p = fma_(p, w, (real)0.00134934322);                                                                           \
        p = fma_(p, w, (real)-0.00367342844);                                                                          \
        p = fma_(p, w, (real)0.00573950773);                                                                           \
        p = fma_(p, w, (real)-0.0076224613);                                                                           \
        p = fma_(p, w, (real)0.00943887047);                                                                           \
        p = fma_(p, w, (real)1.00167406);                                                                              \
        p = fma_(p, w, (real)2.83297682);                                                                              \
    }

/* N(0,1) by inversion: the top bit is the sign, the rest q in (0, 1] the probability of a larger magnitude. */
EL_FN float el_normal_f32(uint32_t x)
{
    float q = ((float)(x & 0x7fffffff) + 0.5f) * 0x1p-31f, w = el_minus_log_f32(q * (2.0f - q)), p, z;

    EL_ERFINV(float, w, sqrtf, fmaf)
    z = 1.41421356f * (p * (1.0f - q));
    return x >> 31 ? -z : z;
}

EL_FN double el_normal_f64(uint32_t hi, uint32_t lo)
{
    double q = ((double)((uint64_t)(hi & 0x7fffffff) << 21 | lo >> 11) + 0.5) * 0x1p-52;
    double w = el_minus_log_f64(q * (2.0 - q)), p, z;

    EL_ERFINV(double, w, sqrt, fma)
    z = 1.4142135623730951 * (p * (1.0 - q));
    return hi >> 31 ? -z : z;
}

enum { EL_NORMAL, EL_UNIFORM, EL_SIGNED, EL_LARGE, EL_STRUCTURED };

EL_FN float el_fill_f32(int regime, uint32_t x)
{
    switch (regime) {
    case EL_UNIFORM: return el_uniform_f32(x);
    case EL_SIGNED: return el_uniform_f32(x) * 6.0f - 3.0f;
    case EL_LARGE: return el_normal_f32(x) * 100.0f;
    default: return el_normal_f32(x);
    }
}

EL_FN double el_fill_f64(int regime, uint32_t hi, uint32_t lo)
{
    switch (regime) {
    case EL_UNIFORM: return el_uniform_f64(hi, lo);
    case EL_SIGNED: return el_uniform_f64(hi, lo) * 6.0 - 3.0;
    case EL_LARGE: return el_normal_f64(hi, lo) * 100.0;
    default: return el_normal_f64(hi, lo);
    }
}

/* runner/reference.py: (i * step + floor(i / 13) * 5 + shift) mod 17 - 8. Its period is 221 = 13 * 17: r = i mod 221.
 */
EL_FN int el_structured(int r, int step, int shift)
{
    return (r * step + r / 13 * 5 + shift) % 17 - 8;
}

/* ---- checksums ---- */

/* The 8-byte word number i, mixed with its place; one-to-one for every i. Summed modulo 2^64, in any order: what
 * eval/perf/timing.h calls a commitment. runner/timing.py has the same formula, for torch's operators. */
EL_FN uint64_t el_mix(uint64_t word, uint64_t i)
{
    uint64_t h = (word ^ i * 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;

    h ^= h >> 32;
    return h * 0x94D049BB133111EBull;
}

/* Bytes [at, at + 8) of the n at p as a little-endian word, padded with zeros from byte n on; any alignment. */
EL_FN uint64_t el_word(const uint8_t *p, int64_t at, int64_t n)
{
    uint64_t word = 0;

    if (n - at >= 8)
        memcpy(&word, p + at, 8);
    else
        memcpy(&word, p + at, (size_t)(n - at));
    return word;
}

#endif
