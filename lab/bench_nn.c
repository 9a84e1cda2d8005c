/* bench_nn.c - how fast the engine trains and samples at the size of the demo, against the machine's own limit.
 *
 * Usage: bench_nn [hidden layers ffn head_dim vocab]   ('make bench-nn' also runs bench_nn_torch.py, same shapes)
 * The limit is the matrix product at a size that suits it, measured in the same run; OpenBLAS is shown beside ours.
 * Model FLOPs: 6 per weight and token in training, 2 in sampling, plus attention; embeddings count only as
 * classifier. */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/model.h"
#include "nn/ops/ops.h"
#include "nn/optim.h"
#include "nn/sampler.h"

#define TOKENS 8192
#define LENGTH 512

static struct rng rng;

static double best_of(int n, void (*f)(void *), void *ctx)
{
    double best = 1e9;

    f(ctx);
    for (int i = 0; i < n; i++) {
        double t = now_s();
        f(ctx);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    return best;
}

struct product {
    int m, n, k;
    float *a, *b, *c, *packed;
};

static void ours(void *p)
{
    struct product *x = p;

    cpu_ops()->gemm_mt(x->m, x->n, x->k, x->a, x->k, false, x->packed, x->c, x->n, GEMM_SET);
}

static void blas(void *p)
{
    struct product *x = p;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, x->m, x->n, x->k, 1, x->a, x->k, x->b, x->k, 0, x->c, x->n);
}

static double gflops(int m, int n, int k, void (*f)(void *))
{
    struct product x = {m, n, k, xcalloc((size_t)m * (size_t)k, 4), xcalloc((size_t)n * (size_t)k, 4),
                        xcalloc((size_t)m * (size_t)n, 4), xcalloc(PACK_FLOATS(cpu_ops(), n, k), 4)};
    double t;

    cpu_ops()->pack_nt(x.b, k, n, k, x.packed);
    t = best_of(8, f, &x);
    free(x.a), free(x.b), free(x.c), free(x.packed);
    return 2.0 * m * n * k / t * 1e-9;
}

static double bench_gemm(void)
{
    static const int sizes[][3] = {{1024, 1024, 512}, {8192, 320, 192}, {8192, 1024, 192}, {64, 1024, 192},
                                   {64, 192, 512}};
    double peak = 0;

    printf("matrix product (m n k)          ours   OpenBLAS   GFLOP/s\n");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int *s = sizes[i];
        double a = gflops(s[0], s[1], s[2], ours), b = gflops(s[0], s[1], s[2], blas);
        printf("  %5d %5d %5d             %6.0f     %6.0f\n", s[0], s[1], s[2], a, b);
        peak = a > peak ? a : peak;
        peak = b > peak ? b : peak;
    }
    return peak;
}

static struct model *make_model(const int *size)
{
    struct err e = ERR_INIT;
    struct model_config c;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b}", "model_type", "qwen3", "vocab_size", size[4],
                          "hidden_size", size[0], "intermediate_size", size[2], "num_hidden_layers", size[1],
                          "num_attention_heads", size[0] / size[3], "num_key_value_heads", 1, "head_dim", size[3],
                          "tie_word_embeddings", 1);
    struct model *m = NULL;

    if (model_config_parse(o, &c, &e) < 0 || !(m = model_init(&c, 1, &e))) {
        fprintf(stderr, "bench_nn: %s\n", e.msg);
        exit(2);
    }
    json_decref(o);
    model_config_free(&c);
    return m;
}

struct train_ctx {
    struct model *m;
    struct optim *opt;
    struct train_batch b;
    float *logp, *dlogp;
};

static void train_step(void *p)
{
    struct train_ctx *c = p;
    struct err e = ERR_INIT;

    model_zero_grads(c->m);
    if (model_forward(c->m, &c->b, c->logp, NULL, &e) < 0 || model_backward(c->m, c->dlogp, NULL, &e) < 0) {
        fprintf(stderr, "bench_nn: %s\n", e.msg);
        exit(2);
    }
    grad_clip(c->m, 1);
    optim_step(c->opt, c->m, 1e-4, &e);
}

