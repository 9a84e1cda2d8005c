/* classifier.cu - log-softmax of logits at a temperature, entropy, and the gradient of both; a block a row.
 * With x = z / T, l = logsumexp(x), p = e^(x - l), H = l - sum p x:
 * d logp_t / dz_j = ([j = t] - p_j) / T and dH / dz_j = -p_j (x_j - l + H) / T. */
#include "nn/ops/cuda/ops.cuh"

#define THREADS 256

template <class T>
__global__ void __launch_bounds__(THREADS)
classifier_kernel(int V, int ld, const T *z, float inv_temp, const int32_t *target, float *lse, float *logp,
                  float *entropy)
{
    __shared__ float part[32];
    float m = -INFINITY, s = 0, t = 0, v[8];
    int row = blockIdx.x;

    z += (size_t)row * ld;
    for (int i = threadIdx.x * 8; i < V; i += THREADS * 8) {
        load8(z + i, v); /* rows are padded to 8 */
        float top = m;
        for (int j = 0; j < 8; j++) {
            v[j] = i + j < V ? v[j] * inv_temp : -INFINITY;
            top = fmaxf(top, v[j]);
        }
        if (top > m) {
            float f = m > -INFINITY ? expf(m - top) : 0;
            s *= f, t *= f, m = top;
        }
        for (int j = 0; j < 8; j++)
            if (i + j < V) {
                float p = expf(v[j] - m);
                s += p, t += p * v[j];
            }
    }
    float top = block_max(m, part), f = m > -INFINITY ? expf(m - top) : 0;
    s = block_sum(s * f, part);
    t = block_sum(t * f, part);
    if (threadIdx.x == 0) {
        float l = top + logf(s);
        lse[row] = l;
        logp[row] = to_float(z[target[row]]) * inv_temp - l;
        entropy[row] = l - t / s;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
classifier_backward_kernel(int V, int ld, T *z, float inv_temp, const int32_t *target, const float *lse,
                           const float *entropy, const float *dlogp, const float *dentropy)
{
    int row = blockIdx.x, at = target[row];
    float l = lse[row], g = dlogp[row], e = dentropy ? dentropy[row] : 0, h = entropy[row], v[8];

    z += (size_t)row * ld;
    for (int i = threadIdx.x * 8; i < ld; i += THREADS * 8) {
        load8(z + i, v);
        for (int j = 0; j < 8; j++) {
            float x = v[j] * inv_temp - l, p = expf(x);
            v[j] = i + j < V ? inv_temp * ((i + j == at ? g : 0) - p * (g + e * (x + h))) : 0;
        }
        store8(z + i, v);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
keep_rows_kernel(int V, int ld, T *z, const int32_t *to, const int32_t *kept, float out, float *hold)
{
    int row = blockIdx.x, from = to[row], n = to[row + 1] - from;

    z += (size_t)row * ld;
    kept += from, hold += from - to[0];
    if (n == 0)
        return;
    for (int k = threadIdx.x; k < n; k += THREADS)
        hold[k] = to_float(z[kept[k]]);
    __syncthreads();
    for (int v = threadIdx.x; v < V; v += THREADS)
        z[v] = from_float<T>(out);
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += THREADS)
        z[kept[k]] = from_float<T>(hold[k]);
}

template <class T>
static void keep_rows_t(struct nn_queue *q, int n, int V, int ld, void *z, const int32_t *to, const int32_t *kept,
                        float out, float *hold)
{
    launch(q, "keep_rows", (keep_rows_kernel<T>), n, THREADS, 0, V, ld, (T *)z, to, kept, out, hold);
}

void op_keep_rows(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, void *z, const int32_t *to,
                  const int32_t *kept, float out, float *hold)
{
    by_dtype(dt, keep_rows_t, q, n, V, ld, z, to, kept, out, hold);
}

template <class T>
static void classifier_t(struct nn_queue *q, int n, int V, int ld, const void *z, float inv_temp, const int32_t *target,
                         float *lse, float *logp, float *entropy)
{
    launch(q, "classifier", (classifier_kernel<T>), n, THREADS, 0, V, ld, (const T *)z, inv_temp, target, lse, logp,
           entropy);
}

void op_classifier(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, const void *z, float inv_temp,
                   const int32_t *target, float *lse, float *logp, float *entropy)
{
    by_dtype(dt, classifier_t, q, n, V, ld, z, inv_temp, target, lse, logp, entropy);
}

template <class T>
static void classifier_backward_t(struct nn_queue *q, int n, int V, int ld, void *z, float inv_temp,
                                  const int32_t *target,
                                  const float *lse, const float *entropy, const float *dlogp, const float *dentropy)
{
    launch(q, "classifier_backward", (classifier_backward_kernel<T>), n, THREADS, 0, V, ld, (T *)z, inv_temp, target,
           lse,
           entropy, dlogp, dentropy);
}

void op_classifier_backward(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, void *z, float inv_temp,
                            const int32_t *target, const float *lse, const float *entropy, const float *dlogp,
                            const float *dentropy)
{
    by_dtype(dt, classifier_backward_t, q, n, V, ld, z, inv_temp, target, lse, entropy, dlogp, dentropy);
}
