/* softmax.c - softmax and its relatives along one axis: two statistics of a row, then every element once more. draw_,
 * shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>

#include "synth/ops/axes.h"

/* The softmax of each row in doubles, shifted by its maximum. */
static void ref_softmax(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t k = 0; k < a.len; k++)
            max = fmax(max, in[0][axes_at(&a, r, k)]);
        for (int64_t k = 0; k < a.len; k++)
            sum += exp(in[0][axes_at(&a, r, k)] - max);
        for (int64_t k = 0; k < a.len; k++)
            out[axes_at(&a, r, k)] = exp(in[0][axes_at(&a, r, k)] - max) / sum;
    }
}

static void ref_log_softmax(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    ref_softmax(c, in, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = log(out[i]);
}

/* The softmin of each row in doubles, shifted by its minimum. */
static void ref_softmin(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double min = INFINITY, sum = 0;
        for (int64_t k = 0; k < a.len; k++)
            min = fmin(min, in[0][axes_at(&a, r, k)]);
        for (int64_t k = 0; k < a.len; k++)
            sum += exp(min - in[0][axes_at(&a, r, k)]);
        for (int64_t k = 0; k < a.len; k++)
            out[axes_at(&a, r, k)] = exp(min - in[0][axes_at(&a, r, k)]) / sum;
    }
}

static void lower_log_softmax(const struct op_call *c, struct nest *k)
{
    char x[128];

    axes_dims(c, k, x);
    nest_stat(k, C_MAX, nest_expr(k, "%s", x), NULL);
    nest_stat(k, C_SUM, nest_expr(k, "expf(%s - s0)", x), NULL);
    k->out = nest_expr(k, "%s - s0 - logf(s1)", x);
    axes_store(c, k, true);
}

static void lower_softmin(const struct op_call *c, struct nest *k)
{
    char x[128];

    axes_dims(c, k, x);
    nest_stat(k, C_MIN, nest_expr(k, "%s", x), NULL);
    nest_stat(k, C_SUM, nest_expr(k, "expf(s0 - %s)", x), NULL);
    k->out = nest_expr(k, "expf(s0 - %s) / s1", x);
    axes_store(c, k, true);
}

static void lower_softmax(const struct op_call *c, struct nest *k)
{
    char x[128];
    struct ax *v;

    axes_dims(c, k, x);
    v = nest_expr(k, "%s", x);
    nest_stat(k, C_MAX, v, NULL);
    nest_stat(k, C_SUM, nest_expr(k, "expf(%s - s0)", x), NULL);
    k->out = nest_expr(k, "expf(%s - s0) / s1", x);
    axes_store(c, k, true);
}

const struct opdef softmax_ops[] = {
    {.name = "softmax", .family = "softmax", .class = NEST_ROW, .ranks = 0x3e, .draw = axes_draw_one, .shape =
        axes_shape_same,
     .ref = ref_softmax, .lower = lower_softmax, .key = axes_key, .range = RANGE_POSITIVE_UNIT,
     .about = "exponentials that add up to one along the axis",
     .spell = {{NULL, "torch.softmax($0, dim=$dim)"}, {NULL, "F.softmax($0, dim=$dim)"}, {"nn.Softmax(dim=$dim)",
         "$m($0)"},
               {NULL, "$0.softmax(dim=$dim)"}}},
    {.name = "log_softmax", .family = "softmax", .class = NEST_ROW, .ranks = 0x3e, .draw = axes_draw_one,
     .shape = axes_shape_same, .ref = ref_log_softmax, .lower = lower_log_softmax, .key = axes_key,
     .about = "the logarithm of the softmax",
     .spell = {{NULL, "torch.log_softmax($0, dim=$dim)"}, {NULL, "F.log_softmax($0, dim=$dim)"},
               {"nn.LogSoftmax(dim=$dim)", "$m($0)"}}},
    {.name = "softmin", .family = "softmax", .class = NEST_ROW, .ranks = 0x3e, .draw = axes_draw_one,
     .shape = axes_shape_same, .ref = ref_softmin, .lower = lower_softmin, .key = axes_key, .range =
         RANGE_POSITIVE_UNIT,
     .about = "the softmax of the negatives", .spell = {{NULL, "F.softmin($0, dim=$dim)"}, {"nn.Softmin(dim=$dim)",
         "$m($0)"}}},
    {0}};
