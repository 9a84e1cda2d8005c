/* shapes.h - how heads lie in a row: what the operators of the host (ops.h) and of a device (dev_ops.h) have in
 * common. */
#ifndef MC_NN_SHAPES_H
#define MC_NN_SHAPES_H

#include <stddef.h>

/* Heads side by side in a row: head h begins at h * step; the first 'rot' of its dim elements are rotated
 * (half-split: i is
 * paired with i + rot / 2), the others pass. The norm's weight is plus + w: 0 in Qwen3, 1 in Qwen3.5. */
struct nn_heads {
    int heads, dim, rot, step; /* step: of the input; outputs are dense */
    float plus;
};

/* A gated delta rule's heads. A row of its input c is [q: k_heads * k_dim | k: the same | v: v_heads * v_dim],
 * dense; value head h uses key head h / (v_heads / k_heads). Sequence i owns rows [cu[i], cu[i+1]). */
struct nn_delta {
    int k_heads, v_heads, k_dim, v_dim;
    int ld_gate; /* row stride of b and a (T, v_heads), before sigmoid and softplus */
};

#define NN_DELTA_CHUNK 64 /* positions that are computed together */
#define NN_MAX_TAPS 8     /* of the convolution before it */

/* Bytes of scratch for the backward pass over T rows: states before chunks, partial gradients of q and k, of the
 * decay. */
static inline size_t nn_delta_scratch(const struct nn_delta *s, int T)
{
    size_t heads = (size_t)s->v_heads, k = (size_t)s->k_dim, rows = (size_t)T;

    return (rows / NN_DELTA_CHUNK * heads * k * (size_t)s->v_dim + 2 * rows * heads * k + rows * heads) * sizeof(float);
}


#endif
