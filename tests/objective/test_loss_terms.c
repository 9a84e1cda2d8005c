/* test_loss_terms.c - each term's derivative by differences, and what a run says of its terms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "objective/loss_terms.h"

static void derivatives(void **state)
{
    static const double logps[] = {-0.01, -0.7, -5}, advantages[] = {-1, 0, 2};
    int moved = 0;

    for (const struct loss_term *const *t = loss_terms_known; *t; t++)
        for (int i = 0; i < 9; i++) {
            struct loss_token at = {logps[i / 3], -1, advantages[i % 3]}, up = at, down = at;
            double h = 1e-6, slope;

            up.logp += h, down.logp -= h;
            slope = ((*t)->of(&up).loss - (*t)->of(&down).loss) / (2 * h);
            if (fabs(slope - (*t)->of(&at).dlogp) > 1e-5 * (1 + fabs(slope)))
                fail_msg("%s: slope %g, derivative %g", (*t)->name, slope, (*t)->of(&at).dlogp);
            moved += slope != 0;
        }
    assert_true(moved > 0);
}

static void choice(void **state)
{
    struct loss_token good = {-2, -2, 1}, bad = {-2, -2, -1};
    struct loss_terms s = {.n = 7};
    struct err e = ERR_INIT;

    assert_int_equal(loss_terms_parse(NULL, &s, &e), 0);
    assert_int_equal(s.n, 0);
    assert_true(loss_terms_sum(&s, &good).loss == 0 && loss_terms_sum(&s, &good).dlogp == 0);
    assert_int_equal(loss_terms_parse("positive=0.25", &s, &e), 0);
    assert_true(loss_terms_sum(&s, &good).loss == 0.5 && loss_terms_sum(&s, &good).dlogp == -0.25);
    assert_true(loss_terms_sum(&s, &bad).loss == 0);
}

static void nonsense(void **state)
{
    static const char *const words[] = {"positive", "positive=", "positive=much", "positive=nan", "nothing=1", "=1"};
    struct loss_terms s = {.n = 7};
    struct err e;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        e = (struct err)ERR_INIT;
        assert_int_equal(loss_terms_parse(words[i], &s, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.msg, "of positive"));
        assert_int_equal(s.n, 7); // untouched
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(derivatives), cmocka_unit_test(choice),
                                       cmocka_unit_test(nonsense)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
