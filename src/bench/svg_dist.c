/* svg_dist.c - see svg_dist.h. Coordinates are CSS pixels of the viewBox. */
#include "bench/svg_dist.h"

#include <math.h>
#include <stdio.h>

#include "bench/stats.h"
#include "bench/svg.h"

#define W 760
#define LEFT 110
#define RIGHT 96
#define TOP 30
#define ROW 40
#define MAX_DOTS 800
#define MAX_TICKS 24

struct axis {
    double lo, hi; /* log10 */
    double ticks[MAX_TICKS];
    int n;
};

static double svg_dist_axis_px(const struct axis *a, double x)
{
    double t = (log10(x) - a->lo) / (a->hi - a->lo);

    return LEFT + (W - LEFT - RIGHT) * fmin(fmax(t, 0), 1);
}

int svg_log_ticks(double lo, double hi, int max, double *ticks)
{
    static const double steps[] = {1, 2, 5};
    int n = 0, first = (int)floor(log10(lo) + 1e-9), last = (int)ceil(log10(hi) - 1e-9), every = 1;
    bool fine = last - first <= 3 && 3 * (last - first) + 1 <= max;

    if (fine) { /* the last one not above lo, up to the first one not below hi */
        for (int k = first; k <= last; k++)
            for (int i = 0; i < 3; i++) {
                double t = steps[i] * pow(10, k);
                if (n && ticks[0] < t && t <= lo * (1 + 1e-9))
                    n = 0;
                ticks[n++] = t;
                if (t >= hi * (1 - 1e-9) && n > 1)
                    return n;
            }
        return n;
    }
    while ((last - first + every - 1) / every + 1 > max)
        every++;
    for (int k = first; n < max; k += every) {
        ticks[n++] = pow(10, k);
        if (k >= last)
            break;
    }
    return n;
}

static struct axis svg_dist_axis_of(double lo, double hi)
{
    struct axis a = {0};

    if (!(hi > lo * 1.2)) { /* one value, or nearly */
        lo /= 1.5;
        hi *= 1.5;
    }
    a.n = svg_log_ticks(lo, hi, 12, a.ticks);
    a.lo = log10(a.ticks[0]);
    a.hi = log10(a.ticks[a.n - 1]);
    return a;
}

static void svg_dist_value_text(struct buf *out, double v, enum svg_unit unit)
{
    if (unit == SVG_RATIO)
        buf_addf(out, "%.3g&#215;", v);
    else if (v >= 1000)
        buf_addf(out, "%.3g&#8239;s", v / 1000);
    else
        buf_addf(out, "%.3g&#8239;ms", v);
}

static void svg_dist_draw_axis(struct buf *out, const struct axis *a, enum svg_unit unit, double bottom)
{
    for (int i = 0; i < a->n; i++) {
        double x = svg_dist_axis_px(a, a->ticks[i]);
        buf_addf(out, "<line class=grid x1=%.1f x2=%.1f y1=%d y2=%.1f /><text class=tick text-anchor=middle x=%.1f "
                      "y=%.1f>", x, x,
                 TOP - 4, bottom, x, bottom + 15);
        svg_dist_value_text(out, a->ticks[i], unit);
        buf_adds(out, "</text>");
    }
}

static bool svg_dist_on_axis(const struct axis *a, double x)
{
    return log10(x) > a->lo - 1e-9 && log10(x) < a->hi + 1e-9;
}

/* Labels stand above the plot, on the far sides of two marks that are close to each other. */
static void svg_dist_draw_marks(struct buf *out, const struct axis *a, const struct svg_mark *m, int n, double bottom)
{
    for (int i = 0; i < n; i++) {
        double x = svg_dist_axis_px(a, m[i].x);
        bool left = i + 1 < n && svg_dist_axis_px(a, m[i + 1].x) - x < 100,
            right = i > 0 && x - svg_dist_axis_px(a, m[i - 1].x) < 100;
        if (!svg_dist_on_axis(a, m[i].x))
            continue;
        buf_addf(out, "<line class=mark x1=%.1f x2=%.1f y1=%d y2=%.1f /><text class=stage text-anchor=%s x=%.1f y=%d>",
                 x, x, TOP - 8,
                 bottom, right ? "start" : left ? "end" : "middle", right ? x - 2 : left ? x + 2 : x, TOP - 13);
        html_text(out, m[i].label);
        buf_adds(out, "</text>");
    }
}

