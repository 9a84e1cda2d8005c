/* compare.h - is this output the expected one, and if not, how does it differ? Pure; the judge's own arithmetic.
 *
 * Rules: same dtype, same shape, then every element within tolerance. NaN is expected only where the oracle is NaN,
 * an infinity only where the oracle has the same one; under kernelbench a NaN never passes. */
#ifndef MC_COMPARE_H
#define MC_COMPARE_H

#include "eval/check/tensor.h"
#include "eval/check/tolerance.h"

enum compare_kind { CMP_SAME, CMP_STRUCTURE, CMP_DTYPE, CMP_SHAPE, CMP_VALUES };

struct comparison {
    enum compare_kind kind;
    int64_t n, n_bad, n_nan;        /* elements, wrong ones, NaN among the wrong ones */
    int64_t n_unwritten;            /* of those, as the judge's fill of memory leaves it; -1: nobody looked */
    double max_abs, max_rel;        /* over all finite elements, right ones included; rel where |expected| > 0 */
    int64_t first, worst;           /* flat indices of wrong elements, -1 if none */
    double first_expected, first_got, worst_expected, worst_got;
    char first_at[64], worst_at[64]; /* "[3, 17]" */
    char pattern[160];              /* "last 5 of 37 rows", "" if nothing stands out */
    char hypothesis[200];           /* which simple mistake would explain the values; "" if none (hypothesis.h) */
    double typical;                 /* median error of the wrong elements; 0: nobody looked */
    char detail[160];               /* for structure, dtype and shape: "expected (4, 8), got (8, 4)" */
};

/* eager: the reference's output, gives dtype and shape; oracle: same shape in double, or eager itself. */
void compare_tensors(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got,
                     const struct tolerance *tol, struct comparison *ret);

/* Is this output right? An ill-conditioned one is (the draw decides nothing for it), and so is one of which the wanted
 * share is within the tolerance: no nan, no infinity and nothing beyond the limit among the others. */
bool compare_passes(const struct comparison *c, const struct tolerance *tol);

/* Adds what a tile of an output showed to what the tiles before it showed: 'from' is the tile's first element in
 * whole, which gives shape and dtype. *all starts as {.first = -1, .worst = -1}; the pattern is the first wrong
 * tile's, as long as no other one is wrong. Shape and dtype of the whole are the caller's to compare. */
void compare_add_tile(struct comparison *all, const struct tensor *whole, int64_t from, const struct comparison *tile);

/* An output that is no tensor: numbers, text, None. Integers and booleans are equal or wrong; floating numbers have
 * 1e-5 of the expected value. want, got: JSON scalars. True if they are the same; fills *ret. */
bool compare_number(const json_t *want, const json_t *got, struct comparison *ret);

/* Describes which elements of a row-major tensor are wrong: bad[i] != 0. Writes "" if no rule fits. Pure. */
void compare_pattern(const uint8_t *bad, const int64_t *shape, int ndim, char *out, size_t n);

#endif
