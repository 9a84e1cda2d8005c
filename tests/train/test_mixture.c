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

static struct dataset make(struct example *ex)
{
    for (int i = 0; i < N; i++)
        ex[i] = (struct example){.n = 10, .kind = i % 3 == 0};
    return (struct dataset){.ex = ex, .n = N, .kinds = {(char *)"generate", (char *)"repair"}, .n_kinds = 2};
}

static void weights(void **state)
{
    (void)state;
    struct example ex[N];
    struct dataset d = make(ex);
    double w[DATA_MAX_KINDS];
    struct err e = ERR_INIT;

    assert_int_equal(mixture_weights(&d, NULL, w, &e), 0);
    assert_true(w[0] == 1 && w[1] == 1);
    assert_int_equal(mixture_weights(&d, "repair=0.25,generate=2", w, &e), 0);
    assert_true(w[0] == 2 && w[1] == 0.25);
    assert_int_equal(mixture_weights(&d, "repiar=1", w, &e), -1);
    assert_int_equal(mixture_weights(&d, "rft=2", w, &e), 0);
    assert_int_equal(mixture_weights(&d, "repair=x", w, &e), -1);
    assert_int_equal(mixture_weights(&d, "repair=-1", w, &e), -1);
    assert_int_equal(mixture_weights(&d, "repair", w, &e), -1);
}

static void plan(void **state)
{
    (void)state;
    struct example ex[N];
    struct dataset d = make(ex);
    uint32_t pick[N];
    double w[DATA_MAX_KINDS];
    struct mixture a, b;
    struct err e = ERR_INIT;
    int seen[N] = {0}, repair = 0;

    for (int i = 0; i < N; i++)
        pick[i] = (uint32_t)i;
    mixture_weights(&d, "repair=4", w, &e); // 60 of weight 1, 30 of weight 4: two thirds are repair
    assert_int_equal(mixture_plan(&a, &d, pick, N, w, 600, 45, 3, false, &e), 0);
    assert_int_equal(mixture_plan(&b, &d, pick, N, w, 600, 45, 3, false, &e), 0);
    assert_memory_equal(a.start, b.start, 601 * sizeof *a.start);
    assert_memory_equal(a.order, b.order, a.start[600] * sizeof *a.order);
    for (int s = 0; s < 600; s++)
        assert_int_equal(a.start[s + 1] - a.start[s], 5); // 5 x 10 tokens reach 45
    for (size_t i = 0; i < a.start[600]; i++) {
        seen[a.order[i]]++;
        repair += ex[a.order[i]].kind == 1;
    }
    assert_true(fabs(repair / 3000.0 - 2.0 / 3) < 0.04);
    // Passes are whole: within a kind, counts differ by at most one.
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (ex[i].kind == ex[j].kind)
                assert_true(abs(seen[i] - seen[j]) <= 1);
    mixture_free(&b);
    mixture_weights(&d, "generate=0.25", w, &e); // 15 to 30: two thirds again
    assert_int_equal(mixture_plan(&b, &d, pick, N, w, 600, 45, 3, false, &e), 0);
    repair = 0;
    for (size_t i = 0; i < b.start[600]; i++)
        repair += ex[b.order[i]].kind == 1;
    assert_true(fabs(repair / 3000.0 - 2.0 / 3) < 0.04);
    mixture_free(&b);
    mixture_weights(&d, "repair=4", w, &e);
    assert_int_equal(mixture_plan(&b, &d, pick, N, w, 600, 45, 4, false, &e), 0);
    assert_true(memcmp(a.order, b.order, 100 * sizeof *a.order) != 0);
    mixture_free(&a);
    mixture_free(&b);
    w[0] = w[1] = 0;
    assert_int_equal(mixture_plan(&b, &d, pick, N, w, 10, 45, 4, false, &e), -1);
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
    mixture_weights(&d, "", w, &e);
    assert_int_equal(mixture_plan(&m, &d, pick, N, w, 60, 45, 3, true, &e), 0);
    for (size_t i = 0; i < m.start[60]; i++) {
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights), cmocka_unit_test(plan), cmocka_unit_test(easy_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
