/* test_retry.c - what follows a try of one candidate: every kind of end, with and without others beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/schedule/retry.h"

static struct try_seen seen(enum try_end end, enum err_lack lack)
{
    return (struct try_seen){.end = end, .lack = lack, .shared = true};
}

static enum retry_step next(int made, enum retry_step had, enum try_end end, enum err_lack lack)
{
    struct try_seen s = seen(end, lack);

    return retry_next(made, had, &s);
}

/* A verdict stands, whatever memory did on the way. */
static void a_verdict_stands(void **state)
{
    (void)state;
    for (int made = 1; made <= RETRY_TRIES; made++)
        for (enum retry_step had = RETRY_AGAIN; had <= RETRY_ALONE; had++)
            for (enum err_lack lack = LACK_NONE; lack <= LACK_HOST; lack++)
                assert_int_equal(next(made, had, TRY_VERDICT, lack), RETRY_STOP);
}

static void a_fault_of_ours_is_tried_three_times(void **state)
{
    (void)state;
    assert_int_equal(next(1, RETRY_AGAIN, TRY_INFRA, LACK_NONE), RETRY_AGAIN);
    /* the last one: it may have been others */
    assert_int_equal(next(2, RETRY_AGAIN, TRY_INFRA, LACK_NONE), RETRY_ALONE);
    assert_int_equal(next(3, RETRY_ALONE, TRY_INFRA, LACK_NONE), RETRY_STOP);
}

/* Then it is alone. */
static void where_memory_was_short_the_next_try_has_more(void **state)
{
    (void)state;
    assert_int_equal(next(1, RETRY_AGAIN, TRY_INFRA, LACK_DEVICE), RETRY_ALONE);
    assert_int_equal(next(1, RETRY_AGAIN, TRY_INFRA, LACK_HOST), RETRY_ALONE);
    assert_int_equal(next(2, RETRY_AGAIN, TRY_INFRA, LACK_HOST), RETRY_ALONE);
    assert_int_equal(next(2, RETRY_ALONE, TRY_INFRA, LACK_DEVICE), RETRY_ALONE); /* what gave way may have been late */
    assert_int_equal(next(2, RETRY_ALONE, TRY_INFRA, LACK_NONE), RETRY_ALONE);   /* once alone, alone */
    assert_int_equal(next(3, RETRY_ALONE, TRY_INFRA, LACK_HOST), RETRY_STOP);
}

/* Where the task is known by now to need more than the try had, that is what the next one gets, once. */
static void what_was_learned_is_tried_first(void **state)
{
    struct try_seen s = seen(TRY_INFRA, LACK_DEVICE);

    (void)state;
    s.learned = true;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &s), RETRY_KNOWN);
    assert_int_equal(retry_next(1, RETRY_KNOWN, &s), RETRY_ALONE);
    assert_int_equal(retry_next(2, RETRY_KNOWN, &s), RETRY_ALONE);
    assert_int_equal(retry_next(2, RETRY_AGAIN, &s), RETRY_ALONE); /* the last one */
    assert_int_equal(retry_next(2, RETRY_ALONE, &s), RETRY_ALONE);
    assert_false(retry_is_final(RETRY_AGAIN, &s));
    assert_false(retry_is_final(RETRY_KNOWN, &s));
    assert_true(retry_is_final(RETRY_ALONE, &s));
    s.end = TRY_NOTHING;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &s), RETRY_KNOWN);
    assert_int_equal(retry_next(2, RETRY_KNOWN, &s), RETRY_ALONE);
    s.end = TRY_NOTHING;
    assert_int_equal(retry_next(2, RETRY_ALONE, &s), RETRY_STOP);
    s = seen(TRY_INFRA, LACK_DEVICE);
    assert_int_equal(retry_next(1, RETRY_KNOWN, &s), RETRY_ALONE);
    s.lack = LACK_HOST;
    s.learned = true;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &s), RETRY_ALONE); /* who was killed is not asked how large it was */
    s.lack = LACK_NONE;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &s), RETRY_AGAIN);
}

/* "The task raises ..." is asked once. "Its process died" may have been others; alone it is the task. */
static void a_task_that_cannot_be_used(void **state)
{
    (void)state;
    assert_int_equal(next(1, RETRY_AGAIN, TRY_NOTHING, LACK_NONE), RETRY_STOP);
    assert_int_equal(next(1, RETRY_AGAIN, TRY_NOTHING, LACK_HOST), RETRY_ALONE);
    assert_int_equal(next(1, RETRY_AGAIN, TRY_NOTHING, LACK_DEVICE), RETRY_ALONE);
    assert_int_equal(next(2, RETRY_ALONE, TRY_NOTHING, LACK_DEVICE), RETRY_STOP);
    assert_int_equal(next(2, RETRY_ALONE, TRY_NOTHING, LACK_HOST), RETRY_STOP);
    assert_int_equal(next(3, RETRY_AGAIN, TRY_NOTHING, LACK_HOST), RETRY_STOP);
}

static void an_interrupt_stops(void **state)
{
    struct try_seen s = seen(TRY_INFRA, LACK_DEVICE);

    (void)state;
    s.stopped = true;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &s), RETRY_STOP);
}

