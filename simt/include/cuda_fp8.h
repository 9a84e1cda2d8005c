/* cuda_fp8.h - 8-bit floating point: e4m3 and e5m2, their pairs and fours. Values too large become the largest
 * number, as __NV_SATFINITE asks for and as the classes' constructors do. */
#ifndef SIMT_CUDA_FP8_H
#define SIMT_CUDA_FP8_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

SIMT_INLINE __nv_fp8_storage_t __nv_cvt_float_to_fp8(float v, __nv_saturation_t sat, __nv_fp8_interpretation_t kind)
{
    if (sat == __NV_NOSAT && kind == __NV_E4M3 && __builtin_fabsf(v) > 464.0f)
        return (__nv_fp8_storage_t)(__builtin_signbit(v) ? 0xff : 0x7f);
    if (sat == __NV_NOSAT && kind == __NV_E5M2 && __builtin_fabsf(v) >= 61440.0f)
        return (__nv_fp8_storage_t)(__builtin_signbit(v) ? 0xfc : 0x7c);
    return kind == __NV_E4M3 ? simt::ptx::f32_fp8<4, 3>(v) : simt::ptx::f32_fp8<5, 2>(v);
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_double_to_fp8(double v, __nv_saturation_t s, __nv_fp8_interpretation_t k)
{
    return __nv_cvt_float_to_fp8((float)v, s, k);
}
SIMT_INLINE float simt_fp8_float(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind)
{
    return kind == __NV_E4M3 ? simt::ptx::fp8_f32<4, 3>(x) : simt::ptx::fp8_f32<5, 2>(x);
}
SIMT_INLINE __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t k)
{
    return __half_raw{simt_narrow_f16(simt_fp8_float(x, k))};
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw h, __nv_saturation_t s, __nv_fp8_interpretation_t k)
{
    return __nv_cvt_float_to_fp8(simt_widen_f16(h.x), s, k);
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw h, __nv_saturation_t s,
                                                           __nv_fp8_interpretation_t k)
{
    return __nv_cvt_float_to_fp8(simt_widen_bf16(h.x), s, k);
}
SIMT_INLINE __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t s, __nv_fp8_interpretation_t k)
{
    return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(v.x, s, k) | __nv_cvt_float_to_fp8(v.y, s, k) << 8);
}
struct __half2_raw {
    unsigned short x, y;
    operator __half2() const { return __half2(__half(__half_raw{x}), __half(__half_raw{y})); }
};
SIMT_INLINE __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t k)
{
    return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, k).x,
                       __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), k).x};
}

#define SIMT_FP8(NAME, KIND)                                                                                          \
    struct __nv_fp8_##NAME {                                                                                          \
        __nv_fp8_storage_t __x;                                                                                       \
        __nv_fp8_##NAME() = default;                                                                                  \
        explicit __nv_fp8_##NAME(float v) : __x(__nv_cvt_float_to_fp8(v, __NV_SATFINITE, KIND)) {}                    \
        explicit __nv_fp8_##NAME(double v) : __nv_fp8_##NAME((float)v) {}                                             \
        explicit __nv_fp8_##NAME(int v) : __nv_fp8_##NAME((float)v) {}                                                \
        explicit __nv_fp8_##NAME(__half v) : __nv_fp8_##NAME(simt_widen(v)) {}                                        \
        explicit __nv_fp8_##NAME(__nv_bfloat16 v) : __nv_fp8_##NAME(simt_widen(v)) {}                                 \
        explicit operator float() const { return simt_fp8_float(__x, KIND); }                                         \
        explicit operator double() const { return simt_fp8_float(__x, KIND); }                                        \
        explicit operator __half() const { return __float2half(simt_fp8_float(__x, KIND)); }                          \
        explicit operator __nv_bfloat16() const { return __float2bfloat16(simt_fp8_float(__x, KIND)); }               \
    };                                                                                                                \
    struct __align__(2) __nv_fp8x2_##NAME {                                                                           \
        __nv_fp8x2_storage_t __x;                                                                                     \
        __nv_fp8x2_##NAME() = default;                                                                                \
        explicit __nv_fp8x2_##NAME(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, KIND)) {}              \
        explicit __nv_fp8x2_##NAME(__half2 v) : __nv_fp8x2_##NAME(__half22float2(v)) {}                               \
        explicit __nv_fp8x2_##NAME(__nv_bfloat162 v) : __nv_fp8x2_##NAME(__bfloat1622float2(v)) {}                    \
        explicit operator float2() const                                                                              \
        {                                                                                                             \
            return make_float2(simt_fp8_float((__nv_fp8_storage_t)__x, KIND),                                         \
                               simt_fp8_float((__nv_fp8_storage_t)(__x >> 8), KIND));                                 \
        }                                                                                                             \
        explicit operator __half2() const { return __float22half2_rn((float2)*this); }                                \
    };                                                                                                                \
    struct __align__(4) __nv_fp8x4_##NAME {                                                                           \
        __nv_fp8x4_storage_t __x;                                                                                     \
        __nv_fp8x4_##NAME() = default;                                                                                \
        explicit __nv_fp8x4_##NAME(float4 v)                                                                          \
            : __x(__nv_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __NV_SATFINITE, KIND) |                             \
                  (unsigned)__nv_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __NV_SATFINITE, KIND) << 16)              \
        {                                                                                                             \
        }                                                                                                             \
        explicit operator float4() const                                                                              \
        {                                                                                                             \
            return make_float4(simt_fp8_float((__nv_fp8_storage_t)__x, KIND),                                         \
                               simt_fp8_float((__nv_fp8_storage_t)(__x >> 8), KIND),                                  \
                               simt_fp8_float((__nv_fp8_storage_t)(__x >> 16), KIND),                                 \
                               simt_fp8_float((__nv_fp8_storage_t)(__x >> 24), KIND));                                \
        }                                                                                                             \
    };
SIMT_FP8(e4m3, __NV_E4M3)
SIMT_FP8(e5m2, __NV_E5M2)
#undef SIMT_FP8

#endif
