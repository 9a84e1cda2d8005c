/* delta.c - the gated delta rule (Yang et al., arXiv 2412.06464). Compiled by isa_*.c, after gemm.c, rmsnorm.c.
 *
 * A head's state S (k_dim, v_dim) starts at 0. With q and k normalised to length 1, q times k_dim^-1/2, beta =
 * sigmoid(b)
 * and g = -e^A_log softplus(a + dt_bias):
 *     S' = e^g S;  S = S' + k (beta (v - S'^T k))^T;  o = S^T q.
 * Chunks of NN_DELTA_CHUNK positions at a time: with c = cumsum g, D_ij = e^(c_i - c_j) for i >= j, state S0 before,
 *     A_ij = beta_i k_i.k_j D_ij (i > j);  E = V - e^c K S0;  (I + A) V' = beta E;  P_ij = q_i.k_j D_ij (i >= j);
 *     O = e^c Q S0 + P V';  S1 = e^(c_n) S0 + (e^(c_n - c) K)^T V'.
 * Backward from dO and G = dL/dS1, chunks from last to first, everything of the chunk computed again from S0:
 *     dV' = P^T dO + (e^(c_n - c) K) G;  (I + A)^T dR = dV';  dE = beta dR = dV;  dP = tril(dO V'^T);  dA = -stril(dR
 * V'^T);
 *     dS0 = e^(c_n) G + (e^c Q)^T dO - (e^c K)^T dE, and dQ, dK, dbeta, dc by the product rule; dg_i = sum of dc from
 * i on.
 * A task is one sequence and one key head: it sums dq and dk over that head's value heads in order. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

#define CH NN_DELTA_CHUNK

struct delta_tile {
    float *d, *kk, *p, *a;  /* (CH, CH) D, k k^T, P, A */
    float *dp, *da;         /* (CH, CH) */
    float *e, *v, *dv, *dr; /* (CH, v_dim) E, V', dV', dR */
    float *t, *u;           /* (CH, k_dim) */
    float *pack[3];
    double c[CH];
    float up[CH], down[CH]; /* e^c, e^(c_n - c) */
};

struct delta_task {
    const struct nn_delta *s;
    int n, from, kh;
    float *q, *k, *rq, *rk; /* (n, k_dim) normalised, (n) 1 / length */
    float *dq, *dk;
    float *beta, *g, *dc;   /* (n) of the value head */
    float *states;          /* (chunks + 1, k_dim, v_dim) */
    float *grad;            /* (k_dim, v_dim) */
    struct delta_tile x;
};

static int delta_round(int n) { return (n + NR - 1) / NR * NR; }

static size_t delta_pack_floats(const struct nn_delta *s)
{
    int most = s->k_dim > s->v_dim ? s->k_dim : s->v_dim;

    most = most > CH ? most : CH;
    return (size_t)delta_round(most) * (size_t)most;
}

/* Gives every part of a task its place; with at NULL only counts. */
static size_t delta_place(struct delta_task *t, const struct nn_delta *s, int n, float *at)
{
    size_t len = (size_t)n, kd = (size_t)s->k_dim, vd = (size_t)delta_round(s->v_dim), kv = kd * (size_t)s->v_dim;
    size_t chunks = (len + CH - 1) / CH, sum = 0;
    struct { float **p; size_t size; } parts[] = {
        {&t->q, len * kd}, {&t->k, len * kd}, {&t->dq, len * kd}, {&t->dk, len * kd}, {&t->rq, len}, {&t->rk, len},
        {&t->beta, len}, {&t->g, len}, {&t->dc, len}, {&t->states, (chunks + 1) * kv}, {&t->grad, kv},
        {&t->x.d, CH * CH}, {&t->x.kk, CH * CH}, {&t->x.p, CH * CH}, {&t->x.a, CH * CH}, {&t->x.dp, CH * CH},
        {&t->x.da, CH * CH}, {&t->x.e, CH * vd}, {&t->x.v, CH * vd}, {&t->x.dv, CH * vd}, {&t->x.dr, CH * vd},
        {&t->x.t, CH * kd}, {&t->x.u, CH * kd}, {&t->x.pack[0], delta_pack_floats(s)},
        {&t->x.pack[1], delta_pack_floats(s)}, {&t->x.pack[2], delta_pack_floats(s)},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (at)
            *parts[i].p = at + sum;
        sum += (parts[i].size + 15) / 16 * 16;
    }
    return sum;
}

