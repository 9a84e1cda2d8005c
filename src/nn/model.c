/* model.c - the model as an object: tensors laid out in one slab, random initialisation. */
#include "nn/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "nn/chat.h"
#include "nn/dev_model.h"
#include "nn/model_private.h"
#include "nn/tokenizer.h"

/* ---- tensors ---- */

enum model_part { PART_NONE, NORM1, QKV, BIAS, Q_NORM, K_NORM, CONV, A_LOG, DT_BIAS, MIX_NORM, OUT, NORM2, GATE_UP,
                  DOWN };
enum model_form { VECTOR, MATRIX, TAPS };

struct tensor_row {
    const char *name;
    enum model_part part; /* PART_NONE: continues the one before */
    int rows, cols;
    enum model_form form;
};

#define LAYER_TENSORS 15

/* Fills r with the tensors of an attention layer; returns how many. */
static int model_attention_tensors(const struct model_dims *n, struct tensor_row *r)
{
    const struct { struct tensor_row row; bool there; } rows[] = {
        {{"self_attn.q_proj.weight", QKV, n->k_at, n->d, MATRIX}, true},
        {{"self_attn.k_proj.weight", PART_NONE, n->kv, n->d, MATRIX}, true},
        {{"self_attn.v_proj.weight", PART_NONE, n->kv, n->d, MATRIX}, true},
        {{"self_attn.q_proj.bias", BIAS, 1, n->k_at, VECTOR}, n->qkv_bias},
        {{"self_attn.k_proj.bias", PART_NONE, 1, n->kv, VECTOR}, n->qkv_bias},
        {{"self_attn.v_proj.bias", PART_NONE, 1, n->kv, VECTOR}, n->qkv_bias},
        {{"self_attn.q_norm.weight", Q_NORM, 1, n->dim, VECTOR}, n->head_norms},
        {{"self_attn.k_norm.weight", K_NORM, 1, n->dim, VECTOR}, n->head_norms},
        {{"self_attn.o_proj.weight", OUT, n->d, n->q, MATRIX}, true},
    };
    int k = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].there)
            r[k++] = rows[i].row;
    return k;
}

/* Fills r with the tensors of a delta layer; returns how many. */
static int model_delta_tensors(const struct model_dims *n, struct tensor_row *r)
{
    int v_heads = n->delta.v_heads, values = n->mix[MIX_DELTA];
    const struct tensor_row rows[] = {
        {"linear_attn.in_proj_qkv.weight", QKV, n->conv, n->d, MATRIX},
        {"linear_attn.in_proj_z.weight", PART_NONE, values, n->d, MATRIX},
        {"linear_attn.in_proj_b.weight", PART_NONE, v_heads, n->d, MATRIX},
        {"linear_attn.in_proj_a.weight", PART_NONE, v_heads, n->d, MATRIX},
        {"linear_attn.conv1d.weight", CONV, n->conv, n->taps, TAPS}, {"linear_attn.A_log", A_LOG, 1, v_heads, VECTOR},
        {"linear_attn.dt_bias", DT_BIAS, 1, v_heads, VECTOR}, {"linear_attn.norm.weight", MIX_NORM, 1, n->delta.v_dim,
                                                               VECTOR},
        {"linear_attn.out_proj.weight", OUT, n->d, values, MATRIX},
    };

    memcpy(r, rows, sizeof rows);
    return (int)(sizeof rows / sizeof rows[0]);
}

/* Rows of one layer, in the order of the slab. Returns how many. */
static int model_layer_tensors(const struct model_dims *n, enum mix mix, struct tensor_row *r)
{
    int k = 0;

    r[k++] = (struct tensor_row){"input_layernorm.weight", NORM1, 1, n->d, VECTOR};
    k += mix == MIX_DELTA ? model_delta_tensors(n, r + k) : model_attention_tensors(n, r + k);
    r[k++] = (struct tensor_row){"post_attention_layernorm.weight", NORM2, 1, n->d, VECTOR};
    r[k++] = (struct tensor_row){"mlp.gate_proj.weight", GATE_UP, n->f, n->d, MATRIX};
    r[k++] = (struct tensor_row){"mlp.up_proj.weight", PART_NONE, n->f, n->d, MATRIX};
    r[k++] = (struct tensor_row){"mlp.down_proj.weight", DOWN, n->d, n->f, MATRIX};
    return k;
}

