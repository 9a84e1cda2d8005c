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
#include "eval/schedule/room.h"

#define GPU 7 /* a device */

static struct room_claim claim(int state, int ticket, uint64_t own, uint64_t shared, uint64_t group)
{
    return (struct room_claim){.state = (uint64_t)state, .ticket = (uint64_t)ticket, .own = own, .shared = shared,
                               .group = group, .device = GPU};
}

static bool admits(const struct room_claim *c, int n, int who, uint64_t device, uint64_t host, double now)
{
    return room_admits(c, n, who, &(struct room_budget){device, host}, now);
}

static void test_fits(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 40, 20, 1), claim(ROOM_WAITS, 2, 30, 20, 2),
                             claim(ROOM_WAITS, 3, 40, 20, 1), claim(ROOM_WAITS, 4, 20, 20, 2),
                             claim(0, 5, 100, 100, 3)};

    (void)state;
    assert_int_equal(room_sum(c, 5, -1, GPU).device, 60);
    assert_int_equal(room_sum(c, 5, 1, GPU).device, 110); /* another group: its reference comes with it */
    assert_int_equal(room_sum(c, 5, 2, GPU).device, 100); /* the same one: its reference is there */
    assert_false(admits(c, 5, 1, 100, 0, 0));
    assert_true(admits(c, 5, 2, 100, 0, 0));
    assert_false(admits(c, 5, 2, 99, 0, 0));
    assert_true(admits(c, 5, 3, 100, 0, 0));
    c[2].shared = 30; /* the group's reference is as large as its largest claim says */
    assert_int_equal(room_sum(c, 5, 2, GPU).device, 110);
    c[2] = claim(ROOM_IN, 3, 40, 30, 1);
    assert_int_equal(room_sum(c, 5, -1, GPU).device, 110); /* once, not twice */
}

static void test_order(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 40, 0, 1), claim(ROOM_WAITS, 2, 90, 20, 2),
                             claim(ROOM_WAITS, 3, 10, 0, 3)};

    (void)state;
    assert_false(admits(c, 3, 1, 100, 0, 1)); /* no room yet */
    assert_true(admits(c, 3, 2, 100, 0, 1));  /* may pass it for a while, */
    assert_false(admits(c, 3, 2, 100, 0, ROOM_PASS_S)); /* but not for ever */
    c[0].state = 0;
    assert_true(admits(c, 3, 1, 100, 0, ROOM_PASS_S));
    assert_false(admits(c, 3, 2, 100, 0, ROOM_PASS_S));
}

/* Small claims come and go: they keep nobody out for long, and are let by for longer, but not for ever. */
static void test_small_ones_pass(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 90, 0, 1), claim(ROOM_WAITS, 2, 1200, 200, 2),
                             claim(ROOM_WAITS, 3, 80, 20, 3)};

    (void)state;
    assert_true(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_S));
    assert_true(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S - 1));
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[1].own = 100 * ROOM_SMALL; /* wants everything */
    assert_true(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_ALL_S - 1));
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_ALL_S));
    c[1].own = 1200;
    c[2].shared = 21; /* not small any more */
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_S));
    c[2].shared = 0;
    c[2].host_own = ROOM_ALL;
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_S));
}

