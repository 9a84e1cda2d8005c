/* gate.cu - the two gates of Qwen3.5. Of attention: y = a sigmoid(g), eight elements a thread. Of the delta rule:
 * y = w (o r) silu(z) a head, r = (mean o^2 + eps)^-1/2, a warp a head. Backward, with xh = o r and e = dy w
 * silu(z): do = r (e - xh mean(e xh)), dz = dy w xh silu'(z), dw = sum dy xh silu(z). */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8

template <class T>
__global__ void out_gate_kernel(size_t n, int heads, int dim, const T *a, const T *g, int ld, int step, T *y)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8, row = i / ((size_t)heads * dim);
    float x[8], s[8];

    if (i >= n)
        return;
    int h = (int)(i / dim % heads), c = (int)(i % dim);
    load8(a + i, x);
    load8(g + row * ld + (size_t)h * step + c, s);
    for (int j = 0; j < 8; j++)
        x[j] = x[j] / (1 + expf(-s[j]));
    store8(y + i, x);
}

/* dy becomes da; y, what went forward, is written when not NULL. */
template <class T>
__global__ void out_gate_backward_kernel(size_t n, int heads, int dim, const T *a, const T *g, int ld, int step, T *dy,
                                         T *dg, T *y)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8, row = i / ((size_t)heads * dim);
    float x[8], s[8], d[8], e[8];

    if (i >= n)
        return;
    size_t at = row * ld + (size_t)(i / dim % heads) * step + i % dim;
    load8(a + i, x);
    load8(g + at, s);
    load8(dy + i, d);
    for (int j = 0; j < 8; j++) {
        s[j] = 1 / (1 + expf(-s[j]));
        e[j] = d[j] * x[j] * s[j] * (1 - s[j]);
        d[j] *= s[j];
        x[j] *= s[j];
    }
    store8(dg + at, e);
    store8(dy + i, d);
    if (y)
        store8(y + i, x);
}

