/* small_float.h - what half and bfloat16 share. Arithmetic is done in float and rounded once per operation, which for
 * + - * / and sqrt gives the correctly rounded result of the small format. SIMT_SMALL_* generate the functions for a
 * scalar type H and its pair H2, given the two conversions simt_widen(H) and simt_narrow_##TAG(float). */
#ifndef SIMT_SMALL_FLOAT_H
#define SIMT_SMALL_FLOAT_H

#include "cuda_runtime.h"

/* Converting constructors and operators of the scalar type: absent under torch's default macros. */
#define SIMT_SMALL_CONVERSIONS(H, NARROW, WIDEN)                                                                      \
    H(float v) : x(NARROW(v)) {}                                                                                      \
    H(double v) : x(NARROW((float)v)) {}                                                                              \
    H(int v) : x(NARROW((float)v)) {}                                                                                 \
    H(unsigned v) : x(NARROW((float)v)) {}                                                                            \
    H(long v) : x(NARROW((float)v)) {}                                                                                \
    H(unsigned long v) : x(NARROW((float)v)) {}                                                                       \
    H(long long v) : x(NARROW((float)v)) {}                                                                           \
    H(unsigned long long v) : x(NARROW((float)v)) {}                                                                  \
    H(short v) : x(NARROW((float)v)) {}                                                                               \
    H(unsigned short v) : x(NARROW((float)v)) {}                                                                      \
    H &operator=(float v) { x = NARROW(v); return *this; }                                                            \
    H &operator=(double v) { x = NARROW((float)v); return *this; }                                                    \
    H &operator=(int v) { x = NARROW((float)v); return *this; }                                                       \
    operator float() const { return WIDEN(x); }                                                                       \
    explicit operator double() const { return WIDEN(x); }                                                             \
    explicit operator int() const { return __float2int_rz(WIDEN(x)); }                                                \
    explicit operator unsigned() const { return __float2uint_rz(WIDEN(x)); }                                          \
    explicit operator long long() const { return __float2ll_rz(WIDEN(x)); }                                           \
    explicit operator bool() const { return (x & 0x7fff) != 0; }

#define SIMT_SMALL_UNARY(NAME, H, H2, MAKE, EXPR)                                                                     \
    SIMT_INLINE H NAME(H a_) { float a = simt_widen(a_); return MAKE(EXPR); }
#define SIMT_SMALL_BINARY(NAME, H, H2, MAKE, EXPR)                                                                    \
    SIMT_INLINE H NAME(H a_, H b_) { float a = simt_widen(a_), b = simt_widen(b_); return MAKE(EXPR); }               \
    SIMT_INLINE H2 NAME##2(H2 a, H2 b) { return H2{NAME(a.x, b.x), NAME(a.y, b.y)}; }
#define SIMT_SMALL_COMPARE(NAME, H, H2, MAKE, EXPR)                                                                   \
    SIMT_INLINE bool NAME(H a_, H b_) { float a = simt_widen(a_), b = simt_widen(b_); return EXPR; }                  \
    SIMT_INLINE H2 NAME##2(H2 a, H2 b)                                                                                \
    {                                                                                                                 \
        return H2{MAKE(NAME(a.x, b.x) ? 1.0f : 0.0f), MAKE(NAME(a.y, b.y) ? 1.0f : 0.0f)};                            \
    }
#define SIMT_SMALL_MATH(F, H, H2, MAKE, EXPR)                                                                         \
    SIMT_INLINE H h##F(H v) { float a = simt_widen(v); return MAKE(EXPR); }                                           \
    SIMT_INLINE H2 h2##F(H2 v) { return H2{h##F(v.x), h##F(v.y)}; }

/* NaN-ignoring, as the hardware's min and max. */
SIMT_INLINE float simt_fmin(float a, float b) { return a != a ? b : b != b ? a : a < b ? a : b; }
SIMT_INLINE float simt_fmax(float a, float b) { return a != a ? b : b != b ? a : a > b ? a : b; }
SIMT_INLINE float simt_sat(float a) { return __saturatef(a); }

