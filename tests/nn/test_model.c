/* test_model.c - the engine against Transformers: logits, log-probs, entropy, loss and every gradient, on sequences of
 * many lengths, packed and alone; and the invariants that need no reference. Fixtures: make_model_golden.py. */
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/model.h"
#include "nn/ops/ops.h"
#include "nn/optim.h"
#include "nn/safetensors.h"

#define TOLERANCE 1e-5

struct golden {
    char *dir;
    struct safetensors *st;
    struct model *m;
    const int32_t *tokens, *cu, *targets;
    const float *weight, *coef;
    float temperature;
    int T, n_seq;
};

static void *floats_of(struct golden *g, const char *name)
{
    const struct st_tensor *t = st_find(g->st, name);

    if (!t)
        fail_msg("golden tensor %s is missing", name);
    void *p = xmalloc(t->nbytes);
    memcpy(p, t->data, t->nbytes);
    return p;
}

static void golden_open(struct golden *g, const char *root, const char *name, const char *isa)
{
    struct err e = ERR_INIT;
    char *file;

    g->dir = path_join(root, name);
    file = path_join(g->dir, "golden.safetensors");
    g->st = st_open(file, &e);
    if (!g->st)
        fail_msg("%s", e.msg);
    free(file);
    g->m = model_load(g->dir, &e);
    if (!g->m)
        fail_msg("%s", e.msg);
    if (isa)
        g->m->ops = cpu_ops_named(isa);
    g->tokens = floats_of(g, "tokens");
    g->cu = floats_of(g, "cu");
    g->targets = floats_of(g, "targets");
    g->weight = floats_of(g, "weight");
    g->coef = floats_of(g, "coef");
    float *t = floats_of(g, "temperature");
    g->temperature = t[0];
    free(t);
    g->T = (int)st_find(g->st, "tokens")->n;
    g->n_seq = (int)st_find(g->st, "cu")->n - 1;
    if (model_train_begin(g->m, &(struct train_limits){.max_tokens = g->T}, &e) < 0)
        fail_msg("%s", e.msg);
}

static void golden_close(struct golden *g)
{
    model_free(g->m);
    st_close(g->st);
    free(g->dir);
    free((void *)g->tokens);
    free((void *)g->cu);
    free((void *)g->targets);
    free((void *)g->weight);
    free((void *)g->coef);
}

/* max |a - b| / max |b| */
static double distance(const float *a, const float *b, size_t n)
{
    double diff = 0, top = 0;

    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        diff = d > diff || isnan(d) ? d : diff;
        top = fabs(b[i]) > top ? fabs(b[i]) : top;
    }
    return top > 0 ? diff / top : diff;
}

/* 1e-5; or, where Transformers in fp32 is further than that from the same in double, 1.2 times its distance. step: of
 * losses and norms, whose distance up to there counts. */
static double limit_of(struct golden *g, const char *name, int step)
{
    char *key = xasprintf("fp32.%s", name);
    float *own = floats_of(g, key);
    double most = TOLERANCE;

    for (int i = 0; i <= step; i++)
        most = fmax(most, 1.2 * own[i]);
    free(own);
    free(key);
    return most;
}

static void expect_close(const char *what, const float *ours, struct golden *g, const char *name, size_t n)
{
    float *ref = floats_of(g, name);
    double d = distance(ours, ref, n), limit = limit_of(g, name, 0);

    assert_int_equal(st_find(g->st, name)->n, n);
    if (getenv("NN_TEST_TELL"))
        print_message("%s %s %s: %.2e of %.2e\n", g->dir, what, name, d, limit);
    if (!(d <= limit))
        fail_msg("%s: %s differs by %.2e of its maximum, limit %.2e", g->dir, what, d, limit);
    free(ref);
}

/* Forward and backward on sequences [s0, s1) packed; adds to the gradients. logp and entropy: (T). */
static double step(struct golden *g, int s0, int s1, float *logp, float *entropy)
{
    struct err e = ERR_INIT;
    int from = g->cu[s0], T = g->cu[s1] - from;
    int32_t *cu = xcalloc((size_t)(s1 - s0) + 1, sizeof *cu);
    float *d = xcalloc((size_t)T, sizeof *d);
    double loss = 0;

    for (int s = s0; s <= s1; s++)
        cu[s - s0] = g->cu[s] - from;
    struct train_batch b = {g->tokens + from, cu, s1 - s0, g->targets + from, .temperature = g->temperature};
    if (model_forward(g->m, &b, logp, entropy, &e) < 0)
        fail_msg("%s", e.msg);
    for (int t = 0; t < T; t++) {
        d[t] = -g->weight[from + t];
        if (b.targets[t] >= 0)
            loss += (double)d[t] * logp[t] + (double)g->coef[from + t] * entropy[t];
    }
    if (model_backward(g->m, d, g->coef + from, &e) < 0)
        fail_msg("%s", e.msg);
    free(cu);
    free(d);
    return loss;
}

