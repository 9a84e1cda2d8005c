/* ops.h - the operators of the model on the CPU, fp32.
 *
 * Each lives in cpu/NAME.c, forward and backward side by side, written against simd.h and compiled once per
 * instruction set; cpu_ops() gives the table for the best one this machine has.
 * Everything is row-major; T is tokens, ld a row stride in floats. Functions whose name ends in _mt use all OpenMP
 * threads, the others the caller's only. Every sum has an order that depends neither on the number of threads nor on
 * the number of rows: a row gets the same bits in any batch. */
#ifndef MC_NN_OPS_H
#define MC_NN_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/ops/shapes.h"

/* A packed right-hand side B (k, n): panels of nr columns, [ceil(n / nr)][k][nr], zero padded. */
#define PACK_FLOATS(ops, n, k) ((size_t)(((n) + (ops)->nr - 1) / (ops)->nr) * (ops)->nr * (k))

#define MAX_HEAD_DIM 256

enum gemm_mode { GEMM_SET, GEMM_ADD };

struct attn_shape {
    int heads, kv_heads, dim;
    int ld_q, ld_k, ld_v, ld_o; /* row strides: token to token; head h is at + h * dim */
};

/* Packed sequences. Sequence i owns rows [cu[i], cu[i+1]). With shared (NULL: none) its first shared[i] positions are
 * not stored again: they are the first ones of the latest sequence before it that shares nothing (its root), and its
 * own rows continue behind them. */
struct attn_seqs {
    int n;
    const int32_t *cu;     /* (n + 1) */
    const int32_t *shared; /* (n), 0 for a root; shared[0] == 0 */
    const int32_t *first;  /* (n) or NULL: nobody reads the outputs of positions before first[i] of sequence i; they
                            * are not written, and their output gradients are taken as 0 */
};

/* Gates of a delta rule: b and a (T, v_heads) with row stride ld_gate; a_log and dt_bias (v_heads). */
struct delta_gates {
    const float *b, *a, *a_log, *dt_bias;
};
struct delta_grads {
    float *b, *a, *a_log, *dt_bias; /* the first two are set, the others added to */
};

struct ops {
    const char *name;
    int nr, mr;

    /* cpu/gemm.c: C (m, n) = A (m, k) B, or +=. A is (m, k) with stride lda, or with a_cols stored as (k, m). */
    void (*pack_nt)(const float *w, int ld, int n, int k, float *out);    /* B = w^T, w (n, k) */
    void (*pack_nn)(const float *b, int ld, int n, int k, float *out);    /* B = b,   b (k, n) */
    void (*pack_nt_mt)(const float *w, int ld, int n, int k, float *out);
    void (*pack_nn_mt)(const float *b, int ld, int n, int k, float *out);
    void (*gemm)(int m, int n, int k, const float *a, int lda, bool a_cols, const float *packed, float *c, int ldc,
                 enum gemm_mode mode);
    void (*gemm_mt)(int m, int n, int k, const float *a, int lda, bool a_cols, const float *packed, float *c, int ldc,
                    enum gemm_mode mode);

    /* C (m, n) = A (m, k) B where B was packed with depth packed_k >= k: the first k rows of it. */
    void (*gemm_part)(int m, int n, int k, int packed_k, const float *a, int lda, const float *packed, float *c,
                      int ldc, enum gemm_mode mode);

    /* cpu/rmsnorm.c: y = x * rstd * (plus + w), rstd = 1 / sqrt(mean x^2 + eps). rstd (T) is written when not NULL. */
    void (*rmsnorm_mt)(int T, int d, const float *x, const float *w, float plus, double eps, float *y, float *rstd);
    /* dx += backward of dy; dw += sum over tokens; x_hat * w is written to y when not NULL */
    void (*rmsnorm_backward_mt)(int T, int d, const float *x, const float *w, float plus, const float *rstd,
                                const float *dy, float *dx, float *dw);
    void (*rmsnorm_apply_mt)(int T, int d, const float *x, const float *w, float plus, const float *rstd, float *y);

    /* cpu/bias.c: every row of y (T, n), row stride ld, becomes b (n); db (n) += the sum of all rows of dy. */
    void (*bias_rows_mt)(int T, int n, const float *b, float *y, int ld);
    void (*bias_backward_mt)(int T, int n, const float *dy, int ld, float *db);

    /* cpu/rope.c: per head RMSNorm with w (dim), then rotation by position; w NULL: rotation alone, and rstd and dw are
     * left as they are. in (T, ld_in), out (T, ld_out); rstd (T, heads). table (positions, rot): cos for rot/2, then
     * sin for rot/2. pos (T). */
    void (*qk_norm_rope_mt)(int T, struct nn_heads s, const float *in, int ld_in, const float *w, double eps,
                            const int32_t *pos, const float *table, float *out, int ld_out, float *rstd);
    /* din (T, ld_din), laid out as in, from dout (T, ld_dout); dw (dim) += */
    void (*qk_norm_rope_backward_mt)(int T, struct nn_heads s, const float *in, int ld_in, const float *w,
                                     const float *rstd, const int32_t *pos, const float *table, const float *dout,
                                     int ld_dout, float *din, int ld_din, float *dw);

