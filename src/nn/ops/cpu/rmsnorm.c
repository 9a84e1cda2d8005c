/* rmsnorm.c - root-mean-square norm (Zhang & Sennrich, arXiv 1910.07467). Compiled by isa_*.c.
 * y = x r (plus + w) with r = (mean x^2 + eps)^-1/2. With xh = x r and g = dy (plus + w): dx = r (g - xh mean(g xh)),
 * dw = sum dy xh. */
#ifdef ISA_NAME
#include "base/mem.h"
#include "nn/ops/ops.h"

/* The dot product of d floats. */
INLINE float dot_row(int d, const float *a, const float *b)
{
    vf s0 = {0}, s1 = {0};
    float rest = 0;
    int i = 0;

    for (; i + 2 * VL <= d; i += 2 * VL) {
        s0 += v_load(a + i) * v_load(b + i);
        s1 += v_load(a + i + VL) * v_load(b + i + VL);
    }
    for (; i + VL <= d; i += VL)
        s0 += v_load(a + i) * v_load(b + i);
    for (; i < d; i++)
        rest += a[i] * b[i];
    return v_sum(s0 + s1) + rest;
}

static void scale(size_t n, float *x, float s)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= s;
}

INLINE float rms_scale(int d, const float *x, double eps)
{
    return (float)(1.0 / sqrt((double)dot_row(d, x, x) / d + eps));
}

/* y = x rstd (w + plus) for each of T rows; rstd is kept for backward. */
static void rmsnorm_mt(int T, int d, const float *x, const float *w, float plus, double eps, float *y, float *rstd)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * d > 1e5)
    for (int t = 0; t < T; t++) {
        const float *xt = x + (ptrdiff_t)t * d;
        float *yt = y + (ptrdiff_t)t * d, r = rms_scale(d, xt, eps);
        for (int i = 0; i < d; i++)
            yt[i] = xt[i] * r * (plus + w[i]);
        if (rstd)
            rstd[t] = r;
    }
}

/* The same from a known rstd. */
static void rmsnorm_apply_mt(int T, int d, const float *x, const float *w, float plus, const float *rstd, float *y)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * d > 1e5)
    for (int t = 0; t < T; t++) {
        const float *xt = x + (ptrdiff_t)t * d;
        float *yt = y + (ptrdiff_t)t * d, r = rstd[t];
        for (int i = 0; i < d; i++)
            yt[i] = xt[i] * r * (plus + w[i]);
    }
}

/* One row: dx (+)= and dw +=. */
INLINE void rmsnorm_row_backward(int d, const float *x, const float *w, float plus, float r, const float *dy, bool add,
                                 float *dx, float *dw)
{
    float s = 0, c;
    vf acc = {0};
    int i = 0;

    for (; i + VL <= d; i += VL)
        acc += v_load(dy + i) * (plus + v_load(w + i)) * v_load(x + i);
    for (; i < d; i++)
        s += dy[i] * (plus + w[i]) * x[i];
    c = (v_sum(acc) + s) * r * r / (float)d; /* mean(g xh) r */
    for (i = 0; i < d; i++) {
        float g = dy[i], v = r * (g * (plus + w[i]) - x[i] * c);
        dw[i] += g * x[i] * r;
        dx[i] = add ? dx[i] + v : v;
    }
}

#define NORM_CHUNKS 16 /* partial sums of dw, a fixed number so that threads do not change the result */

/* dx (T, d) and dw (d) of the norm; plus is added to each weight. */
static void rmsnorm_backward_mt(int T, int d, const float *x, const float *w, float plus, const float *rstd,
                                const float *dy, float *dx, float *dw)
{
    float *sum = xcalloc((size_t)NORM_CHUNKS * (size_t)d, sizeof *sum);

#pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < NORM_CHUNKS; c++) {
        int t0 = (int)((int64_t)T * c / NORM_CHUNKS), t1 = (int)((int64_t)T * (c + 1) / NORM_CHUNKS);
        for (int t = t0; t < t1; t++) {
            ptrdiff_t at = (ptrdiff_t)t * d;
            rmsnorm_row_backward(d, x + at, w, plus, rstd[t], dy + at, true, dx + at, sum + (ptrdiff_t)c * d);
        }
    }
    for (int c = 0; c < NORM_CHUNKS; c++)
        for (int i = 0; i < d; i++)
            dw[i] += sum[(ptrdiff_t)c * d + i];
    free(sum);
}
#endif