/* What large ones keep out gains nothing if small ones wait too. */
static void test_small_ones_pass_beside_large_ones(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 900, 0, 1), claim(ROOM_WAITS, 2, 800, 0, 2),
                             claim(ROOM_WAITS, 3, 80, 20, 3)};

    (void)state;
    assert_true(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[0].own = 800; /* beside which it would find room */
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[0].own = c[1].own = 750, c[0].shared = c[1].shared = 100; /* and so with what groups share, once for each */
    assert_true(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[0].group = c[1].group;
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[0].shared = c[1].shared = 0, c[0].group = 1, c[1].own = 800;
    c[0].own = 900;
    c[2].own = 200; /* not small */
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
    c[2].own = 80, c[0].own = 100; /* not large */
    c[1].own = 1590;
    assert_false(admits(c, 3, 2, 100 * ROOM_SMALL, 0, ROOM_PASS_SMALL_S));
}

/* Part of the device is for those that turn out to be larger than was known. */
static void test_blind_claims(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 500, 0, 1), claim(ROOM_WAITS, 2, 100, 0, 2)};
    const struct room_budget b = {1000, 0};
    struct room_need need = {.own = 100, .blind = true}, more = {.own = 390}, rest = {.own = 500, .blind = true};
    struct room first = {0}, second = {0};
    struct err e = ERR_INIT;

    (void)state;
    c[0].blind = c[1].blind = 1;
    assert_true(admits(c, 2, 1, 1000, 0, 0));
    c[1].own = 101;
    assert_false(admits(c, 2, 1, 1000, 0, 0));
    c[1].blind = 0;
    assert_true(admits(c, 2, 1, 1000, 0, 0));
    c[0].state = 0, c[1].blind = 1, c[1].own = 900; /* nobody is there */
    assert_true(admits(c, 2, 1, 1000, 0, 0));
    c[0].state = ROOM_IN, c[0].blind = 0, c[1].own = 500; /* known ones do not count there */
    assert_true(admits(c, 2, 1, 1000, 0, 0));

    assert_int_equal(room_take("gpu", &b, &rest, 1, NULL, NULL, &first, &e), 0);
    assert_int_equal(room_take("gpu", &b, &need, 2, NULL, NULL, &second, &e), 0);
    assert_true(room_grow(&second, &more)); /* it is known now */
    room_drop(&first);
    room_drop(&second);
}

/* Who wants everything is overtaken for longer: most of the time it comes in when nobody is there. */
static void test_order_of_all(void **state)
{
    struct room_claim c[] = {claim(ROOM_IN, 1, 40, 0, 1), claim(ROOM_WAITS, 2, 100, 0, 2),
                             claim(ROOM_WAITS, 3, 10, 0, 3)};

    (void)state;
    assert_true(ROOM_PASS_ALL_S > 3 * ROOM_PASS_S);
    assert_false(admits(c, 3, 1, 100, 0, ROOM_PASS_ALL_S));
    assert_true(admits(c, 3, 2, 100, 0, ROOM_PASS_S));
    assert_true(admits(c, 3, 2, 100, 0, ROOM_PASS_ALL_S - 1));
    assert_false(admits(c, 3, 2, 100, 0, ROOM_PASS_ALL_S));
    c[1].own = 99; /* not everything */
    assert_false(admits(c, 3, 2, 100, 0, ROOM_PASS_S));
    c[1].host_own = ROOM_ALL; /* all of the machine */
    assert_true(admits(c, 3, 2, 100, 50, ROOM_PASS_ALL_S - 1));
    assert_false(admits(c, 3, 2, 100, 50, ROOM_PASS_ALL_S));
    c[0].state = 0;
    assert_true(admits(c, 3, 1, 100, 0, 0));
}

static struct room_claim on(uint64_t device, int state, int ticket, uint64_t host_own, uint64_t host_shared)
{
    struct room_claim c = claim(state, ticket, 10, 10, (uint64_t)ticket);

    c.device = device;
    c.host_own = host_own;
    c.host_shared = host_shared;
    return c;
}

/* Devices are apart, their machine is one. */
static void test_host(void **state)
{
    struct room_claim c[] = {on(GPU, ROOM_IN, 1, 30, 10), on(8, ROOM_IN, 2, 20, 10), on(GPU, ROOM_WAITS, 3, 25, 10),
                             on(8, ROOM_WAITS, 4, 20, 5)};

    (void)state;
    assert_int_equal(room_sum(c, 4, -1, GPU).device, 20);
    assert_int_equal(room_sum(c, 4, -1, 8).device, 20);
    assert_int_equal(room_sum(c, 4, -1, GPU).host, 70);
    assert_int_equal(room_sum(c, 4, 2, GPU).host, 105);
    assert_true(admits(c, 4, 2, 100, 105, 0));
    assert_false(admits(c, 4, 2, 100, 104, 0)); /* the machine is full, though the device is not */
    assert_true(admits(c, 4, 2, 100, 0, 0));    /* nobody knows how large the machine is */
    assert_false(admits(c, 4, 2, 39, 200, 0));  /* the device is full, though the machine is not */
    assert_true(admits(c, 4, 3, 100, 95, 0));
    c[2].group = c[0].group; /* of one task: one reference */
    assert_int_equal(room_sum(c, 4, 2, GPU).host, 95);
}

