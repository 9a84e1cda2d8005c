/* test_ops.c - every operator, on every instruction set this machine has, against a plain implementation in double, and
 * every backward pass against central finite differences of that implementation: independent of any other library.
 * For an operator y = f(x) and fixed random weights r, L = sum r y; the backward pass gets r and must return dL/dx. */
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/ops/ops.h"

static struct rng rng;

static float *random_floats(size_t n, double size)
{
    float *x = xcalloc(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(size * rng_normal(&rng));
    return x;
}

static void expect_near(const char *what, const char *isa, const float *got, const double *want, size_t n,
                        double tolerance)
{
    double top = 1e-30, diff = 0;

    for (size_t i = 0; i < n; i++) {
        double d = fabs(got[i] - want[i]);
        top = fabs(want[i]) > top ? fabs(want[i]) : top;
        diff = d > diff || isnan(d) ? d : diff;
    }
    if (!(diff <= tolerance * top))
        fail_msg("%s (%s): off by %.2e of the maximum %.2e", what, isa, diff / top, top);
}

#define MAX_CHECKED 500 /* a long input is probed at this many places */

/* L as a function of one input vector x (n); everything else is in ctx. */
typedef double loss_fn(const double *x, void *ctx);

static void check_gradient(const char *what, const char *isa, loss_fn *f, void *ctx, const float *x, size_t n,
                           const float *grad)
{
    double *at = xcalloc(n, sizeof *at), *want = xcalloc(n, sizeof *want);
    size_t step = n > MAX_CHECKED ? n / MAX_CHECKED | 1 : 1;

    for (size_t i = 0; i < n; i++) {
        at[i] = x[i];
        want[i] = grad[i];
    }
    for (size_t i = rng_below(&rng, step); i < n; i += step) {
        double h = 1e-5, keep = at[i], up;
        at[i] = keep + h;
        up = f(at, ctx);
        at[i] = keep - h;
        want[i] = (up - f(at, ctx)) / (2 * h);
        at[i] = keep;
    }
    expect_near(what, isa, grad, want, n, 1e-5);
    free(at);
    free(want);
}

static double *to_double(const float *x, size_t n)
{
    double *d = xcalloc(n, sizeof *d);

    for (size_t i = 0; i < n; i++)
        d[i] = x[i];
    return d;
}

/* ---- gemm ---- */

static void check_gemm(const struct ops *op, int m, int n, int k, bool cols, bool nt, bool add)
{
    float *a = random_floats((size_t)m * (size_t)k, 1), *b = random_floats((size_t)n * (size_t)k, 1);
    float *c = random_floats((size_t)m * (size_t)n, 1), *c1 = xcalloc((size_t)m * (size_t)n, sizeof *c1);
    float *packed = xcalloc(PACK_FLOATS(op, n, k), sizeof *packed);
    double *want = xcalloc((size_t)m * (size_t)n, sizeof *want);

    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = add ? c[i * n + j] : 0;
            for (int p = 0; p < k; p++)
                s += (double)(cols ? a[p * m + i] : a[i * k + p]) * (nt ? b[j * k + p] : b[p * n + j]);
            want[i * n + j] = s;
        }
    memcpy(c1, c, (size_t)m * (size_t)n * sizeof *c);
    if (nt)
        op->pack_nt_mt(b, k, n, k, packed);
    else
        op->pack_nn_mt(b, n, n, k, packed);
    op->gemm_mt(m, n, k, a, cols ? m : k, cols, packed, c, n, add ? GEMM_ADD : GEMM_SET);
    expect_near("gemm", op->name, c, want, (size_t)m * (size_t)n, 1e-6 * sqrt(k));
    op->gemm(m, n, k, a, cols ? m : k, cols, packed, c1, n, add ? GEMM_ADD : GEMM_SET);
    assert_memory_equal(c, c1, (size_t)m * (size_t)n * sizeof *c); // threads and blocks do not change bits
    free(a), free(b), free(c), free(c1), free(packed), free(want);
}

static void test_gemm(const struct ops *op)
{
    static const int sizes[][3] = {{1, 1, 1}, {1, 33, 7}, {13, 32, 16}, {14, 64, 513}, {15, 31, 600}, {64, 70, 40},
                                   {113, 65, 257}, {200, 100, 5}, {3, 257, 1030}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int v = 0; v < 8; v++)
            check_gemm(op, sizes[i][0], sizes[i][1], sizes[i][2], v & 1, v & 2, v & 4);
}

