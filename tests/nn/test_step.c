/* test_step.c - the fused decoding step against layers run one by one: log-probs of what was sampled, replayed by the
 * training pass. bf16, so both are off; the fused step may not be off by more.
 *
 * Device: the CPU emulator, or $NN_TEST_DEVICE ("cuda"). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/model.h"
#include "nn/sampler.h"

#define REQUESTS 3
#define VOCAB 300
#define LONGEST 80

static const int lengths[REQUESTS] = {1, 66, 7};
static int32_t prompt[LONGEST];

static void die(const struct err *e)
{
    fprintf(stderr, "test_step: %s\n", e->msg);
    exit(2);
}

static struct model *make(const char *type, int d, int f, int heads, int kv, int dim)
{
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:f,s:i}", "model_type", type, "vocab_size", VOCAB,
                          "hidden_size", d, "intermediate_size", f, "num_hidden_layers", 2, "num_attention_heads",
                          heads, "num_key_value_heads", kv, "head_dim", dim, "tie_word_embeddings", 1,
                          "initializer_range", 0.1, "max_position_embeddings", 512);
    const char *device = getenv("NN_TEST_DEVICE");
    struct train_limits lim = {.max_tokens = 2 * LONGEST};
    struct err e = ERR_INIT;
    struct model_config c;
    struct model *m;

    if (model_config_parse(o, &c, &e) < 0 || !(m = model_init(&c, 3, &e)))
        die(&e);
    for (int i = 0; i < m->n_tensors; i++) // biases begin at 0, which would hide a missing one
        for (int j = 0; strstr(m->tensors[i].name, ".bias") && j < m->tensors[i].cols; j++)
            m->weights[m->tensors[i].offset + (size_t)j] = 0.5f * (float)(j % 5 - 2);
    if (model_to_device(m, device ? device : "sim", "bf16", &e) < 0 || model_train_begin(m, &lim, &e) < 0)
        die(&e);
    json_decref(o);
    model_config_free(&c);
    return m;
}

static double replay(struct model *m, const struct sample *s, float temperature)
{
    int len = lengths[s->request], T = len + s->n;
    int32_t tokens[2 * LONGEST], targets[2 * LONGEST], cu[2] = {0, T};
    struct train_batch b = {tokens, cu, 1, targets, .temperature = temperature};
    float logp[2 * LONGEST];
    struct err e = ERR_INIT;
    double worst = 0;

    memcpy(tokens, prompt, (size_t)len * sizeof *tokens);
    memcpy(tokens + len, s->tokens, (size_t)s->n * sizeof *tokens);
    for (int t = 0; t < T; t++)
        targets[t] = t + 1 < T && t + 1 >= len ? tokens[t + 1] : -1;
    if (model_forward(m, &b, logp, NULL, &e) < 0)
        die(&e);
    for (int t = 0; t < s->n; t++)
        worst = fmax(worst, fabs(logp[len - 1 + t] - s->logp[t]));
    return worst;
}

/* The worst error of a run, and its first log-probs. */
static double draw(struct model *m, int batch, float *first)
{
    struct sampler_options o = {.temperature = 0.9f, .top_p = 1, .max_new = 3, .max_batch = batch};
    struct sample_request q[REQUESTS];
    struct sample *s = NULL;
    struct err e = ERR_INIT;
    double worst = 0;
    size_t n;

    for (int i = 0; i < REQUESTS; i++)
        q[i] = (struct sample_request){.prompt = prompt, .n_prompt = lengths[i], .n_samples = 1, .seed = (uint64_t)i};
    if (sampler_run(m, &o, q, REQUESTS, &s, &n, &e) < 0)
        die(&e);
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, replay(m, &s[i], o.temperature));
        first[i] = s[i].logp[0];
    }
    samples_free(s, n);
    return worst;
}

static int check(const char *name, struct model *m, int batch)
{
    float a[REQUESTS], b[REQUESTS];
    double fused, layers, apart = 0;
    bool ok;

    unsetenv("MUSACODER_NN_STEP");
    fused = draw(m, batch, a);
    setenv("MUSACODER_NN_STEP", "layers", 1);
    layers = draw(m, batch, b);
    for (int i = 0; i < REQUESTS; i++)
        apart = fmax(apart, fabs(a[i] - b[i]));
    ok = fused <= 2 * layers + 0.01 && fused > 0;
    printf("%s %s, %d rows: off by %.2g, layers by %.2g, apart %.2g\n", ok ? "ok  " : "FAIL", name, batch, fused,
           layers, apart);
    return !ok;
}

int main(void)
{
    static const struct { const char *name, *type; int d, f, heads, kv, dim; } shapes[] = {
        {"3 heads of 64", "qwen3", 72, 88, 3, 1, 64}, {"2 heads of 128", "qwen3", 136, 264, 2, 1, 128},
        {"5 heads of 64", "qwen3", 72, 88, 5, 1, 64}, {"3 heads of 64, no norms", "llama", 72, 88, 3, 1, 64},
        {"4 heads of 64, biases", "qwen2", 72, 88, 4, 2, 64}};
    int failures = 0;
    struct rng r;

    setvbuf(stdout, NULL, _IOLBF, 0);
    rng_seed(&r, 1, 2);
    for (int i = 0; i < LONGEST; i++)
        prompt[i] = (int32_t)rng_below(&r, VOCAB);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct model *m = make(shapes[i].type, shapes[i].d, shapes[i].f, shapes[i].heads, shapes[i].kv, shapes[i].dim);
        for (int batch = i ? 2 : 1; batch <= 4; batch *= 4)
            failures += check(shapes[i].name, m, batch);
        model_free(m);
    }
    printf("%d failures\n", failures);
    return failures > 0;
}
