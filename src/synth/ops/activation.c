/* activation.c - activations: elementwise, no tensor but x. Attributes: f[0], f[1] constants of the function. draw_,
 * shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>

#include "synth/ops/elementwise.h"

/* fp64 meaning of a row, as an expression over x and the constants a and b. */
#define F1(NAME, EXPR) \
    static double f_##NAME(const double *v, const struct op_call *c) \
    { \
        double x = v[0], a = c->f[0], b = c->f[1]; \
        (void)a, (void)b; \
        return EXPR; \
    }

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

F1(relu, x > 0 ? x : 0)
F1(sigmoid, sigmoid(x))
F1(leaky_relu, x > 0 ? x : a * x)
F1(tanh, tanh(x))
F1(gelu, 0.5 * x * (1 + erf(x * 0.70710678118654752)))
F1(gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
F1(silu, x * sigmoid(x))
F1(mish, x * tanh(softplus(x)))
F1(softplus, softplus(x))
F1(softsign, x / (1 + fabs(x)))
F1(logsigmoid, -softplus(-x))
F1(elu, x > 0 ? x : a * expm1(x))
F1(selu, 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)))
F1(celu, x > 0 ? x : a * expm1(x / a))
F1(hardtanh, x < a ? a : x > b ? b : x)
F1(hardsigmoid, fmin(fmax(x / 6 + 0.5, 0), 1))
F1(hardswish, x * fmin(fmax(x + 3, 0), 6) / 6)
F1(relu6, fmin(fmax(x, 0), 6))
F1(threshold, x > a ? x : b)
F1(hardshrink, fabs(x) > a ? x : 0)
F1(softshrink, x > a ? x - a : x < -a ? x + a : 0)
F1(tanhshrink, x - tanh(x))
F1(clamp_min, fmax(x, a))
F1(clamp_max, fmin(x, a))
F1(relu_square, x > 0 ? x * x : 0)

static double f_prelu(const double *v, const struct op_call *c)
{
    (void)c;
    return v[0] > 0 ? v[0] : v[1] * v[0];
}

static bool draw_slope(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, 0.01, 0.5);
    return true;
}

static bool draw_alpha(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, 0.25, 2);
    return true;
}

static bool draw_bounds(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, -2, 0.1);
    c->f[1] = c->f[0] + draw_constant(r, l, 0.25, 3);
    return true;
}

static bool draw_limit(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, -1, 2);
    c->f[1] = draw_constant(r, l, -1, 1);
    return true;
}

static bool draw_prelu(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)r, (void)l;
    if (c->in[0].rank < 2)
        return false;
    c->in[1] = (struct tdesc){.rank = 1, .dtype = c->in[0].dtype, .d = {c->in[0].d[1]}};
    c->n_in = 2;
    return true;
}

static bool shape_prelu(struct op_call *c)
{
    c->out = c->in[0];
    return true;
}

static void ref_prelu(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out), inner = 1;

    for (int d = 2; d < c->in[0].rank; d++)
        inner *= c->in[0].d[d];
    for (int64_t i = 0; i < n; i++) {
        double v[2] = {in[0][i], in[1][i / inner % c->in[0].d[1]]};
        out[i] = f_prelu(v, c);
    }
}

static void lower_prelu(const struct op_call *c, struct nest *k)
{
    const char *const *names = output_names[c->out.rank - 1];
    static const char *const id[] = {"x"};
    struct ax *x;

    for (int d = 0; d < c->out.rank; d++)
        nest_dim(k, 0, c->out.d[d], "%s", names[d]);
    x = nest_broadcast(k, 0, names, c->out.rank);
    k->out = ax_subst(k->arena, nest_expr(k, "x > 0.0f ? x : L1(%s) * x", names[1]), id, &x, 1);
}

static bool key_prelu(const struct op_call *c, const char *key, struct buf *out)
{
    if (strcmp(key, "ch"))
        return false;
    buf_addf(out, "%d", c->in[1].d[0]);
    return true;
}

#define ACT(NAME, EXPR, ABOUT) UNARY(#NAME, "activation", EXPR, f_##NAME), .about = ABOUT

