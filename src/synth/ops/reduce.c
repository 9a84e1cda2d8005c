/* reduce.c - reductions over one axis or several. Attributes as in axes.h. draw_, shape_, ref_, lower_ and key_ are
 * the members of struct opdef (synth/op.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/ops/axes.h"

/* ---- one statistic: a row is what is combined, and what happens to the result ---- */

struct simple {
    const char *name;
    enum combine c;
    const char *elem; /* of x, as "%s" */
    const char *fin;  /* of acc; "%lld" is the number of elements */
};

static const struct simple simples[] = {
    {"sum", C_SUM, "%s", NULL},
    {"mean", C_SUM, "%s", "acc / %lld.0f"},
    {"amax", C_MAX, "%s", NULL},
    {"amin", C_MIN, "%s", NULL},
    {"prod", C_PROD, "%s", NULL},
    {"norm1", C_SUM, "fabsf(%s)", NULL},
    {"norm2", C_SUM, "%s * %s", "sqrtf(acc)"},
    {"sum_squares", C_SUM, "%s * %s", NULL},
    {"mean_abs", C_SUM, "fabsf(%s)", "acc / %lld.0f"},
    {"norm_inf", C_MAX, "fabsf(%s)", NULL},
    {"argmax", C_ARGMAX, "%s", NULL},
    {"argmin", C_ARGMIN, "%s", NULL},
};

static const struct simple *simple_of(const struct op_call *c)
{
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        if (!strcmp(simples[i].name, c->op->name))
            return &simples[i];
    return NULL;
}

/* The reduction of row r, in doubles. */
static double row_value(const struct op_call *c, const struct axes *a, const double *x, int64_t r)
{
    const char *s = c->op->name;
    double v = combine_identity(simple_of(c)->c);
    int64_t best = 0;

    for (int64_t k = 0; k < a->len; k++) {
        double e = x[axes_at(a, r, k)];
        if (!strcmp(s, "sum") || !strcmp(s, "mean"))
            v += e;
        else if (!strcmp(s, "norm1") || !strcmp(s, "mean_abs"))
            v += fabs(e);
        else if (!strcmp(s, "norm2") || !strcmp(s, "sum_squares"))
            v += e * e;
        else if (!strcmp(s, "prod"))
            v *= e;
        else if (!strcmp(s, "norm_inf"))
            v = fmax(v, fabs(e));
        else if (!strncmp(s + (s[1] == 'r' ? 3 : 1), "max", 3) ? e > v : e < v)
            v = e, best = k;
    }
    return s[1] == 'r' && s[0] == 'a' ? (double)best : !strncmp(s, "mean", 4) ? v / (double)a->len : !strcmp(s,
        "norm2") ? sqrt(v) : v;
}

static void ref_simple(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++)
        out[r] = row_value(c, &a, in[0], r);
}

static void lower_simple(const struct op_call *c, struct nest *k)
{
    const struct simple *s = simple_of(c);
    struct axes a;
    char x[128], elem[300], fin[64];

    axes_open(c, &a);
    axes_dims(c, k, x);
    snprintf(elem, sizeof elem, s->elem, x, x);
    snprintf(fin, sizeof fin, s->fin ? s->fin : "acc", (long long)a.len);
    nest_stat(k, s->c, nest_expr(k, "%s", elem), s->fin ? fin : NULL);
    axes_store(c, k, false);
}

static bool shape_index(struct op_call *c)
{
    axes_shape(c);
    c->out.dtype = DT_I64;
    return true;
}

/* ---- variance and its like: a mean first ---- */

static bool draw_var(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    struct axes a;

    axes_draw(r, l, c);
    axes_open(c, &a);
    c->i[2] = draw_below(r, 3) != 0; /* unbiased */
    return a.len > 1;
}

/* Variance or standard deviation of each row; i[2]: divide by n - 1. */
static void ref_var(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double mean = 0, v = 0;
        for (int64_t k = 0; k < a.len; k++)
            mean += in[0][axes_at(&a, r, k)] / (double)a.len;
        for (int64_t k = 0; k < a.len; k++)
            v += (in[0][axes_at(&a, r, k)] - mean) * (in[0][axes_at(&a, r, k)] - mean);
        v /= (double)(a.len - (c->i[2] ? 1 : 0));
        out[r] = c->op->name[0] == 's' ? sqrt(v) : v;
    }
}

/* The call as a loop nest: mean, then squares. */
static void lower_var(const struct op_call *c, struct nest *k)
{
    struct axes a;
    char x[128], fin[80];

    axes_open(c, &a);
    axes_dims(c, k, x);
    snprintf(fin, sizeof fin, "acc / %lld.0f", (long long)a.len);
    nest_stat(k, C_SUM, nest_expr(k, "%s", x), fin);
    snprintf(fin, sizeof fin, c->op->name[0] == 's' ? "sqrtf(acc / %lld.0f)" : "acc / %lld.0f",
             (long long)a.len - (c->i[2] ? 1 : 0));
    nest_stat(k, C_SUM, nest_expr(k, "(%s - s0) * (%s - s0)", x, x), fin);
    k->out = ax_id(k->arena, "s1");
    axes_store(c, k, false);
}

