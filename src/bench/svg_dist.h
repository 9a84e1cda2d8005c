/* svg_dist.h - distributions on a logarithmic axis: rows of dots with their quartiles, and shares above a threshold.
 * Rules as in svg.h. */
#ifndef MC_BENCH_SVG_DIST_H
#define MC_BENCH_SVG_DIST_H

#include "base/buf.h"

enum svg_unit { SVG_RATIO, SVG_MS }; /* "1.5x"; "12 ms", "3 s" */

/* Round values of a logarithmic axis from at most lo to at least hi: 1, 2, 5 x 10^k, over three decades powers of ten
 * only. Returns how many, at most max (>= 4). lo and hi are > 0. */
int svg_log_ticks(double lo, double hi, int max, double *ticks);

struct svg_mark {
    double x;
    const char *label;
};

struct svg_dist {
    const char *label;
    const double *x; /* (n), ascending, > 0 */
    int n;
};

/* A row per distribution: every value a dot (evenly thinned above 800), a box from the first to the third quartile, a
 * line at the median, whose value stands at the right. Marks, ascending, are labelled vertical lines. Rows without
 * values are left out; nothing is drawn when none is left. */
void svg_dists(struct buf *out, const char *title, enum svg_unit unit, const struct svg_dist *rows, int n,
               const struct svg_mark *marks, int n_marks);

struct svg_exceed {
    const char *label;
    const double *x, *weight; /* (n), x ascending and > 0; the share above p is the sum of weights of x > p */
    int n;
};

/* A falling staircase per series: which share exceeds p. At most 6 series. */
void svg_exceeds(struct buf *out, const char *title, const struct svg_exceed *series, int n,
                 const struct svg_mark *marks, int n_marks);

struct svg_difference {
    const char *label;
    double point, lo, hi; /* shares, -1 to 1; lo and hi NaN: no interval */
};

/* A row per difference on an axis of percentage points with zero in it: the point, its interval, the value at the
 * right. */
void svg_differences(struct buf *out, const char *title, const struct svg_difference *rows, int n);

#endif
