/* math.c - functions of one value, and of a value and a constant (f[0]). Domains keep results finite and well
 * conditioned. draw_, shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>

#include "synth/ops/elementwise.h"

#define F1(NAME, EXPR) \
    static double f_##NAME(const double *v, const struct op_call *c) \
    { \
        double x = v[0], a = c->f[0]; \
        (void)a; \
        return EXPR; \
    }

F1(exp, exp(x))
F1(expm1, expm1(x))
F1(exp2, exp2(x))
F1(log, log(x))
F1(log1p, log1p(x))
F1(log2, log2(x))
F1(log10, log10(x))
F1(sqrt, sqrt(x))
F1(rsqrt, 1 / sqrt(x))
F1(reciprocal, 1 / x)
F1(square, x *x)
F1(cube, x *x *x)
F1(sin, sin(x))
F1(cos, cos(x))
F1(tan, tan(x))
F1(asin, asin(x))
F1(acos, acos(x))
F1(atan, atan(x))
F1(sinh, sinh(x))
F1(cosh, cosh(x))
F1(asinh, asinh(x))
F1(atanh, atanh(x))
F1(abs, fabs(x))
F1(neg, -x)
F1(floor, floor(x))
F1(ceil, ceil(x))
F1(trunc, trunc(x))
F1(round, rint(x))
F1(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
F1(frac, x - trunc(x))
F1(erf, erf(x))
F1(erfc, erfc(x))
F1(sinc, x == 0 ? 1 : sin(3.14159265358979324 * x) / (3.14159265358979324 * x))
F1(logit, log(x / (1 - x)))
F1(add_scalar, x + a)
F1(sub_scalar, x - a)
F1(rsub_scalar, a - x)
F1(mul_scalar, x *a)
F1(div_scalar, x / a)
F1(pow_scalar, pow(x, a))
F1(masked_fill, x > a ? -1 : x)
F1(where_zero, x > a ? x : 0)
F1(step, x > a ? 1 : 0)

static bool draw_factor(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    do
        c->f[0] = draw_constant(r, l, -4, 4);
    while (fabs(c->f[0]) < 0.01);
    return true;
}

static bool draw_exponent(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    static const int tenths[] = {5, 15, 25, 30, -5, -10};

    (void)l;
    c->f[0] = draw_pick(r, tenths, 6) / 10.0;
    return true;
}

static bool draw_level(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, -0.99, 0.99) + 0.003; /* inputs on a grid lie beside it, not on it */
    return true;
}

#define MATH(NAME, EXPR, ABOUT) UNARY(#NAME, "math", EXPR, f_##NAME), .about = ABOUT
#define TORCH(NAME) .spell = {{NULL, "torch." NAME "($0)"}, {NULL, "$0." NAME "()"}}