/* Transformers gives the padding row of the embedding no gradient, because padding is not trained on; here every
 * row that was read has one, and the goldens count it. Without that row the two agree. */
static void check_padded(struct golden *g)
{
    const struct model_tensor *t = &g->m->tensors[0];
    size_t d = (size_t)t->cols, n = (size_t)t->rows * d;

    if (!st_find(g->st, "pad"))
        return;
    int32_t *pad = floats_of(g, "pad");
    char *name = xasprintf("padded.grad.%s", t->name);
    float *theirs = floats_of(g, name), *ours = g->m->grads + t->offset, *row = theirs + (size_t)pad[0] * d;
    assert_true(distance(ours + (size_t)pad[0] * d, row, d) > 0.01);
    memcpy(row, ours + (size_t)pad[0] * d, d * sizeof *row);
    assert_true(distance(ours, theirs, n) <= TOLERANCE);
    free(pad), free(theirs), free(name);
}

static void check_gradients(struct golden *g)
{
    for (int i = 0; i < g->m->n_tensors; i++) {
        const struct model_tensor *t = &g->m->tensors[i];
        char *name = xasprintf("grad.%s", t->name);
        expect_close(name, g->m->grads + t->offset, g, name, (size_t)t->rows * (size_t)t->cols);
        free(name);
    }
    check_padded(g);
}

static void expect_step(struct golden *g, const char *name, int i, double ours, double ref, double scale)
{
    double d = fabs(ours - ref) / fabs(scale), limit = limit_of(g, name, i);

    if (getenv("NN_TEST_TELL"))
        print_message("%s %s %d: %.2e of %.2e\n", g->dir, name, i, d, limit);
    if (!(d <= limit))
        fail_msg("%s: %s of step %d differ by %.2e, limit %.2e", g->dir, name, i, d, limit);
}

/* Ten steps of AdamW with clipping, as torch.optim takes them. */
static void check_training(struct golden *g, float *logp, float *entropy)
{
    struct adamw_options o = {.beta2 = 0.98, .weight_decay = 0.1};
    struct optim *opt = optim_new(g->m, &o);
    struct err e = ERR_INIT;
    float *losses = floats_of(g, "losses"), *norms = floats_of(g, "norms");

    for (int i = 0; i < 10; i++) {
        model_zero_grads(g->m);
        double loss = step(g, 0, g->n_seq, logp, entropy) / g->T;
        grad_scale(g->m, 1.0 / g->T);
        expect_step(g, "losses", i, loss, losses[i], losses[0]);
        expect_step(g, "norms", i, grad_clip(g->m, 0.5), norms[i], norms[i]);
        assert_int_equal(optim_step(opt, g->m, 2e-3, &e), 0);
    }
    for (int i = 0; i < g->m->n_tensors; i++) {
        const struct model_tensor *t = &g->m->tensors[i];
        char *name = xasprintf("after.%s", t->name);
        if (st_find(g->st, name))
            expect_close("weights after ten steps", g->m->weights + t->offset, g, name,
                         (size_t)t->rows * (size_t)t->cols);
        free(name);
    }
    free(losses);
    free(norms);
    optim_free(opt);
}

