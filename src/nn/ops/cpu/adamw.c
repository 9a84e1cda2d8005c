/* adamw.c - the AdamW update, and sums over slabs. Compiled by isa_*.c. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

/* As torch.optim.AdamW: w -= lr decay w; m, v moving averages; w -= lr / correct1 * m / (sqrt(v) / sqrt(correct2) +
 * eps) with correct = 1 - beta^step. */
static void adamw_mt(size_t n, float *w, const float *g, float *m, float *v, float lr, float beta1, float beta2,
                     float eps, float decay, float correct1, float correct2)
{
    float keep = 1.0f - lr * decay, size = lr / correct1, root = 1.0f / sqrtf(correct2);
    float c1 = 1.0f - beta1, c2 = 1.0f - beta2;

#pragma omp parallel for simd schedule(static) if (n > 100000)
    for (size_t i = 0; i < n; i++) {
        float x = g[i], mi = m[i] + (x - m[i]) * c1, vi_ = v[i] * beta2 + x * x * c2;
        m[i] = mi;
        v[i] = vi_;
        w[i] = w[i] * keep - size * (mi / (sqrtf(vi_) * root + eps));
    }
}

#define SUM_BLOCK 4096

static double sumsq(size_t n, const float *x)
{
    double total = 0;

    for (size_t i = 0; i < n; i += SUM_BLOCK) {
        int len = (int)(n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
        total += dot_row(len, x + i, x + i);
    }
    return total;
}
#endif
