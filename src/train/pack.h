/* pack.h - micro-batches for nn/model.h: sequences one after another, a target wherever the loss looks. */
#ifndef MC_TRAIN_PACK_H
#define MC_TRAIN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/model.h"

/* One sequence of a training step: a view, nothing is owned. Predicted are ids[from, to); from >= 1. */
struct pack_seq {
    const int32_t *ids;
    int n, from, to;
    const int32_t *kept; /* NULL, or of the predicted ids what their softmax runs over, behind each other */
    const int *kept_to;  /* (to - from) where each one's ends */
};

struct pack {
    int max_tokens, max_seqs;
    int32_t *tokens, *targets, *cu; /* (max_tokens) (max_tokens) (max_seqs + 1) */
    int *seq;                       /* (max_seqs) the caller's number of each packed sequence */
    int *start;                     /* (max_seqs) position of the first prediction; the k-th is at start + k */
    const int32_t **kept;           /* (max_tokens) see train_batch; with n_kept */
    int *n_kept;
    bool keeps;                     /* some sequence has kept sets */
    float *logp, *entropy, *dlogp, *dentropy; /* (max_tokens) scratch for the caller */
    int n_tokens, n_seqs;
};

void pack_init(struct pack *p, int max_tokens);
void pack_free(struct pack *p);
void pack_clear(struct pack *p);
/* False when the sequence does not fit any more (never for an empty pack and n <= max_tokens). */
bool pack_add(struct pack *p, const struct pack_seq *s, int number);
struct train_batch pack_batch(const struct pack *p, double temperature); /* a view into p */

#endif
