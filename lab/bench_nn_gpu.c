/* bench_nn_gpu.c - training and sampling on a GPU at several sizes, beside bench_nn_gpu.py in the same run.
 *
 * Usage: bench_nn_gpu [shape...]     shapes: those of the table below (all); one model serves neighbours
 *        bench_nn_gpu --first FOLDER seconds from the start of the process to the first token of that model
 *        bench_nn_gpu --plan          what the planner says of 8 and 9 billion weights; no GPU is needed
 * Steps from random weights, bf16, packed sequences.
 * $BENCH_PARTS: "train" and "sample" (default), "long" (8K + 32K tokens a sample), "contexts" (a step of four samples
 * behind 8K, 24K and 40K tokens), "save" (a checkpoint in $BENCH_DIR);
 * $BENCH_STEPS: training steps that are timed; $BENCH_AGAIN: layers keep their inputs alone.
 * Memory: what the planner says before the first step (weights, gradients, optimiser, activations), and what the device
 * lost from before the model to after the last step.
 * One line a shape: milliseconds a step (forward, backward, clipping, AdamW), tokens a second, MFU. Model FLOPs: 6 for
 * each weight in a product and token (the embedding counts as classifier), 6 length q layers for causal attention,
 * recomputing not counted; against 989 TFLOP/s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/budget.h"
#include "nn/engine_device.h"
#include "nn/model.h"
#include "nn/optim.h"
#include "nn/sampler.h"
#include "train/checkpoint.h"

#define PEAK 989e12
#define FILL ((size_t)1 << 20)

struct model *model_new_empty(const struct model_config *c, struct err *e); /* model.c */

static const struct shape {
    const char *name;
    int d, layers, f, heads, kv, dim, V, rows, length;
    const char *type; /* model_type; NULL: qwen3 */
} shapes[] = {
    {"20m", 384, 8, 1152, 6, 2, 64, 16384, 32, 2048, NULL},
    {"20m-4k", 384, 8, 1152, 6, 2, 64, 16384, 16, 4096, NULL},
    {"123m", 768, 16, 2304, 12, 4, 64, 16384, 16, 2048, NULL},
    {"123m-1k", 768, 16, 2304, 12, 4, 64, 16384, 32, 1024, NULL},
    {"123m-4k", 768, 16, 2304, 12, 4, 64, 16384, 8, 4096, NULL},
    {"123m-16k", 768, 16, 2304, 12, 4, 64, 16384, 2, 16384, NULL},
    {"135m", 576, 30, 1536, 9, 3, 64, 49152, 32, 2048, "llama"},  // SmolLM2-135M
    {"500m", 896, 24, 4864, 14, 2, 64, 151936, 8, 2048, "qwen2"}, // Qwen2.5-0.5B
    {"600m", 1024, 28, 3072, 16, 8, 128, 151936, 4, 4096, NULL},
    {"1700m", 2048, 28, 6144, 16, 8, 128, 151936, 2, 4096, NULL},
    {"1700m-1k", 2048, 28, 6144, 16, 8, 128, 151936, 8, 1024, NULL},
    {"1700m-16k", 2048, 28, 6144, 16, 8, 128, 151936, 1, 16384, NULL},
    {"1700m-40k", 2048, 28, 6144, 16, 8, 128, 151936, 1, 40960, NULL},
};

static struct nn_device *meter; /* only asked how much memory is free */

static size_t free_bytes(void)
{
    struct nn_dev_info info;

    meter->ops->info(meter->q, &info);
    return info.free;
}

/* Bytes a second that the card's memory is sold with. */
static double bandwidth(void) { return strstr(meter->info.name, "H200") ? 4.8e12 : 3.35e12; }

static void check(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "bench_nn_gpu: %s\n", e->msg);
        exit(2);
    }
}

static void config_of(const struct shape *s, bool tied, struct model_config *ret)
{
    struct err e = ERR_INIT;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b}", "model_type",
                          s->type ? s->type : "qwen3", "vocab_size", s->V, "hidden_size", s->d,
                          "intermediate_size", s->f, "num_hidden_layers", s->layers, "num_attention_heads", s->heads,
                          "num_key_value_heads", s->kv, "head_dim", s->dim, "max_position_embeddings", 65536,
                          "tie_word_embeddings", tied);

    check(model_config_parse(o, ret, &e), &e);
    json_decref(o);
}

/* Evenly drawn weights of the usual size, on all threads: model_init's normal ones take a minute at 1.7 billion. */
static void fill(struct model *m)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t c = 0; c < m->n_params / FILL + 1; c++) {
        struct rng r;
        rng_seed(&r, 1, c);
        for (size_t i = c * FILL; i < (c + 1) * FILL && i < m->n_params; i++)
            m->weights[i] = (float)((rng_f64(&r) - 0.5) * 0.07);
    }
    for (int i = 0; i < m->n_tensors; i++)
        for (int k = 0; m->tensors[i].is_vector && k < m->tensors[i].cols; k++)
            m->weights[m->tensors[i].offset + (size_t)k] = 1;
}

