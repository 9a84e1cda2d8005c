/* layer.c - the attention layer on a device: pre-norm attention with rotated heads (normed in Qwen3), in Qwen3.5 a gate
 * on its output, then SwiGLU. */
#include "nn/layer.h"

#include "nn/dev_model.h"

/* ---- storage ---- */

#define PARTS 11

/* Lists the buffers of one layer's activations for T rows, with their bytes. */
static void layer_parts_of(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T,
                           struct layer_part *p)
{
    size_t t = (size_t)T, e = dtype_size(dt), f = sizeof(float);

    p[0] = (struct layer_part){&a->x, t * (size_t)n->d * e};
    p[1] = (struct layer_part){&a->x_mid, t * (size_t)n->d * e};
    p[2] = (struct layer_part){&a->qkv, t * (size_t)n->qkv * e};
    p[3] = (struct layer_part){&a->qk, t * (size_t)(n->q + n->kv) * e};
    p[4] = (struct layer_part){&a->att, t * (size_t)n->q * e};
    p[5] = (struct layer_part){&a->gate_up, t * 2 * (size_t)n->f * e};
    p[6] = (struct layer_part){&a->rstd1, t * f};
    p[7] = (struct layer_part){&a->rstd2, t * f};
    p[8] = (struct layer_part){&a->rstd_q, n->head_norms ? t * (size_t)n->heads * f : 0};
    p[9] = (struct layer_part){&a->rstd_k, n->head_norms ? t * (size_t)n->kv_heads * f : 0};
    p[10] = (struct layer_part){&a->lse, t * (size_t)n->heads * f};
}

/* Bytes of a layer's activations of T tokens on the device. */
static size_t layer_acts_bytes(const struct model_dims *n, enum nn_dtype dt, int T)
{
    struct dev_acts a;
    struct layer_part p[PARTS];

    layer_parts_of(&a, n, dt, T, p);
    return layer_parts_bytes(p, PARTS);
}

/* Places a layer's activations from 'at' on; returns the first byte behind them. */
static char *layer_do_acts_place(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T, char *at)
{
    struct layer_part p[PARTS];

    layer_parts_of(a, n, dt, T, p);
    return layer_parts_place(p, PARTS, at);
}

static size_t layer_state_bytes(const struct model_dims *n, enum nn_dtype dt, int max_len)
{
    return 2 * (size_t)max_len * (size_t)n->kv * dtype_size(dt);
}

/* ---- between the projections ---- */

/* Norms queries and keys of a->qkv and rotates them by their positions, into a->qk. */
static void layer_rotate(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int ld = n->q + n->kv;

    op->qk_norm_rope(g->d->q, g->dt, s->T, model_q_heads(n), a->qkv, n->qkv, w->q_norm, g->eps, s->pos, s->rope, a->qk,
                     ld, a->rstd_q);
    op->qk_norm_rope(g->d->q, g->dt, s->T, model_k_heads(n), dev_tensor_at(g, a->qkv, (size_t)n->k_at), n->qkv,
                     w->k_norm, g->eps, s->pos, s->rope, dev_tensor_at(g, a->qk, (size_t)n->q), ld, a->rstd_k);
    if (s->slot)
        op->kv_store(g->d->q, g->dt, s->T, n->kv, s->max_len, s->slot, s->pos,
                     dev_tensor_at(g, a->qk, (size_t)n->q), ld,
                     dev_tensor_at(g, a->qkv, (size_t)n->v_at), n->qkv, s->cache_k, s->cache_v);
}

/* Attention's output behind its gate, if it has one. */
static const void *layer_gate(struct dev_model *g, const struct dev_step *s, const struct dev_acts *a)
{
    const struct model_dims *n = &g->dims;

    if (n->q_step == n->dim)
        return a->att;
    g->d->ops->out_gate(g->d->q, g->dt, s->T, n->heads, n->dim, a->att, dev_tensor_at(g, a->qkv, (size_t)n->dim),
                        n->qkv, n->q_step, s->mixed);
    return s->mixed;
}

/* ---- the three ways to run ---- */

