/* half.h - IEEE half precision and bfloat16 as 16 bits, float8_e4m3fn and float8_e5m2 as 8, to and from float. Inline,
 * since it is asked once per element, and the same text for the host and for the judge's GPU kernels, so that both give
 * the same bits. Plain C11 and CUDA C++. */
#ifndef MC_HALF_H
#define MC_HALF_H

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(__MUSACC__)
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif
#define HALF_FN static __host__ __device__ __forceinline__
#else
#define HALF_FN static inline
#endif

HALF_FN uint32_t f32_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    return u;
}

HALF_FN float f32_of_bits(uint32_t u)
{
    float x;

    memcpy(&x, &u, 4);
    return x;
}

/* Exact; infinity and NaN keep sign and payload. Subnormals are shifted into place by a multiplication. */
HALF_FN float f16_to_f32(uint16_t h)
{
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(h)); /* one instruction, the same value */
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;

    if (rest >= 0x0f800000u)
        return f32_of_bits(sign | 0x7f800000u | (rest & 0x007fffffu));
    return f32_of_bits(sign | f32_bits(f32_of_bits(rest) * 0x1p112f));
#endif
}

/* To nearest, ties to even: 65520 and above become infinity; NaN stays NaN. */
HALF_FN uint16_t f16_from_f32(float x)
{
    uint32_t u = f32_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;

    if (a >= 0x477ff000u)
        return (uint16_t)(sign | (a > 0x7f800000u ? 0x7e00u : 0x7c00u));
    if (a < 0x38800000u) /* subnormal: adding 0.5 leaves round(|x| * 2^24) in the last bits */
        return (uint16_t)(sign | (f32_bits(f32_of_bits(a) + 0.5f) - 0x3f000000u));
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | ((a - 0x38000000u) >> 13));
}

/* Exact. */
HALF_FN float bf16_to_f32(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

/* To nearest, ties to even; NaN stays NaN. */
HALF_FN uint16_t bf16_from_f32(float x)
{
    uint32_t u = f32_bits(x);

    if ((u & 0x7fffffff) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40); /* quiet: rounding could turn it into infinity */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* ---- 8 bits: the OCP's E4M3 without infinities, and E5M2 (arXiv 2209.05433) ---- */

/* Exact. E5M2 is the upper half of IEEE half precision. */
HALF_FN float f8e5_to_f32(uint8_t b)
{
    return f16_to_f32((uint16_t)(b << 8));
}

/* Exact; the one pattern of all ones is NaN. */
HALF_FN float f8e4_to_f32(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24, rest = (uint32_t)(b & 0x7f);

    if (rest == 0x7f)
        return f32_of_bits(sign | 0x7fc00000u);
    return f32_of_bits(sign | f32_bits(f32_of_bits(rest << 20) * 0x1p120f));
}

/* To nearest, ties to even: 61440 and above become infinity; NaN stays NaN. */
HALF_FN uint8_t f8e5_from_f32(float x)
{
    uint32_t u = f32_bits(x), sign = u >> 24 & 0x80, a = u & 0x7fffffff;

    if (a >= 0x47700000u)
        return (uint8_t)(sign | (a > 0x7f800000u ? 0x7fu : 0x7cu));
    if (a < 0x38800000u) /* subnormal: adding 128 leaves round(|x| * 2^16) in the last bits */
        return (uint8_t)(sign | (f32_bits(f32_of_bits(a) + 128.0f) - 0x43000000u));
    a += 0xfffff + (a >> 21 & 1);
    return (uint8_t)(sign | ((a - 0x38000000u) >> 21));
}

/* To nearest, ties to even: above 464 there is NaN alone, as torch has it. */
HALF_FN uint8_t f8e4_from_f32(float x)
{
    uint32_t u = f32_bits(x), sign = u >> 24 & 0x80, a = u & 0x7fffffff;

    if (a > 0x43e80000u)
        return (uint8_t)(sign | 0x7fu);
    if (a < 0x3c800000u) /* subnormal: adding 16384 leaves round(|x| * 2^9) in the last bits */
        return (uint8_t)(sign | (f32_bits(f32_of_bits(a) + 16384.0f) - 0x46800000u));
    a += 0x7ffff + (a >> 20 & 1);
    return (uint8_t)(sign | ((a - 0x3c000000u) >> 20));
}

#endif
