/* attention.cu - causal grouped-query attention over packed sequences for any head dim up to 256 and both types: a warp
 * a
 * row, keys one after another. Slow and plain: it serves fp32, small models and as the yardstick of flash.cu. */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8
#define PER_LANE 8 /* dim <= 256 */

template <class T> __device__ __forceinline__ void row_load(const T *p, int dim, float *x)
{
    for (int j = 0; j < PER_LANE; j++) {
        int i = j * 32 + (threadIdx.x & 31);
        x[j] = i < dim ? to_float(p[i]) : 0;
    }
}
template <class T> __device__ __forceinline__ void row_store(T *p, int dim, const float *x, float s)
{
    for (int j = 0; j < PER_LANE; j++) {
        int i = j * 32 + (threadIdx.x & 31);
        if (i < dim)
            p[i] = from_float<T>(x[j] * s);
    }
}
__device__ __forceinline__ float row_dot(const float *x, const float *y)
{
    float s = 0;

    for (int j = 0; j < PER_LANE; j++)
        s += x[j] * y[j];
    return warp_sum(s);
}

template <class T>
__global__ void attn_kernel(struct nn_attn a, float scale, const T *q, const T *k, const T *v, T *o, float *lse)
{
    int at = blockIdx.x * WARPS + (threadIdx.x >> 5);
    float x[PER_LANE], y[PER_LANE], acc[PER_LANE] = {0}, m = -INFINITY, l = 0;

    if (at >= a.T * a.heads)
        return;
    int t = at / a.heads, h = at % a.heads, kvh = h / (a.heads / a.kv_heads);
    row_load(q + (size_t)t * a.ld_q + h * a.dim, a.dim, x);
    for (int j = t - a.pos[t]; j <= t; j++) {
        row_load(k + (size_t)j * a.ld_k + kvh * a.dim, a.dim, y);
        float s = row_dot(x, y) * scale, top = fmaxf(m, s), f = expf(m - top), p = expf(s - top);
        row_load(v + (size_t)j * a.ld_v + kvh * a.dim, a.dim, y);
        for (int i = 0; i < PER_LANE; i++)
            acc[i] = acc[i] * f + p * y[i];
        l = l * f + p;
        m = top;
    }
    row_store(o + (size_t)t * a.ld_o + h * a.dim, a.dim, acc, 1 / l);
    if ((threadIdx.x & 31) == 0)
        lse[at] = m + logf(l);
}

template <class T>
__global__ void attn_dq_kernel(struct nn_attn a, float scale, const T *q, const T *k, const T *v, const T *o,
                               const float *lse, const T *dout, float *delta, T *dq)
{
    int at = blockIdx.x * WARPS + (threadIdx.x >> 5);
    float x[PER_LANE], y[PER_LANE], d[PER_LANE], acc[PER_LANE] = {0};

    if (at >= a.T * a.heads)
        return;
    int t = at / a.heads, h = at % a.heads, kvh = h / (a.heads / a.kv_heads);
    row_load(o + (size_t)t * a.ld_o + h * a.dim, a.dim, y);
    row_load(dout + (size_t)t * a.ld_o + h * a.dim, a.dim, d);
    row_load(q + (size_t)t * a.ld_q + h * a.dim, a.dim, x);
    float sum = row_dot(y, d), l = lse[at];
    if ((threadIdx.x & 31) == 0)
        delta[at] = sum;
    for (int j = t - a.pos[t]; j <= t; j++) {
        row_load(v + (size_t)j * a.ld_v + kvh * a.dim, a.dim, y);
        float dp = row_dot(d, y);
        row_load(k + (size_t)j * a.ld_k + kvh * a.dim, a.dim, y);
        float ds = expf(row_dot(x, y) * scale - l) * (dp - sum);
        for (int i = 0; i < PER_LANE; i++)
            acc[i] += ds * y[i];
    }
    row_store(dq + (size_t)t * a.ld_q + h * a.dim, a.dim, acc, scale);
}

