/* test_schedule.c - a device's memory and its use, in one process: in order, without work, and every wait ends on
 * Ctrl-C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "eval/check/protocol.h"
#include "eval/candidate/session.h"
#include "eval/schedule/retry.h"
#include "eval/schedule/schedule.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"

static double slowdown(void)
{
    const char *s = getenv("TEST_SLOWDOWN");

    return s ? atof(s) : 1;
}

static void sleep_s(double s)
{
    usleep((useconds_t)(s * 1e6));
}

static bool soon(const atomic_bool *flag)
{
    for (int i = 0; i < 200 * slowdown() && !atomic_load(flag); i++)
        sleep_s(0.01);
    return atomic_load(flag);
}

/* ---- claims ---- */

struct asks { /* a thread that claims, and keeps the claim until it is told */
    struct schedule *s;
    const char *task;
    int64_t caller;
    bool all;
    atomic_bool in, over, ended;
    int rc;
    struct reservation c;
    pthread_t thread;
    struct err e;
};

static void *ask(void *arg)
{
    struct asks *a = arg;
    bool fresh;

    a->rc = reservation_enter(a->s, a->task, a->caller, a->all, &a->c, &fresh, &a->e);
    if (a->rc == 0) {
        atomic_store(&a->in, true);
        while (!atomic_load(&a->over))
            sleep_s(0.005);
        reservation_leave(&a->c);
    }
    atomic_store(&a->ended, true);
    return NULL;
}

