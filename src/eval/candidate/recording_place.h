/* recording_place.h - a tensor that lies on the executor, as a client or a draw describes it. Inside src/eval only. */
#ifndef MC_EVAL_CANDIDATE_RECORDING_PLACE_H
#define MC_EVAL_CANDIDATE_RECORDING_PLACE_H

#include "eval/check/tensor.h"

struct recording_place { /* {"dtype","shape","strides","address"} */
    struct tensor t;         /* t.n counts a complex number once */
    int64_t stride[TENSOR_MAX_DIMS];
    uint64_t address, span;  /* bytes from the first element to behind the last */
    size_t item;
};

/* ERR_INPUT if the numbers, which may come from a hostile process, cannot be a tensor's. */
int place_tensor(const json_t *node, struct recording_place *p, struct err *e);
bool place_is_packed(const struct recording_place *p); /* contiguous, in C order */

/* Walks the elements in C order; to: strided gets packed's values, else the other way round. */
void recording_permute(const struct recording_place *p, uint8_t *strided, uint8_t *packed, bool to);

#endif