/* Who waits for the machine is not overtaken for ever by those of other devices; who waits for its device is. */
static void test_host_order(void **state)
{
    struct room_claim c[] = {on(GPU, ROOM_IN, 1, 30, 0), on(GPU, ROOM_WAITS, 2, 80, 0), on(8, ROOM_WAITS, 3, 20, 0)};

    (void)state;
    assert_true(admits(c, 3, 2, 100, 100, 1));
    assert_false(admits(c, 3, 2, 100, 100, ROOM_PASS_S));
    c[1].host_own = 20;
    c[1].own = 500; /* it waits for its device alone */
    assert_false(admits(c, 3, 1, 100, 100, ROOM_PASS_S));
    assert_true(admits(c, 3, 2, 100, 100, ROOM_PASS_ALL_S));
    c[1].host_own = ROOM_ALL;
    assert_true(admits(c, 3, 2, 100, 100, ROOM_PASS_S));
    assert_false(admits(c, 3, 2, 100, 100, ROOM_PASS_ALL_S));
    c[0].state = 0;
    assert_true(admits(c, 3, 1, 100, 100, 0)); /* all of it, with nobody there */
    c[2].state = ROOM_IN;
    assert_false(admits(c, 3, 1, 100, 100, 0)); /* not beside a job of another device */
}

static void test_expected(void **state)
{
    const struct room_budget b = {(uint64_t)128 << 30, 6400}, blind = {(uint64_t)128 << 30, 0}, small = {3200, 6400};
    const struct room_need most = {0, 0, 150, 300, false}, none = {0};
    const size_t context = ROOM_CONTEXT_BYTES, process = ROOM_PROCESS_BYTES;
    struct room_need seen = {7, 0, 0, 120, false}, n;

    (void)state;
    n = room_expect(NULL, &b, &none);
    assert_true(n.own == context + ((size_t)1 << 30) && n.shared == context + ((size_t)2 << 30) && n.blind);
    assert_true(n.host_own == process && n.host_shared == process);
    n = room_expect(NULL, &b, &most);
    assert_true(n.host_own == 150 && n.host_shared == 300); /* no process may have more */
    n = room_expect(&seen, &b, &most);
    assert_true(n.own == 7 && n.shared == context + ((size_t)2 << 30) && n.host_shared == 120);
    assert_int_equal(n.host_own, 120); /* it makes the same model */
    seen.host_shared = 280;
    assert_int_equal(room_expect(&seen, &b, &most).host_own, 150);
    seen.host_own = 5;
    assert_int_equal(room_expect(&seen, &b, &most).host_own, 5);
    assert_true(room_expect(&seen, &b, &most).blind);
    seen.shared = 8;
    assert_false(room_expect(&seen, &b, &most).blind);
    n = room_expect(NULL, &small, &most);
    assert_true(n.own == 400 && n.shared == 200); /* a context alone would be more than all of it */
    n = room_expect(NULL, &blind, &most);
    assert_true(n.host_own == 0 && n.host_shared == 0);
    assert_int_equal(room_host_budget((uint64_t)128 << 30), (uint64_t)96 << 30);
}

/* What nobody knows, and what holds little beside its contexts, is large on no device; half of one is. */
static void test_large(void **state)
{
    (void)state;
    for (uint64_t gib = 4; gib <= 128; gib++) {
        const struct room_budget b = {gib << 30, 0};
        const struct room_need few = {(600 << 20) + (20 << 20), (600 << 20) + (20 << 20), 0, 0, false};
        struct room r = {.fd = 1, .budget = b.device, .need = room_expect(NULL, &b, &(struct room_need){0})};

        assert_false(room_is_large(&r));
        r.need = few;
        assert_false(room_is_large(&r));
        r.need.own += b.device / 2;
        assert_true(room_is_large(&r));
        r.fd = 0;
        assert_false(room_is_large(&r));
    }
}

/* Every job fits once it is alone: with any claims, waiting in any order, somebody can always come in. */
static void test_no_deadlock(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct room_claim c[6];
        bool any = false;

        for (int i = 0; i < 6; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            c[i] = on((seed >> 33) % 2, ROOM_WAITS, i + 1, (seed >> 35) % 8 == 0 ? ROOM_ALL : (seed >> 38) % 150,
                      (seed >> 45) % 60);
            c[i].own = (seed >> 50) % 150;
        }
        for (int i = 0; i < 6; i++)
            any = any || admits(c, 6, i, 100, 100, (double)(round % 3) * (ROOM_PASS_ALL_S - ROOM_PASS_S));
        assert_true(any);
    }
}