static void svg_dist_open_figure(struct buf *out, const char *title)
{
    buf_adds(out, "<figure class=wide><figcaption><b>");
    html_text(out, title);
    buf_adds(out, "</b>");
}

/* ---- rows ---- */

static void svg_dist_dots(struct buf *out, const struct axis *a, const struct svg_dist *d, double y)
{
    int every = d->n / MAX_DOTS + 1;

    buf_adds(out, "<path class=dots d=\"");
    for (int i = 0; i < d->n; i += every) {
        double jitter = fmod((i / every + 1) * 0.6180339887, 1) - 0.5; /* spread without chance: golden ratio */
        buf_addf(out, "M%.1f %.1fh0", svg_dist_axis_px(a, d->x[i]), y + 20 * jitter);
    }
    buf_adds(out, "\"/>");
}

static void svg_dist_row(struct buf *out, const struct axis *a, const struct svg_dist *d, enum svg_unit unit, double y)
{
    double q1 = svg_dist_axis_px(a, stats_quantile(d->x, d->n, 0.25)),
        q3 = svg_dist_axis_px(a, stats_quantile(d->x, d->n, 0.75));
    double median = stats_quantile(d->x, d->n, 0.5), m = svg_dist_axis_px(a, median);

    buf_addf(out, "<text class=label text-anchor=end x=%d y=%.1f>", LEFT - 12, y + 4.5);
    html_text(out, d->label);
    buf_adds(out, "</text>");
    if (d->n >= 4)
        buf_addf(out, "<rect class=box x=%.1f y=%.1f width=%.1f height=26 rx=4 />", q1, y - 13, fmax(q3 - q1, 1));
    svg_dist_dots(out, a, d, y);
    buf_addf(out, "<path class=median d=\"M%.1f %.1fv30\"/><text class=value x=%d y=%.1f>", m, y - 15, W - RIGHT + 14,
             y + 4.5);
    svg_dist_value_text(out, median, unit);
    buf_addf(out, " <tspan class=count>n&#8239;%d</tspan></text>", d->n);
}

void svg_dists(struct buf *out, const char *title, enum svg_unit unit, const struct svg_dist *rows, int n,
               const struct svg_mark *marks, int n_marks)
{
    double lo = INFINITY, hi = 0, bottom;
    struct axis a;
    int shown = 0;

    for (int i = 0; i < n; i++)
        if (rows[i].n) {
            lo = fmin(lo, rows[i].x[0]);
            hi = fmax(hi, rows[i].x[rows[i].n - 1]);
            shown++;
        }
    if (!shown)
        return;
    a = svg_dist_axis_of(lo, hi);
    bottom = TOP + shown * ROW;
    svg_dist_open_figure(out, title);
    buf_addf(out, " <span class=key>box: middle half; line: median</span></figcaption>"
                  "<svg viewBox=\"0 0 %d %.0f\" role=img>", W, bottom + 22);
    svg_dist_draw_axis(out, &a, unit, bottom);
    svg_dist_draw_marks(out, &a, marks, n_marks, bottom);
    for (int i = 0, k = 0; i < n; i++)
        if (rows[i].n)
            svg_dist_row(out, &a, &rows[i], unit, TOP + k++ * ROW + ROW / 2.0);
    buf_adds(out, "</svg></figure>\n");
}

/* ---- shares above a threshold ---- */

#define PLOT 200

static double svg_dist_share_py(double share)
{
    return TOP + PLOT * (1 - fmin(fmax(share, 0), 1));
}

static void svg_dist_stairs(struct buf *out, const struct axis *a, const struct svg_exceed *s, int k)
{
    double left = 0;

    for (int i = 0; i < s->n; i++)
        left += s->weight[i];
    buf_addf(out, "<path class=\"line c%d\" d=\"M%d %.1f", k, LEFT, svg_dist_share_py(left));
    for (int i = 0; i < s->n; i++) {
        left -= s->weight[i];
        buf_addf(out, "H%.1fV%.1f", svg_dist_axis_px(a, s->x[i]), svg_dist_share_py(left));
    }
    buf_addf(out, "H%d\"/>", W - RIGHT);
}

