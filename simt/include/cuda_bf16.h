/* cuda_bf16.h - bfloat16 and its pair. Implicit conversions disappear under __CUDA_NO_BFLOAT16_CONVERSIONS__, which
 * torch's load_inline passes to nvcc, operators under __CUDA_NO_BFLOAT16_OPERATORS__. */
#ifndef SIMT_CUDA_BF16_H
#define SIMT_CUDA_BF16_H

#include "simt/small_float.h"

/* Round to nearest even; NaN stays NaN. */
SIMT_INLINE unsigned short simt_narrow_bf16(float v)
{
    unsigned b = __builtin_bit_cast(unsigned, v);

    if ((b & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (unsigned short)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
SIMT_INLINE float simt_widen_bf16(unsigned short x) { return __builtin_bit_cast(float, (unsigned)x << 16); }

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct __align__(2) __nv_bfloat16 {
    unsigned short x;

    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw &r) : x(r.x) {}
    operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{x}; }
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
    SIMT_SMALL_CONVERSIONS(__nv_bfloat16, simt_narrow_bf16, simt_widen_bf16)
#endif
};

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

SIMT_INLINE float simt_widen(__nv_bfloat16 h) { return simt_widen_bf16(h.x); }
SIMT_INLINE __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(__nv_bfloat16_raw{simt_narrow_bf16(v)}); }
SIMT_INLINE __nv_bfloat16 __float2bfloat16_rn(float v) { return __float2bfloat16(v); }
SIMT_INLINE __nv_bfloat16 __float2bfloat16_rz(float v)
{
    return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)(__builtin_bit_cast(unsigned, v) >> 16)});
}
SIMT_INLINE __nv_bfloat16 __double2bfloat16(double v) { return __float2bfloat16((float)v); }
SIMT_INLINE float __bfloat162float(__nv_bfloat16 h) { return simt_widen(h); }
SIMT_INLINE __nv_bfloat16 __int2bfloat16_rn(int v) { return __float2bfloat16((float)v); }
SIMT_INLINE __nv_bfloat16 __uint2bfloat16_rn(unsigned v) { return __float2bfloat16((float)v); }
SIMT_INLINE int __bfloat162int_rn(__nv_bfloat16 h) { return __float2int_rn(simt_widen(h)); }
SIMT_INLINE int __bfloat162int_rz(__nv_bfloat16 h) { return __float2int_rz(simt_widen(h)); }
SIMT_INLINE short __bfloat16_as_short(__nv_bfloat16 h) { return (short)h.x; }
SIMT_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.x; }
SIMT_INLINE __nv_bfloat16 __short_as_bfloat16(short v) { return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)v}); }
SIMT_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { return __nv_bfloat16(__nv_bfloat16_raw{v}); }

SIMT_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
SIMT_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
SIMT_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
SIMT_INLINE __nv_bfloat162 __float2bfloat162_rn(float v) { return __bfloat162bfloat162(__float2bfloat16(v)); }
SIMT_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return __nv_bfloat162(__float2bfloat16(a), __float2bfloat16(b));
}
SIMT_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
SIMT_INLINE float2 __bfloat1622float2(__nv_bfloat162 v) { return make_float2(simt_widen(v.x), simt_widen(v.y)); }
SIMT_INLINE float __low2float(__nv_bfloat162 v) { return simt_widen(v.x); }
SIMT_INLINE float __high2float(__nv_bfloat162 v) { return simt_widen(v.y); }
SIMT_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
SIMT_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
SIMT_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.x, v.x); }
SIMT_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.y); }

SIMT_SMALL_FUNCTIONS(__nv_bfloat16, __nv_bfloat162, __float2bfloat16)
SIMT_SMALL_SHUFFLES(__nv_bfloat16, unsigned short)
SIMT_SMALL_SHUFFLES(__nv_bfloat162, unsigned)
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
SIMT_SMALL_OPERATORS(__nv_bfloat16, __float2bfloat16)
SIMT_SMALL_OPERATORS2(__nv_bfloat162)
#endif

__nv_bfloat16 atomicAdd(__nv_bfloat16 *p, __nv_bfloat16 v) SIMT_SYM("atomic_add_bf16");
__nv_bfloat162 atomicAdd(__nv_bfloat162 *p, __nv_bfloat162 v) SIMT_SYM("atomic_add_bf16x2");

#endif
