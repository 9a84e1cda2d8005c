/* attention_cpu.c - causal grouped-query attention over packed sequences. Compiled by isa_*.c, after gemm_cpu.c.
 *
 * A task is one sequence and one kv head. Keys and values are packed once per task; then blocks of BQ queries of each
 * head of the group see all keys up to their own, as two small matrix products and a softmax. The backward pass
 * recomputes the probabilities from the saved log-sum-exp (Dao et al., arXiv 2205.14135):
 * dS = P (dP - rowsum(dO O)), dQ = scale dS K, dK += scale dS^T Q, dV += P^T dO. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

#define BQ (4 * MR) /* queries of a block */

static int round_nr(int n) { return (n + NR - 1) / NR * NR; }

static size_t attn_scratch(const struct attn_shape *s, int max_len)
{
    size_t len = (size_t)round_nr(max_len), dim = (size_t)round_nr(s->dim);

    return 3 * len * dim + 2 * BQ * len + 2 * BQ * dim + 64;
}

static float softmax_row(int n, float scale, float *p, float *ret_max)
{
    vf vm = v_splat(-INFINITY), vs = {0};
    float m = -INFINITY, t[VL];
    int i;

    for (i = 0; i + VL <= n; i += VL)
        vm = v_max(vm, v_load(p + i));
    v_store(t, vm);
    for (int j = 0; j < VL; j++)
        m = t[j] > m ? t[j] : m;
    for (; i < n; i++)
        m = p[i] > m ? p[i] : m;
    m *= scale;
    for (i = 0; i + VL <= n; i += VL) {
        vf x = v_exp(v_load(p + i) * scale - m);
        v_store(p + i, x);
        vs += x;
    }
    if (i < n) {
        vf x = v_exp(v_load_part(p + i, n - i) * scale - m);
        v_store(t, x);
        for (int j = n - i; j < VL; j++)
            t[j] = 0;
        vs += v_load(t);
        memcpy(p + i, t, (size_t)(n - i) * sizeof *p);
    }
    *ret_max = m;
    return v_sum(vs);
}

struct attn_task {
    const struct attn_shape *s;
    int n, kv;            /* length of the sequence; kv head */
    const float *q, *k, *v; /* first token of the sequence, head 0 */
    float scale;
};

/* p (rows, ld): scores of queries [i0, i1) against keys [0, i1). */
static void attn_scores(const struct attn_task *a, int head, int i0, int i1, const float *k_packed, float *p, int ld)
{
    const struct attn_shape *s = a->s;

    gemm_rows(i1 - i0, i1, s->dim, a->q + (ptrdiff_t)i0 * s->ld_q + head * s->dim, s->ld_q, k_packed, p, ld, GEMM_SET);
}

static void attn_task_forward(const struct attn_task *a, float *o, float *lse, float *scratch)
{
    const struct attn_shape *s = a->s;
    int group = s->heads / s->kv_heads, ld = round_nr(a->n);
    float *kp = scratch, *vp = kp + (size_t)ld * s->dim, *p = vp + (size_t)a->n * round_nr(s->dim);

    pack_nt(a->k + a->kv * s->dim, s->ld_k, a->n, s->dim, kp);
    pack_nn(a->v + a->kv * s->dim, s->ld_v, s->dim, a->n, vp);
    for (int i0 = 0; i0 < a->n; i0 += BQ) {
        int i1 = i0 + BQ < a->n ? i0 + BQ : a->n;
        for (int h = a->kv * group; h < (a->kv + 1) * group; h++) {
            attn_scores(a, h, i0, i1, kp, p, ld);
            for (int i = i0; i < i1; i++) {
                float *row = p + (ptrdiff_t)(i - i0) * ld, m, sum = softmax_row(i + 1, a->scale, row, &m);
                for (int j = 0; j <= i; j++)
                    row[j] /= sum;
                memset(row + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *row);
                if (lse)
                    lse[(ptrdiff_t)i * s->heads + h] = m + logf(sum);
            }
            // the packed V has a->n rows, of which the first i1 matter: its panels keep their stride
            gemm_part(i1 - i0, s->dim, i1, a->n, p, ld, vp, o + (ptrdiff_t)i0 * s->ld_o + h * s->dim, s->ld_o,
                      GEMM_SET);
        }
    }
}

static void attn_forward_mt(const struct attn_shape *s, int n_seq, const int32_t *cu, const float *q, const float *k,
                            const float *v, float *o, float *lse, float *scratch, size_t per_thread)
{
#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int b = 0; b < n_seq; b++)
        for (int kv = 0; kv < s->kv_heads; kv++) {
            ptrdiff_t t = cu[b];
            struct attn_task a = {s, cu[b + 1] - cu[b], kv, q + t * s->ld_q, k + t * s->ld_k, v + t * s->ld_v,
                                  1.0f / sqrtf((float)s->dim)};
            attn_task_forward(&a, o + t * s->ld_o, lse ? lse + t * s->heads : NULL,
                              scratch + per_thread * (size_t)omp_get_thread_num());
        }
}