/* ---- norm ---- */

struct norm_ctx {
    int T, d;
    const double *x, *w, *r;
    bool vary_w;
    double plus;
};

static double norm_loss(const double *v, void *p)
{
    struct norm_ctx *c = p;
    const double *x = c->vary_w ? c->x : v, *w = c->vary_w ? v : c->w;
    double loss = 0;

    for (int t = 0; t < c->T; t++) {
        double s = 0;
        for (int i = 0; i < c->d; i++)
            s += x[t * c->d + i] * x[t * c->d + i];
        s = 1 / sqrt(s / c->d + 1e-6);
        for (int i = 0; i < c->d; i++)
            loss += c->r[t * c->d + i] * x[t * c->d + i] * s * (c->plus + w[i]);
    }
    return loss;
}

static void test_rmsnorm(const struct ops *op)
{
    static const int widths[] = {1, 5, 16, 47, 64};

    for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
        int T = 19, d = widths[k];
        size_t n = (size_t)(T * d);
        float *x = random_floats(n, 2), *w = random_floats((size_t)d, 1), *r = random_floats(n, 1), rstd[19];
        float *y = xcalloc(n, sizeof *y), *dx = xcalloc(n, sizeof *dx), *dw = xcalloc((size_t)d, sizeof *dw);
        struct norm_ctx c = {T, d, to_double(x, n), to_double(w, (size_t)d), to_double(r, n), false, k % 2};
        double loss = 0;

        op->rmsnorm_mt(T, d, x, w, (float)c.plus, 1e-6, y, rstd);
        for (size_t i = 0; i < n; i++)
            loss += (double)r[i] * y[i];
        assert_true(fabs(loss - norm_loss(c.x, &c)) < 1e-4);
        op->rmsnorm_backward_mt(T, d, x, w, (float)c.plus, rstd, r, dx, dw);
        if (d > 1) // a norm of one number has gradient 0 up to eps
            check_gradient("rmsnorm dx", op->name, norm_loss, &c, x, n, dx);
        c.vary_w = true;
        check_gradient("rmsnorm dw", op->name, norm_loss, &c, w, (size_t)d, dw);
        free(x), free(w), free(r), free(y), free(dx), free(dw);
        free((void *)c.x), free((void *)c.w), free((void *)c.r);
    }
}

/* ---- norm and rotation of heads ---- */

struct rope_ctx {
    int T;
    struct nn_heads s;
    const double *x, *w, *r;
    const int32_t *pos;
    bool vary_w, normed;
};

static double rope_loss(const double *v, void *p)
{
    struct rope_ctx *c = p;
    const double *w = c->vary_w ? v : c->w;
    double loss = 0;
    int D = c->s.dim, rot = c->s.rot, h2 = rot / 2;

    for (int t = 0; t < c->T * c->s.heads; t++) {
        const double *x = (c->vary_w ? c->x : v) + t * c->s.step, *r = c->r + t * D;
        double s = 0;
        for (int i = 0; i < D; i++)
            s += x[i] * x[i];
        s = c->normed ? 1 / sqrt(s / D + 1e-6) : 1;
        for (int i = 0; i < h2; i++) {
            double angle = c->pos[t / c->s.heads] * (double)(float)pow(10000.0, -2.0 * i / rot);
            double a = x[i] * s * (c->s.plus + w[i]), b = x[i + h2] * s * (c->s.plus + w[i + h2]);
            loss += r[i] * (a * cos(angle) - b * sin(angle)) + r[i + h2] * (b * cos(angle) + a * sin(angle));
        }
        for (int i = rot; i < D; i++)
            loss += r[i] * x[i] * s * (c->s.plus + w[i]);
    }
    return loss;
}

/* heads: all of a head is rotated and heads are dense (Qwen3); or some of it, with a gate between them (Qwen3.5).
 * Without a norm (Llama) the loss is that of weights that multiply by one. */
