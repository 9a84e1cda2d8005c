/* binary.c - elementwise operators of two tensors, the second of which broadcasts. */
#include <math.h>

#include "synth/ops/elementwise.h"

static double f_add(const double *x, const struct call *c)
{
    (void)c;
    return x[0] + x[1];
}

static double f_mul(const double *x, const struct call *c)
{
    (void)c;
    return x[0] * x[1];
}

const struct opdef binary_ops[] = {
    {UNARY("add", "binary", "x + y", f_add), .draw = map_draw_other, .commutes = true, .takes_ints = true,
     .about = "the sum of both", .spell = {{NULL, "$0 + $1"}, {NULL, "torch.add($0, $1)"}, {NULL, "$0.add($1)"}}},
    {UNARY("mul", "binary", "x * y", f_mul), .draw = map_draw_other, .commutes = true, .takes_ints = true,
     .about = "the product of both", .spell = {{NULL, "$0 * $1"}, {NULL, "torch.mul($0, $1)"}, {NULL, "$0.mul($1)"}}},
    {0}};
