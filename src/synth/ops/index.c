/* index.c - reading and writing at places that a tensor of indices names. Attributes: i[0] the axis. draw_, shape_,
 * ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <stdio.h>
#include <string.h>

#include "synth/op.h"

static void index_operand(struct op_call *c, int at, int rank, int n, int below)
{
    c->in[at] = (struct tdesc){.rank = (uint8_t)rank, .dtype = DT_I64, .d = {n}};
    c->below[at] = below;
}

/* Position of out[at] with coordinate i[0] replaced. */
struct walker {
    int64_t outer, inner;
    int n;
};

/* The extents before, behind and along an axis. */
static struct walker walk(const struct tdesc *t, int axis)
{
    struct walker w = {1, 1, t->d[axis]};

    for (int d = 0; d < axis; d++)
        w.outer *= t->d[d];
    for (int d = axis + 1; d < t->rank; d++)
        w.inner *= t->d[d];
    return w;
}

/* ---- index_select: one index for each place along the axis ---- */

static bool draw_select(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int axis = (int)draw_below(r, c->in[0].rank), n = c->in[0].d[axis];

    c->i[0] = axis;
    index_operand(c, 1, 1, draw_dim(r, (int)(l->max_numel * (int64_t)n / tdesc_numel(&c->in[0]))), n);
    c->n_in = 2;
    return true;
}

static bool shape_select(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[c->i[0]] = c->in[1].d[0];
    return true;
}

static void ref_select(const struct op_call *c, const double *const in[], double *out)
{
    struct walker x = walk(&c->in[0], c->i[0]), y = walk(&c->out, c->i[0]);

    for (int64_t o = 0; o < y.outer; o++)
        for (int j = 0; j < y.n; j++)
            for (int64_t i = 0; i < y.inner; i++)
                out[(o * y.n + j) * y.inner + i] = in[0][(o * x.n + (int64_t)in[1][j]) * x.inner + i];
}

/* "a, b, c" of the output's names, the axis replaced. */
static void names_with(const struct tdesc *t, int axis, const char *instead, char out[256])
{
    *out = 0;
    for (int d = 0; d < t->rank; d++)
        sprintf(out + strlen(out), "%s%s", d ? ", " : "", d == axis ? instead : output_names[t->rank - 1][d]);
}

static void output_dims(const struct tdesc *t, struct nest *k)
{
    for (int d = 0; d < t->rank; d++)
        nest_dim(k, 0, t->d[d], "%s", output_names[t->rank - 1][d]);
}

static void lower_select(const struct op_call *c, struct nest *k)
{
    char at[40], names[256];

    output_dims(&c->out, k);
    snprintf(at, sizeof at, "L1(%s)", output_names[c->out.rank - 1][c->i[0]]);
    names_with(&c->out, c->i[0], at, names);
    k->out = nest_expr(k, "L0(%s)", names);
}

/* ---- gather: an index for each output element ---- */

static bool draw_gather(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int axis = (int)draw_below(r, c->in[0].rank), n = c->in[0].d[axis];

    c->i[0] = axis;
    c->in[1] = c->in[0];
    c->in[1].dtype = DT_I64;
    c->in[1].d[axis] = draw_dim(r, (int)(l->max_numel * (int64_t)n / tdesc_numel(&c->in[0])));
    c->below[1] = n;
    c->n_in = 2;
    return true;
}

static bool shape_gather(struct op_call *c)
{
    c->out = c->in[1];
    c->out.dtype = c->in[0].dtype;
    return true;
}

static void ref_gather(const struct op_call *c, const double *const in[], double *out)
{
    struct walker x = walk(&c->in[0], c->i[0]), y = walk(&c->out, c->i[0]);

    for (int64_t o = 0; o < y.outer; o++)
        for (int j = 0; j < y.n; j++)
            for (int64_t i = 0; i < y.inner; i++) {
                int64_t at = (o * y.n + j) * y.inner + i;
                out[at] = in[0][(o * x.n + (int64_t)in[1][at]) * x.inner + i];
            }
}