static void check_qk_norm_rope(const struct ops *op, struct nn_heads heads, bool normed)
{
    enum { T = 9, H = 3, D = 22, P = 40, MOST = 2 * D * H };
    int R = heads.rot, ld = H * heads.step;
    size_t n = (size_t)(T * ld), n_out = T * H * D;
    float *x = random_floats(n, 2), *w = random_floats(D, 1), *r = random_floats(n_out, 1), rstd[T * H];
    float y[T * H * D], dx[T * MOST] = {0}, dw[D] = {0}, table[P * D];
    int32_t pos[T] = {0, 1, 2, 39, 0, 7, 8, 9, 30};
    for (int i = 0; i < D && !normed; i++)
        w[i] = 1 - heads.plus;
    struct rope_ctx c = {T, heads, to_double(x, n), to_double(w, D), to_double(r, n_out), pos, false, normed};
    const float *given = normed ? w : NULL;
    double loss = 0;

    for (int p = 0; p < P; p++)
        for (int i = 0; i < R / 2; i++) {
            double angle = p * (double)(float)pow(10000.0, -2.0 * i / R);
            table[p * R + i] = (float)cos(angle);
            table[p * R + R / 2 + i] = (float)sin(angle);
        }
    op->qk_norm_rope_mt(T, heads, x, ld, given, 1e-6, pos, table, y, H * D, rstd);
    for (size_t i = 0; i < n_out; i++)
        loss += (double)r[i] * y[i];
    assert_true(fabs(loss - rope_loss(c.x, &c)) < 1e-3);
    op->qk_norm_rope_backward_mt(T, heads, x, ld, given, rstd, pos, table, r, H * D, dx, ld, normed ? dw : NULL);
    check_gradient("qk norm rope dx", op->name, rope_loss, &c, x, n, dx);
    c.vary_w = true;
    if (normed)
        check_gradient("qk norm rope dw", op->name, rope_loss, &c, w, D, dw);
    free(x), free(w), free(r), free((void *)c.x), free((void *)c.w), free((void *)c.r);
}

static void test_qk_norm_rope(const struct ops *op)
{
    check_qk_norm_rope(op, (struct nn_heads){3, 22, 22, 22, 0}, true);
    check_qk_norm_rope(op, (struct nn_heads){3, 22, 6, 44, 1}, true);
    check_qk_norm_rope(op, (struct nn_heads){3, 22, 22, 22, 0}, false);
    check_qk_norm_rope(op, (struct nn_heads){3, 22, 6, 44, 1}, false);
}

/* Rows become the bias, what lies between them stays; the gradient is the sum of the rows. */
static void test_bias(const struct ops *op)
{
    enum { T = 37, N = 21, LD = 24 };
    float *b = random_floats(N, 1), *dy = random_floats(T * LD, 1), db[N], y[T * LD] = {0};
    double want[N];

    for (int i = 0; i < N; i++)
        want[i] = db[i] = b[i];
    for (int i = 0; i < T * N; i++)
        want[i % N] += dy[i / N * LD + i % N];
    op->bias_rows_mt(T, N, b, y, LD);
    for (int i = 0; i < T * LD; i++)
        assert_true(y[i] == (i % LD < N ? b[i % LD] : 0));
    op->bias_backward_mt(T, N, dy, LD, db);
    expect_near("bias", op->name, db, want, N, 1e-6);
    free(b), free(dy);
}

/* ---- the gated delta rule, and what stands around it in a layer ---- */

enum { DELTA_SEQS = 9 };
static const int delta_lengths[DELTA_SEQS] = {1, 2, 63, 64, 65, 3, 129, 127, 4};

struct delta_case {
    struct nn_delta s;
    int32_t cu[DELTA_SEQS + 1];
    int T, width;        // of a row of c
    size_t n_c, n_gates; // floats of c; of b and of a together
    const double *r;     // weights of the outputs
    double *out;         // NULL, or the outputs themselves
};