static struct room_need need(size_t own)
{
    return (struct room_need){.own = own};
}

/* As room_take, of a device with a budget of 100 and a machine that nobody knows. */
static int take(const char *device, const struct room_need *n, uint64_t group, void (*make_room)(void *), void *ctx,
                struct room *r, struct err *e)
{
    return room_take(device, &(struct room_budget){100, 0}, n, group, make_room, ctx, r, e);
}

/* A claim becomes larger where there is room beside the others, at once, and never smaller. */
static void test_grows(void **state)
{
    struct room a = {0}, b = {0}, mate = {0}, nothing = {0};
    struct room_need n = {.own = 20, .shared = 10}, more = {.own = 50, .shared = 5, .host_own = 7};
    struct room_need over = need(61), full = need(60);
    struct err e = ERR_INIT;

    (void)state;
    assert_true(room_grow(&nothing, &more));
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &a, &e), 0);
    assert_int_equal(take("gpu", &n, 2, NULL, NULL, &b, &e), 0);
    assert_false(room_grow(&a, &over)); /* 61 + 10 + 30 */
    assert_int_equal(a.need.own, 20);
    assert_true(room_grow(&a, &full));
    assert_true(a.need.own == 60 && a.need.shared == 10);
    assert_false(room_grow(&b, &(struct room_need){.own = 21}));
    room_drop(&a);
    assert_true(room_grow(&b, &more));
    assert_true(b.need.own == 50 && b.need.shared == 10 && b.need.host_own == 7);
    assert_true(room_grow(&b, &n)); /* it has that */
    assert_int_equal(b.need.own, 50);
    assert_int_equal(take("gpu", &n, 2, NULL, NULL, &mate, &e), 0); /* of the same group: 50 + 20 + 10 */
    assert_true(room_grow(&mate, &(struct room_need){.shared = 30}));
    assert_false(room_grow(&b, &(struct room_need){.shared = 31}));
    room_drop(&mate);
    assert_true(room_grow(&b, &(struct room_need){.own = 500})); /* nobody else is there */
    room_shrink(&b, &(struct room_need){.own = 20}); /* it claims everything */
    assert_int_equal(b.need.own, 500);
    room_drop(&b);
}

/* A claim shrinks to what is known, and others come in at once. */
static void test_shrinks(void **state)
{
    struct room a = {0}, b = {0}, nothing = {0};
    struct room_need n = {.own = 60, .shared = 30, .host_own = 9};
    struct err e = ERR_INIT;

    (void)state;
    room_shrink(&nothing, &n);
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &a, &e), 0);
    room_shrink(&a, &(struct room_need){.own = 70, .shared = 10, .host_own = 0});
    assert_true(a.need.own == 60 && a.need.shared == 10 && a.need.host_own == 9);
    room_shrink(&a, &(struct room_need){.own = 5});
    assert_int_equal(take("gpu", &(struct room_need){.own = 85}, 2, NULL, NULL, &b, &e), 0); /* 5 + 10 + 85: it does not wait */
    assert_false(room_grow(&a, &(struct room_need){.own = 6}));
    room_drop(&a);
    room_drop(&b);
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &a, &e), 0);
    a.wide = true; /* what is known did not suffice */
    room_shrink(&a, &(struct room_need){.own = 5, .shared = 10});
    assert_true(a.need.own == 60 && a.need.shared == 10);
    room_drop(&a);
}