const struct opdef math_ops[] = {
    {MATH(exp, "expf(x)", "the exponential"), .domain = {-60, 10}, .range = RANGE_MONOTONE, TORCH("exp")},
    {MATH(expm1, "expm1f(x)", "exp(x) - 1"), .domain = {-60, 10}, .range = RANGE_MONOTONE, TORCH("expm1")},
    {MATH(exp2, "exp2f(x)", "two to the power of x"), .domain = {-60, 12}, .range = RANGE_MONOTONE, TORCH("exp2")},
    {MATH(log, "logf(x)", "the natural logarithm"), .domain = {0.01, 1e6}, .range = RANGE_MONOTONE, TORCH("log")},
    {MATH(log1p, "log1pf(x)", "log(1 + x)"), .domain = {-0.9, 1e6}, .range = RANGE_MONOTONE, TORCH("log1p")},
    {MATH(log2, "log2f(x)", "the binary logarithm"), .domain = {0.01, 1e6}, .range = RANGE_MONOTONE, TORCH("log2")},
    {MATH(log10, "log10f(x)", "the decimal logarithm"), .domain = {0.01, 1e6}, .range = RANGE_MONOTONE, TORCH("log10")},
    {MATH(sqrt, "sqrtf(x)", "the square root"), .domain = {0.001, 1e8}, .range = RANGE_MONOTONE, TORCH("sqrt")},
    {MATH(rsqrt, "rsqrtf(x)", "one over the square root"), .domain = {0.01, 1e8}, .range = RANGE_MONOTONE,
        TORCH("rsqrt")},
    {MATH(reciprocal, "1.0f / x", "one over x"), .domain = {0.05, 1e8}, .range = RANGE_MONOTONE,
     .spell = {{NULL, "torch.reciprocal($0)"}, {NULL, "1.0 / $0"}}},
    {MATH(square, "x * x", "the square"), .spell = {{NULL, "torch.square($0)"}, {NULL, "$0 ** 2"}, {NULL,
        "$0.pow(2)"}}},
    {MATH(cube, "x * x * x", "the third power"), .domain = {-30, 30}, .spell = {{NULL, "$0 ** 3"}, {NULL,
        "torch.pow($0, 3)"}}},
    {MATH(sin, "sinf(x)", "the sine"), .domain = {-300, 300}, .range = RANGE_UNIT, TORCH("sin")},
    {MATH(cos, "cosf(x)", "the cosine"), .domain = {-300, 300}, .range = RANGE_UNIT, TORCH("cos")},
    {MATH(tan, "tanf(x)", "the tangent"), .domain = {-1.2, 1.2}, .range = RANGE_MONOTONE, TORCH("tan")},
    {MATH(asin, "asinf(x)", "the inverse sine"), .domain = {-0.95, 0.95}, .range = RANGE_MONOTONE, TORCH("asin")},
    {MATH(acos, "acosf(x)", "the inverse cosine"), .domain = {-0.95, 0.95}, .range = RANGE_MONOTONE, TORCH("acos")},
    {MATH(atan, "atanf(x)", "the inverse tangent"), .range = RANGE_MONOTONE, TORCH("atan")},
    {MATH(sinh, "sinhf(x)", "the hyperbolic sine"), .domain = {-8, 8}, .range = RANGE_MONOTONE, TORCH("sinh")},
    {MATH(cosh, "coshf(x)", "the hyperbolic cosine"), .domain = {-8, 8}, TORCH("cosh")},
    {MATH(asinh, "asinhf(x)", "the inverse hyperbolic sine"), .range = RANGE_MONOTONE, TORCH("asinh")},
    {MATH(atanh, "atanhf(x)", "the inverse hyperbolic tangent"), .domain = {-0.95, 0.95}, .range = RANGE_MONOTONE,
     TORCH("atanh")},
    {MATH(abs, "fabsf(x)", "the absolute value"), .range = RANGE_SAME, TORCH("abs")},
    {MATH(neg, "-x", "the negative"), .range = RANGE_MONOTONE, .takes_ints = true,
     .spell = {{NULL, "-$0"}, {NULL, "torch.neg($0)"}}},
    {MATH(floor, "floorf(x)", "the next integer below"), .range = RANGE_MONOTONE, TORCH("floor")},
    {MATH(ceil, "ceilf(x)", "the next integer above"), .range = RANGE_MONOTONE, TORCH("ceil")},
    {MATH(trunc, "truncf(x)", "the integer part"), .range = RANGE_MONOTONE, TORCH("trunc")},
    {MATH(round, "rintf(x)", "the nearest integer, ties to even"), .range = RANGE_MONOTONE, TORCH("round")},
    {MATH(sign, "x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f)", "the sign"), .range = RANGE_UNIT, TORCH("sign")},
    {MATH(frac, "x - truncf(x)", "the fractional part"), .range = RANGE_UNIT, TORCH("frac")},
    {MATH(erf, "erff(x)", "the error function"), .range = RANGE_UNIT, TORCH("erf")},
    {MATH(erfc, "erfcf(x)", "one less the error function"), .domain = {-4, 4}, .range = RANGE_MONOTONE, TORCH("erfc")},
    {MATH(sinc, "x == 0.0f ? 1.0f : sinf(3.14159265f * x) / (3.14159265f * x)", "sin(pi x) / (pi x)"), .domain = {-20,
        20},
     .range = RANGE_UNIT, .spell = {{NULL, "torch.sinc($0)"}}},
    {MATH(logit, "logf(x / (1.0f - x))", "the inverse of the sigmoid"), .domain = {0.05, 0.95}, .range = RANGE_MONOTONE,
     TORCH("logit")},
    {MATH(add_scalar, "x + $f0", "x and a constant"), .draw = draw_factor, .range = RANGE_MONOTONE,
     .spell = {{NULL, "$0 + $f0"}, {NULL, "torch.add($0, $f0)"}}},
    {MATH(sub_scalar, "x - $f0", "x less a constant"), .draw = draw_factor, .range = RANGE_MONOTONE,
     .spell = {{NULL, "$0 - $f0"}}},
    {MATH(rsub_scalar, "$f0 - x", "a constant less x"), .draw = draw_factor, .range = RANGE_MONOTONE,
     .spell = {{NULL, "$f0 - $0"}}},
    {MATH(mul_scalar, "x * $f0", "x times a constant"), .draw = draw_factor, .range = RANGE_MONOTONE,
     .spell = {{NULL, "$0 * $f0"}, {NULL, "torch.mul($0, $f0)"}, {NULL, "$f0 * $0"}}},
    {MATH(div_scalar, "x / $f0", "x by a constant"), .draw = draw_factor, .range = RANGE_MONOTONE,
     .spell = {{NULL, "$0 / $f0"}, {NULL, "torch.div($0, $f0)"}}},
    {MATH(pow_scalar, "powf(x, $f0)", "a power of x"), .draw = draw_exponent, .domain = {0.1, 50}, .range =
        RANGE_MONOTONE,
     .spell = {{NULL, "torch.pow($0, $f0)"}, {NULL, "$0 ** $f0"}, {NULL, "$0.pow($f0)"}}},
    {MATH(masked_fill, "x > $f0 ? -1.0f : x", "a constant where x exceeds a level"), .draw = draw_level,
     .spell = {{NULL, "$0.masked_fill($0 > $f0, -1.0)"}}},
    {MATH(where_zero, "x > $f0 ? x : 0.0f", "x where it exceeds a level"), .draw = draw_level, .range = RANGE_SAME,
     .spell = {{NULL, "torch.where($0 > $f0, $0, torch.zeros_like($0))"}}},
    {MATH(step, "x > $f0 ? 1.0f : 0.0f", "one where x exceeds a level"), .draw = draw_level, .range =
        RANGE_POSITIVE_UNIT,
     .spell = {{NULL, "($0 > $f0).to($0.dtype)"}}},
    {0}};
