/* test_kept.c - top-p with its kept sets: what the sampler keeps and says, and what training makes of it, against
 * computations of this file's own in double from plain logits. On the host and on the emulator, or $NN_TEST_DEVICE. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/model.h"
#include "nn/sampler.h"

enum { V = 101, P = 5, N = 14, S = 3 };
#define TEMPERATURE 0.8f
#define TOP_P 0.6f

static struct model *make_model(void)
{
    struct err e = ERR_INIT;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:f}", "model_type", "qwen3", "vocab_size", V,
                          "hidden_size", 32, "intermediate_size", 64, "num_hidden_layers", 2, "num_attention_heads", 2,
                          "num_key_value_heads", 1, "head_dim", 16, "tie_word_embeddings", 1, "initializer_range", 0.3);
    struct model_config c;
    struct model *m;

    if (model_config_parse(o, &c, &e) < 0 || !(m = model_init(&c, 7, &e)))
        fail_msg("%s", e.msg);
    model_config_free(&c);
    json_decref(o);
    m->n_ids = V - 4; // the last rows are padding
    return m;
}

/* Samples of one prompt as a batch of training: targets behind the prompt, with their kept sets. */
struct data {
    int32_t prompt[P], tokens[S * (P + N)], targets[S * (P + N)], cu[S + 1];
    const int32_t *kept[S * (P + N)];
    int n_kept[S * (P + N)];
    float weight[S * (P + N)], coef[S * (P + N)];
    struct sample *s;
    size_t n;
};

static void draw(struct model *m, struct data *d)
{
    struct sampler_options o = {.temperature = TEMPERATURE, .top_p = TOP_P, .keep = true, .max_new = N, .n_stop = 1};
    struct sample_request q = {.prompt = d->prompt, .n_prompt = P, .n_samples = S, .seed = 3};
    int32_t never = V - 1;
    struct err e = ERR_INIT;
    struct rng r;

    for (int i = 0; i < P; i++)
        d->prompt[i] = 7 * i + 3;
    o.stop_ids = &never;
    assert_int_equal(sampler_run(m, &o, &q, 1, &d->s, &d->n, &e), 0);
    assert_int_equal(d->n, S);
    rng_seed(&r, 5, 0);
    for (int k = 0; k < S; k++) {
        int at = d->cu[k] = k * (P + N);
        assert_int_equal(d->s[k].n, N);
        memcpy(d->tokens + at, d->prompt, sizeof d->prompt);
        memcpy(d->tokens + at + P, d->s[k].tokens, N * sizeof(int32_t));
        for (int t = 0; t < P + N; t++) {
            int i = t - (P - 1), from = i > 0 ? d->s[k].kept_to[i - 1] : 0;
            bool has = i >= 0 && i < N;
            d->targets[at + t] = has ? d->s[k].tokens[i] : -1;
            d->kept[at + t] = has ? d->s[k].kept + from : NULL;
            d->n_kept[at + t] = has ? d->s[k].kept_to[i] - from : 0;
            d->weight[at + t] = (float)rng_normal(&r);
            d->coef[at + t] = (float)rng_normal(&r) / 3;
        }
    }
    d->cu[S] = S * (P + N);
}

static bool holds(const int32_t *set, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (set[i] == id)
            return true;
    return false;
}

/* log of the softmax over a set, in double; *ret_entropy of it. */
static double own_logp(const float *z, const int32_t *set, int n, int id, double *ret_entropy)
{
    double top = -INFINITY, sum = 0, mean = 0;

    for (int i = 0; i < n; i++)
        top = fmax(top, (double)z[set[i]] / (double)TEMPERATURE);
    for (int i = 0; i < n; i++) {
        double x = (double)z[set[i]] / (double)TEMPERATURE - top;
        sum += exp(x);
        mean += exp(x) * x;
    }
    *ret_entropy = log(sum) - mean / sum;
    return (double)z[id] / (double)TEMPERATURE - top - log(sum);
}

/* The likeliest ids, as many as it takes: without its least likely one the set falls short of top-p. */
static void check_set(const float *z, const int32_t *set, int n)
{
    double top = -INFINITY, all = 0, kept = 0, least = INFINITY;

    for (int v = 0; v < V - 4; v++)
        top = fmax(top, z[v]);
    for (int v = 0; v < V - 4; v++) {
        double p = exp((z[v] - top) / (double)TEMPERATURE);
        all += p;
        if (holds(set, n, v)) {
            kept += p;
            least = fmin(least, p);
        }
    }
    assert_true(kept >= (double)TOP_P * all * (1 - 1e-4));
    assert_true(kept - least <= (double)TOP_P * all * (1 + 1e-4));
    for (int v = 0; v < V - 4; v++)
        if (!holds(set, n, v))
            assert_true(exp((z[v] - top) / (double)TEMPERATURE) <= least * (1 + 1e-4));
}

