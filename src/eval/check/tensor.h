/* tensor.h - tensors as they travel in frames: raw bytes plus
 * {"t":"tensor","dtype","shape","strides","offset","nbytes"}. A struct tensor borrows its bytes from the frame's
 * blob; nothing here copies. Outputs travel contiguous (row-major). */
#ifndef MC_TENSOR_H
#define MC_TENSOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"

#define TENSOR_MAX_DIMS 16

struct tensor {
    enum dtype dtype;
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS];
    int64_t n;          /* elements; a complex number counts as two */
    const uint8_t *data; /* n * dt_size bytes, any alignment */
};

/* Type and shape of one {"t":"tensor"} node alone; ret->data has no bytes. */
int tensor_kind(const json_t *node, struct tensor *ret, struct err *e);
/* Describes one {"t":"tensor"} node over its blob; ERR_INPUT if shape, size and offset do not fit together. */
int tensor_parse(const json_t *node, const uint8_t *blob, size_t blob_n, struct tensor *ret, struct err *e);
double tensor_at(const struct tensor *t, int64_t i); /* element i as a double; i64 beyond 2^53 rounds */
/* Writes element i of contiguous data of this dtype: floats to nearest even, integers rounded and clamped. */
void tensor_put(enum dtype dtype, uint8_t *data, int64_t i, double v);
int64_t tensor_int_at(const struct tensor *t, int64_t i); /* integer and boolean dtypes only */
void tensor_shape_text(const struct tensor *t, char *out, size_t n); /* "(16, 37)" */

/* Values as trees: scalars are JSON scalars; {"t":"list"|"tuple","v":[..]}, {"t":"dict","v":[[k,v]..]},
 * {"t":"tensor",..}. Calls f for each leaf (tensor or scalar) in order with a path such as "[0]['mean']" ("" for the
 * root). */
int tree_each(const json_t *tree, int (*f)(const json_t *leaf, const char *path, void *ctx, struct err *e), void *ctx,
              struct err *e);
/* A copy with f's answer in place of each tensor, in order; new reference. */
json_t *tree_map(const json_t *tree, json_t *(*f)(const json_t *tensor, void *ctx), void *ctx);
bool tree_is_tensor(const json_t *node);

#endif
