/* loss.c - losses. Means over all elements of an expression over prediction and target; and losses of a row, whose
 * mean is a further operator. Attributes: i[0] mask of reduced axes (all, or the class axis); f[0] a margin or delta.
 * draw_, shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/ops/axes.h"

struct pointwise {
    const char *name, *expr; /* over x and y; $f0 */
};

static const struct pointwise pointwises[] = {
    {"mse_loss", "(x - y) * (x - y)"},
    {"l1_loss", "fabsf(x - y)"},
    {"smooth_l1_loss", "fabsf(x - y) < $f0 ? 0.5f * (x - y) * (x - y) / $f0 : fabsf(x - y) - 0.5f * $f0"},
    {"huber_loss", "fabsf(x - y) <= $f0 ? 0.5f * (x - y) * (x - y) : $f0 * (fabsf(x - y) - 0.5f * $f0)"},
    {"hinge_loss", "fmaxf(1.0f - x * y, 0.0f)"},
    {"bce_with_logits", "fmaxf(x, 0.0f) - x * y + log1pf(expf(-fabsf(x)))"},
    {"soft_margin_loss", "log1pf(expf(-x * y))"},
    {"poisson_nll", "expf(x) - y * x"},
};

/* One element's loss by its name; a is the operator's attribute. */
static double meaning(const char *s, double x, double y, double a)
{
    double d = fabs(x - y);

    if (!strcmp(s, "mse_loss"))
        return d * d;
    if (!strcmp(s, "l1_loss"))
        return d;
    if (!strcmp(s, "smooth_l1_loss"))
        return d < a ? 0.5 * d * d / a : d - 0.5 * a;
    if (!strcmp(s, "huber_loss"))
        return d <= a ? 0.5 * d * d : a * (d - 0.5 * a);
    if (!strcmp(s, "hinge_loss"))
        return fmax(1 - x * y, 0);
    if (!strcmp(s, "soft_margin_loss"))
        return log1p(exp(-x * y));
    if (!strcmp(s, "poisson_nll"))
        return exp(x) - y * x;
    return fmax(x, 0) - x * y + log1p(exp(-fabs(x)));
}

static bool draw_pointwise(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->i[0] = (1 << c->in[0].rank) - 1;
    c->f[0] = draw_constant(r, l, 0.25, 2);
    c->in[1] = c->in[0];
    c->n_in = 2;
    return true;
}

static bool shape_scalar(struct op_call *c)
{
    c->out = (struct tdesc){.rank = 0, .dtype = c->in[0].dtype};
    return true;
}

static void ref_pointwise(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->in[0]);
    double s = 0;

    for (int64_t i = 0; i < n; i++)
        s += meaning(c->op->name, in[0][i], in[1][i], c->f[0]);
    *out = s / (double)n;
}

/* The call as a loop nest: element losses, then their sum or mean. */
static void lower_pointwise(const struct op_call *c, struct nest *k)
{
    static const char *const id[] = {"x", "y"};
    char x[128], y[128], fin[64];
    struct ax *with[2];
    struct buf b;
    const char *expr = NULL;

    for (size_t i = 0; i < sizeof pointwises / sizeof *pointwises; i++)
        if (!strcmp(pointwises[i].name, c->op->name))
            expr = pointwises[i].expr;
    axes_dims(c, k, x);
    strcpy(y, x);
    y[1] = '1';
    with[0] = nest_expr(k, "%s", x), with[1] = nest_expr(k, "%s", y);
    buf_init(&b, 4096);
    op_spell(c, expr, NULL, NULL, &b);
    snprintf(fin, sizeof fin, "acc / %lld.0f", (long long)tdesc_numel(&c->in[0]));
    nest_stat(k, C_SUM, ax_subst(k->arena, ax_parse(k->arena, b.p), id, with, 2), fin);
    axes_store(c, k, false);
    buf_free(&b);
}

/* ---- losses of rows ---- */

static bool draw_classes(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)r, (void)l;
    c->i[0] = 2;
    c->in[1] = (struct tdesc){.rank = 1, .dtype = DT_I64, .d = {c->in[0].d[0]}};
    c->below[1] = c->in[0].d[1];
    c->n_in = 2;
    return c->in[0].d[1] > 1;
}

