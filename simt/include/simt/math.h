/* math.h - CUDA's math library on the C one. The fast intrinsics are as exact as their slow names: results lie within
 * the GPU's error bounds, not on its bits. */
#ifndef SIMT_MATH_H
#define SIMT_MATH_H

#include <math.h>
#include <stdlib.h>

#include "simt/device.h"

/* nvcc offers these at global scope for every arithmetic pair that C++ would find ambiguous. */
#define SIMT_MINMAX(T)                                                                                                \
    SIMT_INLINE constexpr T min(T a, T b) { return b < a ? b : a; }                                                   \
    SIMT_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
SIMT_MINMAX(int) SIMT_MINMAX(unsigned) SIMT_MINMAX(long) SIMT_MINMAX(unsigned long)
SIMT_MINMAX(long long) SIMT_MINMAX(unsigned long long)
#define SIMT_MINMAX2(R, A, B)                                                                                         \
    SIMT_INLINE constexpr R min(A a, B b) { return min((R)a, (R)b); }                                                 \
    SIMT_INLINE constexpr R max(A a, B b) { return max((R)a, (R)b); }                                                 \
    SIMT_INLINE constexpr R min(B a, A b) { return min((R)a, (R)b); }                                                 \
    SIMT_INLINE constexpr R max(B a, A b) { return max((R)a, (R)b); }
SIMT_MINMAX2(unsigned, int, unsigned)
SIMT_MINMAX2(unsigned long long, long long, unsigned long long)
SIMT_MINMAX2(unsigned long, long, unsigned long)
SIMT_INLINE float min(float a, float b) { return fminf(a, b); }
SIMT_INLINE float max(float a, float b) { return fmaxf(a, b); }
SIMT_INLINE double min(double a, double b) { return fmin(a, b); }
SIMT_INLINE double max(double a, double b) { return fmax(a, b); }
SIMT_INLINE double min(float a, double b) { return fmin(a, b); }
SIMT_INLINE double max(float a, double b) { return fmax(a, b); }
SIMT_INLINE double min(double a, float b) { return fmin(a, b); }
SIMT_INLINE double max(double a, float b) { return fmax(a, b); }
#undef SIMT_MINMAX
#undef SIMT_MINMAX2

SIMT_INLINE int umin(unsigned a, unsigned b) { return (int)min(a, b); }
SIMT_INLINE int umax(unsigned a, unsigned b) { return (int)max(a, b); }

