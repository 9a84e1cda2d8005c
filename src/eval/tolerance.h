/* tolerance.h - how far an honest implementation may be from the fp64 oracle, per output and draw. Pure.
 *
 * Protocol strict. For an output with oracle o (computed in double), element i passes iff
 *     |candidate_i - o_i| <= abs + rel * |o_i|
 *     rel = R(dtype)                  a few hundred rounding units: intrinsics, reordered products
 *     abs = min(K * noise, cap)       what cancellation does to sums and differences
 *     noise = max(n1, n2)
 *       n1 = max_i |eager_i - o_i|                the reference's own error at its own precision
 *       n2 = max_i |o(x (1 + d))_i - o(x)_i|      what rounding the inputs alone does; |d| <= u(dtype), random
 *     K = max(32, 4 sqrt(m)), m = largest input elements / smallest output elements, at most 2^20
 *         (serial fp32 summation of m terms errs like u m / sqrt 6, rounded inputs like u sqrt(m / 3): their ratio
 *          grows like sqrt(m / 2); 4 sqrt(m) leaves room for the tail)
 *     cap = 1/256 of max_i |o_i|: zeros, or any constant, can then not pass.
 * If K * noise exceeds the cap by more than 16 the draw decides nothing (ill-conditioned) and is skipped.
 * Integer and boolean outputs are exact, except where eager and oracle differ: there either value passes.
 *
 * Protocol kernelbench: allclose as published, |eager - candidate| <= t + t |candidate|, t = 1e-4, or 1e-2 for half
 * precision (KernelBench eval.py, get_tolerance_for_precision). */
#ifndef MC_TOLERANCE_H
#define MC_TOLERANCE_H

#include <stdbool.h>

#include "eval/tensor.h"

struct tolerance {
    double abs, rel;
    bool usable;      /* false: skip this draw for this output */
    bool allclose;    /* scale rel by the candidate's value, not by the expected one */
};

struct noise {
    double n1, n2;    /* as above */
    double max_abs;   /* max_i |o_i| over finite elements */
    double fan_in;    /* m */
};

/* dtype: the lowest precision that takes part (inputs, parameters, output). */
struct tolerance tolerance_strict(enum dtype dtype, const struct noise *n);
struct tolerance tolerance_kernelbench(enum dtype dtype);

#endif