    /* cpu/attention.c: causal, per sequence; scale = dim^-0.5; kv head of h is h / (heads / kv_heads).
     * lse (T, heads): log-sum-exp of each row of scores. scratch: attn_scratch floats per thread. */
    size_t (*attn_scratch)(const struct attn_shape *s, int max_len);
    void (*attn_forward_mt)(const struct attn_shape *s, const struct attn_seqs *seqs, const float *q, const float *k,
                            const float *v, float *o, float *lse, float *scratch, size_t per_thread);
    void (*attn_backward_mt)(const struct attn_shape *s, const struct attn_seqs *seqs, const float *q, const float *k,
                             const float *v, const float *o, const float *lse, const float *dout, float *dq, float *dk,
                             float *dv, float *scratch, size_t per_thread);
    /* One row of probabilities: p[0..n) = exp(scale * p - m) where m is their maximum and scale applied first;
     * returns the sum and stores m. */
    float (*softmax_row)(int n, float scale, float *p, float *ret_max);

    /* cpu/swiglu.c: gu (T, 2f) holds gate then up; act (T, f) = silu(gate) * up. Backward also rewrites act. */
    void (*swiglu_mt)(int T, int f, const float *gu, float *act);
    void (*swiglu_backward_mt)(int T, int f, const float *gu, const float *dact, float *dgu, float *act);

    /* cpu/conv.c: y (T, ch) = silu of a causal depthwise convolution of x (T, ch), row stride ld, with w (ch, taps),
     * taps <=
     * NN_MAX_TAPS; pos (T): what lies further back is not of this sequence. Backward: dy becomes scratch; dw +=.
     * Step: one
     * row for each of B sequences, past[b] (taps - 1, ch) the rows before it, renewed. */
    void (*conv_silu_mt)(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *w, float *y);
    void (*conv_silu_backward_mt)(int T, int ch, int taps, const int32_t *pos, const float *x, int ld, const float *w,
                                  float *dy, float *dx, int ld_dx, float *dw);
    void (*conv_silu_step_mt)(int B, int ch, int taps, const float *x, int ld, const float *w, float *const *past,
                              float *y);

    /* cpu/gate.c: y (T, heads * dim) = a sigmoid(g); g with row stride ld, head stride step. Backward: dy becomes da.
     * */
    void (*out_gate_mt)(int T, int heads, int dim, const float *a, const float *g, int ld, int step, float *y);
    void (*out_gate_backward_mt)(int T, int heads, int dim, const float *a, const float *g, int ld, int step, float *dy,
                                 float *dg);
    /* y (T, heads * dim) = RMSNorm of each head of o with w (dim), times silu(z); z with row stride ld. dw += */
    void (*gated_norm_mt)(int T, int heads, int dim, const float *o, const float *w, double eps, const float *z, int ld,
                          float *y);
    void (*gated_norm_backward_mt)(int T, int heads, int dim, const float *o, const float *w, double eps,
                                   const float *z, int ld, const float *dy, float *d_o, float *dz, int ld_dz,
                                   float *dw);

    /* cpu/delta.c: c (T, 2 k_heads k_dim + v_heads v_dim) -> o (T, v_heads v_dim). state (n_seq) or NULL: the last
     * one of each sequence, (v_heads, k_dim, v_dim). dc is set. scratch: delta_scratch floats per thread. Step:
     * one row for each of B sequences, states renewed. */
    size_t (*delta_scratch)(const struct nn_delta *s, int max_len);
    void (*delta_forward_mt)(const struct nn_delta *s, int n_seq, const int32_t *cu, const float *c,
                             const struct delta_gates *g, float *o, float *const *state, float *scratch,
                             size_t per_thread);
    void (*delta_backward_mt)(const struct nn_delta *s, int n_seq, const int32_t *cu, const float *c,
                              const struct delta_gates *g, const float *dout, float *dc, const struct delta_grads *d,
                              float *scratch, size_t per_thread);
    void (*delta_step_mt)(const struct nn_delta *s, int B, const float *c, const struct delta_gates *g,
                          float *const *state, float *o);

    /* cpu/classifier.c: z (n, V) logits become log-probs' gradients in two steps. forward: per row lse of z / T,
     * logp of target and entropy. backward: z becomes dL/dz. */
    void (*classifier_mt)(int n, int V, const float *z, float inv_temp, const int32_t *target, float *lse, float *logp,
                          float *entropy);
    void (*classifier_backward_mt)(int n, int V, float *z, float inv_temp, const int32_t *target, const float *lse,
                                   const float *entropy, const float *dlogp, const float *dentropy);

    /* cpu/adamw.c */
    void (*adamw_mt)(size_t n, float *w, const float *g, float *m, float *v, float lr, float beta1, float beta2,
                     float eps, float decay, float correct1, float correct2);
    double (*sumsq)(size_t n, const float *x); /* fixed blocks summed in double */
    void (*scale)(size_t n, float *x, float s);
};

const struct ops *cpu_ops(void);                 /* the best for this machine; $MUSACODER_ISA=base|v3|v4 overrides */
const struct ops *cpu_ops_named(const char *name); /* NULL if unknown or not runnable here; for tests */

#endif
