/* attention.c - causal grouped-query attention over packed sequences. Compiled by isa_*.c, after gemm.c.
 *
 * A task is one sequence (backward: a root and those that share its beginning) and one kv head. Keys and values
 * are packed once; then blocks of BQ queries of each head of the group see all keys up to their own, as two small
 * matrix products and a softmax. The backward pass recomputes the probabilities from the saved log-sum-exp (Dao et
 * al., arXiv 2205.14135): dS = P (dP - rowsum(dO O)), dQ = scale dS K, dK += scale dS^T Q, dV += P^T dO. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

#define BQ (4 * MR) /* queries of a block */

static int round_nr(int n) { return (n + NR - 1) / NR * NR; }

/* Floats that one thread needs for sequences of at most max_len. */
static size_t attn_scratch(const struct attn_shape *s, int max_len)
{
    size_t len = (size_t)round_nr(max_len), dim = (size_t)round_nr(s->dim);

    return 5 * len * dim + 2 * BQ * len + 2 * BQ * dim + 64;
}

/* p becomes exp(scale p - max) of n; the sum is returned, the maximum goes to *ret_max. */
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

/* One sequence of n positions of which the first 'shared' lie at the root's rows and the others at its own. Pointers
 * are to row 0, head 0; root and own are first rows, so that position i is row root + i or own + i - shared. */
struct attn_task {
    const struct attn_shape *s;
    int n, shared, first, kv; /* queries [first, n) */
    ptrdiff_t root, own;
    float scale;
};

/* The task of sequence i and key head kv, with the prefix that it shares. */
static struct attn_task attn_task(const struct attn_shape *s, const struct attn_seqs *seqs, int i, int kv)
{
    int shared = seqs->shared ? seqs->shared[i] : 0, first = seqs->first ? seqs->first[i] : 0, r = i;

    while (seqs->shared && seqs->shared[r])
        r--;
    return (struct attn_task){s, shared + seqs->cu[i + 1] - seqs->cu[i], shared, first > shared ? first : shared, kv,
                              seqs->cu[r], seqs->cu[i], 1.0f / sqrtf((float)s->dim)};
}

/* Rows of one kv head in order of position, (n, dim). */
static void attn_gather(const struct attn_task *a, const float *x, int ld, float *out)
{
    size_t bytes = (size_t)a->s->dim * sizeof *x;

    x += a->kv * a->s->dim;
    for (int i = 0; i < a->n; i++, out += a->s->dim)
        memcpy(out, x + (i < a->shared ? a->root + i : a->own + i - a->shared) * ld, bytes);
}

/* p (rows, ld): scores of queries [i0, i1) against keys [0, i1). */
static void attn_scores(const struct attn_task *a, int head, int i0, int i1, const float *q, const float *k_packed,
                        float *p,
                        int ld)
{
    const struct attn_shape *s = a->s;

    q += (a->own + i0 - a->shared) * s->ld_q + head * s->dim;
    gemm_rows(i1 - i0, i1, s->dim, q, s->ld_q, k_packed, p, ld, GEMM_SET);
}

