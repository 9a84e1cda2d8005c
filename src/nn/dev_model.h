/* dev_model.h - a model on a device; private to src/nn. Weights in the operators' type with an fp32 master, fp32
 * gradients and moments, each one slab in which every matrix starts at a multiple of 64 elements. */
#ifndef MC_NN_DEV_MODEL_H
#define MC_NN_DEV_MODEL_H

#include "nn/engine_device.h"
#include "nn/layer.h"
#include "nn/model.h"
#include "nn/optim.h"
#include "nn/sampler.h"

struct dev_train;

#define DEV_GRAIN 64 /* elements: 128 bytes of bf16 */

struct dev_model {
    struct nn_device *d;
    enum nn_dtype dt;
    struct model_dims dims;
    float eps;
    size_t n;              /* elements of a slab */
    size_t *offset;        /* (n_tensors) of each tensor in it */
    float *master;         /* (n); divided: this rank's part */
    void *w;               /* (n) type dt; the master itself where dt is fp32 and it is whole */
    float *grads, *m, *v;  /* (n), or this rank's part: of grads where they are divided, of m and v in parts. NULL until
                            * needed */
    uint8_t *decays;       /* (n / 64) on the device */
    double *norm_sq;       /* on the device */
    double norm;           /* of the gradients without 'pending', while norm_known */
    bool norm_known;
    float pending;         /* factor that the gradients still miss */
    bool newer;            /* than the host's copy */
    struct dev_weights *layer;
    enum mix *mix;         /* (layers) */
    void *embed, *final_norm, *head;
    struct dev_train *train;
    int world, rank;
    int parts;             /* the moments lie in so many parts, one on each rank; 1: whole here */
    bool divided;          /* master and gradients too: ZeRO-2, dev_parts.c */
    int n_layers;
    size_t *bucket;        /* (layers + 3) divided: where embedding, layers, last norm with head begin; then n */
    float *window;         /* divided: gradients of one bucket, while its backward pass runs */
    int open;              /* that bucket */
    float *rates;          /* divided: fp32 A_log and dt_bias of all delta layers, (n_linear, 2, v_heads) */
    float *sums;           /* MODEL_SUM_MAX, for model_sum */
};

/* Where the operators add the gradient of element 'at' of the slab. Divided: of the open bucket alone. */
static inline float *dev_grad_at(const struct dev_model *g, size_t at)
{
    return g->divided ? g->window + (at - g->bucket[g->open]) : g->grads + at;
}
/* Gradient at the place of a weight. */
static inline float *dev_grad(const struct dev_model *g, const void *w)
{
    return dev_grad_at(g, (size_t)((const char *)w - (const char *)g->w) / dtype_size(g->dt));
}
static inline void *dev_tensor_at(const struct dev_model *g, const void *p, size_t element)
{
    return (char *)p + element * dtype_size(g->dt);
}

/* D (m, n) = A B^T with B a weight (n, k). */
void dev_linear(struct dev_model *g, int m, int n, int k, const void *x, int ldx, const void *w, const void *add,
                void *y,
                int ldy);
/* dx (m, k) = dy (m, n) W; dw += dy^T x. */
void dev_linear_dx(struct dev_model *g, int m, int n, int k, const void *dy, int ld_dy, const void *w, void *dx,
                   int ld_dx);
void dev_linear_dw(struct dev_model *g, int m, int n, int k, const void *dy, int ld_dy, const void *x, int ldx,
                   const void *w);

/* ---- state in parts: dev_parts.c ---- */

/* Elements [*from, *to) of the slab are rank r's: whole grains. */
void dev_part(const struct dev_model *g, int r, size_t *from, size_t *to);
size_t dev_part_size(const struct dev_model *g);   /* of this rank; n where nothing is in parts */
size_t dev_grads_size(const struct dev_model *g);  /* elements of grads */
size_t dev_window_size(const struct dev_model *g); /* the largest bucket; 0 where gradients are whole */
/* Bucket k: 0 the embedding, 1 + i layer i, layers + 1 the last norm and an untied head. Nothing where gradients are
 * whole. Between the two a backward pass adds to dev_grad of its weights; close sums over ranks, so all must call. */
void dev_bucket_open(struct dev_model *g, int k);
void dev_bucket_close(struct dev_model *g);
void dev_share_weights(struct dev_model *g); /* every rank has moved its part: all get all of it */
int dev_sum(struct dev_model *g, double *x, int n, struct err *e); /* over ranks; n <= MODEL_SUM_MAX */

int dev_fetch(const struct dev_model *g, const struct model *m, const float *slab, float *host, struct err *e);
/* A moment that lies in parts; every rank calls. host: NULL on ranks that only give theirs. */
int dev_fetch_parts(const struct dev_model *g, const struct model *m, const float *part, float *host, struct err *e);
int dev_push_part(const struct dev_model *g, const struct model *m, const float *host, float *part, struct err *e);
int dev_push(const struct dev_model *g, const struct model *m, const float *host, float *slab, struct err *e);
size_t dev_place_of(const struct dev_model *g, const struct model *m, const float *host); /* of a tensor's beginning */
void dev_spread(const struct dev_model *g, const struct model *m, const float *host, float *padded); /* padding is 0 */
int dev_copy_weights(struct dev_model *to, const struct dev_model *from, struct err *e);
void dev_model_free(struct dev_model *g);

int dev_train_begin(struct model *m, const struct train_limits *l, struct err *e);
/* Asks m for sizes only. again: with layers that run again on the way back. */
size_t dev_step_bytes(const struct model *m, const struct train_limits *l, bool again);
size_t dev_train_bytes(const struct model *m, const struct train_limits *l);
void dev_train_free(struct dev_model *g);
const struct train_limits *dev_train_limits(const struct dev_model *g); /* NULL before dev_train_begin */
int dev_forward(struct model *m, const struct train_batch *b, float *logp, float *entropy, struct err *e);
int dev_backward(struct model *m, const float *dlogp, const float *dentropy, struct err *e);
int dev_logits(struct model *m, const int32_t *tokens, int n, float *ret, struct err *e);

void dev_zero_grads(struct dev_model *g);
int dev_optim_new(struct dev_model *g, struct err *e);
int dev_optim_step(struct optim *o, struct model *m, double lr, struct err *e);
double dev_grad_norm(const struct model *m); /* divided: all ranks call */

void sample_keep_room(struct sample *o, int ids); /* for the sets of o->n + 1 tokens, ids of them */

/* A request as sampler_run has checked it, with a place for its samples. */
struct dev_asked {
    struct sample_request q;
    struct sample_choice choice;
    struct sample *samples; /* (q.n_samples) */
    int max_new, left;      /* left: samples that are not told yet */
};

/* What the device's sampler gets from sampler_run. next: the request after the last one, NULL when there is none now;
 * when idle it waits, and NULL is the end. told: this sample has ended. */
struct dev_job {
    const struct sampler_options *o;
    int total, max_new, max_prompt, all_prompts;
    const int32_t *stop;
    int n_stop;
    struct dev_asked *(*next)(void *run, bool idle);
    void (*told)(void *run, struct dev_asked *a, struct sample *s);
    void *run;
};
int dev_sample(struct model *m, const struct dev_job *j, struct err *e);

int dev_round_rows(int n, int max); /* rows of a matrix product, so that few shapes serve all batches */
int dev_count_tiles(int n_seq, const int32_t *cu);
void dev_fill_tiles(int n_seq, const int32_t *cu, int32_t *tiles); /* (2 tiles) for struct nn_attn */

#endif
