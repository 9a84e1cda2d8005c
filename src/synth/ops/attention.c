/* attention.c - scaled dot-product attention. Operands q (B, H, S, D), k (B, H, T, D), v (B, H, T, E) or without the
 * heads. Attributes: i[0] causal; a row with a mask has it as its last operand, (S, T). draw_, shape_, ref_, lower_
 * and key_ are the members of struct opdef (synth/op.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/op.h"

enum { CAUSAL = 0 };

static bool is_masked(const struct op_call *c)
{
    return strstr(c->op->name, "masked") != NULL;
}

/* Draws shapes of keys, values and mask for the queries in[0]. False: they do not fit the limits. */
static bool draw_attention(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    struct tdesc *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    int n = q->rank, s = q->d[n - 2];

    c->i[CAUSAL] = strstr(c->op->name, "causal") != NULL;
    if (q->d[n - 1] > 256)
        return false;
    *k = *v = *q;
    if (!c->i[CAUSAL] && draw_below(r, 2))
        k->d[n - 2] = v->d[n - 2] = draw_dim(r, l->max_numel / (q->d[n - 1] * (n == 4 ? q->d[0] * q->d[1] : q->d[0])));
    if (draw_below(r, 4) == 0)
        v->d[n - 1] = draw_dim(r, 64);
    c->in[3] = (struct tdesc){.rank = 2, .dtype = q->dtype, .d = {s, k->d[n - 2]}};
    c->n_in = is_masked(c) ? 4 : 3;
    return tdesc_numel(v) <= l->max_numel && tdesc_numel(&c->in[3]) <= l->max_numel &&
           tdesc_numel(q) * k->d[n - 2] <= l->max_work;
}

static bool shape_attention(struct op_call *c)
{
    int n = c->in[0].rank;

    c->out = c->in[0];
    c->out.d[n - 1] = c->in[2].d[n - 1];
    return true;
}

struct plane {
    const double *q, *k, *v, *mask;
    int s, t, d, e;
};

/* Row i of softmax(q k^T / sqrt(d) + mask) v, in doubles. */
static void attend_row(const struct op_call *c, const struct plane *p, int i, double *out)
{
    double w[4096], max = -INFINITY, sum = 0;

    for (int j = 0; j < p->t; j++) {
        double dot = 0;
        for (int d = 0; d < p->d; d++)
            dot += p->q[i * p->d + d] * p->k[j * p->d + d];
        w[j] = dot / sqrt(p->d) + (p->mask ? p->mask[i * p->t + j] : 0);
        if (c->i[CAUSAL] && j > i)
            w[j] = -INFINITY;
        max = fmax(max, w[j]);
    }
    for (int j = 0; j < p->t; j++)
        sum += w[j] = exp(w[j] - max);
    for (int e = 0; e < p->e; e++) {
        double y = 0;
        for (int j = 0; j < p->t; j++)
            y += w[j] * p->v[j * p->e + e];
        out[i * p->e + e] = y / sum;
    }
}

static void ref_attention(const struct op_call *c, const double *const in[], double *out)
{
    int n = c->in[0].rank, batch = n == 4 ? c->in[0].d[0] * c->in[0].d[1] : c->in[0].d[0];
    int s = c->in[0].d[n - 2], t = c->in[1].d[n - 2], d = c->in[0].d[n - 1], e = c->in[2].d[n - 1];

    for (int b = 0; b < batch; b++) {
        struct plane p = {in[0] + (int64_t)b * s * d, in[1] + (int64_t)b * t * d, in[2] + (int64_t)b * t * e,
                          is_masked(c) ? in[3] : NULL, s, t, d, e};
        for (int i = 0; i < s; i++)
            attend_row(c, &p, i, out + (int64_t)b * s * e);
    }
}

/* The call as a loop nest of class attend. */
static void lower_attention(const struct op_call *c, struct nest *k)
{
    int n = c->in[0].rank;
    const char *lead = n == 4 ? "ba, he" : "ba";
    char score[160];

    nest_dim(k, 0, c->in[0].d[0], "ba");
    if (n == 4)
        nest_dim(k, 0, c->in[0].d[1], "he");
    nest_dim(k, 1, c->in[0].d[n - 2], "tq");
    nest_dim(k, 2, c->in[1].d[n - 2], "tk");
    nest_dim(k, 3, c->in[0].d[n - 1], "dk");
    nest_dim(k, 4, c->in[2].d[n - 1], "dv");
    k->a = nest_expr(k, "L0(%s, tq, dk)", lead);
    k->b = nest_expr(k, "L1(%s, tk, dk)", lead);
    k->c = nest_expr(k, "L2(%s, tk, dv)", lead);
    snprintf(score, sizeof score, "s0 * %.9gf%s", 1 / sqrt(c->in[0].d[n - 1]), is_masked(c) ? " + L3(tq, tk)" : "");
    if (!strpbrk(score + 5, ".e"))
        snprintf(score, sizeof score, "s0 * 1.0f%s", is_masked(c) ? " + L3(tq, tk)" : "");
    if (c->i[CAUSAL])
        nest_stat(k, C_SUM, nest_expr(k, "tk <= tq ? %s : -INFINITY", score), NULL);
    else
        nest_stat(k, C_SUM, nest_expr(k, "%s", score), NULL);
    nest_store(k, n == 4 ? "ba, he, tq, dv" : "ba, tq, dv");
}

static bool key_attention(const struct op_call *c, const char *key, struct buf *out)
{
    if (strcmp(key, "root"))
        return false;
    buf_addf(out, "%d ** 0.5", c->in[0].d[c->in[0].rank - 1]);
    return true;
}

#define ATTENTION(NAME, ABOUT) \
    .name = NAME, .family = "attention", .class = NEST_ATTEND, .ranks = 0x18, .draw = draw_attention, \
    .shape = shape_attention, .ref = ref_attention, .lower = lower_attention, .key = key_attention, .about = ABOUT

const struct opdef attention_ops[] = {
    {ATTENTION("attention", "softmax of the scaled scores, times the values"),
     .spell = {{NULL, "F.scaled_dot_product_attention($0, $1, $2)"},
               {NULL, "torch.softmax($0 @ $1.transpose(-2, -1) / ($root), dim=-1) @ $2"}}},
    {ATTENTION("attention_causal", "attention that sees no later key"),
     .spell = {{NULL, "F.scaled_dot_product_attention($0, $1, $2, is_causal=True)"}}},
    {ATTENTION("attention_masked", "attention with a mask that is added to the scores"),
     .spell = {{NULL, "F.scaled_dot_product_attention($0, $1, $2, attn_mask=$3)"}}},
    {0}};
