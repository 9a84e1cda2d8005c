/* cluster.h - which correct programs of one prompt are the same idea (RFT keeps one of each, so that the model does not
 * collapse onto a template before RL).
 *
 * A program becomes a set of hashes of SHINGLE consecutive tokens: comments dropped, numbers all alike, identifiers
 * that are neither language, CUDA nor torch words all alike. Renaming, constants, layout and comments thus change
 * nothing; another loop structure, a shared-memory tree or a shuffle does. Two programs are alike when the Jaccard
 * index of their sets reaches a threshold; a cluster is a connected component of that relation (its content does not
 * depend on order). */
#ifndef MC_CLUSTER_H
#define MC_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

#define CLUSTER_SHINGLE 5
#define CLUSTER_THRESHOLD 0.85
#define UNIFORM_ROUNDS 64

struct sketch {
    uint64_t *hash; /* sorted, distinct; owned */
    size_t n;
};

void sketch_program(const char *text, struct sketch *ret);
void sketch_free(struct sketch *s);
double sketch_jaccard(const struct sketch *a, const struct sketch *b); /* 1 when both are empty */

/* label[i] in [0, returned count), numbered by first member. n programs. */
size_t cluster_assign(const struct sketch *s, size_t n, double threshold, int *label);

/* exp of the entropy of the cluster shares: 1 when all programs are one idea, n when all differ; 0 for n = 0. */
double cluster_effective(const int *label, size_t n);

/* What a draw without clusters would keep: the mean of cluster_effective() over UNIFORM_ROUNDS draws of k of the n
 * programs, without putting back. k in [0, n]. */
double cluster_uniform(const int *label, size_t n, size_t k, struct rng *r);

/* Draws one member of every cluster uniformly: pick[c] = index of the program. One draw from r per cluster. */
void cluster_draw(const int *label, size_t n, size_t n_clusters, struct rng *r, size_t *pick);

#endif