/* ---- functions that C lacks ---- */
#define SIMT_PI 3.14159265358979323846
SIMT_INLINE float rsqrtf(float x) { return (float)(1.0 / ::sqrt((double)x)); }
SIMT_INLINE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
SIMT_INLINE float rsqrt(float x) { return rsqrtf(x); }
SIMT_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
SIMT_INLINE double rcbrt(double x) { return 1.0 / ::cbrt(x); }
SIMT_INLINE float sinpif(float x) { return (float)::sin(SIMT_PI * ::fmod((double)x, 2.0)); }
SIMT_INLINE float cospif(float x) { return (float)::cos(SIMT_PI * ::fmod((double)x, 2.0)); }
SIMT_INLINE double sinpi(double x) { return ::sin(SIMT_PI * ::fmod(x, 2.0)); }
SIMT_INLINE double cospi(double x) { return ::cos(SIMT_PI * ::fmod(x, 2.0)); }
SIMT_INLINE void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
SIMT_INLINE float normcdff(float x) { return (float)(0.5 * ::erfc(-(double)x * 0.70710678118654752440)); }
SIMT_INLINE double normcdf(double x) { return 0.5 * ::erfc(-x * 0.70710678118654752440); }
SIMT_INLINE float fdividef(float a, float b) { return a / b; }
SIMT_INLINE float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
SIMT_INLINE double rhypot(double a, double b) { return 1.0 / ::hypot(a, b); }
SIMT_INLINE float norm3df(float a, float b, float c)
{ return (float)::sqrt((double)a * a + (double)b * b + (double)c * c); }
SIMT_INLINE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
SIMT_INLINE float norm4df(float a, float b, float c, float d)
{
    return (float)::sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
double erfinv(double x) SIMT_SYM("erfinv");
SIMT_INLINE float erfinvf(float x) { return (float)erfinv((double)x); }
SIMT_INLINE double erfcinv(double x) { return erfinv(1.0 - x); }
SIMT_INLINE float erfcxf(float x) { return (float)(::exp((double)x * x) * ::erfc((double)x)); }
SIMT_INLINE double normcdfinv(double p) { return 1.41421356237309504880 * erfinv(2.0 * p - 1.0); }
SIMT_INLINE float normcdfinvf(float p) { return (float)normcdfinv((double)p); }

/* ---- fast intrinsics ---- */
/* glibc declares these names itself without exporting them. */
extern "C" {
float __logf(float) noexcept __asm__("logf");
float __log2f(float) noexcept __asm__("log2f");
float __log10f(float) noexcept __asm__("log10f");
/* Rounded to so many bits. The device's unit for tanh is told to give eleven; an H100's is off by 1.1e-5 at most. */
inline float simt_sixteen_bits(float x)
{
    return x != x ? x : __builtin_bit_cast(float, (__builtin_bit_cast(unsigned, x) + 0x80) & ~0xffu);
}
inline float __tanhf(float x) noexcept { return simt_sixteen_bits(::tanhf(x)); }
/* As the device makes them of its units for 2^x, lg x and sines: large arguments lose as many digits here. */
inline float __expf(float x) noexcept { return ::exp2f(x * 1.44269504f); }
inline float __exp10f(float x) noexcept { return ::exp2f(x * 3.32192809f); }
inline float __powf(float x, float y) noexcept { return ::exp2f(y * ::log2f(x)); }
inline float simt_turned(float x)
{
    float turns = x * 0.159154943f;

    return (turns - ::rintf(turns)) * 6.28318531f;
}
inline float __sinf(float x) noexcept { return ::sinf(simt_turned(x)); }
inline float __cosf(float x) noexcept { return ::cosf(simt_turned(x)); }
inline float __tanf(float x) noexcept { return __sinf(x) / __cosf(x); }
inline void __sincosf(float x, float *s, float *c) noexcept
{
    *s = __sinf(x);
    *c = __cosf(x);
}
}
SIMT_INLINE float __fdividef(float a, float b) { return a / b; }
SIMT_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
SIMT_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }

/* ---- arithmetic that is never contracted into a fused multiply-add ---- */
SIMT_INLINE float simt_keep(float x)
{
    __asm__("" : "+m"(x));
    return x;
}
SIMT_INLINE double simt_keep(double x)
{
    __asm__("" : "+m"(x));
    return x;
}
#define SIMT_ROUNDED(NAME, T, EXPR)                                                                                   \
    SIMT_INLINE T NAME##_rn EXPR SIMT_INLINE T NAME##_rz EXPR SIMT_INLINE T NAME##_ru EXPR SIMT_INLINE T NAME##_rd EXPR
SIMT_ROUNDED(__fadd, float, (float a, float b) { return simt_keep(a + b); })
SIMT_ROUNDED(__fsub, float, (float a, float b) { return simt_keep(a - b); })
SIMT_ROUNDED(__fmul, float, (float a, float b) { return simt_keep(a * b); })
SIMT_ROUNDED(__fdiv, float, (float a, float b) { return simt_keep(a / b); })
SIMT_ROUNDED(__frcp, float, (float a) { return simt_keep(1.0f / a); })
SIMT_ROUNDED(__fsqrt, float, (float a) { return simt_keep(sqrtf(a)); })
SIMT_ROUNDED(__fmaf, float, (float a, float b, float c) { return fmaf(a, b, c); })
SIMT_ROUNDED(__dadd, double, (double a, double b) { return simt_keep(a + b); })
SIMT_ROUNDED(__dsub, double, (double a, double b) { return simt_keep(a - b); })
SIMT_ROUNDED(__dmul, double, (double a, double b) { return simt_keep(a * b); })
SIMT_ROUNDED(__ddiv, double, (double a, double b) { return simt_keep(a / b); })
SIMT_ROUNDED(__drcp, double, (double a) { return simt_keep(1.0 / a); })
SIMT_ROUNDED(__dsqrt, double, (double a) { return simt_keep(::sqrt(a)); })
SIMT_ROUNDED(__fma, double, (double a, double b, double c) { return ::fma(a, b, c); })
#undef SIMT_ROUNDED

