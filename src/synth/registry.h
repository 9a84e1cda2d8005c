/* registry.h - the operator registry: one row per operator says everything that generator, interpreter, task emitter
 * and kernel emitter need. To add an elementwise operator, add a row in registry.c; nothing else knows it by name.
 *
 * Text columns use $x (the value), $y (second operand) and $c (a constant). In torch text a constant is "0.5", in
 * CUDA text "0.5f". */
#ifndef MC_SYNTH_REGISTRY_H
#define MC_SYNTH_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

enum op_kind {
    OP_UNARY,  /* y = f(x) */
    OP_SCALAR, /* y = f(x, c) */
    OP_BINARY, /* y = f(x, y), y a tensor that broadcasts to x */
    OP_ANCHOR  /* one per graph: reduction, softmax, norm, matmul, copy, scan; decides the kernel template */
};

enum anchor {
    ANCHOR_NONE,
    ANCHOR_ROW_REDUCE,  /* (M,N) -> (M) */
    ANCHOR_COL_REDUCE,  /* (M,N) -> (N) */
    ANCHOR_FULL_REDUCE, /* (M,N) -> () */
    ANCHOR_SOFTMAX,     /* (M,N) -> (M,N) along rows */
    ANCHOR_NORM,        /* (M,N) -> (M,N): one statistic per row, then applied */
    ANCHOR_NORM2,       /* the same with mean and variance */
    ANCHOR_MATMUL,      /* (M,K),(K,N) -> (M,N), either stored transposed */
    ANCHOR_LINEAR,      /* nn.Linear: weight (N,K), bias (N) are parameters */
    ANCHOR_COPY,        /* (M,N) -> (M,N) or (N,M): moves elements */
    ANCHOR_SCAN         /* (M,N) -> (M,N) along rows */
};

enum op_flag {
    OP_CORE = 1,       /* in the small set that tiny models learn (--ops core) */
    OP_COMMUTES = 2,   /* binary: operand order does not matter to the graph's hash */
    OP_NEAR_ONE = 4,   /* output within 2 % of 1: what a product scan needs in front; never drawn otherwise */
    OP_NEEDS_NEAR = 8, /* anchor that needs an OP_NEAR_ONE in front */
    OP_TRANSPOSES = 16,/* copy: output is (N,M) */
    OP_EXCLUSIVE = 32, /* scan */
    OP_REVERSE = 64,   /* scan */
    OP_A_T = 128,      /* matmul: x is stored (K,M) */
    OP_B_T = 256       /* matmul: y is stored (N,K) */
};

/* How an anchor's kernel is written. Text over a (accumulator), $v (the element), s u m (statistics of the row);
 * $n is the length of what is reduced. */
struct anchor_text {
    const char *init;  /* identity, as CUDA text */
    const char *acc;   /* new accumulator from a and $v */
    const char *merge; /* of $a and $b */
    const char *fin;   /* result from a */
    const char *apply; /* softmax and norms: from $v and the statistics; copies: index of the source of (r, j) */
};

struct op {
    const char *name;
    enum op_kind kind;
    const char *torch, *cuda;                 /* expressions; cuda NULL for anchors */
    double (*f)(double x, double y, double c); /* fp64 meaning; NULL for anchors */
    double max_in; /* domain guard:
        the largest |x| for which fp32 stays well conditioned; graphs beyond it are not built */
    unsigned flags;
    enum anchor anchor;
    const char *family; /* of anchors */
    struct anchor_text text;
};

extern const struct op ops[];
extern const size_t n_ops;
const struct op *op_find(const char *name); /* NULL if unknown */

/* Families in the order in which tasks are dealt. */
extern const char *const families[];
extern const size_t n_families;
int family_index(const char *name); /* -1 if unknown */

#endif
