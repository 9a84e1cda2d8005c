/* softmax.c - softmax and its relatives along one axis: two statistics of a row, then every element once more. */
#include <math.h>

#include "synth/ops/axes.h"

static void ref_softmax(const struct call *c, const double *const in[], double *out)
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

static void lower_softmax(const struct call *c, struct nest *k)
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
    {0}};
