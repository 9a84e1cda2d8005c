/* gate.c - the two gates of Qwen3.5. Compiled by isa_*.c, after rmsnorm.c and swiglu.c.
 *
 * Of attention: y = a sigmoid(g). Of the delta rule: y = w (o r) silu(z) a head, r = (mean o^2 + eps)^-1/2. Backward,
 * with
 * xh = o r and e = dy w silu(z): do = r (e - xh mean(e xh)), dz = dy w xh silu'(z), dw = sum dy xh silu(z). */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

/* y = a sigmoid(g) for each head of T rows. */
static void out_gate_mt(int T, int heads, int dim, const float *a, const float *g, int ld, int step, float *y)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * heads * dim > 1e5)
    for (int t = 0; t < T; t++)
        for (int h = 0; h < heads; h++) {
            ptrdiff_t at = ((ptrdiff_t)t * heads + h) * dim, from = (ptrdiff_t)t * ld + h * step;
            for (int i = 0; i < dim; i += VL)
                v_store_part(y + at + i, v_load_part(a + at + i, dim - i) * v_sigmoid(v_load_part(g + from + i,
                                                                                                  dim - i)),
                             dim - i);
        }
}

/* Gradients of y = a sigmoid(g): dy becomes that of a, dg gets that of g. */
static void out_gate_backward_mt(int T, int heads, int dim, const float *a, const float *g, int ld, int step, float *dy,
                                 float *dg)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * heads * dim > 1e5)
    for (int t = 0; t < T; t++)
        for (int h = 0; h < heads; h++) {
            ptrdiff_t at = ((ptrdiff_t)t * heads + h) * dim, from = (ptrdiff_t)t * ld + h * step;
            for (int i = 0; i < dim; i += VL) {
                int n = dim - i;
                vf s = v_sigmoid(v_load_part(g + from + i, n)), d = v_load_part(dy + at + i, n);
                v_store_part(dg + from + i, d * v_load_part(a + at + i, n) * s * (1.0f - s), n);
                v_store_part(dy + at + i, d * s, n);
            }
        }
}

/* y = rmsnorm(o) w silu(z) for each head of T rows. */
static void gated_norm_mt(int T, int heads, int dim, const float *o, const float *w, double eps, const float *z, int ld,
                          float *y)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * heads * dim > 1e5)
    for (int t = 0; t < T; t++)
        for (int h = 0; h < heads; h++) {
            ptrdiff_t at = ((ptrdiff_t)t * heads + h) * dim, from = (ptrdiff_t)t * ld + h * dim;
            float r = rms_scale(dim, o + at, eps);
            for (int i = 0; i < dim; i += VL) {
                int n = dim - i;
                vf g = v_load_part(z + from + i, n);
                v_store_part(y + at + i, v_load_part(o + at + i, n) * r * v_load_part(w + i, n) * g * v_sigmoid(g), n);
            }
        }
}

/* One head: e = dy w silu(z) lies in scratch 'e' between the two passes. */
INLINE void gated_norm_row_backward(int dim, const float *w, float r, const float *o, const float *z, const float *dy,
                                    float *d_o, float *dz, float *dw)
{
    float e[MAX_HEAD_DIM], mean;

    for (int i = 0; i < dim; i += VL) {
        int n = dim - i;
        vf g = v_load_part(z + i, n), s = v_sigmoid(g), xh = v_load_part(o + i, n) * r, d = v_load_part(dy + i, n);
        vf wi = v_load_part(w + i, n);
        v_store_part(e + i, d * wi * g * s, n);
        v_store_part(dz + i, d * wi * xh * s * (1.0f + g * (1.0f - s)), n);
        v_store_part(dw + i, v_load_part(dw + i, n) + d * xh * g * s, n);
    }
    mean = dot_row(dim, e, o) * r / (float)dim;
    for (int i = 0; i < dim; i++)
        d_o[i] = r * (e[i] - o[i] * r * mean);
}

/* Gradients of gated_norm_mt; dw is summed in an order that does not depend on threads. */
static void gated_norm_backward_mt(int T, int heads, int dim, const float *o, const float *w, double eps,
                                   const float *z,
                                   int ld, const float *dy, float *d_o, float *dz, int ld_dz, float *dw)
{
    float sum[NORM_CHUNKS][MAX_HEAD_DIM] = {{0}};

#pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < NORM_CHUNKS; c++) {
        int t0 = (int)((int64_t)T * c / NORM_CHUNKS), t1 = (int)((int64_t)T * (c + 1) / NORM_CHUNKS);
        for (int t = t0; t < t1; t++)
            for (int h = 0; h < heads; h++) {
                ptrdiff_t at = ((ptrdiff_t)t * heads + h) * dim;
                gated_norm_row_backward(dim, w, rms_scale(dim, o + at, eps), o + at, z + (ptrdiff_t)t * ld + h * dim,
                                        dy + at, d_o + at, dz + (ptrdiff_t)t * ld_dz + h * dim, sum[c]);
            }
    }
    for (int c = 0; c < NORM_CHUNKS; c++)
        for (int i = 0; i < dim; i++)
            dw[i] += sum[c][i];
}
#endif
