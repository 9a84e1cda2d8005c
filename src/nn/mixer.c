/* mixer.c - what lies between a layer's projections: softmax attention, with or without a gate on its output, or
 * the gated delta rule behind a short convolution. A row of the table for each; nothing else on the host asks
 * which one a layer is. */
#include "nn/model_private.h"

size_t model_mix_scratch(const struct model *m, int max_len)
{
    struct model_dims n = model_dims(m);
    struct attn_shape shape = model_attn_shape(&n);
    size_t attn = m->ops->attn_scratch(&shape, max_len);
    size_t delta = m->config.n_linear ? m->ops->delta_scratch(&n.delta, max_len) : 0;

    return attn > delta ? attn : delta;
}

/* ---- attention ---- */

/* Attention of packed sequences on the CPU; a keeps what backward needs. */
static void mixer_attention_forward(struct model *m, int layer, const struct pack_geometry *g,
                                    const struct layer_acts *a, const struct forward_scratch *s)
{
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    struct model_dims n = model_dims(m);
    struct attn_shape shape = model_attn_shape(&n);
    double eps = m->config.rms_norm_eps;
    int T = g->T, ld = n.q + n.kv;

    op->qk_norm_rope_mt(T, model_q_heads(&n), a->qkv, n.qkv, w->q_norm, eps, g->pos, g->rope, a->qk, ld, a->rstd_q);
    op->qk_norm_rope_mt(T, model_k_heads(&n), a->qkv + n.k_at, n.qkv, w->k_norm, eps, g->pos, g->rope, a->qk + n.q, ld,
                        a->rstd_k);
    op->attn_forward_mt(&shape, &g->seqs, a->qk, a->qk + n.q, a->qkv + n.v_at, a->att, a->lse, s->attn,
                        s->attn_per_thread);
    if (a->mixed != a->att)
        op->out_gate_mt(T, n.heads, n.dim, a->att, a->qkv + n.dim, n.qkv, n.q_step, a->mixed);
}

/* Gradients of attention, from b's dmixed to its din. */
static void mixer_attention_backward(struct model *m, int layer, const struct pack_geometry *g,
                                     const struct layer_acts *a, const struct mixer_back *b)
{
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    struct model_dims n = model_dims(m);
    struct attn_shape shape = model_attn_shape(&n);
    int T = g->T, ld = n.q + n.kv;

    if (a->mixed != a->att)
        op->out_gate_backward_mt(T, n.heads, n.dim, a->att, a->qkv + n.dim, n.qkv, n.q_step, b->dmixed, b->din + n.dim);
    op->attn_backward_mt(&shape, &g->seqs, a->qk, a->qk + n.q, a->qkv + n.v_at, a->att, a->lse, b->dmixed, b->dpre,
                         b->dpre + n.q, b->din + n.v_at, b->scratch, b->per_thread);
    op->qk_norm_rope_backward_mt(T, model_q_heads(&n), a->qkv, n.qkv, w->q_norm, a->rstd_q, g->pos, g->rope, b->dpre,
                                 ld,
                                 b->din, n.qkv, w->q_norm ? model_grad_of(m, w->q_norm) : NULL);
    op->qk_norm_rope_backward_mt(T, model_k_heads(&n), a->qkv + n.k_at, n.qkv, w->k_norm, a->rstd_k, g->pos, g->rope,
                                 b->dpre + n.q, ld, b->din + n.k_at, n.qkv,
                                 w->k_norm ? model_grad_of(m, w->k_norm) : NULL);
    if (w->bias)
        op->bias_backward_mt(T, n.qkv, b->din, n.qkv, model_grad_of(m, w->bias));
}

/* ---- delta ---- */

static struct delta_gates mixer_gates_of(const struct model_layer *w, const struct model_dims *n, const float *in)
{
    return (struct delta_gates){in + n->b_at, in + n->a_at, w->a_log, w->dt_bias};
}

/* The delta rule over packed sequences on the CPU; a keeps what backward needs. */
static void mixer_delta_forward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                                const struct forward_scratch *s)
{
    const struct model_layer *w = &m->layers[layer];
    struct model_dims n = model_dims(m);
    struct delta_gates gates = mixer_gates_of(w, &n, a->qkv);
    int in = n.in[MIX_DELTA];

    m->ops->conv_silu_mt(g->T, n.conv, n.taps, g->pos, a->qkv, in, w->conv, a->qk);
    m->ops->delta_forward_mt(&n.delta, g->seqs.n, g->seqs.cu, a->qk, &gates, a->att, g->state, s->attn,
                             s->attn_per_thread);
    m->ops->gated_norm_mt(g->T, n.delta.v_heads, n.delta.v_dim, a->att, w->mix_norm, m->config.rms_norm_eps,
                          a->qkv + n.z_at, in, a->mixed);
}

/* Gradients of the delta rule, from b's dmixed to its din. */
static void mixer_delta_backward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                                 const struct mixer_back *b)
{
    const struct model_layer *w = &m->layers[layer];
    struct model_dims n = model_dims(m);
    struct delta_gates gates = mixer_gates_of(w, &n, a->qkv);
    struct delta_grads d = {b->din + n.b_at, b->din + n.a_at, model_grad_of(m, w->a_log), model_grad_of(m, w->dt_bias)};
    int in = n.in[MIX_DELTA];

    m->ops->gated_norm_backward_mt(g->T, n.delta.v_heads, n.delta.v_dim, a->att, w->mix_norm, m->config.rms_norm_eps,
                                   a->qkv + n.z_at, in, b->dmixed, b->dmixed, b->din + n.z_at, in,
                                   model_grad_of(m, w->mix_norm));
    m->ops->delta_backward_mt(&n.delta, g->seqs.n, g->seqs.cu, a->qk, &gates, b->dmixed, b->dpre, &d, b->scratch,
                              b->per_thread);
    m->ops->conv_silu_backward_mt(g->T, n.conv, n.taps, g->pos, a->qkv, in, w->conv, b->dpre, b->din, in,
                                  model_grad_of(m, w->conv));
}

const struct mixer model_mixers[2] = {
    [MIX_ATTENTION] = {"attention", mixer_attention_forward, mixer_attention_backward},
    [MIX_DELTA] = {"gated delta rule", mixer_delta_forward, mixer_delta_backward},
};