/* On the emulator there is no room to be claimed: nothing is ever made alone. */
static void where_nobody_can_be_alone(void **state)
{
    struct try_seen infra = seen(TRY_INFRA, LACK_HOST), nothing = seen(TRY_NOTHING, LACK_HOST);

    (void)state;
    infra.shared = nothing.shared = false;
    assert_int_equal(retry_next(1, RETRY_AGAIN, &infra), RETRY_AGAIN);
    assert_int_equal(retry_next(2, RETRY_AGAIN, &infra), RETRY_AGAIN);
    assert_int_equal(retry_next(3, RETRY_AGAIN, &infra), RETRY_STOP);
    assert_int_equal(retry_next(1, RETRY_AGAIN, &nothing), RETRY_STOP);
    assert_false(retry_is_final(RETRY_AGAIN, &infra));
}

/* Whatever happens, and in whatever order, there are at most RETRY_TRIES tries, and never less room than before. */
static void it_ends(void **state)
{
    (void)state;
    for (int way = 0; way < 12 * 12 * 12; way++) {
        enum retry_step had = RETRY_AGAIN, then;
        int made = 0, what = way;

        do {
            struct try_seen s = seen(what % 2 ? TRY_INFRA : TRY_NOTHING, (enum err_lack)(what / 2 % 3));
            s.learned = what / 6 % 2;
            what /= 12;
            assert_true(++made <= RETRY_TRIES);
            then = retry_next(made, had, &s);
            assert_true(then == RETRY_STOP || then >= had);
            had = then == RETRY_STOP ? had : then;
        } while (then != RETRY_STOP);
    }
}

static void what_is_final(void **state)
{
    struct try_seen device = seen(TRY_INFRA, LACK_DEVICE), host = seen(TRY_INFRA, LACK_HOST),
                    other = seen(TRY_INFRA, LACK_NONE), fine = seen(TRY_VERDICT, LACK_DEVICE);

    (void)state;
    assert_false(retry_is_final(RETRY_AGAIN, &device));
    assert_false(retry_is_final(RETRY_KNOWN, &device));
    assert_true(retry_is_final(RETRY_ALONE, &device));
    assert_true(retry_is_final(RETRY_ALONE, &host));
    assert_false(retry_is_final(RETRY_ALONE, &other));
    assert_false(retry_is_final(RETRY_ALONE, &fine));
}

static enum err_lack others(bool alone, const char *finding, bool outside)
{
    return retry_others(&(struct try_error){alone, finding, outside, true});
}

/* What lacked memory beside others is not judged; what lacks it alone is. */
static void what_others_may_have_done(void **state)
{
    (void)state;
    assert_int_equal(others(false, "", false), LACK_NONE);
    assert_int_equal(others(false, "illegal_address", false), LACK_NONE);
    assert_int_equal(others(false, "out_of_memory", false), LACK_DEVICE);
    assert_int_equal(others(false, "", true), LACK_HOST);
    assert_int_equal(others(false, "out_of_memory", true), LACK_DEVICE);
    assert_int_equal(others(true, "out_of_memory", false), LACK_NONE);
}

/* With no other candidate there, it was itself if it was large, else something that is not ours. */
static void who_took_the_machines_memory(void **state)
{
    struct try_error x = {.killed_outside = true, .finding = "", .large = true};

    (void)state;
    assert_int_equal(retry_others(&x), LACK_HOST);
    x.alone = true;
    assert_int_equal(retry_others(&x), LACK_NONE); /* it did */
    x.large = false;
    assert_int_equal(retry_others(&x), LACK_HOST); /* something else did */
    x.killed_outside = false;
    assert_int_equal(retry_others(&x), LACK_NONE);
}

/* ---- the loop ---- */

struct script { /* ends of the tries, one after the other */
    const struct try_seen *ends;
    enum retry_step had[RETRY_TRIES + 1];
    int n, again;
};

static void play(void *ctx, enum retry_step how, struct try_seen *seen)
{
    struct script *s = ctx;

    assert_in_range(s->n, 0, RETRY_TRIES - 1);
    s->had[s->n] = how;
    *seen = s->ends[s->n++];
}

static void count_again(void *ctx)
{
    ((struct script *)ctx)->again++;
}

static void the_loop(void **state)
{
    const struct try_seen ends[] = {seen(TRY_INFRA, LACK_NONE), seen(TRY_INFRA, LACK_HOST), seen(TRY_INFRA, LACK_HOST)},
                          heals[] = {seen(TRY_NOTHING, LACK_DEVICE), seen(TRY_VERDICT, LACK_NONE)};
    struct script s = {.ends = ends}, h = {.ends = heals};
    struct try_seen last;

    (void)state;
    assert_int_equal(retry_run(play, count_again, &s, &last), RETRY_ALONE);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.again, 2);
    assert_true(s.had[0] == RETRY_AGAIN && s.had[1] == RETRY_AGAIN && s.had[2] == RETRY_ALONE);
    assert_true(retry_is_final(RETRY_ALONE, &last));
    assert_int_equal(retry_run(play, NULL, &h, &last), RETRY_ALONE);
    assert_int_equal(h.n, 2);
    assert_int_equal(last.end, TRY_VERDICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_stands),
        cmocka_unit_test(a_fault_of_ours_is_tried_three_times),
        cmocka_unit_test(where_memory_was_short_the_next_try_has_more),
        cmocka_unit_test(what_was_learned_is_tried_first),
        cmocka_unit_test(a_task_that_cannot_be_used),
        cmocka_unit_test(an_interrupt_stops),
        cmocka_unit_test(where_nobody_can_be_alone),
        cmocka_unit_test(it_ends),
        cmocka_unit_test(what_is_final),
        cmocka_unit_test(the_loop),
        cmocka_unit_test(what_others_may_have_done),
        cmocka_unit_test(who_took_the_machines_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
