/* adamw.cu - the AdamW update (Loshchilov & Hutter, arXiv 1711.05101, as torch.optim.AdamW computes it) over whole
 * slabs with fp32 master weights, and sums over slabs in double. */
#include "nn/ops/cuda/ops.cuh"

#define THREADS 256

template <class T> __global__ void adamw_kernel(struct nn_adamw a)
{
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 4;

    if (i >= a.n)
        return;
    float keep = a.decays[i / 64] ? 1 - a.lr * a.decay : 1, step = a.lr / a.correct1, root = rsqrtf(a.correct2);
    float4 w4 = *(float4 *)(a.w + i), g4 = *(const float4 *)(a.g + i);
    float4 m4 = *(float4 *)(a.m + i), v4 = *(float4 *)(a.v + i);
    float w[4] = {w4.x, w4.y, w4.z, w4.w}, g[4] = {g4.x, g4.y, g4.z, g4.w}, m[4] = {m4.x, m4.y, m4.z, m4.w},
          v[4] = {v4.x, v4.y, v4.z, v4.w};
    for (int j = 0; j < 4; j++) {
        float x = g[j] * a.scale;
        m[j] = a.beta1 * m[j] + (1 - a.beta1) * x;
        v[j] = a.beta2 * v[j] + (1 - a.beta2) * x * x;
        w[j] = w[j] * keep - step * m[j] / (sqrtf(v[j]) * root + a.eps);
    }
    *(float4 *)(a.w + i) = make_float4(w[0], w[1], w[2], w[3]);
    *(float4 *)(a.m + i) = make_float4(m[0], m[1], m[2], m[3]);
    *(float4 *)(a.v + i) = make_float4(v[0], v[1], v[2], v[3]);
    if (a.w16)
        store4((T *)a.w16 + i, w);
}

void op_adamw(struct nn_queue *q, enum nn_dtype dt, const struct nn_adamw *a)
{
    int blocks = ceil_div((long)(a->n / 4), THREADS);

    if (dt == NN_BF16)
        launch(q, "adamw", (adamw_kernel<bf16>), blocks, THREADS, 0, *a);
    else
        launch(q, "adamw", (adamw_kernel<float>), blocks, THREADS, 0, *a);
}

__device__ __forceinline__ double block_sum_double(double x, double *part)
{
    for (int i = 16; i; i >>= 1)
        x += __shfl_xor_sync(FULL_WARP, x, i);
    if ((threadIdx.x & 31) == 0)
        part[threadIdx.x >> 5] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < THREADS / 32; i++)
        x += part[i];
    return x;
}

__global__ void sumsq_kernel(size_t n, const float *x, double *partial)
{
    __shared__ double part[THREADS / 32];
    size_t step = (size_t)gridDim.x * THREADS * 4;
    double sum = 0;

    for (size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 4; i < n; i += step) {
        if (i + 4 <= n) {
            float4 v = *(const float4 *)(x + i);
            sum += (double)v.x * v.x + (double)v.y * v.y + (double)v.z * v.z + (double)v.w * v.w;
        } else {
            for (size_t j = i; j < n; j++)
                sum += (double)x[j] * x[j];
        }
    }
    sum = block_sum_double(sum, part);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

__global__ void sum_partial_kernel(int n, const double *partial, double *ret)
{
    __shared__ double part[THREADS / 32];
    double sum = 0;

    for (int i = threadIdx.x; i < n; i += THREADS)
        sum += partial[i];
    sum = block_sum_double(sum, part);
    if (threadIdx.x == 0)
        *ret = sum;
}

void op_sumsq(struct nn_queue *q, size_t n, const float *x, double *ret)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div((long)n, THREADS * 4));

    launch(q, "sumsq", sumsq_kernel, blocks, THREADS, 0, n, x, (double *)q->scratch);
    launch(q, "sum_partial", sum_partial_kernel, 1, THREADS, 0, blocks, (const double *)q->scratch, ret);
}

__global__ void scale_kernel(size_t n, float *x, float s)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        x[i] *= s;
}

void op_scale(struct nn_queue *q, size_t n, float *x, float s)
{
    launch(q, "scale", scale_kernel, ceil_div((long)n, THREADS), THREADS, 0, n, x, s);
}
