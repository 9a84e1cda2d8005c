/* norm.c - normalisations: statistics of a row, then every element once more. Attributes: i[0] mask of the axes that
 * form a row's elements, i[1] 0, i[2] affine, i[3] groups; f[0] eps. Operands: x, and weight and bias per channel or
 * per element. draw_, shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/ops/axes.h"

enum { AFFINE = 2, GROUPS = 3 };

static bool is(const struct op_call *c, const char *name)
{
    return !strncmp(c->op->name, name, strlen(name));
}

/* Draws the epsilon, mostly 1e-5. */
static void set_eps(struct rng *r, struct op_call *c)
{
    static const int powers[] = {5, 5, 5, 6, 3};
    int p = draw_pick(r, powers, 5);

    c->f[0] = p == 5 ? 1e-5 : p == 6 ? 1e-6 : 1e-3;
}

static void per_channel(struct op_call *c, int n)
{
    c->in[1] = c->in[2] = (struct tdesc){.rank = 1, .dtype = c->in[0].dtype, .d = {n}};
    c->n_in = 3;
}

/* layer_norm: the last one to three axes; weight and bias have their shape. */
static bool draw_layer(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int rank = c->in[0].rank, n = 1 + (int)draw_below(r, rank > 1 && draw_below(r, 3) == 0 ? (uint64_t)rank - 1 : 1);

    (void)l;
    set_eps(r, c);
    c->i[0] = ((1 << n) - 1) << (rank - n);
    c->in[1] = (struct tdesc){.rank = (uint8_t)n, .dtype = c->in[0].dtype};
    memcpy(c->in[1].d, c->in[0].d + rank - n, sizeof(int32_t) * (size_t)n);
    c->in[2] = c->in[1];
    c->n_in = 3;
    c->i[AFFINE] = 1;
    return tdesc_numel(&c->in[1]) > 1;
}

/* batch_norm: statistics of a channel over everything else (training mode, as KernelBench's models run). */
static bool draw_batch(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    set_eps(r, c);
    c->i[0] = ((1 << c->in[0].rank) - 1) & ~2;
    c->i[AFFINE] = 1;
    per_channel(c, c->in[0].d[1]);
    return tdesc_numel(&c->in[0]) / c->in[0].d[1] > 1;
}

static bool draw_instance(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    set_eps(r, c);
    c->i[0] = ((1 << c->in[0].rank) - 1) & ~3;
    return tdesc_numel(&c->in[0]) / ((int64_t)c->in[0].d[1] * c->in[0].d[0]) > 1;
}

static bool draw_group(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int channels = c->in[0].d[1], v[32], n = 0;

    (void)l;
    set_eps(r, c);
    for (int i = 1; i <= channels && n < 32; i++)
        if (channels % i == 0)
            v[n++] = i;
    c->i[GROUPS] = v[draw_below(r, (uint64_t)n)];
    c->i[AFFINE] = 1;
    per_channel(c, channels);
    return tdesc_numel(&c->in[0]) / ((int64_t)c->in[0].d[0] * c->i[GROUPS]) > 1;
}

static bool draw_axis(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    set_eps(r, c);
    axes_draw_one(r, l, c);
    c->i[1] = 0;
    return true;
}

/* Written out as a sum, the epsilon is an operator of its own: one that may be left out makes no task. */
static bool draw_rms(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    static const double eps[] = {0.125, 0.25, 0.5};

    draw_axis(r, l, c);
    c->f[0] = eps[draw_below(r, 3)];
    return true;
}

static bool draw_all(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)r, (void)l;
    c->i[0] = (1 << c->in[0].rank) - 1;
    return true;
}

/* ---- meaning ---- */

/* The factor of row r by the operator's rule; *mean is what is subtracted first. */
static double scale_of(const struct op_call *c, const struct axes *a, const double *x, int64_t r, double *mean)
{
    double s = 0, q = 0, m = 0;

    for (int64_t k = 0; k < a->len; k++) {
        double e = x[axes_at(a, r, k)];
        s += e / (double)a->len, q += e * e, m += fabs(e);
    }
    *mean = 0;
    if (is(c, "rms_norm"))
        return 1 / sqrt(q / (double)a->len + c->f[0]);
    if (is(c, "l2_normalize"))
        return 1 / fmax(sqrt(q), 1e-12);
    if (is(c, "l1_normalize"))
        return 1 / m;
    if (is(c, "frobenius"))
        return 1 / sqrt(q);
    *mean = s;
    q = 0;
    for (int64_t k = 0; k < a->len; k++)
        q += (x[axes_at(a, r, k)] - s) * (x[axes_at(a, r, k)] - s);
    return 1 / sqrt(q / (double)a->len + c->f[0]);
}

