/* queue.cuh - what the operators of one device share: stream, scratch, matrix library, and the first error. */
#ifndef MC_NN_QUEUE_CUH
#define MC_NN_QUEUE_CUH

#include <stdio.h>

#include "nn/ops/cuda/warp.cuh"
#include "nn/ops/dev_ops.h"

/* blocks that leave a partial sum; fixed, so that sums do not depend on the device */
#define PARTIAL_BLOCKS 512
#define SCRATCH_BYTES ((size_t)64 << 20)

struct gemm_library; /* gemm.cu */
struct comm;         /* collective.cu */

struct nn_queue {
    int ordinal, processors;
    bool groups;              /* attention by warpgroups (wgmma): on compute capability 9.0 */
    cudaStream_t stream;
    cudaEvent_t start, stop;
    float *scratch;           /* SCRATCH_BYTES of device memory; an operator's own until its last kernel */
    struct gemm_library *gemm;
    struct comm *comm;
    struct profile *profile;  /* NULL unless $MUSACODER_NN_PROFILE is set */
    char error[256];          /* the first; empty: none */
};

/* Device time of what is queued between the two, summed by name and told when the queue closes. device.cu. */
void profile_begin(struct nn_queue *q, const char *name);
void profile_end(struct nn_queue *q);

static inline void queue_fail(struct nn_queue *q, const char *what, const char *why)
{
    if (!q->error[0])
        snprintf(q->error, sizeof q->error, "%s: %s", what, why);
}

static inline bool queue_check(struct nn_queue *q, const char *what, cudaError_t code)
{
    if (code != cudaSuccess)
        queue_fail(q, what, cudaGetErrorString(code));
    return code == cudaSuccess;
}

/* launch(q, "name", kernel, grid, block, shared bytes, arguments...) */
#ifdef NN_EMULATED
#define launch(q, name, kernel, grid, block, shared, ...)                                                              \
    do {                                                                                                               \
        auto kernel_ = kernel;                                                                                         \
        ::simt::cfg(::simt::site{name, __FILE__, __LINE__}, grid, block, shared, nullptr).of(kernel_)(__VA_ARGS__);    \
        queue_check(q, name, cudaGetLastError());                                                                      \
    } while (0)
#elif defined NN_COMPILE_ONLY /* a compiler that knows no launches: the arguments are checked */
#define launch(q, name, kernel, grid, block, shared, ...)                                                              \
    do {                                                                                                               \
        auto kernel_ = kernel;                                                                                         \
        (void)dim3(grid), (void)dim3(block), (void)(size_t)(shared);                                                   \
        kernel_(__VA_ARGS__);                                                                                          \
    } while (0)
#else
#define launch(q, name, kernel, grid, block, shared, ...)                                                              \
    do {                                                                                                               \
        auto kernel_ = kernel;                                                                                         \
        if ((q)->profile)                                                                                              \
            profile_begin(q, name);                                                                                    \
        kernel_<<<grid, block, shared, (q)->stream>>>(__VA_ARGS__);                                                    \
        queue_check(q, name, cudaGetLastError());                                                                      \
        if ((q)->profile)                                                                                              \
            profile_end(q);                                                                                            \
    } while (0)
#endif

/* Calls f<float>(...) or f<bf16>(...). */
#define by_dtype(dt, f, ...)                                                                                           \
    do {                                                                                                               \
        if ((dt) == NN_BF16)                                                                                           \
            f<bf16>(__VA_ARGS__);                                                                                      \
        else                                                                                                           \
            f<float>(__VA_ARGS__);                                                                                     \
    } while (0)

static inline int ceil_div(long a, long b) { return (int)((a + b - 1) / b); }
static inline int at_most(int a, int b) { return a < b ? a : b; }

/* dw (d) += partial[0..blocks) (blocks, d), in order. rmsnorm.cu. */
void add_partials(struct nn_queue *q, int blocks, int d, const float *partial, float *dw);

#endif