const struct opdef activation_ops[] = {
    {ACT(relu, "fmaxf(x, 0.0f)", "zero for negative values"), .range = RANGE_MONOTONE,
     .spell = {{NULL, "torch.relu($0)"}, {NULL, "F.relu($0)"}, {"nn.ReLU()", "$m($0)"}, {NULL, "$0.relu()"},
               {NULL, "$0.clamp(min=0)"}}},
    {ACT(sigmoid, "1.0f / (1.0f + expf(-x))", "1 / (1 + exp(-x))"), .range = RANGE_POSITIVE_UNIT,
     .spell = {{NULL, "torch.sigmoid($0)"}, {"nn.Sigmoid()", "$m($0)"}, {NULL, "$0.sigmoid()"}}},
    {ACT(leaky_relu, "x > 0.0f ? x : $f0 * x", "a small slope for negative values"), .draw = draw_slope,
     .range = RANGE_MONOTONE,
     .spell = {{NULL, "F.leaky_relu($0, negative_slope=$f0)"}, {"nn.LeakyReLU($f0)", "$m($0)"},
               {"nn.LeakyReLU(negative_slope=$f0)", "$m($0)"}}},
    {ACT(tanh, "tanhf(x)", "the hyperbolic tangent"), .range = RANGE_UNIT,
     .spell = {{NULL, "torch.tanh($0)"}, {"nn.Tanh()", "$m($0)"}, {NULL, "$0.tanh()"}}},
    {ACT(gelu, "0.5f * x * (1.0f + erff(x * 0.70710678f))", "x times the normal distribution function"),
     .range = RANGE_SAME, .spell = {{NULL, "F.gelu($0)"}, {"nn.GELU()", "$m($0)"}}},
    {ACT(gelu_tanh, "0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)))", "GELU by tanh"),
     .range = RANGE_SAME, .spell = {{NULL, "F.gelu($0, approximate='tanh')"}, {"nn.GELU(approximate='tanh')",
         "$m($0)"}}},
    {ACT(silu, "x / (1.0f + expf(-x))", "x times its sigmoid"), .range = RANGE_SAME,
     .spell = {{NULL, "F.silu($0)"}, {"nn.SiLU()", "$m($0)"}, {NULL, "$0 * torch.sigmoid($0)"}}},
    {ACT(mish, "x * tanhf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))))", "x times tanh of its softplus"),
     .range = RANGE_SAME, .spell = {{NULL, "F.mish($0)"}, {"nn.Mish()", "$m($0)"}, {NULL,
         "$0 * torch.tanh(F.softplus($0))"}}},
    {ACT(softplus, "fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)))", "log(1 + exp(x))"), .range = RANGE_MONOTONE,
     .spell = {{NULL, "F.softplus($0)"}, {"nn.Softplus()", "$m($0)"}}},
    {ACT(softsign, "x / (1.0f + fabsf(x))", "x / (1 + |x|)"), .range = RANGE_UNIT,
     .spell = {{NULL, "F.softsign($0)"}, {"nn.Softsign()", "$m($0)"}, {NULL, "$0 / (1 + torch.abs($0))"}}},
    {ACT(logsigmoid, "fminf(x, 0.0f) - log1pf(expf(-fabsf(x)))", "the logarithm of the sigmoid"), .range =
        RANGE_MONOTONE,
     .spell = {{NULL, "F.logsigmoid($0)"}, {"nn.LogSigmoid()", "$m($0)"}}},
    {ACT(elu, "x > 0.0f ? x : $f0 * expm1f(x)", "an exponential for negative values"), .draw = draw_alpha,
     .range = RANGE_MONOTONE, .spell = {{NULL, "F.elu($0, alpha=$f0)"}, {"nn.ELU(alpha=$f0)", "$m($0)"}}},
    {ACT(selu, "1.05070098f * (x > 0.0f ? x : 1.67326324f * expm1f(x))", "the scaled exponential unit"),
     .range = RANGE_MONOTONE, .spell = {{NULL, "torch.selu($0)"}, {NULL, "F.selu($0)"}, {"nn.SELU()", "$m($0)"}}},
    {ACT(celu, "x > 0.0f ? x : $f0 * expm1f(x / $f0)", "a smooth exponential for negative values"), .draw = draw_alpha,
     .range = RANGE_MONOTONE, .spell = {{NULL, "F.celu($0, alpha=$f0)"}, {"nn.CELU(alpha=$f0)", "$m($0)"}}},
    {ACT(hardtanh, "fminf(fmaxf(x, $f0), $f1)", "x between two bounds"), .draw = draw_bounds, .range = RANGE_MONOTONE,
     .spell = {{NULL, "F.hardtanh($0, min_val=$f0, max_val=$f1)"}, {"nn.Hardtanh(min_val=$f0, max_val=$f1)",
         "$m($0)"}}},
    {UNARY("clamp", "activation", "fminf(fmaxf(x, $f0), $f1)", f_hardtanh), .about = "x between two bounds",
     .draw = draw_bounds, .range = RANGE_MONOTONE,
     .spell = {{NULL, "torch.clamp($0, min=$f0, max=$f1)"}, {NULL, "$0.clamp($f0, $f1)"}, {NULL,
         "torch.clamp($0, $f0, $f1)"}}},
    {ACT(hardsigmoid, "fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f)", "a sigmoid of straight lines"),
     .range = RANGE_POSITIVE_UNIT, .spell = {{NULL, "F.hardsigmoid($0)"}, {"nn.Hardsigmoid()", "$m($0)"}}},
    {ACT(hardswish, "x * fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f", "x times a sigmoid of straight lines"),
     .range = RANGE_SAME, .spell = {{NULL, "F.hardswish($0)"}, {"nn.Hardswish()", "$m($0)"}}},
    {ACT(relu6, "fminf(fmaxf(x, 0.0f), 6.0f)", "ReLU, at most six"), .range = RANGE_MONOTONE,
     .spell = {{NULL, "F.relu6($0)"}, {"nn.ReLU6()", "$m($0)"}}},
    {ACT(threshold, "x > $f0 ? x : $f1", "a constant at and below a threshold"), .draw = draw_limit,
     .spell = {{NULL, "F.threshold($0, $f0, $f1)"}, {"nn.Threshold($f0, $f1)", "$m($0)"}}},
    {ACT(hardshrink, "fabsf(x) > $f0 ? x : 0.0f", "zero near zero"), .draw = draw_alpha, .range = RANGE_SAME,
     .no_halves = true, /* PyTorch rounds the threshold to the tensor's own type */
     .spell = {{NULL, "F.hardshrink($0, lambd=$f0)"}, {"nn.Hardshrink(lambd=$f0)", "$m($0)"}}},
    {ACT(softshrink, "x > $f0 ? x - $f0 : (x < -$f0 ? x + $f0 : 0.0f)", "x moved towards zero"), .draw = draw_alpha,
     .range = RANGE_SAME, .spell = {{NULL, "F.softshrink($0, lambd=$f0)"}, {"nn.Softshrink(lambd=$f0)", "$m($0)"}}},
    {ACT(tanhshrink, "x - tanhf(x)", "x less its hyperbolic tangent"), .range = RANGE_SAME,
     .spell = {{NULL, "F.tanhshrink($0)"}, {"nn.Tanhshrink()", "$m($0)"}, {NULL, "$0 - torch.tanh($0)"}}},
    {ACT(clamp_min, "fmaxf(x, $f0)", "at least a bound"), .draw = draw_limit, .range = RANGE_MONOTONE,
     .spell = {{NULL, "torch.clamp($0, min=$f0)"}, {NULL, "$0.clamp(min=$f0)"}, {NULL, "$0.clamp_min($f0)"}}},
    {ACT(clamp_max, "fminf(x, $f0)", "at most a bound"), .draw = draw_limit, .range = RANGE_MONOTONE,
     .spell = {{NULL, "torch.clamp($0, max=$f0)"}, {NULL, "$0.clamp(max=$f0)"}}},
    {ACT(relu_square, "x > 0.0f ? x * x : 0.0f", "the square of the positive part"),
     .spell = {{NULL, "torch.relu($0) ** 2"}, {NULL, "F.relu($0).square()"}}},
    {.name = "prelu", .family = "activation", .class = NEST_MAP, .ranks = 0x3c, .n_params = 1, .param = {"weight"},
     .draw = draw_prelu, .shape = shape_prelu, .ref = ref_prelu, .lower = lower_prelu, .key = key_prelu, .range =
         RANGE_SAME,
     .about = "a learned slope for negative values", .spell = {{"nn.PReLU(num_parameters=$ch)", "$m($0)"}}},
    {0}};
