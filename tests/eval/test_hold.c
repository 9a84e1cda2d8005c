/* test_hold.c - waiting for a device or a slot: in order, without work, and every thread's wait ends on Ctrl-C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/process/session.h"
#include "eval/schedule/hold.h"
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

/* Another process. Without 'says' it has the device from before this returns until end_of; else it asks for it, and
 * writes 'says' to 'say_to' when it has it. */
struct other {
    pid_t pid;
    int tell;
};

static struct other hold_elsewhere(const char *device, bool alone, char says, int say_to)
{
    int ready[2], go[2];
    struct other o;
    char byte;

    if (pipe(ready) < 0 || pipe(go) < 0 || (o.pid = fork()) < 0)
        abort();
    if (o.pid == 0) {
        struct hold h = {0};
        close(go[1]);
        if (!says && hold_take(device, alone, &h, NULL) < 0)
            _exit(1);
        if (write(ready[1], "x", 1) != 1 || (says && hold_take(device, alone, &h, NULL) < 0) ||
            (says && write(say_to, &says, 1) != 1))
            _exit(1);
        alarm(60);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        hold_drop(&h);
        _exit(0);
    }
    close(go[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    o.tell = go[1];
    return o;
}

static void end_of(struct other *o)
{
    int status;

    assert_int_equal(write(o->tell, "x", 1), 1);
    close(o->tell);
    assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct taken { /* by a thread */
    const char *device;
    bool alone;
    int rc;
    struct err e;
    double at_s;
};

static void *take(void *arg)
{
    struct taken *t = arg;
    struct hold h = {0};

    t->rc = hold_take(t->device, t->alone, &h, &t->e);
    t->at_s = now_s();
    hold_drop(&h);
    return NULL;
}

/* A long wait costs next to nothing and ends soon after the device is free. */
static void test_waiting_is_idle_and_ends_soon(void **state)
{
    struct other o = hold_elsewhere("idle", true, 0, -1);
    struct taken t[8];
    pthread_t threads[8];
    double cpu = cpu_s(), t0;

    (void)state;
    hold_patience_s = 0.05;
    for (int i = 0; i < 8; i++) {
        t[i] = (struct taken){.device = "idle", .alone = i < 2};
        assert_int_equal(pthread_create(&threads[i], NULL, take, &t[i]), 0);
    }
    sleep_s(1.5);
    cpu = cpu_s() - cpu;
    t0 = now_s();
    end_of(&o);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(t[i].rc, 0);
        assert_true(t[i].at_s - t0 < 0.5 * slowdown());
    }
    print_message("8 threads that wait 1.5 s: %.1f ms of processor time\n", cpu * 1e3);
    assert_true(cpu < 0.1);
}

/* Somebody with long patience looks for a gap all the time, but who waits behind the gate by then comes first. */
static void test_who_keeps_the_gate_is_not_overtaken(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct other holds = hold_elsewhere("order", false, 0, -1), first, second;
        int order[2];
        char got[2];

        assert_int_equal(pipe(order), 0);
        hold_patience_s = 0;
        first = hold_elsewhere("order", true, '1', order[1]);
        while (!hold_wanted("order")) /* it keeps the gate */
            sleep_s(0.001);
        sleep_s(0.02); /* and looks rarely by now */
        hold_patience_s = 60;
        second = hold_elsewhere("order", true, '2', order[1]);
        sleep_s(0.015);
        end_of(&holds);
        assert_int_equal(read(order[0], &got[0], 1), 1);
        end_of(got[0] == '1' ? &first : &second);
        assert_int_equal(read(order[0], &got[1], 1), 1);
        end_of(got[0] == '1' ? &second : &first);
        assert_true(got[0] == '1' && got[1] == '2');
        close(order[0]);
        close(order[1]);
    }
}

/* Somebody wants to be alone, beside a share of ours that lasts or not: do others come in meanwhile? */
static bool others_come_in(bool lasts)
{
    const char *device = lasts ? "lasts" : "short";
    struct hold mine = {0};
    struct taken alone = {.device = device, .alone = true}, other = {.device = device};
    pthread_t threads[2];
    bool in;

    hold_patience_s = 0.05;
    assert_false(hold_awaited(device));
    assert_int_equal(hold_take(device, false, &mine, NULL), 0);
    if (lasts)
        hold_lasts(&mine, true);
    assert_int_equal(pthread_create(&threads[0], NULL, take, &alone), 0);
    sleep_s(0.4); /* its patience is over */
    assert_true(hold_awaited(device));
    assert_int_equal(hold_wanted(device), !lasts);
    assert_int_equal(pthread_create(&threads[1], NULL, take, &other), 0);
    sleep_s(0.4);
    in = other.at_s > 0;
    hold_drop(&mine);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(alone.rc == 0 && other.rc == 0);
    assert_false(hold_awaited(device));
    return in;
}

static void test_beside_a_share_that_lasts(void **state)
{
    (void)state;
    assert_true(others_come_in(true));
    assert_false(others_come_in(false)); /* dropped, it lasts no more */
}

/* Does it keep others out, by then, who is one of n that want to be alone? */
static bool hurries(int n, double after_s)
{
    struct hold mine = {0};
    struct taken t[8];
    pthread_t threads[8];
    bool wanted;

    hold_patience_s = 1.6 * slowdown();
    assert_int_equal(hold_take("hurries", false, &mine, NULL), 0);
    for (int i = 0; i < n; i++) {
        t[i] = (struct taken){.device = "hurries", .alone = true};
        assert_int_equal(pthread_create(&threads[i], NULL, take, &t[i]), 0);
    }
    sleep_s(after_s * slowdown());
    wanted = hold_wanted("hurries");
    hold_drop(&mine);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(t[i].rc, 0);
    }
    return wanted;
}

