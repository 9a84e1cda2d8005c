/* classifier.c - log-softmax of logits at a temperature, entropy, and the gradient of both. Compiled by isa_*.c.
 * With x = z / T, l = logsumexp(x), p = e^(x - l), H = l - sum p x:
 * d logp_t / dz_j = ([j = t] - p_j) / T and dH / dz_j = -p_j (x_j - l + H) / T. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

/* Log-sum-exp, the target's log-probability and the entropy of one row z (V) at inverse temperature. */
static void classifier_row(int V, const float *z, float inv_temp, int32_t target, float *lse, float *logp,
                           float *entropy)
{
    vf vm = v_splat(-INFINITY), vs = {0}, vx = {0};
    float m = -INFINITY, t[VL], sum, px;
    int i, body = V / VL * VL;

    for (i = 0; i < body; i += VL)
        vm = v_max(vm, v_load(z + i));
    v_store(t, vm);
    for (int j = 0; j < VL; j++)
        m = t[j] > m ? t[j] : m;
    for (; i < V; i++)
        m = z[i] > m ? z[i] : m;
    m *= inv_temp;
    for (i = 0; i < body; i += VL) {
        vf x = v_load(z + i) * inv_temp - m, p = v_exp(x);
        vs += p;
        vx += p * x;
    }
    sum = v_sum(vs);
    px = v_sum(vx);
    for (; i < V; i++) {
        float x = z[i] * inv_temp - m, p = expf(x);
        sum += p;
        px += p * x;
    }
    *lse = m + logf(sum);
    *logp = z[target] * inv_temp - m - logf(sum);
    *entropy = logf(sum) - px / sum;
}

/* Log-sum-exp, target's log-probability and entropy of n rows of logits z (n, V). */
static void classifier_mt(int n, int V, const float *z, float inv_temp, const int32_t *target, float *lse, float *logp,
                          float *entropy)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)n * V > 5e4)
    for (int t = 0; t < n; t++)
        classifier_row(V, z + (ptrdiff_t)t * V, inv_temp, target[t], lse + t, logp + t, entropy + t);
}

/* z becomes the gradient of the logits, from those of log-probability and entropy. */
static void classifier_backward_mt(int n, int V, float *z, float inv_temp, const int32_t *target, const float *lse,
                                   const float *entropy, const float *dlogp, const float *dentropy)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)n * V > 5e4)
    for (int t = 0; t < n; t++) {
        float *row = z + (ptrdiff_t)t * V, l = lse[t], h = entropy[t];
        float a = -dlogp[t] * inv_temp, b = dentropy ? -dentropy[t] * inv_temp : 0;
        for (int i = 0; i < V; i += VL) {
            vf x = v_load_part(row + i, V - i) * inv_temp - l;
            v_store_part(row + i, v_exp(x) * (a + b * (x + h)), V - i);
        }
        row[target[t]] -= a;
    }
}
#endif
