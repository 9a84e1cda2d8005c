/* svg.c - see svg.h. Coordinates are CSS pixels of the viewBox; the page scales the drawing. */
#include "bench/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void html_text(struct buf *out, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&': buf_adds(out, "&amp;"); break;
        case '<': buf_adds(out, "&lt;"); break;
        case '>': buf_adds(out, "&gt;"); break;
        case '"': buf_adds(out, "&quot;"); break;
        case '\'': buf_adds(out, "&#39;"); break;
        default: /* control characters are not allowed in HTML */
            buf_addc(out, (unsigned char)*s < 32 && *s != '\n' && *s != '\t' ? ' ' : *s);
        }
    }
}

int svg_ticks(double lo, double hi, int max, double *ticks)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    double unit;
    int n = 0;

    if (!(hi > lo)) {
        hi = lo + (lo ? fabs(lo) * 0.1 : 1);
        lo = lo ? lo - fabs(lo) * 0.1 : 0;
    }
    unit = pow(10, floor(log10((hi - lo) / max)));
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        double step = steps[k] * unit, first = floor(lo / step + 1e-9), last = ceil(hi / step - 1e-9);
        if (last - first + 1 > max && k + 1 < sizeof steps / sizeof *steps)
            continue;
        for (double i = first; i <= last && n < max + 2; i++)
            ticks[n++] = i * step;
        break;
    }
    return n;
}

static void svg_number(struct buf *out, double v, bool percent)
{
    double a = fabs(v);

    if (percent)
        buf_addf(out, "%.3g%%", v * 100);
    else if (v != 0 && (a < 1e-3 || a >= 1e5))
        buf_addf(out, "%.1e", v);
    else
        buf_addf(out, "%.4g", v);
}

/* ---- lines ---- */

#define LW 380
#define LH 210
#define LEFT 46
#define RIGHT 12
#define TOP 16
#define BOTTOM 26
#define MAX_POINTS 300

struct svg_frame {
    double x0, x1, y0, y1;
};

static double svg_point_x(const struct svg_frame *f, double x)
{
    return LEFT + (LW - LEFT - RIGHT) * (f->x1 > f->x0 ? (x - f->x0) / (f->x1 - f->x0) : 0.5);
}

static double svg_point_y(const struct svg_frame *f, double y)
{
    return LH - BOTTOM - (LH - TOP - BOTTOM) * (y - f->y0) / (f->y1 - f->y0);
}

static struct svg_frame svg_frame_of(const struct svg_lines *c)
{
    struct svg_frame f = {INFINITY, -INFINITY, c->from_zero ? 0 : INFINITY, -INFINITY};

    for (int s = 0; s < c->n_series; s++)
        for (int i = 0; i < c->series[s].n; i++) {
            double x = c->series[s].x[i], y = c->series[s].y[i];
            if (!isfinite(y))
                continue;
            f.x0 = fmin(f.x0, x);
            f.x1 = fmax(f.x1, x);
            f.y0 = fmin(f.y0, y);
            f.y1 = fmax(f.y1, y);
        }
    if (!isfinite(f.x0) || !isfinite(f.y0) || !isfinite(f.y1))
        f = (struct svg_frame){0, 1, 0, 1};
    return f;
}

static void svg_y_axis(struct buf *out, struct svg_frame *f, bool percent)
{
    double t[16];
    int n = svg_ticks(f->y0, f->y1, 5, t);

    f->y0 = t[0];
    f->y1 = t[n - 1];
    for (int i = 0; i < n; i++) {
        buf_addf(out, "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f />", LEFT, LW - RIGHT, svg_point_y(f, t[i]),
                 svg_point_y(f, t[i]));
        buf_addf(out, "<text class=tick text-anchor=end x=%d y=%.1f>", LEFT - 6, svg_point_y(f, t[i]) + 4);
        svg_number(out, t[i], percent);
        buf_adds(out, "</text>");
    }
}