/* n sequences of LENGTH; the first 'shared' tokens are the same in groups of 8 and have no targets. */
static double bench_train(struct model *m, int shared, double peak, const char *what)
{
    static int32_t tokens[TOKENS], targets[TOKENS], cu[TOKENS / LENGTH + 1];
    static float logp[TOKENS], dlogp[TOKENS];
    struct adamw_options o = {.weight_decay = 0.01};
    struct err e = ERR_INIT;
    struct train_ctx c = {m, optim_new(m, &o), {tokens, cu, TOKENS / LENGTH, targets, 0}, logp, dlogp};
    const struct model_config *k = &m->config;
    double flops = 6.0 * (double)m->n_params * TOKENS + 6.0 * LENGTH * k->num_heads * k->head_dim * k->num_layers *
        TOKENS, t;

    for (int i = 0; i < TOKENS; i++) {
        int in = i % LENGTH, root = i / (8 * LENGTH) * 8 * LENGTH;
        tokens[i] = (int32_t)rng_below(&rng, (uint64_t)k->vocab_size);
        targets[i] = in + 1 < shared ? -1 : (int32_t)rng_below(&rng, (uint64_t)k->vocab_size);
        tokens[i] = in < shared ? tokens[root + in] : tokens[i];
        dlogp[i] = -1.0f / TOKENS;
        cu[i / LENGTH] = i / LENGTH * LENGTH;
    }
    cu[TOKENS / LENGTH] = TOKENS;
    if (model_train_begin(m, &(struct train_limits){.max_tokens = TOKENS}, &e) < 0) {
        fprintf(stderr, "bench_nn: %s\n", e.msg);
        exit(2);
    }
    t = best_of(4, train_step, &c);
    printf("%-44s %8.0f tokens/s", what, TOKENS / t);
    if (!shared)
        printf("  %5.0f GFLOP/s  %3.0f %% of the product's", flops / t * 1e-9, 100 * flops / t * 1e-9 / peak);
    printf("\n");
    optim_free(c.opt);
    return TOKENS / t;
}

static void bench_sampling(struct model *m, int requests, int each, double peak)
{
    struct sample_request *q = xcalloc((size_t)requests, sizeof *q);
    static int32_t prompt[TOKENS];
    int32_t never = -1;
    struct sampler_options o = {.temperature = 1, .max_new = 256, .stop_ids = &never, .n_stop = 1};
    struct err e = ERR_INIT;
    struct sample *s = NULL;
    size_t n, tokens = 0;
    double t;

    for (int i = 0; i < TOKENS; i++)
        prompt[i] = (int32_t)rng_below(&rng, (uint64_t)m->config.vocab_size);
    for (int i = 0; i < requests; i++)
        q[i] = (struct sample_request){prompt + 13 * i, 300, each, 0, (uint64_t)i};
    t = now_s();
    if (sampler_run(m, &o, q, requests, &s, &n, &e) < 0) {
        fprintf(stderr, "bench_nn: %s\n", e.msg);
        exit(2);
    }
    t = now_s() - t;
    for (size_t i = 0; i < n; i++)
        tokens += (size_t)s[i].n;
    printf("sampling: %3d prompts of 300 x %2d, 256 new       %8.0f tokens/s  %5.0f GFLOP/s  %3.0f %% of the "
           "product's\n", requests, each, (double)tokens / t, 2e-9 * (double)m->n_params * (double)tokens / t,
           100 * 2e-9 * (double)m->n_params * (double)tokens / t / peak);
    samples_free(s, n);
    free(q);
}

int main(int argc, char **argv)
{
    int size[5] = {192, 5, 512, 64, 2048};
    double peak, alone;
    struct model *m;

    for (int i = 1; i < argc && i <= 5; i++)
        size[i - 1] = atoi(argv[i]);
    rng_seed(&rng, 1, 0);
    printf("%d threads, instructions %s\n", omp_get_max_threads(), cpu_ops()->name);
    peak = bench_gemm();
    m = make_model(size);
    printf("model: hidden %d, layers %d, ffn %d, head %d, vocabulary %d: %.2f million weights\n", size[0], size[1],
           size[2], size[3], size[4], (double)m->n_params / 1e6);
    alone = bench_train(m, 0, peak, "training: 16 sequences of 512");
    printf("  shared prompts: %.2f times as fast\n",
           bench_train(m, 256, peak, "training: the same, groups of 8, prompt 256") / alone);
    bench_sampling(m, 1, 1, peak);
    bench_sampling(m, 16, 8, peak);
    bench_sampling(m, 64, 4, peak);
    model_free(m);
    return 0;
}