static void check_case(const char *root, const char *name, const char *isa)
{
    struct golden g;
    struct err e = ERR_INIT;
    golden_open(&g, root, name, isa);
    int V = g.m->config.vocab_size;
    float *logits = xcalloc((size_t)g.T * (size_t)V, sizeof *logits);
    float *logp = xcalloc((size_t)g.T, sizeof *logp), *entropy = xcalloc((size_t)g.T, sizeof *entropy);

    for (int s = 0; s < g.n_seq; s++)
        assert_int_equal(model_logits(g.m, g.tokens + g.cu[s], g.cu[s + 1] - g.cu[s], logits + (size_t)g.cu[s] *
                                      (size_t)V,
                                      &e), 0);
    expect_close("logits", logits, &g, "logits", (size_t)g.T * (size_t)V);

    model_zero_grads(g.m);
    double loss = step(&g, 0, g.n_seq, logp, entropy);
    float *ref = floats_of(&g, "loss");
    assert_true(fabs(loss - ref[0]) <= TOLERANCE * fabs(ref[0]));
    free(ref);
    expect_close("logp", logp, &g, "logp", (size_t)g.T);
    expect_close("entropy", entropy, &g, "entropy", (size_t)g.T);
    check_gradients(&g);

    model_zero_grads(g.m); // the same, one sequence at a time: gradients accumulate
    for (int s = 0; s < g.n_seq; s++)
        step(&g, s, s + 1, logp + g.cu[s], entropy + g.cu[s]);
    expect_close("logp of single sequences", logp, &g, "logp", (size_t)g.T);
    check_gradients(&g);
    check_training(&g, logp, entropy);
    free(logits);
    free(logp);
    free(entropy);
    golden_close(&g);
}

static void test_golden(void **state)
{
    static const char *const isas[] = {"base", "v3", "v4"};

    for (size_t i = 0; i < 3; i++)
        if (cpu_ops_named(isas[i])) {
            check_case("tests/nn/fixtures/model", "tied", isas[i]);
            check_case("tests/nn/fixtures/model", "untied", isas[i]);
            check_case("tests/nn/fixtures/model", "llama", isas[i]);
            check_case("tests/nn/fixtures/model", "qwen2", isas[i]);
            check_case("tests/nn/fixtures/model", "qwen35", isas[i]);
        }
}

/* What we save has the tensors of what we loaded, also those that we do not run, and the same logits in Transformers.
 * */