static struct model *make_model(const struct shape *s)
{
    struct err e = ERR_INIT;
    struct model_config c;
    struct model *m;
    double t = now_s();

    config_of(s, true, &c);
    m = model_new_empty(&c, &e);
    check(m ? 0 : -1, &e);
    fill(m);
    check(model_to_device(m, "cuda", "bf16", &e), &e);
    model_config_free(&c);
    fprintf(stderr, "%s: random weights in %.1f s\n", s->name, now_s() - t);
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

/* The planner's bytes of a step. */
static size_t dev_step(const struct shape *s, bool again)
{
    struct train_limits lim = {.max_tokens = s->rows * s->length};
    struct model_config c;
    struct model_budget b;

    config_of(s, true, &c);
    b = model_budget(&c, "bf16", &lim, 0, 1, false);
    model_config_free(&c);
    return again ? b.step_again : b.step;
}

static void bench_train(const struct shape *s, struct model *m, size_t free_before)
{
    struct adamw_options o = {.weight_decay = 0.01};
    struct err e = ERR_INIT;
    struct batch x = make_batch(s);
    struct train_limits lim = {.max_tokens = x.T};
    struct optim *opt;
    double first, loss = 0, t, flops;
    double plan = (double)dev_step(s, getenv("BENCH_AGAIN") != NULL) + 18 * (double)m->n_params;
    int n = getenv("BENCH_STEPS") ? atoi(getenv("BENCH_STEPS")) : 8;

    if (getenv("BENCH_AGAIN")) // a byte less than all activations need: every layer runs again on the way back
        lim.max_bytes = model_train_bytes(m, &lim) - 1;
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

static void tell(void *ctx, uint64_t tokens, int done, int total)
{
    double *x = ctx; // when it began, when it last spoke; when the first tokens came, and how many

    if (!x[3] && tokens)
        x[2] = now_s(), x[3] = (double)tokens;
    if (now_s() - x[1] < 10)
        return;
    x[1] = now_s();
    printf("    %.0f s: %llu tokens, %d of %d samples\n", x[1] - x[0], (unsigned long long)tokens, done, total);
    fflush(stdout);
}

/* n samples of 'fresh' tokens behind prompts of 'ahead', max_batch at a time; never a stop. */
static void bench_sample(const struct shape *s, struct model *m, int n, int batch, int ahead, int fresh)
{
    struct sample_request *q = xcalloc((size_t)n, sizeof *q);
    int32_t never = -1, *prompt = xcalloc((size_t)(ahead + n), sizeof *prompt);
    size_t before = free_bytes();
    double t = now_s(), share, said[4] = {t, t}, end;
    struct sampler_options o = {.temperature = 1, .max_new = fresh, .stop_ids = &never, .n_stop = 1,
                                .max_batch = batch, .progress = tell, .ctx = said};
    struct sample *got = NULL;
    struct err e = ERR_INIT;
    struct rng r;
    size_t k;

    rng_seed(&r, 9, 0);
    for (int i = 0; i < ahead + n; i++)
        prompt[i] = (int32_t)rng_below(&r, (uint64_t)s->V);
    for (int i = 0; i < n; i++)
        q[i] = (struct sample_request){.prompt = prompt + i, .n_prompt = ahead, .n_samples = 1, .seed = (uint64_t)i};
    check(sampler_run(m, &o, q, n, &got, &k, &e), &e);
    end = now_s();
    t = end - t;
    share = 2.0 * (double)m->n_params * fresh / bandwidth() / t; // reading the weights once a step, of all the time
    printf("sample %-5s %5d samples, batch %4d, prompt %d, %d new: %9.0f tokens/s", s->name, n, batch, ahead, fresh,
           (double)n * fresh / t);
    if (n == batch)
        printf(", %.3f ms a step, %.0f %% of it the weights' bandwidth", 1e3 * t / fresh, 100 * share);
    if (n == batch && n * fresh > said[3])
        printf("; behind the prompts %.3f ms a step", 1e3 * (end - said[2]) / (fresh - said[3] / n));
    printf(", %.1f GB free before\n", (double)before / 1e9);
    fflush(stdout);
    samples_free(got, k);
    free(q);
    free(prompt);
}

static void bench_samples(const struct shape *s, struct model *m)
{
    enum { PROMPT = 128, NEW = 256 };

    bench_sample(s, m, 1, 1, PROMPT, 64); // records graphs, warms up
    bench_sample(s, m, 1, 1, PROMPT, NEW);
    setenv("MUSACODER_NN_STEP", "layers", 1); // the same, a kernel for each operator
    bench_sample(s, m, 1, 1, PROMPT, NEW);
    unsetenv("MUSACODER_NN_STEP");
    for (int n = 64; n <= 2048; n = n == 64 ? 512 : n * 4)
        bench_sample(s, m, n, n, PROMPT, NEW);
    if (s->d < 1024)
        bench_sample(s, m, 4096, 1024, PROMPT, NEW);
}

/* ---- files ---- */

static void bench_save(const struct shape *s, struct model *m)
{
    struct adamw_options o = {.weight_decay = 0.01};
    struct train_limits lim = {.max_tokens = 1024};
    struct err e = ERR_INIT;
    struct optim *opt;
    json_t *state = json_object();
    const char *dir = getenv("BENCH_DIR") ? getenv("BENCH_DIR") : "/tmp";
    char *at = xasprintf("%s/bench-%s", dir, s->name), *folder = xasprintf("%s/model", at);
    double t = now_s(), bytes = 4.0 * (double)m->n_params;

    check(model_save(m, folder, &e), &e);
    t = now_s() - t;
    printf("save   %-5s model in fp32: %.2f GB in %.2f s, %.2f GB/s: %s\n", s->name, bytes / 1e9, t, bytes / t / 1e9,
           folder);
    check(model_train_begin(m, &lim, &e), &e);
    opt = optim_new(m, &o);
    t = now_s();
    check(checkpoint_save(at, 1, m, opt, state, &e), &e);
    t = now_s() - t;
    printf("save   %-5s checkpoint with both moments: %.2f GB in %.2f s, %.2f GB/s\n", s->name, 3 * bytes / 1e9, t,
           3 * bytes / t / 1e9);
    fflush(stdout);
    optim_free(opt);
    json_decref(state);
    free(folder);
    free(at);
}

static int first_token(const char *folder)
{
    static const int32_t prompt[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    double start = now_s(), loaded, moved;
    int32_t never = -1;
    struct sample_request q = {.prompt = prompt, .n_prompt = 16, .n_samples = 1};
    struct sampler_options o = {.temperature = 1, .max_new = 1, .stop_ids = &never, .n_stop = 1, .max_batch = 1};
    struct err e = ERR_INIT;
    struct sample *got;
    struct model *m;
    size_t k;

    check((m = model_load(folder, &e)) ? 0 : -1, &e);
    loaded = now_s();
    check(model_to_device(m, "cuda", "bf16", &e), &e);
    moved = now_s();
    check(sampler_run(m, &o, &q, 1, &got, &k, &e), &e);
    printf("first token of %s: %.2f s after the start: loading %.2f, to the device %.2f, prompt and token %.2f\n",
           folder, now_s() - start, loaded - start, moved - loaded, now_s() - moved);
    samples_free(got, k);
    model_free(m);
    return 0;
}

/* What does not fit on one card: the planner's own words. */
static void tell_plan(const struct shape *s, bool tied, double card)
{
    struct train_limits lim = {.max_tokens = s->rows * s->length};
    struct model_config c;
    struct model_budget b;
    struct buf out;

    config_of(s, tied, &c);
    b = model_budget(&c, "bf16", &lim, 0, 1, false);
    buf_init(&out, 2000);
    printf("plan   %s, %d x %d:\n", s->name, s->rows, s->length);
    model_budget_tell(&c, &b, "  ", (size_t)card, &out);
    fputs(out.p, stdout);
    buf_free(&out);
    model_config_free(&c);
}

static int tell_plans(void)
{
    static const struct shape eight = {"8000m", 4096, 36, 12288, 32, 8, 128, 151936, 1, 4096, NULL};

    tell_plan(&eight, false, 141e9);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        tell_plan(&shapes[i], true, 141e9);
    return 0;
}

static bool part(const char *name)
{
    const char *own = getenv("BENCH_PARTS");

    return own ? strstr(own, name) != NULL : !strcmp(name, "train") || !strcmp(name, "sample");
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

    if (argc == 2 && !strcmp(argv[1], "--plan"))
        return tell_plans();
    if (argc == 3 && !strcmp(argv[1], "--first"))
        return first_token(argv[2]);
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
        if (part("sample") && !strchr(shapes[i].name, '-')) // a context is a matter of training
            bench_samples(&shapes[i], m);
        if (part("long"))
            bench_sample(&shapes[i], m, 4, 4, 8192, 32768);
        for (int ahead = 8192; part("contexts") && ahead <= 40960; ahead += 16384)
            bench_sample(&shapes[i], m, 4, 4, ahead, 256);
        if (part("save"))
            bench_save(&shapes[i], m);
        if (part("train"))
            bench_train(&shapes[i], m, free_before);
    }
    if (m)
        model_free(m);
    return 0;
}