/* Patience is of all of them together, but who has it waits for a quarter of it in any case. */
static void test_many_are_less_patient(void **state)
{
    (void)state;
    assert_false(hurries(1, 0.9));
    assert_true(hurries(1, 2));
    assert_true(hurries(4, 0.9));
    assert_false(hurries(8, 0.25));
}

/* What somebody inside does turns out to take long when others are kept out already: they come in then, until it is over. */
static void test_a_share_turns_out_to_last(void **state)
{
    struct hold mine = {0};
    struct taken alone = {.device = "turns out", .alone = true}, other = {.device = "turns out"};
    pthread_t threads[2];

    (void)state;
    hold_patience_s = 0.05;
    assert_int_equal(hold_take("turns out", false, &mine, NULL), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, take, &alone), 0);
    while (!hold_wanted("turns out"))
        sleep_s(0.01);
    assert_int_equal(pthread_create(&threads[1], NULL, take, &other), 0);
    sleep_s(0.3);
    assert_true(other.at_s == 0);
    assert_false(hold_lasts(&mine, true));
    sleep_s(0.3);
    assert_true(other.at_s > 0 && alone.at_s == 0);
    assert_false(hold_wanted("turns out"));
    assert_true(hold_lasts(&mine, false)); /* over, but the share is kept: who waits has been patient */
    sleep_s(0.3);
    assert_true(hold_wanted("turns out"));
    hold_drop(&mine);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(alone.rc == 0 && alone.at_s > other.at_s);
}

/* A load that never ends is over with a share: what follows frees memory or looks at the device. */
static void test_a_load_that_hangs(void **state)
{
    static const struct backend timed = {.name = "cuda", .timed = true};
    struct server sv = {.backend = &timed, .uuid = "hangs"};
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    struct child child = {0};
    struct session s = {.server = &sv, .opt = &o, .child = &child, .ended = true};
    struct reference ref = {.mode = "eval", .init = {.tree = json_object()}};
    struct job j = {.server = &sv, .session = &s, .opt = &o, .ref = &ref, .rec = record_new("", "", "", "", "", ""), .code = ""};
    struct err e = ERR_INIT;
    int pair[2];

    (void)state;
    o.timeout_s = 0.2;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    child.fd = pair[0];
    sem_init(&sv.run_slots, 0, 1);
    share_init(&sv.share);
    session_wake(&s);
    assert_int_equal(job_construct(&j, &e), 0);
    assert_true(job_blamed(&j) && !j.ready);
    assert_true(s.slot && s.hold.fd > 0);
    session_rest(&s);
    close(pair[0]);
    close(pair[1]);
    json_decref(j.rec);
    json_decref((json_t *)ref.init.tree);
    share_free(&sv.share);
    sem_destroy(&sv.run_slots);
}

