/* ptx.h - the instructions of inline PTX, as translate/ptx.c calls them: ::simt::ptx::NAME<types>(destination,
 * sources).
 *
 * Operands are whatever C++ objects the asm statement named; get() and put() move bits between them and the
 * instruction's type. Meanings: NVIDIA, "Parallel Thread Execution ISA". Instructions of a whole warp and those that
 * wait are in libsimt. */
#ifndef SIMT_PTX_H
#define SIMT_PTX_H

#include "simt/math.h"

extern "C" {
unsigned simt_to_shared(const void *p);   /* the address in the shared window */
void *simt_from_shared(unsigned long long address);
void simt_unsupported(const char *what);
unsigned simt_dynamic_smem(void);
unsigned simt_smid(void);
void simt_exit_thread(void);
/* Bits of A, then of B and C, as the instruction's registers hold them; D is written when all lanes have come. */
void simt_mma(int k, int in_bits, int a_type, int b_type, int c_type, const unsigned *abc, unsigned *d);
void simt_ldmatrix(const void *row, int n, int trans, unsigned *d);
void simt_stmatrix(void *row, int n, int trans, const unsigned *s);
void simt_async_copy(void *to, const void *from, unsigned bytes, unsigned read);
void simt_bulk_copy(void *to, const void *from, unsigned bytes);
void simt_async_commit(void);
void simt_async_wait(unsigned left);
void simt_bar(int id, int threads, int wait);
void simt_mbar_init(void *bar, unsigned count);
unsigned long long simt_mbar_arrive(void *bar, unsigned count, unsigned tx);
void simt_mbar_tx(void *bar, unsigned expected, unsigned done);
int simt_mbar_test(void *bar, unsigned long long state, int parity);
}

