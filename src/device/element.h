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

/* base/dtype.h's order; kernels cannot include it. Checked in judge_kernels.h. */
enum { EL_BOOL, EL_U8, EL_I8, EL_I16, EL_I32, EL_I64, EL_F16, EL_BF16, EL_F32, EL_F64, EL_C64, EL_C128,
       EL_F8E4, EL_F8E5 };

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

/* Element i of p as a double; of complex numbers part i. */
EL_FN double el_value(const void *p, int dtype, int64_t i)
{
    switch (dtype) {
    case EL_F16: return (double)f16_to_f32(((const uint16_t *)p)[i]);
    case EL_BF16: return (double)bf16_to_f32(((const uint16_t *)p)[i]);
    case EL_F8E4: return (double)f8e4_to_f32(((const uint8_t *)p)[i]);
    case EL_F8E5: return (double)f8e5_to_f32(((const uint8_t *)p)[i]);
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

/* An empty tally. */
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

/* True where a value that is not finite is as expected. */
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

/* Bits EL_* of how a wrong value g for o may follow from a first one g1 for o1: the same value, scaled or shifted. */
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