/* How many claims there are, in or waiting. */
static int claims(struct schedule *s)
{
    int n = 0;

    pthread_mutex_lock(&s->lock);
    for (const struct reservation *c = s->first; c; c = c->next)
        n++;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* They ask in this order. */
static void begin(struct asks *a, struct schedule *s, const char *task, int64_t caller, bool all)
{
    int n = claims(s);

    *a = (struct asks){.s = s, .task = task, .caller = caller, .all = all};
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
    while (claims(s) == n)
        sleep_s(0.005);
}

static void end(struct asks *a)
{
    atomic_store(&a->over, true);
    pthread_join(a->thread, NULL);
}

/* As a job that has run tells: so much is needed from now on. */
static void teach(struct schedule *s, const char *task, size_t own, size_t shared)
{
    struct reservation c;
    bool fresh;

    assert_int_equal(reservation_enter(s, task, 0, false, &c, &fresh, NULL), 0);
    reservation_learn(&c, &(struct need){own, shared});
    reservation_leave(&c);
}

/* What a task's reference needs counts once, and what does not fit waits. */
static void a_reservation_waits_for_memory(void **state)
{
    struct schedule s;
    struct asks a[4];

    (void)state;
    schedule_init(&s, 100, 10);
    teach(&s, "one", 20, 30);
    teach(&s, "two", 20, 15);
    begin(&a[0], &s, "one", 1, false);
    begin(&a[1], &s, "one", 1, false); /* 70 of 100 */
    assert_true(soon(&a[0].in) && soon(&a[1].in));
    begin(&a[2], &s, "two", 2, false); /* 105 */
    sleep_s(0.2);
    assert_false(a[2].in);
    end(&a[0]);
    assert_true(soon(&a[2].in));
    end(&a[1]);
    end(&a[2]);
    begin(&a[3], &s, "two", 2, false);
    assert_true(soon(&a[3].in));
    end(&a[3]);
    assert_null(s.first);
    schedule_free(&s);
}

/* Who wants all of it is passed by nobody, and comes in when the others have gone. More than there is: the same. */
static void all_of_it(void **state)
{
    struct schedule s;
    struct asks small[3], large[2];

    (void)state;
    schedule_init(&s, 100, 10);
    teach(&s, "small", 10, 1);
    teach(&s, "huge", 300, 1);
    begin(&small[0], &s, "small", 1, false);
    begin(&large[0], &s, "small", 1, true);
    begin(&small[1], &s, "small", 1, false);
    begin(&large[1], &s, "huge", 1, false);
    begin(&small[2], &s, "small", 1, false);
    assert_true(soon(&small[0].in));
    sleep_s(0.1);
    assert_false(large[0].in || small[1].in || large[1].in || small[2].in);
    end(&small[0]);
    assert_true(soon(&large[0].in));
    sleep_s(0.1);
    assert_false(small[1].in || large[1].in || small[2].in);
    end(&large[0]);
    assert_true(soon(&small[1].in));
    assert_false(large[1].in || small[2].in);
    end(&small[1]);
    assert_true(soon(&large[1].in));
    assert_false(small[2].in);
    end(&large[1]);
    assert_true(soon(&small[2].in));
    end(&small[2]);
    schedule_free(&s);
}

/* One caller with many candidates does not keep out another with one. */
static void callers_take_turns(void **state)
{
    struct schedule s;
    struct asks many[5], one;

    (void)state;
    schedule_init(&s, 0, 2);
    for (int i = 0; i < 5; i++)
        begin(&many[i], &s, "t", 1, false);
    begin(&one, &s, "t", 2, false);
    assert_true(soon(&many[0].in) && soon(&many[1].in));
    assert_false(many[2].in || one.in);
    end(&many[0]);
    assert_true(soon(&one.in));
    assert_false(many[2].in);
    end(&one);
    for (int i = 1; i < 5; i++)
        end(&many[i]);
    schedule_free(&s);
}

/* A claim becomes as large as is known, at once, where that fits; smaller, and others come in. */
static void a_reservation_grows(void **state)
{
    struct schedule s;
    struct asks waits;
    struct reservation a, b;
    bool fresh;

    (void)state;
    schedule_init(&s, 320, 10); /* a 32nd: 10 for each unknown part */
    assert_int_equal(reservation_enter(&s, "a", 1, false, &a, &fresh, NULL), 0);
    assert_true(fresh && a.need.own == 10 && a.need.shared == 10);
    assert_int_equal(reservation_enter(&s, "b", 1, false, &b, &fresh, NULL), 0);
    reservation_learn(&a, &(struct need){200, 50});
    assert_true(reservation_learned(&a) && !reservation_learned(&b));
    assert_true(reservation_grow(&a) && a.need.own == 200);
    reservation_learn(&b, &(struct need){60, 40});
    assert_false(reservation_grow(&b));
    assert_true(b.need.own == 10 && reservation_learned(&b));
    reservation_leave(&b);
    begin(&waits, &s, "b", 1, false); /* with what is known now */
    sleep_s(0.1);
    assert_false(waits.in);
    a.need = (struct need){300, 0};
    assert_true(reservation_grow(&a)); /* back to 250 */
    assert_false(waits.in);
    reservation_leave(&a);
    assert_true(soon(&waits.in));
    assert_int_equal(waits.c.need.own, 60);
    end(&waits);
    schedule_free(&s);
}

/* ---- jobs, from their claim to their last try ---- */

struct jobs { /* on a device with so much memory */
    struct schedule s;
    pthread_mutex_t lock;
    size_t left;
    atomic_int verdicts, beside, most_beside;
};

struct one {
    struct jobs *all;
    const char *task;
    size_t needs;
    bool says; /* before it takes anything */
    struct try_seen end;
    enum retry_step how;
};

static bool take(struct jobs *j, size_t n)
{
    bool got;

    pthread_mutex_lock(&j->lock);
    if ((got = j->left >= n))
        j->left -= n;
    pthread_mutex_unlock(&j->lock);
    return got;
}

/* What the pipeline does to memory: takes it for a while; a verdict if it was there. */
static void once(void *ctx, enum retry_step how, struct try_seen *seen)
{
    struct one *o = ctx;
    struct jobs *j = o->all;
    const struct need need = {o->needs, 1};
    struct reservation c;
    bool fresh, got;

    *seen = (struct try_seen){.end = TRY_INFRA, .lack = LACK_DEVICE, .shared = true};
    assert_int_equal(reservation_enter(&j->s, o->task, 1, how == RETRY_ALONE, &c, &fresh, NULL), 0);
    if (o->says) {
        reservation_learn(&c, &need);
        got = reservation_grow(&c) || how != RETRY_AGAIN;
    } else {
        got = true;
    }
    if ((got = got && take(j, o->needs))) {
        int n = ++j->beside;
        if (n > j->most_beside)
            j->most_beside = n;
        sleep_s(0.05);
        j->beside--;
        pthread_mutex_lock(&j->lock);
        j->left += o->needs;
        pthread_mutex_unlock(&j->lock);
        seen->end = TRY_VERDICT;
    }
    seen->learned = reservation_learned(&c);
    reservation_leave(&c);
}

static void *judge(void *arg)
{
    struct one *o = arg;

    o->how = retry_run(once, NULL, o, &o->end);
    o->all->verdicts += o->end.end == TRY_VERDICT;
    return NULL;
}

/* Nobody knows that they are large, and they run into each other; or they say so, and wait for as much. All get a
 * verdict. */
static void large_jobs_find_room(void **state)
{
    for (int says = 0; says < 2; says++) {
        struct jobs j = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = 2000};
        struct one o[8];
        pthread_t t[8];

        (void)state;
        schedule_init(&j.s, 1000, 20);
        for (int i = 0; i < 8; i++) {
            o[i] = (struct one){&j, i % 2 ? "large" : "small", i % 2 ? 900 : 20, says, {0}, 0};
            pthread_create(&t[i], NULL, judge, &o[i]);
        }
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
        assert_int_equal(j.verdicts, 8);
        assert_int_equal(j.left, 2000);
        assert_true(!says || j.most_beside > 1);
        schedule_free(&j.s);
    }
}

