/* model_forward.c - one layer forward, as training and prefill run it. Decoding has its own in sampler.c. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nn/model_private.h"

struct acts_part {
    float **p;
    int width;
};

#define ACTS_PARTS 12

/* What a layer of a kind keeps of a token. */
static int model_forward_acts_parts(struct layer_acts *a, const struct model_dims *n, enum mix kind,
                                    struct acts_part *p)
{
    bool delta = kind == MIX_DELTA;
    int k = 0;

    p[k++] = (struct acts_part){&a->x, n->d};
    p[k++] = (struct acts_part){&a->x_mid, n->d};
    p[k++] = (struct acts_part){&a->qkv, n->in[kind]};
    p[k++] = (struct acts_part){&a->qk, delta ? n->conv : n->q + n->kv};
    p[k++] = (struct acts_part){&a->att, n->mix[kind]};
    if (delta || n->q_step > n->dim)
        p[k++] = (struct acts_part){&a->mixed, n->mix[kind]};
    p[k++] = (struct acts_part){&a->gate_up, 2 * n->f};
    p[k++] = (struct acts_part){&a->lse, delta ? 0 : n->heads};
    p[k++] = (struct acts_part){&a->rstd_q, delta || !n->head_norms ? 0 : n->heads};
    p[k++] = (struct acts_part){&a->rstd_k, delta || !n->head_norms ? 0 : n->kv_heads};
    p[k++] = (struct acts_part){&a->rstd1, 1};
    p[k++] = (struct acts_part){&a->rstd2, 1};
    return k;
}

/* Floats that a layer of a kind keeps of T tokens. */
static size_t layer_acts_floats(const struct model_dims *n, enum mix kind, int T)
{
    struct layer_acts a;
    struct acts_part p[ACTS_PARTS];
    int k = model_forward_acts_parts(&a, n, kind, p);
    size_t per_token = 0;

    for (int i = 0; i < k; i++)
        per_token += (size_t)p[i].width;
    return per_token * (size_t)T;
}

float *layer_acts_place(struct layer_acts *a, const struct model_dims *n, enum mix kind, int T, float *at)
{
    struct acts_part p[ACTS_PARTS];
    int k = model_forward_acts_parts(a, n, kind, p);

    a->mixed = NULL;
    for (int i = 0; i < k; i++) {
        *p[i].p = at;
        at += (size_t)p[i].width * (size_t)T;
    }
    if (!a->mixed)
        a->mixed = a->att;
    return at;
}

size_t model_acts_floats(const struct model *m, int T, bool all)
{
    struct model_dims n = model_dims(m);
    size_t sum = 0;

    for (int i = 0; i < m->config.num_layers; i++) {
        size_t one = layer_acts_floats(&n, m->layers[i].mix, T);
        sum = all ? sum + one : one > sum ? one : sum;
    }
    return sum;
}

/* Llama 3's longer contexts: slow rotations go slower by a factor, fast ones stay, those between are mixed (as
 * Transformers' 'llama3' in modeling_rope_utils.py). */
static double model_forward_scaled(const struct model_config *c, double f)
{
    double turns = c->rope_positions * f / (2 * M_PI), low = c->rope_low, high = c->rope_high;
    double mix = (turns - low) / (high - low);

    if (c->rope_factor <= 0 || turns > high)
        return f;
    return turns < low ? f / c->rope_factor : (1 - mix) * f / c->rope_factor + mix * f;
}

/* cos then sin of position * theta^(-2i / rotary_dim). The frequency is rounded to float first, as everybody does. */
float *model_rope_table(const struct model_config *c, int positions)
{
    int half = c->rotary_dim / 2;
    size_t dim = (size_t)c->rotary_dim;
    float *t = xmalloc((size_t)positions * dim * sizeof *t);

    for (int i = 0; i < half; i++) {
        float f = (float)model_forward_scaled(c, 1.0 / pow(c->rope_theta, 2.0 * i / c->rotary_dim));
        for (int p = 0; p < positions; p++) {
            float x = (float)p * f;
            t[(size_t)p * dim + (size_t)i] = (float)cos(x);
            t[(size_t)p * dim + (size_t)(half + i)] = (float)sin(x);
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

static void model_forward_copy_mt(float *to, const float *from, size_t n)
{
#pragma omp parallel for schedule(static) if (n > 20000)
    for (size_t i = 0; i < n; i += 4096)
        memcpy(to + i, from + i, (n - i < 4096 ? n - i : 4096) * sizeof *to);
}

void model_layer_attend(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                        const struct forward_scratch *s)
{
    const struct model_layer *w = &m->layers[layer];
    struct model_dims n = model_dims(m);
    int in = n.in[w->mix];

    m->ops->rmsnorm_mt(g->T, n.d, a->x, w->norm1, n.plus, m->config.rms_norm_eps, s->h, a->rstd1);
    if (w->bias)
        m->ops->bias_rows_mt(g->T, in, w->bias, a->qkv, in);
    m->ops->gemm_mt(g->T, in, n.d, s->h, n.d, false, model_packs(m, PACK_FORWARD)->layers[layer].qkv, a->qkv, in,
                    w->bias ? GEMM_ADD : GEMM_SET);
    model_mixers[w->mix].forward(m, layer, g, a, s);
}

void model_layer_mlp(struct model *m, int layer, int rows, const struct layer_acts *a, const float *mixed,
                     const struct forward_scratch *s, float *x_out)
{
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_FORWARD)->layers[layer];
    struct model_dims n = model_dims(m);

    op->gemm_mt(rows, n.d, n.mix[w->mix], mixed, n.mix[w->mix], false, p->o, a->x_mid, n.d, GEMM_ADD);
    op->rmsnorm_mt(rows, n.d, a->x_mid, w->norm2, n.plus, m->config.rms_norm_eps, s->h, a->rstd2);
    op->gemm_mt(rows, 2 * n.f, n.d, s->h, n.d, false, p->gate_up, a->gate_up, 2 * n.f, GEMM_SET);
    op->swiglu_mt(rows, n.f, a->gate_up, s->act);
    model_forward_copy_mt(x_out, a->x_mid, (size_t)rows * (size_t)n.d);
    op->gemm_mt(rows, n.d, n.f, s->act, n.f, false, p->down, x_out, n.d, GEMM_ADD);
}

void model_layer_forward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                         const struct forward_scratch *s, float *x_out)
{
    model_layer_attend(m, layer, g, a, s);
    model_forward_copy_mt(a->x_mid, a->x, (size_t)g->T * (size_t)m->config.hidden_size);
    model_layer_mlp(m, layer, g->T, a, a->mixed, s, x_out);
}
