/* half.h - IEEE half precision and bfloat16 as 16 bits, to and from float. Inline, since it is asked once per element,
 * and the same text for the host and for the judge's GPU kernels, so that both give the same bits. Plain C11 and
 * CUDA C++. */
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

#endif
