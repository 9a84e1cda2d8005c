/* layer_delta.c - the Gated DeltaNet layer on a device: projections, short convolution, gated delta rule, gated
 * norm, then SwiGLU. Its state is one matrix a head and the convolution's last inputs, whatever the length. */
#include "nn/dev_model.h"
#include "nn/layer.h"

#define PARTS 8

/* Lists the buffers of one delta layer's activations for T rows, with their bytes. */
static void layer_delta_parts_of(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T,
                                 struct layer_part *p)
{
    size_t t = (size_t)T, e = dtype_size(dt), f = sizeof(float);

    p[0] = (struct layer_part){&a->x, t * (size_t)n->d * e};
    p[1] = (struct layer_part){&a->x_mid, t * (size_t)n->d * e};
    p[2] = (struct layer_part){&a->qkv, t * (size_t)n->ld_in[MIX_DELTA] * e};
    p[3] = (struct layer_part){&a->qk, t * (size_t)n->conv * e};
    p[4] = (struct layer_part){&a->att, t * (size_t)n->mix[MIX_DELTA] * e};
    p[5] = (struct layer_part){&a->gate_up, t * 2 * (size_t)n->f * e};
    p[6] = (struct layer_part){&a->rstd1, t * f};
    p[7] = (struct layer_part){&a->rstd2, t * f};
}

/* Bytes of a gated delta layer's activations of T tokens on the device. */
static size_t layer_delta_acts_bytes(const struct model_dims *n, enum nn_dtype dt, int T)
{
    struct dev_acts a;
    struct layer_part p[PARTS];

    layer_delta_parts_of(&a, n, dt, T, p);
    return layer_parts_bytes(p, PARTS);
}

/* Places a gated delta layer's activations from 'at' on; returns the first byte behind them. */
static char *layer_delta_acts_place(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T, char *at)
{
    struct layer_part p[PARTS];

    a->rstd_q = a->rstd_k = a->lse = NULL;
    layer_delta_parts_of(a, n, dt, T, p);
    return layer_parts_place(p, PARTS, at);
}

static size_t layer_delta_state_bytes(const struct model_dims *n, enum nn_dtype dt, int max_len)
{
    (void)max_len;
    return (size_t)n->mix[MIX_DELTA] * (size_t)n->delta.k_dim * sizeof(float) +
           (size_t)(n->taps - 1) * (size_t)n->conv * dtype_size(dt);
}

/* The delta rule's operands of a step. */
static struct nn_delta_in layer_delta_input(const struct dev_model *g, int layer, const struct dev_step *s,
                                            const struct dev_acts *a)
{
    const struct model_dims *n = &g->dims;
    struct nn_delta_in in = {n->delta, s->attn.n_seq, s->attn.cu, a->qk, dev_tensor_at(g, a->qkv, (size_t)n->b_at),
                             dev_tensor_at(g, a->qkv, (size_t)n->a_at), g->layer[layer].a_log, g->layer[layer].dt_bias};

    in.s.ld_gate = n->ld_in[MIX_DELTA];
    return in;
}

/* Queues the gated norm of the delta rule's outputs. */
static void layer_delta_norm(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct model_dims *n = &g->dims;

    g->d->ops->gated_norm(g->d->q, g->dt, s->T, n->delta.v_heads, n->delta.v_dim, a->att, g->layer[layer].mix_norm,
                          g->eps, dev_tensor_at(g, a->qkv, (size_t)n->z_at), n->ld_in[MIX_DELTA], s->mixed);
}

/* Queues a delta layer over packed sequences. */
static void layer_delta_forward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a,
                                void *x_out)
{
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int ld = n->ld_in[MIX_DELTA];
    struct nn_delta_in in = layer_delta_input(g, layer, s, a);

    layer_project(g, layer, s, a);
    op->conv_silu(g->d->q, g->dt, s->T, n->conv, n->taps, s->pos, a->qkv, ld, g->layer[layer].conv, a->qk);
    op->delta(g->d->q, g->dt, &in, a->att, s->seq_slot, s->state_stride, s->state);
    if (s->seq_slot)
        op->conv_keep(g->d->q, g->dt, in.n_seq, n->conv, n->taps, in.cu, a->qkv, ld, s->seq_slot, s->past_stride,
                      s->past);
    layer_delta_norm(g, layer, s, a);
    layer_finish(g, layer, s, a, s->mixed, x_out);
}

/* Queues a delta layer for one token of each row. */
static void layer_delta_decode(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a,
                               void *x_out)
{
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    struct nn_delta_in in = layer_delta_input(g, layer, s, a);

    in.n_seq = s->T;
    layer_project(g, layer, s, a);
    op->conv_silu_step(g->d->q, g->dt, s->T, n->conv, n->taps, a->qkv, n->ld_in[MIX_DELTA], g->layer[layer].conv,
                       s->slot, s->past_stride, s->past, a->qk);
    op->delta_step(g->d->q, g->dt, &in, s->slot, s->state_stride, s->state, a->att);
    layer_delta_norm(g, layer, s, a);
    layer_finish(g, layer, s, a, s->mixed, x_out);
}

/* Queues the gradients of a delta layer. */
static void layer_delta_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct nn_dev_ops *op = g->d->ops;
    const struct dev_weights *w = &g->layer[layer];
    const struct model_dims *n = &g->dims;
    int ld = n->ld_in[MIX_DELTA];
    size_t z = (size_t)n->z_at, b = (size_t)n->b_at, at = (size_t)n->a_at;
    struct nn_delta_in in = layer_delta_input(g, layer, s, a);

    layer_mlp_backward(g, layer, s, a);
    layer_out_backward(g, layer, s);
    op->gated_norm_backward(g->d->q, g->dt, s->T, n->delta.v_heads, n->delta.v_dim, a->att, w->mix_norm, g->eps,
                            dev_tensor_at(g, a->qkv, z), ld, s->datt, s->datt, dev_tensor_at(g, s->dqkv, z), ld,
                            s->mixed, dev_grad(g, w->mix_norm));
    layer_out_gradient(g, layer, s, s->mixed);
    op->delta_backward(g->d->q, g->dt, &in, s->T, s->datt, s->dqk, dev_tensor_at(g, s->dqkv, b),
                       dev_tensor_at(g, s->dqkv, at),
                       dev_grad_at(g, w->a_log_at), dev_grad_at(g, w->dt_bias_at), s->delta_scratch);
    op->conv_silu_backward(g->d->q, g->dt, s->T, n->conv, n->taps, s->pos, a->qkv, ld, w->conv, s->dqk, s->dqkv, ld,
                           dev_grad(g, w->conv));
    layer_project_backward(g, layer, s, a);
}

const struct layer_kind layer_delta = {"gated delta rule", layer_delta_acts_bytes, layer_delta_acts_place,
                                       layer_delta_state_bytes, layer_delta_forward, layer_delta_backward,
                                       layer_delta_decode, false};
