/* movement.c - operators that move elements: a map whose load has another index than its store. draw_, shape_, ref_,
 * lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <stdio.h>
#include <string.h>

#include "synth/op.h"

/* Attributes: i[0..5] as each row says. Every row gives, for an output coordinate, the input's (or none: zero). */
enum { FROM_NONE = -1 };

static void coordinates(const struct tdesc *t, int64_t at, int x[TENSOR_RANK])
{
    for (int d = t->rank - 1; d >= 0; d--)
        x[d] = (int)(at % t->d[d]), at /= t->d[d];
}

/* The offset of coordinates x in C order. */
static int64_t index_of(const struct tdesc *t, const int x[TENSOR_RANK])
{
    int64_t at = 0;

    for (int d = 0; d < t->rank; d++)
        at = at * t->d[d] + x[d];
    return at;
}

static const char *dim_name(const struct op_call *c, int d)
{
    return output_names[c->out.rank - 1][d];
}

static void output_dims(const struct op_call *c, struct nest *k)
{
    for (int d = 0; d < c->out.rank; d++)
        nest_dim(k, 0, c->out.d[d], "%s", dim_name(c, d));
}

static int draw_axis(struct rng *r, const struct op_call *c)
{
    return (int)draw_below(r, c->in[0].rank);
}

/* ---- permute: i[d] is the input's axis of output axis d ---- */

/* Draws a permutation that moves something; for 'transpose' a swap of two axes. */
static bool draw_permute(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int n = c->in[0].rank;

    (void)l;
    for (int d = 0; d < n; d++)
        c->i[d] = d;
    if (!strcmp(c->op->name, "transpose")) {
        int a = draw_axis(r, c), b = (a + 1 + (int)draw_below(r, (uint64_t)n - 1)) % n;
        c->i[a] = b, c->i[b] = a;
        c->i[6] = a < b ? a : b, c->i[7] = a < b ? b : a;
        return true;
    }
    rng_shuffle(r, c->i, (size_t)n, sizeof *c->i);
    for (int d = 0; d < n; d++)
        if (c->i[d] != d)
            return true;
    return false;
}

static bool shape_permute(struct op_call *c)
{
    c->out = c->in[0];
    for (int d = 0; d < c->out.rank; d++)
        c->out.d[d] = c->in[0].d[c->i[d]];
    return true;
}

static void ref_permute(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    for (int64_t i = 0; i < n; i++) {
        int x[TENSOR_RANK], y[TENSOR_RANK];
        coordinates(&c->out, i, x);
        for (int d = 0; d < c->out.rank; d++)
            y[c->i[d]] = x[d];
        out[i] = in[0][index_of(&c->in[0], y)];
    }
}

static void lower_permute(const struct op_call *c, struct nest *k)
{
    const char *name[TENSOR_RANK];
    char x[128] = "L0(";

    output_dims(c, k);
    for (int d = 0; d < c->out.rank; d++)
        name[c->i[d]] = dim_name(c, d);
    for (int d = 0; d < c->out.rank; d++)
        strcat(strcat(x, d ? ", " : ""), name[d]);
    k->out = nest_expr(k, "%s)", x);
}

/* ---- along one axis i[0]: the input's coordinate is an expression of the output's ---- */

/* Draws an axis and how the operator moves along it. */
static bool draw_along(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    const char *s = c->op->name;
    int n;

    c->i[0] = draw_axis(r, c);
    n = c->in[0].d[c->i[0]];
    if (!strcmp(s, "roll"))
        c->i[1] = n > 1 ? 1 + (int)draw_below(r, (uint64_t)n - 1) : 0;
    else if (!strcmp(s, "narrow"))
        c->i[1] = (int)draw_below(r, (uint64_t)n), c->i[2] = 1 + (int)draw_below(r, (uint64_t)(n - c->i[1]));
    else if (!strcmp(s, "repeat_interleave") || !strcmp(s, "repeat"))
        c->i[1] = 2 + (int)draw_below(r, 2);
    else if (!strcmp(s, "pad")) {
        c->i[0] = c->in[0].rank - 1;
        n = c->in[0].d[c->i[0]];
        c->i[1] = (int)draw_below(r, 4), c->i[2] = (int)draw_below(r, 4) + (c->i[1] == 0);
    }
    (void)l;
    return n > 1;
}

