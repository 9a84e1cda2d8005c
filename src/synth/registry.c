/* registry.c - the rows. Every elementwise row gives the same function three times (torch, CUDA, fp64 C); the test
 * suite runs all three against each other, so a slip in one column cannot survive.
 *
 * Rows are total: operators with a bad domain carry their guard in the expression (log1p of |x|, division by 1+|y|),
 * and steps are left out, because a value within rounding of a jump has no tolerance. */
#include "synth/registry.h"

#include <math.h>
#include <string.h>

#define FAR 1e30 /* no guard */

/* X(name, kind, torch, cuda, C expression, max_in, flags) */
#define ELEMENTWISE(X)                                                                                                 \
    X(relu, OP_UNARY, "torch.relu($x)", "fmaxf($x, 0.0f)", x > 0 ? x : 0, FAR, OP_CORE)                                \
    X(sigmoid, OP_UNARY, "torch.sigmoid($x)", "1.0f / (1.0f + expf(-$x))", 1 / (1 + exp(-x)), FAR, OP_CORE)            \
    X(tanh, OP_UNARY, "torch.tanh($x)", "tanhf($x)", tanh(x), FAR, OP_CORE)                                            \
    X(silu, OP_UNARY, "F.silu($x)", "$x / (1.0f + expf(-$x))", x / (1 + exp(-x)), FAR, OP_CORE)                        \
    X(gelu, OP_UNARY, "F.gelu($x)", "0.5f * $x * (1.0f + erff($x * 0.70710678f))",                                     \
      0.5 * x * (1 + erf(x * 0.70710678118654752)), FAR, OP_CORE)                                                      \
    X(gelu_tanh, OP_UNARY, "F.gelu($x, approximate=\"tanh\")",                                                         \
      "0.5f * $x * (1.0f + tanhf(0.79788456f * ($x + 0.044715f * $x * $x * $x)))",                                     \
      0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))), 1e6, 0)                                  \
    X(softplus, OP_UNARY, "F.softplus($x)", "$x > 20.0f ? $x : log1pf(expf($x))", x > 20 ? x : log1p(exp(x)), FAR,     \
      OP_CORE)                                                                                                         \
    X(mish, OP_UNARY, "F.mish($x)", "$x * tanhf($x > 20.0f ? $x : log1pf(expf($x)))",                                  \
      x * tanh(x > 20 ? x : log1p(exp(x))), FAR, 0)                                                                    \
    X(softsign, OP_UNARY, "F.softsign($x)", "$x / (1.0f + fabsf($x))", x / (1 + fabs(x)), FAR, OP_CORE)                \
    X(logsigmoid, OP_UNARY, "F.logsigmoid($x)", "fminf($x, 0.0f) - log1pf(expf(-fabsf($x)))",                          \
      fmin(x, 0) - log1p(exp(-fabs(x))), FAR, 0)                                                                       \
    X(elu, OP_UNARY, "F.elu($x)", "$x > 0.0f ? $x : expm1f($x)", x > 0 ? x : expm1(x), FAR, OP_CORE)                   \
    X(celu, OP_SCALAR, "F.celu($x, $c)", "$x > 0.0f ? $x : $c * expm1f($x / $c)", x > 0 ? x : c * expm1(x / c), FAR,   \
      0)                                                                                                               \
    X(selu, OP_UNARY, "F.selu($x)", "1.05070099f * ($x > 0.0f ? $x : 1.67326324f * expm1f($x))",                       \
      1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)), FAR, 0)                                        \
    X(hardtanh, OP_UNARY, "F.hardtanh($x)", "fminf(fmaxf($x, -1.0f), 1.0f)", fmin(fmax(x, -1), 1), FAR, 0)             \
    X(relu6, OP_UNARY, "F.relu6($x)", "fminf(fmaxf($x, 0.0f), 6.0f)", fmin(fmax(x, 0), 6), FAR, 0)                     \
    X(hardsigmoid, OP_UNARY, "F.hardsigmoid($x)", "fminf(fmaxf($x / 6.0f + 0.5f, 0.0f), 1.0f)",                        \
      fmin(fmax(x / 6 + 0.5, 0), 1), FAR, 0)                                                                           \
    X(hardswish, OP_UNARY, "F.hardswish($x)", "$x * fminf(fmaxf($x + 3.0f, 0.0f), 6.0f) / 6.0f",                       \
      x * fmin(fmax(x + 3, 0), 6) / 6, FAR, 0)                                                                         \
    X(leaky_relu, OP_SCALAR, "F.leaky_relu($x, $c)", "$x > 0.0f ? $x : $c * $x", x > 0 ? x : c * x, FAR, OP_CORE)      \
    X(softshrink, OP_SCALAR, "F.softshrink($x, $c)", "$x > $c ? $x - $c : ($x < -$c ? $x + $c : 0.0f)",                \
      x > c ? x - c : (x < -c ? x + c : 0), FAR, 0)                                                                    \
    X(tanhshrink, OP_UNARY, "F.tanhshrink($x)", "$x - tanhf($x)", x - tanh(x), FAR, 0)                                 \
    X(clamp, OP_SCALAR, "torch.clamp($x, -$c, $c)", "fminf(fmaxf($x, -$c), $c)", fmin(fmax(x, -c), c), FAR, OP_CORE)   \
    X(clamp_min, OP_SCALAR, "torch.clamp($x, min=$c)", "fmaxf($x, $c)", fmax(x, c), FAR, 0)                            \
    X(clamp_max, OP_SCALAR, "torch.clamp($x, max=$c)", "fminf($x, $c)", fmin(x, c), FAR, 0)                            \
    X(abs, OP_UNARY, "torch.abs($x)", "fabsf($x)", fabs(x), FAR, OP_CORE)                                              \
    X(neg, OP_UNARY, "-$x", "-$x", -x, FAR, OP_CORE)                                                                   \
    X(square, OP_UNARY, "torch.square($x)", "$x * $x", x *x, 1e4, OP_CORE)                                             \
    X(cube, OP_UNARY, "torch.pow($x, 3)", "$x * $x * $x", x *x *x, 1e3, 0)                                             \
    X(sin, OP_UNARY, "torch.sin($x)", "sinf($x)", sin(x), 300, OP_CORE)                                                \
    X(cos, OP_UNARY, "torch.cos($x)", "cosf($x)", cos(x), 300, OP_CORE)                                                \
    X(atan, OP_UNARY, "torch.atan($x)", "atanf($x)", atan(x), FAR, 0)                                                  \
    X(asinh, OP_UNARY, "torch.asinh($x)", "asinhf($x)", asinh(x), FAR, 0)                                              \
    X(erf, OP_UNARY, "torch.erf($x)", "erff($x)", erf(x), FAR, 0)                                                      \
    X(exp_neg, OP_UNARY, "torch.exp(-torch.abs($x))", "expf(-fabsf($x))", exp(-fabs(x)), 1e3, OP_CORE)                 \
    X(log1p, OP_UNARY, "torch.log1p(torch.abs($x))", "log1pf(fabsf($x))", log1p(fabs(x)), FAR, OP_CORE)                \
    X(sqrt, OP_UNARY, "torch.sqrt($x * $x + 1.0)", "sqrtf($x * $x + 1.0f)", sqrt(x *x + 1), 1e6, 0)                    \
    X(rsqrt, OP_UNARY, "torch.rsqrt($x * $x + 1.0)", "rsqrtf($x * $x + 1.0f)", 1 / sqrt(x * x + 1), 1e6, 0)            \
    X(recip, OP_UNARY, "1.0 / (torch.abs($x) + 1.0)", "1.0f / (fabsf($x) + 1.0f)", 1 / (fabs(x) + 1), FAR, 0)          \
    X(add_s, OP_SCALAR, "$x + $c", "$x + $c", x + c, FAR, OP_CORE)                                                     \
    X(sub_s, OP_SCALAR, "$x - $c", "$x - $c", x - c, FAR, OP_CORE)                                                     \
    X(rsub_s, OP_SCALAR, "$c - $x", "$c - $x", c - x, FAR, 0)                                                          \
    X(mul_s, OP_SCALAR, "$x * $c", "$x * $c", x *c, FAR, OP_CORE)                                                      \
    X(div_s, OP_SCALAR, "$x / $c", "$x / $c", x / c, FAR, OP_CORE)                                                     \
    X(near_one, OP_UNARY, "torch.tanh($x) * 0.01 + 1.0", "tanhf($x) * 0.01f + 1.0f", tanh(x) * 0.01 + 1, FAR,          \
      OP_CORE | OP_NEAR_ONE)                                                                                           \
    X(add, OP_BINARY, "$x + $y", "$x + $y", x + y, FAR, OP_CORE | OP_COMMUTES)                                         \
    X(sub, OP_BINARY, "$x - $y", "$x - $y", x - y, FAR, OP_CORE)                                                       \
    X(mul, OP_BINARY, "$x * $y", "$x * $y", x *y, 1e5, OP_CORE | OP_COMMUTES)                                          \
    X(maximum, OP_BINARY, "torch.maximum($x, $y)", "fmaxf($x, $y)", fmax(x, y), FAR, OP_CORE | OP_COMMUTES)            \
    X(minimum, OP_BINARY, "torch.minimum($x, $y)", "fminf($x, $y)", fmin(x, y), FAR, OP_CORE | OP_COMMUTES)            \
    X(div, OP_BINARY, "$x / (torch.abs($y) + 1.0)", "$x / (fabsf($y) + 1.0f)", x / (fabs(y) + 1), FAR, 0)              \
    X(gate, OP_BINARY, "$x * torch.sigmoid($y)", "$x / (1.0f + expf(-$y))", x / (1 + exp(-y)), FAR, 0)                 \
    X(swiglu, OP_BINARY, "F.silu($x) * $y", "$x / (1.0f + expf(-$x)) * $y", x / (1 + exp(-x)) * y, 1e5, 0)             \
    X(hypot, OP_BINARY, "torch.hypot($x, $y)", "hypotf($x, $y)", hypot(x, y), 1e6, OP_COMMUTES)                        \
    X(sq_diff, OP_BINARY, "torch.square($x - $y)", "($x - $y) * ($x - $y)", (x - y) * (x - y), 1e4, OP_COMMUTES)

