/* op_parts.c - what rows of the registry share: draws of sizes and constants, shapes, spellings. */
#include "synth/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int draw_pick(struct rng *r, const int *v, int n)
{
    return v[draw_below(r, (uint64_t)n)];
}

int draw_dim(struct rng *r, int max)
{
    static const int common[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128,
        129, 160, 255, 256,
                                 257, 320, 511, 512, 1000, 1023, 1024};
    int n = (int)(sizeof common / sizeof *common);

    if (max < 1)
        return 1;
    while (n > 1 && common[n - 1] > max)
        n--;
    if (draw_below(r, 4) == 0)
        return 1 + (int)draw_below(r, (uint64_t)(max < 1024 ? max : 1024));
    return common[n > 3 && draw_below(r, 8) ? 2 + (int)draw_below(r, (uint64_t)(n - 2)) : (int)draw_below(r,
        (uint64_t)n)];
}

void draw_shape(struct rng *r, int rank, int max_numel, struct tdesc *t)
{
    int64_t left = max_numel;

    t->rank = (uint8_t)rank;
    for (int i = 0; i < rank; i++) {
        int64_t most = left;
        for (int k = i + 1; k < rank && most > 2; k++)
            most = most / 4 > 0 ? most / 4 : 1;
        t->d[i] = draw_dim(r, (int)(most < 1024 ? most : 1024));
        left /= t->d[i];
    }
}

double draw_constant(struct rng *r, const struct op_limits *l, double lo, double hi)
{
    static const double nice[] = {0.5, 2.0, 0.25, 1.5, 0.1, 3.0, 1.0, 0.01, -0.5, -1.0, 4.0, 0.2};

    for (int i = 0; i < 8; i++) {
        double x = nice[draw_below(r, sizeof nice / sizeof *nice)];
        if ((l->nice || draw_below(r, 2)) && x >= lo && x <= hi)
            return x;
    }
    return (double)(long)((lo + (hi - lo) * rng_f64(r)) * 100) / 100.0;
}

bool shape_broadcast(struct op_call *c)
{
    struct tdesc *o = &c->out;

    *o = c->in[0];
    for (int i = 1; i < c->n_in; i++)
        if (c->in[i].rank > o->rank)
            o->rank = c->in[i].rank;
    for (int d = 0; d < o->rank; d++) {
        int n = 1;
        for (int i = 0; i < c->n_in; i++) {
            int k = d - (o->rank - c->in[i].rank), m = k < 0 ? 1 : c->in[i].d[k];
            if (m != 1 && n != 1 && m != n)
                return false;
            n = m != 1 ? m : n;
        }
        o->d[d] = n;
    }
    return true;
}

/* No name that a schedule's text uses for its own variables. */
const char *const output_names[5][TENSOR_RANK] = {
    {"e"}, {"r", "e"}, {"b", "r", "e"}, {"n", "c", "h", "w"}, {"n", "c", "d", "h", "w"}};

void text_tuple(const int32_t *v, int n, struct buf *out)
{
    bool same = n > 0;

    for (int i = 1; i < n; i++)
        same = same && v[i] == v[0];
    if (same) {
        buf_addf(out, "%d", v[0]);
        return;
    }
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s%d", i ? ", " : "(", v[i]);
    buf_addc(out, ')');
}

/* 0.5 -> "0.5", 2 -> "2.0" */
static void op_parts_add_number(double x, struct buf *out)
{
    char s[40];

    snprintf(s, sizeof s, "%.9g", x);
    buf_adds(out, s);
    if (!strpbrk(s, ".en"))
        buf_adds(out, ".0");
}

/* Appends what a $key of an operator's spelling stands for. */
static void op_parts_add_key(const struct op_call *c, const char *key, const char *const names[], const char *module,
    struct buf *out)
{
    int at = key[0] && key[1] ? atoi(key + 1) : 0;

    if (key[0] >= '0' && key[0] <= '9' && names)
        buf_adds(out, names[atoi(key)]);
    else if (!strcmp(key, "m"))
        buf_adds(out, module);
    else if (c->op->key && c->op->key(c, key, out))
        ;
    else if (key[0] == 'f' && key[1] >= '0' && key[1] <= '9')
        op_parts_add_number(c->f[at], out);
    else if (key[0] == 'i' && key[1] >= '0' && key[1] <= '9')
        buf_addf(out, "%d", c->i[at]);
    else if (key[0] == 'b' && key[1] >= '0' && key[1] <= '9')
        buf_adds(out, c->i[at] ? "True" : "False");
    else
        buf_addf(out, "<%s?>", key);
}

void op_spell(const struct op_call *c, const char *text, const char *const names[], const char *module, struct buf *out)
{
    for (const char *p = text; *p; p++) {
        char key[24];
        size_t n = 0;

        if (*p != '$') {
            buf_addc(out, *p);
            continue;
        }
        while ((p[1] >= 'a' && p[1] <= 'z') || (p[1] >= '0' && p[1] <= '9'))
            if (n < sizeof key - 1)
                key[n++] = *++p;
        key[n] = 0;
        op_parts_add_key(c, key, names, module, out);
    }
}

static const char *const short_dtypes[] = {"f32", "f16", "bf16", "i64"};

void op_signature(const struct op_call *c, struct buf *out)
{
    buf_adds(out, c->op->name);
    for (int i = 0; i < c->n_in; i++) {
        buf_addf(out, " %s(", short_dtypes[c->in[i].dtype]);
        for (int d = 0; d < c->in[i].rank; d++)
            buf_addf(out, "%s%d", d ? "," : "", c->in[i].d[d]);
        buf_addc(out, ')');
    }
    buf_adds(out, " |");
    for (int i = 0; i < OP_INTS; i++)
        buf_addf(out, " %d", c->i[i]);
    for (int i = 0; i < OP_REALS; i++)
        buf_addf(out, " %g", c->f[i]);
}
