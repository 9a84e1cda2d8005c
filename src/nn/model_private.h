/* model_private.h - what model_*.c and sampler.c share and nobody else sees: pointers into the weight slab, packed
 * weights, and the forward pass of one layer, which training and prefill have in common. */
#ifndef MC_MODEL_PRIVATE_H
#define MC_MODEL_PRIVATE_H

#include "nn/model.h"
#include "nn/ops/ops.h"

/* Into m->weights. q, k, v lie behind each other and so do gate and up: each group is one matrix product. */
struct model_layer {
    float *norm1;          // (d)
    float *qkv;            // (q + 2 kv, d): q heads, k heads, v heads
    float *q_norm, *k_norm; // (head_dim)
    float *o;              // (d, heads * head_dim)
    float *norm2;          // (d)
    float *gate_up;        // (2 f, d)
    float *down;           // (d, f)
};

struct model_dims {
    int d, f, V, heads, kv_heads, dim; // dim: of a head
    int q, kv, qkv;                    // heads * dim, kv_heads * dim, q + 2 kv
};
struct model_dims model_dims(const struct model *m);
float *model_grad_of(const struct model *m, const float *weight); /* same place in the gradient slab */

/* All matrices packed as right-hand sides: for the forward pass transposed, for the backward pass as they are.
 * Made on first use, renewed when m->version moved. */
enum pack_kind { PACK_FORWARD, PACK_BACKWARD };
struct layer_packs {
    const float *qkv, *o, *gate_up, *down;
};
struct model_packs {
    float *slab;
    uint64_t version;
    struct layer_packs *layers;
    const float *head;
};
const struct model_packs *model_packs(struct model *m, enum pack_kind kind);
size_t model_packs_bytes(const struct model *m);
void model_packs_free(struct model *m);

/* Activations of one layer over T tokens. Training keeps one per layer, inference reuses one for all. */
struct layer_acts {
    float *x;                 // (T, d) residual stream in
    float *rstd1;             // (T)
    float *qkv;               // (T, qkv) before norm and rotation; v is used from here
    float *rstd_q, *rstd_k;   // (T, heads) (T, kv_heads)
    float *qk;                // (T, q + kv) after norm and rotation
    float *att;               // (T, q)
    float *lse;               // (T, heads)
    float *x_mid;             // (T, d) residual stream after attention
    float *rstd2;             // (T)
    float *gate_up;           // (T, 2 f)
};
size_t layer_acts_floats(const struct model_dims *n, int T);
float *layer_acts_place(struct layer_acts *a, const struct model_dims *n, int T, float *at); /* returns the end */

struct pack_geometry {
    int T;
    struct attn_seqs seqs;
    const int32_t *pos;  // (T)
    const float *rope;   // (positions, dim)
};
struct forward_scratch {
    float *h;     // (T, d)
    float *act;   // (T, f)
    float *attn;  // per thread
    size_t attn_per_thread;
};
/* The two halves of a layer. The first reads a->x and ends with a->att. The second turns a->x_mid (rows, d), which holds
 * the residual stream, and att (rows, q) into x_out (rows, d); rows need not be all of the first half's. */
void model_layer_attend(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                        const struct forward_scratch *s);
void model_layer_mlp(struct model *m, int layer, int rows, const struct layer_acts *a, const float *att,
                     const struct forward_scratch *s, float *x_out);
/* Both, for all rows. x_out may be a->x of the next layer, never of this one. */
void model_layer_forward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                         const struct forward_scratch *s, float *x_out);

struct attn_shape model_attn_shape(const struct model_dims *n); /* strides of layer_acts */
float *model_rope_table(const struct model_config *c, int positions); /* (positions, dim), caller frees */
void model_embed(const struct model *m, int T, const int32_t *tokens, float *x);
void model_train_free(struct model *m);

size_t memory_available(void);         /* bytes the machine could give us now */
float *slab_alloc(size_t floats, struct err *e, const char *what); /* zeroed, 64-byte aligned, huge pages where possible */
void slab_free(float *p);

#endif
