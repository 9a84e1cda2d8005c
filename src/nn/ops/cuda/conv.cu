/* conv.cu - causal depthwise convolution of a few taps, then silu: y_t = silu(u_t), u_t = sum_k w[taps - 1 - k]
 * x_{t-k}, k no larger than the position. A thread owns eight channels of a row. */
#include "nn/ops/cuda/ops.cuh"

#define MOST NN_MAX_TAPS
#define ROWS 8            /* of a block that sums a gradient */
#define DW_BLOCKS 64

__device__ __forceinline__ float silu_slope(float u)
{
    float s = 1 / (1 + expf(-u));

    return s * (1 + u * (1 - s));
}

/* Weights of eight channels: w[k][j] for tap k back. */
template <class T> __device__ __forceinline__ void load_taps(const T *w, int c, int taps, float (*out)[8])
{
    for (int j = 0; j < 8; j++)
        for (int k = 0; k < taps; k++)
            out[k][j] = to_float(w[(size_t)(c + j) * taps + taps - 1 - k]);
}

template <class T>
__device__ __forceinline__ void conv_row(const T *x, int ld, int past, int taps, const float (*w)[8], float *u)
{
    float v[8];

    for (int j = 0; j < 8; j++)
        u[j] = 0;
    for (int k = past < taps - 1 ? past : taps - 1; k >= 0; k--) {
        load8(x - (size_t)k * ld, v);
        for (int j = 0; j < 8; j++)
            u[j] += w[k][j] * v[j];
    }
}

template <class T>
__global__ void conv_silu_kernel(int rows, int ch, int taps, const int32_t *pos, const T *x, int ld, const T *w, T *y)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8;
    int t = (int)(i / ch), c = (int)(i % ch);
    float u[8], wk[MOST][8];

    if (t >= rows)
        return;
    load_taps(w, c, taps, wk);
    conv_row(x + (size_t)t * ld + c, ld, pos[t], taps, wk, u);
    for (int j = 0; j < 8; j++)
        u[j] = u[j] / (1 + expf(-u[j]));
    store8(y + i, u);
}

/* dy becomes du. */
template <class T>
__global__ void conv_du_kernel(int rows, int ch, int taps, const int32_t *pos, const T *x, int ld, const T *w, T *dy)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8;
    int t = (int)(i / ch), c = (int)(i % ch);
    float u[8], d[8], wk[MOST][8];

    if (t >= rows)
        return;
    load_taps(w, c, taps, wk);
    conv_row(x + (size_t)t * ld + c, ld, pos[t], taps, wk, u);
    load8(dy + i, d);
    for (int j = 0; j < 8; j++)
        d[j] *= silu_slope(u[j]);
    store8(dy + i, d);
}

template <class T>
__global__ void conv_dx_kernel(int rows, int ch, int taps, const int32_t *pos, const T *du, const T *w, T *dx, int ld)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8;
    int s = (int)(i / ch), c = (int)(i % ch);
    float sum[8] = {0}, d[8], wk[MOST][8];

    if (s >= rows)
        return;
    load_taps(w, c, taps, wk);
    for (int k = 0; k < taps && s + k < rows && pos[s + k] == pos[s] + k; k++) {
        load8(du + i + (size_t)k * ch, d);
        for (int j = 0; j < 8; j++)
            sum[j] += wk[k][j] * d[j];
    }
    store8(dx + (size_t)s * ld + c, sum);
}

/* A block sums dw of 256 channels over every DW_BLOCKS-th group of ROWS rows. partial (blocks, ch * taps). */
template <class T>
__global__ void conv_dw_kernel(int rows, int ch, int taps, const int32_t *pos, const T *x, int ld, const T *du,
                               float *partial)
{
    __shared__ float sums[ROWS][256];
    int lane = threadIdx.x & 31, part = threadIdx.x >> 5, c = blockIdx.x * 256 + lane * 8;
    float sum[MOST][8], d[8], v[8];

    for (int k = 0; k < taps; k++)
        for (int j = 0; j < 8; j++)
            sum[k][j] = 0;
    for (int t = blockIdx.y * ROWS + part; t < rows && c < ch; t += gridDim.y * ROWS) {
        load8(du + (size_t)t * ch + c, d);
        for (int k = 0; k < taps && k <= pos[t]; k++) {
            load8(x + (size_t)(t - k) * ld + c, v);
            for (int j = 0; j < 8; j++)
                sum[k][j] += d[j] * v[j];
        }
    }
    for (int k = 0; k < taps; k++) {
        for (int j = 0; j < 8; j++)
            sums[part][lane * 8 + j] = sum[k][j];
        __syncthreads();
        int mine = blockIdx.x * 256 + threadIdx.x;
        if (mine < ch) {
            float s = 0;
            for (int p = 0; p < ROWS; p++)
                s += sums[p][threadIdx.x];
            partial[(size_t)blockIdx.y * ch * taps + (size_t)mine * taps + taps - 1 - k] = s;
        }
        __syncthreads();
    }
}

template <class T>
static void conv_t(struct nn_queue *q, int rows, int ch, int taps, const int32_t *pos, const void *x, int ld,
                   const void *w, void *y)
{
    launch(q, "conv_silu", (conv_silu_kernel<T>), ceil_div((long)rows * ch / 8, 256), 256, 0, rows, ch, taps, pos,
           (const T *)x, ld, (const T *)w, (T *)y);
}