struct takes_turn {
    struct session s;
    _Atomic bool in, over;
};

static void *take_turn(void *arg)
{
    struct takes_turn *t = arg;

    session_wake(&t->s);
    session_take_turn(&t->s);
    t->in = true;
    while (!t->over)
        sleep_s(0.01);
    session_end_turn(&t->s);
    session_rest(&t->s);
    return NULL;
}

static bool soon(const _Atomic bool *in)
{
    for (int i = 0; i < 100 * slowdown() && !*in; i++)
        sleep_s(0.01);
    return *in;
}

/* First calls on gigabytes: one at a time, and not beside one that turned out to last. */
static void test_turns(void **state)
{
    static const struct backend timed = {.name = "cuda", .timed = true};
    struct server sv = {.backend = &timed, .uuid = "turns"};
    struct takes_turn t[2] = {{.s = {.server = &sv}}, {.s = {.server = &sv}}}, *first;
    struct hold mine = {0};
    pthread_t threads[2];

    (void)state;
    sem_init(&sv.run_slots, 0, 4);
    sem_init(&sv.large_turn, 0, 1);
    assert_int_equal(hold_take("turns", false, &mine, NULL), 0);
    hold_lasts(&mine, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turn, &t[i]), 0);
    sleep_s(0.2);
    assert_false(t[0].in || t[1].in);
    hold_lasts(&mine, false);
    while (!t[0].in && !t[1].in)
        sleep_s(0.01);
    sleep_s(0.2);
    assert_true(t[0].in != t[1].in);
    first = &t[t[0].in ? 0 : 1];
    first->over = true;
    assert_true(soon(&t[0].in) && soon(&t[1].in));
    t[0].over = t[1].over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    hold_drop(&mine);
    sem_destroy(&sv.run_slots);
    sem_destroy(&sv.large_turn);
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

static void test_ctrl_c_ends_every_wait(void **state)
{
    static const struct backend untimed = {.name = "sim"};
    struct server sv = {.backend = &untimed};
    struct waits_for_slot slot = {.s = {.server = &sv}};
    struct other o = hold_elsewhere("stop", true, 0, -1);
    struct taken t[5], again = {.device = "stop", .alone = true};
    pthread_t threads[6];
    int posts;
    double t0;

    (void)state;
    hold_patience_s = 0.05;
    sem_init(&sv.run_slots, 0, 0);
    stop_install();
    for (int i = 0; i < 5; i++) { /* a leader and two in line; two sharers, one of them at the gate */
        t[i] = (struct taken){.device = "stop", .alone = i < 3};
        assert_int_equal(pthread_create(&threads[i], NULL, take, &t[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[5], NULL, wait_for_slot, &slot), 0);
    sleep_s(0.4);
    t0 = now_s();
    pthread_kill(pthread_self(), SIGINT);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t[i].rc, -1);
        assert_int_equal(t[i].e.kind, ERR_STOP);
        assert_true(t[i].at_s - t0 < 0.2 * slowdown());
    }
    assert_true(slot.at_s - t0 < 0.2 * slowdown());
    assert_false(slot.s.slot);
    session_rest(&slot.s); /* it got none, so it gives none back */
    sem_getvalue(&sv.run_slots, &posts);
    assert_int_equal(posts, 0);
    end_of(&o);
    take(&again); /* nobody is left in line */
    assert_int_equal(again.rc, 0);
    sem_destroy(&sv.run_slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_is_idle_and_ends_soon),
        cmocka_unit_test(test_who_keeps_the_gate_is_not_overtaken),
        cmocka_unit_test(test_beside_a_share_that_lasts),
        cmocka_unit_test(test_many_are_less_patient),
        cmocka_unit_test(test_a_share_turns_out_to_last),
        cmocka_unit_test(test_a_load_that_hangs),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_ctrl_c_ends_every_wait),
    };
    char folder[] = "/tmp/mc-hold-XXXXXX";
    int rc;

    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove(folder, NULL);
    return rc;
}
