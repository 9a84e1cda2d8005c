/* test_dev_ops.c - every operator of a device against the host's operator on the same numbers, in fp32 and bf16.
 *
 * Device: the CPU emulator, or $NN_TEST_DEVICE ("cuda"). One line an operator: the largest error as a share of the
 * largest
 * value. fp32 must agree to 2e-5; bf16 to 1.5e-2 where one result is rounded once or twice (a rounding is 3.9e-3). */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/engine_device.h"
#include "nn/ops/ops.h"

static struct rng rng;
static struct nn_device *dev;
static const struct nn_dev_ops *op;
static enum nn_dtype dt;
static int failures;

/* ---- arrays on both sides ---- */

struct array {
    float *host;
    void *dev;
    size_t n;
    bool f32; /* fp32 on the device whatever dt is */
};

static void put(struct array *a)
{
    float *tmp = op->alloc(dev->q, a->n * sizeof *tmp);

    op->upload(dev->q, a->f32 ? a->dev : tmp, a->host, a->n * sizeof *tmp);
    if (!a->f32) {
        op->from_f32(dev->q, dt, a->n, tmp, a->dev);
        op->to_f32(dev->q, dt, a->n, a->dev, tmp);
        op->download(dev->q, a->host, tmp, a->n * sizeof *tmp); // the host computes with the rounded numbers
    }
    op->release(dev->q, tmp);
}

static struct array array(size_t n, double size, bool f32)
{
    struct array a = {xcalloc(n, sizeof(float)), NULL, n, f32 || dt == NN_F32};

    for (size_t i = 0; i < n; i++)
        a.host[i] = (float)(size * rng_normal(&rng));
    a.dev = op->alloc(dev->q, n * 4 + 64);
    put(&a);
    return a;
}

static void drop(struct array *a)
{
    free(a->host);
    op->release(dev->q, a->dev);
}

static void *ints(const int32_t *x, size_t n)
{
    void *p = op->alloc(dev->q, n * sizeof *x + 64);

    op->upload(dev->q, p, x, n * sizeof *x);
    return p;
}

static float *fetch(const void *p, size_t n, bool f32)
{
    float *tmp = op->alloc(dev->q, n * sizeof *tmp), *out = xcalloc(n, sizeof *out);

    if (!f32 && dt == NN_BF16)
        op->to_f32(dev->q, dt, n, p, tmp);
    op->download(dev->q, out, !f32 && dt == NN_BF16 ? (void *)tmp : p, n * sizeof *out);
    op->release(dev->q, tmp);
    return out;
}

/* Rows of 'width' out of rows of stride ld. */
static void expect(const char *what, const void *got, const float *want, size_t rows, size_t width, size_t ld, bool f32,
                   double bf16_limit)
{
    float *x = fetch(got, rows * ld, f32);
    double top = 1e-30, diff = 0, limit = dt == NN_F32 ? 2e-5 : bf16_limit;
    size_t at = 0;

    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++) {
            double d = fabs((double)x[r * ld + c] - want[r * ld + c]);
            top = fabs(want[r * ld + c]) > top ? fabs(want[r * ld + c]) : top;
            if (d > diff || isnan(d)) {
                diff = d;
                at = r * ld + c;
            }
        }
    bool ok = diff <= limit * top;
    printf("%-4s %-44s %s %.1e%s\n", ok ? "ok" : "BAD", what, dt == NN_F32 ? "fp32" : "bf16", diff / top, "");
    if (!ok) {
        printf("     worst at row %zu column %zu: %g, wanted %g\n", at / ld, at % ld, (double)x[at], (double)want[at]);
        failures++;
    }
    fflush(stdout);
    free(x);
}

/* ---- operators ---- */

static void check_gemm(enum nn_gemm form, int m, int n, int k, bool add, bool f32)
{
    struct array a = array((size_t)m * (size_t)k, 1, false), b = array((size_t)n * (size_t)k, 1, false),
                 c = array((size_t)m * (size_t)n, 1, f32);
    float *want = xcalloc((size_t)m * (size_t)n, sizeof *want);
    struct nn_product p = {form, m, n, k, a.dev, b.dev, NULL, c.dev, form == NN_GEMM_TN ? m : k,
                           form == NN_GEMM_NT ? k : n,
                           n, n, add, f32};
    static const char *const names[] = {"NT", "NN", "TN"};
    char what[64];

    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = add ? c.host[(size_t)i * (size_t)n + (size_t)j] : 0;
            for (int x = 0; x < k; x++)
                s += (double)(form == NN_GEMM_TN ? a.host[x * m + i] : a.host[i * k + x]) *
                     (form == NN_GEMM_NT ? b.host[j * k + x] : b.host[x * n + j]);
            want[i * n + j] = (float)s;
        }
    op->gemm(dev->q, dt, &p);
    snprintf(what, sizeof what, "gemm %s %d %d %d%s%s", names[form], m, n, k, add ? " +=" : "", f32 ? " to fp32" : "");
    expect(what, c.dev, want, (size_t)m, (size_t)n, (size_t)n, f32, 1e-2);
    drop(&a), drop(&b), drop(&c);
    free(want);
}

static void test_gemm(void)
{
    check_gemm(NN_GEMM_NT, 72, 40, 48, false, false);
    check_gemm(NN_GEMM_NT, 1, 64, 128, true, false);
    check_gemm(NN_GEMM_NN, 65, 96, 40, false, false);
    check_gemm(NN_GEMM_TN, 48, 72, 200, true, true);
    check_gemm(NN_GEMM_TN, 136, 40, 33, true, true);
}

static void test_embed(void)
{
    enum { V = 37, D = 40, T = 300 };
    struct array table = array(V * D, 1, false), dx = array(T * D, 1, false), g = array(V * D, 1, true);
    void *out = op->alloc(dev->q, T * D * 4);
    float *want = xcalloc(T * D, sizeof *want), *dwant = xcalloc(V * D, sizeof *dwant);
    int32_t tokens[T], ids[V], start[V + 1], order[T];
    int n = 0, k = 0;

    for (int t = 0; t < T; t++) {
        tokens[t] = rng_below(&rng, 3) ? 5 : (int32_t)rng_below(&rng, V);
        memcpy(want + t * D, table.host + tokens[t] * D, D * sizeof *want);
    }
    memcpy(dwant, g.host, V * D * sizeof *dwant);
    for (int v = 0; v < V; v++) {
        int had = k;
        for (int t = 0; t < T; t++)
            if (tokens[t] == v) {
                order[k++] = t;
                for (int i = 0; i < D; i++)
                    dwant[v * D + i] += dx.host[t * D + i];
            }
        if (k > had) {
            ids[n] = v;
            start[n++] = had;
        }
    }
    start[n] = k;
    void *dt_ = ints(tokens, T), *di = ints(ids, (size_t)n), *ds = ints(start, (size_t)n + 1), *dor = ints(order, T);
    op->embed(dev->q, dt, T, D, dt_, table.dev, out);
    expect("embed", out, want, T, D, D, false, 0);
    op->embed_backward(dev->q, dt, n, D, di, ds, dor, dx.dev, g.dev);
    expect("embed_backward", g.dev, dwant, V, D, D, true, 2e-5);
    op->release(dev->q, out), op->release(dev->q, dt_), op->release(dev->q, di), op->release(dev->q, ds);
    op->release(dev->q, dor);
    drop(&table), drop(&dx), drop(&g);
    free(want), free(dwant);
}

