/* kv_cache.h - keys and values of one stretch of tokens, stored as the right-hand sides of the two small products
 * of attention, so that decoding packs nothing: keys transposed in panels of positions, values in panels of
 * head_dim. Behind them the states of delta layers, which are of one size whatever the stretch. */
#ifndef MC_KV_CACHE_H
#define MC_KV_CACHE_H

#include "nn/model_private.h"

struct kv_cache {
    float *slab;   /* [attention layer][kv head][keys: round(capacity) * dim][values: capacity * round(dim)], then */
                   /* [delta layer][the convolution's last taps - 1 inputs, oldest first][state (v_heads, k_dim, v_dim)]
                    * */
    int capacity;  /* positions */
    int n;         /* positions filled */
};

size_t kv_cache_floats(const struct model *m, int capacity);
void kv_cache_place(struct kv_cache *c, int capacity, float *slab); /* borrows slab */
float *kv_conv(const struct model *m, const struct kv_cache *c, int layer);  /* of a delta layer */
float *kv_state(const struct model *m, const struct kv_cache *c, int layer);
void kv_copy_states(const struct model *m, const struct kv_cache *from, struct kv_cache *to);
/* The convolution's inputs from the last of n rows x (n, ld) of a prompt; what is before the first row is 0. */
void kv_fill_conv(const struct model *m, struct kv_cache *c, int layer, int n, const float *x, int ld);
/* Position c->n of one layer; the caller advances c->n after the last layer. k and v: (kv_heads * dim). */
void kv_append(const struct model *m, struct kv_cache *c, int layer, const float *k, const float *v);
/* Positions [0, n) of one layer at once. */
void kv_fill(const struct model *m, struct kv_cache *c, int layer, int n, const float *k, int ld_k, const float *v,
             int ld_v);

struct decode_row {
    struct kv_cache *prefix; /* shared by neighbours with the same pointer */
    struct kv_cache *own;    /* its last position is the query's own */
};
/* Attention of one query per row at one layer. q (rows, heads * dim) with stride ld_q, out (rows, heads * dim).
 * scratch: decode_scratch floats per thread. */
size_t decode_scratch(const struct model *m, int max_prefix, int max_own);
void decode_attention(const struct model *m, int layer, int n_rows, const struct decode_row *rows, const float *q,
                      int ld_q,
                      float *out, float *scratch, size_t per_thread);

#endif
