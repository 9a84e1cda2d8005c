/* test_cluster.c - what counts as the same program, components against brute force, the draw is uniform. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "train/cluster.h"

static const char serial[] = "__global__ void k(const float* x, float* y, int n) { int r = blockIdx.x * blockDim.x + "
                             "threadIdx.x; if (r >= n) return; float s = 0.f; for (int j = 0; j < 37; j++) s += "
                             "x[r * 37 + j]; y[r] = s; }";
static const char renamed[] = "__global__ void rowsum(const float* in, float* out, int rows) {\n  // one thread a row\n"
                              "  int "
                              "q = blockIdx.x * blockDim.x + threadIdx.x;\n  if (q >= rows) return;\n"
                              "  float acc = 0.0f; "
                              "/* sum */ for (int c = 0; c < 64; c++) acc += in[q * 64 + c];\n  out[q] = acc;\n}";
static const char warp[] = "__global__ void k(const float* x, float* y, int n) { int r = blockIdx.x; float s = 0.f; "
                           "for (int j"
                           " = threadIdx.x; j < 37; j += 32) s += x[r * 37 + j]; for (int o = 16; o; o >>= 1) s += "
                           "__shfl_down_sync(~0u, s, o); if (!threadIdx.x) y[r] = s; }";

static double alike(const char *a, const char *b)
{
    struct sketch s, t;
    double j;

    sketch_program(a, &s);
    sketch_program(b, &t);
    j = sketch_jaccard(&s, &t);
    assert_true(j == sketch_jaccard(&t, &s));
    sketch_free(&s);
    sketch_free(&t);
    return j;
}

static void same_and_different(void **state)
{
    (void)state;
    assert_true(alike(serial, renamed) == 1);
    assert_true(alike(serial, warp) < 0.6);
    assert_true(alike("", "") == 1 && alike("", serial) == 0);
    assert_true(alike("a b c d e x = threadIdx.x;", "a b c d e y = threadIdx.y;") < 1); // an axis is structure
    assert_true(alike("a b c d x = 1;", "a b c d y = 2;") == 1);                        // a variable is not
}

/* Components by repeated relabelling until nothing changes. */
static void components(void **state)
{
    (void)state;
    enum { N = 12 };
    struct rng g;
    struct sketch s[N];
    int label[N], want[N];

    rng_seed(&g, 2, 0);
    for (int trial = 0; trial < 200; trial++) {
        for (int i = 0; i < N; i++) {
            s[i].hash = malloc(4 * sizeof(uint64_t));
            s[i].n = 4;
            for (uint64_t k = 0; k < 4; k++)
                s[i].hash[k] = 10 * k + rng_below(&g, 4);
            want[i] = i;
        }
        for (int changed = 1; changed;) {
            changed = 0;
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    if (sketch_jaccard(&s[i], &s[j]) >= 0.5 && want[i] != want[j]) {
                        want[i] = want[j] = want[i] < want[j] ? want[i] : want[j];
                        changed = 1;
                    }
        }
        size_t k = cluster_assign(s, N, 0.5, label), distinct = 0;
        for (int i = 0; i < N; i++) {
            distinct += want[i] == i;
            for (int j = 0; j < N; j++)
                assert_int_equal(label[i] == label[j], want[i] == want[j]);
        }
        assert_int_equal(k, distinct);
        for (int i = 0; i < N; i++)
            sketch_free(&s[i]);
    }
    assert_int_equal(cluster_assign(NULL, 0, 0.5, NULL), 0);
}

static void effective_number(void **state)
{
    (void)state;
    int one[] = {0, 0, 0, 0}, four[] = {0, 1, 2, 3}, mixed[] = {0, 0, 0, 1};

    assert_true(fabs(cluster_effective(one, 4) - 1) < 1e-12 && fabs(cluster_effective(four, 4) - 4) < 1e-12);
    // 3/4, 1/4: exp(H) = (4/3)^(3/4) * 4^(1/4)
    assert_true(fabs(cluster_effective(mixed, 4) - pow(4.0 / 3, 0.75) * pow(4, 0.25)) < 1e-12);
    assert_true(cluster_effective(NULL, 0) == 0);
}

/* Of the six pairs of {a, a, a, b} three are two ideas: 1.5 in the mean. */
static void drawn_without_clusters(void **state)
{
    (void)state;
    int mixed[] = {0, 0, 0, 1};
    double sum = 0;
    struct rng r;

    rng_seed(&r, 3, 0);
    for (int i = 0; i < 400; i++)
        sum += cluster_uniform(mixed, 4, 2, &r) / 400;
    assert_true(fabs(sum - 1.5) < 0.02); // 25,600 draws: a deviation of 0.003
    assert_true(fabs(cluster_uniform(mixed, 4, 4, &r) - cluster_effective(mixed, 4)) < 1e-12);
    assert_true(fabs(cluster_uniform(mixed, 4, 1, &r) - 1) < 1e-12);
    assert_true(cluster_uniform(NULL, 0, 0, &r) == 0);
}

static void uniform_draw(void **state)
{
    (void)state;
    int label[] = {0, 1, 0, 0, 1}, count[5] = {0};
    size_t pick[2];
    struct rng g;

    rng_seed(&g, 6, 0);
    for (int i = 0; i < 6000; i++) {
        cluster_draw(label, 5, 2, &g, pick);
        assert_true(label[pick[0]] == 0 && label[pick[1]] == 1);
        count[pick[0]]++;
        count[pick[1]]++;
    }
    for (int i = 0; i < 5; i++)
        assert_true(abs(count[i] - (label[i] ? 3000 : 2000)) < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_and_different), cmocka_unit_test(components),
                                       cmocka_unit_test(effective_number), cmocka_unit_test(drawn_without_clusters),
                                       cmocka_unit_test(uniform_draw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