/* The loss of the batch, sum of weight * logp + coef * entropy, by this file's own arithmetic. */
static double own_loss(struct model *m, const struct data *d, float *logp, float *entropy)
{
    static float z[(P + N) * V];
    struct err e = ERR_INIT;
    double loss = 0, h;

    for (int k = 0; k < S; k++) {
        assert_int_equal(model_logits(m, d->tokens + d->cu[k], P + N, z, &e), 0);
        for (int t = P - 1; t < P + N - 1; t++) {
            int at = d->cu[k] + t;
            double l = own_logp(z + t * V, d->kept[at], d->n_kept[at], d->targets[at], &h);
            loss += (double)d->weight[at] * l + (double)d->coef[at] * h;
            if (logp) {
                check_set(z + t * V, d->kept[at], d->n_kept[at]);
                logp[at] = (float)l, entropy[at] = (float)h;
            }
        }
    }
    return loss;
}

static void check_sampler(struct model *host, const struct data *d, const float *logp)
{
    int more = 0;

    for (int k = 0; k < S; k++)
        for (int i = 0; i < N; i++) {
            int at = d->cu[k] + P - 1 + i;
            assert_true(holds(d->kept[at], d->n_kept[at], d->targets[at]));
            assert_true(fabs(d->s[k].logp[i] - logp[at]) < 2e-5);
            more += d->n_kept[at] > 1;
        }
    assert_true(more > N); // sets of one token would say nothing
}

/* Central differences of own_loss along the gradient and along a random direction. */
static void check_gradient(struct model *host, const struct data *d, const float *grad)
{
    size_t n = host->n_params;
    float *dir = xcalloc(n, sizeof *dir), *was = xcalloc(n, sizeof *was);
    struct rng r;

    rng_seed(&r, 11, 0);
    memcpy(was, host->weights, n * sizeof *was);
    for (int kind = 0; kind < 2; kind++) {
        double norm = 0, want = 0, step = 2e-3, loss[2];
        for (size_t i = 0; i < n; i++) {
            dir[i] = kind ? (float)rng_normal(&r) + grad[i] : grad[i];
            norm += (double)dir[i] * dir[i];
        }
        for (size_t i = 0; i < n; i++) {
            dir[i] /= (float)sqrt(norm);
            want += (double)dir[i] * grad[i];
        }
        for (int side = 0; side < 2; side++) {
            for (size_t i = 0; i < n; i++)
                host->weights[i] = was[i] + (float)(side ? step : -step) * dir[i];
            host->version++;
            loss[side] = own_loss(host, d, NULL, NULL);
        }
        if (fabs((loss[1] - loss[0]) / (2 * step) - want) > 5e-3 * fabs(want))
            fail_msg("direction %d: %g, numerically %g", kind, want, (loss[1] - loss[0]) / (2 * step));
    }
    memcpy(host->weights, was, n * sizeof *was);
    host->version++;
    free(dir), free(was);
}

static void check_on(const char *device)
{
    struct model *host = make_model(), *m = make_model();
    struct data d = {.n = 0};
    struct err e = ERR_INIT;
    float want_logp[S * (P + N)] = {0}, want_entropy[S * (P + N)] = {0}, logp[S * (P + N)], entropy[S * (P + N)];
    struct train_batch b = {.tokens = d.tokens, .cu_seqlens = d.cu, .n_seq = S, .targets = d.targets,
                            .temperature = TEMPERATURE, .kept = d.kept, .n_kept = d.n_kept};

    if (model_to_device(m, device, "fp32", &e) < 0 ||
        model_train_begin(m, &(struct train_limits){.max_tokens = S * (P + N)}, &e) < 0)
        fail_msg("%s", e.msg);
    draw(m, &d);
    own_loss(host, &d, want_logp, want_entropy);
    check_sampler(host, &d, want_logp);
    model_zero_grads(m);
    assert_int_equal(model_forward(m, &b, logp, entropy, &e), 0);
    for (int t = 0; t < S * (P + N); t++) {
        assert_true(fabs(logp[t] - want_logp[t]) < 2e-5);
        assert_true(fabs(entropy[t] - want_entropy[t]) < 2e-5);
    }
    assert_int_equal(model_backward(m, d.weight, d.coef, &e), 0);
    assert_int_equal(model_fetch_grads(m, &e), 0);
    check_gradient(host, &d, m->grads);
    samples_free(d.s, d.n);
    model_free(m), model_free(host);
}

static void on_host(void **state)
{
    (void)state;
    check_on("cpu");
}

static void on_device(void **state)
{
    (void)state;
    check_on(getenv("NN_TEST_DEVICE") ? getenv("NN_TEST_DEVICE") : "sim");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_host), cmocka_unit_test(on_device)};

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
