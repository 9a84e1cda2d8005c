/* swiglu.cu - silu(gate) * up (Shazeer, arXiv 2002.05202), eight elements a thread.
 * With s = sigmoid(g): silu = g s, d silu / dg = s (1 + g (1 - s)). */
#include "nn/ops/cuda/ops.cuh"

/* Where the gate of a chunk of eight lies; its other half is f further. In 32 bits: a 64-bit division costs as much as
 * the rest. */
__device__ __forceinline__ size_t place_of(uint32_t chunk, int f)
{
    uint32_t per = (uint32_t)f / 8, row = chunk / per;

    return (size_t)row * 2 * f + (chunk - row * per) * 8;
}

template <class T> __global__ void swiglu_kernel(size_t n, int f, const T *gu, T *act)
{
    uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
    size_t i = (size_t)chunk * 8;
    float g[8], u[8];

    if (i >= n)
        return;
    size_t at = place_of(chunk, f);
    load8(gu + at, g);
    load8(gu + at + f, u);
    for (int j = 0; j < 8; j++)
        g[j] = g[j] / (1 + expf(-g[j])) * u[j];
    store8(act + i, g);
}

template <class T> __global__ void swiglu_backward_kernel(size_t n, int f, const T *gu, const T *dact, T *dgu, T *act)
{
    uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
    size_t i = (size_t)chunk * 8;
    float g[8], u[8], d[8], a[8];

    if (i >= n)
        return;
    size_t at = place_of(chunk, f);
    load8(gu + at, g);
    load8(gu + at + f, u);
    load8(dact + i, d);
    for (int j = 0; j < 8; j++) {
        float s = 1 / (1 + expf(-g[j])), silu = g[j] * s;
        a[j] = silu * u[j];
        g[j] = d[j] * u[j] * s * (1 + g[j] * (1 - s));
        u[j] = d[j] * silu;
    }
    store8(dgu + at, g);
    store8(dgu + at + f, u);
    store8(act + i, a);
}

template <class T> static void swiglu_t(struct nn_queue *q, int rows, int f, const void *gu, void *act)
{
    size_t n = (size_t)rows * f;

    launch(q, "swiglu", (swiglu_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, f, (const T *)gu, (T *)act);
}

void op_swiglu(struct nn_queue *q, enum nn_dtype dt, int T, int f, const void *gu, void *act)
{
    by_dtype(dt, swiglu_t, q, T, f, gu, act);
}

template <class T>
static void swiglu_backward_t(struct nn_queue *q, int rows, int f, const void *gu, const void *dact, void *dgu,
                              void *act)
{
    size_t n = (size_t)rows * f;

    launch(q, "swiglu_backward", (swiglu_backward_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, f, (const T *)gu,
           (const T *)dact, (T *)dgu, (T *)act);
}

void op_swiglu_backward(struct nn_queue *q, enum nn_dtype dt, int T, int f, const void *gu, const void *dact, void *dgu,
                        void *act)
{
    by_dtype(dt, swiglu_backward_t, q, T, f, gu, dact, dgu, act);
}