static size_t delta_scratch(const struct nn_delta *s, int max_len)
{
    struct delta_task t;

    return delta_place(&t, s, max_len, NULL);
}

INLINE float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }
INLINE float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static int delta_width(const struct nn_delta *s) { return 2 * s->k_heads * s->k_dim + s->v_heads * s->v_dim; }

/* out = size * x / |x|; returns 1 / |x|. */
INLINE float delta_unit(int n, const float *x, float size, float *out)
{
    float r = 1 / sqrtf(dot_row(n, x, x) + 1e-6f);

    for (int i = 0; i < n; i++)
        out[i] = x[i] * r * size;
    return r;
}

/* Loads the normalised queries and keys of a sequence. */
static void delta_load_keys(struct delta_task *t, const float *c)
{
    int dk = t->s->k_dim, ld = delta_width(t->s);
    float size = 1 / sqrtf((float)dk);

    for (int i = 0; i < t->n; i++) {
        const float *row = c + (ptrdiff_t)(t->from + i) * ld + t->kh * dk;
        t->rq[i] = delta_unit(dk, row, size, t->q + (ptrdiff_t)i * dk);
        t->rk[i] = delta_unit(dk, row + t->s->k_heads * dk, 1, t->k + (ptrdiff_t)i * dk);
    }
}

/* Loads head h's beta and log decay of each position. */
static void delta_load_gates(struct delta_task *t, int h, const struct delta_gates *g)
{
    float rate = -expf(g->a_log[h]);

    for (int i = 0; i < t->n; i++) {
        ptrdiff_t at = (ptrdiff_t)(t->from + i) * t->s->ld_gate + h;
        t->beta[i] = sigmoid(g->b[at]);
        t->g[i] = rate * softplus(g->a[at] + g->dt_bias[h]);
    }
}

/* D, k k^T, A and, with q, P of positions [at, at + m). */
static void delta_scores(struct delta_task *t, int at, int m)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim;
    const float *k = t->k + (ptrdiff_t)at * dk;
    double c = 0;

    for (int i = 0; i < m; i++)
        x->c[i] = c += t->g[at + i];
    for (int i = 0; i < m; i++) {
        x->up[i] = expf((float)x->c[i]);
        x->down[i] = expf((float)(c - x->c[i]));
    }
    pack_nt(k, dk, m, dk, x->pack[0]);
    gemm_rows(m, m, dk, k, dk, x->pack[0], x->kk, CH, GEMM_SET);
    gemm_rows(m, m, dk, t->q + (ptrdiff_t)at * dk, dk, x->pack[0], x->p, CH, GEMM_SET);
    for (int i = 0; i < m; i++) {
        float *d = x->d + i * CH, *p = x->p + i * CH, *a = x->a + i * CH, *kk = x->kk + i * CH;
        for (int j = 0; j <= i; j++)
            d[j] = (float)(x->c[i] - x->c[j]);
        for (int j = 0; j <= i; j += VL)
            v_store_part(d + j, v_exp(v_load_part(d + j, CH - j)), CH - j);
        for (int j = 0; j <= i; j++) {
            p[j] *= d[j];
            a[j] = t->beta[at + i] * kk[j] * d[j];
        }
        for (int j = i + 1; j < m; j++)
            d[j] = p[j] = 0;
    }
}

/* y -= s x, of n floats. */
INLINE void row_sub(int n, float *y, float s, const float *x)
{
    int i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, v_load(y + i) - s * v_load(x + i));
    for (; i < n; i++)
        y[i] -= s * x[i];
}

INLINE void row_set(int n, float *y, float s, const float *x)
{
    for (int i = 0; i < n; i++)
        y[i] = s * x[i];
}

/* E and V' from state S, which is packed as right-hand side into pack[0]. v: rows of width ld. */
static void delta_values(struct delta_task *t, int at, int m, const float *S, const float *v, int ld)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;

    pack_nn(S, dv, dv, dk, x->pack[0]);
    gemm_rows(m, dv, dk, t->k + (ptrdiff_t)at * dk, dk, x->pack[0], x->e, dv, GEMM_SET);
    for (int i = 0; i < m; i++) {
        float *e = x->e + i * dv, *y = x->v + i * dv;
        const float *vi = v + (ptrdiff_t)i * ld;
        for (int j = 0; j < dv; j++) {
            e[j] = vi[j] - x->up[i] * e[j];
            y[j] = t->beta[at + i] * e[j];
        }
        for (int j = 0; j < i; j++)
            row_sub(dv, y, x->a[i * CH + j], x->v + j * dv);
    }
}

