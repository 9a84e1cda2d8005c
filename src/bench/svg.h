/* svg.h - the report's charts as inline SVG text. Colours are CSS classes (report_style.c), so that one drawing
 * serves the light and the dark page. All functions append to out and never fail; non-finite values are left out. */
#ifndef MC_BENCH_SVG_H
#define MC_BENCH_SVG_H

#include <stdbool.h>

#include "base/buf.h"

void html_text(struct buf *out, const char *s); /* escaped for text and attributes */

/* At most max round tick values (1, 2, 2.5, 5 x 10^k) that cover [lo, hi]; returns how many, the first <= lo, the last
 * >= hi. max >= 2, room for max + 2 values. */
int svg_ticks(double lo, double hi, int max, double *ticks);

struct svg_series {
    const char *name;
    const double *x, *y; /* (n), x ascending */
    int n;
};

struct svg_divider {
    double x;
    const char *label; /* of what begins at x */
};

struct svg_lines {
    const char *title, *unit; /* unit: NULL, or what y is in */
    bool percent;             /* y is a share: 0.25 is shown as 25% */
    bool from_zero;
    struct svg_series series[3];
    int n_series;
    const struct svg_divider *dividers;
    int n_dividers;
};
/* A line per series: the values faint, their moving mean strong when there are many. With data for the page's
 * script. */
void svg_lines(struct buf *out, const struct svg_lines *c);

struct svg_bar {
    const char *label;
    double value[2];    /* shares */
    double error;       /* half width of an interval around value[1]; NaN: none */
    double ends[2];     /* the interval itself, where it is not symmetric; ends[1] > 0: used in place of error */
};
void svg_bars(struct buf *out, const char *title, const char *const names[2], const struct svg_bar *bars, int n);

struct svg_stack {
    const char *label;
    const double *parts; /* (n_parts) counts */
};
/* One horizontal bar of shares per row; part k has the CSS class "k<k>" of classes[k]. */
void svg_stacks(struct buf *out, const char *title, const struct svg_stack *rows, int n, const char *const *names,
                const char *const *classes, int n_parts);

#endif