/* Adds a tensor at offset 'at', in floats; returns the offset behind it. Takes name. */
static size_t model_add_tensor(struct model *m, size_t at, char *name, const struct tensor_row *r)
{
    struct model_tensor *t = &m->tensors[m->n_tensors++];

    *t = (struct model_tensor){.name = name, .rows = r->rows, .cols = r->cols, .is_vector = r->form == VECTOR,
                               .is_conv = r->form == TAPS, .continues = r->part == PART_NONE, .offset = at,
                               .dtype = "F32"};
    return at + (size_t)r->rows * (size_t)r->cols;
}

/* Points a layer's part to its weights. */
static void model_point_part(struct model_layer *l, enum model_part part, float *w)
{
    float **const at[] = {[NORM1] = &l->norm1, [QKV] = &l->qkv, [BIAS] = &l->bias, [Q_NORM] = &l->q_norm,
                          [K_NORM] = &l->k_norm, [CONV] = &l->conv, [A_LOG] = &l->a_log,
                          [DT_BIAS] = &l->dt_bias, [MIX_NORM] = &l->mix_norm,
                          [OUT] = &l->o, [NORM2] = &l->norm2, [GATE_UP] = &l->gate_up, [DOWN] = &l->down};

    if (part != PART_NONE)
        *at[part] = w;
}

/* Adds all tensors of layer i; returns the offset behind them. */
static size_t model_add_layer(struct model *m, int i, size_t at)
{
    struct model_dims n = model_dims(m);
    struct tensor_row r[LAYER_TENSORS];
    int k = model_layer_tensors(&n, m->layers[i].mix, r);

    for (int j = 0; j < k; j++)
        at = model_add_tensor(m, at, xasprintf("%slayers.%d.%s", m->config.prefix, i, r[j].name), &r[j]);
    return at;
}

/* The tensors of layer i begin at 'from'; returns the first behind them. */
static int model_point_layer(struct model *m, int i, int from)
{
    struct model_dims n = model_dims(m);
    struct tensor_row r[LAYER_TENSORS];
    int k = model_layer_tensors(&n, m->layers[i].mix, r);

    for (int j = 0; j < k; j++)
        model_point_part(&m->layers[i], r[j].part, m->weights + m->tensors[from + j].offset);
    return from + k;
}

/* Makes the layers with their kinds and their number within the kind. */
static void model_make_layers(struct model *m)
{
    int seen[2] = {0};

    m->layers = xcalloc((size_t)m->config.num_layers, sizeof *m->layers);
    for (int i = 0; i < m->config.num_layers; i++) {
        m->layers[i].mix = m->config.linear[i] ? MIX_DELTA : MIX_ATTENTION;
        m->layers[i].ordinal = seen[m->layers[i].mix]++;
    }
}

/* A model with zero weights. */
static struct model *model_new(const struct model_config *c, struct err *e)
{
    const struct tensor_row words = {"", NORM1, c->vocab_size, c->hidden_size, MATRIX};
    const struct tensor_row norm = {"", NORM1, 1, c->hidden_size, VECTOR};
    struct model *m = xcalloc(1, sizeof *m);
    size_t at = 0;
    int from = 1;