/* S1 from S and V'; may be in place. */
static void delta_next(struct delta_task *t, int at, int m, const float *S, float *S1)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;
    float keep = x->up[m - 1];

    for (int i = 0; i < dk * dv; i++)
        S1[i] = keep * S[i];
    for (int i = 0; i < m; i++)
        row_set(dk, x->t + i * dk, x->down[i], t->k + (ptrdiff_t)(at + i) * dk);
    pack_nn(x->v, dv, dv, m, x->pack[1]);
    gemm_cols(dk, dv, m, x->t, dk, x->pack[1], S1, dv, GEMM_ADD);
}

/* o: rows of width ld. S stands packed in pack[0]. */
static void delta_outputs(struct delta_task *t, int at, int m, float *o, int ld)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;

    for (int i = 0; i < m; i++)
        row_set(dk, x->t + i * dk, x->up[i], t->q + (ptrdiff_t)(at + i) * dk);
    gemm_rows(m, dv, dk, x->t, dk, x->pack[0], o, ld, GEMM_SET);
    pack_nn(x->v, dv, dv, m, x->pack[1]);
    gemm_rows(m, dv, m, x->p, CH, x->pack[1], o, ld, GEMM_ADD);
}

/* The work of one sequence and key head; its buffers lie in scratch, which delta_place divides. */
static struct delta_task delta_task(const struct nn_delta *s, const int32_t *cu, int seq, int kh, float *scratch)
{
    struct delta_task t = {.s = s, .from = cu[seq], .n = cu[seq + 1] - cu[seq], .kh = kh};

    delta_place(&t, s, t.n, scratch);
    return t;
}

/* The gated delta rule over n_seq packed sequences with offsets cu; state: each sequence's last one, or NULL. */
static void delta_forward_mt(const struct nn_delta *s, int n_seq, const int32_t *cu, const float *c,
                             const struct delta_gates *g, float *o, float *const *state, float *scratch, size_t per)
{
    int group = s->v_heads / s->k_heads, dv = s->v_dim, kv = s->k_dim * dv, ld = delta_width(s), ld_o = s->v_heads * dv;

#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int i = 0; i < n_seq; i++)
        for (int kh = 0; kh < s->k_heads; kh++) {
            struct delta_task t = delta_task(s, cu, i, kh, scratch + per * (size_t)omp_get_thread_num());
            delta_load_keys(&t, c);
            for (int h = kh * group; h < (kh + 1) * group; h++) {
                float *S = state ? state[i] + (ptrdiff_t)h * kv : t.states;
                memset(S, 0, (size_t)kv * sizeof *S);
                delta_load_gates(&t, h, g);
                for (int at = 0; at < t.n; at += CH) {
                    int m = t.n - at < CH ? t.n - at : CH;
                    ptrdiff_t row = t.from + at;
                    delta_scores(&t, at, m);
                    delta_values(&t, at, m, S, c + row * ld + ld - ld_o + h * dv, ld);
                    delta_outputs(&t, at, m, o + row * ld_o + h * dv, ld_o);
                    delta_next(&t, at, m, S, S);
                }
            }
        }
}

/* ---- backward ---- */

/* The state at the beginning of each chunk, for backward. */
static void delta_states(struct delta_task *t, const float *v, int ld)
{
    int kv = t->s->k_dim * t->s->v_dim;

    memset(t->states, 0, (size_t)kv * sizeof *t->states);
    for (int at = 0, i = 0; at + CH < t->n; at += CH, i++) {
        delta_scores(t, at, CH);
        delta_values(t, at, CH, t->states + (ptrdiff_t)i * kv, v + (ptrdiff_t)at * ld, ld);
        delta_next(t, at, CH, t->states + (ptrdiff_t)i * kv, t->states + (ptrdiff_t)(i + 1) * kv);
    }
}

/* out[i] += s[i] * rows of x (CH, k_dim); dc[i] += sign * with[i] . what was added. Returns the sum of the products. */
static float delta_add_rows(int m, int dk, const float *s, float sign, const float *x, const float *with, float *out,
                            float *dc)
{
    float sum = 0;

    for (int i = 0; i < m; i++) {
        float dot = s[i] * dot_row(dk, with + (ptrdiff_t)i * dk, x + i * dk);
        for (int j = 0; j < dk; j++)
            out[(ptrdiff_t)i * dk + j] += s[i] * x[i * dk + j];
        dc[i] += sign * dot;
        sum += dot;
    }
    return sum;
}

