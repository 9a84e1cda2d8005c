/* axes.h - what operators over a set of axes share. Attributes: i[0] mask of reduced axes, i[1] keepdim. */
#ifndef MC_SYNTH_AXES_H
#define MC_SYNTH_AXES_H

#include "synth/op.h"

bool axes_draw(struct rng *r, const struct op_limits *l, struct op_call *c); /* any set, often one axis */
bool axes_draw_one(struct rng *r, const struct op_limits *l, struct op_call *c); /* one axis */
bool axes_shape(struct op_call *c);   /* drops or keeps the reduced axes */
bool axes_shape_same(struct op_call *c); /* out = in[0] */
bool axes_key(const struct op_call *c, const char *key, struct buf *out); /* $dim $keep */
/* Dimensions: group 0 the kept axes, group 1 the reduced ones; ret "L0(..)" for the element. */
void axes_dims(const struct op_call *c, struct nest *k, char load[128]);
void axes_store(const struct op_call *c, struct nest *k, bool all); /* all: in[0]'s shape, else the reduced one */
/* The k-th axis element of row 'row' is at axes_at(c, row, k); n rows of m elements. */
struct axes {
    int64_t rows, len;
    int64_t row_stride[TENSOR_RANK], len_stride[TENSOR_RANK];
    int32_t row_n[TENSOR_RANK], len_n[TENSOR_RANK];
    int n_row, n_len;
};
void axes_open(const struct op_call *c, struct axes *a);
int64_t axes_at(const struct axes *a, int64_t row, int64_t k);

#endif