static void svg_x_axis(struct buf *out, const struct svg_lines *c, const struct svg_frame *f)
{
    double t[16], free_from = 0;
    int n;

    for (int i = 0; i < c->n_dividers; i++) {
        double x = svg_point_x(f, c->dividers[i].x);
        if (i)
            buf_addf(out, "<line class=divider x1=%.1f x2=%.1f y1=%d y2=%d />", x, x, TOP, LH - BOTTOM);
        if (x < free_from)
            continue; /* no room for the name; the script shows it */
        buf_addf(out, "<text class=stage x=%.1f y=%d>", x + (i ? 4 : 0), TOP - 5);
        html_text(out, c->dividers[i].label);
        buf_adds(out, "</text>");
        free_from = x + 8 + 6.2 * (double)strlen(c->dividers[i].label);
    }
    if (c->n_dividers > 1)
        return; /* steps restart in each stage: the script shows them */
    n = svg_ticks(f->x0, f->x1, 6, t);
    for (int i = 0; i < n; i++)
        if (t[i] >= f->x0 && t[i] <= f->x1)
            buf_addf(out, "<text class=tick text-anchor=middle x=%.1f y=%d>%.4g</text>", svg_point_x(f, t[i]), LH - 8,
                     t[i]);
}

static bool svg_crosses(const struct svg_lines *c, double a, double b)
{
    for (int i = 0; i < c->n_dividers; i++)
        if (a < c->dividers[i].x && b >= c->dividers[i].x)
            return true;
    return false;
}

/* Stages are separate curves: the pen is lifted at a divider. */
static void svg_path(struct buf *out, const struct svg_lines *c, const struct svg_frame *f, const double *x,
                     const double *y, int n, const char *class, int k)
{
    bool pen = false;

    buf_addf(out, "<path class=\"%s s%d\" d=\"", class, k);
    for (int i = 0; i < n; i++) {
        if (!isfinite(y[i])) {
            pen = false;
            continue;
        }
        if (i && svg_crosses(c, x[i - 1], x[i]))
            pen = false;
        buf_addf(out, "%c%.1f %.1f", pen ? 'L' : 'M', svg_point_x(f, x[i]), svg_point_y(f, y[i]));
        if (!pen && (i + 1 == n || !isfinite(y[i + 1]) || svg_crosses(c, x[i], x[i + 1])))
            buf_addf(out, "h.1"); /* a lone value is a dot */
        pen = true;
    }
    buf_adds(out, "\"/>");
}

/* Centred mean over 'width' values, within a stage. */
static void svg_smooth(const struct svg_lines *c, const double *x, const double *y, int n, int width, double *out)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        int m = 0;
        for (int j = i; j >= 0 && j >= i - width / 2 && !svg_crosses(c, x[j], x[i]); j--)
            if (isfinite(y[j]))
                sum += y[j], m++;
        for (int j = i + 1; j < n && j <= i + width / 2 && !svg_crosses(c, x[i], x[j]); j++)
            if (isfinite(y[j]))
                sum += y[j], m++;
        out[i] = m ? sum / m : NAN;
    }
}

static void svg_draw_series(struct buf *out, const struct svg_lines *c, const struct svg_frame *f, int k)
{
    const struct svg_series *s = &c->series[k];
    double *mean;

    if (s->n < 24) {
        svg_path(out, c, f, s->x, s->y, s->n, "line", k);
        return;
    }
    mean = xmalloc((size_t)s->n * sizeof *mean);
    svg_smooth(c, s->x, s->y, s->n, s->n / 12 > 3 ? s->n / 12 : 3, mean);
    svg_path(out, c, f, s->x, s->y, s->n, "raw", k);
    svg_path(out, c, f, s->x, mean, s->n, "line", k);
    free(mean);
}