/* The channel of the element at an offset. */
static int64_t channel_of(const struct op_call *c, int64_t at)
{
    int64_t inner = 1;

    if (is(c, "layer_norm"))
        return at % tdesc_numel(&c->in[1]);
    for (int d = 2; d < c->in[0].rank; d++)
        inner *= c->in[0].d[d];
    return at / inner % c->in[0].d[1];
}

static void ref_norm(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double mean, scale = scale_of(c, &a, in[0], r, &mean);
        for (int64_t k = 0; k < a.len; k++) {
            int64_t at = axes_at(&a, r, k);
            double y = (in[0][at] - mean) * scale;
            out[at] = c->i[AFFINE] ? y * in[1][channel_of(c, at)] + in[2][channel_of(c, at)] : y;
        }
    }
}

/* Group normalisation in doubles. */
static void ref_group(const struct op_call *c, const double *const in[], double *out)
{
    int64_t rows = (int64_t)c->in[0].d[0] * c->i[GROUPS], len = tdesc_numel(&c->in[0]) / rows;

    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, q = 0;
        for (int64_t k = 0; k < len; k++)
            mean += in[0][r * len + k] / (double)len;
        for (int64_t k = 0; k < len; k++)
            q += (in[0][r * len + k] - mean) * (in[0][r * len + k] - mean);
        for (int64_t at = r * len; at < (r + 1) * len; at++)
            out[at] = (in[0][at] - mean) / sqrt(q / (double)len + c->f[0]) * in[1][channel_of(c, at)] +
                      in[2][channel_of(c, at)];
    }
}

/* ---- loop nests ---- */

/* Adds the mean and the variance of x over len elements as statistics of the nest. */
static void moments(const struct op_call *c, struct nest *k, const char *x, int64_t len)
{
    char fin[96];

    snprintf(fin, sizeof fin, "acc / %lld.0f", (long long)len);
    nest_stat(k, C_SUM, nest_expr(k, "%s", x), fin);
    snprintf(fin, sizeof fin, "rsqrtf(acc / %lld.0f + %.9gf)", (long long)len, c->f[0]);
    nest_stat(k, C_SUM, nest_expr(k, "(%s - s0) * (%s - s0)", x, x), fin);
}

/* The call as a loop nest: two moments, then scale and shift. */
static void lower_norm(const struct op_call *c, struct nest *k)
{
    const char *const *names = output_names[c->in[0].rank - 1];
    char x[128], p[128] = "";
    struct axes a;
    int rank = c->in[0].rank;

    axes_open(c, &a);
    axes_dims(c, k, x);
    moments(c, k, x, a.len);
    for (int d = rank - c->in[1].rank; is(c, "layer_norm") && d < rank; d++)
        sprintf(p + strlen(p), "%s%s", *p ? ", " : "", names[d]);
    if (!*p)
        strcpy(p, names[1]);
    k->out = c->i[AFFINE] ? nest_expr(k, "(%s - s0) * s1 * L1(%s) + L2(%s)", x, p, p) : nest_expr(k, "(%s - s0) * s1",
        x);
    axes_store(c, k, true);
}

/* The call as a loop nest: one statistic, then a scale. */
static void lower_scaled(const struct op_call *c, struct nest *k)
{
    char x[128], fin[96];
    struct axes a;

    axes_open(c, &a);
    axes_dims(c, k, x);
    if (is(c, "rms_norm"))
        snprintf(fin, sizeof fin, "rsqrtf(acc / %lld.0f + %.9gf)", (long long)a.len, c->f[0]);
    else
        strcpy(fin, is(c, "l1") ? "1.0f / acc" : is(c, "l2") ? "1.0f / fmaxf(sqrtf(acc), 1e-12f)" :
            "1.0f / sqrtf(acc)");
    nest_stat(k, C_SUM, is(c, "l1") ? nest_expr(k, "fabsf(%s)", x) : nest_expr(k, "%s * %s", x, x), fin);
    k->out = nest_expr(k, "%s * s0", x);
    axes_store(c, k, true);
}

/* The channel axis is split: x is read as (N, G, C/G, ..), which is the same memory. */
static void lower_group(const struct op_call *c, struct nest *k)
{
    const char *const *names = output_names[c->in[0].rank - 1];
    int g = c->i[GROUPS], per = c->in[0].d[1] / g;
    char x[128], tail[64] = "", store[128];
    int64_t len = per;

    nest_dim(k, 0, c->in[0].d[0], "n");
    nest_dim(k, 0, g, "gr");
    nest_dim(k, 1, per, "cg");
    for (int d = 2; d < c->in[0].rank; d++) {
        nest_dim(k, 1, c->in[0].d[d], "%s", names[d]);
        sprintf(tail + strlen(tail), ", %s", names[d]);
        len *= c->in[0].d[d];
    }
    snprintf(x, sizeof x, "L0(n, gr * %d + cg%s)", per, tail);
    moments(c, k, x, len);
    k->out = nest_expr(k, "(%s - s0) * s1 * L1(gr * %d + cg) + L2(gr * %d + cg)", x, per, per);
    snprintf(store, sizeof store, "n, gr * %d + cg%s", per, tail);
    nest_store(k, store);
}