#define FUNCTION(name, kind, torch, cuda, expr, max_in, flags)                                                         \
    static double f_##name(double x, double y, double c)                                                               \
    {                                                                                                                  \
        (void)y, (void)c;                                                                                              \
        return expr;                                                                                                   \
    }
ELEMENTWISE(FUNCTION)

#define ROW(name, kind, torch, cuda, expr, max_in, flags)                                                              \
    {#name, kind, torch, cuda, f_##name, max_in, flags, ANCHOR_NONE, NULL, {0}},

#define ADD "$a + $b"
#define MAX "fmaxf($a, $b)"
#define MIN "fminf($a, $b)"
#define SUM_T {"0.0f", "a + $v", ADD, "a", NULL}
#define MEAN_T {"0.0f", "a + $v", ADD, "a / $n", NULL}
#define AMAX_T {"-INFINITY", "fmaxf(a, $v)", MAX, "a", NULL}
#define AMIN_T {"INFINITY", "fminf(a, $v)", MIN, "a", NULL}
#define L1_T {"0.0f", "a + fabsf($v)", ADD, "a", NULL}
#define L2_T {"0.0f", "a + $v * $v", ADD, "sqrtf(a)", NULL}

/* A reduction's family, its axis in torch text ("" for all), its template group. */
#define REDUCTIONS(prefix, dim, anchor, family)                                                                        \
    {prefix "_sum", OP_ANCHOR, "torch.sum($x" dim ")", NULL, NULL, FAR, OP_CORE, anchor, family, SUM_T},               \
    {prefix "_mean", OP_ANCHOR, "torch.mean($x" dim ")", NULL, NULL, FAR, OP_CORE, anchor, family, MEAN_T},            \
    {prefix "_amax", OP_ANCHOR, "torch.amax($x" dim ")", NULL, NULL, FAR, OP_CORE, anchor, family, AMAX_T},            \
    {prefix "_amin", OP_ANCHOR, "torch.amin($x" dim ")", NULL, NULL, FAR, OP_CORE, anchor, family, AMIN_T},            \
    {prefix "_l1", OP_ANCHOR, "torch.sum(torch.abs($x)" dim ")", NULL, NULL, FAR, 0, anchor, family, L1_T},            \
    {prefix "_l2", OP_ANCHOR, "torch.sqrt(torch.sum($x * $x" dim "))", NULL, NULL, 1e6, 0, anchor, family, L2_T}

#define NORM(name, torch, flags, init, acc, merge, fin, apply)                                                         \
    {name, OP_ANCHOR, torch, NULL, NULL, 1e6, flags, ANCHOR_NORM, "norm", {init, acc, merge, fin, apply}}
#define SCAN(name, torch, flags, init, acc, merge, max_in)                                                             \
    {name, OP_ANCHOR, torch, NULL, NULL, max_in, flags, ANCHOR_SCAN, "scan", {init, acc, merge, "a", NULL}}
#define COPY(name, torch, flags, source)                                                                               \
    {name, OP_ANCHOR, torch, NULL, NULL, FAR, flags, ANCHOR_COPY, "transpose", {NULL, NULL, NULL, NULL, source}}
#define MATMUL(name, torch, flags)                                                                                     \
    {name, OP_ANCHOR, torch, NULL, NULL, 1e4, flags, ANCHOR_MATMUL, "matmul", {0}}

const struct op ops[] = {
    ELEMENTWISE(ROW)
    REDUCTIONS("row", ", dim=1", ANCHOR_ROW_REDUCE, "rowreduce"),
    REDUCTIONS("col", ", dim=0", ANCHOR_COL_REDUCE, "colreduce"),
    REDUCTIONS("full", "", ANCHOR_FULL_REDUCE, "fullreduce"),
    {"softmax", OP_ANCHOR, "torch.softmax($x, dim=1)", NULL, NULL, FAR, OP_CORE, ANCHOR_SOFTMAX, "softmax",
     {.apply = "expf($v - m) / s"}},
    {"log_softmax", OP_ANCHOR, "torch.log_softmax($x, dim=1)", NULL, NULL, FAR, OP_CORE, ANCHOR_SOFTMAX, "softmax",
     {.apply = "$v - m - logf(s)"}},
    NORM("rms_norm", "$x * torch.rsqrt(torch.mean($x * $x, dim=1, keepdim=True) + 1e-5)", OP_CORE, "0.0f",
        "a + $v * $v",
         ADD, "rsqrtf(a / N + 1e-5f)", "$v * s"),
    NORM("l2_norm", "F.normalize($x, dim=1)", OP_CORE, "0.0f", "a + $v * $v", ADD, "fmaxf(sqrtf(a), 1e-12f)", "$v / s"),
    NORM("l1_norm", "F.normalize($x, p=1.0, dim=1)", 0, "0.0f", "a + fabsf($v)", ADD, "fmaxf(a, 1e-12f)", "$v / s"),
    NORM("center", "$x - torch.mean($x, dim=1, keepdim=True)", OP_CORE, "0.0f", "a + $v", ADD, "a / N", "$v - s"),
    NORM("max_norm", "$x / (torch.amax(torch.abs($x), dim=1, keepdim=True) + 1.0)", 0, "0.0f", "fmaxf(a, fabsf($v))",
         MAX, "a + 1.0f", "$v / s"),
    {"layer_norm", OP_ANCHOR, "F.layer_norm($x, (N,))", NULL, NULL, 1e6, OP_CORE, ANCHOR_NORM2, "norm",
     {"0.0f", NULL, ADD, "rsqrtf(s / N + 1e-5f)", "($v - u) * s"}},
    MATMUL("matmul", "$x @ $y", OP_CORE),
    MATMUL("matmul_tn", "$x.t() @ $y", OP_CORE | OP_A_T),
    MATMUL("matmul_nt", "$x @ $y.t()", OP_CORE | OP_B_T),
    {"linear", OP_ANCHOR, "self.fc($x)", NULL, NULL, 1e4, OP_CORE | OP_B_T, ANCHOR_LINEAR, "linear", {0}},
    COPY("transpose", "$x.t().contiguous()", OP_CORE | OP_TRANSPOSES, "j * N + r"),
    COPY("flip_cols", "torch.flip($x, [1])", OP_CORE, "r * N + N - 1 - j"),
    COPY("flip_rows", "torch.flip($x, [0])", OP_CORE, "(M - 1 - r) * N + j"),
    COPY("roll_cols", "torch.roll($x, 1, 1)", 0, "r * N + (j + N - 1) % N"),
    COPY("roll_rows", "torch.roll($x, 1, 0)", 0, "(r + M - 1) % M * N + j"),
    SCAN("cumsum", "torch.cumsum($x, dim=1)", OP_CORE, "0.0f", "a + $v", ADD, 1e5),
    SCAN("cumsum_rev", "torch.cumsum($x.flip(1), dim=1).flip(1)", OP_CORE | OP_REVERSE, "0.0f", "a + $v", ADD, 1e5),
    SCAN("cumsum_excl", "torch.cumsum($x, dim=1) - $x", OP_CORE | OP_EXCLUSIVE, "0.0f", "a + $v", ADD, 1e5),
    SCAN("cumprod", "torch.cumprod($x, dim=1)", OP_CORE | OP_NEEDS_NEAR, "1.0f", "a * $v", "$a * $b", 1.5),
    SCAN("cummax", "torch.cummax($x, dim=1)[0]", 0, "-INFINITY", "fmaxf(a, $v)", MAX, FAR),
};
const size_t n_ops = sizeof ops / sizeof ops[0];

const char *const families[] = {"unary",   "binary", "broadcast", "chain",  "rowreduce", "colreduce", "fullreduce",
                                "softmax", "norm",   "matmul",    "linear", "transpose", "scan"};
const size_t n_families = sizeof families / sizeof families[0];

const struct op *op_find(const char *name)
{
    for (size_t i = 0; i < n_ops; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}

int family_index(const char *name)
{
    for (size_t i = 0; i < n_families; i++)
        if (!strcmp(families[i], name))
            return (int)i;
    return -1;
}