template <class T>
static void out_gate_t(struct nn_queue *q, int rows, int heads, int dim, const void *a, const void *g, int ld, int step,
                       void *y)
{
    size_t n = (size_t)rows * heads * dim;

    launch(q, "out_gate", (out_gate_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, heads, dim, (const T *)a,
           (const T *)g, ld, step, (T *)y);
}

void op_out_gate(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *a, const void *g, int ld,
                 int step, void *y)
{
    by_dtype(dt, out_gate_t, q, T, heads, dim, a, g, ld, step, y);
}

template <class T>
static void out_gate_backward_t(struct nn_queue *q, int rows, int heads, int dim, const void *a, const void *g, int ld,
                                int step, void *dy, void *dg, void *y)
{
    size_t n = (size_t)rows * heads * dim;

    launch(q, "out_gate_backward", (out_gate_backward_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, heads, dim,
           (const T *)a, (const T *)g, ld, step, (T *)dy, (T *)dg, (T *)y);
}

void op_out_gate_backward(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *a, const void *g,
                          int ld, int step, void *dy, void *dg, void *y)
{
    by_dtype(dt, out_gate_backward_t, q, T, heads, dim, a, g, ld, step, dy, dg, y);
}

/* ---- gated norm ---- */

template <class T>
__global__ void gated_norm_kernel(int n, int heads, int dim, const T *o, const T *w, float eps, const T *z, int ld,
                                  T *y)
{
    int row = blockIdx.x * WARPS + (threadIdx.x >> 5), i = (threadIdx.x & 31) * 8;
    float v[8], g[8], u[8], sum = 0;

    if (row >= n)
        return;
    o += (size_t)row * dim;
    if (i < dim) {
        load8(o + i, v);
        for (int j = 0; j < 8; j++)
            sum += v[j] * v[j];
    }
    sum = rsqrtf(warp_sum(sum) / (float)dim + eps);
    if (i < dim) {
        load8(z + (size_t)(row / heads) * ld + (size_t)(row % heads) * dim + i, g);
        load8(w + i, u);
        for (int j = 0; j < 8; j++)
            v[j] = v[j] * sum * u[j] * g[j] / (1 + expf(-g[j]));
        store8(y + (size_t)row * dim + i, v);
    }
}

/* y, what went forward, is written when not NULL; it may be o. partial (blocks, dim) of dw. */
template <class T>
__global__ void gated_norm_backward_kernel(int n, int heads, int dim, const T *o, const T *w, float eps, const T *z,
                                           int ld, const T *dy, T *d_o, T *dz, int ld_dz, T *y, float *partial)
{
    __shared__ float sums[WARPS][256];
    int warp = threadIdx.x >> 5, i = (threadIdx.x & 31) * 8;
    float dw[8] = {0}, u[8];

    if (i < dim)
        load8(w + i, u);
    for (int row = blockIdx.x * WARPS + warp; row < n; row += gridDim.x * WARPS) {
        size_t at = (size_t)row * dim + i, from = (size_t)(row % heads) * dim + i;
        float v[8], g[8], d[8], e[8], sum = 0, dot = 0;
        if (i < dim) {
            load8(o + at, v);
            for (int j = 0; j < 8; j++)
                sum += v[j] * v[j];
        }
        float r = rsqrtf(warp_sum(sum) / (float)dim + eps);
        if (i < dim) {
            load8(z + (size_t)(row / heads) * ld + from, g);
            load8(dy + at, d);
            for (int j = 0; j < 8; j++) {
                float s = 1 / (1 + expf(-g[j])), silu = g[j] * s, slope = s * (1 + g[j] * (1 - s));
                v[j] *= r;
                e[j] = d[j] * u[j] * silu;
                dot += e[j] * v[j];
                dw[j] += d[j] * v[j] * silu;
                g[j] = d[j] * u[j] * v[j] * slope;
                d[j] = v[j] * u[j] * silu;
            }
            store8(dz + (size_t)(row / heads) * ld_dz + from, g);
            if (y)
                store8(y + at, d);
        }
        dot = warp_sum(dot) / (float)dim;
        if (i < dim) {
            for (int j = 0; j < 8; j++)
                e[j] = r * (e[j] - v[j] * dot);
            store8(d_o + at, e);
        }
    }
    if (i < dim)
        for (int j = 0; j < 8; j++)
            sums[warp][i + j] = dw[j];
    __syncthreads();
    if ((int)threadIdx.x < dim) {
        float s = 0;
        for (int k = 0; k < WARPS; k++)
            s += sums[k][threadIdx.x];
        partial[(size_t)blockIdx.x * dim + threadIdx.x] = s;
    }
}

template <class T>
static void gated_norm_t(struct nn_queue *q, int rows, int heads, int dim, const void *o, const void *w, float eps,
                         const void *z, int ld, void *y)
{
    launch(q, "gated_norm", (gated_norm_kernel<T>), ceil_div((long)rows * heads, WARPS), WARPS * 32, 0, rows * heads,
           heads, dim, (const T *)o, (const T *)w, eps, (const T *)z, ld, (T *)y);
}

void op_gated_norm(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *o, const void *w,
                   float eps, const void *z, int ld, void *y)
{
    by_dtype(dt, gated_norm_t, q, T, heads, dim, o, w, eps, z, ld, y);
}

template <class T>
static void gated_norm_backward_t(struct nn_queue *q, int rows, int heads, int dim, const void *o, const void *w,
                                  float eps, const void *z, int ld, const void *dy, void *d_o, void *dz, int ld_dz,
                                  void *y, float *dw)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div((long)rows * heads, WARPS));

    launch(q, "gated_norm_backward", (gated_norm_backward_kernel<T>), blocks, WARPS * 32, 0, rows * heads, heads, dim,
           (const T *)o, (const T *)w, eps, (const T *)z, ld, (const T *)dy, (T *)d_o, (T *)dz, ld_dz, (T *)y,
           q->scratch);
    add_partials(q, blocks, dim, q->scratch, dw);
}

void op_gated_norm_backward(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *o,
                            const void *w, float eps, const void *z, int ld, const void *dy, void *d_o, void *dz,
                            int ld_dz, void *y, float *dw)
{
    by_dtype(dt, gated_norm_backward_t, q, T, heads, dim, o, w, eps, z, ld, dy, d_o, dz, ld_dz, y, dw);
}
