/* rope.cu - RMSNorm of each query and key head, then rotary positions (Su et al., arXiv 2104.09864; half-split as in
 * Hugging Face). A warp a head; a lane owns E pairs. Pair p < rot / 2 is rotated; the elements behind rot pass, in
 * pairs
 * too. */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8

__device__ __forceinline__ int first_of(int p, int rot) { return p < rot / 2 ? p : p + rot / 2; }
__device__ __forceinline__ int second_of(int p, int rot, int dim) { return p < rot / 2 ? p + rot / 2 : p + dim / 2; }

template <class T, int E>
__device__ __forceinline__ void load_pair(const T *x, int p, const nn_heads &s, float *a, float *b)
{
    for (int j = 0; j < E; j++) {
        a[j] = to_float(x[first_of(p + j, s.rot)]);
        b[j] = to_float(x[second_of(p + j, s.rot, s.dim)]);
    }
}

template <class T, int E>
__device__ __forceinline__ void store_pair(T *x, int p, const nn_heads &s, const float *a, const float *b)
{
    for (int j = 0; j < E; j++) {
        x[first_of(p + j, s.rot)] = from_float<T>(a[j]);
        x[second_of(p + j, s.rot, s.dim)] = from_float<T>(b[j]);
    }
}

/* cos and sin of a pair at one position; a pair behind rot is turned by nothing. */
__device__ __forceinline__ void turn_of(const float *cs, int p, int rot, float *c, float *s)
{
    *c = p < rot / 2 ? cs[p] : 1;
    *s = p < rot / 2 ? cs[rot / 2 + p] : 0;
}

template <class T, int E>
__global__ void rope_kernel(int rows, nn_heads s, const T *in, int ld_in, const T *w, float eps, const int32_t *pos,
                            const float *rope, T *out, int ld_out, float *rstd)
{
    int row = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, p = lane * E;
    float a[E], b[E], wa[E], wb[E], sum = 0;

    if (row >= rows)
        return;
    int t = row / s.heads, h = row % s.heads;
    const float *cs = rope + (size_t)pos[t] * s.rot;
    bool mine = p < s.dim / 2;
    if (mine) {
        load_pair<T, E>(in + (size_t)t * ld_in + (size_t)h * s.step, p, s, a, b);
        load_pair<T, E>(w, p, s, wa, wb);
        for (int j = 0; j < E; j++)
            sum += a[j] * a[j] + b[j] * b[j];
    }
    sum = rsqrtf(warp_sum(sum) / (float)s.dim + eps);
    if (mine) {
        for (int j = 0; j < E; j++) {
            float x = a[j] * sum * (s.plus + wa[j]), y = b[j] * sum * (s.plus + wb[j]), c, d;
            turn_of(cs, p + j, s.rot, &c, &d);
            a[j] = x * c - y * d;
            b[j] = y * c + x * d;
        }
        store_pair<T, E>(out + (size_t)t * ld_out + (size_t)h * s.dim, p, s, a, b);
    }
    if (rstd && lane == 0)
        rstd[row] = sum;
}