/* Queues an attention layer over packed sequences. */
static void layer_forward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a,
                          void *x_out)
{
    const struct model_dims *n = &g->dims;

    layer_project(g, layer, s, a);
    layer_rotate(g, layer, s, a);
    g->d->ops->attn(g->d->q, g->dt, &s->attn, a->qk, dev_tensor_at(g, a->qk, (size_t)n->q),
                    dev_tensor_at(g, a->qkv, (size_t)n->v_at), a->att, a->lse);
    layer_finish(g, layer, s, a, layer_gate(g, s, a), x_out);
}

/* Queues an attention layer for one token of each row. */
static void layer_decode(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a,
                         void *x_out)
{
    const struct model_dims *n = &g->dims;
    struct nn_decode q = {s->T, n->heads, n->kv_heads, n->dim, s->max_len, s->slot, s->pos, s->cache_k, s->cache_v};

    layer_project(g, layer, s, a);
    layer_rotate(g, layer, s, a);
    g->d->ops->attn_decode(g->d->q, g->dt, &q, a->qk, n->q + n->kv, a->att, n->q);
    layer_finish(g, layer, s, a, layer_gate(g, s, a), x_out);
}

/* s->datt becomes the gradient of attention's output before its gate; returns what is behind it. */
static const void *layer_gate_backward(struct dev_model *g, const struct dev_step *s, const struct dev_acts *a)
{
    const struct model_dims *n = &g->dims;

    if (n->q_step == n->dim)
        return a->att;
    g->d->ops->out_gate_backward(g->d->q, g->dt, s->T, n->heads, n->dim, a->att,
                                 dev_tensor_at(g, a->qkv, (size_t)n->dim),
                                 n->qkv, n->q_step, s->datt, dev_tensor_at(g, s->dqkv, (size_t)n->dim), s->mixed);
    return s->mixed;
}

/* Queues the gradients of an attention layer. */
static void layer_attention_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int ld = n->q + n->kv;
    size_t k = (size_t)n->q, k_at = (size_t)n->k_at, v_at = (size_t)n->v_at;

    op->attn_backward(g->d->q, g->dt, &s->attn, a->qk, dev_tensor_at(g, a->qk, k), dev_tensor_at(g, a->qkv, v_at),
                      a->att, a->lse,
                      s->datt, s->delta, s->dqk, dev_tensor_at(g, s->dqk, k), dev_tensor_at(g, s->dqkv, v_at));
    op->qk_norm_rope_backward(g->d->q, g->dt, s->T, model_q_heads(n), a->qkv, n->qkv, w->q_norm, a->rstd_q, s->pos,
                              s->rope, s->dqk, ld, s->dqkv, n->qkv, w->q_norm ? dev_grad(g, w->q_norm) : NULL);
    op->qk_norm_rope_backward(g->d->q, g->dt, s->T, model_k_heads(n), dev_tensor_at(g, a->qkv, k_at), n->qkv, w->k_norm,
                              a->rstd_k, s->pos, s->rope, dev_tensor_at(g, s->dqk, k), ld,
                              dev_tensor_at(g, s->dqkv, k_at), n->qkv, w->k_norm ? dev_grad(g, w->k_norm) : NULL);
    if (w->bias)
        op->bias_backward(g->d->q, g->dt, s->T, n->qkv, s->dqkv, n->qkv, dev_grad(g, w->bias));
}

/* Queues the gradients of an attention layer and its MLP. */
static void layer_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    layer_mlp_backward(g, layer, s, a);
    layer_out_backward(g, layer, s);
    layer_out_gradient(g, layer, s, layer_gate_backward(g, s, a));
    layer_attention_backward(g, layer, s, a);
    layer_project_backward(g, layer, s, a);
}

static const struct layer_kind attention = {"attention", layer_acts_bytes, layer_do_acts_place, layer_state_bytes,
                                            layer_forward, layer_backward, layer_decode, true};

const struct layer_kind *layer_kind_of(const struct model *m, int layer)
{
    return m->layers[layer].mix == MIX_DELTA ? &layer_delta : &attention;
}
