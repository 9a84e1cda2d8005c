/* model.c - the model as an object: tensors laid out in one slab, random initialisation, packed copies. */
#include "nn/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/dev_model.h"
#include "nn/model_private.h"

size_t memory_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kb = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb ? (size_t)kb << 10 : (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2;
}

/* The length stands in the first 64 bytes, so that slab_free needs only the pointer. */
float *slab_alloc(size_t floats, struct err *e, const char *what)
{
    size_t bytes = floats * sizeof(float) + 64;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        err_set(e, ERR_ENV, "no memory for %s (%.1f MB)", what, (double)bytes / 1e6);
        return NULL;
    }
    madvise(p, bytes, MADV_HUGEPAGE);
    memcpy(p, &bytes, sizeof bytes);
    return (float *)(p + 64);
}

void slab_free(float *p)
{
    size_t bytes;

    if (!p)
        return;
    memcpy(&bytes, (char *)p - 64, sizeof bytes);
    munmap((char *)p - 64, bytes);
}

struct model_dims model_dims(const struct model *m)
{
    const struct model_config *c = &m->config;
    struct model_dims n = {.d = c->hidden_size, .f = c->intermediate_size, .V = c->vocab_size, .heads = c->num_heads,
                           .kv_heads = c->num_kv_heads, .dim = c->head_dim};

    n.q = n.heads * n.dim;
    n.kv = n.kv_heads * n.dim;
    n.qkv = n.q + 2 * n.kv;
    return n;
}

float *model_grad_of(const struct model *m, const float *weight) { return m->grads + (weight - m->weights); }

static size_t add_tensor(struct model *m, size_t at, char *name, int rows, int cols, bool vector)
{
    struct model_tensor *t = &m->tensors[m->n_tensors++];

    *t = (struct model_tensor){.name = name, .rows = rows, .cols = cols, .is_vector = vector, .offset = at,
                               .dtype = "F32"};
    return at + (size_t)rows * (size_t)cols;
}

#define LAYER_TENSORS 11

static size_t add_layer(struct model *m, int i, size_t at)
{
    struct model_dims n = model_dims(m);
    struct { const char *name; int rows, cols; bool vector; } rows[LAYER_TENSORS] = {
        {"input_layernorm", 1, n.d, true},
        {"self_attn.q_proj", n.q, n.d, false},
        {"self_attn.k_proj", n.kv, n.d, false},
        {"self_attn.v_proj", n.kv, n.d, false},
        {"self_attn.q_norm", 1, n.dim, true},
        {"self_attn.k_norm", 1, n.dim, true},
        {"self_attn.o_proj", n.d, n.q, false},
        {"post_attention_layernorm", 1, n.d, true},
        {"mlp.gate_proj", n.f, n.d, false},
        {"mlp.up_proj", n.f, n.d, false},
        {"mlp.down_proj", n.d, n.f, false},
    };

    for (int r = 0; r < LAYER_TENSORS; r++)
        at = add_tensor(m, at, xasprintf("model.layers.%d.%s.weight", i, rows[r].name), rows[r].rows, rows[r].cols,
                        rows[r].vector);
    return at;
}

static void point_layer(struct model *m, int i)
{
    struct model_layer *l = &m->layers[i];
    const struct model_tensor *t = &m->tensors[1 + i * LAYER_TENSORS];
    float *w = m->weights;

    l->norm1 = w + t[0].offset;
    l->qkv = w + t[1].offset;
    l->q_norm = w + t[4].offset;
    l->k_norm = w + t[5].offset;
    l->o = w + t[6].offset;
    l->norm2 = w + t[7].offset;
    l->gate_up = w + t[8].offset;
    l->down = w + t[10].offset;
}

/* A model with zero weights. */
static struct model *model_new(const struct model_config *c, struct err *e)
{
    struct model *m = xcalloc(1, sizeof *m);
    size_t at = 0;

    m->config = *c;
    m->config.source = json_deep_copy(c->source);
    m->ops = cpu_ops();
    m->tensors = xcalloc((size_t)c->num_layers * LAYER_TENSORS + 3, sizeof *m->tensors);
    m->layers = xcalloc((size_t)c->num_layers, sizeof *m->layers);
    at = add_tensor(m, at, xstrdup("model.embed_tokens.weight"), c->vocab_size, c->hidden_size, false);
    for (int i = 0; i < c->num_layers; i++)
        at = add_layer(m, i, at);
    at = add_tensor(m, at, xstrdup("model.norm.weight"), 1, c->hidden_size, true);
    if (!c->tied)
        at = add_tensor(m, at, xstrdup("lm_head.weight"), c->vocab_size, c->hidden_size, false);
    m->n_params = at;
    if (!(m->weights = slab_alloc(at, e, "weights"))) {
        model_free(m);
        return NULL;
    }
    for (int i = 0; i < c->num_layers; i++)
        point_layer(m, i);
    m->embed = m->weights;
    m->final_norm = m->weights + model_find(m, "model.norm.weight")->offset;
    m->lm_head = c->tied ? m->embed : m->weights + model_find(m, "lm_head.weight")->offset;
    m->version = 1;
    return m;
}

