/* test_aggregate.c - sequence weights against the loss computed token by token. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/aggregate.h"

#define N 7

/* The aggregated loss by literal averaging over a padded N x 20 table. */
static double literal(int kind, bool after, double norm, double l[N][20], const size_t *len, const bool *keep)
{
    double total = 0, tokens = 0, seqs = 0;

    for (int i = 0; i < N; i++) {
        double row = 0;

        if (len[i] && (keep[i] || !after))
            seqs++;
        for (size_t t = 0; t < len[i]; t++) {
            tokens += keep[i] || !after;
            row += keep[i] ? l[i][t] : 0;
        }
        if (kind == AGG_SEQ_MEAN_TOKEN_MEAN && len[i])
            row /= (double)len[i];
        total += row;
    }
    if (kind == AGG_TOKEN_MEAN)
        return tokens ? total / tokens : 0;
    if (kind == AGG_SEQ_MEAN_TOKEN_SUM_NORM)
        total /= norm;
    return seqs ? total / seqs : 0;
}

static void random_batches(void **state)
{
    (void)state;
    struct rng g;
    double l[N][20], w[N];
    size_t len[N];
    bool keep[N];

    rng_seed(&g, 21, 0);
    for (int trial = 0; trial < 2000; trial++) {
        for (int i = 0; i < N; i++) {
            len[i] = rng_below(&g, 20);
            keep[i] = rng_below(&g, 3) != 0;
            for (int t = 0; t < 20; t++)
                l[i][t] = rng_normal(&g);
        }
        for (int kind = AGG_TOKEN_MEAN; kind <= AGG_SEQ_MEAN_TOKEN_SUM_NORM; kind++)
            for (int after = 0; after < 2; after++) {
                double got = 0;

                aggregate_weights(kind, after, 64, len, keep, N, w);
                for (int i = 0; i < N; i++)
                    for (size_t t = 0; t < len[i]; t++)
                        got += w[i] * l[i][t];
                assert_true(fabs(got - literal(kind, after, 64, l, len, keep)) < 1e-12);
            }
    }
}

static void edges(void **state)
{
    (void)state;
    size_t len[3] = {4, 0, 6};
    bool none[3] = {false, false, false}, one[3] = {true, true, false};
    double w[3];
    enum aggregate_kind k;
    struct err e = ERR_INIT;

    aggregate_weights(AGG_TOKEN_MEAN, false, 1, len, NULL, 3, w);
    assert_true(w[0] == 0.1 && w[1] == 0 && w[2] == 0.1);
    aggregate_weights(AGG_TOKEN_MEAN, false, 1, len, one, 3, w); // masking does not make the rest louder
    assert_true(w[0] == 0.1 && w[2] == 0);
    aggregate_weights(AGG_TOKEN_MEAN, true, 1, len, one, 3, w);
    assert_true(w[0] == 0.25 && w[2] == 0);
    aggregate_weights(AGG_TOKEN_MEAN, true, 1, len, none, 3, w);
    assert_true(w[0] == 0 && w[1] == 0 && w[2] == 0);
    aggregate_weights(AGG_TOKEN_MEAN, true, 1, NULL, NULL, 0, NULL);
    assert_int_equal(aggregate_kind_of("seq_mean_token_sum", &k, &e), 0);
    assert_int_equal(k, AGG_SEQ_MEAN_TOKEN_SUM);
    assert_int_equal(aggregate_kind_of("mean", &k, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_batches), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