static void check_rmsnorm(int T, int d, bool rows, float plus)
{
    const struct ops *cpu = cpu_ops();
    int from = rows ? T + 5 : T;
    size_t n = (size_t)T * (size_t)d, nx = (size_t)from * (size_t)d;
    struct array x = array(nx, 2, false), w = array((size_t)d, 1, false), dy = array(n, 1, false), dx = array(nx, 1,
                                                                                                              false),
                 dw = array((size_t)d, 1, true);
    float *y = xcalloc(n, 4), *r = xcalloc((size_t)T, 4), *xs = xcalloc(n, 4), *ds = xcalloc(n, 4);
    int32_t *idx = xcalloc((size_t)T, sizeof *idx);
    void *yd = op->alloc(dev->q, n * 4), *rd = op->alloc(dev->q, (size_t)T * 4), *id;
    char what[64];

    for (int t = 0; t < T; t++) {
        idx[t] = rows ? t + (t > 3 ? 5 : 0) : t;
        memcpy(xs + (size_t)t * (size_t)d, x.host + (size_t)idx[t] * (size_t)d, (size_t)d * 4);
        memcpy(ds + (size_t)t * (size_t)d, dx.host + (size_t)idx[t] * (size_t)d, (size_t)d * 4);
    }
    id = ints(idx, (size_t)T);
    cpu->rmsnorm_mt(T, d, xs, w.host, plus, 1e-6, y, r);
    op->rmsnorm(dev->q, dt, T, d, rows ? id : NULL, x.dev, w.dev, plus, 1e-6f, yd, rd);
    snprintf(what, sizeof what, "rmsnorm %d x %d%s", T, d, rows ? ", rows" : "");
    expect(what, yd, y, (size_t)T, (size_t)d, (size_t)d, false, 1e-2);
    op->zero(dev->q, yd, n * 4);
    op->rmsnorm_backward(dev->q, dt, T, d, rows ? id : NULL, x.dev, w.dev, plus, rd, dy.dev, dx.dev, dw.dev, yd);
    expect("  backward: y again", yd, y, (size_t)T, (size_t)d, (size_t)d, false, 1e-2);
    cpu->rmsnorm_backward_mt(T, d, xs, w.host, plus, r, dy.host, ds, dw.host);
    for (int t = 0; t < T; t++)
        memcpy(dx.host + (size_t)idx[t] * (size_t)d, ds + (size_t)t * (size_t)d, (size_t)d * 4);
    expect("  backward: dx", dx.dev, dx.host, (size_t)from, (size_t)d, (size_t)d, false, 1e-2);
    expect("  backward: dw", dw.dev, dw.host, 1, (size_t)d, (size_t)d, true, 1e-4);
    op->release(dev->q, yd), op->release(dev->q, rd), op->release(dev->q, id);
    drop(&x), drop(&w), drop(&dy), drop(&dx), drop(&dw);
    free(y), free(r), free(xs), free(ds), free(idx);
}

static void test_rmsnorm(void)
{
    check_rmsnorm(37, 40, false, 0);
    check_rmsnorm(5, 384, true, 1);
    check_rmsnorm(700, 1024, false, 0); // more rows than blocks
}

static float *rope_table(int positions, int dim)
{
    float *t = xcalloc((size_t)positions * (size_t)dim, sizeof *t);

    for (int p = 0; p < positions; p++)
        for (int i = 0; i < dim / 2; i++) {
            double x = p * pow(10000, -2.0 * i / dim);
            t[p * dim + i] = (float)cos(x);
            t[p * dim + dim / 2 + i] = (float)sin(x);
        }
    return t;
}

/* rot < dim and gap > 0: Qwen3.5's queries, with a gate between them. Without a norm: Llama's. */
static void check_rope(int T, int heads, int dim, int rot, int gap, bool normed)
{
    const struct ops *cpu = cpu_ops();
    struct nn_heads s = {heads, dim, rot, dim + gap, gap ? 1.0f : 0};
    int ld_in = heads * (dim + gap) + 16, ld_out = heads * dim + 8;
    size_t n = (size_t)T * (size_t)ld_out, ni = (size_t)T * (size_t)ld_in;
    struct array in = array(ni, 1, false), w = array((size_t)dim, 1, false), dout = array(n, 1, false),
                 dw = array((size_t)dim, 1, true);
    float *out = xcalloc(n, 4), *r = xcalloc((size_t)(T * heads), 4), *din = xcalloc(ni, 4), *table = rope_table(64,
                                                                                                                 rot);
    int32_t *pos = xcalloc((size_t)T, sizeof *pos);
    void *od = op->alloc(dev->q, n * 4), *rd = op->alloc(dev->q, (size_t)(T * heads) * 4), *dd = op->alloc(dev->q,
                                                                                                           ni * 4);
    void *td = op->alloc(dev->q, 64 * (size_t)rot * 4), *pd;
    char what[64];

    for (int t = 0; t < T; t++)
        pos[t] = (int32_t)rng_below(&rng, 64);
    pd = ints(pos, (size_t)T);
    op->upload(dev->q, td, table, 64 * (size_t)rot * 4);
    const float *own = normed ? w.host : NULL;
    const void *its = normed ? w.dev : NULL;
    cpu->qk_norm_rope_mt(T, s, in.host, ld_in, own, 1e-6, pos, table, out, ld_out, r);
    op->qk_norm_rope(dev->q, dt, T, s, in.dev, ld_in, its, 1e-6f, pd, td, od, ld_out, rd);
    snprintf(what, sizeof what, "qk_%srope %d x %d x %d, %d rotated", normed ? "norm_" : "", T, heads, dim, rot);
    expect(what, od, out, (size_t)T, (size_t)(heads * dim), (size_t)ld_out, false, 1e-2);
    cpu->qk_norm_rope_backward_mt(T, s, in.host, ld_in, own, r, pos, table, dout.host, ld_out, din, ld_in,
                                  normed ? dw.host : NULL);
    op->qk_norm_rope_backward(dev->q, dt, T, s, in.dev, ld_in, its, rd, pd, td, dout.dev, ld_out, dd, ld_in,
                              normed ? dw.dev : NULL);
    expect("  backward: din", dd, din, (size_t)T, (size_t)(heads * (dim + gap)), (size_t)ld_in, false, 1e-2);
    if (normed)
        expect("  backward: dw", dw.dev, dw.host, 1, (size_t)dim, (size_t)dim, true, 1e-4);
    op->release(dev->q, od), op->release(dev->q, rd), op->release(dev->q, dd), op->release(dev->q, td);
    op->release(dev->q, pd);
    drop(&in), drop(&w), drop(&dout), drop(&dw);
    free(out), free(r), free(din), free(table), free(pos);
}