namespace simt {
namespace ptx {

/* ---- types: what a register of the type holds ---- */
#define SIMT_PTX_TYPE(NAME, T)                                                                                        \
    struct NAME {                                                                                                     \
        typedef T raw;                                                                                                \
    };
SIMT_PTX_TYPE(u8, unsigned char) SIMT_PTX_TYPE(s8, signed char) SIMT_PTX_TYPE(b8, unsigned char)
SIMT_PTX_TYPE(u16, unsigned short) SIMT_PTX_TYPE(s16, short) SIMT_PTX_TYPE(b16, unsigned short)
SIMT_PTX_TYPE(u32, unsigned) SIMT_PTX_TYPE(s32, int) SIMT_PTX_TYPE(b32, unsigned)
SIMT_PTX_TYPE(u64, unsigned long long) SIMT_PTX_TYPE(s64, long long) SIMT_PTX_TYPE(b64, unsigned long long)
SIMT_PTX_TYPE(f32, float) SIMT_PTX_TYPE(f64, double) SIMT_PTX_TYPE(tf32, unsigned) SIMT_PTX_TYPE(pred, bool)
SIMT_PTX_TYPE(f16, unsigned short) SIMT_PTX_TYPE(bf16, unsigned short)
SIMT_PTX_TYPE(f16x2, unsigned) SIMT_PTX_TYPE(bf16x2, unsigned) SIMT_PTX_TYPE(u16x2, unsigned) SIMT_PTX_TYPE(s16x2,
unsigned)
SIMT_PTX_TYPE(e4m3, unsigned char) SIMT_PTX_TYPE(e5m2, unsigned char)
SIMT_PTX_TYPE(e4m3x2, unsigned short) SIMT_PTX_TYPE(e5m2x2, unsigned short)
SIMT_PTX_TYPE(f32x2, unsigned long long)
#undef SIMT_PTX_TYPE
struct b128 {
    struct raw { unsigned long long lo, hi; };
};
struct any {};

template <class A, class B> struct is_same { static const bool value = false; };
template <class A> struct is_same<A, A> { static const bool value = true; };
template <class T> struct no_cv { typedef T type; };
template <class T> struct no_cv<const T> { typedef T type; };
template <class T> struct no_cv<volatile T> { typedef T type; };
template <class T> struct no_cv<const volatile T> { typedef T type; };

template <class T> struct no_ref { typedef T type; };
template <class T> struct no_ref<T &> { typedef T type; };
template <class T> struct no_ref<T &&> { typedef T type; };

template <class T> struct plain_number { static const bool value = __is_enum(T); };
#define SIMT_PTX_NUMBER(T) template <> struct plain_number<T> { static const bool value = true; };
SIMT_PTX_NUMBER(bool) SIMT_PTX_NUMBER(char) SIMT_PTX_NUMBER(signed char) SIMT_PTX_NUMBER(unsigned char)
SIMT_PTX_NUMBER(short) SIMT_PTX_NUMBER(unsigned short) SIMT_PTX_NUMBER(int) SIMT_PTX_NUMBER(unsigned)
SIMT_PTX_NUMBER(long) SIMT_PTX_NUMBER(unsigned long) SIMT_PTX_NUMBER(long long) SIMT_PTX_NUMBER(unsigned long long)
#undef SIMT_PTX_NUMBER
template <class T> struct is_floating { static const bool value = false; };
template <> struct is_floating<float> { static const bool value = true; };
template <> struct is_floating<double> { static const bool value = true; };

/* The operand's bits as an R: equal sizes keep their bits, integers are cut or widened, constants become floats. */
template <class R, class X> SIMT_INLINE R bits_as(const X &x)
{
    typedef typename no_cv<X>::type V;
    if constexpr (is_same<R, bool>::value)
        return x != 0;
    else if constexpr (is_same<V, R>::value)
        return x;
    else if constexpr (is_floating<R>::value && plain_number<V>::value && sizeof(R) != sizeof(V))
        return (R)x;
    else if constexpr (is_floating<R>::value && is_floating<V>::value)
        return (R)x;
    else if constexpr (sizeof(R) == sizeof(V))
        return __builtin_bit_cast(R, x);
    else if constexpr (plain_number<V>::value && plain_number<R>::value)
        return (R)x;
    else {
        R r = R();
        __builtin_memcpy(&r, &x, sizeof r < sizeof x ? sizeof r : sizeof x);
        return r;
    }
}
template <class T, class X> SIMT_INLINE typename T::raw get(const X &x) { return bits_as<typename T::raw>(x); }
template <class T, class D> SIMT_INLINE void put(D &d, typename T::raw v)
{
    if constexpr (sizeof(d) == sizeof(v))
        d = bits_as<D>(v);
    else if constexpr (plain_number<D>::value && plain_number<typename T::raw>::value)
        d = (D)v;
    else
        __builtin_memcpy(&d, &v, sizeof d < sizeof v ? sizeof d : sizeof v);
}
struct sink {
    template <class X> operator X() const { return X(); }
    template <class X> const sink &operator=(const X &) const { return *this; }
};
SIMT_INLINE float bits_f32(unsigned b) { return __builtin_bit_cast(float, b); }
SIMT_INLINE double bits_f64(unsigned long long b) { return __builtin_bit_cast(double, b); }

/* ---- small floats ---- */
SIMT_INLINE float half_f32(unsigned short h)
{
#if defined(__clang__)
    return __builtin_bit_cast(float, (unsigned)0) + (float)__builtin_bit_cast(__fp16, h);
#else
    return (float)__builtin_bit_cast(_Float16, h);
#endif
}
SIMT_INLINE unsigned short f32_half(float v)
{
#if defined(__clang__)
    return __builtin_bit_cast(unsigned short, (__fp16)v);
#else
    return __builtin_bit_cast(unsigned short, (_Float16)v);
#endif
}
SIMT_INLINE float brain_f32(unsigned short b) { return bits_f32((unsigned)b << 16); }
SIMT_INLINE unsigned short f32_brain(float v)
{
    unsigned b = __builtin_bit_cast(unsigned, v);
    if ((b & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (unsigned short)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
/* Exponent of E bits, mantissa of M; round to nearest even, values too large become the largest. */
template <int E, int M> SIMT_INLINE unsigned char f32_fp8(float v)
{
    const int bias = (1 << (E - 1)) - 1;
    const unsigned largest = E == 4 ? 0x7e : 0x7b;
    unsigned sign = __builtin_signbit(v) ? 0x80u : 0u, code;
    double a = __builtin_fabs((double)v), step;
    int e;
    if (v != v)
        return (unsigned char)(E == 4 ? 0x7f : 0x7f);
    if (a == 0)
        return (unsigned char)sign;
    e = a < 1e-30 ? -100 : __builtin_ilogb(a);
    if (e < 1 - bias)
        e = 1 - bias;
    step = __builtin_ldexp(1.0, e - M);
    a = __builtin_nearbyint(a / step); /* in units of the last place: 2^M to 2^(M+1) for normal numbers */
    if (a >= (2 << M))
        a /= 2, e++;
    code = a < (1 << M) ? (unsigned)a : (unsigned)((e + bias) << M) + ((unsigned)a - (1u << M));
    if (e > bias + 1 || code > largest)
        code = largest;
    return (unsigned char)(sign | code);
}
template <int E, int M> SIMT_INLINE float fp8_f32(unsigned char b)
{
    const int bias = (1 << (E - 1)) - 1;
    int e = (b >> M) & ((1 << E) - 1), m = b & ((1 << M) - 1);
    float r;
    if (E == 4 ? (b & 0x7f) == 0x7f : e == 31 && m)
        return __builtin_nanf("");
    if (E == 5 && e == 31)
        r = __builtin_inff();
    else
        r = (float)__builtin_ldexp(e ? m + (1 << M) : m, (e ? e : 1) - bias - M);
    return b & 0x80 ? -r : r;
}

/* A type's value for arithmetic, and back. */
template <class T> struct calc { /* integers, f32, f64, pred */
    SIMT_INLINE typename T::raw up(typename T::raw x) { return x; }
    template <class V> SIMT_INLINE typename T::raw down(V x) { return (typename T::raw)x; }
};
template <> struct calc<f16> {
    SIMT_INLINE float up(unsigned short x) { return half_f32(x); }
    SIMT_INLINE unsigned short down(double x) { return f32_half((float)x); }
};
template <> struct calc<bf16> {
    SIMT_INLINE float up(unsigned short x) { return brain_f32(x); }
    SIMT_INLINE unsigned short down(double x) { return f32_brain((float)x); }
};
template <> struct calc<e4m3> {
    SIMT_INLINE float up(unsigned char x) { return fp8_f32<4, 3>(x); }
    SIMT_INLINE unsigned char down(double x) { return f32_fp8<4, 3>((float)x); }
};
template <> struct calc<e5m2> {
    SIMT_INLINE float up(unsigned char x) { return fp8_f32<5, 2>(x); }
    SIMT_INLINE unsigned char down(double x) { return f32_fp8<5, 2>((float)x); }
};
template <> struct calc<tf32> {
    SIMT_INLINE float up(unsigned x) { return bits_f32(x); }
    SIMT_INLINE unsigned down(double x)
    {
        unsigned b = __builtin_bit_cast(unsigned, (float)x);
        return (b & 0x7f800000u) == 0x7f800000u ? b : (b + 0x1000u) & ~0x1fffu; /* ties away */
    }
};
template <class T> struct half_of { typedef void type; }; /* pairs: their element */
template <> struct half_of<f16x2> { typedef f16 type; };
template <> struct half_of<bf16x2> { typedef bf16 type; };
template <> struct half_of<u16x2> { typedef u16 type; };
template <> struct half_of<s16x2> { typedef s16 type; };
template <> struct half_of<e4m3x2> { typedef e4m3 type; };
template <> struct half_of<e5m2x2> { typedef e5m2 type; };
template <class T> struct is_pair { static const bool value = !is_same<typename half_of<T>::type, void>::value; };

/* f on each element of the sources. */
template <class T, class F> SIMT_INLINE typename T::raw map1(F f, typename T::raw a)
{
    if constexpr (is_pair<T>::value) {
        typedef typename half_of<T>::type H;
        const int w = 8 * sizeof(typename H::raw);
        typename T::raw r = 0;
        for (int i = 0; i < 2; i++)
            r |= (typename T::raw)((typename T::raw)(typename H::raw)map1<H>(f,
                (typename H::raw)(a >> (i * w))) << (i * w)) &
                 (typename T::raw)((((typename T::raw)1 << w) - 1) << (i * w));
        return r;
    } else {
        return calc<T>::down(f(calc<T>::up(a)));
    }
}
template <class T, class F> SIMT_INLINE typename T::raw map3(F f, typename T::raw a, typename T::raw b,
    typename T::raw c)
{
    if constexpr (is_pair<T>::value) {
        typedef typename half_of<T>::type H;
        typedef typename H::raw E;
        const int w = 8 * sizeof(E);
        const typename T::raw m = (typename T::raw)(((typename T::raw)1 << w) - 1);
        return (typename T::raw)((typename T::raw)(map3<H>(f, (E)a, (E)b, (E)c) & m) |
                                 (typename T::raw)((typename T::raw)(map3<H>(f, (E)(a >> w), (E)(b >> w),
                                     (E)(c >> w)) & m) << w));
    } else {
        return calc<T>::down(f(calc<T>::up(a), calc<T>::up(b), calc<T>::up(c)));
    }
}

/* ---- moves ---- */
template <class T, class D, class A> SIMT_INLINE void mov(D &&d, const A &a)
{
    if constexpr (is_same<T, any>::value)
        d = bits_as<typename no_cv<typename simt::ptx::no_ref<D>::type>::type>(a);
    else
        put<T>(d, get<T>(a));
}
template <class T, class A, class... D> SIMT_INLINE void unpack(const A &a, D &&...d)
{
    unsigned long long v = get<T>(a);
    const int w = int(8 * sizeof(typename T::raw) / sizeof...(D));
    ((put<u64>(d, 0), w == 32 ? put<u32>(d, (unsigned)v) : w == 16 ? put<u16>(d, (unsigned short)v)
                                                                   : put<u8>(d, (unsigned char)v), v = w == 64 ? 0
                                                                       : v >> w), ...);
}
template <class T, class D, class... A> SIMT_INLINE void pack(D &&d, const A &...a)
{
    unsigned long long v = 0;
    const int w = int(8 * sizeof(typename T::raw) / sizeof...(A));
    int at = 0;
    ((v |= (w == 32 ? (unsigned long long)get<u32>(a) : w == 16 ? (unsigned long long)get<u16>(a)
                                                                : (unsigned long long)get<u8>(a)) << at, at += w), ...);
    put<T>(d, (typename T::raw)v);
}
template <class T, class D, class A, class B, class P> SIMT_INLINE void selp(D &&d, const A &a, const B &b, const P &p)
{
    put<T>(d, p ? get<T>(a) : get<T>(b));
}

/* ---- arithmetic ---- */
#define SIMT_PTX_1(NAME, EXPR)                                                                                        \
    template <class T, class D, class A> SIMT_INLINE void NAME(D &&d, const A &a_)                                    \
    {                                                                                                                 \
        put<T>(d, map1<T>([](auto a) { return EXPR; }, get<T>(a_)));                                                  \
    }
#define SIMT_PTX_2(NAME, EXPR)                                                                                        \
    template <class T, class D, class A, class B> SIMT_INLINE void NAME(D &&d, const A &a_, const B &b_)              \
    {                                                                                                                 \
        put<T>(d, map3<T>([](auto a, auto b, auto) { return EXPR; }, get<T>(a_), get<T>(b_), get<T>(b_)));            \
    }
#define SIMT_PTX_3(NAME, EXPR)                                                                                        \
    template <class T, class D, class A, class B, class C>                                                            \
    SIMT_INLINE void NAME(D &&d, const A &a_, const B &b_, const C &c_)                                               \
    {                                                                                                                 \
        put<T>(d, map3<T>([](auto a, auto b, auto c) { return EXPR; }, get<T>(a_), get<T>(b_), get<T>(c_)));          \
    }
template <class V> SIMT_INLINE V clamp01(V x) { return x > 0 ? x < 1 ? x : V(1) : V(0); }
SIMT_PTX_2(add, a + b)
SIMT_PTX_2(add_sat, clamp01(a + b))
SIMT_PTX_2(sub, a - b)
SIMT_PTX_2(sub_sat, clamp01(a - b))
SIMT_PTX_2(mul, a *b)
SIMT_PTX_2(mul_sat, clamp01(a * b))
SIMT_PTX_2(mul_lo, a *b)
SIMT_PTX_3(mad_lo, a *b + c)
SIMT_PTX_3(mad, a *b + c)
SIMT_PTX_2(div_, a / b)
SIMT_PTX_2(rem_, b == 0 ? a : a % b)
SIMT_PTX_1(neg, -a)
SIMT_PTX_1(abs_, a < 0 ? -a : a)
SIMT_PTX_2(min_, a != a ? b : b != b ? a : a < b ? a : b)
SIMT_PTX_2(max_, a != a ? b : b != b ? a : a > b ? a : b)
SIMT_PTX_2(min__NaN, a != a ? a : b != b ? b : a < b ? a : b)
SIMT_PTX_2(max__NaN, a != a ? a : b != b ? b : a > b ? a : b)
SIMT_PTX_1(ex2, exp2f((float)a))
SIMT_PTX_1(lg2, log2f((float)a))
SIMT_PTX_1(rcp, 1 / a)
SIMT_PTX_1(sqrt_, ::sqrt((double)a))
SIMT_PTX_1(rsqrt_, 1.0 / ::sqrt((double)a))
SIMT_PTX_1(sin_, __sinf((float)a))
SIMT_PTX_1(cos_, __cosf((float)a))
SIMT_PTX_1(tanh_, __tanhf((float)a))
SIMT_PTX_2(copysign_, ::copysign(b, a))
template <class V> SIMT_INLINE double fused(V a, V b, V c)
{
    if constexpr (sizeof(V) == 8)
        return ::fma((double)a, (double)b, (double)c);
    else
        return (double)a * (double)b + (double)c; /* exact product; one more rounding only where double must round */
}
template <> inline __attribute__((always_inline)) double fused<float>(float a, float b, float c) { return ::fmaf(a, b,
    c); }
SIMT_PTX_3(fma, fused(a, b, c))
SIMT_PTX_3(fma_relu, fmax(fused(a, b, c), 0.0))
SIMT_PTX_3(fma_sat, clamp01(fused(a, b, c)))

#define SIMT_PTX_BITS(NAME, EXPR)                                                                                     \
    template <class T, class D, class A, class B> SIMT_INLINE void NAME(D &&d, const A &a_, const B &b_)              \
    {                                                                                                                 \
        typename T::raw a = get<T>(a_), b = get<T>(b_);                                                               \
        put<T>(d, (typename T::raw)(EXPR));                                                                           \
    }
SIMT_PTX_BITS(and_, a &b)
SIMT_PTX_BITS(or_, a | b)
SIMT_PTX_BITS(xor_, a ^ b)
template <class T, class D, class A> SIMT_INLINE void not_(D &&d, const A &a)
{
    if constexpr (is_same<T, pred>::value)
        d = !a;
    else
        put<T>(d, (typename T::raw)~get<T>(a));
}
template <class T, class D, class A, class B> SIMT_INLINE void shl(D &&d, const A &a, const B &b)
{
    unsigned n = get<u32>(b);
    put<T>(d, n >= 8 * sizeof(typename T::raw) ? (typename T::raw)0
        : (typename T::raw)((unsigned long long)get<T>(a) << n));
}
template <class T, class D, class A, class B> SIMT_INLINE void shr(D &&d, const A &a, const B &b)
{
    unsigned n = get<u32>(b), w = 8 * sizeof(typename T::raw);
    typename T::raw v = get<T>(a);
    put<T>(d, n >= w ? (typename T::raw)(v < 0 ? -1 : 0) : (typename T::raw)(v >> n));
}
template <class T> struct twice { typedef T type; };
template <> struct twice<u16> { typedef u32 type; };
template <> struct twice<s16> { typedef s32 type; };
template <> struct twice<u32> { typedef u64 type; };
template <> struct twice<s32> { typedef s64 type; };
template <class T, class D, class A, class B> SIMT_INLINE void mul_wide(D &&d, const A &a, const B &b)
{
    typedef typename twice<T>::type W;
    put<W>(d, (typename W::raw)((typename W::raw)get<T>(a) * (typename W::raw)get<T>(b)));
}
template <class T, class D, class A, class B, class C> SIMT_INLINE void mad_wide(D &&d, const A &a, const B &b,
    const C &c)
{
    typedef typename twice<T>::type W;
    put<W>(d, (typename W::raw)((typename W::raw)get<T>(a) * (typename W::raw)get<T>(b) + get<W>(c)));
}
template <class T, class D, class A, class B> SIMT_INLINE void mul_hi(D &&d, const A &a, const B &b)
{
    if constexpr (sizeof(typename T::raw) == 8)
        put<T>(d, (typename T::raw)(((__int128)get<T>(a) * (__int128)get<T>(b)) >> 64));
    else
        put<T>(d, (typename T::raw)(((long long)get<T>(a) * (long long)get<T>(b)) >> (8 * sizeof(typename T::raw))));
}
template <class T, class D, class A, class B, class C> SIMT_INLINE void mad_hi(D &&d, const A &a, const B &b,
    const C &c)
{
    typename T::raw h;
    mul_hi<T>(h, a, b);
    put<T>(d, (typename T::raw)(h + get<T>(c)));
}
template <class T, class D, class A, class B> SIMT_INLINE void mul24_lo(D &&d, const A &a, const B &b)
{
    put<T>(d, (typename T::raw)__mul24((int)get<T>(a), (int)get<T>(b)));
}
#define SIMT_PTX_SHF(NAME, EXPR)                                                                                      \
    template <class T, class D, class A, class B, \
        class C> SIMT_INLINE void NAME(D &&d, const A &a, const B &b, const C &c) \
    {                                                                                                                 \
        unsigned long long v = ((unsigned long long)get<u32>(b) << 32) | get<u32>(a);                                 \
        unsigned n = get<u32>(c);                                                                                     \
        put<u32>(d, (unsigned)(EXPR));                                                                                \
    }
SIMT_PTX_SHF(shf_l_wrap, (v << (n & 31)) >> 32)
SIMT_PTX_SHF(shf_r_wrap, v >> (n & 31))
SIMT_PTX_SHF(shf_l_clamp, n >= 32 ? v : (v << n) >> 32)
SIMT_PTX_SHF(shf_r_clamp, v >> (n < 32 ? n : 32))
template <class T, class D, class A, class B, class C, class I>
SIMT_INLINE void lop3(D &&d, const A &a_, const B &b_, const C &c_, I table_)
{
    unsigned a = get<u32>(a_), b = get<u32>(b_), c = get<u32>(c_), r = 0, table = (unsigned)table_;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    put<u32>(d, r);
}
template <class T, class D, class A, class B, class C> SIMT_INLINE void prmt(D &&d, const A &a, const B &b, const C &c)
{
    put<u32>(d, __byte_perm(get<u32>(a), get<u32>(b), get<u32>(c)));
}
template <class T, class D, class A, class B, class C> SIMT_INLINE void bfe(D &&d, const A &a, const B &b, const C &c)
{
    unsigned at = get<u32>(b) & 255, n = get<u32>(c) & 255, w = 8 * sizeof(typename T::raw);
    typename T::raw v = get<T>(a);
    if (n == 0 || at >= w)
        v = (typename T::raw)(n && v < 0 ? -1 : 0);
    else {
        if (at + n > w)
            n = w - at;
        v = (typename T::raw)((typename T::raw)((unsigned long long)v << (w - at - n)) >> (w - n));
    }
    put<T>(d, v);
}
template <class T, class D, class A, class B, class C, class N>
SIMT_INLINE void bfi(D &&d, const A &a, const B &b, const C &c, const N &n_)
{
    unsigned at = get<u32>(c) & 255, n = get<u32>(n_) & 255, w = 8 * sizeof(typename T::raw);
    unsigned long long m = at >= w || !n ? 0 : (n >= 64 ? ~0ull : (1ull << n) - 1) << at;
    put<T>(d, (typename T::raw)(((unsigned long long)get<T>(b) & ~m) | (((unsigned long long)get<T>(a) << at) & m)));
}
template <class T, class D, class A> SIMT_INLINE void popc(D &&d, const A &a) { put<u32>(d,
    (unsigned)__builtin_popcountll(get<T>(a))); }
template <class T, class D, class A> SIMT_INLINE void clz(D &&d, const A &a)
{
    put<u32>(d, (unsigned)(sizeof(typename T::raw) == 8 ? __clzll((long long)get<T>(a)) : __clz((int)get<T>(a))));
}
template <class T, class D, class A> SIMT_INLINE void brev(D &&d, const A &a)
{
    if constexpr (sizeof(typename T::raw) == 8)
        put<T>(d, __brevll(get<T>(a)));
    else
        put<T>(d, __brev(get<T>(a)));
}
template <class T, class U, class D, class A, class B, class C> SIMT_INLINE void dp4a(D &&d, const A &a, const B &b,
    const C &c)
{
    int r = (int)get<u32>(c);
    for (int i = 0; i < 32; i += 8) {
        unsigned char x = (unsigned char)(get<u32>(a) >> i), y = (unsigned char)(get<u32>(b) >> i);
        r += (is_same<T, s32>::value ? (int)(signed char)x : (int)x) * (is_same<U, s32>::value ? (int)(signed char)y
            : (int)y);
    }
    put<s32>(d, r);
}

/* ---- predicates ---- */
template <class V> SIMT_INLINE bool compare(const char *how, V a, V b)
{
    const bool unordered = a != a || b != b;
    switch (how[0]) {
    case 'e': return a == b || (how[2] == 'u' && unordered);
    case 'l':
        if (how[1] == 's')
            return a <= b;
        if (how[1] == 'o')
            return a < b;
        return (how[1] == 't' ? a < b : a <= b) || (how[2] == 'u' && unordered);
    case 'g': return (how[1] == 't' ? a > b : a >= b) || (how[2] == 'u' && unordered);
    case 'h': return how[1] == 'i' ? a > b : a >= b;
    default: break;
    }
    if (how[1] == 'u')
        return !unordered;
    if (how[1] == 'a')
        return unordered;
    return how[2] == 'u' ? a != b : a != b && !unordered;
}
template <class T, class P, class A, class B> SIMT_INLINE void setp(const char *how, P &&p, const A &a, const B &b)
{
    p = compare(how, calc<T>::up(get<T>(a)), calc<T>::up(get<T>(b)));
}
template <class T, class P, class Q, class A, class B>
SIMT_INLINE void setp(const char *how, P &&p, Q &&q, const A &a, const B &b)
{
    p = compare(how, calc<T>::up(get<T>(a)), calc<T>::up(get<T>(b)));
    q = !p;
}

/* ---- conversions ---- */
struct rn {}; struct rz {}; struct rm {}; struct rp {}; struct rna {};
typedef rn rni; typedef rz rzi; typedef rm rmi; typedef rp rpi;
template <class T> struct is_float_type {
    static const bool value = is_same<T, f32>::value || is_same<T, f64>::value || is_same<T, f16>::value ||
                              is_same<T, bf16>::value || is_same<T, tf32>::value || is_same<T, e4m3>::value
                                  || is_same<T, e5m2>::value;
};
template <class How> SIMT_INLINE double to_integral(double v)
{
    return is_same<How, rz>::value ? ::trunc(v) : is_same<How, rm>::value ? ::floor(v) : is_same<How, rp>::value
           ? ::ceil(v) : ::rint(v);
}
template <class To> SIMT_INLINE typename To::raw clamped(double v)
{
    typedef typename To::raw R;
    const bool negative = (R)-1 < (R)0;
    const double lo = negative ? -::ldexp(1.0, 8 * sizeof(R) - 1) : 0, hi = ::ldexp(1.0, 8 * sizeof(R) - (negative ? 1
        : 0));
    if (v != v)
        return 0;
    if (v <= lo)
        return negative ? (R)((R)1 << (8 * sizeof(R) - 1)) : (R)0;
    if (v >= hi)
        return negative ? (R)~((R)1 << (8 * sizeof(R) - 1)) : (R)~(R)0;
    return (R)v;
}
/* Towards zero or infinity: the nearest value, and one step where that went the wrong way. */
template <class To, class How> SIMT_INLINE typename To::raw narrow(double v)
{
    typename To::raw r = calc<To>::down(v);
    if constexpr (sizeof(typename To::raw) <= 2 && !is_same<How, rn>::value) {
        double got = calc<To>::up(r);
        const unsigned sign = 1u << (8 * sizeof r - 1);
        bool shrink = is_same<How, rz>::value ? ::fabs(got) > ::fabs(v) : is_same<How, rm>::value ? got > v && v > 0
            : got < v && v < 0;
        if (shrink && (r & ~sign))
            r--;
    } else if constexpr (is_same<To, f32>::value && !is_same<How, rn>::value) {
        if (is_same<How, rz>::value && ::fabs((double)r) > ::fabs(v))
            r = ::nextafterf(r, 0.0f);
    }
    return r;
}
template <class To, class From, class How, bool Sat, bool Relu, class D, class A> SIMT_INLINE void cvt(D &&d,
    const A &a)
{
    if constexpr (is_pair<To>::value && is_pair<From>::value) { /* e4m3x2 to f16x2 and back */
        typedef typename half_of<To>::type TH;
        typedef typename half_of<From>::type FH;
        typename From::raw v = get<From>(a);
        const int w = 8 * sizeof(typename FH::raw), o = 8 * sizeof(typename TH::raw);
        put<To>(d, (typename To::raw)(calc<TH>::down(calc<FH>::up((typename FH::raw)v)) |
                                      ((typename To::raw)calc<TH>::down(calc<FH>::up((typename FH::raw)(v >> w))) <<
                                       o)));
    } else if constexpr (is_float_type<To>::value) {
        double v = (double)calc<From>::up(get<From>(a));
        if constexpr (is_same<To, From>::value)
            v = is_same<How, rn>::value && !Sat && sizeof(typename To::raw) > 2 ? to_integral<How>(v)
                : to_integral<How>(v);
        if (Relu && !(v > 0))
            v = 0;
        if (Sat)
            v = clamp01(v);
        put<To>(d, narrow<To, How>(v));
    } else if constexpr (is_float_type<From>::value) {
        put<To>(d, clamped<To>(to_integral<How>((double)calc<From>::up(get<From>(a)))));
    } else {
        typename From::raw v = get<From>(a);
        if (Sat)
            put<To>(d, clamped<To>((double)v));
        else
            put<To>(d, (typename To::raw)v);
    }
}
/* Two floats to a pair: the first is the upper half. */
template <class To, class From, class How, bool Sat, bool Relu, class D, class A, class B>
SIMT_INLINE void cvt(D &&d, const A &a, const B &b)
{
    typedef typename half_of<To>::type H;
    double hi = calc<From>::up(get<From>(a)), lo = calc<From>::up(get<From>(b));
    if (Relu)
        hi = hi > 0 ? hi : 0, lo = lo > 0 ? lo : 0;
    put<To>(d, (typename To::raw)((typename To::raw)narrow<H, How>(hi) << (8 * sizeof(typename H::raw)) | narrow<H,
        How>(lo)));
}

/* ---- memory: addresses are bytes, so that offsets add ---- */
template <class A> SIMT_INLINE char *global(const A &a) { return (char *)get<u64>(a); }
template <class A> SIMT_INLINE char *shared(const A &a)
{
    if constexpr (sizeof(a) == 8)
        return (char *)simt_from_shared(get<u64>(a));
    else
        return (char *)simt_from_shared(get<u32>(a));
}
template <class D, class A> SIMT_INLINE void cvta_to_shared(D &&d, const A &a) { put<u64>(d,
    simt_to_shared(global(a))); }
template <class D, class A> SIMT_INLINE void cvta_shared(D &&d, const A &a) { put<u64>(d,
    (unsigned long long)shared(a)); }
template <class T, int N> struct __attribute__((aligned(sizeof(typename T::raw) * N)))
    several { typename T::raw v[N]; };
template <class T, class... D> SIMT_INLINE void ld(const char *p, D &&...d)
{
    const several<T, sizeof...(D)> v = *reinterpret_cast<const several<T, sizeof...(D)> *>(p);
    int i = 0;
    (put<T>(d, v.v[i++]), ...);
}
template <class T, class... A> SIMT_INLINE void st(char *p, const A &...a)
{
    *reinterpret_cast<several<T, sizeof...(A)> *>(p) = several<T, sizeof...(A)>{{get<T>(a)...}};
}
template <class T, class... D> SIMT_INLINE void ld_nc(const char *p, D &&...d)
{
    SIMT_READ_ONLY(p, sizeof(several<T, sizeof...(D)>));
    ld<T>(p, d...);
}
template <class T, class... D> SIMT_INLINE void ld_volatile(const char *p, D &&...d)
{
    int i = 0;
    (put<T>(d, reinterpret_cast<const volatile typename T::raw *>(p)[i++]), ...);
}
template <class T, class... A> SIMT_INLINE void st_volatile(char *p, const A &...a)
{
    int i = 0;
    ((reinterpret_cast<volatile typename T::raw *>(p)[i++] = get<T>(a)), ...);
}

/* ---- atomics: on the type that the runtime knows ---- */
template <class T> struct atomic_type { typedef typename T::raw type; };
template <> struct atomic_type<b32> { typedef unsigned type; };
template <> struct atomic_type<s64> { typedef unsigned long long type; };
#define SIMT_PTX_ATOM(NAME, CALL)                                                                                     \
    template <class T, class D, class A> SIMT_INLINE void atom_##NAME(D &&d, char *p, const A &a)                     \
    {                                                                                                                 \
        typedef typename atomic_type<T>::type V;                                                                      \
        put<T>(d, (typename T::raw)CALL(reinterpret_cast<V *>(p), (V)get<T>(a)));                                     \
    }                                                                                                                 \
    template <class T, class... A> SIMT_INLINE void red_##NAME(char *p, const A &...a)                                \
    {                                                                                                                 \
        typedef typename atomic_type<T>::type V;                                                                      \
        int i = 0;                                                                                                    \
        ((void)CALL(reinterpret_cast<V *>(p) + i++, (V)get<T>(a)), ...);                                              \
    }
SIMT_PTX_ATOM(min, atomicMin) SIMT_PTX_ATOM(max, atomicMax) SIMT_PTX_ATOM(and, atomicAnd) SIMT_PTX_ATOM(or, atomicOr)
SIMT_PTX_ATOM(xor, atomicXor) SIMT_PTX_ATOM(exch, atomicExch) SIMT_PTX_ATOM(inc, atomicInc) SIMT_PTX_ATOM(dec,
atomicDec)
struct small_bits { unsigned short x; };
struct small_bits2 { unsigned short x, y; };
small_bits atomic_add_f16(small_bits *p, small_bits v) SIMT_SYM("atomic_add_f16");
small_bits atomic_add_bf16(small_bits *p, small_bits v) SIMT_SYM("atomic_add_bf16");
small_bits2 atomic_add_f16x2(small_bits2 *p, small_bits2 v) SIMT_SYM("atomic_add_f16x2");
small_bits2 atomic_add_bf16x2(small_bits2 *p, small_bits2 v) SIMT_SYM("atomic_add_bf16x2");
template <class T> SIMT_INLINE typename T::raw add_one(char *p, typename T::raw v)
{
    if constexpr (is_same<T, f16>::value)
        return bits_as<unsigned short>(atomic_add_f16((small_bits *)p, bits_as<small_bits>(v)));
    else if constexpr (is_same<T, bf16>::value)
        return bits_as<unsigned short>(atomic_add_bf16((small_bits *)p, bits_as<small_bits>(v)));
    else if constexpr (is_same<T, f16x2>::value)
        return bits_as<unsigned>(atomic_add_f16x2((small_bits2 *)p, bits_as<small_bits2>(v)));
    else if constexpr (is_same<T, bf16x2>::value)
        return bits_as<unsigned>(atomic_add_bf16x2((small_bits2 *)p, bits_as<small_bits2>(v)));
    else {
        typedef typename atomic_type<T>::type V;
        return (typename T::raw)atomicAdd((V *)p, (V)v);
    }
}
template <class T, class D, class A> SIMT_INLINE void atom_add(D &&d, char *p, const A &a) { put<T>(d, add_one<T>(p,
    get<T>(a))); }
template <class T, class... A> SIMT_INLINE void red_add(char *p, const A &...a)
{
    int i = 0;
    ((void)add_one<T>(p + sizeof(typename T::raw) * (unsigned)i++, get<T>(a)), ...);
}
template <class T, class D, class A, class B> SIMT_INLINE void atom_cas(D &&d, char *p, const A &a, const B &b)
{
    typedef typename atomic_type<T>::type V;
    put<T>(d, (typename T::raw)atomicCAS(reinterpret_cast<V *>(p), (V)get<T>(a), (V)get<T>(b)));
}

/* ---- copies in the background: they happen when the thread waits for them ---- */
template <class N> SIMT_INLINE void async_copy(char *to, const char *from, N n) { simt_async_copy(to, from,
    (unsigned)n, (unsigned)n); }
template <class N, class R> SIMT_INLINE void async_copy(char *to, const char *from, N n, R read)
{
    simt_async_copy(to, from, (unsigned)n, (unsigned)read);
}
SIMT_INLINE void async_commit() { simt_async_commit(); }
template <class N> SIMT_INLINE void async_wait(N left) { simt_async_wait((unsigned)left); }
template <class N> SIMT_INLINE void bulk_copy(char *to, const char *from, N n, char *bar)
{
    simt_bulk_copy(to, from, (unsigned)n);
    simt_mbar_tx(bar, 0, (unsigned)n);
}

/* ---- barriers in memory ---- */
template <class... A> SIMT_INLINE void mbarrier_init(char *bar, unsigned count) { simt_mbar_init(bar, count); }
SIMT_INLINE void mbarrier_inval(char *) {}
template <class D> SIMT_INLINE void mbarrier_arrive(D &&d, char *bar, unsigned n = 1) { put<u64>(d,
    simt_mbar_arrive(bar, n, 0)); }
SIMT_INLINE void mbarrier_arrive(char *bar, unsigned n = 1) { simt_mbar_arrive(bar, n, 0); }
template <class D> SIMT_INLINE void mbarrier_arrive_expect_tx(D &&d, char *bar, unsigned tx) { put<u64>(d,
    simt_mbar_arrive(bar, 1, tx)); }
SIMT_INLINE void mbarrier_arrive_expect_tx(char *bar, unsigned tx) { simt_mbar_arrive(bar, 1, tx); }
SIMT_INLINE void mbarrier_expect_tx(char *bar, unsigned tx) { simt_mbar_tx(bar, tx, 0); }
#define SIMT_PTX_WAIT(NAME, PARITY)                                                                                   \
    template <class P, class S> SIMT_INLINE void mbarrier_##NAME(P &&p, char *bar, const S &s)                        \
    {                                                                                                                 \
        p = simt_mbar_test(bar, (unsigned long long)s, PARITY) != 0;                                                  \
    }                                                                                                                 \
    template <class P, class S, class H> SIMT_INLINE void mbarrier_##NAME(P &&p, char *bar, const S &s, const H &)    \
    {                                                                                                                 \
        p = simt_mbar_test(bar, (unsigned long long)s, PARITY) != 0;                                                  \
    }
SIMT_PTX_WAIT(test_wait, 0) SIMT_PTX_WAIT(try_wait, 0) SIMT_PTX_WAIT(test_wait_parity, 1)
SIMT_PTX_WAIT(try_wait_parity, 1)

/* ---- warps and blocks ---- */
SIMT_INLINE unsigned linear_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
SIMT_INLINE unsigned laneid() { return linear_thread() % SIMT_WARP_SIZE; }
SIMT_INLINE unsigned warpid() { return linear_thread() / SIMT_WARP_SIZE; }
SIMT_INLINE unsigned smid() { return simt_smid(); }
SIMT_INLINE unsigned dynamic_smem() { return simt_dynamic_smem(); }
/* The clamp operand holds the segment: bits 8 to 12 its mask, bits 0 to 4 the bound. */
SIMT_INLINE int width_of(unsigned c) { return 32 - (int)(c >> 8 & 31); }
#define SIMT_PTX_SHFL(NAME, CALL)                                                                                     \
    template <class T, class D, class A, class B, class C, class M>                                                   \
    SIMT_INLINE void shfl_sync_##NAME(D &&d, const A &a, const B &b, const C &c, const M &m)                          \
    {                                                                                                                 \
        put<T>(d, bits_as<typename T::raw>(CALL((simt_mask_t)m, get<u32>(a), get<u32>(b), width_of(get<u32>(c)))));   \
    }                                                                                                                 \
    template <class T, class D, class P, class A, class B, class C, class M>                                          \
    SIMT_INLINE void shfl_sync_##NAME(D &&d, P &&p, const A &a, const B &b, const C &c, const M &m)                   \
    {                                                                                                                 \
        shfl_sync_##NAME<T>(d, a, b, c, m);                                                                           \
        p = in_range_##NAME((int)laneid(), get<u32>(b), width_of(get<u32>(c)));                                       \
    }
SIMT_INLINE bool in_range_down(int lane, unsigned d, int w) { return lane % w + (long long)d < w; }
SIMT_INLINE bool in_range_up(int lane, unsigned d, int w) { return lane % w >= (long long)d; }
SIMT_INLINE bool in_range_bfly(int lane, unsigned d, int w) { return (lane ^ (int)d) / w <= lane / w; }
SIMT_INLINE bool in_range_idx(int, unsigned d, int w) { return d < (unsigned)w; }
SIMT_PTX_SHFL(down, __shfl_down_sync) SIMT_PTX_SHFL(up, __shfl_up_sync) SIMT_PTX_SHFL(bfly, __shfl_xor_sync)
SIMT_PTX_SHFL(idx, __shfl_sync)
template <class T, class D, class P, class M> SIMT_INLINE void vote_sync_ballot(D &&d, const P &p, const M &m)
    { put<T>(d, (typename T::raw)__ballot_sync((simt_mask_t)m, p)); }
template <class T, class D, class P, class M> SIMT_INLINE void vote_sync_any(D &&d, const P &p, const M &m) { d
    = __any_sync((simt_mask_t)m, p) != 0; }
template <class T, class D, class P, class M> SIMT_INLINE void vote_sync_all(D &&d, const P &p, const M &m) { d
    = __all_sync((simt_mask_t)m, p) != 0; }
#define SIMT_PTX_REDUX(NAME, CALL)                                                                                    \
    template <class T, class D, class A, class M> SIMT_INLINE void redux_sync_##NAME(D &&d, const A &a, const M &m)   \
    {                                                                                                                 \
        put<T>(d, (typename T::raw)CALL((simt_mask_t)m, get<T>(a)));                                                  \
    }
SIMT_PTX_REDUX(add, __reduce_add_sync) SIMT_PTX_REDUX(min, __reduce_min_sync) SIMT_PTX_REDUX(max, __reduce_max_sync)
SIMT_PTX_REDUX(and, __reduce_and_sync) SIMT_PTX_REDUX(or, __reduce_or_sync) SIMT_PTX_REDUX(xor, __reduce_xor_sync)
template <class T, class D, class A, class M> SIMT_INLINE void match_sync_any(D &&d, const A &a, const M &m)
    { put<u32>(d, (unsigned)__match_any_sync((simt_mask_t)m, get<T>(a))); }
template <class T, class D, class A, class M> SIMT_INLINE void match_any_sync(D &&d, const A &a, const M &m)
    { match_sync_any<T>(d, a, m); }
template <class T, class D> SIMT_INLINE void activemask(D &&d) { put<u32>(d, (unsigned)__activemask()); }
template <class D, class P, class M> SIMT_INLINE void elect_sync(D &&d, P &&p, const M &m)
{
    unsigned first = (unsigned)__builtin_ctz((unsigned)m | 1u << 31);
    simt_syncwarp((simt_mask_t)m);
    put<u32>(d, first);
    p = laneid() == first;
}
SIMT_INLINE void bar_sync(int id) { simt_bar(id, 0, 1); }
SIMT_INLINE void bar_sync(int id, int n) { simt_bar(id, n, 1); }
SIMT_INLINE void bar_arrive(int id, int n) { simt_bar(id, n, 0); }
template <class M> SIMT_INLINE void bar_warp_sync(const M &m) { simt_syncwarp((simt_mask_t)m); }
SIMT_INLINE void fence() { __threadfence(); }
template <class N> SIMT_INLINE void nanosleep(const N &n) { __nanosleep((unsigned)n); }
SIMT_INLINE void trap() { __trap(); }
SIMT_INLINE void exit() { simt_exit_thread(); }
template <class P, class A> SIMT_INLINE void isspacep_shared(P &&p, const A &a) { p = simt_to_shared(global(a)) != 0; }
template <class P, class A> SIMT_INLINE void isspacep_global(P &&p, const A &a) { p = simt_to_shared(global(a)) == 0; }
template <class D, class... A> SIMT_INLINE void createpolicy(D &&d, const A &...) { d = 0; }

/* ---- matrices of a warp ---- */
template <bool Trans, class... D> SIMT_INLINE void ldmatrix(const char *row, D &&...d)
{
    unsigned r[sizeof...(D)];
    int i = 0;
    simt_ldmatrix(row, int(sizeof...(D)), Trans, r);
    (put<b32>(d, r[i++]), ...);
}
template <bool Trans, class... A> SIMT_INLINE void stmatrix(char *row, const A &...a)
{
    const unsigned r[sizeof...(A)] = {get<b32>(a)...};
    simt_stmatrix(row, int(sizeof...(A)), Trans, r);
}
enum mma_type { MMA_F32, MMA_F16, MMA_BF16, MMA_TF32, MMA_S8, MMA_U8, MMA_E4M3, MMA_E5M2, MMA_S32 };
template <class T> struct mma_code;
#define SIMT_PTX_MMA(T, CODE, BITS)                                                                                   \
    template <> struct mma_code<T> { static const int code = CODE, bits = BITS; };
SIMT_PTX_MMA(f32, MMA_F32, 32) SIMT_PTX_MMA(f16, MMA_F16, 16) SIMT_PTX_MMA(bf16, MMA_BF16, 16) SIMT_PTX_MMA(tf32,
MMA_TF32, 32)
SIMT_PTX_MMA(s8, MMA_S8, 8) SIMT_PTX_MMA(u8, MMA_U8, 8) SIMT_PTX_MMA(e4m3, MMA_E4M3, 8) SIMT_PTX_MMA(e5m2, MMA_E5M2, 8)
SIMT_PTX_MMA(s32, MMA_S32, 32)
template <int K, class TD, class TA, class TB, class TC> struct mma {
    static const int n_d = mma_code<TD>::bits == 16 ? 2 : 4;
    template <class... X> SIMT_INLINE void run(X &&...x) { split(x...); }
    template <class D0, class D1, class... S> SIMT_INLINE void split(D0 &d0, D1 &d1, S &...s)
    {
        if constexpr (n_d == 2) {
            unsigned d[4];
            call(d, s...);
            put<b32>(d0, d[0]), put<b32>(d1, d[1]);
        } else {
            four(d0, d1, s...);
        }
    }
    template <class D0, class D1, class D2, class D3, class... S>
    SIMT_INLINE void four(D0 &d0, D1 &d1, D2 &d2, D3 &d3, S &...s)
    {
        unsigned d[4];
        call(d, s...);
        put<b32>(d0, d[0]), put<b32>(d1, d[1]), put<b32>(d2, d[2]), put<b32>(d3, d[3]);
    }
    template <class... S> SIMT_INLINE void call(unsigned *d, S &...s)
    {
        const unsigned abc[] = {word(s)...};
        simt_mma(K, mma_code<TA>::bits, mma_code<TA>::code, mma_code<TB>::code, mma_code<TC>::code, abc, d);
    }
    /* Constant accumulators, as in "{0f00000000, ...}", are floats; all others are registers. */
    template <class S> SIMT_INLINE unsigned word(S &s) { return get<b32>(s); }
};

/* ---- what is not covered ---- */
SIMT_INLINE void unsupported(const char *what) { simt_unsupported(what); }

} // namespace ptx
} // namespace simt

/* ---- the same for C++: address spaces ---- */
SIMT_INLINE size_t __cvta_generic_to_shared(const void *p) { return simt_to_shared(p); }
SIMT_INLINE size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
SIMT_INLINE void *__cvta_shared_to_generic(size_t a) { return simt_from_shared(a); }
SIMT_INLINE void *__cvta_global_to_generic(size_t a) { return (void *)a; }
SIMT_INLINE unsigned __isShared(const void *p) { return simt_to_shared(p) != 0; }
SIMT_INLINE unsigned __isGlobal(const void *p) { return simt_to_shared(p) == 0; }

#endif
