/* optim.h - AdamW (Loshchilov & Hutter, arXiv 1711.05101, algorithm 2, as torch.optim.AdamW computes it), gradient
 * clipping by global norm, learning-rate schedules. State is two slabs (first and second moment) and a step count. */
#ifndef MC_OPTIM_H
#define MC_OPTIM_H

#include "base/err.h"
#include "nn/model.h"

struct adamw_options {
    double beta1, beta2, eps; /* 0 means 0.9, 0.999, 1e-8 */
    double weight_decay;      /* for matrices, embeddings included; never for vectors (the norms) */
};

struct optim {
    struct adamw_options opts;
    float *m, *v;   /* (n_params) each; NULL where the model is on a device, which holds them */
    struct dev_model *dev;
    const struct model *on; /* that model: it must outlive the optimiser */
    size_t n;
    int64_t step;   /* steps taken */
};

struct optim *optim_new(const struct model *m, const struct adamw_options *o);
void optim_free(struct optim *o);
/* One step with learning rate lr. Gradients are read, not cleared. A non-finite gradient is ERR_INPUT naming the
 * tensor, and nothing is changed. */
int optim_step(struct optim *o, struct model *m, double lr, struct err *e);

double grad_norm(const struct model *m);                /* global L2 norm, summed in double in a fixed order */
double grad_clip(struct model *m, double max_norm);     /* returns the norm before; scales if above. 0 = no limit */
void grad_scale(struct model *m, double factor);

/* Moments in parts: while one rank saves, every other gives its part. */
int optim_give(const struct optim *o, struct err *e);
/* Exact state: a loaded optimiser continues bit for bit. Atomic write; shapes are checked on load. */
int optim_save(const struct optim *o, const char *path, struct err *e);
int optim_load(struct optim *o, const char *path, struct err *e);

#endif