/* Attention of one sequence and one group of heads. scratch: of one thread. */
static void attn_task_forward(const struct attn_task *a, const float *q, const float *k, const float *v, float *o,
                              float *lse,
                              float *scratch)
{
    const struct attn_shape *s = a->s;
    int group = s->heads / s->kv_heads, ld = round_nr(a->n);
    float *kp = scratch, *vp = kp + (size_t)ld * s->dim, *x = vp + (size_t)a->n * round_nr(s->dim);
    float *p = x + (size_t)a->n * s->dim, inv[BQ];

    attn_gather(a, k, s->ld_k, x);
    pack_nt(x, s->dim, a->n, s->dim, kp);
    attn_gather(a, v, s->ld_v, x);
    pack_nn(x, s->dim, s->dim, a->n, vp);
    for (int i0 = a->first; i0 < a->n; i0 += BQ) {
        int i1 = i0 + BQ < a->n ? i0 + BQ : a->n;
        ptrdiff_t t = a->own + i0 - a->shared;
        for (int h = a->kv * group; h < (a->kv + 1) * group; h++) {
            attn_scores(a, h, i0, i1, q, kp, p, ld);
            for (int i = i0; i < i1; i++) {
                float *row = p + (ptrdiff_t)(i - i0) * ld, m, sum = softmax_row(i + 1, a->scale, row, &m);
                inv[i - i0] = 1.0f / sum;
                memset(row + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *row);
                if (lse)
                    lse[(t + i - i0) * s->heads + h] = m + logf(sum);
            }
            /* the packed V has a->n rows, of which the first i1 matter: its panels keep their stride */
            gemm_part(i1 - i0, s->dim, i1, a->n, p, ld, vp, o + t * s->ld_o + h * s->dim, s->ld_o, GEMM_SET);
            for (int i = i0; i < i1; i++)
                scale((size_t)s->dim, o + (t + i - i0) * s->ld_o + h * s->dim, inv[i - i0]);
        }
    }
}

/* Causal attention of packed sequences: o and, for backward, lse. */
static void attn_forward_mt(const struct attn_shape *s, const struct attn_seqs *seqs, const float *q, const float *k,
                            const float *v, float *o, float *lse, float *scratch, size_t per_thread)
{
#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int b = 0; b < seqs->n; b++)
        for (int kv = 0; kv < s->kv_heads; kv++) {
            struct attn_task a = attn_task(s, seqs, b, kv);
            attn_task_forward(&a, q, k, v, o, lse, scratch + per_thread * (size_t)omp_get_thread_num());
        }
}

/* p becomes P, dp becomes scale * dS; columns beyond the query are 0. t is the row of query i0. */
static void attn_score_gradient(const struct attn_task *a, int head, int i0, int i1, ptrdiff_t t, const float *lse,
                                const float *o, const float *dout, float *p, float *dp, int ld)
{
    const struct attn_shape *s = a->s;

    for (int i = i0; i < i1; i++, t++) {
        ptrdiff_t at = t * s->ld_o + head * s->dim;
        float *pr = p + (ptrdiff_t)(i - i0) * ld, *dr = dp + (ptrdiff_t)(i - i0) * ld;
        float l = lse[t * s->heads + head], d = dot_row(s->dim, o + at, dout + at);
        for (int j = 0; j <= i; j += VL) {
            vf x = v_exp(v_load(pr + j) * a->scale - l); /* rows are padded to NR, so whole registers are safe */
            v_store(pr + j, x);
            v_store(dr + j, x * (v_load(dr + j) - d) * a->scale);
        }
        if (i + 1 < i1) {
            memset(pr + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *pr);
            memset(dr + i + 1, 0, (size_t)(i1 - i - 1) * sizeof *dr);
        }
    }
}

/* out (positions, ld) += x^T b for x (m, ld_x) with a column per position below i1: the shared ones go to the root. */
static void attn_add_keys(const struct attn_task *a, int i1, int m, const float *x, int ld_x, const float *b,
                          float *out,
                          int ld)
{
    int shared = a->shared < i1 ? a->shared : i1;

    out += a->kv * a->s->dim;
    if (shared)
        gemm_cols(shared, a->s->dim, m, x, ld_x, b, out + a->root * ld, ld, GEMM_ADD);
    gemm_cols(i1 - shared, a->s->dim, m, x + shared, ld_x, b, out + a->own * ld, ld, GEMM_ADD);
}

struct attn_grads {
    const float *q, *k, *v, *o, *lse, *dout;
    float *dq, *dk, *dv;
};

