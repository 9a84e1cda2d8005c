/* test_trivial.c - the null battery: which answers exist, when one counts as passing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "task/trivial.h"

static bool near(enum trivial k, const double *got, void *ctx)
{
    const struct trivial_case *c = ctx;

    (void)k;
    for (size_t i = 0; i < c->n; i++)
        if (!(fabs(got[i] - c->want[i]) <= 0.1))
            return false;
    return true;
}

static void run(struct battery *b, struct trivial_case c)
{
    battery_run(b, &c, near, &c);
}

static void answers(void **state)
{
    double want[] = {1, 2, 6}, in[] = {7, 8, 9}, last[] = {4, 5, 6}, out[3];
    struct trivial_case c = {want, 3, in, last}, bare = {want, 1, NULL, NULL};

    (void)state;
    assert_true(trivial_answer(TRIVIAL_CONSTANT, &c, out) && out[0] == 3 && out[2] == 3);
    assert_true(trivial_answer(TRIVIAL_INPUT, &c, out) && out[1] == 8);
    assert_true(trivial_answer(TRIVIAL_STALE, &c, out) && out[1] == 5);
    assert_true(trivial_answer(TRIVIAL_ONES, &c, out) && out[2] == 1);
    assert_true(trivial_answer(TRIVIAL_NAN, &c, out) && isnan(out[0]));
    assert_false(trivial_answer(TRIVIAL_CONSTANT, &bare, out));
    assert_false(trivial_answer(TRIVIAL_INPUT, &bare, out));
    assert_false(trivial_answer(TRIVIAL_STALE, &bare, out));
}

/* Every case must pass; an answer that cannot be given in one case does not pass; the first draw has no last answer. */
static void all_cases_count(void **state)
{
    double small[] = {0.05, -0.02}, large[] = {0.01, 3}, ones[] = {1, 1.05};
    struct battery b = {{0}, {0}};

    (void)state;
    run(&b, (struct trivial_case){small, 2, small, NULL});
    assert_true(battery_passed(&b, TRIVIAL_ZEROS) && battery_passed(&b, TRIVIAL_INPUT));
    assert_false(battery_passed(&b, TRIVIAL_ONES));
    assert_false(battery_passed(&b, TRIVIAL_STALE)); /* never asked */
    run(&b, (struct trivial_case){small, 2, NULL, small});
    assert_true(battery_passed(&b, TRIVIAL_STALE) && battery_passed(&b, TRIVIAL_ZEROS));
    assert_false(battery_passed(&b, TRIVIAL_INPUT));
    run(&b, (struct trivial_case){large, 2, large, small});
    for (enum trivial k = 0; k < N_TRIVIAL; k++)
        assert_false(battery_passed(&b, k));
    b = (struct battery){{0}, {0}};
    run(&b, (struct trivial_case){ones, 2, NULL, NULL});
    assert_true(battery_passed(&b, TRIVIAL_ONES) && battery_passed(&b, TRIVIAL_CONSTANT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers), cmocka_unit_test(all_cases_count)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
