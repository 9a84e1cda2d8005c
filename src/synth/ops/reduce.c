/* reduce.c - reductions over one axis or several. Attributes as in axes.h. */
#include "synth/ops/axes.h"

static void ref_sum(const struct call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double s = 0;
        for (int64_t k = 0; k < a.len; k++)
            s += in[0][axes_at(&a, r, k)];
        out[r] = s;
    }
}

static void lower_sum(const struct call *c, struct nest *k)
{
    char x[128];

    axes_dims(c, k, x);
    nest_stat(k, C_SUM, nest_expr(k, "%s", x), NULL);
    axes_store(c, k, false);
}

const struct opdef reduce_ops[] = {
    {.name = "sum", .family = "reduction", .class = NEST_REDUCE, .ranks = 0x3e, .draw = axes_draw, .shape = axes_shape,
     .ref = ref_sum, .lower = lower_sum, .key = axes_key, .about = "the sum along the reduced axes", .takes_ints = true,
     .spell = {{NULL, "torch.sum($0, dim=$dim, keepdim=$keep)"}, {NULL, "$0.sum(dim=$dim, keepdim=$keep)"}}},
    {0}};