void op_conv_silu(struct nn_queue *q, enum nn_dtype dt, int T, int ch, int taps, const int32_t *pos, const void *x,
                  int ld, const void *w, void *y)
{
    by_dtype(dt, conv_t, q, T, ch, taps, pos, x, ld, w, y);
}

template <class T>
static void conv_backward_t(struct nn_queue *q, int rows, int ch, int taps, const int32_t *pos, const void *x, int ld,
                            const void *w, void *dy, void *dx, int ld_dx, float *dw)
{
    int grid = ceil_div((long)rows * ch / 8, 256), blocks = at_most(DW_BLOCKS, ceil_div(rows, ROWS));

    launch(q, "conv_backward: u", (conv_du_kernel<T>), grid, 256, 0, rows, ch, taps, pos, (const T *)x, ld,
           (const T *)w, (T *)dy);
    launch(q, "conv_backward: dw", (conv_dw_kernel<T>), dim3(ceil_div(ch, 256), blocks), 256, 0, rows, ch, taps, pos,
           (const T *)x, ld, (const T *)dy, q->scratch);
    add_partials(q, blocks, ch * taps, q->scratch, dw);
    launch(q, "conv_backward: dx", (conv_dx_kernel<T>), grid, 256, 0, rows, ch, taps, pos, (const T *)dy,
           (const T *)w, (T *)dx, ld_dx);
}

void op_conv_silu_backward(struct nn_queue *q, enum nn_dtype dt, int T, int ch, int taps, const int32_t *pos,
                           const void *x, int ld, const void *w, void *dy, void *dx, int ld_dx, float *dw)
{
    by_dtype(dt, conv_backward_t, q, T, ch, taps, pos, x, ld, w, dy, dx, ld_dx, dw);
}

/* ---- one row for each sequence ---- */

template <class T>
__global__ void conv_step_kernel(int rows, int ch, int taps, const T *x, int ld, const T *w, const int32_t *slot,
                                 size_t stride, T *past, T *y)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8;
    int b = (int)(i / ch), c = (int)(i % ch);
    float u[8] = {0}, v[8], now[8], wk[MOST][8];

    if (b >= rows || slot[b] < 0)
        return;
    T *old = past + (size_t)slot[b] * stride + c;
    load_taps(w, c, taps, wk);
    for (int k = taps - 1; k > 0; k--) { /* the oldest first; each moves up */
        load8(old + (size_t)(taps - 1 - k) * ch, v);
        for (int j = 0; j < 8; j++)
            u[j] += wk[k][j] * v[j];
        if (k < taps - 1)
            store8(old + (size_t)(taps - 2 - k) * ch, v);
    }
    load8(x + (size_t)b * ld + c, now);
    store8(old + (size_t)(taps - 2) * ch, now);
    for (int j = 0; j < 8; j++) {
        u[j] += wk[0][j] * now[j];
        u[j] = u[j] / (1 + expf(-u[j]));
    }
    store8(y + i, u);
}

template <class T>
static void conv_step_t(struct nn_queue *q, int rows, int ch, int taps, const void *x, int ld, const void *w,
                        const int32_t *slot, size_t stride, void *past, void *y)
{
    launch(q, "conv_silu_step", (conv_step_kernel<T>), ceil_div((long)rows * ch / 8, 256), 256, 0, rows, ch, taps,
           (const T *)x, ld, (const T *)w, slot, stride, (T *)past, (T *)y);
}

void op_conv_silu_step(struct nn_queue *q, enum nn_dtype dt, int B, int ch, int taps, const void *x, int ld,
                       const void *w, const int32_t *slot, size_t stride, void *past, void *y)
{
    by_dtype(dt, conv_step_t, q, B, ch, taps, x, ld, w, slot, stride, past, y);
}

/* The last taps - 1 rows of each sequence; what lies before its first row is 0. */
template <class T>
__global__ void conv_keep_kernel(int ch, int taps, const int32_t *cu, const T *x, int ld, const int32_t *slot,
                                 size_t stride, T *past)
{
    int seq = blockIdx.x, first = cu[seq], end = cu[seq + 1];
    float v[8];

    if (slot[seq] < 0)
        return;
    past += (size_t)slot[seq] * stride;
    for (int i = threadIdx.x * 8; i < (taps - 1) * ch; i += blockDim.x * 8) {
        int t = end - (taps - 1) + i / ch;
        for (int j = 0; j < 8; j++)
            v[j] = 0;
        if (t >= first)
            load8(x + (size_t)t * ld + i % ch, v);
        store8(past + i, v);
    }
}

template <class T>
static void conv_keep_t(struct nn_queue *q, int n_seq, int ch, int taps, const int32_t *cu, const void *x, int ld,
                        const int32_t *slot, size_t stride, void *past)
{
    launch(q, "conv_keep", (conv_keep_kernel<T>), n_seq, 256, 0, ch, taps, cu, (const T *)x, ld, slot, stride,
           (T *)past);
}

void op_conv_keep(struct nn_queue *q, enum nn_dtype dt, int n_seq, int ch, int taps, const int32_t *cu, const void *x,
                  int ld, const int32_t *slot, size_t stride, void *past)
{
    by_dtype(dt, conv_keep_t, q, n_seq, ch, taps, cu, x, ld, slot, stride, past);
}
