/* pool.c - max and average pooling in one to three dimensions. Attributes as in window.h; i[13] is ceil_mode, of
 * averages i[14] is count_include_pad. draw_, shape_, ref_, lower_ and key_ are the members of struct opdef
 * (synth/op.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/ops/window.h"

enum { CEIL_MODE = 13, INCLUDE_PAD = 14 };

static bool is_max(const struct op_call *c)
{
    return c->op->name[0] == 'm';
}

static bool draw_pool(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    window_draw(r, c, 5, true, is_max(c));
    c->i[CEIL_MODE] = draw_below(r, 5) == 0;
    c->i[INCLUDE_PAD] = draw_below(r, 3) != 0;
    return true;
}

/* In ceil_mode the last window must still begin inside the input or the padding in front of it. */
static int out_size(const struct op_call *c, int i)
{
    int s = c->i[W_S + i], p = c->i[W_P + i], n = c->in[0].d[2 + i], span = n + 2 * p - c->i[W_D + i] * (c->i[W_K +
        i] - 1) - 1, o;

    if (span < 0)
        return 0;
    o = (span + (c->i[CEIL_MODE] ? s - 1 : 0)) / s + 1;
    return c->i[CEIL_MODE] && (o - 1) * s >= n + p ? o - 1 : o;
}