/* Appends what a $key of the spelling stands for. False: it is another's key. */
static bool key_norm(const struct op_call *c, const char *key, struct buf *out)
{
    if (!strcmp(key, "ns")) {
        buf_addc(out, '(');
        for (int i = 0; i < c->in[1].rank; i++)
            buf_addf(out, "%s%d", i ? ", " : "", c->in[1].d[i]);
        buf_adds(out, c->in[1].rank == 1 ? ",)" : ")");
        return true;
    }
    if (!strcmp(key, "ch"))
        return buf_addf(out, "%d", c->in[0].d[1]), true;
    if (!strcmp(key, "ndd"))
        return buf_addf(out, "%dd", c->in[0].rank < 3 ? 1 : c->in[0].rank - 2), true;
    if (!strcmp(key, "eps"))
        return c->f[0] > 1e-3 ? buf_addf(out, "%g", c->f[0])
                              : buf_adds(out, c->f[0] == 1e-5 ? "1e-5" : c->f[0] == 1e-6 ? "1e-6" : "1e-3"), true;
    return axes_key(c, key, out);
}

#define NORM(NAME, RANKS, DRAW, REF, LOWER, ABOUT) \
    .name = NAME, .family = "norm", .class = NEST_ROW, .ranks = RANKS, .draw = DRAW, .shape = axes_shape_same, \
        .ref = REF, \
    .lower = LOWER, .key = key_norm, .about = ABOUT

const struct opdef norm_ops[] = {
    {NORM("layer_norm", 0x3e, draw_layer, ref_norm, lower_norm,
        "mean 0 and variance 1 over the last axes, then scaled"),
     .n_params = 2, .param = {"weight", "bias"}, .spell = {{"nn.LayerNorm($ns, eps=$eps)", "$m($0)"},
     {NULL, "F.layer_norm($0, $ns, weight=$1, bias=$2, eps=$eps)"}}},
    {NORM("batch_norm", 0x3c, draw_batch, ref_norm, lower_norm,
        "mean 0 and variance 1 over each channel of the batch, then scaled"),
     .n_params = 2, .param = {"weight", "bias"}, .no_halves = true, .spell = {{"nn.BatchNorm$ndd($ch, eps=$eps)",
         "$m($0)"}}},
    {NORM("instance_norm", 0x38, draw_instance, ref_norm, lower_norm,
        "mean 0 and variance 1 over each channel of each sample"),
     .spell = {{"nn.InstanceNorm$ndd($ch, eps=$eps)", "$m($0)"}, {NULL, "F.instance_norm($0, eps=$eps)"}}},
    {NORM("group_norm", 0x3c, draw_group, ref_group, lower_group,
        "mean 0 and variance 1 over each group of channels, then scaled"),
     .n_params = 2, .param = {"weight", "bias"}, .spell = {{"nn.GroupNorm($i3, $ch, eps=$eps)", "$m($0)"}}},
    {NORM("rms_norm", 0x3e, draw_rms, ref_norm, lower_scaled, "divided by the root of the mean square"), .range =
        RANGE_FREE,
     .spell = {{NULL, "$0 / torch.sqrt(torch.mean($0 ** 2, dim=$dim, keepdim=True) + $eps)"},
               {NULL, "$0 * torch.rsqrt($0.pow(2).mean($dim, keepdim=True) + $eps)"}}},
    {NORM("l2_normalize", 0x3e, draw_axis, ref_norm, lower_scaled, "divided by the Euclidean length"),
     .no_halves = true, .range = RANGE_UNIT, /* PyTorch adds the squares up in the tensor's own type */
     .spell = {{NULL, "F.normalize($0, p=2, dim=$dim)"}, {NULL, "F.normalize($0, dim=$dim)"}}},
    {NORM("l1_normalize", 0x3e, draw_axis, ref_norm, lower_scaled, "divided by the sum of absolute values"),
     .no_halves = true, .range = RANGE_UNIT, .spell = {{NULL,
         "$0 / torch.sum(torch.abs($0), dim=$dim, keepdim=True)"}}},
    {NORM("frobenius_normalize", 0x3e, draw_all, ref_norm, lower_scaled, "divided by the length of the whole tensor"),
     .range = RANGE_UNIT, .spell = {{NULL, "$0 / torch.norm($0)"}, {NULL, "$0 / torch.norm($0, p='fro')"}}},
    {0}};
