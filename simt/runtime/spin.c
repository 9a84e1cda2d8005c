/* spin.c - instrumented accesses that threads talk by: volatile ones and atomics. They are checked (check.c), and a
 * thread that finds nothing changed lets others run (wait.c). */
#include <string.h>

#include "runtime.h"

#define RET __builtin_return_address(0)

static uint64_t word_at(const void *p, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, p, bytes < sizeof v ? bytes : sizeof v);
    return v;
}

static void volatile_read(const void *p, size_t bytes, const void *pc)
{
    const struct fiber *f = run.current;

    if (!f || (uintptr_t)p - (uintptr_t)f->stack < FIBER_STACK)
        return;
    if (check_now)
        check_volatile(p, bytes, false, pc);
    if (((uintptr_t)p & (bytes - 1)) == 0)
        wait_look(p, word_at(p, bytes), pc);
}

/* What it overwrites may be another block's by then: a block that gives way does so between its read and this. */
static void volatile_write(void *p, size_t bytes, const void *pc)
{
    const struct fiber *f = run.current;

    if (check_now && !(f && (uintptr_t)p - (uintptr_t)f->stack < FIBER_STACK))
        check_volatile(p, bytes, true, pc);
    wait_behind_atomic(p);
}

#define VOLATILE(N)                                                                                                   \
    void __tsan_volatile_read##N(void *p);                                                                            \
    void __tsan_volatile_read##N(void *p)                                                                             \
    {                                                                                                                 \
        volatile_read(p, N, RET);                                                                                     \
    }                                                                                                                 \
    void __tsan_volatile_write##N(void *p);                                                                           \
    void __tsan_volatile_write##N(void *p)                                                                            \
    {                                                                                                                 \
        volatile_write(p, N, RET);                                                                                    \
    }
VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)
VOLATILE(16)

/* std::atomic and the __atomic builtins: real atomics, since host threads use them too. */
#define ATOMIC_OPS(N, T)                                                                                              \
    T __tsan_atomic##N##_load(const volatile T *p, int order);                                                        \
    T __tsan_atomic##N##_load(const volatile T *p, int order)                                                         \
    {                                                                                                                 \
        (void)order;                                                                                                  \
        check_atomic((const void *)(uintptr_t)p, sizeof *p, RET, true);                                               \
        wait_look((const void *)(uintptr_t)p, *p, RET);                                                               \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                  \
    }                                                                                                                 \
    void __tsan_atomic##N##_store(volatile T *p, T v, int order);                                                     \
    void __tsan_atomic##N##_store(volatile T *p, T v, int order)                                                      \
    {                                                                                                                 \
        (void)order;                                                                                                  \
        check_atomic((const void *)(uintptr_t)p, sizeof *p, RET, false);                                              \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                     \
    }                                                                                                                 \
    ATOMIC_RMW(N, T, exchange, __atomic_exchange_n)                                                                   \
    ATOMIC_RMW(N, T, fetch_add, __atomic_fetch_add)                                                                   \
    ATOMIC_RMW(N, T, fetch_sub, __atomic_fetch_sub)                                                                   \
    ATOMIC_RMW(N, T, fetch_and, __atomic_fetch_and)                                                                   \
    ATOMIC_RMW(N, T, fetch_or, __atomic_fetch_or)                                                                     \
    ATOMIC_RMW(N, T, fetch_xor, __atomic_fetch_xor)                                                                   \
    ATOMIC_RMW(N, T, fetch_nand, __atomic_fetch_nand)                                                                 \
    ATOMIC_CAS(N, T, compare_exchange_strong)                                                                         \
    ATOMIC_CAS(N, T, compare_exchange_weak)                                                                           \
    T __tsan_atomic##N##_compare_exchange_val(volatile T *p, T expected, T v, int order, int fail);                   \
    T __tsan_atomic##N##_compare_exchange_val(volatile T *p, T expected, T v, int order, int fail)                    \
    {                                                                                                                 \
        (void)order, (void)fail;                                                                                      \
        check_atomic((const void *)(uintptr_t)p, sizeof *p, RET, true);                                               \
        if (*p != expected)                                                                                           \
            wait_look((const void *)(uintptr_t)p, *p, RET);                                                           \
        __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
        return expected;                                                                                              \
    }
#define ATOMIC_RMW(N, T, NAME, OP)                                                                                    \
    T __tsan_atomic##N##_##NAME(volatile T *p, T v, int order);                                                       \
    T __tsan_atomic##N##_##NAME(volatile T *p, T v, int order)                                                        \
    {                                                                                                                 \
        (void)order;                                                                                                  \
        check_atomic((const void *)(uintptr_t)p, sizeof *p, RET, true);                                               \
        v = OP(p, v, __ATOMIC_SEQ_CST);                                                                               \
        wait_behind_atomic((const void *)(uintptr_t)p);                                                               \
        return v;                                                                                                     \
    }
#define ATOMIC_CAS(N, T, NAME)                                                                                        \
    int __tsan_atomic##N##_##NAME(volatile T *p, T *expected, T v, int order, int fail);                              \
    int __tsan_atomic##N##_##NAME(volatile T *p, T *expected, T v, int order, int fail)                               \
    {                                                                                                                 \
        (void)order, (void)fail;                                                                                      \
        check_atomic((const void *)(uintptr_t)p, sizeof *p, RET, true);                                               \
        if (*p != *expected)                                                                                          \
            wait_look((const void *)(uintptr_t)p, *p, RET);                                                           \
        return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
    }
ATOMIC_OPS(8, uint8_t)
ATOMIC_OPS(16, uint16_t)
ATOMIC_OPS(32, uint32_t)
ATOMIC_OPS(64, uint64_t)

void __tsan_atomic_thread_fence(int order), __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
