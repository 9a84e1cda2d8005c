/* axes.c - see axes.h. No rows here. */
#include "synth/ops/axes.h"

#include <string.h>

const struct opdef axes_ops[] = {{0}};

bool axes_draw_one(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    (void)l;
    c->i[0] = 1 << (draw_below(r, 2) ? c->in[0].rank - 1 : (int)draw_below(r, c->in[0].rank));
    c->i[1] = (int)draw_below(r, 2);
    return true;
}

bool axes_draw(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int all = (1 << c->in[0].rank) - 1;

    axes_draw_one(r, l, c);
    if (draw_below(r, 4) == 0)
        c->i[0] = 1 + (int)draw_below(r, (uint64_t)all);
    if (c->i[0] == all)
        c->i[1] = 0;
    return true;
}

bool axes_shape(struct op_call *c)
{
    c->out = c->in[0];
    c->out.rank = 0;
    for (int d = 0; d < c->in[0].rank; d++)
        if (!(c->i[0] >> d & 1))
            c->out.d[c->out.rank++] = c->in[0].d[d];
        else if (c->i[1])
            c->out.d[c->out.rank++] = 1;
    return true;
}

bool axes_shape_same(struct op_call *c)
{
    c->out = c->in[0];
    return true;
}

bool axes_key(const struct op_call *c, const char *key, struct buf *out)
{
    int32_t v[TENSOR_RANK];
    int n = 0;

    if (!strcmp(key, "keep")) {
        buf_adds(out, c->i[1] ? "True" : "False");
        return true;
    }
    if (strcmp(key, "dim"))
        return false;
    for (int d = 0; d < c->in[0].rank; d++)
        if (c->i[0] >> d & 1)
            v[n++] = d;
    if (n == 1 && v[0] == c->in[0].rank - 1)
        buf_adds(out, "-1");
    else if (n == 1)
        buf_addf(out, "%d", v[0]);
    else
        for (int i = 0; i < n; i++)
            buf_addf(out, "%s%d%s", i ? ", " : "(", v[i], i == n - 1 ? ")" : "");
    return true;
}

void axes_dims(const struct op_call *c, struct nest *k, char load[128])
{
    const char *const *names = output_names[c->in[0].rank - 1];

    for (int group = 0; group < 2; group++)
        for (int d = 0; d < c->in[0].rank; d++)
            if ((c->i[0] >> d & 1) == group)
                nest_dim(k, group, c->in[0].d[d], "%s", names[d]);
    strcpy(load, "L0(");
    for (int d = 0; d < c->in[0].rank; d++)
        strcat(strcat(load, d ? ", " : ""), names[d]);
    strcat(load, ")");
}

void axes_store(const struct op_call *c, struct nest *k, bool all)
{
    const char *const *names = output_names[c->in[0].rank - 1];
    char s[128] = "";

    for (int d = 0; d < c->in[0].rank; d++) {
        bool reduced = c->i[0] >> d & 1;
        if (reduced && !all && !c->i[1])
            continue;
        strcat(strcat(s, *s ? ", " : ""), reduced && !all ? "0" : names[d]);
    }
    nest_store(k, s);
}

void axes_open(const struct op_call *c, struct axes *a)
{
    int64_t stride = 1;

    *a = (struct axes){.rows = 1, .len = 1};
    for (int d = c->in[0].rank - 1; d >= 0; d--) {
        int n = c->in[0].d[d];
        if (c->i[0] >> d & 1)
            a->len_n[a->n_len] = n, a->len_stride[a->n_len++] = stride, a->len *= n;
        else
            a->row_n[a->n_row] = n, a->row_stride[a->n_row++] = stride, a->rows *= n;
        stride *= n;
    }
}

int64_t axes_at(const struct axes *a, int64_t row, int64_t k)
{
    int64_t at = 0;

    for (int i = 0; i < a->n_row; i++)
        at += row % a->row_n[i] * a->row_stride[i], row /= a->row_n[i];
    for (int i = 0; i < a->n_len; i++)
        at += k % a->len_n[i] * a->len_stride[i], k /= a->len_n[i];
    return at;
}
