/* ties.h - indices that name a place in an input: among equal values each one is right, once. Pure. */
#ifndef MC_TIES_H
#define MC_TIES_H

#include "eval/check/tensor.h"

struct ties {
    struct tensor values; /* what the indices point into, in C order */
    int dim;              /* along it; -1: into all elements, in C order */
    bool unique;          /* no place is named twice along it (topk, sort) */
};

/* The answer with each index that points to a value equal to the expected index's one replaced by the expected index;
 * a place that is named a second time although 'unique' becomes -1. The shapes are those of gather along dim, or of
 * argmax. Returns bytes of got's dtype, owned by the caller; NULL where the shapes do not fit. */
uint8_t *ties_resolved(const struct ties *p, const struct tensor *expected, const struct tensor *got);

#endif