#define SIMT_SMALL_FUNCTIONS(H, H2, MAKE)                                                                             \
    SIMT_SMALL_BINARY(__hadd, H, H2, MAKE, a + b)                                                                     \
    SIMT_SMALL_BINARY(__hsub, H, H2, MAKE, a - b)                                                                     \
    SIMT_SMALL_BINARY(__hmul, H, H2, MAKE, a * b)                                                                     \
    SIMT_SMALL_BINARY(__hmax, H, H2, MAKE, simt_fmax(a, b))                                                           \
    SIMT_SMALL_BINARY(__hmin, H, H2, MAKE, simt_fmin(a, b))                                                           \
    SIMT_INLINE H __hdiv(H a, H b) { return MAKE(simt_widen(a) / simt_widen(b)); }                                    \
    SIMT_INLINE H2 __h2div(H2 a, H2 b) { return H2{__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }                             \
    SIMT_INLINE H __hadd_rn(H a, H b) { return __hadd(a, b); }                                                        \
    SIMT_INLINE H __hsub_rn(H a, H b) { return __hsub(a, b); }                                                        \
    SIMT_INLINE H __hmul_rn(H a, H b) { return __hmul(a, b); }                                                        \
    SIMT_INLINE H __hadd_sat(H a, H b) { return MAKE(simt_sat(simt_widen(a) + simt_widen(b))); }                      \
    SIMT_INLINE H __hsub_sat(H a, H b) { return MAKE(simt_sat(simt_widen(a) - simt_widen(b))); }                      \
    SIMT_INLINE H __hmul_sat(H a, H b) { return MAKE(simt_sat(simt_widen(a) * simt_widen(b))); }                      \
    SIMT_INLINE H __hfma(H a, H b, H c)                                                                               \
    {                                                                                                                 \
        return MAKE((float)((double)simt_widen(a) * simt_widen(b) + simt_widen(c)));                                  \
    }                                                                                                                 \
    SIMT_INLINE H __hfma_sat(H a, H b, H c)                                                                           \
    {                                                                                                                 \
        return MAKE(simt_sat((float)((double)simt_widen(a) * simt_widen(b) + simt_widen(c))));                        \
    }                                                                                                                 \
    SIMT_INLINE H2 __hfma2_sat(H2 a, H2 b, H2 c) { return H2{__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; }  \
    SIMT_INLINE H2 __hadd2_sat(H2 a, H2 b) { return H2{__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)}; }                 \
    SIMT_INLINE H2 __hsub2_sat(H2 a, H2 b) { return H2{__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)}; }                 \
    SIMT_INLINE H2 __hmul2_sat(H2 a, H2 b) { return H2{__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)}; }                 \
    SIMT_INLINE H2 __hadd2_rn(H2 a, H2 b) { return __hadd2(a, b); }                                                   \
    SIMT_INLINE H2 __hsub2_rn(H2 a, H2 b) { return __hsub2(a, b); }                                                   \
    SIMT_INLINE H2 __hmul2_rn(H2 a, H2 b) { return __hmul2(a, b); }                                                   \
    SIMT_INLINE H __hmax_nan(H a, H b) { return simt_widen(a) != simt_widen(a) ? a : simt_widen(b) != simt_widen(b) \
                                         ? b : __hmax(a, b); } \
    SIMT_INLINE H __hmin_nan(H a, H b) { return simt_widen(a) != simt_widen(a) ? a : simt_widen(b) != simt_widen(b) \
                                         ? b : __hmin(a, b); } \
    SIMT_INLINE H2 __hmax2_nan(H2 a, H2 b) { return H2{__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; }                 \
    SIMT_INLINE H2 __hmin2_nan(H2 a, H2 b) { return H2{__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; }                 \
    SIMT_INLINE H __hfma_relu(H a, H b, H c) { H r = __hfma(a, b, c); return simt_widen(r) > 0 ? r : MAKE(0.0f); }     \
    SIMT_INLINE H2 __hfma2_relu(H2 a, H2 b, \
                                H2 c) { return H2{__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; } \
    SIMT_INLINE H2 __hfma2(H2 a, H2 b, H2 c) { return H2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }             \
    SIMT_INLINE H __hneg(H a) { return MAKE(-simt_widen(a)); }                                                        \
    SIMT_INLINE H __habs(H a) { return MAKE(__builtin_fabsf(simt_widen(a))); }                                        \
    SIMT_INLINE H2 __hneg2(H2 a) { return H2{__hneg(a.x), __hneg(a.y)}; }                                             \
    SIMT_INLINE H2 __habs2(H2 a) { return H2{__habs(a.x), __habs(a.y)}; }                                             \
    SIMT_SMALL_COMPARE(__heq, H, H2, MAKE, a == b)                                                                    \
    SIMT_SMALL_COMPARE(__hne, H, H2, MAKE, a < b || a > b)                                                            \
    SIMT_SMALL_COMPARE(__hlt, H, H2, MAKE, a < b)                                                                     \
    SIMT_SMALL_COMPARE(__hle, H, H2, MAKE, a <= b)                                                                    \
    SIMT_SMALL_COMPARE(__hgt, H, H2, MAKE, a > b)                                                                     \
    SIMT_SMALL_COMPARE(__hge, H, H2, MAKE, a >= b)                                                                    \
    SIMT_SMALL_COMPARE(__hneu, H, H2, MAKE, a != b)                                                                   \
    SIMT_INLINE bool __hbeq2(H2 a, H2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }                               \
    SIMT_INLINE bool __hblt2(H2 a, H2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }                               \
    SIMT_INLINE bool __hbgt2(H2 a, H2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }                               \
    SIMT_INLINE bool __hisnan(H a) { return simt_widen(a) != simt_widen(a); }                                         \
    SIMT_INLINE int __hisinf(H a)                                                                                     \
    {                                                                                                                 \
        float v = simt_widen(a);                                                                                      \
        return v == __builtin_inff() ? 1 : v == -__builtin_inff() ? -1 : 0;                                           \
    }                                                                                                                 \
    SIMT_SMALL_MATH(exp, H, H2, MAKE, expf(a))                                                                        \
    SIMT_SMALL_MATH(exp2, H, H2, MAKE, exp2f(a))                                                                      \
    SIMT_SMALL_MATH(exp10, H, H2, MAKE, exp10f(a))                                                                    \
    SIMT_SMALL_MATH(log, H, H2, MAKE, logf(a))                                                                        \
    SIMT_SMALL_MATH(log2, H, H2, MAKE, log2f(a))                                                                      \
    SIMT_SMALL_MATH(log10, H, H2, MAKE, log10f(a))                                                                    \
    SIMT_SMALL_MATH(sqrt, H, H2, MAKE, sqrtf(a))                                                                      \
    SIMT_SMALL_MATH(rsqrt, H, H2, MAKE, rsqrtf(a))                                                                    \
    SIMT_SMALL_MATH(rcp, H, H2, MAKE, 1.0f / a)                                                                       \
    SIMT_SMALL_MATH(sin, H, H2, MAKE, sinf(a))                                                                        \
    SIMT_SMALL_MATH(cos, H, H2, MAKE, cosf(a))                                                                        \
    SIMT_SMALL_MATH(tanh, H, H2, MAKE, tanhf(a))                                                                      \
    SIMT_SMALL_MATH(floor, H, H2, MAKE, floorf(a))                                                                    \
    SIMT_SMALL_MATH(ceil, H, H2, MAKE, ceilf(a))                                                                      \
    SIMT_SMALL_MATH(rint, H, H2, MAKE, rintf(a))                                                                      \
    SIMT_SMALL_MATH(trunc, H, H2, MAKE, truncf(a))

#define SIMT_SMALL_OPERATORS(H, MAKE)                                                                                 \
    SIMT_INLINE H operator+(const H &a, const H &b) { return __hadd(a, b); }                                          \
    SIMT_INLINE H operator-(const H &a, const H &b) { return __hsub(a, b); }                                          \
    SIMT_INLINE H operator*(const H &a, const H &b) { return __hmul(a, b); }                                          \
    SIMT_INLINE H operator/(const H &a, const H &b) { return __hdiv(a, b); }                                          \
    SIMT_INLINE H &operator+=(H &a, const H &b) { return a = __hadd(a, b); }                                          \
    SIMT_INLINE H &operator-=(H &a, const H &b) { return a = __hsub(a, b); }                                          \
    SIMT_INLINE H &operator*=(H &a, const H &b) { return a = __hmul(a, b); }                                          \
    SIMT_INLINE H &operator/=(H &a, const H &b) { return a = __hdiv(a, b); }                                          \
    SIMT_INLINE H operator+(const H &a) { return a; }                                                                 \
    SIMT_INLINE H operator-(const H &a) { return __hneg(a); }                                                         \
    SIMT_INLINE H &operator++(H &a) { return a = MAKE(simt_widen(a) + 1.0f); }                                        \
    SIMT_INLINE H &operator--(H &a) { return a = MAKE(simt_widen(a) - 1.0f); }                                        \
    SIMT_INLINE bool operator==(const H &a, const H &b) { return __heq(a, b); }                                       \
    SIMT_INLINE bool operator!=(const H &a, const H &b) { return __hneu(a, b); }                                      \
    SIMT_INLINE bool operator<(const H &a, const H &b) { return __hlt(a, b); }                                        \
    SIMT_INLINE bool operator>(const H &a, const H &b) { return __hgt(a, b); }                                        \
    SIMT_INLINE bool operator<=(const H &a, const H &b) { return __hle(a, b); }                                       \
    SIMT_INLINE bool operator>=(const H &a, const H &b) { return __hge(a, b); }

#define SIMT_SMALL_OPERATORS2(H2)                                                                                     \
    SIMT_INLINE H2 operator+(const H2 &a, const H2 &b) { return __hadd2(a, b); }                                      \
    SIMT_INLINE H2 operator-(const H2 &a, const H2 &b) { return __hsub2(a, b); }                                      \
    SIMT_INLINE H2 operator*(const H2 &a, const H2 &b) { return __hmul2(a, b); }                                      \
    SIMT_INLINE H2 operator/(const H2 &a, const H2 &b) { return __h2div(a, b); }                                      \
    SIMT_INLINE H2 &operator+=(H2 &a, const H2 &b) { return a = __hadd2(a, b); }                                      \
    SIMT_INLINE H2 &operator-=(H2 &a, const H2 &b) { return a = __hsub2(a, b); }                                      \
    SIMT_INLINE H2 &operator*=(H2 &a, const H2 &b) { return a = __hmul2(a, b); }                                      \
    SIMT_INLINE H2 operator-(const H2 &a) { return __hneg2(a); }                                                      \
    SIMT_INLINE bool operator==(const H2 &a, const H2 &b) { return __hbeq2(a, b); }

/* Warp shuffles go through the integer of the same size. */
#define SIMT_SMALL_SHUFFLE(NAME, H, BITS, ARG)                                                                        \
    SIMT_INLINE H NAME(simt_mask_t m, H v, ARG k, int w = warpSize)                                                   \
    {                                                                                                                 \
        return __builtin_bit_cast(H, (BITS)NAME(m, (unsigned)__builtin_bit_cast(BITS, v), k, w));                     \
    }
#define SIMT_SMALL_SHUFFLES(H, BITS)                                                                                  \
    SIMT_SMALL_SHUFFLE(__shfl_sync, H, BITS, int)                                                                     \
    SIMT_SMALL_SHUFFLE(__shfl_up_sync, H, BITS, unsigned)                                                             \
    SIMT_SMALL_SHUFFLE(__shfl_down_sync, H, BITS, unsigned)                                                           \
    SIMT_SMALL_SHUFFLE(__shfl_xor_sync, H, BITS, int)

#endif