static void check_saved(const char *python, const char *root, const char *name)
{
    struct err e = ERR_INIT;
    char *from = path_join(root, name), *to = xasprintf("%s-saved", from);
    char *cmd = xasprintf("'%s' tests/nn/make_model_golden.py '%s' --same '%s' >/dev/null", python, from, to);
    struct model *m = model_load(from, &e);

    struct model_save_options shards = {.shard_bytes = 100000};
    if (!m || model_save(m, to, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(system(cmd), 0);
    if (model_save_as(m, to, &shards, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(system(cmd), 0);
    model_free(m);
    free(from), free(to), free(cmd);
}

/* Models made at this moment, one of them of the demo's size, when Transformers is importable. */
static void test_golden_live(void **state)
{
    static const char *const saved[] = {"tied", "untied", "llama", "qwen2", "qwen35", "vision"};
    struct err e = ERR_INIT;
    char *python = path_python(&e);
    char *dir = dir_temp("golden", &e);
    char *cmd = python ? xasprintf("'%s' -c 'import transformers, safetensors' 2>/dev/null && "
                                   "'%s' tests/nn/make_model_golden.py '%s' --seed 7 --big >/dev/null 2>&1",
                                   python, python, dir) : xstrdup("false");
    int rc = system(cmd);

    free(cmd);
    if (rc == 0) {
        check_case(dir, "tied", NULL);
        check_case(dir, "untied", NULL);
        check_case(dir, "big", NULL);
        check_case(dir, "llama", NULL);
        check_case(dir, "qwen2", NULL);
        check_case(dir, "llamabig", NULL);
        check_case(dir, "qwen35", NULL);
        check_case(dir, "vision", NULL);
        check_case(dir, "qwen35big", NULL);
        for (size_t i = 0; i < sizeof saved / sizeof saved[0]; i++)
            check_saved(python, dir, saved[i]);
    } else {
        print_message("transformers is not importable: live comparison skipped\n");
    }
    dir_remove(dir, &e);
    free(dir);
    free(python);
    if (rc)
        skip();
}

/* ---- invariants ---- */

static const char *const kinds[] = {"qwen3", "qwen3_5_text", "llama", "qwen2"};
#define WITH_DELTA 1 // two layers of Gated DeltaNet, one of attention
#define EACH_KIND(k) for (size_t k = 0; k < 4; k++)

static json_t *small_config(size_t kind, bool tied)
{
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:f,s:f}", "model_type", kinds[kind], "vocab_size", 101,
                          "hidden_size", 36, "intermediate_size", 50, "num_hidden_layers", 3, "num_attention_heads", 4,
                          "num_key_value_heads", 2, "head_dim", 20, "tie_word_embeddings", tied, "initializer_range",
                          0.2, "rope_theta", 10000.0);
    json_t *linear = json_pack("{s:[s,s,s],s:i,s:i,s:i,s:i,s:i,s:f}", "layer_types", "linear_attention",
                               "full_attention", "linear_attention", "linear_num_key_heads", 2,
                               "linear_num_value_heads", 4, "linear_key_head_dim", 12, "linear_value_head_dim", 8,
                               "linear_conv_kernel_dim", 4, "partial_rotary_factor", 0.5);

    if (kind == WITH_DELTA)
        json_object_update(o, linear);
    json_decref(linear);
    return o;
}

static struct model *kind_model(size_t kind, bool tied, uint64_t seed)
{
    struct err e = ERR_INIT;
    json_t *o = small_config(kind, tied);
    struct model_config c;

    if (model_config_parse(o, &c, &e) < 0)
        fail_msg("%s", e.msg);
    struct model *m = model_init(&c, seed, &e);
    assert_non_null(m);
    assert_int_equal(m->n_params, model_config_params(&c));
    for (int i = 0; i < m->n_tensors; i++) // biases begin at 0, which would hide a missing one
        for (int j = 0; m->tensors[i].is_vector && j < m->tensors[i].cols; j++)
            m->weights[m->tensors[i].offset + (size_t)j] += 0.1f * (float)(j % 7 - 3);
    model_config_free(&c);
    json_decref(o);
    return m;
}

static struct model *small_model(bool tied, uint64_t seed) { return kind_model(0, tied, seed); }

static void random_tokens(int32_t *t, int n, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed, 0);
    for (int i = 0; i < n; i++)
        t[i] = (int32_t)rng_below(&r, 101);
}

static void check_causal(size_t kind)
{
    struct model *m = kind_model(kind, true, 3);
    struct err e = ERR_INIT;
    enum { T = 70, V = 101 };
    int32_t tok[T];
    static float a[T * V], b[T * V], c[T * V];

    random_tokens(tok, T, 9);
    assert_int_equal(model_logits(m, tok, T, a, &e), 0);
    tok[41] = (tok[41] + 1) % V;
    assert_int_equal(model_logits(m, tok, T, b, &e), 0);
    assert_memory_equal(a, b, 41 * V * sizeof *a);
    assert_memory_not_equal(a + 41 * V, b + 41 * V, V * sizeof *a);
    assert_int_equal(model_logits(m, tok, 23, c, &e), 0); // a shorter call sees the same prefix
    assert_memory_equal(b, c, 23 * V * sizeof *a);
    model_free(m);
}

static void test_causal_bits(void **state)
{
    EACH_KIND(k)
        check_causal(k);
}

static void check_packed_is_solo(size_t kind)
{
    struct model *m = kind_model(kind, false, 4);
    struct err e = ERR_INIT;
    enum { T = 150 };
    int32_t tok[T], target[T], cu[] = {0, 1, 34, 35, 99, 150};
    float packed[T], ent[T], solo[T], ent1[T];

    random_tokens(tok, T, 10);
    random_tokens(target, T, 11);
    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = T}, &e), 0);
    assert_int_equal(model_forward(m,
                                   &(struct train_batch){tok, cu, 5, target, .temperature = 0.7f}, packed, ent, &e), 0);
    for (int s = 0; s < 5; s++) {
        int n = cu[s + 1] - cu[s], one[2] = {0, n};
        struct train_batch b = {tok + cu[s], one, 1, target + cu[s], .temperature = 0.7f};
        assert_int_equal(model_forward(m, &b, solo + cu[s], ent1 + cu[s], &e), 0);
    }
    assert_memory_equal(packed, solo, sizeof packed);
    assert_memory_equal(ent, ent1, sizeof ent);
    model_free(m);
}

static void test_packed_is_solo_bits(void **state)
{
    EACH_KIND(k)
        check_packed_is_solo(k);
}

/* The sequences of a batch in another order: each has the bits it had; gradients, which are sums over them, agree to
 * rounding. */
