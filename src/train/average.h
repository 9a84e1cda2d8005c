/* average.h - the mean of a run's weights over its last steps, and what of it is saved.
 *
 * A policy gradient is small beside Adam's steps, which move every weight by the learning rate: much of the way is
 * noise, and noise of different steps cancels. What is saved is start_share * start + (1 - start_share) * mean over
 * the steps from 'from' on (stochastic weight averaging, arXiv 1803.05407; the way back to the start: arXiv
 * 2203.05482). The sum lies on the host: 4 bytes a weight. It is a file beside the checkpoint of the same step, so
 * that a run which continues has the same sum. */
#ifndef MC_TRAIN_AVERAGE_H
#define MC_TRAIN_AVERAGE_H

#include <stdint.h>

#include "base/err.h"
#include "nn/model.h"

struct average {
    float *sum;    /* (n) over 'steps' steps; NULL before the first */
    size_t n;
    int64_t from, steps;
};

/* from: the first step (from 1) that counts. */
void average_init(struct average *a, const struct model *m, int64_t from);
void average_free(struct average *a);
/* After step 'step': its weights join the sum where it counts. Fetches them from a device. */
int average_add(struct average *a, const struct model *m, int64_t step, struct err *e);
/* The model to be saved, on the host; start: the starting model's folder. Without a step in the sum it is the start. */
struct model *average_model(const struct average *a, const char *start, double start_share, struct err *e);

/* RUN/average/STEP.safetensors, before the checkpoint of that step is written; average_tidy, after it, removes
 * others. */
int average_save(const struct average *a, const char *run, int64_t step, struct err *e);
int average_load(struct average *a, const char *run, int64_t step, struct err *e);
void average_tidy(const char *run, int64_t step);

#endif
