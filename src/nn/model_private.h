/* model_private.h - what model_*.c and sampler.c share and nobody else sees: pointers into the weight slab, packed
 * weights, and the forward pass of one layer, which training and prefill have in common. */
#ifndef MC_MODEL_PRIVATE_H
#define MC_MODEL_PRIVATE_H

#include "nn/model.h"
#include "nn/ops/ops.h"

enum mix { MIX_ATTENTION, MIX_DELTA };

/* Into m->weights. What a layer's mixer reads lies behind each other and so do gate and up: each group is one
 * product. */
struct model_layer {
    enum mix mix;
    int ordinal;           /* among the layers of its kind */
    float *norm1;          /* (d) */
    float *qkv;            /* (in, d): q heads [each with its gate], k heads, v heads; delta: q k v, z, b, a */
    float *bias;           /* (in) of qkv; NULL where there is none */
    float *q_norm, *k_norm; /* (head_dim); NULL in delta, and where heads have no norm */
    float *conv, *a_log, *dt_bias, *mix_norm; /* (conv, taps) (v_heads) (v_heads) (v_dim); NULL in attention */
    float *o;              /* (d, mix) */
    float *norm2;          /* (d) */
    float *gate_up;        /* (2 f, d) */
    float *down;           /* (d, f) */
};

struct model_dims {
    int d, f, V, heads, kv_heads, dim; /* dim: of a head */
    int rot;                           /* leading elements of a head that are rotated */
    float plus;                        /* a norm's weight is plus + w */
    bool head_norms, qkv_bias;         /* of attention */
    int q, kv;                         /* heads * dim, kv_heads * dim */
    int k_at, v_at, qkv;               /* a row of q k v: first k, first v, width */
    int q_step;                        /* from query to query in it; more than dim: its gate lies behind it */
    struct nn_delta delta;             /* heads of a delta layer */
    int taps, conv;                    /* of its convolution: taps, channels */
    int z_at, b_at, a_at;              /* a row of its projections: q k v, z, b, a */
    int in[2], mix[2];                 /* by enum mix: widths of the projections, and of the output matrix's input */
    int ld_in[2];                      /* on a device: in as a multiple of 8 */
    int widest_in, widest_mix, widest_pre; /* pre: rotated q k, or convolved q k v */
};
struct model_dims model_dims(const struct model *m);
struct nn_heads model_q_heads(const struct model_dims *n); /* in a row of q k v */
struct nn_heads model_k_heads(const struct model_dims *n);
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
    float *x;                 /* (T, d) residual stream in */
    float *rstd1;             /* (T) */
    float *qkv;               /* (T, in) before norm and rotation, or convolution; v, gates, z, b, a stay here */
    float *rstd_q, *rstd_k;   /* (T, heads) (T, kv_heads) */
    float *qk;                /* (T, q + kv) after norm and rotation; delta: (T, conv) convolved */
    float *att;               /* (T, mix) before its gate */
    float *mixed;             /* (T, mix) behind it; att itself where there is none */
    float *lse;               /* (T, heads) */
    float *x_mid;             /* (T, d) residual stream after attention */
    float *rstd2;             /* (T) */
    float *gate_up;           /* (T, 2 f) */
};
/* returns the end */
float *layer_acts_place(struct layer_acts *a, const struct model_dims *n, enum mix kind, int T, float *at);
size_t model_acts_floats(const struct model *m, int T, bool all); /* of all layers, or of the largest */

/* Logits that are outside their row's kept set: far below all others, and finite. */
#define LOGIT_OUT (-1e5f)

struct pack_geometry {
    int T;
    struct attn_seqs seqs;
    const int32_t *pos;  /* (T) */
    const float *rope;   /* (positions, rot) */
    float *const *state; /* (n_seq) or NULL: where a delta layer leaves each sequence's last state */
};
struct forward_scratch {
    float *h;     /* (T, d) */
    float *act;   /* (T, f) */
    float *attn;  /* per thread, see model_mix_scratch */
    size_t attn_per_thread;
};
/* The two halves of a layer. The first reads a->x and ends with a->mixed. The second turns a->x_mid (rows, d), which
 * holds
 * the residual stream, and mixed (rows, mix) into x_out (rows, d); rows need not be all of the first half's. */
void model_layer_attend(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                        const struct forward_scratch *s);
void model_layer_mlp(struct model *m, int layer, int rows, const struct layer_acts *a, const float *mixed,
                     const struct forward_scratch *s, float *x_out);
/* Both, for all rows. x_out may be a->x of the next layer, never of this one. */
void model_layer_forward(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                         const struct forward_scratch *s, float *x_out);

/* mixer.c: what lies between the projections into a layer and the one out of it. */
struct mixer_back {
    float *dmixed; /* (T, mix), used up */
    float *din;    /* (T, in) out */
    float *dpre;   /* (T, widest_pre) scratch */
    float *scratch; /* per thread */
    size_t per_thread;
};
struct mixer {
    const char *name;
    void (*forward)(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                    const struct forward_scratch *s);
    void (*backward)(struct model *m, int layer, const struct pack_geometry *g, const struct layer_acts *a,
                     const struct mixer_back *b);
};
extern const struct mixer model_mixers[2]; /* by enum mix */
size_t model_mix_scratch(const struct model *m, int max_len); /* floats a thread, forward and backward */

struct attn_shape model_attn_shape(const struct model_dims *n); /* strides of layer_acts */
float *model_rope_table(const struct model_config *c, int positions); /* (positions, dim), caller frees */
void model_embed(const struct model *m, int T, const int32_t *tokens, float *x);
void model_train_free(struct model *m);

size_t memory_available(void);         /* bytes the machine could give us now */
/* zeroed, 64-byte aligned, huge pages where possible */
float *slab_alloc(size_t floats, struct err *e, const char *what);
void slab_free(float *p);

int model_tensor_shape(const struct model_tensor *t, int64_t *shape); /* as it is in files; the number of dimensions */

#endif
