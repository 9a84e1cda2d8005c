/* simd.h - one vector type for one instruction set. The operator files are written once against it and compiled once
 * per instruction set by isa_*.c, which define ISA_NAME and VL (floats in a register) before including them.
 * GCC/Clang vector extensions only: no intrinsics, so aarch64 and plain x86-64 come for free. */
#ifndef MC_SIMD_H
#define MC_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef float vf_u __attribute__((vector_size(4 * VL), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#if VL == 16
#define MR 14 /* rows of a GEMM tile: MR x 2 accumulators, 2 of B and a broadcast fill the register file */
#else
#define MR 6
#endif
#define NV 2
#define NR (NV * VL) /* columns of a GEMM tile and of a packed panel */

INLINE vf v_load(const float *p) { return *(const vf_u *)p; }
INLINE void v_store(float *p, vf x) { *(vf_u *)p = x; }
INLINE vf v_splat(float x) { return x - (vf){0}; }
INLINE vf v_select(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE vf v_max(vf a, vf b) { return v_select(a > b, a, b); }
INLINE vf v_min(vf a, vf b) { return v_select(a < b, a, b); }

/* Sum of the lanes, always in the same tree order. */
INLINE float v_sum(vf x)
{
    float t[VL];

    v_store(t, x);
    for (int w = VL / 2; w; w /= 2)
        for (int i = 0; i < w; i++)
            t[i] += t[i + w];
    return t[0];
}

/* e^x, error below 2 ulp on [-87, 88], clamped outside. Range reduction by Cody and Waite, polynomial of Cephes
 * expf. */
INLINE vf v_exp(vf x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vf n, r, p;
    vi k;

    x = v_min(v_max(x, v_splat(-87.0f)), v_splat(88.0f));
    n = (x * 1.44269504088896341f + magic) - magic;
    r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    k = __builtin_convertvector(n, vi);
    return (vf)((vi)p + (k << 23));
}

#endif