/* p becomes P, dp becomes scale * dS; columns beyond the query are 0. */
static void attn_score_gradient(const struct attn_task *a, int head, int i0, int i1, const float *lse, const float *o,
                                const float *dout, float *p, float *dp, int ld)
{
    const struct attn_shape *s = a->s;

    for (int i = i0; i < i1; i++) {
        ptrdiff_t at = (ptrdiff_t)i * s->ld_o + head * s->dim;
        float *pr = p + (ptrdiff_t)(i - i0) * ld, *dr = dp + (ptrdiff_t)(i - i0) * ld;
        float l = lse[(ptrdiff_t)i * s->heads + head], d = dot_row(s->dim, o + at, dout + at);
        for (int j = 0; j <= i; j += VL) {
            vf x = v_exp(v_load(pr + j) * a->scale - l); // rows are padded to NR, so whole registers are safe
            v_store(pr + j, x);
            v_store(dr + j, x * (v_load(dr + j) - d) * a->scale);
        }
        if (i + 1 < i1) {
            memset(pr + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *pr);
            memset(dr + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *dr);
        }
    }
}

/* dk and dv of the kv head are summed over the heads of its group in a fixed order; both must be zero before. */
static void attn_task_backward(const struct attn_task *a, const float *o, const float *lse, const float *dout, float *dq,
                               float *dk, float *dv, float *scratch)
{
    const struct attn_shape *s = a->s;
    int group = s->heads / s->kv_heads, ld = round_nr(a->n), dim_r = round_nr(s->dim);
    float *kt = scratch, *vt = kt + (size_t)ld * s->dim, *kp = vt + (size_t)ld * s->dim;
    float *p = kp + (size_t)a->n * dim_r, *dp = p + (size_t)BQ * ld, *qb = dp + (size_t)BQ * ld, *ob = qb + BQ * dim_r;

    pack_nt(a->k + a->kv * s->dim, s->ld_k, a->n, s->dim, kt);
    pack_nt(a->v + a->kv * s->dim, s->ld_v, a->n, s->dim, vt);
    pack_nn(a->k + a->kv * s->dim, s->ld_k, s->dim, a->n, kp);
    for (int i0 = 0; i0 < a->n; i0 += BQ) {
        int i1 = i0 + BQ < a->n ? i0 + BQ : a->n, m = i1 - i0;
        for (int h = a->kv * group; h < (a->kv + 1) * group; h++) {
            ptrdiff_t at_o = (ptrdiff_t)i0 * s->ld_o + h * s->dim, at_q = (ptrdiff_t)i0 * s->ld_q + h * s->dim;
            attn_scores(a, h, i0, i1, kt, p, ld);
            gemm_rows(m, i1, s->dim, dout + at_o, s->ld_o, vt, dp, ld, GEMM_SET);
            attn_score_gradient(a, h, i0, i1, lse, o, dout, p, dp, ld);
            gemm_part(m, s->dim, i1, a->n, dp, ld, kp, dq + at_q, s->ld_q, GEMM_SET);
            pack_nn(a->q + at_q, s->ld_q, s->dim, m, qb);
            pack_nn(dout + at_o, s->ld_o, s->dim, m, ob);
            gemm_cols(i1, s->dim, m, dp, ld, qb, dk + a->kv * s->dim, s->ld_k, GEMM_ADD);
            gemm_cols(i1, s->dim, m, p, ld, ob, dv + a->kv * s->dim, s->ld_v, GEMM_ADD);
        }
    }
}

static void attn_backward_mt(const struct attn_shape *s, int n_seq, const int32_t *cu, const float *q, const float *k,
                             const float *v, const float *o, const float *lse, const float *dout, float *dq, float *dk,
                             float *dv, float *scratch, size_t per_thread)
{
#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int b = 0; b < n_seq; b++)
        for (int kv = 0; kv < s->kv_heads; kv++) {
            ptrdiff_t t = cu[b];
            struct attn_task a = {s, cu[b + 1] - cu[b], kv, q + t * s->ld_q, k + t * s->ld_k, v + t * s->ld_v,
                                  1.0f / sqrtf((float)s->dim)};
            for (int i = 0; i < a.n; i++) {
                memset(dk + (t + i) * s->ld_k + kv * s->dim, 0, (size_t)s->dim * sizeof *dk);
                memset(dv + (t + i) * s->ld_v + kv * s->dim, 0, (size_t)s->dim * sizeof *dv);
            }
            attn_task_backward(&a, o + t * s->ld_o, lse + t * s->heads, dout + t * s->ld_o, dq + t * s->ld_q,
                               dk + t * s->ld_k, dv + t * s->ld_v, scratch + per_thread * (size_t)omp_get_thread_num());
        }
}
#endif
