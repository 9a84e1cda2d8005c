/* bench_nn_gpu.c - training and sampling on a GPU at several sizes, beside bench_nn_gpu.py in the same run.
 *
 * Usage: bench_nn_gpu [shape...]     shapes: those of the table below (all); one model serves neighbours
 * Steps from random weights, bf16, packed sequences.
 * $BENCH_PARTS: "train", "sample" or both (default); $BENCH_STEPS: training steps that are timed.
 * Memory: what the planner says before the first step (weights, gradients, optimiser, activations), and what the device
 * lost from before the model to after the last step.
 * One line a shape: milliseconds a step (forward, backward, clipping, AdamW), tokens a second, MFU. Model FLOPs: 6 for
 * each
 * weight in a product and token (the embedding counts as classifier), 6 length q layers for causal attention,
 * recomputing
 * not counted; against 989 TFLOP/s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/device.h"
#include "nn/model.h"
#include "nn/optim.h"
#include "nn/sampler.h"

#define PEAK 989e12

static const struct shape {
    const char *name;
    int d, layers, f, heads, kv, dim, V, rows, length;
} shapes[] = {
    {"20m", 384, 8, 1152, 6, 2, 64, 16384, 32, 2048},
    {"123m", 768, 16, 2304, 12, 4, 64, 16384, 16, 2048},
    {"123m-1k", 768, 16, 2304, 12, 4, 64, 16384, 32, 1024},
    {"123m-4k", 768, 16, 2304, 12, 4, 64, 16384, 8, 4096},
    {"123m-16k", 768, 16, 2304, 12, 4, 64, 16384, 2, 16384},
    {"600m", 1024, 28, 3072, 16, 8, 128, 151936, 4, 4096},
    {"1700m", 2048, 28, 6144, 16, 8, 128, 151936, 2, 4096},
    {"1700m-1k", 2048, 28, 6144, 16, 8, 128, 151936, 8, 1024},
    {"1700m-16k", 2048, 28, 6144, 16, 8, 128, 151936, 1, 16384},
    {"1700m-40k", 2048, 28, 6144, 16, 8, 128, 151936, 1, 40960},
};

static struct nn_device *meter; /* only asked how much memory is free */

static size_t free_bytes(void)
{
    struct nn_dev_info info;

    meter->ops->info(meter->q, &info);
    return info.free;
}

static void check(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "bench_nn_gpu: %s\n", e->msg);
        exit(2);
    }
}

static struct model *make_model(const struct shape *s)
{
    struct err e = ERR_INIT;
    struct model_config c;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b}", "model_type", "qwen3", "vocab_size", s->V,
                          "hidden_size",
                          s->d, "intermediate_size", s->f, "num_hidden_layers", s->layers, "num_attention_heads",
                          s->heads,
                          "num_key_value_heads", s->kv, "head_dim", s->dim, "tie_word_embeddings", 1);
    struct model *m;
    struct rng r;

    check(model_config_parse(o, &c, &e), &e);
    m = model_init(&c, 1, &e);
    check(m ? 0 : -1, &e);
    rng_seed(&r, 3, 0);
    check(model_to_device(m, "cuda", "bf16", &e), &e);
    json_decref(o);
    model_config_free(&c);
    return m;
}

struct batch {
    struct train_batch b;
    int32_t *tokens, *targets, *cu;
    float *logp, *dlogp;
    int T;
};

static struct batch make_batch(const struct shape *s)
{
    struct batch x = {.T = s->rows * s->length};
    struct rng r;

    rng_seed(&r, 5, 0);
    x.tokens = xcalloc((size_t)x.T, 4), x.targets = xcalloc((size_t)x.T, 4), x.cu = xcalloc((size_t)s->rows + 1, 4);
    x.logp = xcalloc((size_t)x.T, 4), x.dlogp = xcalloc((size_t)x.T, 4);
    for (int i = 0; i < x.T; i++) {
        x.tokens[i] = (int32_t)rng_below(&r, (uint64_t)s->V);
        x.dlogp[i] = -1.0f / (float)x.T;
    }
    for (int i = 0; i < x.T; i++)
        x.targets[i] = (i + 1) % s->length ? x.tokens[i + 1] : -1;
    for (int i = 0; i <= s->rows; i++)
        x.cu[i] = i * s->length;
    x.b = (struct train_batch){.tokens = x.tokens, .cu_seqlens = x.cu, .n_seq = s->rows, .targets = x.targets};
    return x;
}

static double train_step(struct model *m, struct optim *opt, struct batch *x)
{
    struct err e = ERR_INIT;
    double loss = 0;

    model_zero_grads(m);
    check(model_forward(m, &x->b, x->logp, NULL, &e), &e);
    check(model_backward(m, x->dlogp, NULL, &e), &e);
    grad_clip(m, 1);
    check(optim_step(opt, m, 1e-4, &e), &e);
    for (int i = 0; i < x->T; i++)
        loss -= x->logp[i];
    return loss / x->T;
}

