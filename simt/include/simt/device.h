/* device.h - what only device code may call: barriers, warp operations, atomics, fences, cached loads, bit tricks.
 * Functions that wait or touch memory live in libsimt (see abi.h); the rest is inline. */
#ifndef SIMT_DEVICE_H
#define SIMT_DEVICE_H

#include "simt/vector.h"

#define SIMT_SYM(name) __asm__("simt_" name)
#define SIMT_INLINE static inline __attribute__((always_inline))

/* ---- block barrier ---- */
void __syncthreads() SIMT_SYM("syncthreads");
int __syncthreads_count(int predicate) SIMT_SYM("syncthreads_count");
int __syncthreads_and(int predicate) SIMT_SYM("syncthreads_and");
int __syncthreads_or(int predicate) SIMT_SYM("syncthreads_or");

/* ---- fences: order is that of the program; the checker learns who published what ---- */
void __threadfence() SIMT_SYM("threadfence");
void __threadfence_system() SIMT_SYM("threadfence");
SIMT_INLINE void __threadfence_block() {}

/* ---- warp operations; masks have one bit per lane ---- */
#if SIMT_WARP_SIZE > 64
typedef unsigned __int128 simt_mask_t;
#elif SIMT_WARP_SIZE > 32
typedef unsigned long long simt_mask_t;
#else
typedef unsigned simt_mask_t;
#endif

void simt_syncwarp(simt_mask_t mask) SIMT_SYM("syncwarp");
#define __syncwarp(...) simt_syncwarp(simt_mask_arg(__VA_ARGS__))
SIMT_INLINE simt_mask_t simt_mask_arg(simt_mask_t m = ~(simt_mask_t)0) { return m; }

simt_mask_t __activemask() SIMT_SYM("activemask");
simt_mask_t __ballot_sync(simt_mask_t mask, int predicate) SIMT_SYM("ballot");
int __any_sync(simt_mask_t mask, int predicate) SIMT_SYM("any");
int __all_sync(simt_mask_t mask, int predicate) SIMT_SYM("all");

#define SIMT_SHFL(T, S)                                                                                               \
    T __shfl_sync(simt_mask_t mask, T v, int lane, int width = warpSize) SIMT_SYM("shfl_" S);                         \
    T __shfl_up_sync(simt_mask_t mask, T v, unsigned delta, int width = warpSize) SIMT_SYM("shfl_up_" S);             \
    T __shfl_down_sync(simt_mask_t mask, T v, unsigned delta, int width = warpSize) SIMT_SYM("shfl_down_" S);         \
    T __shfl_xor_sync(simt_mask_t mask, T v, int lanes, int width = warpSize) SIMT_SYM("shfl_xor_" S);
SIMT_SHFL(int, "i32")
SIMT_SHFL(unsigned, "i32")
SIMT_SHFL(long, "i64")
SIMT_SHFL(unsigned long, "i64")
SIMT_SHFL(long long, "i64")
SIMT_SHFL(unsigned long long, "i64")
SIMT_SHFL(float, "f32")
SIMT_SHFL(double, "f64")

#define SIMT_MATCH(T, S)                                                                                              \
    simt_mask_t __match_any_sync(simt_mask_t mask, T v) SIMT_SYM("match_any_" S);                                     \
    simt_mask_t __match_all_sync(simt_mask_t mask, T v, int *all) SIMT_SYM("match_all_" S);
SIMT_MATCH(int, "i32")
SIMT_MATCH(unsigned, "i32")
SIMT_MATCH(long, "i64")
SIMT_MATCH(unsigned long, "i64")
SIMT_MATCH(long long, "i64")
SIMT_MATCH(unsigned long long, "i64")
SIMT_MATCH(float, "f32")
SIMT_MATCH(double, "f64")

unsigned __reduce_add_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_add");
int __reduce_add_sync(simt_mask_t mask, int v) SIMT_SYM("reduce_add");
unsigned __reduce_min_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_min_u32");
int __reduce_min_sync(simt_mask_t mask, int v) SIMT_SYM("reduce_min_i32");
unsigned __reduce_max_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_max_u32");
int __reduce_max_sync(simt_mask_t mask, int v) SIMT_SYM("reduce_max_i32");
extern "C" void simt_unsupported(const char *what);
SIMT_INLINE float __reduce_max_sync(simt_mask_t, float v) { simt_unsupported("a reduction of floats (sm_100)");
return v; }
SIMT_INLINE float __reduce_min_sync(simt_mask_t, float v) { simt_unsupported("a reduction of floats (sm_100)");
return v; }
unsigned __reduce_and_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_and");
unsigned __reduce_or_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_or");
unsigned __reduce_xor_sync(simt_mask_t mask, unsigned v) SIMT_SYM("reduce_xor");

