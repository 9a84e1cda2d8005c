/* cuda_fp16.h - half and half2. Operators and implicit conversions disappear under __CUDA_NO_HALF_OPERATORS__,
 * __CUDA_NO_HALF2_OPERATORS__ and __CUDA_NO_HALF_CONVERSIONS__, which torch's load_inline passes to nvcc. */
#ifndef SIMT_CUDA_FP16_H
#define SIMT_CUDA_FP16_H

#include "simt/small_float.h"

#if defined(__clang__) /* before 15 it has no half type on x86-64 */
unsigned short simt_narrow_f16(float v) SIMT_SYM("narrow_f16");
float simt_widen_f16(unsigned short x) SIMT_SYM("widen_f16");
#else
#if defined(__aarch64__)
typedef __fp16 simt_f16;
#else
typedef _Float16 simt_f16;
#endif
SIMT_INLINE unsigned short simt_narrow_f16(float v) { return __builtin_bit_cast(unsigned short, (simt_f16)v); }
SIMT_INLINE float simt_widen_f16(unsigned short x) { return (float)__builtin_bit_cast(simt_f16, x); }
#endif

struct __half_raw {
    unsigned short x;
};

struct __align__(2) __half {
    unsigned short x;

    __half() = default;
    constexpr __half(const __half_raw &r) : x(r.x) {}
    operator __half_raw() const { return __half_raw{x}; }
#ifndef __CUDA_NO_HALF_CONVERSIONS__
    SIMT_SMALL_CONVERSIONS(__half, simt_narrow_f16, simt_widen_f16)
#endif
};

struct __align__(4) __half2 {
    __half x, y;

    __half2() = default;
    constexpr __half2(const __half &a, const __half &b) : x(a), y(b) {}
};

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half nv_half;
typedef __half2 nv_half2;

SIMT_INLINE float simt_widen(__half h) { return simt_widen_f16(h.x); }
SIMT_INLINE __half __float2half(float v) { return __half(__half_raw{simt_narrow_f16(v)}); }
SIMT_INLINE __half __float2half_rn(float v) { return __float2half(v); }
SIMT_INLINE __half __float2half_rz(float v)
{
    __half h = __float2half(v);

    if (__builtin_fabsf(simt_widen(h)) > __builtin_fabsf(v))
        h.x--; /* one step towards zero; infinity becomes the largest number */
    return h;
}
SIMT_INLINE __half __double2half(double v) { return __float2half((float)v); }
SIMT_INLINE float __half2float(__half h) { return simt_widen(h); }
SIMT_INLINE __half __int2half_rn(int v) { return __float2half((float)v); }
SIMT_INLINE __half __uint2half_rn(unsigned v) { return __float2half((float)v); }
SIMT_INLINE __half __ll2half_rn(long long v) { return __float2half((float)v); }
SIMT_INLINE __half __short2half_rn(short v) { return __float2half((float)v); }
SIMT_INLINE __half __ushort2half_rn(unsigned short v) { return __float2half((float)v); }
SIMT_INLINE int __half2int_rn(__half h) { return __float2int_rn(simt_widen(h)); }
SIMT_INLINE int __half2int_rz(__half h) { return __float2int_rz(simt_widen(h)); }
SIMT_INLINE int __half2int_ru(__half h) { return __float2int_ru(simt_widen(h)); }
SIMT_INLINE int __half2int_rd(__half h) { return __float2int_rd(simt_widen(h)); }
SIMT_INLINE unsigned __half2uint_rn(__half h) { return __float2uint_rn(simt_widen(h)); }
SIMT_INLINE unsigned __half2uint_rz(__half h) { return __float2uint_rz(simt_widen(h)); }
SIMT_INLINE long long __half2ll_rz(__half h) { return __float2ll_rz(simt_widen(h)); }
SIMT_INLINE short __half2short_rn(__half h) { return (short)__float2int_rn(simt_widen(h)); }
SIMT_INLINE short __half_as_short(__half h) { return (short)h.x; }
SIMT_INLINE unsigned short __half_as_ushort(__half h) { return h.x; }
SIMT_INLINE __half __short_as_half(short v) { return __half(__half_raw{(unsigned short)v}); }
SIMT_INLINE __half __ushort_as_half(unsigned short v) { return __half(__half_raw{v}); }

SIMT_INLINE __half2 make_half2(__half a, __half b) { return __half2(a, b); }
SIMT_INLINE __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
SIMT_INLINE __half2 __half2half2(__half a) { return __half2(a, a); }
SIMT_INLINE __half2 __float2half2_rn(float v) { return __half2half2(__float2half(v)); }
SIMT_INLINE __half2 __floats2half2_rn(float a, float b) { return __half2(__float2half(a), __float2half(b)); }
SIMT_INLINE __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
SIMT_INLINE float2 __half22float2(__half2 v) { return make_float2(simt_widen(v.x), simt_widen(v.y)); }
SIMT_INLINE float __low2float(__half2 v) { return simt_widen(v.x); }
SIMT_INLINE float __high2float(__half2 v) { return simt_widen(v.y); }
SIMT_INLINE __half __low2half(__half2 v) { return v.x; }
SIMT_INLINE __half __high2half(__half2 v) { return v.y; }
SIMT_INLINE __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
SIMT_INLINE __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
SIMT_INLINE __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
SIMT_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
SIMT_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }

SIMT_SMALL_FUNCTIONS(__half, __half2, __float2half)
SIMT_SMALL_SHUFFLES(__half, unsigned short)
SIMT_SMALL_SHUFFLES(__half2, unsigned)
#ifndef __CUDA_NO_HALF_OPERATORS__
SIMT_SMALL_OPERATORS(__half, __float2half)
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
SIMT_SMALL_OPERATORS2(__half2)
#endif

__half atomicAdd(__half *p, __half v) SIMT_SYM("atomic_add_f16");
__half2 atomicAdd(__half2 *p, __half2 v) SIMT_SYM("atomic_add_f16x2");

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00u)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFu)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000u)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00u)

#endif