static bool shape_along(struct op_call *c)
{
    const char *s = c->op->name;
    int32_t *n = &c->out.d[c->i[0]];

    c->out = c->in[0];
    *n = !strcmp(s, "narrow")                                               ? c->i[2]
         : !strcmp(s, "repeat_interleave") || !strcmp(s, "repeat") ? *n * c->i[1]
         : !strcmp(s, "pad")                                                ? *n + c->i[1] + c->i[2]
                                                                            : *n;
    return true;
}

/* The input's index along the axis for output index j; FROM_NONE where the output is padding. */
static int source(const struct op_call *c, int j)
{
    const char *s = c->op->name;
    int n = c->in[0].d[c->i[0]];

    if (!strcmp(s, "flip"))
        return n - 1 - j;
    if (!strcmp(s, "roll"))
        return (j - c->i[1] + n) % n;
    if (!strcmp(s, "narrow"))
        return j + c->i[1];
    if (!strcmp(s, "repeat_interleave"))
        return j / c->i[1];
    if (!strcmp(s, "repeat"))
        return j % n;
    return j < c->i[1] || j - c->i[1] >= n ? FROM_NONE : j - c->i[1];
}

static void ref_along(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    for (int64_t i = 0; i < n; i++) {
        int x[TENSOR_RANK];
        coordinates(&c->out, i, x);
        x[c->i[0]] = source(c, x[c->i[0]]);
        out[i] = x[c->i[0]] == FROM_NONE ? 0 : in[0][index_of(&c->in[0], x)];
    }
}

/* A load of an operand at the output's coordinates, with 'index' in place of one axis. */
static void load_with(const struct op_call *c, int operand, int axis, const char *index, char out[256])
{
    sprintf(out, "L%d(", operand);
    for (int d = 0; d < c->out.rank; d++)
        sprintf(out + strlen(out), "%s%s", d ? ", " : "", d == axis ? index : dim_name(c, d));
    strcat(out, ")");
}

/* The call as a loop nest. */
static void lower_along(const struct op_call *c, struct nest *k)
{
    const char *s = c->op->name, *j = dim_name(c, c->i[0]);
    int n = c->in[0].d[c->i[0]];
    char index[64], x[256];

    if (!strcmp(s, "flip"))
        snprintf(index, sizeof index, "%d - %s", n - 1, j);
    else if (!strcmp(s, "roll"))
        snprintf(index, sizeof index, "(%s + %d) %% %d", j, n - c->i[1], n);
    else if (!strcmp(s, "narrow"))
        snprintf(index, sizeof index, "%s + %d", j, c->i[1]);
    else if (!strcmp(s, "repeat_interleave"))
        snprintf(index, sizeof index, "%s / %d", j, c->i[1]);
    else if (!strcmp(s, "repeat"))
        snprintf(index, sizeof index, "%s %% %d", j, n);
    else
        snprintf(index, sizeof index, "%s - %d", j, c->i[1]);
    output_dims(c, k);
    load_with(c, 0, c->i[0], index, x);
    if (!strcmp(s, "pad"))
        k->out = nest_expr(k, "%s - %d >= 0 && %s - %d < %d ? %s : 0.0f", j, c->i[1], j, c->i[1], n, x);
    else
        k->out = nest_expr(k, "%s", x);
}

/* ---- cat: two operands along i[0] ---- */

static bool draw_cat(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->i[0] = draw_axis(r, c);
    c->in[1] = c->in[0];
    if (draw_below(r, 2))
        c->in[1].d[c->i[0]] = draw_dim(r, (int)(l->max_numel / tdesc_numel(&c->in[0]) * c->in[0].d[c->i[0]]));
    c->n_in = 2;
    return true;
}

static bool shape_cat(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[c->i[0]] += c->in[1].d[c->i[0]];
    return true;
}

