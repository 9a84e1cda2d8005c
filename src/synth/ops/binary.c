/* binary.c - elementwise operators of two tensors or three, which broadcast. draw_, shape_, ref_, lower_ and key_ are
 * the members of struct opdef (synth/op.h). */
#include <math.h>

#include "synth/ops/elementwise.h"

#define F2(NAME, EXPR) \
    static double f_##NAME(const double *v, const struct op_call *c) \
    { \
        double x = v[0], y = v[1], z = c->n_in > 2 ? v[2] : 0, a = c->f[0]; \
        (void)a, (void)z; \
        return EXPR; \
    }

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

F2(add, x + y)
F2(sub, x - y)
F2(mul, x *y)
F2(maximum, fmax(x, y))
F2(minimum, fmin(x, y))
F2(div_safe, x / (fabs(y) + 1))
F2(hypot, hypot(x, y))
F2(sq_diff, (x - y) * (x - y))
F2(gate, x *sigmoid(y))
F2(swiglu, x *sigmoid(x) * y)
F2(where, x > 0.003 ? x : y)
F2(lerp, x + a * (y - x))
F2(add_scaled, x + a * y)
F2(addcmul, x + a * y * z)
F2(mul_add, x *y + z)
F2(abs_diff, fabs(x - y))

static bool draw_weighted(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->f[0] = draw_constant(r, l, 0.1, 2);
    return map_draw_other(r, l, c);
}

/* With a weight of 1 the first operand would not matter. */
static bool draw_blend(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    do
        if (!draw_weighted(r, l, c))
            return false;
    while (c->f[0] == 1);
    return true;
}

static bool draw_three(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    return draw_weighted(r, l, c) && map_draw_other(r, l, c);
}

#define BIN(NAME, EXPR, ABOUT) UNARY(#NAME, "binary", EXPR, f_##NAME), .about = ABOUT

const struct opdef binary_ops[] = {
    {BIN(add, "x + y", "the sum of both"), .draw = map_draw_other, .commutes = true, .takes_ints = true,
     .spell = {{NULL, "$0 + $1"}, {NULL, "torch.add($0, $1)"}, {NULL, "$0.add($1)"}}},
    {BIN(sub, "x - y", "the difference"), .draw = map_draw_other, .takes_ints = true,
     .spell = {{NULL, "$0 - $1"}, {NULL, "torch.sub($0, $1)"}}},
    {BIN(mul, "x * y", "the product of both"), .draw = map_draw_other, .commutes = true, .takes_ints = true,
     .spell = {{NULL, "$0 * $1"}, {NULL, "torch.mul($0, $1)"}, {NULL, "$0.mul($1)"}}},
    {BIN(maximum, "fmaxf(x, y)", "the larger"), .draw = map_draw_other, .commutes = true, .range = RANGE_SAME,
     .spell = {{NULL, "torch.maximum($0, $1)"}, {NULL, "torch.max($0, $1)"}}},
    {BIN(minimum, "fminf(x, y)", "the smaller"), .draw = map_draw_other, .commutes = true, .range = RANGE_SAME,
     .spell = {{NULL, "torch.minimum($0, $1)"}, {NULL, "torch.min($0, $1)"}}},
    {BIN(div_safe, "x / (fabsf(y) + 1.0f)", "a quotient that stays finite"), .draw = map_draw_other,
     .spell = {{NULL, "$0 / ($1.abs() + 1.0)"}, {NULL, "torch.div($0, torch.abs($1) + 1.0)"}}},
    {BIN(hypot, "sqrtf(x * x + y * y)", "the length of (x, y)"), .draw = map_draw_other, .no_halves = true,
     .spell = {{NULL, "torch.hypot($0, $1)"}, {NULL, "torch.sqrt($0 ** 2 + $1 ** 2)"}}},
    {BIN(sq_diff, "(x - y) * (x - y)", "the squared difference"), .draw = map_draw_other,
     .spell = {{NULL, "($0 - $1) ** 2"}, {NULL, "torch.square($0 - $1)"}}},
    {BIN(abs_diff, "fabsf(x - y)", "the absolute difference"), .draw = map_draw_other,
     .spell = {{NULL, "torch.abs($0 - $1)"}, {NULL, "($0 - $1).abs()"}}},
    {BIN(gate, "x / (1.0f + expf(-y))", "x times the sigmoid of the gate"), .draw = map_draw_other, .range = RANGE_SAME,
     .spell = {{NULL, "$0 * torch.sigmoid($1)"}}},
    {BIN(swiglu, "x / (1.0f + expf(-x)) * y", "SiLU of x, times y"), .draw = map_draw_other,
     .spell = {{NULL, "F.silu($0) * $1"}}},
    {BIN(where, "x > 0.003f ? x : y", "x where it is positive, else y"), .draw = map_draw_other, .range = RANGE_SAME,
     .spell = {{NULL, "torch.where($0 > 0.003, $0, $1)"}}},
    {BIN(lerp, "x + $f0 * (y - x)", "between x and y"), .draw = draw_blend,
     .spell = {{NULL, "torch.lerp($0, $1, $f0)"}, {NULL, "$0 + $f0 * ($1 - $0)"}}},
    {BIN(add_scaled, "x + $f0 * y", "x and a multiple of y"), .draw = draw_weighted,
     .spell = {{NULL, "torch.add($0, $1, alpha=$f0)"}, {NULL, "$0 + $f0 * $1"}}},
    {BIN(addcmul, "x + $f0 * y * z", "x and a multiple of the product of y and z"), .draw = draw_three,
     .spell = {{NULL, "torch.addcmul($0, $1, $2, value=$f0)"}, {NULL, "$0 + $f0 * $1 * $2"}}},
    {BIN(mul_add, "x * y + z", "a product and a sum"), .draw = draw_three, .spell = {{NULL, "$0 * $1 + $2"}}},
    {0}};
