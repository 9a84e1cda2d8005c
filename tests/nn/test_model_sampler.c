/* test_model_sampler.c - decoding with a KV cache against full forward passes; independence of samples from the batch;
 * the distribution of temperature, top-k and top-p against their definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "nn/choose.h"
#include "nn/sampler.h"

#define V 101

static struct model *small_model(int dim, uint64_t seed)
{
    struct err e = ERR_INIT;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:f,s:f}", "model_type", "qwen3", "vocab_size", V,
                          "hidden_size", 36, "intermediate_size", 50, "num_hidden_layers", 3, "num_attention_heads", 4,
                          "num_key_value_heads", 2, "head_dim", dim, "tie_word_embeddings", true,
                          "initializer_range", 0.3, "rope_theta", 10000.0);
    struct model_config c;

    assert_int_equal(model_config_parse(o, &c, &e), 0);
    struct model *m = model_init(&c, seed, &e);
    assert_non_null(m);
    model_config_free(&c);
    json_decref(o);
    return m;
}

static void fill_tokens(int32_t *t, int n, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed, 0);
    for (int i = 0; i < n; i++)
        t[i] = (int32_t)rng_below(&r, V);
}

static struct sample *draw(struct model *m, struct sampler_options o, const struct sample_request *q, int n,
                           size_t *ret_n)
{
    struct err e = ERR_INIT;
    struct sample *s = NULL;

    if (sampler_run(m, &o, q, n, &s, ret_n, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static double row_logp(const float *z, float temperature, int32_t token)
{
    double top = -INFINITY, sum = 0, t = temperature > 0 ? temperature : 1;

    for (int i = 0; i < V; i++)
        top = z[i] / t > top ? z[i] / t : top;
    for (int i = 0; i < V; i++)
        sum += exp(z[i] / t - top);
    return z[token] / t - top - log(sum);
}

/* Every token of a sample: log-prob (and, if greedy, choice) as a full forward pass over prompt + sample gives it. */
static void check_sample(struct model *m, const struct sample_request *q, const struct sample *s, float temperature)
{
    struct err e = ERR_INIT;
    int n = q->n_prompt + s->n;
    int32_t *tok = xmalloc((size_t)n * sizeof *tok);
    float *z = xmalloc((size_t)n * V * sizeof *z);

    memcpy(tok, q->prompt, (size_t)q->n_prompt * sizeof *tok);
    memcpy(tok + q->n_prompt, s->tokens, (size_t)s->n * sizeof *tok);
    assert_int_equal(model_logits(m, tok, n, z, &e), 0);
    for (int i = 0; i < s->n; i++) {
        const float *row = z + (size_t)(q->n_prompt + i - 1) * V;
        assert_true(fabs(row_logp(row, temperature, s->tokens[i]) - s->logp[i]) < 1e-4);
        for (int j = 0; temperature == 0 && j < V; j++)
            assert_true(row[j] <= row[s->tokens[i]] + 1e-4f);
    }
    free(tok);
    free(z);
}

static void test_cache_is_full_forward(void **state)
{
    static const int dims[] = {20, 32, 64};
    int32_t prompt[3][80];
    int lengths[3] = {1, 33, 80};

    for (int d = 0; d < 3; d++)
        for (int hot = 0; hot < 2; hot++) {
            struct model *m = small_model(dims[d], (uint64_t)d + 1);
            struct sample_request q[3];
            size_t n;
            for (int i = 0; i < 3; i++) {
                fill_tokens(prompt[i], lengths[i], (uint64_t)(10 * d + i));
                q[i] = (struct sample_request){prompt[i], lengths[i], 3, 0, (uint64_t)i, NULL, NULL};
            }
            struct sampler_options o = {.temperature = hot ? 0.8f : 0, .max_new = 70, .max_batch = 4};
            struct sample *s = draw(m, o, q, 3, &n);
            assert_int_equal(n, 9);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(s[i].request, i / 3);
                assert_int_equal(s[i].index, i % 3);
                assert_int_equal(s[i].n, 70);
                assert_int_equal(s[i].finish, FINISH_LENGTH);
                check_sample(m, &q[s[i].request], &s[i], o.temperature);
            }
            if (hot) // samples of one request differ
                assert_memory_not_equal(s[3].tokens, s[4].tokens, 70 * sizeof(int32_t));
            samples_free(s, n);
            model_free(m);
        }
}