static void ref_logsumexp(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t k = 0; k < a.len; k++)
            max = fmax(max, in[0][axes_at(&a, r, k)]);
        for (int64_t k = 0; k < a.len; k++)
            sum += exp(in[0][axes_at(&a, r, k)] - max);
        out[r] = max + log(sum);
    }
}

static void lower_logsumexp(const struct op_call *c, struct nest *k)
{
    char x[128];

    axes_dims(c, k, x);
    nest_stat(k, C_MAX, nest_expr(k, "%s", x), NULL);
    nest_stat(k, C_SUM, nest_expr(k, "expf(%s - s0)", x), NULL);
    k->out = nest_expr(k, "s0 + logf(s1)");
    axes_store(c, k, false);
}

#define REDUCTION(NAME, ABOUT) \
    .name = NAME, .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw, .shape = axes_shape, \
    .ref = ref_simple, .lower = lower_simple, .key = axes_key, .about = ABOUT
#define AXES "dim=$dim, keepdim=$keep)"

const struct opdef reduce_ops[] = {
    {REDUCTION("sum", "the sum along the reduced axes"), .takes_ints = true,
     .spell = {{NULL, "torch.sum($0, " AXES}, {NULL, "$0.sum(" AXES}}},
    {REDUCTION("mean", "the mean along the reduced axes"), .range = RANGE_SAME,
     .spell = {{NULL, "torch.mean($0, " AXES}, {NULL, "$0.mean(" AXES}}},
    {REDUCTION("amax", "the largest along the reduced axes"), .range = RANGE_SAME,
     .spell = {{NULL, "torch.amax($0, " AXES}, {NULL, "$0.amax(" AXES}}},
    {REDUCTION("amin", "the smallest along the reduced axes"), .range = RANGE_SAME,
     .spell = {{NULL, "torch.amin($0, " AXES}, {NULL, "$0.amin(" AXES}}},
    {REDUCTION("norm1", "the sum of absolute values"), .spell = {{NULL, "torch.norm($0, p=1, " AXES}, {NULL,
        "$0.abs().sum(" AXES}}},
    {REDUCTION("norm2", "the Euclidean length"),
     .spell = {{NULL, "torch.linalg.vector_norm($0, " AXES}, {NULL, "torch.sqrt(torch.sum($0 ** 2, " AXES ")"}}},
    {REDUCTION("norm_inf", "the largest absolute value"), .range = RANGE_SAME, .spell = {{NULL,
        "$0.abs().amax(" AXES}}},
    {REDUCTION("sum_squares", "the sum of squares"), .spell = {{NULL, "($0 ** 2).sum(" AXES}, {NULL,
        "torch.sum($0 * $0, " AXES}}},
    {REDUCTION("mean_abs", "the mean absolute value"), .range = RANGE_SAME, .spell = {{NULL, "$0.abs().mean(" AXES}}},
    {.name = "prod", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw_one, .shape =
        axes_shape,
     .ref = ref_simple, .lower = lower_simple, .key = axes_key, .about = "the product along an axis", .domain = {0.9,
         1.1},
     .range = RANGE_FREE, .spell = {{NULL, "torch.prod($0, " AXES}, {NULL, "$0.prod(" AXES}}},
    {.name = "argmax", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw_one, .shape =
        shape_index,
     .ref = ref_simple, .lower = lower_simple, .key = axes_key, .about = "where the largest is", .range = RANGE_INDEX,
     .spell = {{NULL, "torch.argmax($0, " AXES}, {NULL, "$0.argmax(" AXES}}},
    {.name = "argmin", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw_one, .shape =
        shape_index,
     .ref = ref_simple, .lower = lower_simple, .key = axes_key, .about = "where the smallest is", .range = RANGE_INDEX,
     .spell = {{NULL, "torch.argmin($0, " AXES}, {NULL, "$0.argmin(" AXES}}},
    {.name = "var", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = draw_var, .shape = axes_shape,
     .ref = ref_var, .lower = lower_var, .key = axes_key, .about = "the variance",
     .spell = {{NULL, "torch.var($0, dim=$dim, unbiased=$b2, keepdim=$keep)"}, {NULL,
         "$0.var(dim=$dim, correction=$i2, keepdim=$keep)"}}},
    {.name = "std", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = draw_var, .shape = axes_shape,
     .ref = ref_var, .lower = lower_var, .key = axes_key, .about = "the standard deviation",
     .spell = {{NULL, "torch.std($0, dim=$dim, unbiased=$b2, keepdim=$keep)"}}},
    {.name = "logsumexp", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw, .shape =
        axes_shape,
     .ref = ref_logsumexp, .lower = lower_logsumexp, .key = axes_key, .about =
         "the logarithm of the sum of exponentials",
     .range = RANGE_FREE, .spell = {{NULL, "torch.logsumexp($0, " AXES}, {NULL, "$0.logsumexp(" AXES}}},
    {0}};
