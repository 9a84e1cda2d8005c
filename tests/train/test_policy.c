/* test_policy.c - the policy-gradient step: its loss against a direct computation, its gradient by differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/rng.h"
#include "../lib/tiny.h"
#include "objective/mirrorpop.h"
#include "train/policy.h"

enum { N = 6 };

struct batch {
    int32_t ids[N][20];
    float behav[N][20];
    struct policy_seq seq[N];
};

static struct model *m, *ref;
static struct pack pack;

/* Behaviour log-probs: the model's own, moved by noise of size 'off'. */
static void make_batch(struct batch *b, double off)
{
    struct rng g;
    struct err e = ERR_INIT;

    rng_seed(&g, 3, 0);
    for (int i = 0; i < N; i++) {
        int np = 3 + i, n = 4 + 2 * (i % 3);

        for (int t = 0; t < np + n; t++)
            b->ids[i][t] = (int32_t)rng_below(&g, 250);
        b->seq[i] = (struct policy_seq){b->ids[i], np, n, b->behav[i], .adv = i == 2 ? 0 : rng_normal(&g)};
        pack_clear(&pack);
        pack_add(&pack, &(struct pack_seq){b->ids[i], np + n, np, .to = np + n}, 0);
        struct train_batch tb = pack_batch(&pack, 0.9);
        tiny_must(model_forward(m, &tb, pack.logp, pack.entropy, &e), &e);
        for (int t = 0; t < n; t++)
            b->behav[i][t] = pack.logp[np - 1 + t] + (float)(off * (2 * rng_f64(&g) - 1));
    }
}

static struct policy_options base(void)
{
    return (struct policy_options){.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .norm = 8, .kl = KL_NONE,
                                   .mirrorpop = false, .delta = 0.02, .temperature = 0.9};
}

static struct policy_stats run(struct batch *b, const struct policy_options *o)
{
    struct policy_stats st;
    struct err e = ERR_INIT;

    model_zero_grads(m);
    tiny_must(policy_gradient(m, ref, &pack, b->seq, N, o, &st, &e), &e);
    return st;
}

