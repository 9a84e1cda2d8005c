/* model_packs.c - all matrices packed as right-hand sides, renewed when the weights have moved. */
#include <stdlib.h>

#include "base/mem.h"
#include "nn/model_private.h"

/* Floats that packed copies of all weights take. */
static size_t packs_floats(const struct model *m)
{
    struct model_dims n = model_dims(m);
    size_t sum = 0, head = PACK_FLOATS(m->ops, n.V, n.d), head_back = PACK_FLOATS(m->ops, n.d, n.V);

    for (int i = 0; i < m->config.num_layers; i++) {
        int in = n.in[m->layers[i].mix], mix = n.mix[m->layers[i].mix];
        size_t wide = PACK_FLOATS(m->ops, in, n.d) + PACK_FLOATS(m->ops, n.d, mix) + PACK_FLOATS(m->ops, 2 * n.f, n.d) +
                      PACK_FLOATS(m->ops, n.d, n.f);
        size_t back = PACK_FLOATS(m->ops, n.d, in) + PACK_FLOATS(m->ops, mix, n.d) +
                      PACK_FLOATS(m->ops, n.d, 2 * n.f) + PACK_FLOATS(m->ops, n.f, n.d);
        sum += wide > back ? wide : back;
    }
    return sum + (head > head_back ? head : head_back);
}

size_t model_packs_bytes(const struct model *m) { return packs_floats(m) * sizeof(float); }

/* w (rows, cols) as right-hand side: transposed (k = cols) or as it is (k = rows). */
static const float *model_packs_pack_one(const struct model *m, enum pack_kind kind, const float *w, int rows, int cols,
                                         float **at)
{
    float *out = *at;

    if (kind == PACK_FORWARD) {
        m->ops->pack_nt_mt(w, cols, rows, cols, out);
        *at += PACK_FLOATS(m->ops, rows, cols);
    } else {
        m->ops->pack_nn_mt(w, cols, cols, rows, out);
        *at += PACK_FLOATS(m->ops, cols, rows);
    }
    return out;
}

const struct model_packs *model_packs(struct model *m, enum pack_kind kind)
{
    struct model_dims n = model_dims(m);
    struct model_packs *p = m->packs[kind];
    float *at;

    if (!p) {
        p = m->packs[kind] = xcalloc(1, sizeof *p);
        p->layers = xcalloc((size_t)m->config.num_layers, sizeof *p->layers);
        p->slab = slab_alloc(packs_floats(m), NULL, "packed weights");
        if (!p->slab)
            abort(); /* planned by model_train_begin and by the sampler */
    }
    if (p->version == m->version)
        return p;
    at = p->slab;
    for (int i = 0; i < m->config.num_layers; i++) {
        const struct model_layer *l = &m->layers[i];
        struct layer_packs *lp = &p->layers[i];
        lp->qkv = model_packs_pack_one(m, kind, l->qkv, n.in[l->mix], n.d, &at);
        lp->o = model_packs_pack_one(m, kind, l->o, n.d, n.mix[l->mix], &at);
        lp->gate_up = model_packs_pack_one(m, kind, l->gate_up, 2 * n.f, n.d, &at);
        lp->down = model_packs_pack_one(m, kind, l->down, n.d, n.f, &at);
    }
    p->head = model_packs_pack_one(m, kind, m->lm_head, n.V, n.d, &at);
    p->version = m->version;
    return p;
}

void model_packs_free(struct model *m)
{
    for (int i = 0; i < 2; i++) {
        if (!m->packs[i])
            continue;
        slab_free(m->packs[i]->slab);
        free(m->packs[i]->layers);
        free(m->packs[i]);
        m->packs[i] = NULL;
    }
}