/* dV', then dR in its place of the tile. */
static void delta_solve_back(struct delta_task *t, int at, int m, const float *dO, int ld)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;

    pack_nn(dO, ld, dv, m, x->pack[0]);
    gemm_cols(m, dv, m, x->p, CH, x->pack[0], x->dr, dv, GEMM_SET);
    for (int i = 0; i < m; i++)
        row_set(dk, x->t + i * dk, x->down[i], t->k + (ptrdiff_t)(at + i) * dk);
    pack_nn(t->grad, dv, dv, dk, x->pack[0]);
    gemm_rows(m, dv, dk, x->t, dk, x->pack[0], x->dr, dv, GEMM_ADD);
    for (int i = m - 1; i >= 0; i--)
        for (int j = i + 1; j < m; j++)
            row_sub(dv, x->dr + i * dv, x->a[j * CH + i], x->dr + j * dv);
}

/* Through the scores: dp and da become gradients of q k^T and k k^T; dbeta and dc are added to. */
static void delta_scores_back(struct delta_task *t, int at, int m, float *dbeta)
{
    struct delta_tile *x = &t->x;

    for (int i = 0; i < m; i++) {
        float *dp = x->dp + i * CH, *da = x->da + i * CH, row = 0, b = 0, beta = t->beta[at + i];
        const float *d = x->d + i * CH, *p = x->p + i * CH, *a = x->a + i * CH, *kk = x->kk + i * CH;
        for (int j = 0; j <= i; j++) {
            float w = dp[j] * p[j];
            if (j < i) {
                da[j] = -da[j];
                w += da[j] * a[j];
                b += da[j] * kk[j] * d[j];
                da[j] *= beta * d[j];
            }
            row += w;
            t->dc[at + j] -= w;
            dp[j] *= d[j];
        }
        t->dc[at + i] += row;
        dbeta[i] += b;
        da[i] = 0;
        for (int j = i + 1; j < m; j++)
            dp[j] = da[j] = 0;
    }
}

/* dS0 into grad. dE stands in x->dv. */
static void delta_state_back(struct delta_task *t, int at, int m, const float *S, const float *dO, int ld)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;
    float keep = x->up[m - 1];

    t->dc[at + m - 1] += keep * dot_row(dk * dv, S, t->grad);
    for (int i = 0; i < dk * dv; i++)
        t->grad[i] *= keep;
    for (int i = 0; i < m; i++) {
        row_set(dk, x->t + i * dk, x->up[i], t->q + (ptrdiff_t)(at + i) * dk);
        row_set(dk, x->u + i * dk, -x->up[i], t->k + (ptrdiff_t)(at + i) * dk);
    }
    pack_nn(dO, ld, dv, m, x->pack[0]);
    gemm_cols(dk, dv, m, x->t, dk, x->pack[0], t->grad, dv, GEMM_ADD);
    pack_nn(x->dv, dv, dv, m, x->pack[0]);
    gemm_cols(dk, dv, m, x->u, dk, x->pack[0], t->grad, dv, GEMM_ADD);
}

