/* layer.c - Qwen3's layer on a device: pre-norm attention with normed, rotated heads, then SwiGLU. */
#include "nn/layer.h"

#include <string.h>

#include "nn/dev_model.h"

/* ---- storage ---- */

struct part {
    void *where;
    size_t bytes;
};

#define PARTS 11

static void parts_of(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T, struct part *p)
{
    size_t t = (size_t)T, e = dtype_size(dt), f = sizeof(float);

    p[0] = (struct part){&a->x, t * (size_t)n->d * e};
    p[1] = (struct part){&a->x_mid, t * (size_t)n->d * e};
    p[2] = (struct part){&a->qkv, t * (size_t)n->qkv * e};
    p[3] = (struct part){&a->qk, t * (size_t)(n->q + n->kv) * e};
    p[4] = (struct part){&a->att, t * (size_t)n->q * e};
    p[5] = (struct part){&a->gate_up, t * 2 * (size_t)n->f * e};
    p[6] = (struct part){&a->rstd1, t * f};
    p[7] = (struct part){&a->rstd2, t * f};
    p[8] = (struct part){&a->rstd_q, t * (size_t)n->heads * f};
    p[9] = (struct part){&a->rstd_k, t * (size_t)n->kv_heads * f};
    p[10] = (struct part){&a->lse, t * (size_t)n->heads * f};
}

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

static size_t acts_bytes(const struct model_dims *n, enum nn_dtype dt, int T)
{
    struct dev_acts a;
    struct part p[PARTS];
    size_t sum = 0;

    parts_of(&a, n, dt, T, p);
    for (int i = 0; i < PARTS; i++)
        sum += padded(p[i].bytes);
    return sum;
}

static char *acts_place(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T, char *at)
{
    struct part p[PARTS];

    parts_of(a, n, dt, T, p);
    for (int i = 0; i < PARTS; i++) {
        memcpy(p[i].where, &at, sizeof at); // the address of a pointer of either type
        at += padded(p[i].bytes);
    }
    return at;
}

static size_t state_bytes(const struct model_dims *n, enum nn_dtype dt, int max_len)
{
    return 2 * (size_t)max_len * (size_t)n->kv * dtype_size(dt);
}

/* ---- parts that training and decoding share ---- */

/* a->x to a->qk and the values in a->qkv. */
static void project(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int ld = n->q + n->kv;

    op->rmsnorm(g->d->q, g->dt, s->T, n->d, NULL, a->x, w->norm1, g->eps, s->h, a->rstd1);
    dev_linear(g, s->T, n->qkv, n->d, s->h, n->d, w->qkv, NULL, a->qkv, n->qkv);
    op->qk_norm_rope(g->d->q, g->dt, s->T, n->heads, n->dim, a->qkv, n->qkv, w->q_norm, g->eps, s->pos, s->rope, a->qk,
                     ld,
                     a->rstd_q);
    op->qk_norm_rope(g->d->q, g->dt, s->T, n->kv_heads, n->dim, dev_at(g, a->qkv, (size_t)n->q), n->qkv, w->k_norm,
                     g->eps,
                     s->pos, s->rope, dev_at(g, a->qk, (size_t)n->q), ld, a->rstd_k);
    if (s->slot)
        op->kv_store(g->d->q, g->dt, s->T, n->kv, s->max_len, s->slot, s->pos, dev_at(g, a->qk, (size_t)n->q), ld,
                     dev_at(g, a->qkv, (size_t)(n->q + n->kv)), n->qkv, s->cache_k, s->cache_v);
}

/* a->att and a->x to x_out. */
static void finish(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, void *x_out)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;

    dev_linear(g, s->T, n->d, n->q, a->att, n->q, w->o, a->x, a->x_mid, n->d);
    op->rmsnorm(g->d->q, g->dt, s->T, n->d, NULL, a->x_mid, w->norm2, g->eps, s->h, a->rstd2);
    dev_linear(g, s->T, 2 * n->f, n->d, s->h, n->d, w->gate_up, NULL, a->gate_up, 2 * n->f);
    op->swiglu(g->d->q, g->dt, s->T, n->f, a->gate_up, s->act);
    dev_linear(g, s->T, n->d, n->f, s->act, n->f, w->down, a->x_mid, x_out, n->d);
}