static double d_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* x: c, then b and a of each row, then a_log, then dt_bias. One position after the other, in double. */
static double delta_loss(const double *x, void *p)
{
    struct delta_case *c = p;
    const struct nn_delta *s = &c->s;
    const double *gates = x + c->n_c, *a_log = gates + c->n_gates, *dt = a_log + s->v_heads;
    int K = s->k_dim, V = s->v_dim, group = s->v_heads / s->k_heads;
    double loss = 0, *S = xcalloc((size_t)(K * V), sizeof *S);

    for (int q = 0; q < DELTA_SEQS; q++)
        for (int h = 0; h < s->v_heads; h++) {
            memset(S, 0, (size_t)(K * V) * sizeof *S);
            for (int t = c->cu[q]; t < c->cu[q + 1]; t++) {
                const double *row = x + (size_t)t * (size_t)c->width, *qr = row + h / group * K,
                    *kr = qr + s->k_heads * K;
                const double *v = row + 2 * s->k_heads * K + h * V, *g = gates + (size_t)t * (size_t)s->ld_gate;
                double qq = 1e-6, kk = 1e-6, keep, beta = d_sigmoid(g[h]);
                keep = exp(-exp(a_log[h]) * log1p(exp(g[s->v_heads + h] + dt[h])));
                for (int i = 0; i < K; i++) {
                    qq += qr[i] * qr[i];
                    kk += kr[i] * kr[i];
                }
                for (int j = 0; j < V; j++) {
                    double read = 0, o = 0, d;
                    for (int i = 0; i < K; i++)
                        read += kr[i] * keep * S[i * V + j];
                    d = beta * (v[j] - read / sqrt(kk));
                    for (int i = 0; i < K; i++) {
                        S[i * V + j] = keep * S[i * V + j] + kr[i] / sqrt(kk) * d;
                        o += qr[i] * S[i * V + j];
                    }
                    o /= sqrt(qq) * sqrt(K);
                    loss += c->r[((size_t)t * (size_t)s->v_heads + (size_t)h) * (size_t)V + (size_t)j] * o;
                    if (c->out)
                        c->out[((size_t)t * (size_t)s->v_heads + (size_t)h) * (size_t)V + (size_t)j] = o;
                }
            }
        }
    free(S);
    return loss;
}

static struct delta_gates gates_at(const struct delta_case *c, const float *x)
{
    const float *b = x + c->n_c, *a_log = b + c->n_gates;

    return (struct delta_gates){b, b + c->s.v_heads, a_log, a_log + c->s.v_heads};
}

/* Every sequence by single steps: the same outputs, and the same last states. */
static void check_delta_steps(const struct ops *op, const struct delta_case *c, const float *x, const double *want,
                              float *const *last)
{
    size_t n_s = (size_t)(c->s.v_heads * c->s.k_dim * c->s.v_dim), n_o = (size_t)(c->s.v_heads * c->s.v_dim);
    float *o = xcalloc((size_t)c->T * n_o, sizeof *o), *S = xcalloc(n_s, sizeof *S);

    for (int q = 0; q < DELTA_SEQS; q++) {
        memset(S, 0, n_s * sizeof *S);
        for (int t = c->cu[q]; t < c->cu[q + 1]; t++) {
            struct delta_gates g = gates_at(c, x);
            g.b += (size_t)t * (size_t)c->s.ld_gate;
            g.a += (size_t)t * (size_t)c->s.ld_gate;
            op->delta_step_mt(&c->s, 1, x + (size_t)t * (size_t)c->width, &g, &S, o + (size_t)t * n_o);
        }
        double *state = to_double(last[q], n_s);
        expect_near("delta: last state by chunks, of", op->name, S, state, n_s, 1e-5);
        free(state);
    }
    expect_near("delta by steps", op->name, o, want, (size_t)c->T * n_o, 1e-5);
    free(o), free(S);
}