static void test_rope(void)
{
    check_rope(21, 3, 16, 16, 0, true);
    check_rope(21, 3, 32, 32, 0, true);
    check_rope(70, 6, 64, 64, 0, true);
    check_rope(33, 2, 128, 128, 0, true);
    check_rope(21, 3, 32, 8, 32, true);
    check_rope(21, 3, 16, 4, 16, true); // pairs that do not lie four by four
    check_rope(9, 2, 256, 64, 256, true);
    check_rope(70, 3, 64, 64, 0, false);
    check_rope(21, 3, 16, 4, 16, false);
}

static void check_bias(int T, int n, int gap)
{
    const struct ops *cpu = cpu_ops();
    int ld = n + gap;
    size_t all = (size_t)T * (size_t)ld;
    struct array b = array((size_t)n, 1, false), y = array(all, 1, false), dy = array(all, 1, false),
                 db = array((size_t)n, 1, true);
    char what[64];

    cpu->bias_rows_mt(T, n, b.host, y.host, ld);
    op->bias_rows(dev->q, dt, T, n, b.dev, y.dev, ld);
    snprintf(what, sizeof what, "bias %d x %d", T, n);
    expect(what, y.dev, y.host, (size_t)T, (size_t)ld, (size_t)ld, false, 0);
    cpu->bias_backward_mt(T, n, dy.host, ld, db.host);
    op->bias_backward(dev->q, dt, T, n, dy.dev, ld, db.dev);
    expect("  backward: db", db.dev, db.host, 1, (size_t)n, (size_t)n, true, 1e-4);
    drop(&b), drop(&y), drop(&dy), drop(&db);
}

static void test_bias(void)
{
    check_bias(21, 40, 8);
    check_bias(1, 960, 0);
    check_bias(5000, 264, 0); // more rows than blocks have
}

/* ---- gated delta rule, convolution and gates ---- */

#define SEQUENCES 4

struct sequences {
    int T;
    int32_t cu[SEQUENCES + 1], *pos;
    void *cu_dev, *pos_dev;
};

static struct sequences sequences(const int *length)
{
    struct sequences s = {.T = 0};

    for (int i = 0; i < SEQUENCES; i++)
        s.cu[i + 1] = s.T += length[i];
    s.pos = xcalloc((size_t)s.T, sizeof *s.pos);
    for (int i = 0; i < SEQUENCES; i++)
        for (int t = 0; t < length[i]; t++)
            s.pos[s.cu[i] + t] = t;
    s.cu_dev = ints(s.cu, SEQUENCES + 1);
    s.pos_dev = ints(s.pos, (size_t)s.T);
    return s;
}

static void sequences_drop(struct sequences *s)
{
    op->release(dev->q, s->cu_dev), op->release(dev->q, s->pos_dev);
    free(s->pos);
}

static void check_conv(const int *length, int ch, int taps)
{
    const struct ops *cpu = cpu_ops();
    struct sequences s = sequences(length);
    int T = s.T, ld = ch + 16, last = s.cu[SEQUENCES] - s.cu[SEQUENCES - 1];
    size_t n = (size_t)T * (size_t)ch, past_n = (size_t)(taps - 1) * (size_t)ch;
    struct array x = array((size_t)(T * ld), 1, false), w = array((size_t)(ch * taps), 1, false),
                 dy = array(n, 1, false), dx = array((size_t)(T * ld), 0, false), dw = array((size_t)(ch * taps), 1,
                                                                                             true),
                 past = array(SEQUENCES * past_n, 0, false), y = array(n, 0, false);
    float *want = xcalloc(n, sizeof *want), *back = xcalloc((size_t)(T * ld), sizeof *back), *at = past.host;
    int32_t slot[SEQUENCES] = {1, -1, 3, 0}, one[1] = {0};
    void *slot_dev = ints(slot, SEQUENCES), *one_dev = ints(one, 1);
    char what[64];

    cpu->conv_silu_mt(T, ch, taps, s.pos, x.host, ld, w.host, want);
    op->conv_silu(dev->q, dt, T, ch, taps, s.pos_dev, x.dev, ld, w.dev, y.dev);
    snprintf(what, sizeof what, "conv_silu %d x %d, %d taps", T, ch, taps);
    expect(what, y.dev, want, (size_t)T, (size_t)ch, (size_t)ch, false, 1e-2);
    // the last row of the last sequence again, as a step behind the rows before it
    op->conv_keep(dev->q, dt, SEQUENCES, ch, taps, s.cu_dev, x.dev, ld, slot_dev, past_n, past.dev);
    for (int i = 0; i < taps - 1; i++)
        for (int c = 0; c < ch && last - 1 - i > 0; c++)
            at[(taps - 2 - i) * ch + c] = x.host[(T - 2 - i) * ld + c];
    put(&past);
    op->conv_silu_step(dev->q, dt, 1, ch, taps, (char *)x.dev + (size_t)((T - 1) * ld) * dtype_size(dt), ld, w.dev,
                       one_dev, past_n, past.dev, y.dev);
    expect("  step", y.dev, want + (size_t)(T - 1) * (size_t)ch, 1, (size_t)ch, (size_t)ch, false, 1e-2);
    for (int i = 0; i < taps - 1; i++)
        for (int c = 0; c < ch; c++)
            at[(taps - 2 - i) * ch + c] = last - 1 - i >= 0 ? x.host[(T - 1 - i) * ld + c] : 0;
    expect("  past behind it", past.dev, at, 1, past_n, past_n, false, 1e-6);
    op->conv_keep(dev->q, dt, SEQUENCES, ch, taps, s.cu_dev, x.dev, ld, slot_dev, past_n, past.dev);
    expect("  past kept of a sequence", past.dev, at, 1, past_n, past_n, false, 1e-6);
    op->conv_silu_backward(dev->q, dt, T, ch, taps, s.pos_dev, x.dev, ld, w.dev, dy.dev, dx.dev, ld, dw.dev);
    cpu->conv_silu_backward_mt(T, ch, taps, s.pos, x.host, ld, w.host, dy.host, back, ld, dw.host);
    expect("  backward: dx", dx.dev, back, (size_t)T, (size_t)ch, (size_t)ld, false, 2e-2);
    expect("  backward: dw", dw.dev, dw.host, 1, (size_t)(ch * taps), (size_t)(ch * taps), true, 2e-2);
    op->release(dev->q, slot_dev), op->release(dev->q, one_dev);
    drop(&x), drop(&w), drop(&dy), drop(&dx), drop(&dw), drop(&past), drop(&y), sequences_drop(&s);
    free(want), free(back);
}