/* The call as a loop nest: the index tensor's values choose along one axis. */
static void lower_gather(const struct op_call *c, struct nest *k)
{
    char at[256], names[256], index[300];

    output_dims(&c->out, k);
    names_with(&c->out, -1, "", at);
    snprintf(index, sizeof index, "L1(%s)", at);
    *names = 0;
    for (int d = 0; d < c->out.rank; d++) {
        strcat(names, d ? ", " : "");
        strcat(names, d == c->i[0] ? "@" : output_names[c->out.rank - 1][d]);
    }
    char *mark = strchr(names, '@');
    *mark = 0;
    k->out = nest_expr(k, "L0(%s%s%s)", names, index, mark + 1);
}

/* ---- embedding: rows of a table; in[0] is the table ---- */

static bool draw_embedding(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int rank = 1 + (int)draw_below(r, 2), room = l->max_numel / c->in[0].d[1];

    c->in[1] = (struct tdesc){.rank = (uint8_t)rank, .dtype = DT_I64};
    c->in[1].d[0] = draw_dim(r, rank > 1 ? 16 : room);
    c->in[1].d[1] = rank > 1 ? draw_dim(r, room / c->in[1].d[0]) : 1;
    c->below[1] = c->in[0].d[0];
    c->n_in = 2;
    return true;
}

static bool shape_embedding(struct op_call *c)
{
    c->out = c->in[1];
    c->out.dtype = c->in[0].dtype;
    c->out.d[c->out.rank++] = c->in[0].d[1];
    return true;
}

static void ref_embedding(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->in[1]), w = c->in[0].d[1];

    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * w, in[0] + (int64_t)in[1][i] * w, sizeof *out * (size_t)w);
}

static void lower_embedding(const struct op_call *c, struct nest *k)
{
    if (c->in[1].rank == 1) {
        nest_dim(k, 0, c->in[1].d[0], "t");
        nest_dim(k, 0, c->in[0].d[1], "e");
        k->out = nest_expr(k, "L0(L1(t), e)");
        return;
    }
    nest_dim(k, 0, c->in[1].d[0], "s");
    nest_dim(k, 0, c->in[1].d[1], "t");
    nest_dim(k, 0, c->in[0].d[1], "e");
    k->out = nest_expr(k, "L0(L1(s, t), e)");
}

/* ---- index_add: rows of a source added to rows of x ---- */

static bool draw_index_add(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int axis = (int)draw_below(r, c->in[0].rank), n = c->in[0].d[axis];
    int m = draw_dim(r, (int)(l->max_numel * (int64_t)n / tdesc_numel(&c->in[0])));

    c->i[0] = axis;
    index_operand(c, 1, 1, m, n);
    c->in[2] = c->in[0];
    c->in[2].d[axis] = m;
    c->n_in = 3;
    return true;
}

static bool shape_same(struct op_call *c)
{
    c->out = c->in[0];
    return true;
}

static void ref_index_add(const struct op_call *c, const double *const in[], double *out)
{
    struct walker y = walk(&c->in[0], c->i[0]), s = walk(&c->in[2], c->i[0]);

    memcpy(out, in[0], sizeof *out * (size_t)tdesc_numel(&c->out));
    for (int64_t o = 0; o < s.outer; o++)
        for (int j = 0; j < s.n; j++)
            for (int64_t i = 0; i < s.inner; i++)
                out[(o * y.n + (int64_t)in[1][j]) * y.inner + i] += in[2][(o * s.n + j) * s.inner + i];
}

static void lower_index_add(const struct op_call *c, struct nest *k)
{
    char at[40], names[256], source[256];

    output_dims(&c->in[2], k);
    snprintf(at, sizeof at, "L1(%s)", output_names[c->in[2].rank - 1][c->i[0]]);
    names_with(&c->in[2], c->i[0], at, names);
    names_with(&c->in[2], -1, "", source);
    nest_stat(k, C_SUM, nest_expr(k, "L2(%s)", source), NULL);
    k->init = 0;
    nest_store(k, names);
}

