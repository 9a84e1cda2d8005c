/* rope.c - RMSNorm of each query and key head (Qwen3; Llama and Qwen2 have none), then rotary positions (Su et al.,
 * arXiv 2104.09864; half-split as in Hugging Face: element i is paired with i + dim/2). Compiled by isa_*.c, after
 * rmsnorm.c. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

/* sign -1 rotates back: the inverse of a rotation is its transpose, which is what the backward pass needs. */
INLINE void rotate(int dim, const float *in, const float *cs, float sign, float *out)
{
    int h = dim / 2;
    const float *c = cs, *s = cs + h;

    for (int i = 0; i < h; i++) {
        float a = in[i], b = in[i + h];
        out[i] = a * c[i] - sign * (b * s[i]);
        out[i + h] = b * c[i] + sign * (a * s[i]);
    }
}

/* y (dim); returns the scale. */
INLINE float norm_head(struct nn_heads s, const float *x, const float *w, double eps, float *y)
{
    float r = rms_scale(s.dim, x, eps);

    for (int i = 0; i < s.dim; i++)
        y[i] = x[i] * r * (s.plus + w[i]);
    return r;
}

/* Norms each head of queries or keys, then rotates it by its position; rstd keeps the norms' scales. */
static void qk_norm_rope_mt(int T, struct nn_heads s, const float *in, int ld_in, const float *w, double eps,
                            const int32_t *pos, const float *table, float *out, int ld_out, float *rstd)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * s.heads * s.dim > 1e5)
    for (int t = 0; t < T; t++)
        for (int h = 0; h < s.heads; h++) {
            const float *x = in + (ptrdiff_t)t * ld_in + h * s.step;
            float *to = out + (ptrdiff_t)t * ld_out + h * s.dim, y[MAX_HEAD_DIM];
            float r = w ? norm_head(s, x, w, eps, y) : 1;
            const float *from = w ? y : x;
            rotate(s.rot, from, table + (ptrdiff_t)pos[t] * s.rot, 1, to);
            memcpy(to + s.rot, from + s.rot, (size_t)(s.dim - s.rot) * sizeof *y);
            if (rstd && w)
                rstd[(ptrdiff_t)t * s.heads + h] = r;
        }
}

/* Gradients of qk_norm_rope_mt: din, and dw where w is there. */
static void qk_norm_rope_backward_mt(int T, struct nn_heads s, const float *in, int ld_in, const float *w,
                                     const float *rstd, const int32_t *pos, const float *table, const float *dout,
                                     int ld_dout, float *din, int ld_din, float *dw)
{
    float sum[NORM_CHUNKS][MAX_HEAD_DIM] = {{0}};

#pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < NORM_CHUNKS; c++) {
        int t0 = (int)((int64_t)T * c / NORM_CHUNKS), t1 = (int)((int64_t)T * (c + 1) / NORM_CHUNKS);
        for (int t = t0; t < t1; t++)
            for (int h = 0; h < s.heads; h++) {
                const float *from = dout + (ptrdiff_t)t * ld_dout + h * s.dim;
                float own[MAX_HEAD_DIM], *to = din + (ptrdiff_t)t * ld_din + h * s.step, *g = w ? own : to;
                rotate(s.rot, from, table + (ptrdiff_t)pos[t] * s.rot, -1, g);
                memcpy(g + s.rot, from + s.rot, (size_t)(s.dim - s.rot) * sizeof *g);
                if (w)
                    rmsnorm_row_backward(s.dim, in + (ptrdiff_t)t * ld_in + h * s.step, w, s.plus,
                                         rstd[(ptrdiff_t)t * s.heads + h], g, false, to, sum[c]);
            }
    }
    for (int c = 0; c < NORM_CHUNKS && w; c++)
        for (int i = 0; i < s.dim; i++)
            dw[i] += sum[c][i];
}
#endif