/* One chunk; dv_out: rows of width ld; dbeta (m). */
static void delta_chunk_back(struct delta_task *t, int at, int m, const float *S, const float *v, int ld,
                             const float *dO, int ld_o, float *dv_out, float *dbeta)
{
    struct delta_tile *x = &t->x;
    int dk = t->s->k_dim, dv = t->s->v_dim;
    float *q = t->q + (ptrdiff_t)at * dk, *k = t->k + (ptrdiff_t)at * dk, *dc = t->dc + at;
    float *dq = t->dq + (ptrdiff_t)at * dk, *dk_ = t->dk + (ptrdiff_t)at * dk, minus[CH];

    delta_scores(t, at, m);
    delta_values(t, at, m, S, v, ld);
    pack_nt(x->v, dv, m, dv, x->pack[1]);
    gemm_rows(m, m, dv, dO, ld_o, x->pack[1], x->dp, CH, GEMM_SET);
    delta_solve_back(t, at, m, dO, ld_o);
    gemm_rows(m, m, dv, x->dr, dv, x->pack[1], x->da, CH, GEMM_SET);
    for (int i = 0; i < m; i++) {
        float beta = t->beta[at + i];
        minus[i] = -x->up[i];
        dbeta[i] = dot_row(dv, x->dr + i * dv, x->e + i * dv);
        row_set(dv, x->dv + i * dv, beta, x->dr + i * dv);
        memcpy(dv_out + (ptrdiff_t)i * ld, x->dv + i * dv, (size_t)dv * sizeof *dv_out);
    }
    pack_nt(S, dv, dk, dv, x->pack[2]); /* S^T */
    gemm_rows(m, dk, dv, dO, ld_o, x->pack[2], x->t, dk, GEMM_SET);
    delta_add_rows(m, dk, x->up, 1, x->t, q, dq, dc);
    gemm_rows(m, dk, dv, x->dv, dv, x->pack[2], x->t, dk, GEMM_SET);
    delta_add_rows(m, dk, minus, 1, x->t, k, dk_, dc);
    pack_nt(t->grad, dv, dk, dv, x->pack[2]);
    gemm_rows(m, dk, dv, x->v, dv, x->pack[2], x->t, dk, GEMM_SET);
    dc[m - 1] += delta_add_rows(m, dk, x->down, -1, x->t, k, dk_, dc);
    delta_scores_back(t, at, m, dbeta);
    pack_nn(k, dk, dk, m, x->pack[1]);
    gemm_rows(m, dk, m, x->dp, CH, x->pack[1], dq, dk, GEMM_ADD);
    gemm_rows(m, dk, m, x->da, CH, x->pack[1], dk_, dk, GEMM_ADD);
    gemm_cols(m, dk, m, x->da, CH, x->pack[1], dk_, dk, GEMM_ADD);
    pack_nn(q, dk, dk, m, x->pack[1]);
    gemm_cols(m, dk, m, x->dp, CH, x->pack[1], dk_, dk, GEMM_ADD);
    delta_state_back(t, at, m, S, dO, ld_o);
    for (int i = m - 2; i >= 0; i--)
        dc[i] += dc[i + 1]; /* dg */
}

/* Of x = size y, y = in * r: din = r (dy - y (y . dy)), dy = size * g. */
INLINE void delta_unit_back(int n, float r, float size, const float *in, const float *g, float *din)
{
    float dot = size * r * dot_row(n, in, g);

    for (int i = 0; i < n; i++)
        din[i] = r * (size * g[i] - in[i] * r * dot);
}

/* Gradients of one value head over one sequence, chunk by chunk from the end. */
static void delta_head_back(struct delta_task *t, int h, const float *c, const struct delta_gates *g, const float *dout,
                            float *dc, float *db, float *da)
{
    const struct nn_delta *s = t->s;
    int dv = s->v_dim, kv = s->k_dim * dv, ld = delta_width(s), ld_o = s->v_heads * dv, v_at = ld - ld_o + h * dv;
    float dbeta[CH], rate = -expf(g->a_log[h]);

    delta_load_gates(t, h, g);
    delta_states(t, c + (ptrdiff_t)t->from * ld + v_at, ld);
    memset(t->grad, 0, (size_t)kv * sizeof *t->grad);
    memset(t->dc, 0, (size_t)t->n * sizeof *t->dc);
    for (int at = (t->n - 1) / CH * CH; at >= 0; at -= CH) {
        int m = t->n - at < CH ? t->n - at : CH;
        ptrdiff_t row = t->from + at;
        delta_chunk_back(t, at, m, t->states + (ptrdiff_t)(at / CH) * kv, c + row * ld + v_at, ld,
                         dout + row * ld_o + h * dv, ld_o, dc + row * ld + v_at, dbeta);
        for (int i = 0; i < m; i++) {
            ptrdiff_t to = (row + i) * s->ld_gate + h;
            db[to] = dbeta[i] * t->beta[at + i] * (1 - t->beta[at + i]);
            da[to] = t->dc[at + i] * rate * sigmoid(g->a[to] + g->dt_bias[h]);
        }
    }
}