static void check_order(size_t kind)
{
    struct model *m = kind_model(kind, false, 17);
    struct err e = ERR_INIT;
    enum { N = 5, T = 210 };
    int len[N] = {1, 64, 65, 3, 77}, order[N] = {3, 0, 4, 2, 1}, cu[N + 1] = {0}, cu2[N + 1] = {0};
    int32_t tok[T], target[T], tok2[T], target2[T];
    float a[T], b[T], ent[T], ent2[T], d[T];
    float *ref = xcalloc(m->n_params, sizeof *ref);

    random_tokens(tok, T, 18);
    random_tokens(target, T, 19);
    for (int t = 0; t < T; t++)
        d[t] = 0.02f;
    for (int s = 0; s < N; s++)
        cu[s + 1] = cu[s] + len[s];
    for (int s = 0; s < N; s++) {
        int from = cu[order[s]], n = len[order[s]];
        cu2[s + 1] = cu2[s] + n;
        memcpy(tok2 + cu2[s], tok + from, (size_t)n * sizeof *tok);
        memcpy(target2 + cu2[s], target + from, (size_t)n * sizeof *tok);
    }
    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = T}, &e), 0);
    assert_int_equal(model_forward(m, &(struct train_batch){tok, cu, N, target, .temperature = 0.7f}, a, ent, &e), 0);
    assert_int_equal(model_backward(m, d, NULL, &e), 0);
    memcpy(ref, m->grads, m->n_params * sizeof *ref);
    model_zero_grads(m);
    assert_int_equal(model_forward(m,
                                   &(struct train_batch){tok2, cu2, N, target2, .temperature = 0.7f}, b, ent2, &e), 0);
    assert_int_equal(model_backward(m, d, NULL, &e), 0);
    for (int s = 0; s < N; s++) {
        size_t n = (size_t)len[order[s]] * sizeof *a;
        assert_memory_equal(b + cu2[s], a + cu[order[s]], n);
        assert_memory_equal(ent2 + cu2[s], ent + cu[order[s]], n);
    }
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        assert_true(distance(m->grads + t->offset, ref + t->offset, (size_t)t->rows * (size_t)t->cols) < TOLERANCE);
    }
    free(ref);
    model_free(m);
}

static void test_order_does_not_matter(void **state)
{
    EACH_KIND(k)
        check_order(k);
}

/* Two groups that share a prompt, and a stranger between: the same as one at a time, log-probs bit by bit, gradients up
 * to rounding. */
static void check_shared_prompts(size_t kind)
{
    struct model *m = kind_model(kind, false, 14);
    struct err e = ERR_INIT;
    enum { N = 7, T = 7 * 90 };
    int prompt[N] = {40, 40, 40, 0, 61, 61, 61}, len[N] = {70, 55, 41, 30, 80, 90, 75}, cu[N + 1] = {0};
    int32_t tok[T], target[T];
    float packed[T], solo[T], ent[T], d[T], dent[T];

    random_tokens(tok, T, 15);
    random_tokens(target, T, 16);
    for (int s = 0; s < N; s++) {
        cu[s + 1] = cu[s] + len[s];
        int root = s < 3 ? 0 : s < 4 ? 3 : 4;
        memmove(tok + cu[s], tok + cu[root], (size_t)prompt[s] * sizeof *tok);
        for (int i = 0; i < prompt[s] - 1; i++)
            target[cu[s] + i] = -1;
    }
    for (int t = 0; t < T; t++) {
        d[t] = 0.01f * (float)(t % 11) - 0.04f;
        dent[t] = 0.02f * (float)(t % 5) - 0.04f;
    }
    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = T}, &e), 0);
    float *ref = xcalloc(m->n_params, sizeof *ref);
    for (int s = 0; s < N; s++) {
        int one[2] = {0, len[s]};
        struct train_batch b = {tok + cu[s], one, 1, target + cu[s], .temperature = 0.8f};
        assert_int_equal(model_forward(m, &b, solo + cu[s], ent + cu[s], &e), 0);
        assert_int_equal(model_backward(m, d + cu[s], dent + cu[s], &e), 0);
    }
    memcpy(ref, m->grads, m->n_params * sizeof *ref);
    model_zero_grads(m);
    assert_int_equal(model_forward(m,
                                   &(struct train_batch){tok, cu, N, target, .temperature = 0.8f}, packed, ent, &e), 0);
    assert_int_equal(model_backward(m, d, dent, &e), 0);
    assert_memory_equal(packed, solo, (size_t)cu[N] * sizeof *solo);
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        assert_true(distance(m->grads + t->offset, ref + t->offset, (size_t)t->rows * (size_t)t->cols) < TOLERANCE);
    }
    free(ref);
    model_free(m);
}

static void test_shared_prompts(void **state)
{
    EACH_KIND(k)
        check_shared_prompts(k);
}