/* The concatenation of two inputs along an axis. */
static void ref_cat(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);
    int first = c->in[0].d[c->i[0]];

    for (int64_t i = 0; i < n; i++) {
        int x[TENSOR_RANK];
        coordinates(&c->out, i, x);
        if (x[c->i[0]] < first) {
            out[i] = in[0][index_of(&c->in[0], x)];
        } else {
            x[c->i[0]] -= first;
            out[i] = in[1][index_of(&c->in[1], x)];
        }
    }
}

static void lower_cat(const struct op_call *c, struct nest *k)
{
    const char *j = dim_name(c, c->i[0]);
    int first = c->in[0].d[c->i[0]];
    char index[64], x[256], y[256];

    output_dims(c, k);
    load_with(c, 0, c->i[0], j, x);
    snprintf(index, sizeof index, "%s - %d", j, first);
    load_with(c, 1, c->i[0], index, y);
    k->out = nest_expr(k, "%s < %d ? %s : %s", j, first, x, y);
}

/* ---- triangles of the last two axes, i[0] the diagonal ---- */

static bool draw_triangle(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    c->i[0] = draw_below(r, 2) ? 0 : (int)draw_below(r, 5) - 2;
    return true;
}

static bool shape_same(struct op_call *c)
{
    c->out = c->in[0];
    return true;
}

static void ref_triangle(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);
    int w = c->out.d[c->out.rank - 1], h = c->out.d[c->out.rank - 2];

    for (int64_t i = 0; i < n; i++) {
        int col = (int)(i % w), row = (int)(i / w % h);
        bool keep = !strcmp(c->op->name, "tril") ? col - row <= c->i[0] : col - row >= c->i[0];
        out[i] = keep ? in[0][i] : 0;
    }
}

static void lower_triangle(const struct op_call *c, struct nest *k)
{
    char x[256];

    output_dims(c, k);
    load_with(c, 0, -1, "", x);
    k->out = nest_expr(k, "%s - %s %s %d ? %s : 0.0f", dim_name(c, c->out.rank - 1), dim_name(c, c->out.rank - 2),
                       !strcmp(c->op->name, "tril") ? "<=" : ">=", c->i[0], x);
}

/* ---- glu: halves of axis i[0] ---- */

static bool draw_glu(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    c->i[0] = draw_axis(r, c);
    return c->in[0].d[c->i[0]] % 2 == 0;
}

static bool shape_glu(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[c->i[0]] /= 2;
    return true;
}

static void ref_glu(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    for (int64_t i = 0; i < n; i++) {
        int x[TENSOR_RANK];
        double a, b;
        coordinates(&c->out, i, x);
        a = in[0][index_of(&c->in[0], x)];
        x[c->i[0]] += c->out.d[c->i[0]];
        b = in[0][index_of(&c->in[0], x)];
        out[i] = a / (1 + __builtin_exp(-b));
    }
}

static void lower_glu(const struct op_call *c, struct nest *k)
{
    char index[64], x[256], y[256];

    output_dims(c, k);
    load_with(c, 0, -1, "", x);
    snprintf(index, sizeof index, "%s + %d", dim_name(c, c->i[0]), c->out.d[c->i[0]]);
    load_with(c, 0, c->i[0], index, y);
    k->out = nest_expr(k, "%s / (1.0f + expf(-%s))", x, y);
}

/* ---- (N, C, H, W): nearest upsampling by i[0], pixel shuffle by i[0] ---- */

static bool draw_grid(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    c->i[0] = 2 + (int)draw_below(r, 2);
    return strcmp(c->op->name, "pixel_shuffle") || c->in[0].d[1] % (c->i[0] * c->i[0]) == 0;
}

static bool shape_grid(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[2] *= c->i[0], c->out.d[3] *= c->i[0];
    if (!strcmp(c->op->name, "pixel_shuffle"))
        c->out.d[1] /= c->i[0] * c->i[0];
    return true;
}

static void ref_grid(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);
    int s = c->i[0];

    for (int64_t i = 0; i < n; i++) {
        int x[TENSOR_RANK];
        coordinates(&c->out, i, x);
        if (!strcmp(c->op->name, "pixel_shuffle"))
            x[1] = x[1] * s * s + x[2] % s * s + x[3] % s;
        x[2] /= s, x[3] /= s;
        out[i] = in[0][index_of(&c->in[0], x)];
    }
}