void svg_exceeds(struct buf *out, const char *title, const struct svg_exceed *series, int n,
                 const struct svg_mark *marks, int n_marks)
{
    double lo = 0.5, hi = 2;
    struct axis a;

    for (int i = 0; i < n; i++)
        if (series[i].n) {
            lo = fmin(lo, series[i].x[0]);
            hi = fmax(hi, series[i].x[series[i].n - 1]);
        }
    a = svg_dist_axis_of(lo, hi);
    svg_dist_open_figure(out, title);
    for (int i = 0; i < n; i++) {
        buf_addf(out, " <span class=key><i class=c%d></i>", i);
        html_text(out, series[i].label);
        buf_adds(out, "</span>");
    }
    buf_addf(out, "</figcaption><svg viewBox=\"0 0 %d %d\" role=img>", W, TOP + PLOT + 22);
    svg_dist_draw_axis(out, &a, SVG_RATIO, TOP + PLOT);
    for (int p = 0; p <= 100; p += 25)
        buf_addf(out, "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f /><text class=tick text-anchor=end x=%d y=%.1f>"
                      "%d%%</text>", LEFT,
                 W - RIGHT, svg_dist_share_py(p / 100.0), svg_dist_share_py(p / 100.0), LEFT - 8,
                 svg_dist_share_py(p / 100.0) + 4, p);
    svg_dist_draw_marks(out, &a, marks, n_marks, TOP + PLOT);
    for (int i = n - 1; i >= 0; i--)
        svg_dist_stairs(out, &a, &series[i], i);
    buf_adds(out, "</svg></figure>\n");
}

/* ---- differences ---- */

static double svg_dist_diff_px(const double *ticks, int n, double x)
{
    return LEFT + (W - LEFT - RIGHT) * (x - ticks[0]) / (ticks[n - 1] - ticks[0]);
}

static void svg_dist_diff_row(struct buf *out, const struct svg_difference *d, const double *ticks, int n, double y)
{
    buf_addf(out, "<text class=label text-anchor=end x=%d y=%.1f>", LEFT - 12, y + 4.5);
    html_text(out, d->label);
    buf_adds(out, "</text>");
    if (isfinite(d->lo) && isfinite(d->hi))
        buf_addf(out, "<line class=ci x1=%.1f x2=%.1f y1=%.1f y2=%.1f />", svg_dist_diff_px(ticks, n, d->lo),
                 svg_dist_diff_px(ticks, n, d->hi), y, y);
    buf_addf(out, "<circle class=point cx=%.1f cy=%.1f r=6 /><text class=value x=%d y=%.1f>%+.1f</text>",
             svg_dist_diff_px(ticks, n, d->point), y, W - RIGHT + 14, y + 4.5, 100 * d->point);
}

void svg_differences(struct buf *out, const char *title, const struct svg_difference *rows, int n)
{
    double lo = 0, hi = 0, ticks[16], bottom = TOP + n * 34;
    int n_ticks;

    for (int i = 0; i < n; i++) {
        lo = fmin(fmin(lo, rows[i].point), isfinite(rows[i].lo) ? rows[i].lo : 0);
        hi = fmax(fmax(hi, rows[i].point), isfinite(rows[i].hi) ? rows[i].hi : 0);
    }
    n_ticks = svg_ticks(fmin(lo, -0.05), fmax(hi, 0.05), 8, ticks);
    svg_dist_open_figure(out, title);
    buf_addf(out, " <span class=key>percentage points; bar: 95 %% interval</span></figcaption><svg viewBox=\"0 0 %d "
                  "%.0f\" role=img>",
             W, bottom + 22);
    for (int i = 0; i < n_ticks; i++) {
        double x = svg_dist_diff_px(ticks, n_ticks, ticks[i]);
        buf_addf(out, "<line class=%s x1=%.1f x2=%.1f y1=%d y2=%.1f /><text class=tick text-anchor=middle x=%.1f "
                      "y=%.1f>",
                 fabs(ticks[i]) < 1e-9 ? "zero" : "grid", x, x, TOP - 12, bottom, x, bottom + 15);
        buf_addf(out, fabs(ticks[i]) < 1e-9 ? "0</text>" : "%+.3g</text>", 100 * ticks[i]);
    }
    for (int i = 0; i < n; i++)
        svg_dist_diff_row(out, &rows[i], ticks, n_ticks, TOP + i * 34 + 15);
    buf_adds(out, "</svg></figure>\n");
}