/* More than the device has: found out alone, and said. */
static void a_job_that_never_fits(void **state)
{
    struct jobs j = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = 2000};
    struct one o = {&j, "huge", 3000, true, {0}, 0};

    (void)state;
    schedule_init(&j.s, 1000, 20);
    judge(&o);
    assert_int_equal(j.verdicts, 0);
    assert_int_equal(o.how, RETRY_ALONE);
    assert_true(retry_is_final(o.how, &o.end));
    schedule_free(&j.s);
}

/* ---- the device ---- */

struct holds { /* a thread that takes the device and keeps it until it is told */
    struct schedule *s;
    bool alone, lasts;
    atomic_bool in, over;
    int rc;
    double at_s;
    pthread_t thread;
};

static void *device_lock(void *arg)
{
    struct holds *a = arg;
    struct device_lock h = {0};

    a->rc = device_lock_take(a->s, a->alone, &h, NULL);
    a->at_s = now_s();
    if (a->rc < 0)
        return NULL;
    device_lock_lasts(&h, a->lasts);
    atomic_store(&a->in, true);
    while (!atomic_load(&a->over))
        sleep_s(0.005);
    device_lock_drop(&h);
    return NULL;
}

/* How many use the device, or want to. */
static int users(struct schedule *s)
{
    int n;

    pthread_mutex_lock(&s->lock);
    n = s->sharing + s->alone + s->want_share + s->want_alone;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void begin_hold(struct holds *a, struct schedule *s, bool alone, bool lasts)
{
    int n = users(s);

    *a = (struct holds){.s = s, .alone = alone, .lasts = lasts};
    assert_int_equal(pthread_create(&a->thread, NULL, device_lock, a), 0);
    while (users(s) == n)
        sleep_s(0.005);
    if (lasts)
        assert_true(soon(&a->in));
}

static void end_hold(struct holds *a)
{
    atomic_store(&a->over, true);
    pthread_join(a->thread, NULL);
}

/* Many share, one is alone; who wants to be alone keeps later ones out, and those of a batch follow each other. */
static void shared_or_alone(void **state)
{
    struct schedule s;
    struct holds share[3], alone[2];

    (void)state;
    schedule_init(&s, 0, 10);
    begin_hold(&share[0], &s, false, false);
    begin_hold(&share[1], &s, false, false);
    assert_true(soon(&share[0].in) && soon(&share[1].in));
    assert_false(device_lock_wanted(&s));
    begin_hold(&alone[0], &s, true, false);
    begin_hold(&share[2], &s, false, false);
    begin_hold(&alone[1], &s, true, false);
    sleep_s(0.1);
    assert_true(device_lock_wanted(&s));
    assert_false(alone[0].in || alone[1].in || share[2].in);
    end_hold(&share[0]);
    sleep_s(0.1);
    assert_false(alone[0].in || alone[1].in);
    end_hold(&share[1]);
    assert_true(soon(&alone[0].in) || alone[1].in);
    assert_int_equal(alone[0].in + alone[1].in, 1);
    assert_false(share[2].in);
    atomic_store(&alone[0].over, true);
    atomic_store(&alone[1].over, true);
    assert_true(soon(&alone[0].in) && soon(&alone[1].in));
    end_hold(&alone[0]);
    end_hold(&alone[1]);
    assert_true(soon(&share[2].in));
    end_hold(&share[2]);
    assert_int_equal(s.sharing + s.alone + s.want_share + s.want_alone + s.lasting + s.let_in, 0);
    schedule_free(&s);
}

/* While a call of seconds runs nobody is kept out for the sake of a timing, but not for ever; a batch of timings
 * ends. */
static void what_lasts(void **state)
{
    struct schedule s;
    struct holds slow, share, late, alone, after;

    (void)state;
    schedule_init(&s, 0, 10);
    begin_hold(&slow, &s, false, true);
    begin_hold(&alone, &s, true, false);
    begin_hold(&share, &s, false, false);
    assert_true(soon(&share.in));
    assert_false(device_lock_wanted(&s) || alone.in);
    pthread_mutex_lock(&s.lock);
    s.alone_since -= 2 * SCHEDULE_TURN_S; /* it has waited so long */
    pthread_mutex_unlock(&s.lock);
    assert_true(device_lock_wanted(&s));
    begin_hold(&late, &s, false, false);
    sleep_s(0.2);
    assert_false(late.in);
    end_hold(&slow);
    end_hold(&share);
    assert_true(soon(&alone.in));
    begin_hold(&after, &s, true, false);
    pthread_mutex_lock(&s.lock);
    s.batch_since -= 2 * SCHEDULE_TURN_S;
    pthread_mutex_unlock(&s.lock);
    end_hold(&alone);
    assert_true(soon(&late.in));
    assert_false(after.in);
    end_hold(&late);
    assert_true(soon(&after.in));
    end_hold(&after);
    schedule_free(&s);
}

/* A long wait costs next to nothing and ends soon after the device is free. */
static void waiting_is_idle(void **state)
{
    struct schedule s;
    struct holds alone, waits;
    struct rusage a, b;
    double t0;

    (void)state;
    schedule_init(&s, 0, 10);
    begin_hold(&alone, &s, true, false);
    begin_hold(&waits, &s, false, false);
    getrusage(RUSAGE_SELF, &a);
    sleep_s(1);
    getrusage(RUSAGE_SELF, &b);
    assert_true(b.ru_utime.tv_sec * 1e6 + b.ru_utime.tv_usec - a.ru_utime.tv_sec * 1e6 - a.ru_utime.tv_usec < 5e4);
    t0 = now_s();
    end_hold(&alone);
    assert_true(soon(&waits.in));
    assert_true(waits.at_s - t0 < 0.5 * slowdown());
    end_hold(&waits);
    schedule_free(&s);
}

/* A load that never ends is over with a share: what follows frees memory or looks at the device. */
static void a_load_that_hangs(void **state)
{
    static const struct judge_backend timed = {.name = "cuda", .timed = true};
    struct judge_server sv = {.backend = &timed, .uuid = "hangs"};
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    struct child child = {0};
    struct session s = {.server = &sv, .opt = &o, .child = &child, .ended = true};
    struct reference ref = {.mode = "eval", .init = {.tree = json_object()}};
    struct job j = {.server = &sv, .session = &s, .opt = &o, .held.ref = &ref,
                    .rec = record_new("", "", "", "", "", ""),
                    .code = "", .protocol = protocol_find("strict")};
    struct err e = ERR_INIT;
    int pair[2];

    (void)state;
    o.timeout_s = 0.2;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    child.fd = pair[0];
    sem_init(&sv.run_slots, 0, 1);
    schedule_init(&sv.schedule, 0, 2);
    session_wake(&s);
    assert_int_equal(job_construct(&j, &e), 0);
    assert_true(job_blamed(&j) && !j.ready);
    assert_true(s.slot && s.device_lock.s);
    session_rest(&s);
    close(pair[0]);
    close(pair[1]);
    json_decref(j.rec);
    json_decref((json_t *)ref.init.tree);
    schedule_free(&sv.schedule);
    sem_destroy(&sv.run_slots);
}

/* ---- Ctrl-C: the flag stays, so this comes last ---- */

struct waits_for_slot {
    struct session s;
    double at_s;
};

static void *wait_for_slot(void *arg)
{
    struct waits_for_slot *w = arg;

    session_wake(&w->s);
    w->at_s = now_s();
    return NULL;
}

static void ctrl_c_ends_every_wait(void **state)
{
    static const struct judge_backend untimed = {.name = "sim"};
    struct judge_server sv = {.backend = &untimed};
    struct waits_for_slot slot = {.s = {.server = &sv}};
    struct schedule s;
    struct holds in, waits[3];
    struct asks all, later;
    pthread_t thread;
    double t0;

    (void)state;
    sem_init(&sv.run_slots, 0, 0);
    schedule_init(&s, 0, 10);
    stop_install();
    begin_hold(&in, &s, true, false);
    for (int i = 0; i < 3; i++)
        begin_hold(&waits[i], &s, i == 0, false);
    begin(&all, &s, "t", 1, true);
    begin(&later, &s, "t", 1, false);
    assert_true(soon(&all.in));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_slot, &slot), 0);
    sleep_s(0.1);
    t0 = now_s();
    pthread_kill(pthread_self(), SIGINT);
    for (int i = 0; i < 3; i++) {
        pthread_join(waits[i].thread, NULL);
        assert_int_equal(waits[i].rc, -1);
        assert_true(waits[i].at_s - t0 < 0.3 * slowdown());
    }
    pthread_join(thread, NULL);
    assert_false(slot.s.slot);
    assert_true(soon(&later.ended));
    assert_int_equal(later.rc, -1);
    assert_int_equal(later.e.kind, ERR_STOP);
    end(&all);
    end(&later);
    end_hold(&in);
    assert_null(s.first);
    assert_int_equal(s.sharing + s.alone + s.want_share + s.want_alone, 0);
    schedule_free(&s);
    sem_destroy(&sv.run_slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_waits_for_memory),
        cmocka_unit_test(all_of_it),
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(a_reservation_grows),
        cmocka_unit_test(large_jobs_find_room),
        cmocka_unit_test(a_job_that_never_fits),
        cmocka_unit_test(shared_or_alone),
        cmocka_unit_test(what_lasts),
        cmocka_unit_test(waiting_is_idle),
        cmocka_unit_test(a_load_that_hangs),
        cmocka_unit_test(ctrl_c_ends_every_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