static void ref_cross_entropy(const struct op_call *c, const double *const in[], double *out)
{
    int m = c->in[0].d[0], n = c->in[0].d[1];

    for (int i = 0; i < m; i++) {
        double max = -INFINITY, sum = 0;
        for (int j = 0; j < n; j++)
            max = fmax(max, in[0][i * n + j]);
        for (int j = 0; j < n; j++)
            sum += exp(in[0][i * n + j] - max);
        out[i] = max + log(sum) - in[0][i * n + (int)in[1][i]];
    }
}

static void lower_cross_entropy(const struct op_call *c, struct nest *k)
{
    char x[128];

    axes_dims(c, k, x);
    nest_stat(k, C_MAX, nest_expr(k, "%s", x), NULL);
    nest_stat(k, C_SUM, nest_expr(k, "expf(%s - s0)", x), NULL);
    k->out = nest_expr(k, "s0 + logf(s1) - L0(r, L1(r))");
    axes_store(c, k, false);
}

static bool draw_pair(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    c->i[0] = 1 << (c->in[0].rank - 1);
    c->f[0] = draw_below(r, 2) ? 1.0 : 0.5;
    c->in[1] = c->in[2] = c->in[0];
    c->n_in = c->op->name[0] == 't' ? 3 : 2;
    return true;
}

struct dots {
    double xy, xx, yy, dxy, dxz;
};

/* The sums over one row that similarity losses are made of. */
static struct dots dots_of(const struct axes *a, const double *const in[], int n_in, int64_t r)
{
    struct dots d = {0};

    for (int64_t k = 0; k < a->len; k++) {
        int64_t at = axes_at(a, r, k);
        double x = in[0][at], y = in[1][at], z = n_in > 2 ? in[2][at] : 0;
        d.xy += x * y, d.xx += x * x, d.yy += y * y;
        d.dxy += (x - y + 1e-6) * (x - y + 1e-6), d.dxz += (x - z + 1e-6) * (x - z + 1e-6);
    }
    return d;
}

/* Cosine similarity, distance or triplet loss of each row, in doubles. */
static void ref_pair(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        struct dots d = dots_of(&a, in, c->n_in, r);
        if (c->op->name[0] == 'c')
            out[r] = d.xy / fmax(sqrt(d.xx) * sqrt(d.yy), 1e-8);
        else if (c->op->name[0] == 'p')
            out[r] = sqrt(d.dxy);
        else
            out[r] = fmax(sqrt(d.dxy) - sqrt(d.dxz) + c->f[0], 0);
    }
}

/* The call as a loop nest with a statistic for each dot product. */
static void lower_pair(const struct op_call *c, struct nest *k)
{
    char x[128], y[128], z[128];

    axes_dims(c, k, x);
    strcpy(y, x), strcpy(z, x);
    y[1] = '1', z[1] = '2';
    if (c->op->name[0] == 'c') {
        nest_stat(k, C_SUM, nest_expr(k, "%s * %s", x, y), NULL);
        nest_stat(k, C_SUM, nest_expr(k, "%s * %s", x, x), NULL);
        nest_stat(k, C_SUM, nest_expr(k, "%s * %s", y, y), NULL);
        k->out = nest_expr(k, "s0 / fmaxf(sqrtf(s1) * sqrtf(s2), 1e-8f)");
    } else {
        nest_stat(k, C_SUM, nest_expr(k, "(%s - %s + 1e-6f) * (%s - %s + 1e-6f)", x, y, x, y), "sqrtf(acc)");
        if (c->n_in > 2) {
            nest_stat(k, C_SUM, nest_expr(k, "(%s - %s + 1e-6f) * (%s - %s + 1e-6f)", x, z, x, z), "sqrtf(acc)");
            k->out = nest_expr(k, "fmaxf(s0 - s1 + float(%.9g), 0.0f)", c->f[0]);
        }
    }
    axes_store(c, k, false);
}

/* KL divergence of rows: sum of y (log y - x), x a logarithm already. */
static void ref_kl(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->in[0]);
    double s = 0;

    for (int64_t i = 0; i < n; i++)
        s += in[0][i] * (log(in[0][i]) - in[1][i]);
    *out = s / c->in[0].d[0];
}

static void lower_kl(const struct op_call *c, struct nest *k)
{
    char x[128], y[128], fin[64];

    axes_dims(c, k, x);
    strcpy(y, x);
    y[1] = '1';
    snprintf(fin, sizeof fin, "acc / %d.0f", c->in[0].d[0]);
    nest_stat(k, C_SUM, nest_expr(k, "%s * (logf(%s) - %s)", x, x, y), fin);
    axes_store(c, k, false);
}