    m->config = *c;
    m->config.source = json_deep_copy(c->source);
    m->ops = cpu_ops();
    m->tensors = xcalloc((size_t)c->num_layers * LAYER_TENSORS + 3, sizeof *m->tensors);
    model_make_layers(m);
    at = model_add_tensor(m, at, xasprintf("%sembed_tokens.weight", c->prefix), &words);
    for (int i = 0; i < c->num_layers; i++)
        at = model_add_layer(m, i, at);
    m->n_final_norm = m->n_tensors;
    at = model_add_tensor(m, at, xasprintf("%snorm.weight", c->prefix), &norm);
    if (!c->tied)
        at = model_add_tensor(m, at, xstrdup("lm_head.weight"), &words);
    m->n_params = at;
    if (!(m->weights = slab_alloc(at, e, "weights"))) {
        model_free(m);
        return NULL;
    }
    for (int i = 0; i < c->num_layers; i++)
        from = model_point_layer(m, i, from);
    m->embed = m->weights;
    m->final_norm = m->weights + m->tensors[m->n_final_norm].offset;
    m->lm_head = c->tied ? m->embed : m->weights + m->tensors[m->n_tensors - 1].offset;
    m->n_ids = c->vocab_size;
    m->version = 1;
    return m;
}

/* Used by model_io.c. */
struct model *model_new_empty(const struct model_config *c, struct err *e);
struct model *model_new_empty(const struct model_config *c, struct err *e) { return model_new(c, e); }

#define INIT_BLOCK ((size_t)1 << 24) /* weights that one thread draws from one stream */

/* Elements [from, to) of a tensor as Transformers begins: matrices normal, norms as nothing (of weight 1), biases 0,
 * dt_bias 1, e^A_log even between 0.01 and 16. */
static void model_init_block(const struct model *m, const struct model_tensor *t, size_t from, size_t to,
                             struct rng *r)
{
    float *w = m->weights + t->offset;
    bool zeros = text_ends(t->name, "_proj.bias");
    bool rate = text_ends(t->name, ".A_log"), ones = text_ends(t->name, "linear_attn.norm.weight") ||
                                                     text_ends(t->name, ".dt_bias") || !m->config.centred_norms;

    for (size_t j = from; j < to; j++)
        w[j] = rate ? (float)log(0.01 + 15.99 * rng_f64(r))
               : t->is_vector ? (ones && !zeros ? 1.0f : 0.0f) : (float)(rng_normal(r) * m->config.initializer_range);
}

/* Block b of tensor i. A stream for each block: more layers or more threads change no other block. */
static void model_init_from_stream(const struct model *m, uint64_t seed, int i, size_t b)
{
    const struct model_tensor *t = &m->tensors[i];
    size_t n = (size_t)t->rows * (size_t)t->cols, from = b * INIT_BLOCK;
    struct rng r;

    rng_seed(&r, seed, (uint64_t)b << 32 | (uint64_t)i);
    model_init_block(m, t, from, n - from < INIT_BLOCK ? n : from + INIT_BLOCK, &r);
}

struct model *model_init(const struct model_config *c, uint64_t seed, struct err *e)
{
    struct model *m = model_new(c, e);
    int n = m ? m->n_tensors : 0;

#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++)
        for (size_t b = 0; b * INIT_BLOCK < (size_t)m->tensors[i].rows * (size_t)m->tensors[i].cols; b++) {
#pragma omp task firstprivate(i, b)
            model_init_from_stream(m, seed, i, b);
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
    c->n_ids = m->n_ids;
    c->chat_template = m->chat_template;
    return c;
}

int model_copy(struct model *to, const struct model *from, struct err *e)
{
    to->version++;
    if (from->dev)
        return dev_copy_weights(to->dev, from->dev, e);
    memcpy(to->weights, from->weights, from->n_params * sizeof *from->weights);
    return 0;
}

/* A folder that was never asked anything ends texts, not turns; what is trained here ends turns. */
static void model_end_turns_with(struct model_config *c, int32_t id)
{
    for (int i = 0; i < c->n_eos; i++)
        if (c->eos[i] == id)
            return;
    if (id >= 0 && c->n_eos < (int)(sizeof c->eos / sizeof *c->eos))
        c->eos[c->n_eos++] = id;
}

int model_use_tokenizer(struct model *m, const struct tokenizer *t, struct err *e)
{
    if (tokenizer_check_rows(t, m->config.vocab_size, e) < 0)
        return -1;
    m->n_ids = tokenizer_size(t);
    m->chat_template = chat_template_trained(t);
    model_end_turns_with(&m->config, tokenizer_id(t, "<|im_end|>"));
    return 0;
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