/* d dt_bias = sum da; d A_log = sum dg g = sum da softplus(x) / sigmoid(x), a quotient that goes to 1 for small x. */
static void delta_gate_sums(const struct nn_delta *s, int T, const struct delta_gates *g, const float *da,
                            float *da_log,
                            float *ddt_bias)
{
    for (int h = 0; h < s->v_heads; h++) {
        double bias = 0, rate = 0;
        for (int t = 0; t < T; t++) {
            ptrdiff_t at = (ptrdiff_t)t * s->ld_gate + h;
            float x = g->a[at] + g->dt_bias[h];
            bias += da[at];
            rate += da[at] * (x < -15 ? 1 : softplus(x) / sigmoid(x));
        }
        ddt_bias[h] += (float)bias;
        da_log[h] += (float)rate;
    }
}

/* Gradients of delta_forward_mt with respect to the convolution's outputs and the gates. */
static void delta_backward_mt(const struct nn_delta *s, int n_seq, const int32_t *cu, const float *c,
                              const struct delta_gates *g, const float *dout, float *dc, const struct delta_grads *d,
                              float *scratch, size_t per)
{
    int group = s->v_heads / s->k_heads, dk = s->k_dim, ld = delta_width(s);
    float size = 1 / sqrtf((float)dk);

#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int i = 0; i < n_seq; i++)
        for (int kh = 0; kh < s->k_heads; kh++) {
            struct delta_task t = delta_task(s, cu, i, kh, scratch + per * (size_t)omp_get_thread_num());
            delta_load_keys(&t, c);
            memset(t.dq, 0, (size_t)t.n * (size_t)dk * sizeof *t.dq);
            memset(t.dk, 0, (size_t)t.n * (size_t)dk * sizeof *t.dk);
            for (int h = kh * group; h < (kh + 1) * group; h++)
                delta_head_back(&t, h, c, g, dout, dc, d->b, d->a);
            for (int j = 0; j < t.n; j++) {
                ptrdiff_t at = (ptrdiff_t)(t.from + j) * ld + kh * dk, k_at = at + s->k_heads * dk;
                delta_unit_back(dk, t.rq[j], size, c + at, t.dq + (ptrdiff_t)j * dk, dc + at);
                delta_unit_back(dk, t.rk[j], 1, c + k_at, t.dk + (ptrdiff_t)j * dk, dc + k_at);
            }
        }
    delta_gate_sums(s, cu[n_seq], g, d->a, d->a_log, d->dt_bias);
}

/* ---- one position at a time ---- */

/* One token of one head: updates S (k_dim, v_dim) and writes o (v_dim). */
static void delta_step_head(const struct nn_delta *s, const float *q, const float *k, const float *v, float beta,
                            float g,
                            float *S, float *o)
{
    int dk = s->k_dim, dv = s->v_dim;
    float keep = expf(g), d[MAX_HEAD_DIM] = {0};

    for (int i = 0; i < dk; i++)
        row_sub(dv, d, -k[i], S + i * dv);
    for (int j = 0; j < dv; j++) {
        d[j] = beta * (v[j] - keep * d[j]);
        o[j] = 0;
    }
    for (int i = 0; i < dk; i++) {
        float *row = S + i * dv;
        for (int j = 0; j < dv; j++) {
            row[j] = keep * row[j] + k[i] * d[j];
            o[j] += q[i] * row[j];
        }
    }
}

/* One token of B rows; state[b] is updated. */
static void delta_step_mt(const struct nn_delta *s, int B, const float *c, const struct delta_gates *g,
                          float *const *state, float *o)
{
    int group = s->v_heads / s->k_heads, dk = s->k_dim, dv = s->v_dim, ld = delta_width(s);
    float size = 1 / sqrtf((float)dk);

#pragma omp parallel for schedule(dynamic) collapse(2) if ((double)B * s->v_heads * dk * dv > 1e5)
    for (int b = 0; b < B; b++)
        for (int h = 0; h < s->v_heads; h++) {
            const float *row = c + (ptrdiff_t)b * ld + h / group * dk;
            float q[MAX_HEAD_DIM], k[MAX_HEAD_DIM];
            ptrdiff_t at = (ptrdiff_t)b * s->ld_gate + h;
            delta_unit(dk, row, size, q);
            delta_unit(dk, row + s->k_heads * dk, 1, k);
            delta_step_head(s, q, k, c + (ptrdiff_t)b * ld + 2 * s->k_heads * dk + h * dv, sigmoid(g->b[at]),
                            -expf(g->a_log[h]) * softplus(g->a[at] + g->dt_bias[h]), state[b] + (ptrdiff_t)h * dk * dv,
                            o + ((ptrdiff_t)b * s->v_heads + h) * dv);
        }
}
#endif
