/* linear.c - products with the last axis of x: nn.Linear (weight (N, K), bias (N)), a matrix times a vector, x times
 * a (K, N) matrix for any rank (einsum), and nn.Bilinear's kin. Attributes: i[0] bias. draw_, shape_, ref_, lower_
 * and key_ are the members of struct opdef (synth/op.h). */
#include <stdio.h>
#include <string.h>

#include "synth/op.h"

static int last(const struct tdesc *t)
{
    return t->d[t->rank - 1];
}

static bool draw_linear(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int k = last(&c->in[0]), most = (int)(l->max_work / tdesc_numel(&c->in[0])), n;

    if (most < 1)
        return false;
    n = draw_dim(r, most < 512 ? most : 512);
    c->i[0] = draw_below(r, 4) != 0;
    c->in[1] = (struct tdesc){.rank = 2, .dtype = c->in[0].dtype, .d = {n, k}};
    c->in[2] = (struct tdesc){.rank = 1, .dtype = c->in[0].dtype, .d = {n}};
    c->n_in = c->i[0] ? 3 : 2;
    return tdesc_numel(&c->in[1]) <= l->max_numel;
}

static bool draw_right(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    draw_linear(r, l, c);
    c->i[0] = 0;
    c->n_in = 2;
    c->in[1].d[1] = c->in[1].d[0], c->in[1].d[0] = last(&c->in[0]);
    return tdesc_numel(&c->in[1]) <= l->max_numel;
}

static bool draw_mv(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)r, (void)l;
    c->in[1] = (struct tdesc){.rank = 1, .dtype = c->in[0].dtype, .d = {last(&c->in[0])}};
    c->n_in = 2;
    return true;
}

static bool shape_linear(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[c->out.rank - 1] = c->in[1].d[0];
    return true;
}

static bool shape_right(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[c->out.rank - 1] = c->in[1].d[1];
    return true;
}

static bool shape_mv(struct op_call *c)
{
    c->out = c->in[0];
    c->out.rank--;
    return true;
}

/* y (m, n) = x (m, k) times w, which is stored (n, k) or (k, n). */
static void ref_rows(const struct op_call *c, const double *const in[], double *out)
{
    int k = last(&c->in[0]), n = c->op->name[0] == 'm' ? 1 : last(&c->out);
    int64_t m = tdesc_numel(&c->in[0]) / k;
    bool right = c->op->name[0] == 'e';

    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = c->i[0] ? in[2][j] : 0;
            for (int q = 0; q < k; q++)
                s += in[0][i * k + q] * in[1][right ? q * n + j : j * k + q];
            out[i * n + j] = s;
        }
}

/* The call as a loop nest of class contract, over rows of the input. */
static void lower_rows(const struct op_call *c, struct nest *k)
{
    static const char *const lead[] = {"", "ma", "ma, mb", "ma, mb, mc", "ma, mb, mc, md"};
    static const char *const name[] = {"ma", "mb", "mc", "md"};
    int rank = c->in[0].rank;
    bool mv = c->op->name[0] == 'm';
    const char *comma = rank > 1 ? ", " : "";
    char store[64];

    for (int d = 0; d < rank - 1; d++)
        nest_dim(k, 1, c->in[0].d[d], "%s", name[d]);
    if (!mv)
        nest_dim(k, 2, last(&c->out), "o");
    nest_dim(k, 3, last(&c->in[0]), "i");
    k->a = nest_expr(k, "L0(%s%si)", lead[rank - 1], comma);
    k->b = nest_expr(k, mv ? "L1(i)" : c->op->name[0] == 'e' ? "L1(i, o)" : "L1(o, i)");
    nest_stat(k, C_SUM, ax_bin(k->arena, "*", k->a, k->b), NULL);
    if (c->i[0])
        k->out = nest_expr(k, "s0 + L2(o)");
    snprintf(store, sizeof store, "%s%s%s", lead[rank - 1], mv ? "" : comma, mv ? "" : "o");
    nest_store(k, store);
}

static bool key_linear(const struct op_call *c, const char *key, struct buf *out)
{
    if (!strcmp(key, "in"))
        buf_addf(out, "%d", last(&c->in[0]));
    else if (!strcmp(key, "on"))
        buf_addf(out, "%d", last(&c->out));
    else if (!strcmp(key, "b"))
        buf_adds(out, c->i[0] ? "True" : "False");
    else if (!strcmp(key, "sub1") || !strcmp(key, "sub2")) /* "abj" and "abk" */
        buf_addf(out, "%s%c", &"abc"[4 - c->in[0].rank], key[3] == '1' ? 'j' : 'k');
    else
        return false;
    return true;
}

/* ---- diag(x) @ y: rows of y scaled ---- */

static bool draw_diag(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    c->in[1] = (struct tdesc){.rank = 2, .dtype = c->in[0].dtype, .d = {last(&c->in[0]), 1}};
    c->in[1].d[1] = draw_dim(r, l->max_numel / c->in[1].d[0]);
    c->n_in = 2;
    return true;
}

static bool shape_diag(struct op_call *c)
{
    c->out = c->in[1];
    return true;
}

static void ref_diag(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    for (int64_t i = 0; i < n; i++)
        out[i] = in[0][i / c->out.d[1]] * in[1][i];
}

static void lower_diag(const struct op_call *c, struct nest *k)
{
    nest_dim(k, 0, c->out.d[0], "r");
    nest_dim(k, 0, c->out.d[1], "e");
    k->out = nest_expr(k, "L0(r) * L1(r, e)");
}

const struct opdef linear_ops[] = {
    {.name = "diag_matmul", .family = "matmul", .class = NEST_MAP, .ranks = 0x02, .draw = draw_diag, .shape =
        shape_diag,
     .ref = ref_diag, .lower = lower_diag, .about = "a diagonal matrix times a matrix",
     .spell = {{NULL, "torch.diag($0) @ $1"}, {NULL, "torch.matmul(torch.diag($0), $1)"}}},
    {.name = "linear", .family = "matmul", .class = NEST_CONTRACT, .ranks = 0x1c, .n_params = 2, .param = {"weight",
        "bias"},
     .draw = draw_linear, .shape = shape_linear, .ref = ref_rows, .lower = lower_rows, .key = key_linear,
     .about = "a fully connected layer", .spell = {{"nn.Linear($in, $on, bias=$b)", "$m($0)"}}},
    {.name = "einsum_last", .family = "matmul", .class = NEST_CONTRACT, .ranks = 0x1c, .draw = draw_right, .shape =
        shape_right,
     .ref = ref_rows, .lower = lower_rows, .key = key_linear, .about = "x times a matrix, along the last axis",
     .spell = {{NULL, "torch.einsum('$sub1,jk->$sub2', $0, $1)"}, {NULL, "torch.matmul($0, $1)"}}},
    {.name = "mv", .family = "matmul", .class = NEST_CONTRACT, .ranks = 0x04, .draw = draw_mv, .shape = shape_mv,
        .ref = ref_rows,
     .lower = lower_rows, .about = "a matrix times a vector", .spell = {{NULL, "torch.mv($0, $1)"}, {NULL,
         "torch.matmul($0, $1)"}}},
    {0}};