/* gain: of the gates' inputs; rate: of a_log. Large ones are decays of e^-30 and steps next to 0 and 1. */
static void check_delta(const struct ops *op, struct nn_delta s, double gain, double rate)
{
    struct delta_case c = {.s = s, .width = 2 * s.k_heads * s.k_dim + s.v_heads * s.v_dim};
    size_t n, n_o, per, n_s = (size_t)(s.v_heads * s.k_dim * s.v_dim);
    float *last[DELTA_SEQS], *states = xcalloc(DELTA_SEQS * n_s, sizeof *states);

    for (int i = 0; i < DELTA_SEQS; i++) {
        c.cu[i + 1] = c.cu[i] + delta_lengths[i];
        last[i] = states + (size_t)i * n_s;
    }
    c.T = c.cu[DELTA_SEQS];
    c.n_c = (size_t)(c.T * c.width);
    c.n_gates = (size_t)(c.T * s.ld_gate);
    n = c.n_c + c.n_gates + 2 * (size_t)s.v_heads;
    n_o = (size_t)(c.T * s.v_heads * s.v_dim);
    float *x = random_floats(n, 1), *r = random_floats(n_o, 1), *o = xcalloc(n_o, sizeof *o);
    float *grad = xcalloc(n, sizeof *grad);
    for (size_t i = c.n_c; i < n; i++)
        x[i] *= i < c.n_c + c.n_gates ? (float)gain : (float)rate;
    c.r = to_double(r, n_o);
    c.out = xcalloc(n_o, sizeof *c.out);
    double *xd = to_double(x, n);
    delta_loss(xd, &c);
    free(xd);
    per = op->delta_scratch(&s, c.T);
    float *scratch = xcalloc(per * (size_t)omp_get_max_threads(), sizeof *scratch);
    struct delta_gates g = gates_at(&c, x);
    op->delta_forward_mt(&s, DELTA_SEQS, c.cu, x, &g, o, last, scratch, per);
    expect_near("delta by chunks", op->name, o, c.out, n_o, 1e-5);
    check_delta_steps(op, &c, x, c.out, last);
    free(c.out);
    c.out = NULL;
    struct delta_gates at = gates_at(&c, grad);
    struct delta_grads d = {(float *)at.b, (float *)at.a, (float *)at.a_log, (float *)at.dt_bias};
    op->delta_backward_mt(&s, DELTA_SEQS, c.cu, x, &g, r, grad, &d, scratch, per);
    check_gradient("delta", op->name, delta_loss, &c, x, n, grad);
    free(x), free(r), free(o), free(grad), free(scratch), free(states), free((void *)c.r);
}

static void test_delta(const struct ops *op)
{
    check_delta(op, (struct nn_delta){1, 3, 5, 4, 6}, 1, 0.5);
    check_delta(op, (struct nn_delta){2, 2, 16, 20, 4}, 1, 0.5);
    check_delta(op, (struct nn_delta){1, 2, 8, 3, 4}, 12, 1); // decays to e^-30 and beyond, steps of 0 and 1
}

struct conv_ctx {
    int T, ch, taps;
    const int32_t *pos;
    const double *r;
};

/* x: the rows, then w. */
static double conv_loss(const double *x, void *p)
{
    struct conv_ctx *c = p;
    const double *w = x + c->T * c->ch;
    double loss = 0;

    for (int t = 0; t < c->T; t++)
        for (int i = 0; i < c->ch; i++) {
            double u = 0;
            for (int k = 0; k < c->taps && k <= c->pos[t]; k++)
                u += w[i * c->taps + c->taps - 1 - k] * x[(t - k) * c->ch + i];
            loss += c->r[t * c->ch + i] * u * d_sigmoid(u);
        }
    return loss;
}

static void test_conv(const struct ops *op)
{
    enum { T = 17, CH = 37, TAPS = 4, N = T * CH };
    int32_t pos[T] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3};
    float *x = random_floats(N + CH * TAPS, 1), *r = random_floats(N, 1), y[N], grad[N + CH * TAPS] = {0}, step[CH];
    float past[(TAPS - 1) * CH] = {0}, *at = past;
    struct conv_ctx c = {T, CH, TAPS, pos, to_double(r, N)};
    double loss = 0, *xd = to_double(x, N + CH * TAPS);

    op->conv_silu_mt(T, CH, TAPS, pos, x, CH, x + N, y);
    for (int i = 0; i < N; i++)
        loss += (double)r[i] * y[i];
    assert_true(fabs(loss - conv_loss(xd, &c)) < 1e-4);
    for (int t = 6; t < 13; t++) { // the longest sequence, one row at a time
        op->conv_silu_step_mt(1, CH, TAPS, x + t * CH, CH, x + N, &at, step);
        assert_memory_equal(step, y + t * CH, sizeof step);
    }
    op->conv_silu_backward_mt(T, CH, TAPS, pos, x, CH, x + N, r, grad, CH, grad + N);
    check_gradient("convolution", op->name, conv_loss, &c, x, N + CH * TAPS, grad);
    free(x), free(r), free(xd), free((void *)c.r);
}

struct gate_ctx {
    int T, heads, dim;
    bool norm; // of the head, silu and w; else the plain sigmoid
    const double *r;
};

