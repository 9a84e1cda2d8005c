/* atomic.c - atomic operations. Threads of a block only switch where they wait, so plain arithmetic is atomic here;
 * what the functions add is that the checker sees an atomic access, made by the caller's line. */
#include <math.h>
#include <string.h>

#include "runtime.h"

#define NOTE(p) check_atomic(p, sizeof *(p), __builtin_return_address(0), true)

/* An atomic that changed nothing may be a thread that waits for somebody. Its own effect has happened by then. */
#define LOOKED(p, old, unchanged)                                                                                     \
    do {                                                                                                              \
        if (unchanged)                                                                                                \
            wait_look(p, (uint64_t)(old), __builtin_return_address(0));                                               \
    } while (0)

#define ATOMIC(NAME, T, EXPR)                                                                                         \
    T simt_atomic_##NAME(T *p, T v);                                                                                  \
    T simt_atomic_##NAME(T *p, T v)                                                                                   \
    {                                                                                                                 \
        T old;                                                                                                        \
        NOTE(p);                                                                                                      \
        old = *p;                                                                                                     \
        *p = (T)(EXPR);                                                                                               \
        LOOKED(p, old, *p == old);                                                                                    \
        wait_behind_atomic(p);                                                                                        \
        return old;                                                                                                   \
    }
#define ATOMIC_BITS(S, T)                                                                                             \
    ATOMIC(add_##S, T, old + v)                                                                                       \
    ATOMIC(exch_##S, T, v)                                                                                            \
    ATOMIC(min_##S, T, old < v ? old : v)                                                                             \
    ATOMIC(max_##S, T, old > v ? old : v)                                                                             \
    ATOMIC(and_##S, T, old & v)                                                                                       \
    ATOMIC(or_##S, T, old | v)                                                                                        \
    ATOMIC(xor_##S, T, old ^ v)

ATOMIC_BITS(u32, uint32_t)
ATOMIC_BITS(u64, uint64_t)
ATOMIC(sub_u32, uint32_t, old - v)
ATOMIC(inc_u32, uint32_t, old >= v ? 0 : old + 1)
ATOMIC(dec_u32, uint32_t, old == 0 || old > v ? v : old - 1)
ATOMIC(min_i32, int32_t, old < v ? old : v)
ATOMIC(max_i32, int32_t, old > v ? old : v)
ATOMIC(min_i64, int64_t, old < v ? old : v)
ATOMIC(max_i64, int64_t, old > v ? old : v)
ATOMIC(add_f32, float, old + v)
ATOMIC(add_f64, double, old + v)
ATOMIC(exch_f32, float, v)

#define CAS(S, T)                                                                                                     \
    T simt_atomic_cas_##S(T *p, T expected, T desired);                                                               \
    T simt_atomic_cas_##S(T *p, T expected, T desired)                                                                \
    {                                                                                                                 \
        T old;                                                                                                        \
        NOTE(p);                                                                                                      \
        old = *p;                                                                                                     \
        if (old == expected)                                                                                          \
            *p = desired;                                                                                             \
        LOOKED(p, old, old != expected);                                                                              \
        wait_behind_atomic(p);                                                                                        \
        return old;                                                                                                   \
    }
CAS(u16, uint16_t)
CAS(u32, uint32_t)
CAS(u64, uint64_t)

/* ---- half and bfloat16: the sum is taken in float and rounded once ---- */

#if defined(__aarch64__)
typedef __fp16 f16;
#else
typedef _Float16 f16;
#endif

uint16_t simt_narrow_f16(float v); /* for compilers without the type */
float simt_widen_f16(uint16_t bits);

uint16_t simt_narrow_f16(float v)
{
    union { f16 v; uint16_t bits; } x = {(f16)v};

    return x.bits;
}

float simt_widen_f16(uint16_t bits)
{
    union { uint16_t bits; f16 v; } x = {bits};

    return (float)x.v;
}

static uint16_t add_f16(uint16_t a, uint16_t b)
{
    union { uint16_t bits; f16 v; } x = {a}, y = {b};

    x.v = (f16)((float)x.v + (float)y.v);
    return x.bits;
}

static float from_bf16(uint16_t a)
{
    union { uint32_t bits; float v; } x = {(uint32_t)a << 16};

    return x.v;
}

static uint16_t add_bf16(uint16_t a, uint16_t b)
{
    union { float v; uint32_t bits; } x = {from_bf16(a) + from_bf16(b)};

    if (x.v != x.v)
        return 0x7fff;
    return (uint16_t)((x.bits + 0x7fff + (x.bits >> 16 & 1)) >> 16);
}

struct small { uint16_t x; };
struct small2 { uint16_t x, y; };
#define ATOMIC_SMALL(S)                                                                                               \
    struct small simt_atomic_add_##S(struct small *p, struct small v);                                                \
    struct small simt_atomic_add_##S(struct small *p, struct small v)                                                 \
    {                                                                                                                 \
        struct small old;                                                                                             \
        NOTE(p);                                                                                                      \
        old = *p;                                                                                                     \
        p->x = add_##S(old.x, v.x);                                                                                   \
        return old;                                                                                                   \
    }                                                                                                                 \
    struct small2 simt_atomic_add_##S##x2(struct small2 *p, struct small2 v);                                         \
    struct small2 simt_atomic_add_##S##x2(struct small2 *p, struct small2 v)                                          \
    {                                                                                                                 \
        struct small2 old;                                                                                            \
        NOTE(p);                                                                                                      \
        old = *p;                                                                                                     \
        p->x = add_##S(old.x, v.x);                                                                                   \
        p->y = add_##S(old.y, v.y);                                                                                   \
        return old;                                                                                                   \
    }
ATOMIC_SMALL(f16)
ATOMIC_SMALL(bf16)

void simt_threadfence(void);
void simt_threadfence(void)
{
    check_fence();
}

/* ---- odds and ends that kernels call ---- */

#include <time.h>

long long simt_clock64(void);
void simt_nanosleep(unsigned ns), simt_trap(void);
double simt_erfinv(double x);

long long simt_clock64(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void simt_nanosleep(unsigned ns)
{
    (void)ns;
    wait_pause(__builtin_return_address(0));
}

void simt_trap(void)
{
    finding("assertion", __builtin_return_address(0), true, "__trap() was reached");
    if (run.in_kernel) {
        device_error_sticky(CUDA_LAUNCH_FAILURE);
        abort_kernel();
    }
    __builtin_trap();
}

/* Newton steps on erf from Winitzki's approximation; two of them reach the last bits of a double. */
double simt_erfinv(double x)
{
    double l, a, y;

    if (!(x > -1.0 && x < 1.0))
        return x == 1.0 ? INFINITY : x == -1.0 ? -INFINITY : NAN;
    l = log1p(-x * x);
    a = 4.3307467508 + l / 2.0; /* 2/(pi*0.147) + l/2 */
    y = copysign(sqrt(sqrt(a * a - l / 0.147) - a), x);
    for (int i = 0; i < 3; i++)
        y -= (erf(y) - x) / (1.12837916709551257390 * exp(-y * y));
    return y;
}