/* ---- conversions; float to integer saturates and sends NaN to 0, as the hardware does ---- */
template <class I> SIMT_INLINE I simt_to_int(double x)
{
    constexpr bool is_signed = (I)-1 < (I)0;
    constexpr double hi = (double)(is_signed ? (I)(((I)1 << (8 * sizeof(I) - 2)) - 1 + ((I)1 << (8 * sizeof(I) - 2)))
                                             : (I)-1);

    if (!(x == x))
        return sizeof(I) == 8 ? (I)((unsigned long long)1 << 63) : 0;
    if (x >= hi)
        return is_signed ? (I)(((I)1 << (8 * sizeof(I) - 2)) - 1 + ((I)1 << (8 * sizeof(I) - 2))) : (I)-1;
    if (is_signed ? x <= -hi - 1 : x <= 0)
        return is_signed ? (I)((unsigned long long)1 << (8 * sizeof(I) - 1)) : 0;
    return (I)x;
}
#define SIMT_TO_INT(NAME, F, I)                                                                                       \
    SIMT_INLINE I NAME##_rn(F x) { return simt_to_int<I>(::rint((double)x)); }                                        \
    SIMT_INLINE I NAME##_rz(F x) { return simt_to_int<I>((double)x); }                                                \
    SIMT_INLINE I NAME##_ru(F x) { return simt_to_int<I>(::ceil((double)x)); }                                        \
    SIMT_INLINE I NAME##_rd(F x) { return simt_to_int<I>(::floor((double)x)); }
SIMT_TO_INT(__float2int, float, int)
SIMT_TO_INT(__float2uint, float, unsigned)
SIMT_TO_INT(__float2ll, float, long long)
SIMT_TO_INT(__float2ull, float, unsigned long long)
SIMT_TO_INT(__double2int, double, int)
SIMT_TO_INT(__double2uint, double, unsigned)
SIMT_TO_INT(__double2ll, double, long long)
SIMT_TO_INT(__double2ull, double, unsigned long long)
#undef SIMT_TO_INT
#define SIMT_FROM_INT(NAME, I, F)                                                                                     \
    SIMT_INLINE F NAME##_rn(I x) { return (F)x; }                                                                     \
    SIMT_INLINE F NAME##_rz(I x) { return (F)x; }                                                                     \
    SIMT_INLINE F NAME##_ru(I x) { return (F)x; }                                                                     \
    SIMT_INLINE F NAME##_rd(I x) { return (F)x; }
SIMT_FROM_INT(__int2float, int, float)
SIMT_FROM_INT(__uint2float, unsigned, float)
SIMT_FROM_INT(__ll2float, long long, float)
SIMT_FROM_INT(__ull2float, unsigned long long, float)
SIMT_FROM_INT(__ll2double, long long, double)
SIMT_FROM_INT(__ull2double, unsigned long long, double)
SIMT_FROM_INT(__double2float, double, float)
#undef SIMT_FROM_INT
SIMT_INLINE double __int2double_rn(int x) { return x; }
SIMT_INLINE double __uint2double_rn(unsigned x) { return x; }

template <class To, class From> SIMT_INLINE To simt_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "reinterpreting needs equal sizes");
    return __builtin_bit_cast(To, x);
}
SIMT_INLINE int __float_as_int(float x) { return simt_bits<int>(x); }
SIMT_INLINE unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
SIMT_INLINE float __int_as_float(int x) { return simt_bits<float>(x); }
SIMT_INLINE float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
SIMT_INLINE long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
SIMT_INLINE double __longlong_as_double(long long x) { return simt_bits<double>(x); }
SIMT_INLINE int __double2hiint(double x) { return (int)(simt_bits<long long>(x) >> 32); }
SIMT_INLINE int __double2loint(double x) { return (int)simt_bits<long long>(x); }
SIMT_INLINE double __hiloint2double(int hi, int lo)
{
    return simt_bits<double>(((long long)hi << 32) | (unsigned)lo);
}

#endif
