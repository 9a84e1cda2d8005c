/* elementwise.c - shared by elementwise rows: broadcast evaluation and lowering of a row's expression. No rows here. */
#include "synth/ops/elementwise.h"

#include <string.h>

const struct opdef elementwise_ops[] = {{0}};

/* The element of a broadcast input that belongs to element 'at' of the output. */
static int64_t source_of(const struct tdesc *in, const struct tdesc *out, int64_t at)
{
    int64_t index = 0, stride = 1;

    for (int d = out->rank - 1; d >= 0; d--) {
        int k = d - (out->rank - in->rank);
        int64_t i = at % out->d[d];
        at /= out->d[d];
        if (k >= 0) {
            index += in->d[k] == 1 ? 0 : i * stride;
            stride *= in->d[k];
        }
    }
    return index;
}

void map_ref(const struct op_call *c, const double *const in[], double *out)
{
    int64_t n = tdesc_numel(&c->out);

    for (int64_t i = 0; i < n; i++) {
        double v[OP_INPUTS];
        for (int k = 0; k < c->n_in; k++)
            v[k] = in[k][source_of(&c->in[k], &c->out, i)];
        out[i] = c->op->f(v, c);
    }
}

void map_lower(const struct op_call *c, struct nest *k)
{
    static const char *const operand[] = {"x", "y", "z", "u", "v"};
    const char *const *names = output_names[c->out.rank ? c->out.rank - 1 : 0];
    struct ax *load[OP_INPUTS];
    struct buf text;

    for (int d = 0; d < c->out.rank; d++)
        nest_dim(k, 0, c->out.d[d], "%s", names[d]);
    for (int i = 0; i < c->n_in; i++)
        load[i] = nest_broadcast(k, i, names, c->out.rank);
    buf_init(&text, 4096);
    op_spell(c, c->op->expr, NULL, NULL, &text);
    /* "$f0" came out as Python writes it; a constant of a kernel is a float all the same */
    k->out = ax_subst(k->arena, ax_parse(k->arena, text.p), operand, load, c->n_in);
    buf_free(&text);
}

bool map_draw_other(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    struct tdesc *y = &c->in[c->n_in];

    (void)l;
    *y = c->in[0];
    switch (draw_below(r, 5)) {
    case 0: /* the last dimensions */
        y->rank = (uint8_t)(1 + draw_below(r, (uint64_t)c->in[0].rank));
        memcpy(y->d, c->in[0].d + c->in[0].rank - y->rank, sizeof *y->d * y->rank);
        break;
    case 1: /* some dimensions of extent 1 */
        for (int i = 0; i < y->rank; i++)
            if (draw_below(r, 2))
                y->d[i] = 1;
        break;
    }
    c->n_in++;
    return true;
}