/* Values for the page's script: pixel, step within the stage, value. */
static void svg_data_of(struct buf *out, const struct svg_lines *c, const struct svg_frame *f)
{
    buf_addf(out, " data-pct=%d data-plot='[", c->percent);
    for (int k = 0; k < c->n_series; k++) {
        const struct svg_series *s = &c->series[k];
        int every = s->n / MAX_POINTS + 1;
        bool first = true;
        buf_addf(out, "%s{\"n\":\"", k ? "," : "");
        html_text(out, s->name);
        buf_adds(out, "\",\"p\":[");
        for (int i = 0; i < s->n; i += every) {
            if (!isfinite(s->y[i]))
                continue;
            buf_addf(out, "%s[%.1f,%.1f,%g,%.5g]", first ? "" : ",", svg_point_x(f, s->x[i]), svg_point_y(f, s->y[i]),
                     s->x[i], s->y[i]);
            first = false;
        }
        buf_adds(out, "]}");
    }
    buf_adds(out, "]' data-stages='[");
    for (int i = 0; i < c->n_dividers; i++) {
        buf_addf(out, "%s[%g,\"", i ? "," : "", c->dividers[i].x);
        html_text(out, c->dividers[i].label);
        buf_adds(out, "\"]");
    }
    buf_adds(out, "]'");
}

static void svg_caption(struct buf *out, const struct svg_lines *c)
{
    buf_adds(out, "<figcaption><b>");
    html_text(out, c->title);
    buf_adds(out, "</b>");
    if (c->unit) {
        buf_adds(out, " <span class=dim>");
        html_text(out, c->unit);
        buf_adds(out, "</span>");
    }
    if (c->n_series > 1)
        for (int k = 0; k < c->n_series; k++) {
            buf_addf(out, " <span class=key><i class=\"s%d\"></i>", k);
            html_text(out, c->series[k].name);
            buf_adds(out, "</span>");
        }
    buf_adds(out, "</figcaption>");
}

void svg_lines(struct buf *out, const struct svg_lines *c)
{
    struct svg_frame f = svg_frame_of(c);
    struct buf body;

    buf_init(&body, BUF_MAX_TEXT);
    svg_y_axis(&body, &f, c->percent);
    svg_x_axis(&body, c, &f);
    for (int k = c->n_series - 1; k >= 0; k--)
        svg_draw_series(&body, c, &f, k);
    buf_adds(out, "<figure>");
    svg_caption(out, c);
    buf_addf(out, "<svg class=lines viewBox=\"0 0 %d %d\" role=img aria-label=\"", LW, LH);
    html_text(out, c->title);
    buf_adds(out, "\"");
    svg_data_of(out, c, &f);
    buf_adds(out, ">");
    buf_add(out, body.p, body.n);
    buf_adds(out, "<g class=hover></g></svg></figure>\n");
    buf_free(&body);
}

/* ---- bars ---- */

#define BW 760
#define BLEFT 110
#define BRIGHT 60
#define ROW 50

static double svg_bar_x(double share)
{
    return BLEFT + (BW - BLEFT - BRIGHT) * fmin(fmax(share, 0), 1);
}

static void svg_one_bar(struct buf *out, double v, double y, double h, int k)
{
    if (!isfinite(v))
        return;
    buf_addf(out, "<rect class=\"bar s%d\" x=%d y=%.1f width=%.1f height=%.1f rx=3 />", k, BLEFT, y,
             svg_bar_x(v) - BLEFT, h);
}

static bool svg_bar_interval(const struct svg_bar *b, double *lo, double *hi)
{
    *lo = b->ends[1] > 0 ? b->ends[0] : b->value[1] - b->error;
    *hi = b->ends[1] > 0 ? b->ends[1] : b->value[1] + b->error;
    return isfinite(*lo) && isfinite(*hi) && *hi > *lo;
}