template <class T>
__global__ void attn_dkv_kernel(struct nn_attn a, float scale, const T *q, const T *k, const T *v, const float *lse,
                                const T *dout, const float *delta, T *dk, T *dv)
{
    int at = blockIdx.x * WARPS + (threadIdx.x >> 5);
    float x[PER_LANE], y[PER_LANE], kx[PER_LANE], vx[PER_LANE], ak[PER_LANE] = {0}, av[PER_LANE] = {0};

    if (at >= a.T * a.kv_heads)
        return;
    int j = at / a.kv_heads, kvh = at % a.kv_heads, group = a.heads / a.kv_heads, end = a.cu[a.seq[j] + 1];
    row_load(k + (size_t)j * a.ld_k + kvh * a.dim, a.dim, kx);
    row_load(v + (size_t)j * a.ld_v + kvh * a.dim, a.dim, vx);
    for (int h = kvh * group; h < (kvh + 1) * group; h++)
        for (int t = j; t < end; t++) {
            row_load(q + (size_t)t * a.ld_q + h * a.dim, a.dim, x);
            row_load(dout + (size_t)t * a.ld_o + h * a.dim, a.dim, y);
            float p = expf(row_dot(x, kx) * scale - lse[(size_t)t * a.heads + h]);
            float ds = p * (row_dot(y, vx) - delta[(size_t)t * a.heads + h]);
            for (int i = 0; i < PER_LANE; i++) {
                av[i] += p * y[i];
                ak[i] += ds * x[i];
            }
        }
    row_store(dk + (size_t)j * a.ld_k + kvh * a.dim, a.dim, ak, scale);
    row_store(dv + (size_t)j * a.ld_v + kvh * a.dim, a.dim, av, 1);
}

template <class T>
static void attn_t(struct nn_queue *q, const struct nn_attn *s, const void *query, const void *key, const void *value,
                   void *o, float *lse)
{
    launch(q, "attention", (attn_kernel<T>), ceil_div((long)s->T * s->heads, WARPS), WARPS * 32, 0, *s,
           1 / sqrtf((float)s->dim), (const T *)query, (const T *)key, (const T *)value, (T *)o, lse);
}

template <class T>
static void attn_backward_t(struct nn_queue *q, const struct nn_attn *s, const void *query, const void *key,
                            const void *value, const void *o, const float *lse, const void *dout, float *delta,
                            void *dq,
                            void *dk, void *dv)
{
    float scale = 1 / sqrtf((float)s->dim);

    launch(q, "attention dq", (attn_dq_kernel<T>), ceil_div((long)s->T * s->heads, WARPS), WARPS * 32, 0, *s, scale,
           (const T *)query, (const T *)key, (const T *)value, (const T *)o, lse, (const T *)dout, delta, (T *)dq);
    launch(q, "attention dk dv", (attn_dkv_kernel<T>), ceil_div((long)s->T * s->kv_heads, WARPS), WARPS * 32, 0, *s,
           scale,
           (const T *)query, (const T *)key, (const T *)value, lse, (const T *)dout, (const float *)delta, (T *)dk,
           (T *)dv);
}

void op_attn(struct nn_queue *q, enum nn_dtype dt, const struct nn_attn *s, const void *query, const void *key,
             const void *value, void *o, float *lse)
{
    if (flash_fits(dt, s))
        flash_forward(q, s, query, key, value, o, lse);
    else
        by_dtype(dt, attn_t, q, s, query, key, value, o, lse);
}

void op_attn_backward(struct nn_queue *q, enum nn_dtype dt, const struct nn_attn *s, const void *query, const void *key,
                      const void *value, const void *o, const float *lse, const void *dout, float *delta, void *dq,
                      void *dk, void *dv)
{
    if (flash_fits(dt, s))
        flash_backward(q, s, query, key, value, o, lse, dout, delta, dq, dk, dv);
    else
        by_dtype(dt, attn_backward_t, q, s, query, key, value, o, lse, dout, delta, dq, dk, dv);
}
