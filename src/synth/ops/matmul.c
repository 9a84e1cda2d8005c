/* matmul.c - matrix products. Attributes: i[0] left operand is stored transposed, i[1] right operand is. draw_,
 * shape_, ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include "synth/op.h"

/* Draws the right operand and the transpositions for in[0]. False: it does not fit the limits. */
static bool draw_matmul(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    struct tdesc *a = &c->in[0], *b = &c->in[1];
    int k = a->d[a->rank - 1], m = a->d[a->rank - 2];
    int64_t most = l->max_work / (tdesc_numel(a) ? tdesc_numel(a) : 1);

    if (most < 1)
        return false;
    *b = *a;
    if (a->rank == 3 && draw_below(r, 2)) /* one right operand for the whole batch */
        b->rank = 2;
    b->d[b->rank - 2] = k;
    b->d[b->rank - 1] = draw_dim(r, (int)(most < l->max_numel / k ? most : l->max_numel / k));
    if (c->in[0].rank == 2 && draw_below(r, 3) == 0)
        c->i[0] = 1, a->d[0] = k, a->d[1] = m;
    if (c->in[0].rank == 2 && draw_below(r, 3) == 0)
        c->i[1] = 1, b->d[0] = b->d[1], b->d[1] = k;
    c->n_in = 2;
    return true;
}

struct sizes {
    int batch, m, n, k;
};

static struct sizes sizes_of(const struct op_call *c)
{
    const struct tdesc *a = &c->in[0], *b = &c->in[1];
    struct sizes s = {a->rank == 3 ? a->d[0] : 1, a->d[a->rank - 2 + (c->i[0] ? 1 : 0)], b->d[b->rank - 1 - (c->i[1] ?
        1 : 0)],
                      a->d[a->rank - 1 - (c->i[0] ? 1 : 0)]};

    return s;
}

static bool shape_matmul(struct op_call *c)
{
    struct sizes s = sizes_of(c);
    const struct tdesc *b = &c->in[1];

    if (b->d[b->rank - 2 + (c->i[1] ? 1 : 0)] != s.k)
        return false;
    c->out = c->in[0];
    c->out.d[c->out.rank - 2] = s.m;
    c->out.d[c->out.rank - 1] = s.n;
    return true;
}

/* The product in doubles: out (batch, m, n). */
static void ref_matmul(const struct op_call *c, const double *const in[], double *out)
{
    struct sizes s = sizes_of(c);

    for (int b = 0; b < s.batch; b++)
        for (int m = 0; m < s.m; m++)
            for (int n = 0; n < s.n; n++) {
                const double *x = in[0] + (int64_t)b * s.m * s.k, *y = in[1] + (c->in[1].rank == 3 ?
                    (int64_t)b * s.k * s.n : 0);
                double sum = 0;
                for (int k = 0; k < s.k; k++)
                    sum += x[c->i[0] ? k * s.m + m : m * s.k + k] * y[c->i[1] ? n * s.k + k : k * s.n + n];
                out[((int64_t)b * s.m + m) * s.n + n] = sum;
            }
}

static void lower_matmul(const struct op_call *c, struct nest *k)
{
    struct sizes s = sizes_of(c);
    bool batch = c->in[0].rank == 3;

    if (batch)
        nest_dim(k, 0, s.batch, "b");
    nest_dim(k, 1, s.m, "m");
    nest_dim(k, 2, s.n, "n");
    nest_dim(k, 3, s.k, "k");
    k->a = nest_expr(k, batch ? "L0(b, m, k)" : c->i[0] ? "L0(k, m)" : "L0(m, k)");
    k->b = nest_expr(k, c->in[1].rank == 3 ? "L1(b, k, n)" : c->i[1] ? "L1(n, k)" : "L1(k, n)");
    nest_stat(k, C_SUM, ax_bin(k->arena, "*", k->a, k->b), NULL);
}

static bool key_matmul(const struct op_call *c, const char *key, struct buf *out)
{
    if (!strcmp(key, "ta") || !strcmp(key, "tb")) {
        buf_adds(out, c->i[key[1] == 'b'] ? ".T" : "");
        return true;
    }
    return false;
}

const struct opdef matmul_ops[] = {
    {.name = "matmul", .family = "matmul", .class = NEST_CONTRACT, .ranks = 0x0c, .draw = draw_matmul, .shape =
        shape_matmul,
     .ref = ref_matmul, .lower = lower_matmul, .key = key_matmul, .about = "the matrix product",
     .spell = {{NULL, "torch.matmul($0$ta, $1$tb)"}, {NULL, "$0$ta @ $1$tb"}}},
    {0}};