/* ---- the three ways to run ---- */

static void forward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, void *x_out)
{
    const struct model_dims *n = &g->dims;

    project(g, layer, s, a);
    g->d->ops->attn(g->d->q, g->dt, &s->attn, a->qk, dev_at(g, a->qk, (size_t)n->q),
                    dev_at(g, a->qkv, (size_t)(n->q + n->kv)), a->att, a->lse);
    finish(g, layer, s, a, x_out);
}

static void decode(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, void *x_out)
{
    const struct model_dims *n = &g->dims;
    struct nn_decode q = {s->T, n->heads, n->kv_heads, n->dim, s->max_len, s->slot, s->pos, s->cache_k, s->cache_v};

    project(g, layer, s, a);
    g->d->ops->attn_decode(g->d->q, g->dt, &q, a->qk, n->q + n->kv, a->att, n->q);
    finish(g, layer, s, a, x_out);
}

/* s->dx goes from behind the layer to behind its attention; a->gate_up becomes its gradient. */
static void mlp_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;

    dev_linear_dx(g, s->T, n->d, n->f, s->dx, n->d, w->down, s->dact, n->f);
    op->swiglu_backward(g->d->q, g->dt, s->T, n->f, a->gate_up, s->dact, a->gate_up, s->act);
    dev_linear_dw(g, s->T, n->d, n->f, s->dx, n->d, s->act, n->f, w->down);
    dev_linear_dx(g, s->T, 2 * n->f, n->d, a->gate_up, 2 * n->f, w->gate_up, s->dh, n->d);
    op->rmsnorm_backward(g->d->q, g->dt, s->T, n->d, NULL, a->x_mid, w->norm2, a->rstd2, s->dh, s->dx,
                         dev_grad(g, w->norm2), s->h);
    dev_linear_dw(g, s->T, 2 * n->f, n->d, a->gate_up, 2 * n->f, s->h, n->d, w->gate_up);
}

static void attention_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int ld = n->q + n->kv;
    size_t k = (size_t)n->q, v = (size_t)(n->q + n->kv);

    dev_linear_dx(g, s->T, n->d, n->q, s->dx, n->d, w->o, s->datt, n->q);
    dev_linear_dw(g, s->T, n->d, n->q, s->dx, n->d, a->att, n->q, w->o);
    op->attn_backward(g->d->q, g->dt, &s->attn, a->qk, dev_at(g, a->qk, k), dev_at(g, a->qkv, v), a->att, a->lse,
                      s->datt,
                      s->delta, s->dqk, dev_at(g, s->dqk, k), dev_at(g, s->dqkv, v));
    op->qk_norm_rope_backward(g->d->q, g->dt, s->T, n->heads, n->dim, a->qkv, n->qkv, w->q_norm, a->rstd_q, s->pos,
                              s->rope,
                              s->dqk, ld, s->dqkv, n->qkv, dev_grad(g, w->q_norm));
    op->qk_norm_rope_backward(g->d->q, g->dt, s->T, n->kv_heads, n->dim, dev_at(g, a->qkv, k), n->qkv, w->k_norm,
                              a->rstd_k,
                              s->pos, s->rope, dev_at(g, s->dqk, k), ld, dev_at(g, s->dqkv, k), n->qkv,
                              dev_grad(g, w->k_norm));
    dev_linear_dx(g, s->T, n->qkv, n->d, s->dqkv, n->qkv, w->qkv, s->dh, n->d);
    op->rmsnorm_backward(g->d->q, g->dt, s->T, n->d, NULL, a->x, w->norm1, a->rstd1, s->dh, s->dx, dev_grad(g,
                                                                                                            w->norm1),
                         s->h);
    dev_linear_dw(g, s->T, n->qkv, n->d, s->dqkv, n->qkv, s->h, n->d, w->qkv);
}

static void backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    mlp_backward(g, layer, s, a);
    attention_backward(g, layer, s, a);
}

static const struct layer_kind qwen3 = {"qwen3", acts_bytes, acts_place, state_bytes, forward, backward, decode};

const struct layer_kind *layer_kind_of(const struct model *m, int layer)
{
    (void)m, (void)layer;
    return &qwen3;
}