template <class T, int E>
__global__ void rope_backward_kernel(int rows, nn_heads s, const T *in, int ld_in, const T *w, const float *rstd,
                                     const int32_t *pos, const float *rope, const T *dout, int ld_dout, T *din,
                                     int ld_din, float *partial)
{
    __shared__ float sums[WARPS][256];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, p = lane * E;
    float dwa[E], dwb[E], wa[E], wb[E];
    bool mine = p < s.dim / 2;

    for (int j = 0; j < E; j++)
        dwa[j] = dwb[j] = 0;
    if (mine)
        load_pair<T, E>(w, p, s, wa, wb);
    for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
        int t = row / s.heads, h = row % s.heads;
        const float *cs = rope + (size_t)pos[t] * s.rot;
        float r = rstd[row], dot = 0, a[E], b[E], ga[E], gb[E];
        if (mine) {
            load_pair<T, E>(in + (size_t)t * ld_in + (size_t)h * s.step, p, s, a, b);
            load_pair<T, E>(dout + (size_t)t * ld_dout + (size_t)h * s.dim, p, s, ga, gb);
            for (int j = 0; j < E; j++) {
                float c, d;
                turn_of(cs, p + j, s.rot, &c, &d);
                float x = ga[j] * c + gb[j] * d, y = gb[j] * c - ga[j] * d;
                a[j] *= r;
                b[j] *= r;
                dwa[j] += x * a[j];
                dwb[j] += y * b[j];
                ga[j] = x * (s.plus + wa[j]);
                gb[j] = y * (s.plus + wb[j]);
                dot += ga[j] * a[j] + gb[j] * b[j];
            }
        }
        dot = warp_sum(dot) / (float)s.dim;
        if (mine) {
            for (int j = 0; j < E; j++) {
                ga[j] = r * (ga[j] - a[j] * dot);
                gb[j] = r * (gb[j] - b[j] * dot);
            }
            store_pair<T, E>(din + (size_t)t * ld_din + (size_t)h * s.step, p, s, ga, gb);
        }
    }
    if (mine)
        for (int j = 0; j < E; j++) {
            sums[warp][first_of(p + j, s.rot)] = dwa[j];
            sums[warp][second_of(p + j, s.rot, s.dim)] = dwb[j];
        }
    __syncthreads();
    if ((int)threadIdx.x < s.dim) {
        float sum = 0;
        for (int k = 0; k < WARPS; k++)
            sum += sums[k][threadIdx.x];
        partial[(size_t)blockIdx.x * s.dim + threadIdx.x] = sum;
    }
}

template <class T, int E>
static void rope_e(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w, float eps,
                   const int32_t *pos, const float *rope, void *out, int ld_out, float *rstd)
{
    launch(q, "qk_norm_rope", (rope_kernel<T, E>), ceil_div(rows, WARPS), WARPS * 32, 0, rows, s, (const T *)in, ld_in,
           (const T *)w, eps, pos, rope, (T *)out, ld_out, rstd);
}

template <class T>
static void rope_t(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w, float eps,
                   const int32_t *pos, const float *rope, void *out, int ld_out, float *rstd)
{
    if (s.dim <= 64)
        rope_e<T, 1>(q, rows, s, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
    else if (s.dim <= 128)
        rope_e<T, 2>(q, rows, s, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
    else
        rope_e<T, 4>(q, rows, s, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
}

void op_qk_norm_rope(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in, int ld_in,
                     const void *w, float eps, const int32_t *pos, const float *rope, void *out, int ld_out,
                     float *rstd)
{
    by_dtype(dt, rope_t, q, T * s.heads, s, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
}

template <class T, int E>
static void rope_backward_e(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w,
                            const float *rstd, const int32_t *pos, const float *rope, const void *dout, int ld_dout,
                            void *din, int ld_din, float *dw)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div(rows, WARPS));

    launch(q, "qk_norm_rope_backward", (rope_backward_kernel<T, E>), blocks, WARPS * 32, 0, rows, s, (const T *)in,
           ld_in, (const T *)w, rstd, pos, rope, (const T *)dout, ld_dout, (T *)din, ld_din, q->scratch);
    add_partials(q, blocks, s.dim, q->scratch, dw);
}

template <class T>
static void rope_backward_t(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w,
                            const float *rstd, const int32_t *pos, const float *rope, const void *dout, int ld_dout,
                            void *din, int ld_din, float *dw)
{
    if (s.dim <= 64)
        rope_backward_e<T, 1>(q, rows, s, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
    else if (s.dim <= 128)
        rope_backward_e<T, 2>(q, rows, s, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
    else
        rope_backward_e<T, 4>(q, rows, s, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
}

void op_qk_norm_rope_backward(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in,
                              int ld_in, const void *w, const float *rstd, const int32_t *pos, const float *rope,
                              const void *dout, int ld_dout, void *din, int ld_din, float *dw)
{
    by_dtype(dt, rope_backward_t, q, T * s.heads, s, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
}
