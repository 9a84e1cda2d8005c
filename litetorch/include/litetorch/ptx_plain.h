/* ptx_plain.h - the PTX that kernels write most, as plain device code: what 'musacoder translate' puts in front of a
 * source whose inline PTX it turned into calls (translate/ptx.c). Works where threads of a warp shuffle in 32 lanes.
 * The meaning is PTX's, the speed is not: a copy in the background is made at once, a matrix product is made of
 * shuffles and fused multiply-adds, k ascending. Source: NVIDIA, "Parallel Thread Execution ISA", warp-level matrix
 * instructions. The file is copied into translations, so it includes nothing and knows neither vendor's names. */
#ifndef MUSACODER_PTX
#define MUSACODER_PTX
#define PTX_FN static __device__ __forceinline__
namespace musacoder {
namespace ptx {

/* types: what a register of the type holds */
#define PTX_TYPE(NAME, T) struct NAME { typedef T raw; };
PTX_TYPE(u8, unsigned char) PTX_TYPE(s8, signed char) PTX_TYPE(b8, unsigned char) PTX_TYPE(u16, unsigned short)
PTX_TYPE(s16, short) PTX_TYPE(b16, unsigned short) PTX_TYPE(u32, unsigned) PTX_TYPE(s32, int) PTX_TYPE(b32, unsigned)
PTX_TYPE(u64, unsigned long long) PTX_TYPE(s64, long long) PTX_TYPE(b64, unsigned long long) PTX_TYPE(f32, float)
PTX_TYPE(pred, bool) PTX_TYPE(f16, unsigned short) PTX_TYPE(bf16, unsigned short) PTX_TYPE(tf32, unsigned)
PTX_TYPE(f16x2, unsigned) PTX_TYPE(bf16x2, unsigned)
struct any {};
struct rn {}; struct rz {}; struct rm {}; struct rp {}; struct rna {};

/* bits between operands and registers: equal sizes keep their bits, integers are cut or widened */
template <class A, class B> struct same { static const bool yes = false; };
template <class A> struct same<A, A> { static const bool yes = true; };
template <class T> struct bare { typedef T type; };
template <class T> struct bare<const T> { typedef T type; };
template <class T> struct bare<volatile T> { typedef T type; };
template <class T> struct bare<T &> { typedef typename bare<T>::type type; };
template <class T> struct bare<T &&> { typedef typename bare<T>::type type; };
template <class T> struct whole { static const bool yes = __is_enum(T); };
#define PTX_WHOLE(T) template <> struct whole<T> { static const bool yes = true; };
PTX_WHOLE(bool) PTX_WHOLE(char) PTX_WHOLE(signed char) PTX_WHOLE(unsigned char) PTX_WHOLE(short) PTX_WHOLE(unsigned
    short)
PTX_WHOLE(int) PTX_WHOLE(unsigned) PTX_WHOLE(long) PTX_WHOLE(unsigned long) PTX_WHOLE(long long) PTX_WHOLE(unsigned
    long long)
template <class R, class X> PTX_FN R bits(const X &x)
{
    typedef typename bare<X>::type V;
    if constexpr (same<R, bool>::yes) {
        return x != 0;
    } else if constexpr (same<V, R>::yes || (whole<V>::yes && whole<R>::yes) ||
                         (same<R, float>::yes && whole<V>::yes && sizeof(V) != 4) || (same<R, float>::yes && same<V,
                             double>::yes)) {
        return (R)x;
    } else {
        R r = R();
        __builtin_memcpy(&r, &x, sizeof r < sizeof x ? sizeof r : sizeof x);
        return r;
    }
}
template <class T, class X> PTX_FN typename T::raw get(const X &x) { return bits<typename T::raw>(x); }
template <class T, class D> PTX_FN void put(D &d, typename T::raw v) { d = bits<typename bare<D>::type>(v); }
struct sink {};
PTX_FN float bits_f32(unsigned b) { return bits<float>(b); }
template <class T, class D, class A> PTX_FN void mov(D &&d, const A &a)
{
    if constexpr (same<T, any>::yes)
        d = bits<typename bare<D>::type>(a);
    else
        put<T>(d, get<T>(a));
}
template <class T, class A, class... D> PTX_FN void unpack(const A &a, D &&...d)
{
    const int w = int(8 * sizeof(typename T::raw) / sizeof...(D));
    unsigned long long v = get<T>(a);
    ((w == 32 ? put<u32>(d, (unsigned)v) : put<u16>(d, (unsigned short)v), v >>= w), ...);
}
template <class T, class D, class... A> PTX_FN void pack(D &&d, const A &...a)
{
    const int w = int(8 * sizeof(typename T::raw) / sizeof...(A));
    unsigned long long v = 0;
    int at = 0;
    ((v |= (w == 32 ? (unsigned long long)get<u32>(a) : (unsigned long long)get<u16>(a)) << at, at += w), ...);
    put<T>(d, (typename T::raw)v);
}
template <class T, class D, class A, class B, class P> PTX_FN void selp(D &&d, const A &a, const B &b, const P &p)
{
    put<T>(d, p ? get<T>(a) : get<T>(b));
}

/* arithmetic */
#define PTX_1(NAME, EXPR) template <class T, class D, class A> PTX_FN void NAME(D &&d, const A &x)                   \
    { typename T::raw a = get<T>(x); put<T>(d, (typename T::raw)(EXPR)); }
#define PTX_2(NAME, EXPR) template <class T, class D, class A, class B> PTX_FN void NAME(D &&d, const A &x, const B \
    &y) \
    { typename T::raw a = get<T>(x), b = get<T>(y); put<T>(d, (typename T::raw)(EXPR)); }
#define PTX_3(NAME, EXPR) template <class T, class D, class A, class B, class C>                                     \
    PTX_FN void NAME(D &&d, const A &x, const B &y, const C &z)                                                       \
    { typename T::raw a = get<T>(x), b = get<T>(y), c = get<T>(z); put<T>(d, (typename T::raw)(EXPR)); }
/* rounded by themselves, as the instructions are: a compiler must not fuse them with what is around */
PTX_FN float plus(float a, float b) { return __fadd_rn(a, b); }
PTX_FN float minus(float a, float b) { return __fsub_rn(a, b); }
PTX_FN float times(float a, float b) { return __fmul_rn(a, b); }
template <class T> PTX_FN T plus(T a, T b) { return (T)(a + b); }
template <class T> PTX_FN T minus(T a, T b) { return (T)(a - b); }
template <class T> PTX_FN T times(T a, T b) { return (T)(a * b); }
PTX_2(add, plus(a, b)) PTX_2(sub, minus(a, b)) PTX_2(mul, times(a, b))
PTX_2(mul_lo, a * b) PTX_3(mad_lo, a * b + c) PTX_3(fma,
    fmaf(a, b, c))
PTX_2(div_, a / b) PTX_2(rem_, a % b) PTX_1(neg, -a) PTX_1(abs_, a < 0 ? -a : a)
PTX_2(min_, a != a ? b : b != b ? a : a < b ? a : b) PTX_2(max_, a != a ? b : b != b ? a : a > b ? a : b)
PTX_2(and_, a & b) PTX_2(or_, a | b) PTX_2(xor_, a ^ b) PTX_1(not_, (same<T, pred>::yes ? !a : ~a))
PTX_1(ex2, exp2f(a)) PTX_1(lg2, log2f(a)) PTX_1(rcp, 1.0f / a) PTX_1(sqrt_, sqrtf(a)) PTX_1(rsqrt_, rsqrtf(a))
PTX_1(sin_, sinf(a)) PTX_1(cos_, cosf(a)) PTX_1(tanh_, tanhf(a))
template <class T, class D, class A, class B> PTX_FN void shl(D &&d, const A &x, const B &y)
{
    unsigned n = get<u32>(y);
    put<T>(d, n >= 8 * sizeof(typename T::raw) ? (typename T::raw)0 : (typename T::raw)((unsigned long long)get<T>(x)
        << n));
}
template <class T, class D, class A, class B> PTX_FN void shr(D &&d, const A &x, const B &y)
{
    unsigned n = get<u32>(y), w = 8 * sizeof(typename T::raw);
    typename T::raw v = get<T>(x);
    put<T>(d, n >= w ? (typename T::raw)(v < 0 ? -1 : 0) : (typename T::raw)(v >> n));
}
template <class T, class D, class A, class B, class C, class I>
PTX_FN void lop3(D &&d, const A &x, const B &y, const C &z, I table)
{
    unsigned a = get<u32>(x), b = get<u32>(y), c = get<u32>(z), r = 0;
    for (int i = 0; i < 8; i++)
        if ((unsigned)table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    put<u32>(d, r);
}
template <class T, class D, class A, class B, class C> PTX_FN void prmt(D &&d, const A &x, const B &y, const C &z)
{
    unsigned long long v = (unsigned long long)get<u32>(y) << 32 | get<u32>(x);
    unsigned s = get<u32>(z), r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned k = s >> (4 * i) & 15, byte = (unsigned)(v >> (8 * (k & 7))) & 255;
        r |= (k & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
    }
    put<u32>(d, r);
}
enum how { how_eq, how_ne, how_lt, how_le, how_gt, how_ge, how_lo, how_ls, how_hi, how_hs, how_equ, how_neu, how_ltu,
    how_leu,
           how_gtu, how_geu, how_num, how_nan };
template <class T, class P, class A, class B> PTX_FN void setp(how h, P &&p, const A &x, const B &y)
{
    const typename T::raw a = get<T>(x), b = get<T>(y);
    const bool unordered = a != a || b != b;
    switch (h) {
    case how_eq: p = a == b; break;
    case how_ne: p = a != b && !unordered; break;
    case how_lt: case how_lo: p = a < b; break;
    case how_le: case how_ls: p = a <= b; break;
    case how_gt: case how_hi: p = a > b; break;
    case how_ge: case how_hs: p = a >= b; break;
    case how_equ: p = a == b || unordered; break;
    case how_neu: p = a != b; break;
    case how_ltu: p = a < b || unordered; break;
    case how_leu: p = a <= b || unordered; break;
    case how_gtu: p = a > b || unordered; break;
    case how_geu: p = a >= b || unordered; break;
    case how_num: p = !unordered; break;
    default: p = unordered;
    }
}

/* small floats */
PTX_FN unsigned brain(float v)
{
    unsigned b = bits<unsigned>(v);
    return (b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (b + 0x7fffu + (b >> 16 & 1u)) >> 16;
}
PTX_FN unsigned half(float v)
{
    unsigned b = bits<unsigned>(v), sign = b >> 16 & 0x8000u, m = b & 0x7fffffffu, r;
    if (m > 0x7f800000u)
        return 0x7fffu;
    if (m >= 0x477ff000u) /* rounds to infinity */
        return sign | 0x7c00u;
    if (m < 0x33000001u)
        return sign;
    if (m < 0x38800000u) { /* subnormal: shift the mantissa with its hidden bit */
        unsigned shift = 126u - (m >> 23), f = (m & 0x7fffffu) | 0x800000u;
        r = f >> shift;
        f &= (1u << shift) - 1u;
        return sign | (r + (f > 1u << (shift - 1) || (f == 1u << (shift - 1) && (r & 1u))));
    }
    m -= 0x38000000u;
    return sign | (m + 0xfffu + (m >> 13 & 1u)) >> 13;
}
template <class T> PTX_FN float up(unsigned b)
{
    if constexpr (same<T, bf16>::yes)
        return bits_f32(b << 16);
    else if constexpr (same<T, f16>::yes) {
        unsigned m = b & 0x7fffu, sign = (b & 0x8000u) << 16;
        float r = m >= 0x7c00u ? bits_f32(m << 13 | 0x7f800000u) : bits_f32(m << 13) * 5.192296858534828e33f; /*
            2^112 */
        return bits_f32(bits<unsigned>(r) | sign);
    } else
        return bits_f32(b);
}
template <class T> PTX_FN unsigned down(float v) { return same<T, bf16>::yes ? brain(v) : half(v); }
template <class T> struct part { typedef T type; };
template <> struct part<f16x2> { typedef f16 type; };
template <> struct part<bf16x2> { typedef bf16 type; };
template <class T> struct small { static const bool yes = same<T, f16>::yes || same<T, bf16>::yes; };
template <class To, class From, class How, bool Sat, bool Relu, class D, class A> PTX_FN void cvt(D &&d, const A &x)
{
    if constexpr (small<To>::yes)
        put<To>(d, (unsigned short)down<To>(get<f32>(x)));
    else if constexpr (small<From>::yes)
        put<To>(d, up<From>(get<From>(x)));
    else if constexpr (same<To, tf32>::yes)
        put<To>(d, (get<b32>(x) & 0x7f800000u) == 0x7f800000u ? get<b32>(x) : (get<b32>(x) + 0x1000u) & ~0x1fffu);
    else
        put<To>(d, (typename To::raw)get<From>(x));
}
template <class To, class From, class How, bool Sat, bool Relu, class D, class A, class B>
PTX_FN void cvt(D &&d, const A &x, const B &y) /* two floats to a pair: the first is the upper half */
{
    typedef typename part<To>::type H;
    float hi = get<f32>(x), lo = get<f32>(y);
    if (Relu)
        hi = hi > 0 ? hi : 0, lo = lo > 0 ? lo : 0;
    put<To>(d, down<H>(hi) << 16 | down<H>(lo));
}

/* memory; a shared address counts from the start of dynamic shared memory, so that it fits 32 bits. The emulator's
 * shared memory lies in several places: there its own window counts. */
#ifdef SIMT_WARP_SIZE
PTX_FN unsigned to_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
PTX_FN char *from_shared(unsigned a) { return (char *)__cvta_shared_to_generic(a); }
#else
PTX_FN char *window()
{
    extern __shared__ char ptx_window[];
    return ptx_window;
}
PTX_FN unsigned to_shared(const void *p) { return (unsigned)((const char *)p - window()); }
PTX_FN char *from_shared(unsigned a) { return window() + (int)a; }
#endif
template <class A> PTX_FN char *global(const A &a) { return (char *)get<u64>(a); }
template <class A> PTX_FN char *shared(const A &a) { return from_shared(get<u32>(a)); }
template <class D, class A> PTX_FN void cvta_to_shared(D &&d, const A &a) { put<u64>(d, to_shared(global(a))); }
template <class D, class A> PTX_FN void cvta_shared(D &&d, const A &a) { put<u64>(d, (unsigned long long)shared(a)); }
template <class T, int N> struct __attribute__((aligned(sizeof(typename T::raw) * N))) several { typename T::raw
    v[N]; };
template <class T, class... D> PTX_FN void ld(const char *p, D &&...d)
{
    const several<T, sizeof...(D)> v = *(const several<T, sizeof...(D)> *)p;
    int i = 0;
    (put<T>(d, v.v[i++]), ...);
}
template <class T, class... A> PTX_FN void st(char *p, const A &...a)
{
    *(several<T, sizeof...(A)> *)p = several<T, sizeof...(A)>{{get<T>(a)...}};
}
template <class T, class... D> PTX_FN void ld_volatile(const char *p, D &&...d)
{
    int i = 0;
    (put<T>(d, ((const volatile typename T::raw *)p)[i++]), ...);
}
template <class T, class... A> PTX_FN void st_volatile(char *p, const A &...a)
{
    int i = 0;
    ((((volatile typename T::raw *)p)[i++] = get<T>(a)), ...);
}
#define PTX_ATOM(NAME, CALL)                                                                                          \
    template <class T, class D, class A> PTX_FN void atom_##NAME(D &&d, char *p, const A &a)                          \
    { put<T>(d, (typename T::raw)CALL((typename T::raw *)p, get<T>(a))); }                                            \
    template <class T, class... A> PTX_FN void red_##NAME(char *p, const A &...a)                                     \
    { int i = 0; ((void)CALL((typename T::raw *)p + i++, get<T>(a)), ...); }
PTX_ATOM(add, atomicAdd) PTX_ATOM(min, atomicMin) PTX_ATOM(max, atomicMax) PTX_ATOM(and, atomicAnd) PTX_ATOM(or,
    atomicOr)
PTX_ATOM(exch, atomicExch)
PTX_FN void async_copy(char *to, const char *from, int n, int read)
{
    if (read == n && n == 16)
        *(several<b32, 4> *)to = *(const several<b32, 4> *)from;
    else
        for (int i = 0; i < n; i += 4) {
            unsigned v = 0;
            if (i + 4 <= read)
                v = *(const unsigned *)(from + i);
            else if (i + 2 <= read)
                v = *(const unsigned short *)(from + i);
            *(unsigned *)(to + i) = v;
        }
}
PTX_FN void async_copy(char *to, const char *from, int n) { async_copy(to, from, n, n); }
PTX_FN void async_commit() {}
template <class N> PTX_FN void async_wait(N) {}
template <class D, class... A> PTX_FN void createpolicy(D &&d, const A &...) { d = 0; }
PTX_FN void pipeline_copy(void *to, const void *from, size_t n, size_t zero = 0)
{
    async_copy((char *)to, (const char *)from, (int)n, (int)(n - zero));
}
PTX_FN void pipeline_commit() {}
PTX_FN void pipeline_wait(size_t) {}
PTX_FN void nanosleep(unsigned) {} /* a hint */

/* warps and blocks */
PTX_FN unsigned laneid() { return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31u; }
PTX_FN unsigned warpid() { return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) >> 5; }
#define PTX_SHFL(NAME, CALL)                                                                                          \
    template <class T, class D, class A, class B, class C, class M>                                                   \
    PTX_FN void shfl_sync_##NAME(D &&d, const A &a, const B &b, const C &c, const M &m)                               \
    { put<T>(d, bits<typename T::raw>(CALL((unsigned)m, get<u32>(a), get<u32>(b),                               \
                                      32 - (int)(get<u32>(c) >> 8 & 31)))); }
PTX_SHFL(down, __shfl_down_sync) PTX_SHFL(up, __shfl_up_sync) PTX_SHFL(bfly, __shfl_xor_sync) PTX_SHFL(idx, __shfl_sync)
template <class T, class D, class P, class M> PTX_FN void vote_sync_ballot(D &&d, const P &p, const M &m)
{
    put<u32>(d, __ballot_sync((unsigned)m, p));
}
template <class T, class D> PTX_FN void activemask(D &&d) { put<u32>(d, (unsigned)__activemask()); }
PTX_FN void bar_sync(int) { __syncthreads(); }
template <class M> PTX_FN void bar_warp_sync(const M &m) { __syncwarp((unsigned)m); }
PTX_FN void fence() { __threadfence(); }

/* matrices of a warp: row r of matrix i lies where lane 8 i + r says; lane L holds elements 2 (L % 4), + 1 of row L
 * / 4 */
template <bool Trans, class... D> PTX_FN void ldmatrix(const char *row, D &&...d)
{
    const unsigned mine = to_shared(row), lane = laneid();
    unsigned r[sizeof...(D)];
    int k = 0;
    for (int i = 0; i < (int)sizeof...(D); i++) {
        unsigned first = __shfl_sync(~0u, mine, 8 * i + (Trans ? 2 * (lane & 3) : lane >> 2), 32);
        unsigned second = __shfl_sync(~0u, mine, 8 * i + (Trans ? 2 * (lane & 3) + 1 : lane >> 2), 32);
        if (Trans)
            r[i] = *(const unsigned short *)(shared(first) + 2 * (lane >> 2)) |
                   (unsigned)*(const unsigned short *)(shared(second) + 2 * (lane >> 2)) << 16;
        else
            r[i] = *(const unsigned *)(shared(first) + 4 * (lane & 3));
    }
    (put<b32>(d, r[k++]), ...);
}
template <bool Trans, class... A> PTX_FN void stmatrix(char *row, const A &...a)
{
    const unsigned r[sizeof...(A)] = {get<b32>(a)...}, mine = to_shared(row), lane = laneid();
    for (int i = 0; i < (int)sizeof...(A); i++) {
        unsigned first = __shfl_sync(~0u, mine, 8 * i + (Trans ? 2 * (lane & 3) : lane >> 2), 32);
        unsigned second = __shfl_sync(~0u, mine, 8 * i + (Trans ? 2 * (lane & 3) + 1 : lane >> 2), 32);
        if (Trans) {
            *(unsigned short *)(shared(first) + 2 * (lane >> 2)) = (unsigned short)r[i];
            *(unsigned short *)(shared(second) + 2 * (lane >> 2)) = (unsigned short)(r[i] >> 16);
        } else {
            *(unsigned *)(shared(first) + 4 * (lane & 3)) = r[i];
        }
    }
    __syncwarp();
}
/* m16n8kK: A has two registers (rows L / 4 and + 8) for each 4 E columns, B one for each 4 E rows; E elements a
 * register. */
template <int K, class TD, class TA, class TB, class TC> struct mma {
    static const int e = small<TA>::yes ? 2 : 1, n_b = K / (4 * e), n_a = 2 * n_b;
    template <class W> static __device__ __forceinline__ unsigned word(const W &w) { return bits<unsigned>(w); }
    static __device__ __forceinline__ void sum(const unsigned *r, float *acc)
    {
        const unsigned lane = laneid();
        for (int j = 0; j < n_b; j++)
            for (int q = 0; q < 4; q++) {
                const int row = (int)(lane & ~3u) + q, col = (int)(lane & 3u) * 8 + q;
                unsigned a0 = __shfl_sync(~0u, r[2 * j], row, 32), a1 = __shfl_sync(~0u, r[2 * j + 1], row, 32);
                unsigned b0 = __shfl_sync(~0u, r[n_a + j], col, 32), b1 = __shfl_sync(~0u, r[n_a + j], col + 4, 32);
                for (int k = 0; k < e; k++) {
                    const int s = 16 * k;
                    const unsigned m = e == 2 ? 0xffffu : ~0u;
                    const float x0 = up<TA>(a0 >> s & m), x1 = up<TA>(a1 >> s & m);
                    const float y0 = up<TB>(b0 >> s & m), y1 = up<TB>(b1 >> s & m);
                    acc[0] = fmaf(x0, y0, acc[0]), acc[1] = fmaf(x0, y1, acc[1]);
                    acc[2] = fmaf(x1, y0, acc[2]), acc[3] = fmaf(x1, y1, acc[3]);
                }
            }
    }
    template <class D0, class D1, class... S> static __device__ __forceinline__ void run(D0 &d0, D1 &d1, S &&...s)
    {
        if constexpr (same<TD, f32>::yes)
            four(d0, d1, s...);
        else
            pairs(d0, d1, s...);
    }
    template <class D0, class D1, class D2, class D3, class... S>
    static __device__ __forceinline__ void four(D0 &d0, D1 &d1, D2 &d2, D3 &d3, S &&...s)
    {
        const unsigned r[] = {word(s)...}, *c = r + n_a + n_b;
        float acc[4] = {0, 0, 0, 0};
        sum(r, acc);
        put<f32>(d0, plus(bits_f32(c[0]), acc[0])), put<f32>(d1, plus(bits_f32(c[1]), acc[1]));
        put<f32>(d2, plus(bits_f32(c[2]), acc[2])), put<f32>(d3, plus(bits_f32(c[3]), acc[3]));
    }
    template <class D0, class D1, class... S> static __device__ __forceinline__ void pairs(D0 &d0, D1 &d1, S &&...s)
    {
        const unsigned r[] = {word(s)...}, c0 = r[n_a + n_b], c1 = r[n_a + n_b + 1];
        float acc[4] = {0, 0, 0, 0};
        sum(r, acc);
        put<b32>(d0, down<TD>(up<TC>(c0 & 0xffffu) + acc[0]) | down<TD>(up<TC>(c0 >> 16) + acc[1]) << 16);
        put<b32>(d1, down<TD>(up<TC>(c1 & 0xffffu) + acc[2]) | down<TD>(up<TC>(c1 >> 16) + acc[3]) << 16);
    }
};
} // namespace ptx
} // namespace musacoder
#endif