/* x: a, then the gates, then w (dim). */
static double gate_loss(const double *x, void *p)
{
    struct gate_ctx *c = p;
    int n = c->T * c->heads * c->dim, D = c->dim;
    double loss = 0;

    for (int at = 0; at < n; at += D) {
        double s = 0;
        for (int i = 0; i < D; i++)
            s += x[at + i] * x[at + i];
        s = 1 / sqrt(s / D + 1e-6);
        for (int i = 0; i < D; i++) {
            double g = x[n + at + i], y = c->norm ? x[at + i] * s * x[2 * n + i] * g : x[at + i];
            loss += c->r[at + i] * y * d_sigmoid(g);
        }
    }
    return loss;
}

static void test_gates(const struct ops *op)
{
    enum { T = 11, H = 3, D = 21, N = T * H * D };
    float *x = random_floats(2 * N + D, 1), *r = random_floats(N, 1), y[N], grad[2 * N + D];

    for (int norm = 0; norm < 2; norm++) {
        struct gate_ctx c = {T, H, D, norm, to_double(r, N)};
        double loss = 0, *xd = to_double(x, 2 * N + D);
        memset(grad, 0, sizeof grad);
        if (norm) {
            op->gated_norm_mt(T, H, D, x, x + 2 * N, 1e-6, x + N, H * D, y);
            op->gated_norm_backward_mt(T, H, D, x, x + 2 * N, 1e-6, x + N, H * D, r, grad, grad + N, H * D,
                                       grad + 2 * N);
        } else {
            op->out_gate_mt(T, H, D, x, x + N, H * D, D, y);
            memcpy(grad, r, N * sizeof *r);
            op->out_gate_backward_mt(T, H, D, x, x + N, H * D, D, grad, grad + N);
        }
        for (int i = 0; i < N; i++)
            loss += (double)r[i] * y[i];
        assert_true(fabs(loss - gate_loss(xd, &c)) < 1e-4);
        check_gradient(norm ? "gated norm" : "output gate", op->name, gate_loss, &c, x, 2 * N + D, grad);
        free(xd), free((void *)c.r);
    }
    free(x), free(r);
}

/* ---- swiglu ---- */

struct swiglu_ctx {
    int T, f;
    const double *r;
};

static double swiglu_loss(const double *gu, void *p)
{
    struct swiglu_ctx *c = p;
    double loss = 0;

    for (int t = 0; t < c->T; t++)
        for (int i = 0; i < c->f; i++) {
            double g = gu[t * 2 * c->f + i], u = gu[t * 2 * c->f + c->f + i];
            loss += c->r[t * c->f + i] * g / (1 + exp(-g)) * u;
        }
    return loss;
}

static void test_swiglu(const struct ops *op)
{
    enum { T = 7, F = 37, N = T * F };
    float *gu = random_floats(2 * N, 3), *r = random_floats(N, 1), act[N], again[N], d[2 * N];
    struct swiglu_ctx c = {T, F, to_double(r, N)};
    double loss = 0, *x;

    gu[3] = 60, gu[F + 3] = 1, gu[4] = -60, gu[5] = -200, gu[6] = 200; // saturated gates stay finite
    x = to_double(gu, 2 * N);
    op->swiglu_mt(T, F, gu, act);
    for (int i = 0; i < N; i++)
        loss += (double)r[i] * act[i];
    assert_true(fabs(loss - swiglu_loss(x, &c)) < 1e-3);
    op->swiglu_backward_mt(T, F, gu, r, d, again);
    assert_memory_equal(act, again, sizeof act);
    check_gradient("swiglu", op->name, swiglu_loss, &c, gu, 2 * N, d);
    free(gu), free(r), free(x), free((void *)c.r);
}

/* ---- attention ---- */

struct attn_ctx {
    const struct attn_shape *s;
    const struct attn_seqs *seqs;
    const double *qkv, *r;
};

/* Row of position i of sequence b. */
static int attn_row(const struct attn_seqs *q, int b, int i)
{
    int root = b;

    while (q->shared[root])
        root--;
    return i < q->shared[b] ? q->cu[root] + i : q->cu[b] + i - q->shared[b];
}

