/* core.h - execution space keywords, built-in variables and launches. */
#ifndef SIMT_CORE_H
#define SIMT_CORE_H

#include <string.h>

#include "simt/abi.h"

/* Kernels may call these; through the runtime, the checker sees what they touch. */
extern "C" {
void *memcpy(void *, const void *, size_t) noexcept __asm__("simt_memcpy");
void *memmove(void *, const void *, size_t) noexcept __asm__("simt_memmove");
void *memset(void *, int, size_t) noexcept __asm__("simt_memset");
}

/* As in nvcc's pass for the device. One text is compiled here for both sides, so host code sees __CUDA_ARCH__ too;
 * without it kernels that ask for an architecture would be empty. The card is the one of the device's properties. */
#ifndef __CUDACC__
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#endif
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif

/* Kernels, and what runs one thread of a launch, stay in the device's half of a build (simt/image.h) though nothing
 * in it refers to them: launches name them. */
#define SIMT_ROOT __attribute__((used, retain))
#define __global__ SIMT_ROOT
#define __device__
#define __host__
#define __constant__ SIMT_ROOT
#define __managed__
#define __grid_constant__
/* No more than inline: what is passed on, as an operator of reduce, is called by its address. */
#define __forceinline__ inline
#define SIMT_NOINLINE __attribute__((noinline))
#define SIMT_UNCHECKED __attribute__((no_sanitize("thread", "alignment")))
#define __launch_bounds__(...)
/* The rewriter puts it where a kernel with __launch_bounds__ begins. */
#define SIMT_BOUNDS(n) if (blockDim.x * blockDim.y * blockDim.z > unsigned(n)) simt_bounds(unsigned(n));
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __inline_hint__
#define __nv_pure__
#define __builtin_assume(x) ((void)0)
#define __nv_is_extended_device_lambda_closure_type(T) false
/* Thread-local storage holds the block's static shared memory and nothing else: the runtime finds it, fills it and
 * checks it as one range. A block never leaves its thread. */
#define __shared__ static __thread

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

/* Constant for as long as one thread of the grid runs, so the compiler may keep them in registers. */
extern "C" {
extern const uint3 threadIdx, blockIdx, blockDim, gridDim;
extern const int warpSize;
}

extern "C" void simt_bounds(unsigned most);
/* A load that passes the coherent caches by: of bytes that this launch has written it is a finding. */
extern "C" void simt_read_only(const void *p, unsigned long bytes);
#ifdef __SANITIZE_THREAD__
#define SIMT_READ_ONLY(p, bytes) simt_read_only(p, bytes)
#else
#define SIMT_READ_ONLY(p, bytes) ((void)0)
#endif
typedef struct CUstream_st *cudaStream_t;

namespace simt {

typedef simt_site site;

template <class T> struct same {
    typedef T type;
};
template <class T> struct same<const T> {
    typedef T type;
};

/* A launch's block of arguments: bytes that mean the same in another process. */
template <class... P> struct pack {
    template <class K, class... Done> inline __attribute__((always_inline)) void call(K k, Done &...done)
    {
        k(done...);
    }
};
template <class H, class... T> struct pack<H, T...> {
    typename same<H>::type head;
    pack<T...> tail;

    pack(const typename same<H>::type &h, const typename same<T>::type &...t) : head(h), tail(t...) {}
    template <class K, class... Done> inline __attribute__((always_inline)) void call(K k, Done &...done)
    {
        tail.call(k, done..., head);
    }
};

/* Where arguments lie in a launch's block: behind the kernel's address, each aligned as its type. */
template <class... P> struct spots {
    static constexpr simt_spot of[] = {{sizeof(P), alignof(P)}..., {0, 1}};
    static constexpr size_t offset(size_t i)
    {
        size_t at = sizeof(void *);

        for (size_t j = 0;; at += of[j++].size) {
            at = (at + of[j].align - 1) / of[j].align * of[j].align;
            if (j == i)
                return at;
        }
    }
};

template <size_t... I> struct ints {};
template <class I, class... P> struct task;
/* Runs one thread of a launch. What it reads is the launch's own, so it is not checked. */
template <size_t... I, class... P> struct task<ints<I...>, P...> {
    SIMT_ROOT SIMT_UNCHECKED static void run(void *p)
    {
        (*static_cast<void (**)(P...)>(p))(
            *reinterpret_cast<typename same<P>::type *>(static_cast<char *>(p) + spots<P...>::offset(I))...);
    }
};

/* A launch whose kernel and configuration are known: calling it with the kernel's arguments runs it. Each launch of a
 * candidate is one of these, so its code is calls alone: a function that is compiled costs a millisecond. */
template <class... P> struct bound {
    simt_launch *l;

    inline __attribute__((always_inline)) void operator()(typename same<P>::type... a) const
    {
        simt_run_args(l, simt_run, task<ints<__integer_pack(sizeof...(P))...>, P...>::run, spots<P...>::of,
                      __builtin_addressof(a)...);
    }
};

/* A closure that calls the kernel, and the arguments. The closure holds copies of what the kernel's name refers to: g++
 * captures constants that stand in template arguments, and a kernel's pointer may be a variable. */
template <class F, class... A> struct closure {
    F call;
    pack<A...> args;
};

template <class F, class... A> SIMT_ROOT void run_closure(void *p)
{
    closure<F, A...> *t = static_cast<closure<F, A...> *>(p);

    t->args.call(t->call);
}

/* The same for kernels that can only be named together with their arguments. */
template <class F> struct generic {
    simt_launch l;
    F call;

    template <class... A> void operator()(A... a)
    {
        static constexpr size_t sizes[] = {sizeof(A)..., 0};
        const void *args[] = {__builtin_addressof(a)..., nullptr};
        closure<F, A...> t = {call, pack<A...>(a...)};

        l.args = args, l.sizes = sizes, l.n_args = int(sizeof...(A));
        l.body = run_closure<F, A...>;
        l.ctx = &t;
        l.ctx_bytes = sizeof t;
        l.captures = __is_empty(F) ? 0 : int(sizeof(F));
        simt_run(&l);
    }
};

/* callee<<<grid, block, shared, stream>>> */
struct cfg {
    simt_launch l;

    cfg(const site &s, const dim3 &grid, const dim3 &block = dim3(1), size_t shared = 0, cudaStream_t stream = nullptr)
    {
        simt_configure(&l, &s, &grid.x, &block.x, shared, stream);
    }
    template <class... P> inline __attribute__((always_inline)) bound<P...> of(void (*k)(P...))
    {
        l.fn = reinterpret_cast<const void *>(k);
        return bound<P...>{&l};
    }
    template <class F> generic<F> gen(F f) { return generic<F>{l, f}; }
};

} // namespace simt

#define SIMT_AT(name) SIMT_AT_(name)
#define SIMT_AT_(name) ::simt::site{#name, __FILE__, __LINE__}

#endif