/* ---- scatter_add: an index for each source element ---- */

static bool draw_scatter_add(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    if (!draw_gather(r, l, c))
        return false;
    c->in[2] = c->in[1];
    c->in[2].dtype = c->in[0].dtype;
    c->n_in = 3;
    return true;
}

static void ref_scatter_add(const struct op_call *c, const double *const in[], double *out)
{
    struct walker y = walk(&c->in[0], c->i[0]), s = walk(&c->in[2], c->i[0]);

    memcpy(out, in[0], sizeof *out * (size_t)tdesc_numel(&c->out));
    for (int64_t o = 0; o < s.outer; o++)
        for (int j = 0; j < s.n; j++)
            for (int64_t i = 0; i < s.inner; i++) {
                int64_t at = (o * s.n + j) * s.inner + i;
                out[(o * y.n + (int64_t)in[1][at]) * y.inner + i] += in[2][at];
            }
}

static void lower_scatter_add(const struct op_call *c, struct nest *k)
{
    char at[300], names[512] = "", source[256];

    output_dims(&c->in[2], k);
    names_with(&c->in[2], -1, "", source);
    snprintf(at, sizeof at, "L1(%s)", source);
    for (int d = 0; d < c->in[2].rank; d++)
        sprintf(names + strlen(names), "%s%s", d ? ", " : "", d == c->i[0] ? at : output_names[c->in[2].rank - 1][d]);
    nest_stat(k, C_SUM, nest_expr(k, "L2(%s)", source), NULL);
    k->init = 0;
    nest_store(k, names);
}

const struct opdef index_ops[] = {
    {.name = "index_select", .family = "index", .class = NEST_MAP, .ranks = 0x3e, .draw = draw_select, .shape
        = shape_select,
     .ref = ref_select, .lower = lower_select, .takes_ints = true, .range = RANGE_SAME,
     .about = "slices at the given places", .spell = {{NULL, "torch.index_select($0, $i0, $1)"}}},
    {.name = "gather", .family = "index", .class = NEST_MAP, .ranks = 0x1e, .draw = draw_gather, .shape = shape_gather,
     .ref = ref_gather, .lower = lower_gather, .takes_ints = true, .range = RANGE_SAME,
     .about = "an element from the given place, for each element",
     .spell = {{NULL, "torch.gather($0, $i0, $1)"}, {NULL, "$0.gather($i0, $1)"}}},
    {.name = "embedding", .family = "index", .class = NEST_MAP, .ranks = 0x04, .draw = draw_embedding,
     .shape = shape_embedding, .ref = ref_embedding, .lower = lower_embedding, .range = RANGE_SAME,
     .about = "rows of a table", .spell = {{NULL, "F.embedding($1, $0)"}, {NULL, "$0[$1]"}}},
    {.name = "index_add", .family = "index", .class = NEST_SCATTER, .ranks = 0x1e, .draw = draw_index_add,
     .shape = shape_same, .ref = ref_index_add, .lower = lower_index_add, .no_halves = true,
     .about = "slices added at the given places",
     .spell = {{NULL, "torch.index_add($0, $i0, $1, $2)"}, {NULL, "$0.index_add($i0, $1, $2)"}}},
    {.name = "scatter_add", .family = "index", .class = NEST_SCATTER, .ranks = 0x1e, .draw = draw_scatter_add,
     .shape = shape_same, .ref = ref_scatter_add, .lower = lower_scatter_add, .no_halves = true,
     .about = "each element added at its given place",
     .spell = {{NULL, "torch.scatter_add($0, $i0, $1, $2)"}, {NULL, "$0.scatter_add($i0, $1, $2)"}}},
    {0}};
