/* test_policy_dev.c - optimiser steps of RL on a device against the host's: the same sequences, advantages and
 * log-probs of sampling must move both policies alike. fp32 on the CPU emulator, or on $NN_TEST_DEVICE ("cuda"). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "nn/optim.h"
#include "../lib/tiny.h"
#include "train/policy.h"

enum { N = 6, LONGEST = 24, UPDATES = 3 };

struct side {
    struct model *m;
    struct optim *opt;
    struct pack pack;
    float logp[N][LONGEST];
    double norm[UPDATES], mirror[UPDATES], loss[UPDATES];
};

static int32_t ids[N][LONGEST];
static float behav[N][LONGEST];
static struct policy_seq seqs[N];

static void open_side(struct side *s, const char *device)
{
    struct adamw_options ao = {.beta2 = 0.99, .weight_decay = 0.1};
    struct train_limits lim = {.max_tokens = 64};
    char *init = tiny_path("init");
    struct err e = ERR_INIT;

    tiny_must((s->m = model_load(init, &e)) ? 0 : -1, &e);
    tiny_must(model_to_device(s->m, device, "fp32", &e), &e);
    tiny_must(model_train_begin(s->m, &lim, &e), &e);
    s->opt = optim_new(s->m, &ao);
    pack_init(&s->pack, 64);
    free(init);
}

static void close_side(struct side *s)
{
    optim_free(s->opt);
    model_free(s->m);
    pack_free(&s->pack);
}

static void score(struct side *s)
{
    struct policy_mismatch mis;
    struct err e = ERR_INIT;
    float *rows[N];

    for (int i = 0; i < N; i++)
        rows[i] = s->logp[i];
    tiny_must(policy_logprobs(s->m, &s->pack, seqs, N, 0.9, rows, &mis, &e), &e);
}

static void learn(struct side *s)
{
    struct policy_options o = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .norm = 8, .kl = KL_NONE,
                               .mirrorpop = true, .delta = 0.2, .temperature = 0.9};
    struct policy_stats st;
    struct err e = ERR_INIT;

    for (int u = 0; u < UPDATES; u++) {
        model_zero_grads(s->m);
        tiny_must(policy_gradient(s->m, NULL, &s->pack, seqs, N, &o, &st, &e), &e);
        s->norm[u] = grad_clip(s->m, 0.5);
        tiny_must(optim_step(s->opt, s->m, 1e-3, &e), &e);
        s->mirror[u] = st.mirror;
        s->loss[u] = st.loss;
    }
}

static void same_moves(void **state)
{
    (void)state;
    const char *device = getenv("NN_TEST_DEVICE");
    struct side host, dev;
    struct rng r;
    double apart = 0, moved = 0;

    rng_seed(&r, 3, 0);
    for (int i = 0; i < N; i++) {
        for (int t = 0; t < LONGEST; t++)
            ids[i][t] = (int32_t)rng_below(&r, 250);
        seqs[i] = (struct policy_seq){ids[i], 3 + i, 6 + 2 * (i % 3), behav[i], .adv = i == 2 ? 0 : rng_normal(&r)};
    }
    open_side(&host, "cpu");
    open_side(&dev, device ? device : "sim");
    score(&host);
    memcpy(behav, host.logp, sizeof behav); // both start on policy
    learn(&host);
    learn(&dev);
    score(&host);
    score(&dev);
    for (int u = 0; u < UPDATES; u++) {
        assert_true(host.norm[u] > 0.01 && fabs(host.norm[u] - dev.norm[u]) < 1e-4 * host.norm[u]);
        assert_true(fabs(host.mirror[u] - dev.mirror[u]) < 1e-4 && fabs(host.loss[u] - dev.loss[u]) < 1e-4);
    }
    for (int i = 0; i < N; i++)
        for (int t = 0; t < seqs[i].n; t++) {
            moved = fmax(moved, fabs(host.logp[i][t] - behav[i][t]));
            apart = fmax(apart, fabs(host.logp[i][t] - dev.logp[i][t]));
        }
    if (moved < 0.01 || apart > 0.01 * moved)
        fail_msg("three steps moved log-probs by %g on the host, and %g apart", moved, apart);
    close_side(&host);
    close_side(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_moves)};
    int rc;

    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}
