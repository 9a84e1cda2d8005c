/* tdesc.h - what a tensor is: element type and shape. Tensors are dense and row-major. */
#ifndef MC_SYNTH_TDESC_H
#define MC_SYNTH_TDESC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TENSOR_RANK 6

enum ir_dtype { DT_F32, DT_F16, DT_BF16, DT_I64, N_DTYPES };
#define DT_FLOATS (1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16)

struct tdesc {
    uint8_t rank, dtype;
    int32_t d[TENSOR_RANK];
};

static inline int64_t tdesc_numel(const struct tdesc *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->rank; i++)
        n *= t->d[i];
    return n;
}

static inline bool tdesc_same_shape(const struct tdesc *a, const struct tdesc *b)
{
    return a->rank == b->rank && !memcmp(a->d, b->d, sizeof a->d[0] * a->rank);
}

static inline bool dtype_is_float(int dtype)
{
    return dtype != DT_I64;
}

#endif
