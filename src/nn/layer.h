/* layer.h - a row for each kind of layer: what it stores, and how it runs on a device in training and in decoding.
 *
 * forward and decode are built from the same parts, so sampling has no second copy of a layer. A kind is added by
 * a row in layer.c; nothing else asks which kind a layer is. */
#ifndef MC_NN_LAYER_H
#define MC_NN_LAYER_H

#include "nn/model_private.h"
#include "nn/ops/dev_ops.h"

struct dev_model;

/* Weights of one layer in the device's slab (type dt) and, at the same offsets, their gradients (fp32). */
struct dev_weights {
    void *norm1, *qkv, *o, *norm2, *gate_up, *down;
    void *bias, *q_norm, *k_norm; /* of qkv and of heads; NULL where there are none */
    void *conv, *mix_norm;   /* of a delta layer */
    size_t a_log_at, dt_bias_at; /* their places in the slab */
    float *a_log, *dt_bias;  /* of a delta layer, the fp32 master */
};

/* Activations of one layer over T rows, type dt unless float. */
struct dev_acts {
    void *x;               /* (T, d) residual stream in */
    void *qkv;             /* (T, ld_in) before norm and rotation, or convolution; v, gates, z, b, a stay here */
    void *qk;              /* (T, q + kv) after both; delta: (T, conv) convolved */
    void *att;             /* (T, mix) before its gate */
    void *x_mid;           /* (T, d) residual stream after attention */
    void *gate_up;         /* (T, 2 f) */
    float *rstd1, *rstd2;  /* (T) */
    float *rstd_q, *rstd_k; /* (T, heads) (T, kv_heads) */
    float *lse;            /* (T, heads) */
};

/* What the rows of a step are, and scratch for them. */
struct dev_step {
    int T;
    struct nn_attn attn;     /* packed rows: forward and backward */
    const int32_t *pos;      /* (T) */
    const float *rope;       /* (positions, dim) */
    void *h, *act;           /* (T, d) (T, f) */
    void *mixed;             /* (T, mix) attention or delta behind its gate; NULL where there is no gate */
    /* backward */
    void *dx, *dh;           /* (T, d) gradient of the residual stream, and of a normed input */
    void *dact;              /* (T, f) */
    void *dqkv, *dqk, *datt; /* as qkv, qk, att */
    float *delta_scratch;    /* see nn_delta_scratch */
    float *delta;            /* (T, heads) */
    /* decode and prefill: where keys and values go; slot NULL: nowhere */
    const int32_t *slot;     /* (T) */
    int max_len;
    void *cache_k, *cache_v; /* of this layer: (slots, max_len, kv) */
    /* the same for a delta layer: state and the convolution's past of slot s at s * stride */
    const int32_t *seq_slot; /* prefill: (n_seq); a step takes 'slot' */
    float *state;
    void *past;
    size_t state_stride, past_stride;
};

struct layer_kind {
    const char *name;
    size_t (*acts_bytes)(const struct model_dims *n, enum nn_dtype dt, int T);
    char *(*acts_place)(struct dev_acts *a, const struct model_dims *n, enum nn_dtype dt, int T, char *at);
    size_t (*state_bytes)(const struct model_dims *n, enum nn_dtype dt, int max_len); /* of one sequence, this layer */
    void (*forward)(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, void *x_out);
    void (*backward)(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a);
    /* One new row for each of T sequences: reads and grows their state. x_out may be a->x. */
    void (*decode)(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, void *x_out);
    bool plain; /* what the operator 'step' computes: attention without a gate */
};

const struct layer_kind *layer_kind_of(const struct model *m, int layer);
extern const struct layer_kind layer_delta; /* layer_delta.c */

/* ---- layer_parts.c: what kinds have in common ---- */

struct layer_part {
    void *where; /* the address of a pointer of struct dev_acts */
    size_t bytes;
};
size_t layer_parts_bytes(const struct layer_part *p, int n);
char *layer_parts_place(const struct layer_part *p, int n, char *at);
void layer_project(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a); /* x to qkv */
/* mixed (T, mix) and a->x to x_out. */
void layer_finish(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, const void *mixed,
                  void *x_out);
/* s->dx goes from behind the layer to behind its mixer; a->gate_up becomes its gradient. */
void layer_mlp_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a);
/* s->datt becomes the gradient of what layer_finish got as mixed; the output matrix's own, once mixed is there again.
 * */
void layer_out_backward(struct dev_model *g, int layer, const struct dev_step *s);
void layer_out_gradient(struct dev_model *g, int layer, const struct dev_step *s, const void *mixed);
void layer_project_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a);

#endif