static void check_threads(size_t kind)
{
    struct model *m = kind_model(kind, true, 5);
    struct err e = ERR_INIT;
    enum { T = 90 };
    int32_t tok[T], target[T], cu[] = {0, 50, 90};
    float logp[T], d[T];

    random_tokens(tok, T, 12);
    random_tokens(target, T, 13);
    for (int t = 0; t < T; t++)
        d[t] = 0.01f * (float)(t % 7) - 0.02f;
    int before = omp_get_max_threads();
    float *first = xcalloc(m->n_params, sizeof *first);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = T}, &e), 0);
        model_zero_grads(m);
        assert_int_equal(model_forward(m,
                                       &(struct train_batch){tok, cu, 2, target, .temperature = 0}, logp, NULL, &e), 0);
        assert_int_equal(model_backward(m, d, NULL, &e), 0);
        if (threads == 1)
            memcpy(first, m->grads, m->n_params * sizeof *first);
        assert_memory_equal(first, m->grads, m->n_params * sizeof *first);
    }
    omp_set_num_threads(before);
    free(first);
    model_free(m);
}

static void test_threads_do_not_matter(void **state)
{
    EACH_KIND(k)
        check_threads(k);
}

static void test_save_load(void **state)
{
    struct model *m = small_model(false, 6);
    struct err e = ERR_INIT;
    char *dir = dir_temp("model", &e);

    m->config.n_eos = 1;
    m->config.eos[0] = 77;
    assert_int_equal(model_save(m, dir, &e), 0);
    struct model *n = model_load(dir, &e);
    assert_non_null(n);
    assert_int_equal(n->n_params, m->n_params);
    assert_memory_equal(n->weights, m->weights, m->n_params * sizeof *m->weights);
    assert_int_equal(n->config.eos[0], 77);
    model_free(n);
    char *generation = path_join(dir, "generation_config.json"); /* damaged: said, not passed over */
    assert_int_equal(file_write(generation, "{\"eos_token_id\": 1, \"eos_token_id\": 2}", 38, &e), 0);
    assert_null(model_load(dir, &e));
    assert_non_null(strstr(e.msg, "generation_config.json"));
    free(generation);
    dir_remove(dir, &e);
    free(dir);
    model_free(m);
}

static int files_of_weights(const char *dir)
{
    struct err e = ERR_INIT;
    char **names;
    size_t n;
    int found = 0;

    assert_int_equal(dir_list(dir, &names, &n, &e), 0);
    for (size_t i = 0; i < n; i++)
        found += strstr(names[i], ".safetensors") && !strstr(names[i], ".json");
    names_free(names, n);
    return found;
}

static void check_reload(const struct model *m, const char *dir, float rounding)
{
    struct err e = ERR_INIT;
    struct model *n = model_load(dir, &e);

    if (!n)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < m->n_params; i++)
        if (!(fabsf(n->weights[i] - m->weights[i]) <= rounding * fabsf(m->weights[i])))
            fail_msg("weight %zu is %g, was %g", i, (double)n->weights[i], (double)m->weights[i]);
    assert_string_equal(n->config.prefix, m->config.prefix);
    model_free(n);
}

/* In a folder of bf16 a delta layer's rates and norm are fp32, as published ones have them; the rest is not. */
static void check_dtypes(const char *dir)
{
    struct err e = ERR_INIT;
    struct safetensors *s = st_open(dir, &e);

    assert_non_null(s);
    for (size_t i = 0; i < st_count(s); i++) {
        const struct st_tensor *t = st_at(s, i);
        bool wide = strstr(t->name, "linear_attn.A_log") || strstr(t->name, "linear_attn.norm");
        assert_int_equal(t->dtype, wide ? ST_F32 : ST_BF16);
    }
    st_close(s);
}