static void test_estimated(void **state)
{
    const size_t gib = (size_t)1 << 30;
    struct room_need n = room_estimate(gib, 2 * gib, 4 * gib);

    (void)state;
    assert_true(n.own == ROOM_CONTEXT_BYTES + 10 * gib && n.shared == 31 * gib / 2);
    assert_true(room_covers(&n, &n));
    assert_false(room_covers(&(struct room_need){5, 5, 5, 5, false}, &(struct room_need){.host_shared = 6}));
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
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &a, &e), 0);
    assert_false(room_wanted("gpu", 100));
    assert_int_equal(take("gpu", &n, 2, count_call, &a, &b, &e), 0);
    assert_int_equal(called, 1);
    assert_int_equal(a.fd, 0);
    assert_int_equal(take("other", &n, 1, NULL, NULL, &a, &e), 0); /* another device is another budget */
    room_drop(&a);
    room_drop(&b);
    n = need(100);
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &a, &e), 0);
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

        if (take("gpu", &n, 1, NULL, NULL, &mine, NULL) == 0 && write(up[1], "1", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(up[0], &c, 1), 1);
    if ((waiter = fork()) == 0) {
        struct room mine = {0};

        take("gpu", &all, 2, NULL, NULL, &mine, NULL);
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
    assert_int_equal(take("gpu", &n, 1, NULL, NULL, &r, &e), 0);
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

    if (take("gpu", &n, (uint64_t)(uintptr_t)arg, NULL, NULL, &r, NULL) < 0)
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

static void *note_and_recall(void *arg)
{
    uintptr_t lost = 0;

    for (size_t i = 1; i <= 50; i++) {
        struct room_need n = {.own = i * 2 + (size_t)(uintptr_t)arg}, got = {0};

        room_note("noted", "strict", &n);
        lost += !room_recall("noted", "strict", &got) || got.own < n.own;
    }
    return (void *)lost;
}

/* What one thread has noted no other one takes away, not for a moment. */
static void test_notes_of_threads(void **state)
{
    pthread_t t[THREADS];
    void *lost;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, note_and_recall, (void *)(uintptr_t)(i % 2)), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &lost);
        assert_null(lost);
    }
}

static void test_notes(void **state)
{
    struct room_need n = {0}, big = {10, 5, 0, 1, false}, small = {3, 7, 2, 0, false};

    (void)state;
    assert_false(room_recall("task", "strict", &n));
    room_note("task", "strict", &(struct room_need){0});
    assert_false(room_recall("task", "strict", &n));
    room_note("task", "strict", &big);
    room_note("task", "strict", &small);
    assert_true(room_recall("task", "strict", &n));
    assert_true(n.own == 10 && n.shared == 7 && n.host_own == 2 && n.host_shared == 1);
    assert_false(room_recall("task", "kernelbench", &n));
    room_note_estimate("other", "strict", &(struct room_need){.own = 90, .shared = 80, .host_own = 70});
    assert_true(room_recall("other", "strict", &n));
    assert_true(n.own == 90 && n.shared == 80 && n.host_own == 70 && n.host_shared == 0);
    room_note("other", "strict", &(struct room_need){.own = 9}); /* what was seen counts, though it is less */
    assert_true(room_recall("other", "strict", &n));
    assert_true(n.own == 9 && n.shared == 80);
}

/* The machine's memory is what it was when the first one came, for all who come while anybody is in. */
static void test_one_machine(void **state)
{
    const struct room_need n = {.own = 1, .host_own = 60};
    struct room a = {0}, b = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(room_take("gpu", &(struct room_budget){100, 120}, &n, 1, NULL, NULL, &a, &e), 0);
    called = 0;
    assert_int_equal(room_take("other", &(struct room_budget){100, 10}, &n, 2, count_call, &a, &b, &e), 0); /* now it has less */
    assert_int_equal(called, 0);
    room_drop(&a);
    room_drop(&b);
    assert_int_equal(room_take("gpu", &(struct room_budget){100, 70}, &n, 1, NULL, NULL, &a, &e), 0);
    assert_int_equal(room_take("other", &(struct room_budget){100, 1000}, &n, 2, count_call, &a, &b, &e), 0);
    assert_int_equal(called, 1); /* it did not fit before the first one went */
    room_drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),     cmocka_unit_test(test_order),       cmocka_unit_test(test_host),
        cmocka_unit_test(test_expected), cmocka_unit_test(test_host_order),  cmocka_unit_test(test_no_deadlock),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_small_ones_pass), cmocka_unit_test(test_blind_claims),
        cmocka_unit_test(test_small_ones_pass_beside_large_ones),
        cmocka_unit_test(test_waits),    cmocka_unit_test(test_killed),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_notes),    cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_grows), cmocka_unit_test(test_shrinks),    cmocka_unit_test(test_estimated),   cmocka_unit_test(test_order_of_all),
        cmocka_unit_test(test_notes_of_threads),
    };
    char folder[] = "/tmp/test_room.XXXXXX";

    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