/* qkv (T, (heads + 2 kv) dim); loss over all heads, positions and sequences, straight from the definition. */
static double attn_loss(const double *x, void *p)
{
    struct attn_ctx *c = p;
    const struct attn_shape *s = c->s;
    int D = s->dim, ld = s->ld_q, group = s->heads / s->kv_heads;
    double loss = 0, w[256];

    for (int b = 0; b < c->seqs->n; b++)
        for (int i = c->seqs->shared[b] > c->seqs->first[b] ? c->seqs->shared[b] : c->seqs->first[b];
             i < c->seqs->shared[b] + c->seqs->cu[b + 1] - c->seqs->cu[b]; i++)
            for (int h = 0; h < s->heads; h++) {
                const double *q = x + attn_row(c->seqs, b, i) * ld + h * D;
                double sum = 0;
                for (int j = 0; j <= i; j++) {
                    const double *k = x + attn_row(c->seqs, b, j) * ld + (s->heads + h / group) * D;
                    double dot = 0;
                    for (int e = 0; e < D; e++)
                        dot += q[e] * k[e];
                    sum += w[j] = exp(dot / sqrt(D));
                }
                for (int j = 0; j <= i; j++) {
                    const double *v = x + attn_row(c->seqs, b, j) * ld + (s->heads + s->kv_heads + h / group) * D;
                    for (int e = 0; e < D; e++)
                        loss += c->r[(attn_row(c->seqs, b, i) * s->heads + h) * D + e] * w[j] / sum * v[e];
                }
            }
    return loss;
}

static void test_attention(const struct ops *op)
{
    // a lone token; a root with two followers, of which the second is used from position 31; a root used from 5 on
    const int32_t cu[] = {0, 1, 30, 47, 50, 118}, shared[] = {0, 0, 21, 29, 0}, first[] = {0, 3, 0, 31, 5};
    const struct attn_seqs seqs = {5, cu, shared, first};
    enum { D = 6, H = 4, KV = 2, T = 118, LD = (H + 2 * KV) * D };
    const struct attn_shape s = {H, KV, D, LD, LD, LD, H * D};
    float *x = random_floats(T * LD, 1.5), *r = random_floats(T * H * D, 1), *o = xcalloc(T * H * D, sizeof *o);
    float *d = xcalloc(T * LD, sizeof *d), lse[T * H];
    size_t per = op->attn_scratch(&s, T);
    float *scratch = xcalloc(per * (size_t)omp_get_max_threads(), sizeof *scratch);
    struct attn_ctx c = {&s, &seqs, to_double(x, T * LD), to_double(r, T * H * D)};
    double loss = 0;

    op->attn_forward_mt(&s, &seqs, x, x + H * D, x + (H + KV) * D, o, lse, scratch, per);
    for (int i = 0; i < T * H * D; i++)
        loss += (double)r[i] * o[i];
    assert_true(fabs(loss - attn_loss(c.qkv, &c)) < 1e-3);
    op->attn_backward_mt(&s, &seqs, x, x + H * D, x + (H + KV) * D, o, lse, r, d, d + H * D, d + (H + KV) * D,
                         scratch, per);
    check_gradient("attention", op->name, attn_loss, &c, x, T * LD, d);
    free(x), free(r), free(o), free(d), free(scratch), free((void *)c.qkv), free((void *)c.r);
}

/* ---- classifier ---- */

struct class_ctx {
    int n, V;
    double temp;
    const int32_t *target;
    const double *dlogp, *dentropy;
};

static double class_row(const struct class_ctx *c, const double *z, int target, double *ret_entropy)
{
    double top = -INFINITY, sum = 0, h = 0;

    for (int i = 0; i < c->V; i++)
        top = fmax(top, z[i] / c->temp);
    for (int i = 0; i < c->V; i++)
        sum += exp(z[i] / c->temp - top);
    for (int i = 0; i < c->V; i++) {
        double lp = z[i] / c->temp - top - log(sum);
        h -= exp(lp) * lp;
    }
    *ret_entropy = h;
    return z[target] / c->temp - top - log(sum);
}

static double class_loss(const double *z, void *p)
{
    struct class_ctx *c = p;
    double loss = 0, h;

    for (int t = 0; t < c->n; t++) {
        loss += c->dlogp[t] * class_row(c, z + t * c->V, c->target[t], &h);
        loss += c->dentropy[t] * h;
    }
    return loss;
}