/* dk and dv of the kv head are summed over the heads of its group in a fixed order; both must be zero before. */
static void attn_task_backward(const struct attn_task *a, const struct attn_grads *g, float *scratch)
{
    const struct attn_shape *s = a->s;
    int group = s->heads / s->kv_heads, ld = round_nr(a->n), dim_r = round_nr(s->dim);
    float *kt = scratch, *vt = kt + (size_t)ld * s->dim, *kp = vt + (size_t)ld * s->dim;
    float *p = kp + (size_t)a->n * dim_r, *dp = p + (size_t)BQ * ld, *qb = dp + (size_t)BQ * ld, *ob = qb + BQ * dim_r;
    float *x = ob + BQ * dim_r;

    for (int i = a->shared; i < a->first; i++)
        memset(g->dq + (a->own + i - a->shared) * s->ld_q + a->kv * group * s->dim, 0,
               (size_t)(group * s->dim) * sizeof *g->dq);
    attn_gather(a, g->v, s->ld_v, x);
    pack_nt(x, s->dim, a->n, s->dim, vt);
    attn_gather(a, g->k, s->ld_k, x);
    pack_nt(x, s->dim, a->n, s->dim, kt);
    pack_nn(x, s->dim, s->dim, a->n, kp);
    for (int i0 = a->first; i0 < a->n; i0 += BQ) {
        int i1 = i0 + BQ < a->n ? i0 + BQ : a->n, m = i1 - i0;
        ptrdiff_t t = a->own + i0 - a->shared;
        for (int h = a->kv * group; h < (a->kv + 1) * group; h++) {
            ptrdiff_t at_o = t * s->ld_o + h * s->dim, at_q = t * s->ld_q + h * s->dim;
            attn_scores(a, h, i0, i1, g->q, kt, p, ld);
            gemm_rows(m, i1, s->dim, g->dout + at_o, s->ld_o, vt, dp, ld, GEMM_SET);
            attn_score_gradient(a, h, i0, i1, t, g->lse, g->o, g->dout, p, dp, ld);
            gemm_part(m, s->dim, i1, a->n, dp, ld, kp, g->dq + at_q, s->ld_q, GEMM_SET);
            pack_nn(g->q + at_q, s->ld_q, s->dim, m, qb);
            pack_nn(g->dout + at_o, s->ld_o, s->dim, m, ob);
            attn_add_keys(a, i1, m, dp, ld, qb, g->dk, s->ld_k);
            attn_add_keys(a, i1, m, p, ld, ob, g->dv, s->ld_v);
        }
    }
}

static void attn_zero(const struct attn_shape *s, int kv, int from, int to, float *dk, float *dv)
{
    for (ptrdiff_t t = from; t < to; t++) {
        memset(dk + t * s->ld_k + kv * s->dim, 0, (size_t)s->dim * sizeof *dk);
        memset(dv + t * s->ld_v + kv * s->dim, 0, (size_t)s->dim * sizeof *dv);
    }
}

/* A root and its followers add to the same rows, so they are one task, in order. */
static void attn_backward_mt(const struct attn_shape *s, const struct attn_seqs *seqs, const float *q, const float *k,
                             const float *v, const float *o, const float *lse, const float *dout, float *dq, float *dk,
                             float *dv, float *scratch, size_t per_thread)
{
    const struct attn_grads g = {q, k, v, o, lse, dout, dq, dk, dv};

#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int b = 0; b < seqs->n; b++)
        for (int kv = 0; kv < s->kv_heads; kv++) {
            int end = b + 1;
            if (seqs->shared && seqs->shared[b])
                continue;
            while (end < seqs->n && seqs->shared && seqs->shared[end])
                end++;
            attn_zero(s, kv, seqs->cu[b], seqs->cu[end], dk, dv);
            for (int i = b; i < end; i++) {
                struct attn_task a = attn_task(s, seqs, i, kv);
                attn_task_backward(&a, &g, scratch + per_thread * (size_t)omp_get_thread_num());
            }
        }
}
#endif
