/* rmsnorm.cu - root-mean-square norm (Zhang & Sennrich, arXiv 1910.07467), a warp a row.
 * y = x r (plus + w) with r = (mean x^2 + eps)^-1/2. With xh = x r and g = dy (plus + w): dx = r (g - xh mean(g xh)),
 * dw = sum dy xh. */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8

template <class T>
__global__ void rmsnorm_kernel(int rows, int d, const int32_t *from, const T *x, const T *w, float plus,
                               float eps, T *y, float *rstd)
{
    int row = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    float sum = 0, v[8], u[8];

    if (row >= rows)
        return;
    x += (size_t)(from ? from[row] : row) * d;
    y += (size_t)row * d;
    for (int i = lane * 8; i < d; i += 256) {
        load8(x + i, v);
        for (int j = 0; j < 8; j++)
            sum += v[j] * v[j];
    }
    sum = rsqrtf(warp_sum(sum) / (float)d + eps);
    for (int i = lane * 8; i < d; i += 256) {
        load8(x + i, v);
        load8(w + i, u);
        for (int j = 0; j < 8; j++)
            v[j] = v[j] * sum * (plus + u[j]);
        store8(y + i, v);
    }
    if (rstd && lane == 0)
        rstd[row] = sum;
}

template <class T>
static void rmsnorm_t(struct nn_queue *q, int rows, int d, const int32_t *from, const void *x, const void *w,
                      float plus,
                      float eps, void *y, float *rstd)
{
    launch(q, "rmsnorm", (rmsnorm_kernel<T>), ceil_div(rows, WARPS), WARPS * 32, 0, rows, d, from, (const T *)x,
           (const T *)w, plus, eps, (T *)y, rstd);
}

void op_rmsnorm(struct nn_queue *q, enum nn_dtype dt, int rows, int d, const int32_t *from, const void *x,
                const void *w, float plus, float eps, void *y, float *rstd)
{
    if (rows > 0)
        by_dtype(dt, rmsnorm_t, q, rows, d, from, x, w, plus, eps, y, rstd);
}

/* N: chunks of 256 columns. A lane keeps its columns of dw in registers over all rows of its warp. partial (blocks, d).
 * */
template <class T, int N>
__global__ void __launch_bounds__(WARPS * 32)
rmsnorm_backward_kernel(int rows, int d, const int32_t *from, const T *x, const T *w, float plus,
                        const float *rstd, const T *dy, T *dx, T *y, float *partial)
{
    __shared__ float sums[WARPS][256];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    float dw[N][8];

    for (int n = 0; n < N; n++)
        for (int j = 0; j < 8; j++)
            dw[n][j] = 0;
    for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
        size_t at = (size_t)(from ? from[row] : row) * d, to = (size_t)row * d;
        float r = rstd[row], dot = 0, v[8], g[8], u[8];
#pragma unroll
        for (int n = 0; n < N; n++) {
            int i = n * 256 + lane * 8;
            if (i < d) {
                load8(x + at + i, v);
                load8(dy + to + i, g);
                load8(w + i, u);
                for (int j = 0; j < 8; j++) {
                    dot += g[j] * (plus + u[j]) * v[j] * r;
                    dw[n][j] += g[j] * v[j] * r;
                }
            }
        }
        dot = warp_sum(dot) / (float)d;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int i = n * 256 + lane * 8;
            float out[8];
            if (i < d) {
                load8(x + at + i, v);
                load8(dy + to + i, g);
                load8(w + i, u);
                load8(dx + at + i, out);
                for (int j = 0; j < 8; j++)
                    out[j] += r * (g[j] * (plus + u[j]) - v[j] * r * dot);
                store8(dx + at + i, out);
                if (y) {
                    for (int j = 0; j < 8; j++)
                        v[j] = v[j] * r * (plus + u[j]);
                    store8(y + to + i, v);
                }
            }
        }
    }
    for (int n = 0; n < N; n++) { /* warps of the block, in order */
        for (int j = 0; j < 8; j++)
            sums[warp][lane * 8 + j] = dw[n][j];
        __syncthreads();
        int c = n * 256 + threadIdx.x;
        if (c < d) {
            float s = 0;
            for (int k = 0; k < WARPS; k++)
                s += sums[k][threadIdx.x];
            partial[(size_t)blockIdx.x * d + c] = s;
        }
        __syncthreads();
    }
}

__global__ void add_partials_kernel(int blocks, int d, const float *partial, float *dw)
{
    __shared__ float sums[8][33];
    int c = blockIdx.x * 32 + (threadIdx.x & 31), part = threadIdx.x >> 5;
    float s = 0;

    if (c < d)
        for (int b = part; b < blocks; b += 8)
            s += partial[(size_t)b * d + c];
    sums[part][threadIdx.x & 31] = s;
    __syncthreads();
    if (part == 0 && c < d) {
        for (int k = 1; k < 8; k++)
            s += sums[k][threadIdx.x];
        dw[c] += s;
    }
}

void add_partials(struct nn_queue *q, int blocks, int d, const float *partial, float *dw)
{
    launch(q, "add_partials", add_partials_kernel, ceil_div(d, 32), 256, 0, blocks, d, partial, dw);
}

template <class T, int N>
static void rmsnorm_backward_n(struct nn_queue *q, int rows, int d, const int32_t *from, const void *x, const void *w,
                               float plus, const float *rstd, const void *dy, void *dx, float *dw, void *y)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div(rows, WARPS));

    launch(q, "rmsnorm_backward", (rmsnorm_backward_kernel<T, N>), blocks, WARPS * 32, 0, rows, d, from, (const T *)x,
           (const T *)w, plus, rstd, (const T *)dy, (T *)dx, (T *)y, q->scratch);
    add_partials(q, blocks, d, q->scratch, dw);
}

template <class T>
static void rmsnorm_backward_t(struct nn_queue *q, int rows, int d, const int32_t *from, const void *x, const void *w,
                               float plus, const float *rstd, const void *dy, void *dx, float *dw, void *y)
{
    if (d <= 256)
        rmsnorm_backward_n<T, 1>(q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
    else if (d <= 512)
        rmsnorm_backward_n<T, 2>(q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
    else if (d <= 1024)
        rmsnorm_backward_n<T, 4>(q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
    else if (d <= 2048)
        rmsnorm_backward_n<T, 8>(q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
    else if (d <= 5120)
        rmsnorm_backward_n<T, 20>(q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
    else
        queue_fail(q, "rmsnorm_backward", "rows wider than 5120");
}

void op_rmsnorm_backward(struct nn_queue *q, enum nn_dtype dt, int rows, int d, const int32_t *from, const void *x,
                         const void *w, float plus, const float *rstd, const void *dy, void *dx, float *dw, void *y)
{
    if (rows > 0)
        by_dtype(dt, rmsnorm_backward_t, q, rows, d, from, x, w, plus, rstd, dy, dx, dw, y);
}