static void test_classifier(const struct ops *op)
{
    enum { N = 6, V = 75 };
    float *z = random_floats(N * V, 4), *a = random_floats(N, 1), *b = random_floats(N, 1);
    float lse[N], logp[N], entropy[N], *keep = xcalloc(N * V, sizeof *keep);
    int32_t target[N] = {0, 74, 3, 64, 63, 10};
    struct class_ctx c = {N, V, 0.7, target, to_double(a, N), to_double(b, N)};
    double *x = to_double(z, N * V), h;

    memcpy(keep, z, N * V * sizeof *z);
    op->classifier_mt(N, V, z, (float)(1 / 0.7), target, lse, logp, entropy);
    for (int t = 0; t < N; t++) {
        assert_true(fabs(class_row(&c, x + t * V, target[t], &h) - logp[t]) < 1e-5);
        assert_true(fabs(h - entropy[t]) < 1e-5);
    }
    op->classifier_backward_mt(N, V, z, (float)(1 / 0.7), target, lse, entropy, a, b);
    check_gradient("classifier", op->name, class_loss, &c, keep, N * V, z);
    free(z), free(a), free(b), free(keep), free(x), free((void *)c.dlogp), free((void *)c.dentropy);
}

/* ---- AdamW ---- */

static void test_adamw(const struct ops *op)
{
    enum { N = 53 };
    float *w = random_floats(N, 1), m[N] = {0}, v[N] = {0};
    double W[N], M[N] = {0}, S[N] = {0}, lr = 1e-2, b1 = 0.9, b2 = 0.999, decay = 0.1;

    for (int i = 0; i < N; i++)
        W[i] = w[i];
    for (int step = 1; step <= 10; step++) {
        float *g = random_floats(N, 0.3);
        double c1 = 1 - pow(b1, step), c2 = 1 - pow(b2, step);
        g[7] = 0;
        for (int i = 0; i < N; i++) {
            W[i] -= lr * decay * W[i];
            M[i] = b1 * M[i] + (1 - b1) * g[i];
            S[i] = b2 * S[i] + (1 - b2) * g[i] * g[i];
            W[i] -= lr * (M[i] / c1) / (sqrt(S[i] / c2) + 1e-8);
        }
        op->adamw_mt(N, w, g, m, v, (float)lr, (float)b1, (float)b2, 1e-8f, (float)decay, (float)c1, (float)c2);
        free(g);
    }
    expect_near("adamw", op->name, w, W, N, 2e-6);
    free(w);
}

static void test_sums(const struct ops *op)
{
    float *x = random_floats(10007, 1), p[45], max;
    double want = 0, sum = 0, top = -INFINITY;

    for (int i = 0; i < 10007; i++)
        want += (double)x[i] * x[i];
    assert_true(fabs(op->sumsq(10007, x) - want) < 1e-4 * want);
    memcpy(p, x, sizeof p);
    float got = op->softmax_row(45, 0.5f, p, &max);
    for (int i = 0; i < 45; i++)
        top = fmax(top, 0.5 * x[i]);
    for (int i = 0; i < 45; i++) {
        sum += exp(0.5 * x[i] - top);
        assert_true(fabs(p[i] - exp(0.5 * x[i] - top)) < 1e-6);
    }
    assert_true(fabs(got - sum) < 1e-5 && fabs(max - top) < 1e-6);
    free(x);
}

static void each(void (*test)(const struct ops *))
{
    static const char *const names[] = {"base", "v3", "v4"};

    rng_seed(&rng, 11, 0);
    for (size_t i = 0; i < 3; i++)
        if (cpu_ops_named(names[i]))
            test(cpu_ops_named(names[i]));
}

#define RUN(name)                                                                                                   \
    static void run_##name(void **state)                                                                           \
    {                                                                                                               \
        (void)state;                                                                                               \
        each(name);                                                                                                 \
    }
RUN(test_gemm) RUN(test_rmsnorm) RUN(test_qk_norm_rope) RUN(test_bias) RUN(test_delta) RUN(test_conv) RUN(test_gates)
RUN(test_swiglu) RUN(test_attention) RUN(test_classifier)
RUN(test_adamw) RUN(test_sums)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_test_gemm), cmocka_unit_test(run_test_rmsnorm), cmocka_unit_test(run_test_qk_norm_rope),
        cmocka_unit_test(run_test_bias),
        cmocka_unit_test(run_test_delta), cmocka_unit_test(run_test_conv), cmocka_unit_test(run_test_gates),
        cmocka_unit_test(run_test_swiglu), cmocka_unit_test(run_test_attention), cmocka_unit_test(run_test_classifier),
        cmocka_unit_test(run_test_adamw), cmocka_unit_test(run_test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
