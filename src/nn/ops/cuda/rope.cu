/* rope.cu - RMSNorm of each query and key head, then rotary positions (Su et al., arXiv 2104.09864; half-split as in
 * Hugging Face: element i is paired with i + dim/2). A warp a head; a lane owns E neighbours and their partners. */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8

/* a: elements i.. of the first half; b: their partners. */
template <class T, int E> __device__ __forceinline__ void load_pair(const T *p, int i, int half, float *a, float *b)
{
    for (int j = 0; j < E; j++) {
        a[j] = to_float(p[i + j]);
        b[j] = to_float(p[half + i + j]);
    }
}

template <class T, int E> __device__ __forceinline__ void store_pair(T *p, int i, int half, const float *a,
                                                                     const float *b)
{
    for (int j = 0; j < E; j++) {
        p[i + j] = from_float<T>(a[j]);
        p[half + i + j] = from_float<T>(b[j]);
    }
}

template <class T, int E>
__global__ void rope_kernel(int rows, int heads, int dim, const T *in, int ld_in, const T *w, float eps,
                            const int32_t *pos,
                            const float *rope, T *out, int ld_out, float *rstd)
{
    int row = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, half = dim / 2, i = lane * E;
    float a[E], b[E], wa[E], wb[E], sum = 0;

    if (row >= rows)
        return;
    int t = row / heads, h = row % heads;
    const float *cs = rope + (size_t)pos[t] * dim;
    bool mine = i < half;
    if (mine) {
        load_pair<T, E>(in + (size_t)t * ld_in + (size_t)h * dim, i, half, a, b);
        load_pair<T, E>(w, i, half, wa, wb);
        for (int j = 0; j < E; j++)
            sum += a[j] * a[j] + b[j] * b[j];
    }
    sum = rsqrtf(warp_sum(sum) / (float)dim + eps);
    if (mine) {
        for (int j = 0; j < E; j++) {
            float x = a[j] * sum * wa[j], y = b[j] * sum * wb[j], c = cs[i + j], s = cs[half + i + j];
            a[j] = x * c - y * s;
            b[j] = y * c + x * s;
        }
        store_pair<T, E>(out + (size_t)t * ld_out + (size_t)h * dim, i, half, a, b);
    }
    if (rstd && lane == 0)
        rstd[row] = sum;
}

template <class T, int E>
__global__ void rope_backward_kernel(int rows, int heads, int dim, const T *in, int ld_in, const T *w,
                                     const float *rstd,
                                     const int32_t *pos, const float *rope, const T *dout, int ld_dout, T *din,
                                     int ld_din,
                                     float *partial)
{
    __shared__ float sums[WARPS][256];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, half = dim / 2, i = lane * E;
    float dwa[E], dwb[E], wa[E], wb[E];
    bool mine = i < half;

    for (int j = 0; j < E; j++)
        dwa[j] = dwb[j] = 0;
    if (mine)
        load_pair<T, E>(w, i, half, wa, wb);
    for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
        int t = row / heads, h = row % heads;
        const float *cs = rope + (size_t)pos[t] * dim;
        float r = rstd[row], dot = 0, a[E], b[E], ga[E], gb[E];
        if (mine) {
            load_pair<T, E>(in + (size_t)t * ld_in + (size_t)h * dim, i, half, a, b);
            load_pair<T, E>(dout + (size_t)t * ld_dout + (size_t)h * dim, i, half, ga, gb);
            for (int j = 0; j < E; j++) {
                float c = cs[i + j], s = cs[half + i + j], x = ga[j] * c + gb[j] * s, y = gb[j] * c - ga[j] * s;
                a[j] *= r;
                b[j] *= r;
                dwa[j] += x * a[j];
                dwb[j] += y * b[j];
                ga[j] = x * wa[j];
                gb[j] = y * wb[j];
                dot += ga[j] * a[j] + gb[j] * b[j];
            }
        }
        dot = warp_sum(dot) / (float)dim;
        if (mine) {
            for (int j = 0; j < E; j++) {
                ga[j] = r * (ga[j] - a[j] * dot);
                gb[j] = r * (gb[j] - b[j] * dot);
            }
            store_pair<T, E>(din + (size_t)t * ld_din + (size_t)h * dim, i, half, ga, gb);
        }
    }
    if (mine)
        for (int j = 0; j < E; j++) {
            sums[warp][i + j] = dwa[j];
            sums[warp][half + i + j] = dwb[j];
        }
    __syncthreads();
    if ((int)threadIdx.x < dim) {
        float s = 0;
        for (int k = 0; k < WARPS; k++)
            s += sums[k][threadIdx.x];
        partial[(size_t)blockIdx.x * dim + threadIdx.x] = s;
    }
}

template <class T, int E>
static void rope_e(struct nn_queue *q, int rows, int heads, int dim, const void *in, int ld_in, const void *w,
                   float eps,
                   const int32_t *pos, const float *rope, void *out, int ld_out, float *rstd)
{
    launch(q, "qk_norm_rope", (rope_kernel<T, E>), ceil_div(rows, WARPS), WARPS * 32, 0, rows, heads, dim,
           (const T *)in,
           ld_in, (const T *)w, eps, pos, rope, (T *)out, ld_out, rstd);
}

template <class T>
static void rope_t(struct nn_queue *q, int rows, int heads, int dim, const void *in, int ld_in, const void *w,
                   float eps,
                   const int32_t *pos, const float *rope, void *out, int ld_out, float *rstd)
{
    if (dim <= 64)
        rope_e<T, 1>(q, rows, heads, dim, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
    else if (dim <= 128)
        rope_e<T, 2>(q, rows, heads, dim, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
    else
        rope_e<T, 4>(q, rows, heads, dim, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
}

void op_qk_norm_rope(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *in, int ld_in,
                     const void *w, float eps, const int32_t *pos, const float *rope, void *out, int ld_out,
                     float *rstd)
{
    by_dtype(dt, rope_t, q, T * heads, heads, dim, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
}

template <class T, int E>
static void rope_backward_e(struct nn_queue *q, int rows, int heads, int dim, const void *in, int ld_in, const void *w,
                            const float *rstd, const int32_t *pos, const float *rope, const void *dout, int ld_dout,
                            void *din, int ld_din, float *dw)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div(rows, WARPS));

    launch(q, "qk_norm_rope_backward", (rope_backward_kernel<T, E>), blocks, WARPS * 32, 0, rows, heads, dim,
           (const T *)in, ld_in, (const T *)w, rstd, pos, rope, (const T *)dout, ld_dout, (T *)din, ld_din, q->scratch);
    add_partials(q, blocks, dim, q->scratch, dw);
}

template <class T>
static void rope_backward_t(struct nn_queue *q, int rows, int heads, int dim, const void *in, int ld_in, const void *w,
                            const float *rstd, const int32_t *pos, const float *rope, const void *dout, int ld_dout,
                            void *din, int ld_din, float *dw)
{
    if (dim <= 64)
        rope_backward_e<T, 1>(q, rows, heads, dim, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
    else if (dim <= 128)
        rope_backward_e<T, 2>(q, rows, heads, dim, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
    else
        rope_backward_e<T, 4>(q, rows, heads, dim, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
}

void op_qk_norm_rope_backward(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *in,
                              int ld_in,
                              const void *w, const float *rstd, const int32_t *pos, const float *rope, const void *dout,
                              int ld_dout, void *din, int ld_din, float *dw)
{
    by_dtype(dt, rope_backward_t, q, T * heads, heads, dim, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din,
             dw);
}