static void test_conv(void)
{
    check_conv((const int[]){1, 2, 5, 30}, 40, 4);
    check_conv((const int[]){3, 70, 1, 2}, 264, 4);
}

static void check_gates(int T, int heads, int dim)
{
    const struct ops *cpu = cpu_ops();
    int step = 2 * dim, ld = heads * step + 8, H = heads * dim;
    size_t n = (size_t)(T * H), n_g = (size_t)(T * ld);
    struct array a = array(n, 1, false), g = array(n_g, 1, false), w = array((size_t)dim, 1, false),
                 dy = array(n, 1, false), dg = array(n_g, 0, false), y = array(n, 0, false),
                 dw = array((size_t)dim, 1, true), dy2 = array(n, 1, false);
    float *want = xcalloc(n, sizeof *want), *dgate = xcalloc(n_g, sizeof *dgate), *d_o = xcalloc(n, sizeof *d_o);
    char what[64];

    cpu->out_gate_mt(T, heads, dim, a.host, g.host + dim, ld, step, want);
    op->out_gate(dev->q, dt, T, heads, dim, a.dev, (char *)g.dev + (size_t)dim * dtype_size(dt), ld, step, y.dev);
    snprintf(what, sizeof what, "out_gate %d x %d x %d", T, heads, dim);
    expect(what, y.dev, want, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    cpu->out_gate_backward_mt(T, heads, dim, a.host, g.host + dim, ld, step, dy.host, dgate + dim);
    op->out_gate_backward(dev->q, dt, T, heads, dim, a.dev, (char *)g.dev + (size_t)dim * dtype_size(dt), ld, step,
                          dy.dev, (char *)dg.dev + (size_t)dim * dtype_size(dt), y.dev);
    expect("  backward: y again", y.dev, want, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    expect("  backward: da", dy.dev, dy.host, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    expect("  backward: dg", dg.dev, dgate, (size_t)T, (size_t)(heads * step), (size_t)ld, false, 1e-2);
    cpu->gated_norm_mt(T, heads, dim, a.host, w.host, 1e-6, g.host, ld, want);
    op->gated_norm(dev->q, dt, T, heads, dim, a.dev, w.dev, 1e-6f, g.dev, ld, y.dev);
    expect("gated_norm", y.dev, want, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    memset(dgate, 0, n_g * sizeof *dgate);
    op->zero(dev->q, dg.dev, n_g * dtype_size(dt));
    cpu->gated_norm_backward_mt(T, heads, dim, a.host, w.host, 1e-6, g.host, ld, dy2.host, d_o, dgate, ld, dw.host);
    op->gated_norm_backward(dev->q, dt, T, heads, dim, a.dev, w.dev, 1e-6f, g.dev, ld, dy2.dev, dy2.dev, dg.dev, ld,
                            y.dev,
                            dw.dev);
    expect("  backward: y again", y.dev, want, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    expect("  backward: do", dy2.dev, d_o, (size_t)T, (size_t)H, (size_t)H, false, 1e-2);
    expect("  backward: dz", dg.dev, dgate, (size_t)T, (size_t)H, (size_t)ld, false, 1e-2);
    expect("  backward: dw", dw.dev, dw.host, 1, (size_t)dim, (size_t)dim, true, 1e-3);
    drop(&a), drop(&g), drop(&w), drop(&dy), drop(&dg), drop(&y), drop(&dw), drop(&dy2);
    free(want), free(dgate), free(d_o);
}

static void test_gates(void)
{
    check_gates(13, 3, 16);
    check_gates(40, 2, 128);
    check_gates(9, 2, 256);
}

/* Every sequence position by position, on the device: the outputs of the chunks, and their last states. */
static void check_delta_steps(const struct sequences *s, const struct nn_delta_in *in, const float *want,
                              const struct array *last)
{
    size_t state = (size_t)(in->s.v_heads * in->s.k_dim * in->s.v_dim), H = (size_t)(in->s.v_heads * in->s.v_dim);
    size_t e = dtype_size(dt), width = (size_t)(2 * in->s.k_heads * in->s.k_dim) + H, ld = (size_t)in->s.ld_gate;
    struct array o = array((size_t)s->T * H, 0, false), S = array(SEQUENCES * state, 0, true);

    for (int i = 0; i < SEQUENCES; i++) {
        int32_t slot = i;
        void *slot_dev = ints(&slot, 1);
        for (int t = s->cu[i]; t < s->cu[i + 1]; t++) {
            struct nn_delta_in one = *in;
            one.n_seq = 1;
            one.c = (const char *)in->c + (size_t)t * width * e;
            one.b = (const char *)in->b + (size_t)t * ld * e;
            one.a = (const char *)in->a + (size_t)t * ld * e;
            op->delta_step(dev->q, dt, &one, slot_dev, state, S.dev, (char *)o.dev + (size_t)t * H * e);
        }
        op->release(dev->q, slot_dev);
    }
    expect("  by steps", o.dev, want, (size_t)s->T, H, H, false, 2e-2);
    expect("  last states by steps", S.dev, last->host, SEQUENCES, state, state, true, 1e-4);
    drop(&o), drop(&S);
}

static void check_delta(const int *length, struct nn_delta shape)
{
    const struct ops *cpu = cpu_ops();
    struct sequences s = sequences(length);
    int T = s.T, heads = shape.v_heads, width = 2 * shape.k_heads * shape.k_dim + heads * shape.v_dim;
    size_t H = (size_t)(heads * shape.v_dim), n = (size_t)T * H, n_c = (size_t)(T * width);
    size_t n_g = (size_t)(T * shape.ld_gate), state = H * (size_t)shape.k_dim, per = cpu->delta_scratch(&shape, T);
    struct array c = array(n_c, 1, false), g = array(n_g, 2, false), rate = array((size_t)heads, 0.5, true),
                 bias = array((size_t)heads, 0.5, true), dout = array(n, 1, false), o = array(n, 0, false),
                 dc = array(n_c, 0, false), dg = array(n_g, 0, false), drate = array((size_t)heads, 1, true),
                 dbias = array((size_t)heads, 1, true), last = array(SEQUENCES * state, 0, true);
    float *want = xcalloc(n, sizeof *want), *dc_want = xcalloc(n_c, sizeof *dc_want);
    float *dg_want = xcalloc(n_g, sizeof *dg_want);
    float *scratch = xcalloc(per * (size_t)omp_get_max_threads(), sizeof *scratch), *states[SEQUENCES];
    int32_t slot[SEQUENCES] = {0, 1, 2, 3};
    void *slot_dev = ints(slot, SEQUENCES), *room = op->alloc(dev->q, nn_delta_scratch(&shape, T));
    size_t a_at = (size_t)heads * dtype_size(dt);
    struct nn_delta_in in = {shape, SEQUENCES, s.cu_dev, c.dev, g.dev, (char *)g.dev + a_at, rate.dev, bias.dev};
    struct delta_gates gates = {g.host, g.host + heads, rate.host, bias.host};
    struct delta_grads d = {dg_want, dg_want + heads, drate.host, dbias.host};
    char what[64];

    for (int i = 0; i < SEQUENCES; i++)
        states[i] = last.host + (size_t)i * state;
    cpu->delta_forward_mt(&shape, SEQUENCES, s.cu, c.host, &gates, want, states, scratch, per);
    op->delta(dev->q, dt, &in, o.dev, slot_dev, state, last.dev);
    snprintf(what, sizeof what, "delta %d rows, %d of %d + %d of %d", T, shape.k_heads, shape.k_dim, heads,
             shape.v_dim);
    expect(what, o.dev, want, (size_t)T, H, H, false, 1e-2);
    expect("  last states", last.dev, last.host, SEQUENCES, state, state, true, 1e-4);
    check_delta_steps(&s, &in, want, &last);
    op->delta_backward(dev->q, dt, &in, T, dout.dev, dc.dev, dg.dev, (char *)dg.dev + a_at, drate.dev, dbias.dev, room);
    cpu->delta_backward_mt(&shape, SEQUENCES, s.cu, c.host, &gates, dout.host, dc_want, &d, scratch, per);
    expect("  backward: dc", dc.dev, dc_want, (size_t)T, (size_t)width, (size_t)width, false, 1e-2);
    expect("  backward: db, da", dg.dev, dg_want, (size_t)T, 2 * (size_t)heads, (size_t)shape.ld_gate, false, 1e-2);
    expect("  backward: dA_log", drate.dev, drate.host, 1, (size_t)heads, (size_t)heads, true, 1e-3);
    expect("  backward: ddt_bias", dbias.dev, dbias.host, 1, (size_t)heads, (size_t)heads, true, 1e-3);
    op->release(dev->q, slot_dev), op->release(dev->q, room);
    drop(&c), drop(&g), drop(&rate), drop(&bias), drop(&dout), drop(&o), drop(&dc), drop(&dg), drop(&drate),
        drop(&dbias);
    drop(&last), sequences_drop(&s);
    free(want), free(dc_want), free(dg_want), free(scratch);
}

static void test_delta(void)
{
    check_delta((const int[]){1, 66, 3, 129}, (struct nn_delta){1, 3, 16, 8, 8});
    if (strcmp(op->kind, "sim")) {
        check_delta((const int[]){64, 65, 2, 200}, (struct nn_delta){2, 6, 128, 128, 16});
        check_delta((const int[]){300, 63, 128, 1}, (struct nn_delta){2, 2, 64, 72, 8});
    } else {
        check_delta((const int[]){4, 2, 1, 70}, (struct nn_delta){1, 1, 128, 40, 8});
    }
}

/* ---- attention ---- */

struct packed {
    int T, n, longest;
    int32_t *cu, *pos, *seq, *tiles;
    int n_tiles;
    void *dcu, *dpos, *dseq, *dtiles;
};

static struct packed packed(const int *len, int n)
{
    struct packed p = {.n = n};
    int k = 0;

    p.cu = xcalloc((size_t)n + 1, sizeof *p.cu);
    for (int s = 0; s < n; s++)
        p.cu[s + 1] = p.T += len[s];
    p.pos = xcalloc((size_t)p.T, sizeof *p.pos);
    p.seq = xcalloc((size_t)p.T, sizeof *p.seq);
    p.tiles = xcalloc((size_t)(p.T + n) * 2, sizeof *p.tiles);
    for (int s = 0; s < n; s++) {
        for (int i = 0; i < len[s]; i++, k++) {
            p.pos[k] = i;
            p.seq[k] = s;
        }
        for (int i = 0; i * NN_ATTN_TILE < len[s]; i++, p.n_tiles++) {
            p.tiles[2 * p.n_tiles] = s;
            p.tiles[2 * p.n_tiles + 1] = i;
        }
        p.longest = len[s] > p.longest ? len[s] : p.longest;
    }
    p.dcu = ints(p.cu, (size_t)n + 1), p.dpos = ints(p.pos, (size_t)p.T), p.dseq = ints(p.seq, (size_t)p.T);
    p.dtiles = ints(p.tiles, 2 * (size_t)p.n_tiles);
    return p;
}

static void packed_drop(struct packed *p)
{
    op->release(dev->q, p->dcu), op->release(dev->q, p->dpos), op->release(dev->q, p->dseq), op->release(dev->q,
                                                                                                         p->dtiles);
    free(p->cu), free(p->pos), free(p->seq), free(p->tiles);
}

static void check_attention(const int *len, int n, int heads, int kv, int dim)
{
    const struct ops *cpu = cpu_ops();
    struct packed p = packed(len, n);
    int ld = (heads + kv) * dim, lv = (heads + 2 * kv) * dim, lo = heads * dim;
    size_t T = (size_t)p.T, nq = T * (size_t)ld, nv = T * (size_t)lv, no = T * (size_t)lo;
    struct array qk = array(nq, 1, false), qkv = array(nv, 1, false), dout = array(no, 1, false);
    struct attn_shape shape = {heads, kv, dim, ld, ld, lv, lo};
    struct attn_seqs seqs = {n, p.cu, NULL, NULL};
    size_t per = cpu->attn_scratch(&shape,
                                   p.T), voff = (size_t)(heads + kv) * (size_t)dim, koff = (size_t)heads * (size_t)dim;
    size_t es = dtype_size(dt);
    float *scratch = xcalloc(per * 64, 4), *o = xcalloc(no, 4), *lse = xcalloc(T * (size_t)heads,
                                                                               4), *dqk = xcalloc(nq, 4),
          *dqkv = xcalloc(nv, 4), *got;
    char *od = op->alloc(dev->q, no * 4), *ld_ = op->alloc(dev->q, T * (size_t)heads * 4);
    char *de = op->alloc(dev->q, T * (size_t)heads * 4), *dqd = op->alloc(dev->q, nq * 4);
    char *dvd = op->alloc(dev->q, nv * 4);
    struct nn_attn a = {p.T, heads, kv, dim, ld, ld, lv, lo, n, p.n_tiles, p.dcu, p.dpos, p.dseq, p.dtiles};
    char what[80];

    cpu->attn_forward_mt(&shape, &seqs, qk.host, qk.host + koff, qkv.host + voff, o, lse, scratch, per);
    op->attn(dev->q, dt, &a, qk.dev, (char *)qk.dev + koff * es, (char *)qkv.dev + voff * es, od, (float *)ld_);
    snprintf(what, sizeof what, "attention %d sequences, %d/%d heads of %d", n, heads, kv, dim);
    expect(what, od, o, T, (size_t)lo, (size_t)lo, false, 1.5e-2);
    got = fetch(ld_, T * (size_t)heads, true);
    expect("  log-sum-exp", ld_, lse, T, (size_t)heads, (size_t)heads, true, 1e-4);
    free(got);
    got = fetch(od, no, false); // the device's own rounded output enters delta
    cpu->attn_backward_mt(&shape, &seqs, qk.host, qk.host + koff, qkv.host + voff, got, lse, dout.host, dqk, dqk + koff,
                          dqkv + voff, scratch, per);
    op->attn_backward(dev->q, dt, &a, qk.dev, (char *)qk.dev + koff * es, (char *)qkv.dev + voff * es, od, (float *)ld_,
                      dout.dev, (float *)de, dqd, dqd + koff * es, dvd + voff * es);
    expect("  backward: dq", dqd, dqk, T, koff, (size_t)ld, false, 1.5e-2);
    float *full = fetch(dqd, nq, false), *fullv = fetch(dvd, nv, false);
    for (size_t t = 0; t < T; t++) { // shift keys and values to column 0 for the comparison
        memmove(full + t * (size_t)ld, full + t * (size_t)ld + koff, (size_t)(kv * dim) * 4);
        memmove(dqk + t * (size_t)ld, dqk + t * (size_t)ld + koff, (size_t)(kv * dim) * 4);
        memmove(fullv + t * (size_t)lv, fullv + t * (size_t)lv + voff, (size_t)(kv * dim) * 4);
        memmove(dqkv + t * (size_t)lv, dqkv + t * (size_t)lv + voff, (size_t)(kv * dim) * 4);
    }
    float *up = op->alloc(dev->q, nv * 4);
    op->upload(dev->q, up, full, nq * 4);
    expect("  backward: dk", up, dqk, T, (size_t)(kv * dim), (size_t)ld, true, 1.5e-2);
    op->upload(dev->q, up, fullv, nv * 4);
    expect("  backward: dv", up, dqkv, T, (size_t)(kv * dim), (size_t)lv, true, 1.5e-2);
    op->release(dev->q, up);
    op->release(dev->q, od), op->release(dev->q, ld_), op->release(dev->q, de), op->release(dev->q, dqd);
    op->release(dev->q, dvd);
    drop(&qk), drop(&qkv), drop(&dout);
    packed_drop(&p);
    free(scratch), free(o), free(lse), free(dqk), free(dqkv), free(full), free(fullv), free(got);
}

static void test_attention(void)
{
    static const int some[] = {1, 2, 3, 63, 64, 65}, longer[] = {129, 200, 5, 127};

    bool plain = dt == NN_F32 && !strcmp(op->kind,
                                         "sim"); // the emulator takes seconds for the plain kernel on long ones

    check_attention(some, plain ? 5 : 6, 3, 1, 32);
    check_attention(some, plain ? 4 : 6, 2, 2, 64);
    check_attention(longer, 4, plain ? 1 : 3, 1, 64);
    check_attention(plain ? some : longer, 4, 2, 1, 128);
}

/* ---- the rest ---- */

static void test_swiglu(void)
{
    enum { T = 19, F = 80 };
    struct array gu = array(T * 2 * F, 1, false), dact = array(T * F, 1, false);
    float *act = xcalloc(T * F, 4), *again = xcalloc(T * F, 4);
    void *ad = op->alloc(dev->q, T * F * 4);

    cpu_ops()->swiglu_mt(T, F, gu.host, act);
    op->swiglu(dev->q, dt, T, F, gu.dev, ad);
    expect("swiglu", ad, act, T, F, F, false, 1e-2);
    cpu_ops()->swiglu_backward_mt(T, F, gu.host, dact.host, gu.host, again);
    op->swiglu_backward(dev->q, dt, T, F, gu.dev, dact.dev, gu.dev, ad);
    expect("  backward: act again", ad, again, T, F, F, false, 1e-2);
    expect("  backward: dgu", gu.dev, gu.host, T, 2 * F, 2 * F, false, 1e-2);
    op->release(dev->q, ad);
    drop(&gu), drop(&dact);
    free(act), free(again);
}

static void check_classifier(int n, int V, float temperature)
{
    int ld = (V + 7) / 8 * 8;
    size_t N = (size_t)n;
    struct array z = array(N * (size_t)ld, 3, false), g = array(N, 1, true), h = array(N, 1, true);
    float *host = xcalloc(N * (size_t)V, 4), *lse = xcalloc(N, 4), *logp = xcalloc(N, 4), *ent = xcalloc(N, 4),
          *wide = xcalloc(N * (size_t)ld, 4);
    int32_t *target = xcalloc(N, sizeof *target);
    float *dl = op->alloc(dev->q, N * 4), *dp = op->alloc(dev->q, N * 4), *de = op->alloc(dev->q, N * 4);
    void *td;
    char what[64];

    for (int i = 0; i < n; i++) {
        target[i] = (int32_t)rng_below(&rng, (uint64_t)V);
        memcpy(host + (size_t)i * (size_t)V, z.host + (size_t)i * (size_t)ld, (size_t)V * 4);
    }
    td = ints(target, N);
    cpu_ops()->classifier_mt(n, V, host, 1 / temperature, target, lse, logp, ent);
    op->classifier(dev->q, dt, n, V, ld, z.dev, 1 / temperature, td, dl, dp, de);
    snprintf(what, sizeof what, "classifier %d x %d, lse", n, V);
    expect(what, dl, lse, 1, N, N, true, 2e-5);
    expect("  logp", dp, logp, 1, N, N, true, 2e-5);
    expect("  entropy", de, ent, 1, N, N, true, 5e-5);
    cpu_ops()->classifier_backward_mt(n, V, host, 1 / temperature, target, lse, ent, g.host, h.host);
    for (int i = 0; i < n; i++)
        memcpy(wide + (size_t)i * (size_t)ld, host + (size_t)i * (size_t)V, (size_t)V * 4);
    op->classifier_backward(dev->q, dt, n, V, ld, z.dev, 1 / temperature, td, dl, de, g.dev, h.dev);
    expect("  backward, padding zero", z.dev, wide, N, (size_t)ld, (size_t)ld, false, 1e-2);
    op->release(dev->q, dl), op->release(dev->q, dp), op->release(dev->q, de), op->release(dev->q, td);
    drop(&z), drop(&g), drop(&h);
    free(host), free(lse), free(logp), free(ent), free(wide), free(target);
}

static void test_classifier(void)
{
    check_classifier(9, 131, 0.7f);
    check_classifier(5, 8192, 1);
}

static void test_adamw(void)
{
    enum { N = 640 };
    struct array w = array(N, 1, true), g = array(N, 1, true), m = array(N, 0.1, true), v = array(N, 0.1, true);
    uint8_t decays[N / 64] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    void *w16 = op->alloc(dev->q, N * 2), *dd = op->alloc(dev->q, sizeof decays);
    double sum = 0, got;
    double *ds = op->alloc(dev->q, 8);
    float want = 0;

    for (int i = 0; i < N; i++)
        v.host[i] = fabsf(v.host[i]);
    put(&v);
    op->upload(dev->q, dd, decays, sizeof decays);
    struct nn_adamw a = {N, w.dev, dt == NN_BF16 ? w16 : NULL, g.dev, m.dev, v.dev, dd, 0.5f, 1e-2f, 0.9f, 0.98f,
                         1e-8f, 0.1f,
                         0.19f, 0.0396f};
    op->sumsq(dev->q, N, g.dev, ds);
    op->download(dev->q, &got, ds, 8);
    for (int i = 0; i < N; i++) {
        sum += (double)g.host[i] * g.host[i];
        g.host[i] *= 0.5f;
    }
    want = (float)sum;
    float f = (float)got;
    printf("%-4s sumsq: off by %.1e\n", fabs(f - want) <= 1e-6 * want ? "ok" : "BAD", fabs(got - sum) / sum);
    failures += !(fabs(f - want) <= 1e-6 * want);
    op->adamw(dev->q, dt, &a);
    cpu_ops()->adamw_mt(N / 2, w.host, g.host, m.host, v.host, 1e-2f, 0.9f, 0.98f, 1e-8f, 0, 0.19f, 0.0396f);
    cpu_ops()->adamw_mt(N / 2, w.host + N / 2, g.host + N / 2, m.host + N / 2, v.host + N / 2, 1e-2f, 0.9f, 0.98f,
                        1e-8f,
                        0.1f, 0.19f, 0.0396f);
    expect("adamw: weights", w.dev, w.host, 1, N, N, true, 2e-6);
    expect("  moments", m.dev, m.host, 1, N, N, true, 2e-6);
    expect("  second moments", v.dev, v.host, 1, N, N, true, 2e-6);
    if (dt == NN_BF16)
        expect("  rounded weights", w16, w.host, 1, N, N, false, 5e-3);
    op->release(dev->q, w16), op->release(dev->q, dd), op->release(dev->q, ds);
    drop(&w), drop(&g), drop(&m), drop(&v);
}

/* The cached path must give what attention gives for the last row of each sequence. */
static void check_decode(int heads, int kv, int dim)
{
    static const int len[] = {1, 7, 64, 150};
    enum { B = 4, MAX = 160 };
    struct packed p = packed(len, B);
    int lq = heads * dim, width = kv * dim;
    size_t T = (size_t)p.T;
    struct array q = array(T * (size_t)lq, 1, false), k = array(T * (size_t)width, 1, false),
                 v = array(T * (size_t)width, 1, false), last = array((size_t)(B * lq), 1, false);
    struct attn_shape shape = {heads, kv, dim, lq, width, width, lq};
    struct attn_seqs seqs = {B, p.cu, NULL, NULL};
    size_t per = cpu_ops()->attn_scratch(&shape, p.T), cache = (size_t)(B + 1) * MAX * (size_t)width * 4;
    float *scratch = xcalloc(per * 64, 4), *o = xcalloc(T * (size_t)lq, 4), *lse = xcalloc(T * (size_t)heads, 4),
          *want = xcalloc((size_t)(B * lq), 4);
    int32_t slot[4] = {2, 0, 4, 1}, pos[4], *slots = xcalloc(T, sizeof *slots);
    void *ck = op->alloc(dev->q, cache), *cv = op->alloc(dev->q, cache), *od = op->alloc(dev->q, (size_t)(B * lq) * 4);
    char what[64];

    cpu_ops()->attn_forward_mt(&shape, &seqs, q.host, k.host, v.host, o, lse, scratch, per);
    for (int b = 0; b < B; b++) {
        size_t row = (size_t)(p.cu[b + 1] - 1) * (size_t)lq;
        pos[b] = len[b] - 1;
        for (int t = p.cu[b]; t < p.cu[b + 1]; t++)
            slots[t] = slot[b];
        memcpy(last.host + (size_t)(b * lq), q.host + row, (size_t)lq * 4);
        memcpy(want + (size_t)(b * lq), o + row, (size_t)lq * 4);
    }
    put(&last);
    void *ds = ints(slots, T), *db = ints(slot, B), *dp = ints(pos, B);
    op->kv_store(dev->q, dt, p.T, width, MAX, ds, p.dpos, k.dev, width, v.dev, width, ck, cv);
    struct nn_decode d = {B, heads, kv, dim, MAX, db, dp, ck, cv};
    op->attn_decode(dev->q, dt, &d, last.dev, lq, od, lq);
    snprintf(what, sizeof what, "attn_decode %d/%d heads of %d", heads, kv, dim);
    expect(what, od, want, B, (size_t)lq, (size_t)lq, false, 1e-2);
    op->release(dev->q, ck), op->release(dev->q, cv), op->release(dev->q, od), op->release(dev->q, ds);
    op->release(dev->q, db), op->release(dev->q, dp);
    drop(&q), drop(&k), drop(&v), drop(&last);
    packed_drop(&p);
    free(scratch), free(o), free(lse), free(want), free(slots);
}

static void test_decode(void)
{
    check_decode(3, 1, 16);
    check_decode(4, 2, 64);
    check_decode(5, 1, 128);
    check_decode(2, 2, 32);
    check_decode(6, 2, 256);
}

/* Frequencies of draws, and that nothing outside the kept set is drawn. */
static void check_sample(float temperature, float top_p, int ids)
{
    enum { V = 100, LD = 104, B = 64 };
    int rounds = strcmp(op->kind, "sim") ? 40 : 2;
    struct array z = array(V, 2, false), all = array(LD * B, 1, false);
    int32_t pos[B] = {0}, token[B];
    uint64_t seed[B];
    float logp[B];
    double p[V], sum = 0, can = 0, kept = 0, worst = 0, off = 0;
    int count[V] = {0}, order[V], n_kept = 0;
    char what[64];

    for (int b = 0; b < B; b++) {
        seed[b] = rng_u64(&rng);
        memcpy(all.host + b * LD, z.host, V * 4);
    }
    put(&all);
    for (int i = 0; i < V; i++)
        sum += p[i] = exp(z.host[i] / (temperature > 0 ? temperature : 1));
    for (int i = 0; i < V; i++) {
        p[i] /= sum;
        order[i] = i;
    }
    for (int i = 0; i < ids; i++)
        for (int j = i + 1; j < ids; j++)
            if (p[order[j]] > p[order[i]]) {
                int x = order[i];
                order[i] = order[j], order[j] = x;
            }
    for (int i = 0; i < ids; i++)
        can += p[i];
    while (n_kept < ids && kept < top_p * can)
        kept += p[order[n_kept++]];
    while (n_kept < ids && p[order[n_kept]] == p[order[n_kept - 1]]) // equals stay together
        kept += p[order[n_kept++]];
    if (temperature <= 0)
        n_kept = 1, kept = p[order[0]];
    void *dpos = ints(pos, B), *dtok = op->alloc(dev->q, B * 4), *dout = op->alloc(dev->q, B * 4),
         *dlp = op->alloc(dev->q, B * 4), *dseed = op->alloc(dev->q, B * 8);
    op->upload(dev->q, dseed, seed, sizeof seed);
    struct nn_sample s = {B, V, LD, ids, all.dev, temperature, top_p, dseed, dpos, dtok, dout,
                          .out_logp = dlp};
    bool outside = false;
    for (int r = 0; r < rounds; r++) {
        op->sample(dev->q, dt, &s);
        op->download(dev->q, token, dout, sizeof token);
        op->download(dev->q, logp, dlp, sizeof logp);
        for (int b = 0; b < B; b++) {
            bool in = false;
            for (int i = 0; i < n_kept; i++)
                in |= order[i] == token[b];
            outside |= !in || token[b] < 0 || token[b] >= ids;
            if (in) {
                count[token[b]]++;
                double d = fabs(logp[b] - log(p[token[b]]));
                off = d > off ? d : off;
            }
        }
    }
    for (int i = 0; i < n_kept; i++) {
        double want = p[order[i]] / kept, sigma = sqrt(want * (1 - want) / (B * rounds)) + 1e-9;
        double d = fabs(count[order[i]] / (double)(B * rounds) - want) / sigma;
        worst = temperature > 0 && d > worst ? d : worst;
    }
    snprintf(what, sizeof what, "sample T %.1f top-p %.2f: %d of %d kept", temperature, top_p, n_kept, ids);
    bool ok = !outside && worst < 4.5 && off < 1e-4;
    printf("%-4s %-44s %s %.1f sigma, log-prob off by %.1e%s\n", ok ? "ok" : "BAD", what,
           dt == NN_F32 ? "fp32" : "bf16", worst,
           off, outside ? ", an id outside the kept set" : "");
    failures += !ok;
    op->release(dev->q, dpos), op->release(dev->q, dtok), op->release(dev->q, dout), op->release(dev->q, dlp);
    op->release(dev->q, dseed);
    drop(&z), drop(&all);
}

static void test_sample(void)
{
    check_sample(1, 1, 100);
    check_sample(0.7f, 0.9f, 100);
    check_sample(1, 0.3f, 100);
    check_sample(0, 1, 100);
    check_sample(1, 1, 37); // rows of a padded vocabulary are never drawn
    check_sample(1.2f, 0.9f, 53);
    check_sample(0, 1, 20);
}

/* test_dev_ops [N]: from the Nth group of operators on. */
int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {test_gemm, test_embed, test_rmsnorm, test_rope, test_attention, test_swiglu,
                                          test_classifier, test_adamw, test_decode, test_sample, test_conv, test_gates,
                                          test_delta, test_bias};
    const char *spec = getenv("NN_TEST_DEVICE") ? getenv("NN_TEST_DEVICE") : "sim";
    struct err e = ERR_INIT;

    if (!(dev = nn_device_open(spec, &e))) {
        fprintf(stderr, "test_dev_ops: %s\n", e.msg);
        return 1;
    }
    op = dev->ops;
    printf("device: %s\n", dev->info.name);
    size_t n = sizeof tests / sizeof tests[0], last = argc > 2 ? strtoul(argv[2], NULL, 10) + 1 : n;

    for (size_t i = argc > 1 ? strtoul(argv[1], NULL, 10) : 0; i < n && i < last; i++) // arguments: first and last test
        for (dt = NN_F32; dt <= NN_BF16; dt++) {
            double t = now_s();
            rng_seed(&rng, 7, i);
            tests[i]();
            if (nn_device_sync(dev, &e) < 0) {
                printf("BAD  device: %s\n", e.msg);
                return 1;
            }
            printf("     %.2f s\n", now_s() - t);
        }
    nn_device_close(dev);
    printf("%d failures\n", failures);
    return failures != 0;
}
