/* hypothesis.h - which simple mistake explains a wrong output? Each is tried from the reference's values by plain
 * arithmetic: a factor that stands in the task or is an axis' length, axes exchanged, rows moved, an activation or a
 * bias that is missing, another reduction of an input. Pure; looks at HYPOTHESIS_SAMPLES elements at most. */
#ifndef MC_EVAL_HYPOTHESIS_H
#define MC_EVAL_HYPOTHESIS_H

#include "eval/check/tensor.h"
#include "eval/check/tolerance.h"

enum { HYPOTHESIS_SAMPLES = 2048 };

struct hypothesis_case {
    const struct tensor *want, *got; /* of one shape; a case of other dtypes or of complex numbers explains nothing */
    const struct tolerance *tol;     /* of want */
    const struct tensor *inputs;     /* of the draw */
    int n_inputs;
    const char *source;              /* the task's text, for the numbers in it; may be NULL */
};

/* Writes one sentence without a full stop, as "your result is the reference's without `* 3.0`"; "" if none explains
 * all elements that were looked at. */
void hypothesis_find(const struct hypothesis_case *c, char *out, size_t n);

/* The median of |got - want| over the elements outside of the tolerance; NaN if there are none that are finite. */
double hypothesis_typical_error(const struct hypothesis_case *c);

#endif
