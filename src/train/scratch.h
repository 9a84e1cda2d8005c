/* scratch.h - a model from nothing: a byte-level BPE trained on the corpus, and random weights that fit it. */
#ifndef MC_TRAIN_SCRATCH_H
#define MC_TRAIN_SCRATCH_H

#include <stdint.h>

#include "base/err.h"

struct scratch_options {
    const char *data; /* JSON Lines files, separated by commas: the texts of their messages train the tokenizer */
    const char *out;  /* the model folder to make */
    int vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
    double range; /* standard deviation of the weights */
    uint64_t seed;
};

int scratch_make(const struct scratch_options *o, struct err *e);

#endif