/* ---- atomics: each returns the old value ---- */
#define SIMT_ATOMIC(NAME, T, S) T NAME(T *p, T v) SIMT_SYM("atomic_" S);
#define SIMT_ATOMIC_SCOPES(NAME, T, S)                                                                                \
    SIMT_ATOMIC(NAME, T, S) SIMT_ATOMIC(NAME##_block, T, S) SIMT_ATOMIC(NAME##_system, T, S)

SIMT_ATOMIC_SCOPES(atomicAdd, int, "add_u32")
SIMT_ATOMIC_SCOPES(atomicAdd, unsigned, "add_u32")
SIMT_ATOMIC_SCOPES(atomicAdd, unsigned long long, "add_u64")
SIMT_ATOMIC_SCOPES(atomicAdd, float, "add_f32")
SIMT_ATOMIC_SCOPES(atomicAdd, double, "add_f64")
SIMT_ATOMIC_SCOPES(atomicSub, int, "sub_u32")
SIMT_ATOMIC_SCOPES(atomicSub, unsigned, "sub_u32")
SIMT_ATOMIC_SCOPES(atomicExch, int, "exch_u32")
SIMT_ATOMIC_SCOPES(atomicExch, unsigned, "exch_u32")
SIMT_ATOMIC_SCOPES(atomicExch, unsigned long long, "exch_u64")
SIMT_ATOMIC_SCOPES(atomicExch, float, "exch_f32")
SIMT_ATOMIC_SCOPES(atomicMin, int, "min_i32")
SIMT_ATOMIC_SCOPES(atomicMin, unsigned, "min_u32")
SIMT_ATOMIC_SCOPES(atomicMin, long long, "min_i64")
SIMT_ATOMIC_SCOPES(atomicMin, unsigned long long, "min_u64")
SIMT_ATOMIC_SCOPES(atomicMax, int, "max_i32")
SIMT_ATOMIC_SCOPES(atomicMax, unsigned, "max_u32")
SIMT_ATOMIC_SCOPES(atomicMax, long long, "max_i64")
SIMT_ATOMIC_SCOPES(atomicMax, unsigned long long, "max_u64")
SIMT_ATOMIC_SCOPES(atomicAnd, int, "and_u32")
SIMT_ATOMIC_SCOPES(atomicAnd, unsigned, "and_u32")
SIMT_ATOMIC_SCOPES(atomicAnd, unsigned long long, "and_u64")
SIMT_ATOMIC_SCOPES(atomicOr, int, "or_u32")
SIMT_ATOMIC_SCOPES(atomicOr, unsigned, "or_u32")
SIMT_ATOMIC_SCOPES(atomicOr, unsigned long long, "or_u64")
SIMT_ATOMIC_SCOPES(atomicXor, int, "xor_u32")
SIMT_ATOMIC_SCOPES(atomicXor, unsigned, "xor_u32")
SIMT_ATOMIC_SCOPES(atomicXor, unsigned long long, "xor_u64")
SIMT_ATOMIC_SCOPES(atomicInc, unsigned, "inc_u32")
SIMT_ATOMIC_SCOPES(atomicDec, unsigned, "dec_u32")

/* Pairs and fours of floats (from 9.0 on): each element by itself. */
SIMT_INLINE float2 atomicAdd(float2 *p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
SIMT_INLINE float4 atomicAdd(float4 *p, float4 v)
{
    return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}

#define SIMT_CAS(NAME, T, S) T NAME(T *p, T expected, T desired) SIMT_SYM("atomic_" S);
SIMT_CAS(atomicCAS, int, "cas_u32")
SIMT_CAS(atomicCAS, unsigned, "cas_u32")
SIMT_CAS(atomicCAS, unsigned long long, "cas_u64")
SIMT_CAS(atomicCAS, unsigned short, "cas_u16")
SIMT_CAS(atomicCAS_block, int, "cas_u32")
SIMT_CAS(atomicCAS_block, unsigned, "cas_u32")
SIMT_CAS(atomicCAS_block, unsigned long long, "cas_u64")
SIMT_CAS(atomicCAS_system, int, "cas_u32")
SIMT_CAS(atomicCAS_system, unsigned, "cas_u32")
SIMT_CAS(atomicCAS_system, unsigned long long, "cas_u64")

/* ---- loads and stores with cache hints ---- */
#define SIMT_LOAD(NAME) template <class T> SIMT_INLINE T NAME(const T *p) { return *p; }
#define SIMT_STORE(NAME) template <class T> SIMT_INLINE void NAME(T *p, typename simt::same<T>::type v) { *p = v; }
template <class T> SIMT_INLINE T __ldg(const T *p) { SIMT_READ_ONLY(p, sizeof(T)); return *p; }
SIMT_LOAD(__ldcg) SIMT_LOAD(__ldca) SIMT_LOAD(__ldcs) SIMT_LOAD(__ldlu) SIMT_LOAD(__ldcv)
SIMT_STORE(__stwb) SIMT_STORE(__stcg) SIMT_STORE(__stcs) SIMT_STORE(__stwt)

/* ---- clocks and ends ---- */
long long clock64() SIMT_SYM("clock64");
void __nanosleep(unsigned ns) SIMT_SYM("nanosleep");
void __trap() SIMT_SYM("trap");
SIMT_INLINE void __brkpt() {}
SIMT_INLINE void __prof_trigger(int) {}

/* ---- integer intrinsics ---- */
SIMT_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
SIMT_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SIMT_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIMT_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
SIMT_INLINE int __ffs(int x) { return __builtin_ffs(x); }
SIMT_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
SIMT_INLINE unsigned __brev(unsigned x)
{
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(x);
}
SIMT_INLINE unsigned long long __brevll(unsigned long long x)
{
    return ((unsigned long long)__brev((unsigned)x) << 32) | __brev((unsigned)(x >> 32));
}
SIMT_INLINE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
SIMT_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
SIMT_INLINE long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
SIMT_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
SIMT_INLINE int __mul24(int a, int b)
{
    return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8));
}
SIMT_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
SIMT_INLINE unsigned __sad(int a, int b, unsigned c) { return (a > b ? (unsigned)a - b : (unsigned)b - a) + c; }
SIMT_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
SIMT_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
SIMT_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
SIMT_INLINE unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
SIMT_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    unsigned long long v = ((unsigned long long)b << 32) | a;
    unsigned r = 0;

    for (int i = 0; i < 4; i++) {
        unsigned sel = (s >> (4 * i)) & 15, byte = (unsigned)(v >> (8 * (sel & 7))) & 255;
        r |= (sel & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
    }
    return r;
}
SIMT_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((((unsigned long long)hi << 32) | lo) << (n & 31)) >> 32);
}
SIMT_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)((((unsigned long long)hi << 32) | lo) >> (n & 31));
}
SIMT_INLINE int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
    return c;
}
SIMT_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8)
        c += ((a >> i) & 255u) * ((b >> i) & 255u);
    return c;
}

#define SIMT_DP2A(NAME, T, E16, E8, AT)                                                                               \
    SIMT_INLINE T NAME(T a, T b, T c)                                                                                 \
    {                                                                                                                 \
        return c + (T)(E16)a * (T)(E8)((unsigned)b >> (AT)) +                                                         \
               (T)(E16)((unsigned)a >> 16) * (T)(E8)((unsigned)b >> ((AT) + 8));                                      \
    }
SIMT_DP2A(__dp2a_lo, int, short, signed char, 0)
SIMT_DP2A(__dp2a_hi, int, short, signed char, 16)
SIMT_DP2A(__dp2a_lo, unsigned, unsigned short, unsigned char, 0)
SIMT_DP2A(__dp2a_hi, unsigned, unsigned short, unsigned char, 16)
#undef SIMT_DP2A

/* Launches are in order here, so there is nothing to wait for. */
SIMT_INLINE void cudaGridDependencySynchronize() {}
SIMT_INLINE void cudaTriggerProgrammaticLaunchCompletion() {}

#undef SIMT_SHFL
#undef SIMT_MATCH
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_SCOPES
#undef SIMT_CAS
#undef SIMT_LOAD
#undef SIMT_STORE
#endif
