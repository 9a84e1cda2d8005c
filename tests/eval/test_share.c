/* test_share.c - run time on a shared device: against a simulation that gives every runner its part, slice by slice.
 * And who has more than one queue there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "eval/schedule/schedule.h"

#define RUNNERS 6
#define STEP 0.001

static void test_alone_it_is_wall_time(void **state)
{
    struct schedule c;
    double v0;

    (void)state;
    schedule_init(&c, 0, 1);
    v0 = share_time(&c, 100, 1);
    assert_true(share_time(&c, 103.5, 0) - v0 == 3.5);
    assert_true(share_lasts(&c, 2) == 2);
    assert_true(share_time(&c, 104, -1) - v0 == 4);
    v0 = share_time(&c, 1000, 1); /* what nobody ran in between is nobody's */
    assert_true(share_time(&c, 1001, -1) - v0 == 1);
    schedule_free(&c);
}

/* Runners come and go at random; a simulation hands out the device in slices of a millisecond. */
static void test_like_slices(void **state)
{
    double begun[RUNNERS], given[RUNNERS] = {0}, now = 5;
    bool runs[RUNNERS] = {false};
    struct schedule c;
    unsigned seed = 7;
    int ended = 0;

    (void)state;
    schedule_init(&c, 0, 1);
    for (int round = 0; round < 400; round++) {
        int i = rand_r(&seed) % RUNNERS, steps = rand_r(&seed) % 300, n = 0;

        if (!runs[i]) {
            begun[i] = share_time(&c, now, 1);
            given[i] = 0;
        } else {
            double used = share_time(&c, now, -1) - begun[i];
            assert_true(used > given[i] - 1e-6 && used < given[i] + 1e-6);
            ended++;
        }
        runs[i] = !runs[i];
        for (int k = 0; k < RUNNERS; k++)
            n += runs[k];
        for (int s = 0; s < steps; s++, now += STEP)
            for (int k = 0; k < RUNNERS; k++)
                given[k] += runs[k] ? STEP / n : 0;
        if (n)
            assert_true(share_lasts(&c, 1) == n);
    }
    assert_true(ended > 100);
    schedule_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone_it_is_wall_time),
                                       cmocka_unit_test(test_like_slices)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
