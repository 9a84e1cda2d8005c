/* conv.c - causal depthwise convolution of a few taps, then silu: y_t = silu(u_t), u_t = sum_k w[taps - 1 - k]
 * x_{t-k}, k
 * no larger than the position, so that nothing crosses from one sequence to the next. Compiled by isa_*.c. */
#ifdef ISA_NAME
#include "base/mem.h"
#include "nn/ops/ops.h"

/* w (ch, taps) as (taps, ch), so that a tap is a row. */
static float *conv_rows(int ch, int taps, const float *w)
{
    float *r = xmalloc((size_t)ch * (size_t)taps * sizeof *r);

    for (int c = 0; c < ch; c++)
        for (int j = 0; j < taps; j++)
            r[j * ch + c] = w[c * taps + j];
    return r;
}

/* u of VL channels of one row; back: the distance in memory to the row before. */
INLINE vf conv_sum(int n, int ch, int taps, int past, const float *x, ptrdiff_t back, const float *rows)
{
    vf u = {0};

    for (int k = past < taps - 1 ? past : taps - 1; k >= 0; k--)
        u += v_load_part(rows + (taps - 1 - k) * ch, n) * v_load_part(x - k * back, n);
    return u;
}

/* Causal convolution of T rows, then silu; pos says where sequences begin. */
static void conv_silu_mt(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *w, float *y)
{
    float *rows = conv_rows(ch, taps, w);

#pragma omp parallel for schedule(dynamic, 32) if ((double)T * ch > 1e5)
    for (int t = 0; t < T; t++)
        for (int c = 0; c < ch; c += VL) {
            int n = ch - c;
            vf u = conv_sum(n, ch, taps, pos[t], x + (ptrdiff_t)t * ld + c, ld, rows + c);
            v_store_part(y + (ptrdiff_t)t * ch + c, u * v_sigmoid(u), n);
        }
    free(rows);
}

/* dy (T, ch) becomes du. */
static void conv_du(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *rows, float *dy)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * ch > 1e5)
    for (int t = 0; t < T; t++)
        for (int c = 0; c < ch; c += VL) {
            float *d = dy + (ptrdiff_t)t * ch + c;
            int n = ch - c;
            vf u = conv_sum(n, ch, taps, pos[t], x + (ptrdiff_t)t * ld + c, ld, rows + c), s = v_sigmoid(u);
            v_store_part(d, v_load_part(d, n) * s * (1.0f + u * (1.0f - s)), n);
        }
}

/* dx_s = sum_k w[taps - 1 - k] du_{s+k}: row s + k is of the same sequence where its position is k at least. */
static void conv_dx(int T, int ch, int taps, const int32_t *pos, const float *du, const float *rows, float *dx, int ld)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * ch > 1e5)
    for (int s = 0; s < T; s++)
        for (int c = 0; c < ch; c += VL) {
            int n = ch - c;
            vf sum = {0};
            for (int k = 0; k < taps && s + k < T && pos[s + k] == pos[s] + k; k++)
                sum += v_load_part(rows + (taps - 1 - k) * ch + c, n) * v_load_part(du + (ptrdiff_t)(s + k) * ch + c,
                                                                                    n);
            v_store_part(dx + (ptrdiff_t)s * ld + c, sum, n);
        }
}

/* dw += sum_t du_t x_{t-k}: threads share the channels, rows are summed in order. */
static void conv_dw(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *du, float *dw)
{
#pragma omp parallel for schedule(dynamic, 4)
    for (int c = 0; c < ch; c += VL) {
        vf sum[NN_MAX_TAPS] = {{0}};
        int n = ch - c;
        for (int t = 0; t < T; t++) {
            vf d = v_load_part(du + (ptrdiff_t)t * ch + c, n);
            for (int k = 0; k < taps && k <= pos[t]; k++)
                sum[k] += d * v_load_part(x + (ptrdiff_t)(t - k) * ld + c, n);
        }
        for (int k = 0; k < taps; k++) {
            float lane[VL];
            v_store(lane, sum[k]);
            for (int i = 0; i < VL && i < n; i++)
                dw[(c + i) * taps + taps - 1 - k] += lane[i];
        }
    }
}

/* Gradients of conv_silu_mt; dy is overwritten. */
static void conv_silu_backward_mt(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *w,
                                  float *dy, float *dx, int ld_dx, float *dw)
{
    float *rows = conv_rows(ch, taps, w);

    conv_du(T, ch, taps, pos, x, ld, rows, dy);
    conv_dw(T, ch, taps, pos, x, ld, dy, dw);
    conv_dx(T, ch, taps, pos, dy, rows, dx, ld_dx);
    free(rows);
}

/* One new row for each of B sequences. past[i] (taps - 1, ch): the rows before it, oldest first; renewed. */
static void conv_silu_step_mt(int B, int ch, int taps, const float *x, int ld, const float *w, float *const *past,
                              float *y)
{
    float *rows = conv_rows(ch, taps, w);
    size_t row = (size_t)ch * sizeof *x;

#pragma omp parallel for schedule(dynamic) if ((double)B * ch > 1e5)
    for (int b = 0; b < B; b++) {
        const float *now = x + (ptrdiff_t)b * ld;
        float *old = past[b];
        for (int c = 0; c < ch; c += VL) {
            int n = ch - c;
            vf u = {0};
            for (int j = 0; j < taps - 1; j++)
                u += v_load_part(rows + j * ch + c, n) * v_load_part(old + j * ch + c, n);
            u += v_load_part(rows + (taps - 1) * ch + c, n) * v_load_part(now + c, n);
            v_store_part(y + (ptrdiff_t)b * ch + c, u * v_sigmoid(u), n);
        }
        memmove(old, old + ch, (size_t)(taps - 2) * row);
        memcpy(old + (ptrdiff_t)(taps - 2) * ch, now, row);
    }
    free(rows);
}
#endif