static bool shape_pool(struct op_call *c)
{
    c->out = c->in[0];
    for (int i = 0; i < c->i[W_ND]; i++)
        if ((c->out.d[2 + i] = out_size(c, i)) < 1 ||
            (!is_max(c) && c->i[W_ND] == 3 && c->in[0].d[2 + i] < c->i[W_K + i])) /* avg_pool3d asks for this,
                padded or not */
            return false;
    return true;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

struct cell {
    int from[3], to[3], step[3]; /* the window, clipped to the input */
    double area;                 /* what an average divides by */
};

/* The input's range that output cell 'at' reads, cut at the borders, and its divisor. */
static void cell_open(const struct op_call *c, const int at[3], struct cell *w)
{
    int first = window_first(c->i[W_ND]);

    *w = (struct cell){{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, 1};
    for (int i = 0; i < c->i[W_ND]; i++) {
        int s = at[first + i] * c->i[W_S + i] - c->i[W_P + i], d = c->i[W_D + i], k = c->i[W_K + i], n =
            c->in[0].d[2 + i];
        int end = min_int(s + k, n + c->i[W_P + i]), full = end - s;
        w->from[first + i] = s < 0 ? s + (-s + d - 1) / d * d : s;
        w->to[first + i] = min_int(s + d * (k - 1) + 1, n);
        w->step[first + i] = d;
        w->area *= c->i[INCLUDE_PAD] ? full : min_int(end, n) - max_int(s, 0);
    }
}

/* The pooled value of one window of x. */
static double pool_cell(const struct op_call *c, const struct cell *w, const double *x, const int n[3])
{
    double v = is_max(c) ? -INFINITY : 0;

    for (int i = w->from[0]; i < w->to[0]; i += w->step[0])
        for (int j = w->from[1]; j < w->to[1]; j += w->step[1])
            for (int k = w->from[2]; k < w->to[2]; k += w->step[2]) {
                double e = x[(i * n[1] + j) * n[2] + k];
                v = is_max(c) ? fmax(v, e) : v + e;
            }
    return is_max(c) ? v : v / w->area;
}

/* The pooling in doubles. */
static void ref_pool(const struct op_call *c, const double *const in[], double *out)
{
    int first = window_first(c->i[W_ND]), n[3] = {1, 1, 1}, o[3] = {1, 1, 1};
    int64_t planes = (int64_t)c->in[0].d[0] * c->in[0].d[1];

    for (int i = 0; i < c->i[W_ND]; i++)
        n[first + i] = c->in[0].d[2 + i], o[first + i] = c->out.d[2 + i];
    for (int64_t p = 0; p < planes; p++)
        for (int i = 0; i < o[0] * o[1] * o[2]; i++) {
            int at[3] = {i / o[2] / o[1], i / o[2] % o[1], i % o[2]};
            struct cell w;
            cell_open(c, at, &w);
            out[p * o[0] * o[1] * o[2] + i] = pool_cell(c, &w, in[0] + p * n[0] * n[1] * n[2], n);
        }
}

/* The text of an average's divisor; borders make it depend on the place. */
static void divisor(const struct op_call *c, char text[600])
{
    strcpy(text, "acc / float(");
    for (int i = 0; i < c->i[W_ND]; i++) {
        const char *o = window_out[window_first(c->i[W_ND]) + i];
        int s = c->i[W_S + i], p = c->i[W_P + i], k = c->i[W_K + i], n = c->in[0].d[2 + i];
        char *t = text + strlen(text);
        if (i)
            t += sprintf(t, " * ");
        if ((c->out.d[2 + i] - 1) * s - p + k <= n + p && (c->i[INCLUDE_PAD] || !p))
            sprintf(t, "%d", k); /* every window has this many */
        else if (c->i[INCLUDE_PAD])
            sprintf(t, "(min(%s * %d + %d, %d) - (%s * %d - %d))", o, s, k - p, n + p, o, s, p);
        else
            sprintf(t, "(min(%s * %d + %d, %d) - max(%s * %d - %d, 0))", o, s, k - p, n, o, s, p);
    }
    strcat(text, ")");
}

/* The call as a loop nest. */
static void lower_pool(const struct op_call *c, struct nest *k)
{
    int nd = c->i[W_ND], first = window_first(nd);
    char guard[512] = "", index[256] = "", div[600];
    struct ax *x;

    nest_dim(k, 0, c->in[0].d[0], "n");
    nest_dim(k, 0, c->in[0].d[1], "c");
    for (int i = 0; i < nd; i++)
        nest_dim(k, 0, c->out.d[2 + i], "%s", window_out[first + i]);
    for (int i = 0; i < nd; i++) {
        char at[64];
        nest_dim(k, 1, c->i[W_K + i], "%s", window_tap[first + i]);
        snprintf(at, sizeof at, "%s * %d + %s * %d - %d", window_out[first + i], c->i[W_S + i], window_tap[first + i],
            c->i[W_D + i],
                 c->i[W_P + i]);
        sprintf(guard + strlen(guard), "%s%s >= 0 && %s < %d", i ? " && " : "", at, at, c->in[0].d[2 + i]);
        sprintf(index + strlen(index), ", %s", at);
    }
    x = nest_expr(k, "%s ? L0(n, c%s) : %s", guard, index, is_max(c) ? "-INFINITY" : "0.0f");
    divisor(c, div);
    nest_stat(k, is_max(c) ? C_MAX : C_SUM, x, is_max(c) ? NULL : div);
}

static bool key_pool(const struct op_call *c, const char *key, struct buf *out)
{
    return window_key(c, key, out);
}

#define POOL(NAME, RANK, MODULE, CALL, ABOUT, ONLY_F32) \
    {.name = NAME, .family = "pooling", .class = NEST_WINDOW, .ranks = 1u << RANK, .draw = draw_pool, .shape = \
        shape_pool, \
     .ref = ref_pool, .lower = lower_pool, .key = key_pool, .range = RANGE_SAME, .about = ABOUT, \
     .no_halves = ONLY_F32, .spell = {{"nn." MODULE, "$m($0)"}, {NULL, "F." CALL}}}
#define MAX_POOL(ND, RANK) \
    POOL("max_pool" ND "d", RANK, "MaxPool" ND "d($k, stride=$s, padding=$p, dilation=$d, ceil_mode=$b13)", \
         "max_pool" ND "d($0, $k, stride=$s, padding=$p, dilation=$d, ceil_mode=$b13)", \
             "the largest value of each window", false)
#define AVG_POOL(ND, RANK) \
    POOL("avg_pool" ND "d", RANK, "AvgPool" ND "d($k, stride=$s, padding=$p, ceil_mode=$b13, count_include_pad=$b14)", \
         "avg_pool" ND "d($0, $k, stride=$s, padding=$p, ceil_mode=$b13, count_include_pad=$b14)", \
             "the mean of each window", RANK == 5)

const struct opdef pool_ops[] = {MAX_POOL("1", 3), MAX_POOL("2", 4), MAX_POOL("3", 5),
                                 AVG_POOL("1", 3), AVG_POOL("2", 4), AVG_POOL("3", 5), {0}};
