/* scan.c - running sums, products and maxima along one axis. Attributes as in axes.h; i[2] marks exclusive, i[3]
 * reverse. draw_, shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>
#include <string.h>

#include "synth/ops/axes.h"

enum { EXCLUSIVE = 2, REVERSE = 3 };

/* The running value a joined with the next element x. */
static double join(const struct op_call *c, double a, double x)
{
    if (!strncmp(c->op->name, "cumprod", 7))
        return a * x;
    if (!strcmp(c->op->name, "logcumsumexp"))
        return a == -INFINITY ? x : fmax(a, x) + log1p(exp(-fabs(a - x)));
    if (!strcmp(c->op->name, "cummax"))
        return fmax(a, x);
    return !strcmp(c->op->name, "cummin") ? fmin(a, x) : a + x;
}

static enum combine combine_of(const struct op_call *c)
{
    return !strncmp(c->op->name, "cumprod", 7)      ? C_PROD
           : !strcmp(c->op->name, "logcumsumexp") ? C_LOGADDEXP
           : !strcmp(c->op->name, "cummax")       ? C_MAX
           : !strcmp(c->op->name, "cummin")       ? C_MIN
                                                  : C_SUM;
}

/* The scan of each row in doubles; it may be reversed or exclusive. */
static void ref_scan(const struct op_call *c, const double *const in[], double *out)
{
    struct axes a;

    axes_open(c, &a);
    for (int64_t r = 0; r < a.rows; r++) {
        double v = combine_identity(combine_of(c));
        for (int64_t q = 0; q < a.len; q++) {
            int64_t at = axes_at(&a, r, c->i[REVERSE] ? a.len - 1 - q : q);
            double x = in[0][at] * (c->n_in > 1 ? in[1][at] : 1);
            if (c->i[EXCLUSIVE])
                out[at] = v;
            v = join(c, v, x);
            if (!c->i[EXCLUSIVE])
                out[at] = v;
        }
    }
}

static void lower_scan(const struct op_call *c, struct nest *k)
{
    char x[128], y[130];

    axes_dims(c, k, x);
    k->flags = (c->i[EXCLUSIVE] ? SCAN_EXCLUSIVE : 0) | (c->i[REVERSE] ? SCAN_REVERSE : 0);
    strcpy(y, x);
    y[1] = '1';
    nest_stat(k, combine_of(c), c->n_in > 1 ? nest_expr(k, "%s * %s", x, y) : nest_expr(k, "%s", x), NULL);
    axes_store(c, k, true);
}

static bool draw_plain(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    return axes_draw_one(r, l, c);
}

static bool draw_reverse(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->i[REVERSE] = 1;
    return axes_draw_one(r, l, c);
}

static bool draw_exclusive(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->i[EXCLUSIVE] = 1;
    return axes_draw_one(r, l, c);
}

static bool draw_masked(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->in[1] = c->in[0];
    c->n_in = 2;
    return axes_draw_one(r, l, c);
}

/* "$ex(x)" is spelled by hand: zeros, then all but the last. */
static bool key_scan(const struct op_call *c, const char *key, struct buf *out)
{
    int d = __builtin_ctz((unsigned)c->i[0]);

    if (!strcmp(key, "ax")) {
        buf_addf(out, "%d", d);
        return true;
    }
    return axes_key(c, key, out);
}

#define SCAN(NAME, DRAW, ABOUT) \
    .name = NAME, .family = "scan", .class = NEST_SCAN, .ranks = 0x1e, .draw = DRAW, .shape = axes_shape_same, \
    .ref = ref_scan, .lower = lower_scan, .key = key_scan, .about = ABOUT

const struct opdef scan_ops[] = {
    {SCAN("cumsum", draw_plain, "the running sum"),
     .spell = {{NULL, "torch.cumsum($0, dim=$dim)"}, {NULL, "$0.cumsum(dim=$dim)"}}},
    {SCAN("cumprod", draw_plain, "the running product"), .domain = {0.9, 1.1},
     .spell = {{NULL, "torch.cumprod($0, dim=$dim)"}, {NULL, "$0.cumprod(dim=$dim)"}}},
    {SCAN("cumsum_reverse", draw_reverse, "the running sum from the end"),
     .spell = {{NULL, "torch.cumsum($0.flip($ax), dim=$dim).flip($ax)"},
               {NULL, "torch.flip(torch.cumsum(torch.flip($0, [$ax]), dim=$ax), [$ax])"}}},
    {SCAN("cumsum_exclusive", draw_exclusive, "the running sum of what comes before"),
     .spell = {{NULL, "torch.cumsum($0, dim=$dim) - $0"},
               {NULL, "torch.cat([torch.zeros_like($0.narrow($ax, 0, 1)), "
                      "torch.cumsum($0, dim=$ax).narrow($ax, 0, $0.size($ax) - 1)], dim=$ax)"}}},
    {SCAN("cumsum_masked", draw_masked, "the running sum of the products with a mask"),
     .spell = {{NULL, "torch.cumsum($0 * $1, dim=$dim)"}}},
    {SCAN("cummax", draw_plain, "the running maximum"), .range = RANGE_SAME,
     .spell = {{NULL, "torch.cummax($0, dim=$dim).values"}, {NULL, "torch.cummax($0, dim=$dim)[0]"}}},
    {SCAN("cummin", draw_plain, "the running minimum"), .range = RANGE_SAME,
     .spell = {{NULL, "torch.cummin($0, dim=$dim).values"}}},
    {SCAN("logcumsumexp", draw_plain, "the logarithm of the running sum of exponentials"), .no_halves = true,
     .spell = {{NULL, "torch.logcumsumexp($0, dim=$dim)"}}},
    {0}};
