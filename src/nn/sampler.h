/* sampler.h - batched generation with a KV cache and continuous batching.
 *
 * A request is one prompt and how many samples to draw from it; the prompt is prefilled once and its keys and values
 * are shared by all its samples. Rows that finish make room for waiting requests at once. Each sample has its own
 * random stream, and arithmetic per row does not depend on the other rows: a sample is the same, bit for bit, alone
 * or in any batch. */
#ifndef MC_SAMPLER_H
#define MC_SAMPLER_H

#include <stdbool.h>

#include "base/err.h"
#include "nn/model.h"

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_CANCELLED };

struct sample {
    int32_t *tokens; /* (n) generated ids; the stop id is included when finish is FINISH_STOP */
    float *logp;     /* (n) behaviour log-probs: log_softmax(z / T)[token] over the whole vocabulary, no truncation;
                      * with temperature 0 (greedy) they are at T = 1 */
    int32_t *kept;   /* with 'keep': ids that could be drawn instead, of all tokens behind each other */
    int *kept_to;    /* (n) where each token's end; NULL without 'keep' */
    int n;
    enum finish finish;
    int request, index; /* which request, which of its samples */
    void *user;         /* the request's */
};
void sample_free(struct sample *s);              /* the arrays */
void samples_free(struct sample *s, size_t n);   /* and the array itself */

struct sample_choice {
    float temperature, top_p; /* as in struct sampler_options */
    int top_k;
};

struct sample_request {
    const int32_t *prompt;
    int n_prompt;       /* >= 1 */
    int n_samples;      /* >= 1 */
    int max_new;        /* 0 means the sampler's */
    uint64_t seed;      /* sample i uses rng_seed(seed, i): give each request its own */
    const struct sample_choice *choice; /* its own, not the options'; NULL. On a device requests whose choices differ
                                         * wait for each other */
    void *user;         /* the caller's */
};

struct sampler_options {
    float temperature;  /* 0 means greedy */
    float top_p;        /* (0, 1]; 0 means 1. The kept set is the smallest whose mass reaches top_p */
    int top_k;          /* 0 means all */
    bool keep;          /* with top_p < 1: samples hold their kept sets, and log-probs are normalised over them */
    int max_batch;      /* rows decoded at a time, by all threads together; 0 means 64 per thread */
    int max_new;        /* tokens per sample at most */
    int max_prompt;     /* longest prompt; 0 means as the requests need */
    const int32_t *stop_ids;
    int n_stop;         /* 0 means the model's eos ids */
    size_t max_bytes;   /* KV cache budget; 0 means 50 % of the free memory, 90 % of a device's. max_batch shrinks to
                         * fit, never below 1 */
    /* All may be NULL. on_sample gets each finished sample (owned by the sampler's result, do not free), so that
     * verification can start while others are still being drawn; progress: tokens drawn and samples done so far, about
     * ten times a second: both on the caller's thread. on_token streams, the newest token last: one call at a time, on
     * any thread; false ends the sample with FINISH_STOP. */
    bool (*on_token)(void *ctx, const struct sample *s);
    void (*on_sample)(void *ctx, const struct sample *s);
    void (*progress)(void *ctx, uint64_t tokens, int done, int total);
    /* A run that goes on, for a server: asked for one more request while rows are free. Returns 1 with *ret set (its
     * prompt and choice stay until its last sample is told), 0 for none now, -1 for the end. idle: nothing is drawn, so
     * it waits until there is one, or the end. max_prompt and max_new must be set, and no request may exceed them;
     * samples are freed after on_sample, and *ret is NULL. One thread draws; its operators use all. */
    int (*more)(void *ctx, bool idle, struct sample_request *ret);
    void *ctx;
};

/* Would sampler_run take it? ERR_INPUT says why not. */
int sampler_check(const struct model *m, const struct sampler_options *o, const struct sample_request *q,
                  struct err *e);
/* Draws all samples: *ret has sum(n_samples) entries ordered by request, then index; the caller frees it with
 * samples_free. Polls stop_requested(): then unfinished samples are FINISH_CANCELLED with what they have and the
 * call fails with ERR_STOP *after* setting *ret. Weights must not change meanwhile. */
int sampler_run(struct model *m, const struct sampler_options *o, const struct sample_request *reqs, int n_reqs,
                struct sample **ret, size_t *ret_n, struct err *e);

#endif
