/* activation.c - activations: elementwise, no operand but x. */
#include <math.h>

#include "synth/ops/elementwise.h"

static double f_relu(const double *x, const struct call *c)
{
    (void)c;
    return x[0] > 0 ? x[0] : 0;
}

static double f_sigmoid(const double *x, const struct call *c)
{
    (void)c;
    return 1 / (1 + exp(-x[0]));
}

static double f_leaky_relu(const double *x, const struct call *c)
{
    return x[0] > 0 ? x[0] : c->f[0] * x[0];
}

static bool draw_slope(struct rng *r, const struct limits *l, struct call *c)
{
    c->f[0] = draw_constant(r, l, 0.01, 0.5);
    return true;
}

const struct opdef activation_ops[] = {
    {UNARY("relu", "activation", "fmaxf(x, 0.0f)", f_relu), .range = RANGE_MONOTONE, .about =
        "zero for negative values",
     .spell = {{NULL, "torch.relu($0)"}, {NULL, "F.relu($0)"}, {"nn.ReLU()", "$m($0)"}, {NULL, "$0.relu()"}}},
    {UNARY("sigmoid", "activation", "1.0f / (1.0f + expf(-x))", f_sigmoid), .range = RANGE_POSITIVE_UNIT,
     .about = "1 / (1 + exp(-x))",
     .spell = {{NULL, "torch.sigmoid($0)"}, {"nn.Sigmoid()", "$m($0)"}, {NULL, "$0.sigmoid()"}}},
    {UNARY("leaky_relu", "activation", "x > 0.0f ? x : $f0 * x", f_leaky_relu), .draw = draw_slope, .range =
        RANGE_MONOTONE,
     .about = "a small slope for negative values",
     .spell = {{NULL, "F.leaky_relu($0, negative_slope=$f0)"}, {"nn.LeakyReLU($f0)", "$m($0)"},
               {"nn.LeakyReLU(negative_slope=$f0)", "$m($0)"}}},
    {0}};