static void bench_train(const struct shape *s, struct model *m, size_t free_before)
{
    struct adamw_options o = {.weight_decay = 0.01};
    struct err e = ERR_INIT;
    struct batch x = make_batch(s);
    struct train_limits lim = {.max_tokens = x.T};
    struct optim *opt;
    double first, loss = 0, t, flops;
    double plan = (double)model_train_bytes(m, &lim) + 6 * (double)m->n_params;
    int n = getenv("BENCH_STEPS") ? atoi(getenv("BENCH_STEPS")) : 8;

    check(model_train_begin(m, &lim, &e), &e);
    opt = optim_new(m, &o);
    first = train_step(m, opt, &x);
    for (int i = 0; i < 2; i++)
        train_step(m, opt, &x);
    t = now_s();
    for (int i = 0; i < n; i++)
        loss = train_step(m, opt, &x);
    t = (now_s() - t) / n;
    flops = (6.0 * (double)m->n_params + 6.0 * s->length * s->heads * s->dim * s->layers) * x.T;
    printf("train  %-5s %6.1f M weights, %d x %d: %8.2f ms a step %9.0f tokens/s %5.1f %% MFU,"
           " loss %.4f to %.4f, plan %.2f GB, taken %.2f GB\n",
           s->name, (double)m->n_params / 1e6, s->rows, s->length, t * 1e3, x.T / t, 100 * flops / t / PEAK, first,
           loss,
           plan / 1e9, (double)(free_before - free_bytes()) / 1e9);
    fflush(stdout);
    optim_free(opt);
    free(x.tokens), free(x.targets), free(x.cu), free(x.logp), free(x.dlogp);
}

/* n samples of 'fresh' tokens behind prompts of 128, max_batch at a time; never a stop. */
static void bench_sample(const struct shape *s, struct model *m, int n, int batch, int fresh)
{
    enum { PROMPT = 128 };
    struct sample_request *q = xcalloc((size_t)n, sizeof *q);
    int32_t never = -1, *prompt = xcalloc((size_t)(PROMPT + n), sizeof *prompt);
    struct sampler_options o = {.temperature = 1, .max_new = fresh, .stop_ids = &never, .n_stop = 1,
                                .max_batch = batch};
    struct sample *got = NULL;
    struct err e = ERR_INIT;
    struct rng r;
    size_t k;
    double t, share;

    rng_seed(&r, 9, 0);
    for (int i = 0; i < PROMPT + n; i++)
        prompt[i] = (int32_t)rng_below(&r, (uint64_t)s->V);
    for (int i = 0; i < n; i++)
        q[i] = (struct sample_request){.prompt = prompt + i, .n_prompt = PROMPT, .n_samples = 1, .seed = (uint64_t)i};
    t = now_s();
    check(sampler_run(m, &o, q, n, &got, &k, &e), &e);
    t = now_s() - t;
    share = 2.0 * (double)m->n_params * fresh / 3.35e12 / t; // reading the weights once a step, of all the time
    printf("sample %-5s %5d samples, batch %4d, prompt %d, %d new: %9.0f tokens/s", s->name, n, batch, PROMPT, fresh,
           (double)n * fresh / t);
    if (n == batch)
        printf(", %.3f ms a step, %.0f %% of it the weights' bandwidth", 1e3 * t / fresh, 100 * share);
    printf("\n");
    fflush(stdout);
    samples_free(got, k);
    free(q);
    free(prompt);
}

static bool part(const char *name)
{
    const char *own = getenv("BENCH_PARTS");

    return !own || strstr(own, name);
}

static bool same_model(const struct shape *a, const struct shape *b)
{
    return a && a->d == b->d && a->layers == b->layers && a->V == b->V;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    const struct shape *had = NULL;
    struct model *m = NULL;
    size_t free_before = 0;

    check((meter = nn_device_open("cuda", &e)) ? 0 : -1, &e);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= !strcmp(argv[k], shapes[i].name);
        if (!wanted)
            continue;
        if (!same_model(had, &shapes[i])) {
            if (m)
                model_free(m);
            free_before = free_bytes();
            m = make_model(&shapes[i]);
            had = &shapes[i];
        }
        if (part("sample") && !strchr(shapes[i].name, '-')) { // a context is a matter of training
            bench_sample(&shapes[i], m, 1, 1, 64); // records graphs, warms up
            bench_sample(&shapes[i], m, 1, 1, 256);
            setenv("MUSACODER_NN_STEP", "layers", 1); // the same, a kernel for each operator
            bench_sample(&shapes[i], m, 1, 1, 256);
            unsetenv("MUSACODER_NN_STEP");
            bench_sample(&shapes[i], m, 64, 64, 256);
            bench_sample(&shapes[i], m, 512, 512, 256);
            if (shapes[i].d < 1024)
                bench_sample(&shapes[i], m, 4096, 1024, 256);
        }
        if (part("train"))
            bench_train(&shapes[i], m, free_before);
    }
    if (m)
        model_free(m);
    return 0;
}
