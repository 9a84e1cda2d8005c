/* test_mixture.c - the data plan: proportions, whole passes, reproducibility. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "train/mixture.h"

enum { N = 90 };

/* 60 of kind 0 with 10 tokens, 30 of kind 1 with 40: two thirds of the tokens are repair's. */
static struct dataset make(struct example *ex)
{
    for (int i = 0; i < N; i++)
        ex[i] = (struct example){.n = i % 3 == 0 ? 40 : 10, .kind = i % 3 == 0};
    return (struct dataset){.ex = ex, .n = N, .kinds = {(char *)"generate", (char *)"repair"}, .n_kinds = 2};
}

static int shares_of(const char *text, double *share)
{
    struct example ex[N];
    struct dataset d = make(ex);
    uint32_t pick[N];
    struct err e = ERR_INIT;

    for (int i = 0; i < N; i++)
        pick[i] = (uint32_t)i;
    return mixture_shares(&d, pick, N, text, share, &e);
}

static void shares(void **state)
{
    (void)state;
    double w[DATA_MAX_KINDS];
    static const char *const bad[] = {"repiar=1", "repair=x", "repair=-1", "repair", "repair=3",
                                      "repair=0.7,generate=0.6", "repair=0,generate=0"};

    assert_int_equal(shares_of(NULL, w), 0);
    assert_true(fabs(w[0] - 1.0 / 3) < 1e-12 && fabs(w[1] - 2.0 / 3) < 1e-12);
    assert_int_equal(shares_of("repair=0.25", w), 0); // the rest is generate's
    assert_true(fabs(w[0] - 0.75) < 1e-12 && fabs(w[1] - 0.25) < 1e-12);
    assert_int_equal(shares_of("repair=0.1,generate=0.3", w), 0);
    assert_true(fabs(w[0] - 0.75) < 1e-12 && fabs(w[1] - 0.25) < 1e-12);
    assert_int_equal(shares_of("rft=0.4,repair=0.3", w), 0); // a run that made none: generate takes its part
    assert_true(fabs(w[0] - 0.7) < 1e-12 && fabs(w[1] - 0.3) < 1e-12);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(shares_of(bad[i], w), -1);
}

/* 30 repairs of 40 tokens are 1,200; 16 passes are 19,200. */
static void limit(void **state)
{
    (void)state;
    struct example ex[N];
    struct dataset d = make(ex);
    uint32_t pick[N];
    double w[DATA_MAX_KINDS] = {0.5, 0.5}, same[DATA_MAX_KINDS] = {0.5, 0.5}, all[DATA_MAX_KINDS] = {0, 1};

    for (int i = 0; i < N; i++)
        pick[i] = (uint32_t)i;
    mixture_limit(&d, pick, N, same, 38400); // exactly 16 passes
    assert_true(same[0] == 0.5 && same[1] == 0.5);
    mixture_limit(&d, pick, N, w, 192000);
    assert_true(fabs(w[1] - 0.1) < 1e-12 && fabs(w[0] - 0.9) < 1e-12);
    mixture_limit(&d, pick, N, all, 192000); // nobody is there to take the rest
    assert_true(all[0] == 0 && all[1] == 1);
    d.kinds[1] = (char *)"knowledge"; // what was written before the run is shown as often as was asked
    w[0] = w[1] = 0.5;
    mixture_limit(&d, pick, N, w, 192000);
    assert_true(w[0] == 0.5 && w[1] == 0.5);
}

static void plan(void **state)
{
    (void)state;
    struct example ex[N];
    struct dataset d = make(ex);
    uint32_t pick[N];
    double w[DATA_MAX_KINDS], tokens[2] = {0};
    struct mixture a, b;
    struct err e = ERR_INIT;
    int seen[N] = {0};

    for (int i = 0; i < N; i++)
        pick[i] = (uint32_t)i;
    assert_int_equal(mixture_shares(&d, pick, N, "repair=0.4", w, &e), 0);
    mixture_plan(&a, &d, pick, N, w, 600, 45, 3, false);
    mixture_plan(&b, &d, pick, N, w, 600, 45, 3, false);
    assert_memory_equal(a.start, b.start, 601 * sizeof *a.start);
    assert_memory_equal(a.order, b.order, a.start[600] * sizeof *a.order);
    mixture_free(&b);
    for (int s = 0; s < 600; s++) {
        int n = 0;
        for (size_t i = a.start[s]; i < a.start[s + 1]; i++)
            n += ex[a.order[i]].n;
        assert_in_range(n, 45, 80);
    }
    for (size_t i = 0; i < a.start[600]; i++) {
        seen[a.order[i]]++;
        tokens[ex[a.order[i]].kind] += ex[a.order[i]].n;
    }
    // Of tokens, not of records: those of repair are four times as long.
    assert_true(fabs(tokens[1] / (tokens[0] + tokens[1]) - 0.4) < 0.003);
    // Passes are whole: within a kind, counts differ by at most one.
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (ex[i].kind == ex[j].kind)
                assert_true(abs(seen[i] - seen[j]) <= 1);
    mixture_plan(&b, &d, pick, N, w, 600, 45, 4, false);
    assert_true(memcmp(a.order, b.order, 100 * sizeof *a.order) != 0);
    mixture_free(&a);
    mixture_free(&b);
}

/* The first pass of each kind goes up; the second is shuffled. */
static void easy_first(void **state)
{
    (void)state;
    struct example ex[N];
    struct dataset d = make(ex);
    uint32_t pick[N];
    double w[DATA_MAX_KINDS];
    struct mixture m;
    struct err e = ERR_INIT;
    int last[DATA_MAX_KINDS] = {0}, seen[DATA_MAX_KINDS] = {0}, of[DATA_MAX_KINDS] = {0}, falls = 0, late = 0;
    bool once[N] = {0};

    for (int i = 0; i < N; i++)
        pick[i] = (uint32_t)i, ex[i].difficulty = i % 5 ? 3 + 97 * i % 23 : DIFFICULTY_UNKNOWN, of[ex[i].kind]++;
    assert_int_equal(mixture_shares(&d, pick, N, "repair=0.4", w, &e), 0);
    mixture_plan(&m, &d, pick, N, w, 120, 45, 3, true);
    for (size_t i = 0; i < m.start[120]; i++) {
        const struct example *x = &ex[m.order[i]];
        bool first = seen[x->kind]++ < of[x->kind];
        assert_true(!first || !once[m.order[i]]);
        once[m.order[i]] = true;
        if (x->difficulty == DIFFICULTY_UNKNOWN) {
            late += first && 2 * seen[x->kind] > of[x->kind];
            continue;
        }
        if (first)
            assert_true(x->difficulty >= last[x->kind]);
        else
            falls += x->difficulty < last[x->kind];
        last[x->kind] = x->difficulty;
    }
    assert_true(falls > N / 4);
    assert_in_range(late, N / 5 / 4, 3 * N / 5 / 4); // half of what says nothing, about: neither first nor last
    mixture_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares), cmocka_unit_test(limit), cmocka_unit_test(plan),
                                       cmocka_unit_test(easy_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