/* Used by model_io.c. */
struct model *model_new_empty(const struct model_config *c, struct err *e);
struct model *model_new_empty(const struct model_config *c, struct err *e) { return model_new(c, e); }

struct model *model_init(const struct model_config *c, uint64_t seed, struct err *e)
{
    struct model *m = model_new(c, e);
    struct rng r;

    for (int i = 0; m && i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        float *w = m->weights + t->offset;
        rng_seed(&r, seed, (uint64_t)i); // a stream per tensor: adding layers does not change the others
        for (size_t j = 0; j < (size_t)t->rows * (size_t)t->cols; j++)
            w[j] = t->is_vector ? 1.0f : (float)(rng_normal(&r) * c->initializer_range);
    }
    return m;
}

struct model *model_clone(const struct model *m)
{
    struct err e = ERR_INIT;
    struct model *c = model_fetch(m, &e) < 0 ? NULL : model_new(&m->config, &e);

    if (!c)
        return NULL;
    memcpy(c->weights, m->weights, m->n_params * sizeof *m->weights);
    for (int i = 0; i < m->n_tensors; i++)
        memcpy(c->tensors[i].dtype, m->tensors[i].dtype, sizeof m->tensors[i].dtype);
    c->dir = m->dir ? xstrdup(m->dir) : NULL;
    return c;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    dev_model_free(m->dev);
    model_train_free(m);
    model_packs_free(m);
    for (int i = 0; i < m->n_tensors; i++)
        free(m->tensors[i].name);
    slab_free(m->weights);
    slab_free(m->grads);
    model_config_free(&m->config);
    free(m->tensors);
    free(m->layers);
    free(m->dir);
    free(m);
}

struct model_tensor *model_find(const struct model *m, const char *name)
{
    for (int i = 0; i < m->n_tensors; i++)
        if (!strcmp(m->tensors[i].name, name))
            return &m->tensors[i];
    return NULL;
}

static size_t packs_floats(const struct model *m)
{
    struct model_dims n = model_dims(m);
    int L = m->config.num_layers;
    size_t wide = PACK_FLOATS(m->ops, n.qkv, n.d) + PACK_FLOATS(m->ops, n.d, n.q) + PACK_FLOATS(m->ops, 2 * n.f, n.d) +
                  PACK_FLOATS(m->ops, n.d, n.f);
    size_t back = PACK_FLOATS(m->ops, n.d, n.qkv) + PACK_FLOATS(m->ops, n.q, n.d) + PACK_FLOATS(m->ops, n.d, 2 * n.f) +
                  PACK_FLOATS(m->ops, n.f, n.d);
    size_t head = PACK_FLOATS(m->ops, n.V, n.d), head_back = PACK_FLOATS(m->ops, n.d, n.V);

    wide = wide > back ? wide : back;
    return (size_t)L * wide + (head > head_back ? head : head_back);
}

size_t model_packs_bytes(const struct model *m) { return packs_floats(m) * sizeof(float); }

/* w (rows, cols) as right-hand side: transposed (k = cols) or as it is (k = rows). */
static const float *pack_one(const struct model *m, enum pack_kind kind, const float *w, int rows, int cols, float **at)
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
            abort(); // planned by model_train_begin and by the sampler
    }
    if (p->version == m->version)
        return p;
    at = p->slab;
    for (int i = 0; i < m->config.num_layers; i++) {
        const struct model_layer *l = &m->layers[i];
        struct layer_packs *lp = &p->layers[i];
        lp->qkv = pack_one(m, kind, l->qkv, n.qkv, n.d, &at);
        lp->o = pack_one(m, kind, l->o, n.d, n.q, &at);
        lp->gate_up = pack_one(m, kind, l->gate_up, 2 * n.f, n.d, &at);
        lp->down = pack_one(m, kind, l->down, n.d, n.f, &at);
    }
    p->head = pack_one(m, kind, m->lm_head, n.V, n.d, &at);
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