/* Shards of 20 kB, then one file in the same folder, then bf16: the same weights, and nothing of the former files. */
static void check_shards(size_t kind)
{
    struct model *m = kind_model(kind, true, 21);
    struct err e = ERR_INIT;
    char *dir = dir_temp("model", &e), *again = dir_temp("model", &e);
    struct model_save_options small = {.shard_bytes = 20000}, half = {.dtype = "bf16", .shard_bytes = 30000},
                              same = {.dtype = "same"}, odd = {.dtype = "int3"};

    strcpy(m->config.prefix, kind == WITH_DELTA ? "model.language_model." : "model.");
    for (int i = 0; kind == WITH_DELTA && i < m->n_tensors; i++) { // as a checkpoint with vision names them
        char *name = m->tensors[i].name;
        m->tensors[i].name = xasprintf("model.language_model.%s", name + strlen("model."));
        free(name);
    }
    assert_int_equal(model_save_as(m, dir, &small, &e), 0);
    assert_true(files_of_weights(dir) > 3);
    check_reload(m, dir, 0);
    assert_int_equal(model_save_as(m, dir, &half, &e), 0);
    check_reload(m, dir, 1.0f / 256);
    check_dtypes(dir);
    struct model *b = model_load(dir, &e);
    assert_non_null(b);
    assert_string_equal(b->tensors[0].dtype, "BF16");
    assert_int_equal(model_save_as(b, again, &same, &e), 0);
    check_reload(b, again, 0);
    check_dtypes(again);
    model_free(b);
    assert_int_equal(model_save(m, dir, &e), 0);
    assert_int_equal(files_of_weights(dir), 1);
    check_reload(m, dir, 0);
    assert_int_equal(model_save_as(m, dir, &odd, &e), -1);
    assert_non_null(strstr(e.msg, "int3"));
    dir_remove(dir, &e), dir_remove(again, &e);
    free(dir), free(again);
    model_free(m);
}

static void test_shards(void **state)
{
    EACH_KIND(k)
        check_shards(k);
}

/* Tensors that the engine does not use survive a load and a save in another folder, byte for byte. */
static void test_carries_unknown_tensors(void **state)
{
    struct model *m = small_model(true, 6);
    struct err e = ERR_INIT;
    char *a = dir_temp("model", &e), *b = dir_temp("model", &e), *file = path_join(a, "model.safetensors");
    struct st_writer *w;
    int64_t three = 3, shape[2];
    uint16_t extra[3] = {1, 2, 65535};

    assert_int_equal(model_save(m, a, &e), 0);
    w = st_create(file, &e);
    assert_non_null(w);
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        shape[0] = t->is_vector ? t->cols : t->rows;
        shape[1] = t->cols;
        assert_int_equal(st_declare(w, t->name, ST_F32, t->is_vector ? 1 : 2, shape, &e), 0);
    }
    assert_int_equal(st_declare(w, "mtp.odd", ST_BF16, 1, &three, &e), 0);
    assert_int_equal(st_write(w, m->weights, m->n_params * sizeof *m->weights, &e), 0);
    assert_int_equal(st_write(w, extra, sizeof extra, &e), 0);
    assert_int_equal(st_commit(w, &e), 0);
    struct model *n = model_load(a, &e);
    assert_non_null(n);
    n->weights[5] = 42;
    assert_int_equal(model_save(n, b, &e), 0);
    struct safetensors *s = st_open(b, &e);
    assert_non_null(s);
    assert_memory_equal(st_find(s, "mtp.odd")->data, extra, sizeof extra);
    st_close(s);
    model_free(n);
    model_free(m);
    dir_remove(a, &e);
    dir_remove(b, &e);
    free(a);
    free(b);
    free(file);
}

static void train_steps(struct model *m, struct optim *o, int from, int to)
{
    struct err e = ERR_INIT;
    enum { T = 40 };
    int32_t tok[T], target[T], cu[] = {0, 17, 40};
    float logp[T], d[T];

    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = T}, &e), 0);
    for (int s = from; s < to; s++) {
        random_tokens(tok, T, (uint64_t)s);
        random_tokens(target, T, (uint64_t)s + 1000);
        for (int t = 0; t < T; t++)
            d[t] = -1.0f / T;
        model_zero_grads(m);
        assert_int_equal(model_forward(m,
                                       &(struct train_batch){tok, cu, 2, target, .temperature = 0}, logp, NULL, &e), 0);
        assert_int_equal(model_backward(m, d, NULL, &e), 0);
        grad_clip(m, 0.5);
        assert_int_equal(optim_step(o, m, 1e-3, &e), 0);
    }
}

static void check_resume(size_t kind)
{
    struct adamw_options opts = {.weight_decay = 0.1};
    struct err e = ERR_INIT;
    char *dir = dir_temp("model", &e), *file = path_join(dir, "optim.safetensors");
    struct model *a = kind_model(kind, true, 7), *b = kind_model(kind, true, 7), *c;
    struct optim *oa = optim_new(a, &opts), *ob = optim_new(b, &opts), *oc;

    train_steps(a, oa, 0, 6);
    train_steps(b, ob, 0, 3);
    assert_int_equal(model_save(b, dir, &e), 0);
    assert_int_equal(optim_save(ob, file, &e), 0);
    c = model_load(dir, &e);
    assert_non_null(c);
    oc = optim_new(c, &opts);
    assert_int_equal(optim_load(oc, file, &e), 0);
    assert_int_equal(oc->step, 3);
    train_steps(c, oc, 3, 6);
    assert_memory_equal(a->weights, c->weights, a->n_params * sizeof *a->weights);
    optim_free(oa), optim_free(ob), optim_free(oc);
    model_free(a), model_free(b), model_free(c);
    dir_remove(dir, &e);
    free(dir);
    free(file);
}