/* Loss along the normalised gradient direction, central difference, against |grad|. */
static void check_gradient(struct batch *b, const struct policy_options *o)
{
    float *w = xmalloc(m->n_params * sizeof *w), *g = xmalloc(m->n_params * sizeof *g);
    double norm = 0, h = 2e-4, up, down;

    run(b, o);
    memcpy(w, m->weights, m->n_params * sizeof *w);
    memcpy(g, m->grads, m->n_params * sizeof *g);
    for (size_t i = 0; i < m->n_params; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    assert_true(norm > 1e-4);
    for (size_t i = 0; i < m->n_params; i++)
        m->weights[i] = (float)(w[i] + h * g[i] / norm);
    m->version++;
    up = run(b, o).loss;
    for (size_t i = 0; i < m->n_params; i++)
        m->weights[i] = (float)(w[i] - h * g[i] / norm);
    m->version++;
    down = run(b, o).loss;
    memcpy(m->weights, w, m->n_params * sizeof *w);
    m->version++;
    if (fabs((up - down) / (2 * h) - norm) > 0.02 * norm)
        fail_msg("slope %g, gradient norm %g", (up - down) / (2 * h), norm);
    free(w);
    free(g);
}

static void gradients(void **state)
{
    (void)state;
    struct batch b;
    struct policy_options o = base();

    make_batch(&b, 0.1);
    check_gradient(&b, &o);
    for (int k = AGG_TOKEN_MEAN; k <= AGG_SEQ_MEAN_TOKEN_SUM_NORM; k++) {
        o.aggregate = k;
        check_gradient(&b, &o);
    }
    o.entropy_coef = 0.1;
    check_gradient(&b, &o);
    o.entropy_coef = 0;
    o.kl = KL_K3;
    o.kl_coef = 0.3;
    check_gradient(&b, &o);
    o.kl = KL_NONE;
    for (const struct loss_term *const *t = loss_terms_known; *t; t++) {
        o.terms = (struct loss_terms){.term = {*t}, .weight = {0.5}, .n = 1};
        check_gradient(&b, &o);
    }
}

static struct loss_value term_constant(const struct loss_token *t)
{
    return (struct loss_value){-t->logp, -1};
}

/* A further term reaches sequences whose advantage is 0. */
static void terms_reach_advantage_zero(void **state)
{
    static const struct loss_term term = {"constant", term_constant};
    (void)state;
    struct batch b;
    struct policy_options o = base();

    make_batch(&b, 0);
    for (int i = 0; i < N; i++)
        b.seq[i].adv = 0;
    assert_true(run(&b, &o).loss == 0);
    o.terms = (struct loss_terms){.term = {&term}, .weight = {0.5}, .n = 1};
    assert_true(run(&b, &o).loss > 0);
    check_gradient(&b, &o);
}

/* On policy the loss is -mean of w A, and the packing does not matter. */
static void on_policy_loss(void **state)
{
    (void)state;
    struct batch b;
    struct policy_options o = base();
    double tokens = 0, want = 0;
    struct pack small = pack;
    struct policy_stats st;

    make_batch(&b, 0);
    for (int i = 0; i < N; i++)
        tokens += b.seq[i].n;
    for (int i = 0; i < N; i++)
        want -= b.seq[i].adv * b.seq[i].n / tokens; // the sequence with advantage 0 still counts below
    st = run(&b, &o);
    assert_true(fabs(st.loss - want) < 1e-5);
    assert_true(st.n_seqs == N - 1 && st.clip_share == 0 && st.mirror < 1e-5 && st.masked_share == 0);
    float *g = xmalloc(m->n_params * sizeof *g);
    memcpy(g, m->grads, m->n_params * sizeof *g);
    pack_init(&small, 20); // one sequence at a time
    struct pack whole = pack;
    pack = small;
    st = run(&b, &o);
    pack = whole;
    pack_free(&small);
    assert_true(fabs(st.loss - want) < 1e-5);
    for (size_t i = 0; i < m->n_params; i++)
        assert_true(fabsf(g[i] - m->grads[i]) < 1e-5f + 1e-4f * fabsf(g[i]));
    free(g);
}

static void mask(void **state)
{
    (void)state;
    struct batch b;
    struct policy_options o = base();
    struct policy_stats st;
    double tokens = 0, left = 0, want = 0, want_after = 0, all[2] = {0}, dropped[2] = {0};
    bool keep[N];
    struct offpolicy off;
    struct err e = ERR_INIT;

    make_batch(&b, 0);
    for (int i = 0; i < N; i++)
        for (int t = 0; t < b.seq[i].n && i % 2; t++)
            b.behav[i][t] -= t % 2 ? 0.1f : -0.1f; // odd sequences drift both ways: signed mean about 0
    for (int i = 0; i < N; i++) {
        float own[20];

        pack_clear(&pack);
        pack_add(&pack, &(struct pack_seq){b.ids[i], b.seq[i].n_prompt + b.seq[i].n, b.seq[i].n_prompt,
                                           .to = b.seq[i].n_prompt + b.seq[i].n}, 0);
        struct train_batch tb = pack_batch(&pack, 0.9);
        tiny_must(model_forward(m, &tb, pack.logp, NULL, &e), &e);
        memcpy(own, pack.logp + b.seq[i].n_prompt - 1, sizeof(float) * (size_t)b.seq[i].n);
        tiny_must(offpolicy_measure(own, b.behav[i], (size_t)b.seq[i].n, &off, &e), &e);
        keep[i] = mirrorpop_keep(&off, o.delta);
        assert_int_equal(keep[i], i % 2 == 0);
        tokens += b.seq[i].n;
        left += keep[i] && b.seq[i].adv != 0 ? b.seq[i].n : 0;
    }
    left += b.seq[2].n; // advantage 0, never looked at, never masked
    for (int i = 0; i < N; i++)
        if (keep[i]) {
            want -= b.seq[i].adv * b.seq[i].n / tokens;
            want_after -= b.seq[i].adv * b.seq[i].n / left;
        }
    o.mirrorpop = true;
    st = run(&b, &o);
    assert_true(fabs(st.loss - want) < 1e-5 && fabs(st.masked_share - 3.0 / 5) < 1e-9);
    assert_true(st.signed_mean < 0.01 && st.mirror > 0.05);
    for (int i = 0; i < N; i++)
        if (b.seq[i].adv != 0)
            all[b.seq[i].adv > 0]++, dropped[b.seq[i].adv > 0] += !keep[i];
    assert_true(st.of_sign[0] == all[0] && st.of_sign[1] == all[1] && all[0] && all[1]);
    assert_true(st.masked[0] == dropped[0] && st.masked[1] == dropped[1] && dropped[0] + dropped[1] == 3);
    o.after_mask = true;
    st = run(&b, &o);
    assert_true(fabs(st.loss - want_after) < 1e-5);
}

static void bad_log_probs(void **state)
{
    (void)state;
    struct batch b;
    struct policy_options o = base();
    struct policy_stats st;
    struct err e = ERR_INIT;

    make_batch(&b, 0);
    b.behav[1][0] = NAN;
    model_zero_grads(m);
    assert_int_equal(policy_gradient(m, NULL, &pack, b.seq, N, &o, &st, &e), -1);
    assert_non_null(strstr(e.msg, "sequence 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients), cmocka_unit_test(terms_reach_advantage_zero),
                                       cmocka_unit_test(on_policy_loss),
                                       cmocka_unit_test(mask), cmocka_unit_test(bad_log_probs)};
    struct train_limits lim = {.max_tokens = 256};
    struct err e = ERR_INIT;
    char *init;
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    init = tiny_path("init");
    m = model_load(init, &e);
    ref = m ? model_load(init, &e) : NULL;
    tiny_must(m && ref ? 0 : -1, &e);
    for (size_t i = 0; i < m->n_params; i++)
        m->weights[i] *= m->tensors[0].is_vector ? 1 : 3; // away from the uniform policy
    m->version++;
    tiny_must(model_train_begin(m, &lim, &e), &e);
    tiny_must(model_train_begin(ref, &lim, &e), &e);
    pack_init(&pack, 60);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    pack_free(&pack);
    model_free(m);
    model_free(ref);
    free(init);
    tiny_remove();
    return rc;
}