static void svg_bar_row(struct buf *out, const struct svg_bar *b, const char *const names[2], int i)
{
    double y = 30 + i * ROW, lo, hi;
    bool whisker = svg_bar_interval(b, &lo, &hi);

    buf_addf(out, "<g><title>%s %.1f%%, %s %.1f%%</title><text class=label text-anchor=end x=%d y=%.1f>", names[0],
             100 * b->value[0], names[1], 100 * b->value[1], BLEFT - 12, y + 23);
    html_text(out, b->label);
    buf_adds(out, "</text>");
    for (int k = 0; k < 2; k++) {
        svg_one_bar(out, b->value[k], y + 2 + 18 * k, 15, k);
        if (isfinite(b->value[k]))
            buf_addf(out, "<text class=value x=%.1f y=%.1f>%.1f%%</text>",
                     svg_bar_x(k && whisker ? fmax(hi, b->value[k]) : b->value[k]) + 7, y + 14 + 18 * k,
                     100 * b->value[k]);
    }
    if (whisker)
        buf_addf(out, "<path class=whisker d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>", svg_bar_x(lo), y + 27.5,
                 svg_bar_x(hi), svg_bar_x(lo), y + 23.5, svg_bar_x(hi), y + 23.5);
    buf_adds(out, "</g>");
}

static void svg_share_grid(struct buf *out, double bottom)
{
    for (int p = 0; p <= 100; p += 25)
        buf_addf(out, "<line class=grid x1=%.1f x2=%.1f y1=22 y2=%.1f /><text class=tick text-anchor=middle x=%.1f "
                      "y=14>%d%%</text>",
                 svg_bar_x(p / 100.0), svg_bar_x(p / 100.0), bottom, svg_bar_x(p / 100.0), p);
}

void svg_bars(struct buf *out, const char *title, const char *const names[2], const struct svg_bar *bars, int n)
{
    buf_adds(out, "<figure class=wide><figcaption><b>");
    html_text(out, title);
    buf_addf(out, "</b> <span class=key><i class=s0></i>%s</span> <span class=key><i class=s1></i>%s</span></"
                  "figcaption>", names[0],
             names[1]);
    buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=img>", BW, 34 + n * ROW);
    svg_share_grid(out, 30 + n * ROW);
    for (int i = 0; i < n; i++)
        svg_bar_row(out, &bars[i], names, i);
    buf_adds(out, "</svg></figure>\n");
}

void svg_stacks(struct buf *out, const char *title, const struct svg_stack *rows, int n, const char *const *names,
                const char *const *classes, int n_parts)
{
    buf_adds(out, "<figure class=wide><figcaption><b>");
    html_text(out, title);
    buf_adds(out, "</b>");
    for (int k = 0; k < n_parts; k++)
        buf_addf(out, " <span class=key><i class=%s></i>%s</span>", classes[k], names[k]);
    buf_addf(out, "</figcaption><svg viewBox=\"0 0 %d %d\" role=img>", BW, 30 + n * 34);
    svg_share_grid(out, 26 + n * 34);
    for (int i = 0; i < n; i++) {
        double total = 0, at = 0, y = 28 + i * 34;
        for (int k = 0; k < n_parts; k++)
            total += rows[i].parts[k];
        buf_addf(out, "<text class=label text-anchor=end x=%d y=%.1f>", BLEFT - 12, y + 16);
        html_text(out, rows[i].label);
        buf_adds(out, "</text>");
        for (int k = 0; k < n_parts && total > 0; k++) {
            double w = rows[i].parts[k] / total;
            if (w <= 0)
                continue;
            buf_addf(out, "<rect class=\"part %s\" x=%.1f y=%.1f width=%.1f height=22><title>%s: %g of %g (%.1f%%)</"
                          "title></rect>",
                     classes[k], svg_bar_x(at), y, svg_bar_x(at + w) - svg_bar_x(at), names[k], rows[i].parts[k], total,
                     100 * w);
            if (w > 0.08)
                buf_addf(out, "<text class=inside text-anchor=middle x=%.1f y=%.1f>%.0f%%</text>",
                         (svg_bar_x(at) + svg_bar_x(at + w)) / 2, y + 15.5, 100 * w);
            at += w;
        }
    }
    buf_adds(out, "</svg></figure>\n");
}