static void test_resume_bits(void **state)
{
    EACH_KIND(k)
        check_resume(k);
}

/* ---- bad input ---- */

static void refuse_config(const char *text, const char *word)
{
    struct err e = ERR_INIT;
    struct model_config c;
    json_t *o = json_parse(text, strlen(text), "test", &e);

    assert_non_null(o);
    if (model_config_parse(o, &c, &e) == 0)
        fail_msg("accepted %s", text);
    if (!strstr(e.msg, word))
        fail_msg("'%s' does not name '%s'", e.msg, word);
    json_decref(o);
}

#define SIZES "\"vocab_size\":8,\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1," \
              "\"num_attention_heads\":4"

static void test_bad_config(void **state)
{
    refuse_config("{\"model_type\":\"gpt2\"," SIZES "}", "gpt2");
    refuse_config("{\"model_type\":\"llama\"," SIZES ",\"mlp_bias\":true}", "mlp_bias");
    refuse_config("{\"model_type\":\"llama\"," SIZES ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", "linear");
    refuse_config("{\"model_type\":\"llama\"," SIZES ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}}",
                  "high_freq_factor");
    refuse_config("{\"model_type\":\"qwen3\"}", "vocab_size");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"num_key_value_heads\":3}", "evenly");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"head_dim\":7}", "odd");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"attention_bias\":true}", "attention_bias");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"use_sliding_window\":true}", "sliding");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"rope_parameters\":{\"rope_type\":\"yarn\"}}", "yarn");
    refuse_config("{\"model_type\":\"qwen3\",\"vocab_size\":-1}", "vocab_size");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"eos_token_id\":[3,4294967301]}", "eos_token_id");
    refuse_config("{\"model_type\":\"qwen3\"," SIZES ",\"max_position_embeddings\":4294967301}", "max_position");
}

static void test_bad_batches(void **state)
{
    struct model *m = small_model(true, 8);
    struct err e = ERR_INIT;
    int32_t tok[8] = {1, 2, 3, 4, 5, 6, 7, 100}, target[8] = {1, -1, -1, -1, -1, -1, -1, -1}, cu[] = {0, 8},
        bad[] = {0, 5, 5};
    float logp[16];
    struct train_batch b = {tok, cu, 1, target, .temperature = 0};

    assert_int_equal(model_forward(m, &b, logp, NULL, &e), -1); // no plan
    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = 8, .max_targets = 1}, &e), 0);
    assert_int_equal(model_forward(m, &b, logp, NULL, &e), 0);
    assert_int_equal(model_backward(m, logp, NULL, &e), 0);
    assert_int_equal(model_backward(m, logp, NULL, &e), -1); // used up
    target[1] = 3;
    assert_int_equal(model_forward(m, &b, logp, NULL, &e), -1);
    assert_non_null(strstr(e.msg, "2 targets"));
    target[1] = -1;
    tok[3] = 101;
    assert_int_equal(model_forward(m, &b, logp, NULL, &e), -1);
    assert_non_null(strstr(e.msg, "101"));
    tok[3] = 1;
    b.cu_seqlens = bad;
    b.n_seq = 2;
    assert_int_equal(model_forward(m, &b, logp, NULL, &e), -1);
    assert_int_equal(model_train_begin(m, &(struct train_limits){.max_tokens = 100000, .max_bytes = 1 << 20}, &e), -1);
    assert_non_null(strstr(e.msg, "MB"));
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_golden_live),
        cmocka_unit_test(test_causal_bits),   cmocka_unit_test(test_packed_is_solo_bits),
        cmocka_unit_test(test_order_does_not_matter), cmocka_unit_test(test_shared_prompts),
        cmocka_unit_test(test_threads_do_not_matter), cmocka_unit_test(test_save_load),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_carries_unknown_tensors), cmocka_unit_test(test_resume_bits),
        cmocka_unit_test(test_bad_config),    cmocka_unit_test(test_bad_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
