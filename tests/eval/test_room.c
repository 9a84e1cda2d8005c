/* test_room.c - who may come into a device's memory, and a ledger that forgets the dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "eval/room.h"

static struct room_claim claim(int state, int ticket, uint64_t own, uint64_t shared, uint64_t group)
{
    return (struct room_claim){(uint64_t)state, (uint64_t)ticket, own, shared, group, 0};
}

static void test_fits(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 40, 20, 1), claim(ROOM_WAITS, 2, 30, 20, 2),
                             claim(ROOM_WAITS, 3, 40, 20, 1), claim(ROOM_WAITS, 4, 20, 20, 2),
                             claim(0, 5, 100, 100, 3)};

    (void)state;
    assert_int_equal(room_sum(c, 5, -1), 60);
    assert_int_equal(room_sum(c, 5, 1), 110); /* another group: its reference comes with it */
    assert_int_equal(room_sum(c, 5, 2), 100); /* the same one: its reference is there */
    assert_false(room_admits(c, 5, 1, 100, 0));
    assert_true(room_admits(c, 5, 2, 100, 0));
    assert_false(room_admits(c, 5, 2, 99, 0));
    assert_true(room_admits(c, 5, 3, 100, 0));
    c[2].shared = 30; /* the group's reference is as large as its largest claim says */
    assert_int_equal(room_sum(c, 5, 2), 110);
    c[2] = claim(ROOM_IN, 3, 40, 30, 1);
    assert_int_equal(room_sum(c, 5, -1), 110); /* once, not twice */
}

static void test_order(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 40, 0, 1), claim(ROOM_WAITS, 2, 500, 0, 2),
                             claim(ROOM_WAITS, 3, 10, 0, 3)};

    (void)state;
    assert_false(room_admits(c, 3, 1, 100, 1)); /* more than there is: only alone */
    assert_true(room_admits(c, 3, 2, 100, 1));  /* may pass it for a while, */
    assert_false(room_admits(c, 3, 2, 100, ROOM_PASS_S)); /* but not for ever */
    c[0].state = 0;
    assert_true(room_admits(c, 3, 1, 100, ROOM_PASS_S));
    assert_false(room_admits(c, 3, 2, 100, ROOM_PASS_S));
}

static struct room_need need(size_t own)
{
    return (struct room_need){own, 0};
}

static int called;

static void count_call(void *ctx)
{
    called++;
    room_drop(ctx);
}

/* Who is in the way is told, and then it goes on. Claims of one process exclude each other as those of two do. */
static void test_waits(void **state)
{
    struct room a = {0}, b = {0};
    struct room_need n = need(60);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(room_take("gpu", 100, &n, 1, NULL, NULL, &a, &e), 0);
    assert_false(room_wanted("gpu", 100));
    assert_int_equal(room_take("gpu", 100, &n, 2, count_call, &a, &b, &e), 0);
    assert_int_equal(called, 1);
    assert_int_equal(a.fd, 0);
    assert_int_equal(room_take("other", 100, &n, 1, NULL, NULL, &a, &e), 0); /* another device is another ledger */
    room_drop(&a);
    room_drop(&b);
    n = need(100);
    assert_int_equal(room_take("gpu", 100, &n, 1, NULL, NULL, &a, &e), 0);
    assert_true(room_wanted("gpu", 100));
    room_drop(&a);
    assert_false(room_wanted("gpu", 100));
}

/* A process that has room, and one that waits for it, are killed: nothing of them is left. */
static void test_killed(void **state)
{
    struct room_need n = need(60), all = need(100);
    struct room r = {0};
    struct err e = ERR_INIT;
    pid_t holder, waiter;
    int up[2];
    char c;

    (void)state;
    assert_int_equal(pipe(up), 0);
    if ((holder = fork()) == 0) {
        struct room mine = {0};

        if (room_take("gpu", 100, &n, 1, NULL, NULL, &mine, NULL) == 0 && write(up[1], "1", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(up[0], &c, 1), 1);
    if ((waiter = fork()) == 0) {
        struct room mine = {0};

        room_take("gpu", 100, &all, 2, NULL, NULL, &mine, NULL);
        _exit(1);
    }
    for (int i = 0; i < 200 && !room_wanted("gpu", 100); i++)
        usleep(10000);
    assert_true(room_wanted("gpu", 100));
    kill(holder, SIGSTOP); /* slow is not dead */
    assert_true(room_wanted("gpu", 100));
    kill(waiter, SIGKILL);
    waitpid(waiter, NULL, 0);
    assert_false(room_wanted("gpu", 100));
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    assert_int_equal(room_take("gpu", 100, &n, 1, NULL, NULL, &r, &e), 0);
    room_drop(&r);
    close(up[0]);
    close(up[1]);
}

#define THREADS 8
static int inside, most;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *go_through(void *arg)
{
    struct room r = {0};
    struct room_need n = need(40);

    if (room_take("gpu", 100, &n, (uint64_t)(uintptr_t)arg, NULL, NULL, &r, NULL) < 0)
        return (void *)1;
    pthread_mutex_lock(&lock);
    most = ++inside > most ? inside : most;
    pthread_mutex_unlock(&lock);
    usleep(5000);
    pthread_mutex_lock(&lock);
    inside--;
    pthread_mutex_unlock(&lock);
    room_drop(&r);
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t t[THREADS];
    void *failed;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, go_through, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &failed);
        assert_null(failed);
    }
    assert_true(most <= 2);
}

static void test_notes(void **state)
{
    struct room_need n = {0, 0}, big = {10, 5}, small = {3, 7};

    (void)state;
    assert_false(room_recall("task", "strict", &n));
    room_note("task", "strict", &big);
    room_note("task", "strict", &small);
    assert_true(room_recall("task", "strict", &n));
    assert_int_equal(n.own, 10);
    assert_int_equal(n.shared, 7);
    assert_false(room_recall("task", "kernelbench", &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fits),    cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_waits),   cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_threads), cmocka_unit_test(test_notes)};
    char folder[] = "/tmp/test_room.XXXXXX";

    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