/* Stop tokens make rows end at different times, so rows are replaced all the time; nobody's sample may notice. */
static void test_batch_does_not_matter(void **state)
{
    struct model *m = small_model(32, 5);
    int32_t prompt[12][50], stop[] = {1, 2, 3, 4, 5, 6};
    struct sample_request q[12];
    struct sampler_options o = {.temperature = 1.2f, .top_p = 0.97f, .max_new = 60, .stop_ids = stop, .n_stop = 6};
    size_t n, one;
    int stopped = 0, k = 0;

    for (int i = 0; i < 12; i++) {
        fill_tokens(prompt[i], 50, (uint64_t)i + 50);
        q[i] = (struct sample_request){prompt[i], 1 + 4 * i, 1 + i % 5, 0, (uint64_t)i * 7, NULL, NULL};
    }
    o.max_batch = 64;
    struct sample *all = draw(m, o, q, 12, &n);
    for (int batch = 1; batch <= 7; batch += 3) {
        o.max_batch = batch;
        struct sample *s = draw(m, o, q, 12, &one);
        assert_int_equal(one, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(s[i].n, all[i].n);
            assert_memory_equal(s[i].tokens, all[i].tokens, (size_t)s[i].n * sizeof(int32_t));
            assert_memory_equal(s[i].logp, all[i].logp, (size_t)s[i].n * sizeof(float));
        }
        samples_free(s, one);
    }
    for (int i = 0; i < 12; i++) { // each request alone
        struct sample *s = draw(m, o, &q[i], 1, &one);
        for (size_t j = 0; j < one; j++, k++) {
            assert_int_equal(s[j].n, all[k].n);
            assert_memory_equal(s[j].logp, all[k].logp, (size_t)s[j].n * sizeof(float));
        }
        samples_free(s, one);
    }
    for (size_t i = 0; i < n; i++) {
        bool stop_last = all[i].tokens[all[i].n - 1] >= 1 && all[i].tokens[all[i].n - 1] <= 6;
        assert_int_equal(all[i].finish == FINISH_STOP, stop_last);
        stopped += stop_last;
        for (int t = 0; t + 1 < all[i].n; t++)
            assert_false(all[i].tokens[t] >= 1 && all[i].tokens[t] <= 6);
    }
    assert_in_range(stopped, 3, n);
    samples_free(all, n);
    model_free(m);
}

/* Frequencies of 200,000 draws against probabilities computed from the definition in double. */
static void test_distribution(void **state)
{
    enum { N = 200000 };
    const struct choice_rule rules[] = {{1, 1, 0, 0},    {0.7f, 1, 0, 0},       {1.3f, 0.8f, 0, 0}, {1, 1, 5, 0},
                                       {1, 1, 0, 64}, {0.9f, 0.95f, 12, 0}, {1.1f, 0.9f, 0, 50}};
    float z[V], scratch[V], logp;
    struct choice_candidate cand[V];
    struct rng r;

    rng_seed(&r, 3, 0);
    for (int i = 0; i < V; i++)
        z[i] = (float)(2 * rng_normal(&r));
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
        double p[V], sum = 0, can = 0, mass = 0;
        int count[V] = {0}, order[V];
        for (int i = 0; i < V; i++)
            sum += p[i] = exp((double)z[i] / rules[k].temperature);
        int ids = rules[k].ids ? rules[k].ids : V; // what lies beyond has a probability and is never drawn
        for (int i = 0; i < ids; i++)
            can += p[i];
        for (int i = 0; i < ids; i++) { // insertion sort by probability
            int j = i;
            for (; j > 0 && p[order[j - 1]] < p[i]; j--)
                order[j] = order[j - 1];
            order[j] = i;
        }
        int kept = 0;
        while (kept < (rules[k].top_k ? rules[k].top_k : ids) && mass < (double)rules[k].top_p * can * (1 - 1e-12))
            mass += p[order[kept++]];
        for (int i = 0; i < N; i++) {
            int32_t id = choose_token(cpu_ops(), V, z, &rules[k], &r, scratch, cand, NULL, &logp);
            count[id]++;
            assert_true(fabs(logp - log(p[id] / sum)) < 1e-5);
        }
        for (int i = ids; i < V; i++)
            assert_int_equal(count[i], 0);
        for (int i = 0; i < ids; i++) {
            double want = i < kept ? p[order[i]] / mass : 0, sd = sqrt(want * (1 - want) / N);
            assert_true(fabs(count[order[i]] / (double)N - want) <= 5 * sd);
        }
    }
}

static void test_bad_requests(void **state)
{
    struct model *m = small_model(32, 6);
    struct err e = ERR_INIT;
    struct sample *s = NULL;
    size_t n;
    int32_t prompt[] = {1, 2, 500};
    struct sample_request q = {.prompt = prompt, .n_samples = 1};
    struct sampler_options o = {.temperature = 1, .max_new = 4};

    assert_int_equal(sampler_run(m, &o, &q, 1, &s, &n, &e), -1);
    q.n_prompt = 3;
    assert_int_equal(sampler_run(m, &o, &q, 1, &s, &n, &e), -1);
    assert_non_null(strstr(e.msg, "500"));
    q.n_prompt = 2;
    o.max_new = 0;
    assert_int_equal(sampler_run(m, &o, &q, 1, &s, &n, &e), -1);
    o.max_new = 4;
    o.top_p = 1.5f;
    assert_int_equal(sampler_run(m, &o, &q, 1, &s, &n, &e), -1);
    o.top_p = 0;
    assert_int_equal(sampler_run(m, &o, &q, 0, &s, &n, &e), 0);
    assert_int_equal(n, 0);
    samples_free(s, n);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_is_full_forward), cmocka_unit_test(test_batch_does_not_matter),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