#define POINTWISE(NAME, ABOUT) \
    .name = NAME, .family = "loss", .class = NEST_REDUCE, .ranks = 0x3e, .draw = draw_pointwise, .shape = \
        shape_scalar, \
    .ref = ref_pointwise, .lower = lower_pointwise, .about = ABOUT
#define ROWS(NAME, RANKS, DRAW, REF, LOWER, ABOUT) \
    .name = NAME, .family = "loss", .class = NEST_REDUCE, .ranks = RANKS, .draw = DRAW, .shape = axes_shape, .ref = \
        REF, \
    .lower = LOWER, .about = ABOUT

const struct opdef loss_ops[] = {
    {POINTWISE("mse_loss", "the mean squared difference"),
     .spell = {{NULL, "F.mse_loss($0, $1)"}, {NULL, "torch.mean(($0 - $1) ** 2)"}, {"nn.MSELoss()", "$m($0, $1)"}}},
    {POINTWISE("l1_loss", "the mean absolute difference"),
     .spell = {{NULL, "F.l1_loss($0, $1)"}, {NULL, "torch.mean(torch.abs($0 - $1))"}, {"nn.L1Loss()", "$m($0, $1)"}}},
    {POINTWISE("smooth_l1_loss", "a loss that is square near zero"),
     .spell = {{NULL, "F.smooth_l1_loss($0, $1, beta=$f0)"}, {"nn.SmoothL1Loss(beta=$f0)", "$m($0, $1)"}}},
    {POINTWISE("huber_loss", "a loss that is square near zero, and linear beyond"),
     .spell = {{NULL, "F.huber_loss($0, $1, delta=$f0)"}, {"nn.HuberLoss(delta=$f0)", "$m($0, $1)"}}},
    {POINTWISE("hinge_loss", "the mean hinge"), .spell = {{NULL, "torch.mean(torch.clamp(1 - $0 * $1, min=0))"}}},
    {POINTWISE("bce_with_logits", "binary cross-entropy of logits"), .no_halves = true,
     .spell = {{NULL, "F.binary_cross_entropy_with_logits($0, $1)"}, {"nn.BCEWithLogitsLoss()", "$m($0, $1)"}}},
    {POINTWISE("soft_margin_loss", "log(1 + exp(-x y))"), .domain = {-4, 4}, .no_halves = true,
     .spell = {{NULL, "torch.mean(torch.log1p(torch.exp(-$0 * $1)))"}}},
    {POINTWISE("poisson_nll", "the Poisson loss of a log-rate"), .domain = {-20, 10}, .no_halves = true,
     .spell = {{NULL, "F.poisson_nll_loss($0, $1)"}, {NULL, "torch.mean(torch.exp($0) - $1 * $0)"}}},
    {ROWS("cross_entropy_rows", 0x04, draw_classes, ref_cross_entropy, lower_cross_entropy,
        "cross-entropy of each row"),
     .no_halves = true, .spell = {{NULL, "F.cross_entropy($0, $1, reduction='none')"}}},
    {ROWS("cosine_similarity", 0x3e, draw_pair, ref_pair, lower_pair, "the cosine of two rows"), .range = RANGE_UNIT,
     .no_halves = true, .spell = {{NULL, "F.cosine_similarity($0, $1, dim=-1)"}, {"nn.CosineSimilarity(dim=-1)",
         "$m($0, $1)"}}},
    {ROWS("pairwise_distance", 0x04, draw_pair, ref_pair, lower_pair, "the distance of two rows"), .no_halves = true,
     .spell = {{NULL, "F.pairwise_distance($0, $1)"}, {"nn.PairwiseDistance()", "$m($0, $1)"}}},
    {ROWS("triplet_rows", 0x04, draw_pair, ref_pair, lower_pair, "the triplet margin loss of each row"), .no_halves =
        true,
     .spell = {{NULL, "F.triplet_margin_loss($0, $1, $2, margin=$f0, reduction='none')"}}},
    {.name = "kl_div", .family = "loss", .class = NEST_REDUCE, .ranks = 0x04, .draw = draw_pointwise, .shape =
        shape_scalar,
     .ref = ref_kl, .lower = lower_kl, .about = "the Kullback-Leibler divergence, per sample", .domain = {0.01, 1},
     .no_halves = true, .spell = {{NULL, "F.kl_div($1, $0, reduction='batchmean')"}}},
    {0}};
