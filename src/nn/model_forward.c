/* model_forward.c - one layer forward, as training and prefill run it. Decoding has its own in sampler.c. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/model_private.h"

size_t layer_acts_floats(const struct model_dims *n, int T)
{
    size_t per_token = 2 * (size_t)n->d + 2 + (size_t)n->qkv + 2 * (size_t)n->heads + (size_t)n->kv_heads +
                       (size_t)(n->q + n->kv) + (size_t)n->q + 2 * (size_t)n->f;

    return per_token * (size_t)T;
}

float *layer_acts_place(struct layer_acts *a, const struct model_dims *n, int T, float *at)
{
    struct { float **p; int width; } parts[] = {
        {&a->x, n->d}, {&a->x_mid, n->d}, {&a->qkv, n->qkv}, {&a->qk, n->q + n->kv}, {&a->att, n->q},
        {&a->gate_up, 2 * n->f}, {&a->lse, n->heads}, {&a->rstd_q, n->heads}, {&a->rstd_k, n->kv_heads},
        {&a->rstd1, 1}, {&a->rstd2, 1},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].p = at;
        at += (size_t)parts[i].width * (size_t)T;
    }
    return at;
}

struct attn_shape model_attn_shape(const struct model_dims *n)
{
    return (struct attn_shape){.heads = n->heads, .kv_heads = n->kv_heads, .dim = n->dim, .ld_q = n->q + n->kv,
                               .ld_k = n->q + n->kv, .ld_v = n->qkv, .ld_o = n->q};
}

/* cos then sin of position * theta^(-2i / dim). The frequency is rounded to float first, as everybody does. */
float *model_rope_table(const struct model_config *c, int positions)
{
    int half = c->head_dim / 2;
    float *t = xmalloc((size_t)positions * (size_t)c->head_dim * sizeof *t);

    for (int i = 0; i < half; i++) {
        float f = (float)(1.0 / pow(c->rope_theta, 2.0 * i / c->head_dim));
        for (int p = 0; p < positions; p++) {
            float x = (float)p * f;
            t[(size_t)p * (size_t)c->head_dim + (size_t)i] = (float)cos(x);
            t[(size_t)p * (size_t)c->head_dim + (size_t)(half + i)] = (float)sin(x);
        }
    }
    return t;
}

void model_embed(const struct model *m, int T, const int32_t *tokens, float *x)
{
    size_t d = (size_t)m->config.hidden_size;

    for (int t = 0; t < T; t++)
        memcpy(x + (size_t)t * d, m->embed + (size_t)tokens[t] * d, d * sizeof *x);
}

static void copy_mt(float *to, const float *from, size_t n)
{
#pragma omp parallel for schedule(static) if (n > 20000)
    for (size_t i = 0; i < n; i += 4096)
        memcpy(to + i, from + i, (n - i < 4096 ? n - i : 4096) * sizeof *to);
}

void model_layer_attend(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                        const struct forward_scratch *s)
{
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_FORWARD)->layers[layer];
    struct model_dims n = model_dims(m);
    struct attn_shape shape = model_attn_shape(&n);
    double eps = m->config.rms_norm_eps;
    int T = g->T;

    op->rmsnorm_mt(T, n.d, a->x, w->norm1, eps, s->h, a->rstd1);
    op->gemm_mt(T, n.qkv, n.d, s->h, n.d, false, p->qkv, a->qkv, n.qkv, GEMM_SET);
    op->qk_norm_rope_mt(T, n.heads, n.dim, a->qkv, n.qkv, w->q_norm, eps, g->pos, g->rope, a->qk, n.q + n.kv, a->rstd_q);
    op->qk_norm_rope_mt(T, n.kv_heads, n.dim, a->qkv + n.q, n.qkv, w->k_norm, eps, g->pos, g->rope, a->qk + n.q,
                        n.q + n.kv, a->rstd_k);
    op->attn_forward_mt(&shape, &g->seqs, a->qk, a->qk + n.q, a->qkv + n.q + n.kv, a->att, a->lse, s->attn,
                        s->attn_per_thread);
}

void model_layer_mlp(struct model *m, int layer, int rows, const struct layer_acts *a, const float *att,
                     const struct forward_scratch *s, float *x_out)
{
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_FORWARD)->layers[layer];
    struct model_dims n = model_dims(m);

    op->gemm_mt(rows, n.d, n.q, att, n.q, false, p->o, a->x_mid, n.d, GEMM_ADD);
    op->rmsnorm_mt(rows, n.d, a->x_mid, w->norm2, m->config.rms_norm_eps, s->h, a->rstd2);
    op->gemm_mt(rows, 2 * n.f, n.d, s->h, n.d, false, p->gate_up, a->gate_up, 2 * n.f, GEMM_SET);
    op->swiglu_mt(rows, n.f, a->gate_up, s->act);
    copy_mt(x_out, a->x_mid, (size_t)rows * (size_t)n.d);
    op->gemm_mt(rows, n.d, n.f, s->act, n.f, false, p->down, x_out, n.d, GEMM_ADD);
}

void model_layer_forward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                         const struct forward_scratch *s, float *x_out)
{
    model_layer_attend(m, layer, g, a, s);
    copy_mt(a->x_mid, a->x, (size_t)g->T * (size_t)m->config.hidden_size);
    model_layer_mlp(m, layer, g->T, a, a->att, s, x_out);
}
