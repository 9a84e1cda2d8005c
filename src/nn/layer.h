/* layer.h - a row for each kind of layer: what it stores, and how it runs on a device in training and in decoding.
 *
 * forward and decode are built from the same parts, so sampling has no second copy of a layer. A kind is added by a row
 * in
 * layer.c; nothing else asks which kind a layer is. */
#ifndef MC_NN_LAYER_H
#define MC_NN_LAYER_H

#include "nn/model_private.h"
#include "nn/ops/dev_ops.h"

struct dev_model;

/* Weights of one layer in the device's slab (type dt) and, at the same offsets, their gradients (fp32). */
struct dev_weights {
    void *norm1, *qkv, *q_norm, *k_norm, *o, *norm2, *gate_up, *down;
};

/* Activations of one layer over T rows, type dt unless float. */
struct dev_acts {
    void *x;               // (T, d) residual stream in
    void *qkv;             // (T, q + 2 kv) before norm and rotation; v is used from here
    void *qk;              // (T, q + kv) after both
    void *att;             // (T, q)
    void *x_mid;           // (T, d) residual stream after attention
    void *gate_up;         // (T, 2 f)
    float *rstd1, *rstd2;  // (T)
    float *rstd_q, *rstd_k; // (T, heads) (T, kv_heads)
    float *lse;            // (T, heads)
};

/* What the rows of a step are, and scratch for them. */
struct dev_step {
    int T;
    struct nn_attn attn;     // packed rows: forward and backward
    const int32_t *pos;      // (T)
    const float *rope;       // (positions, dim)
    void *h, *act;           // (T, d) (T, f)
    // backward
    void *dx, *dh;           // (T, d) gradient of the residual stream, and of a normed input
    void *dact;              // (T, f)
    void *dqkv, *dqk, *datt; // as qkv, qk, att
    float *delta;            // (T, heads)
    // decode and prefill: where keys and values go; slot NULL: nowhere
    const int32_t *slot;     // (T)
    int max_len;
    void *cache_k, *cache_v; // of this layer: (slots, max_len, kv)
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
};

const struct layer_kind *layer_kind_of(const struct model *m, int layer);

#endif