static void lower_grid(const struct op_call *c, struct nest *k)
{
    int s = c->i[0];

    output_dims(c, k);
    if (strcmp(c->op->name, "pixel_shuffle"))
        k->out = nest_expr(k, "L0(n, c, h / %d, w / %d)", s, s);
    else
        k->out = nest_expr(k, "L0(n, c * %d + h %% %d * %d + w %% %d, h / %d, w / %d)", s * s, s, s, s, s, s);
}

static bool key_movement(const struct op_call *c, const char *key, struct buf *out)
{
    if (strcmp(key, "perm"))
        return false;
    for (int d = 0; d < c->in[0].rank; d++)
        buf_addf(out, "%s%d", d ? ", " : "", c->i[d]);
    return true;
}

#define MOVE(NAME, RANKS, KIND, ABOUT) \
    .name = NAME, .family = "movement", .class = NEST_MAP, .ranks = RANKS, .draw = draw_##KIND, .shape = shape_##KIND, \
    .ref = ref_##KIND, .lower = lower_##KIND, .key = key_movement, .range = RANGE_SAME, .about = ABOUT
#define shape_triangle shape_same

const struct opdef movement_ops[] = {
    {MOVE("permute", 0x3c, permute, "axes in another order"), .takes_ints = true, .spell = {{NULL,
        "$0.permute($perm).contiguous()"}}},
    {MOVE("transpose", 0x3c, permute, "two axes exchanged"), .takes_ints = true,
     .spell = {{NULL, "$0.transpose($i6, $i7).contiguous()"}, {NULL, "torch.transpose($0, $i6, $i7).contiguous()"}}},
    {MOVE("flip", 0x3e, along, "an axis backwards"), .takes_ints = true, .spell = {{NULL, "torch.flip($0, [$i0])"},
        {NULL, "$0.flip($i0)"}}},
    {MOVE("roll", 0x3e, along, "an axis rotated"), .takes_ints = true, .spell = {{NULL, "torch.roll($0, $i1, $i0)"},
        {NULL, "$0.roll($i1, dims=$i0)"}}},
    {MOVE("narrow", 0x3e, along, "a part of an axis"), .takes_ints = true, .spell = {{NULL,
        "$0.narrow($i0, $i1, $i2).contiguous()"}}},
    {MOVE("repeat_interleave", 0x3e, along, "each element several times"), .takes_ints = true,
     .spell = {{NULL, "torch.repeat_interleave($0, $i1, dim=$i0)"}, {NULL, "$0.repeat_interleave($i1, dim=$i0)"}}},
    {MOVE("pad", 0x3e, along, "zeros at both ends of the last axis"), .spell = {{NULL, "F.pad($0, ($i1, $i2))"}}},
    {MOVE("cat", 0x3e, cat, "two tensors one behind the other"), .takes_ints = true,
     .spell = {{NULL, "torch.cat([$0, $1], dim=$i0)"}, {NULL, "torch.cat(($0, $1), $i0)"}}},
    {MOVE("tril", 0x3c, triangle, "the lower triangle"), .spell = {{NULL, "torch.tril($0, diagonal=$i0)"}, {NULL,
        "$0.tril($i0)"}}},
    {MOVE("triu", 0x3c, triangle, "the upper triangle"), .spell = {{NULL, "torch.triu($0, diagonal=$i0)"}, {NULL,
        "$0.triu($i0)"}}},
    {MOVE("glu", 0x3e, glu, "one half times the sigmoid of the other"), .spell = {{NULL, "F.glu($0, dim=$i0)"},
        {"nn.GLU(dim=$i0)", "$m($0)"}}},
    {MOVE("upsample_nearest", 0x10, grid, "each pixel as a square"),
     .spell = {{NULL, "F.interpolate($0, scale_factor=$i0, mode='nearest')"},
         {"nn.Upsample(scale_factor=$i0, mode='nearest')", "$m($0)"}}},
    {MOVE("pixel_shuffle", 0x10, grid, "channels spread over pixels"),
     .spell = {{NULL, "F.pixel_shuffle($0, $i0)"}, {"nn.PixelShuffle($i0)", "$m($0)"}}},
    {0}};
