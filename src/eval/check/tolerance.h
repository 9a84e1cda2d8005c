/* tolerance.h - how far an honest implementation may be from the fp64 oracle, per output and draw. Pure.
 *
 * Protocol strict. For an output with oracle o (computed in double), element i passes iff
 *     |candidate_i - o_i| <= abs + rel * |o_i|
 *     rel    a few hundred rounding units of the output type for fp32 (intrinsics, reordered products), at least
 *            2 u sqrt(m); two units for half precision; of 8 bits one unit, or none where the reference has marked the
 *            elements that other orders of sums round to a neighbour
 *     abs    min(max(k1 n1, k2 n2), cap), what cancellation does to sums and differences; never below the smallest
 *            distance of two values of the output type
 *     n1     max_i (|eager_i - o_i| - u |o_i|), at least 0: the reference's own error at its own precision, beyond the
 *            rounding of the answer, which rel allows already
 *     n2     max_i |o(x (1 + d))_i - o(x)_i|: what rounding the inputs alone does; |d| <= u(lowest type), random;
 *            the largest of several tries where the output has few elements (runner/reference.py)
 *     m      largest tensor's elements / smallest output elements, or the terms of the longest sum on the way
 *     k1, k2 fp32: 32, and max(32, 4 sqrt(m)), m at most 2^20. Serial summation of m terms errs like u m / sqrt 6,
 *            rounded inputs like u sqrt(m / 3): their ratio grows like sqrt(m / 2); 4 sqrt(m) leaves a margin.
 *            Half precision: 4, and 2 (float16) or 1 (bfloat16). Sums are in fp32 there; what is left are roundings of
 *            values in between, which n1 and n2 measure.
 *     cap    1/256 of max_i |o_i|, or 16 units of the lowest type if that is more (bfloat16: 1/16): zeros, or any
 *            constant, can then not pass.
 * A sum of m positive terms in serial order errs like 0.23 u sqrt(m) of itself, 2 u sqrt(m) is eight times that.
 *
 * usable: n1 and n2 are within half of the cap, and k1 n1 and k2 n2 within 16 caps. Else the draw is
 * ill-conditioned for this output: no value is wrong. decides: usable, and zeros would be wrong. A task none of whose
 * draws decides cannot be judged; whatever passes it proves nothing.
 * Integer and boolean outputs are exact, except where eager and oracle differ: there either value passes.
 *
 * Protocol kernelbench: allclose as published, |eager - candidate| <= t + t |candidate|, t = 1e-4, or 1e-2 for half
 * precision (KernelBench eval.py, get_tolerance_for_precision). Every draw decides, as published. */
#ifndef MC_TOLERANCE_H
#define MC_TOLERANCE_H

#include <stdbool.h>

#include "eval/check/tensor.h"

struct tolerance {
    double abs, rel;
    double matched;   /* share of an output's elements that must be within; 0: all of them */
    double most;      /* no element may be farther away, whatever the share; 0: no such limit */
    bool usable;      /* false: skip this draw for this output */
    bool decides;     /* a right answer and zeros are told apart */
    bool allclose;    /* scale rel by the candidate's value, not by the expected one */
};

struct noise {
    double n1, n2;    /* as above */
    double max_abs;   /* max_i |o_i| over finite elements */
    double fan_in;    /* m */
    double rel;       /* fp32: no less than this, of a draw whose terms are alike; 0 of others. 8 bits: this */
};

/* out: type of the output; low: the lowest precision that takes part (inputs, parameters, output). */
struct tolerance tolerance_strict(enum dtype out, enum dtype low, const struct noise *n);
/* A sidecar's own, for floating outputs; 'matched' and 'most' as above: SOL-ExecBench's required_matched_ratio and
 * max_error_cap. */
struct own_tolerance {
    double abs, rel, matched, most;
};
struct tolerance tolerance_own(const struct own_tolerance *own, const struct noise *n);
struct tolerance tolerance_kernelbench(enum dtype dtype);

#endif
