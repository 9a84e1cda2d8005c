/* test_measure.c - two sides timed against each other for real, on the host: the baseline role of the fork server
 * with the CPU as its device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/perf/measure.h"
#include "eval/schedule/schedule.h"
#include "proc/forkserver.h"

static struct forkserver *fs;

static int start(void **state)
{
    struct forkserver_spec s = {.no_jail = !jail_probe()->enough};
    struct err e = ERR_INIT;
    char *python = path_python(&e);

    (void)state;
    free(python);
    if (!python) {
        print_message("skipped: %s\n", e.msg);
        exit(0);
    }
    if (forkserver_start(&s, &fs, &e) < 0) {
        print_message("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    forkserver_stop(fs);
    return 0;
}

#define TASK(forward) \
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        " forward "\n" \
    "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"

static json_t *must_ask(struct child *c, json_t *req, const void *blob, size_t n)
{
    struct rpc r = {.fd = c->fd, .blob = blob, .n_blob = n, .deadline = now_s() + 60};
    struct err e = ERR_INIT;
    struct frame f;
    json_t *head;

    if (rpc(&r, req, &f, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    if (!strcmp(json_str(f.head, "op", ""), "error"))
        fail_msg("%s: %s", json_str(f.head, "type", ""), json_str(f.head, "message", ""));
    head = json_incref(f.head);
    frame_free(&f);
    return head;
}

/* A side whose input is n floats 1, 2, 3, ... */
static struct child *side(const char *source, int n)
{
    struct child_spec s = {.role = "baseline"};
    struct child *c;
    struct err e = ERR_INIT;
    float *x = calloc((size_t)n, sizeof *x);
    json_t *tree;

    if (forkserver_spawn(fs, &s, &c, &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < n; i++)
        x[i] = (float)(i + 1);
    json_decref(must_ask(c, json_pack("{s:s,s:s,s:{s:s,s:[]},s:i,s:s,s:s,s:b}", "op", "load", "source", source, "init",
                                      "t", "list",
                                      "v", "seed", 0, "mode", "eval", "device", "cpu", "tf32", 0), NULL, 0));
    tree = json_pack("{s:s,s:[{s:s,s:s,s:[i],s:[i],s:i,s:i}]}", "t", "list", "v", "t", "tensor", "dtype", "float32",
                     "shape", n, "strides", 1, "offset", 0, "nbytes", n * 4);
    json_decref(must_ask(c, json_pack("{s:s,s:o}", "op", "put", "inputs", tree), x, (size_t)n * 4));
    free(x);
    return c;
}

static void test_a_slower_side_is_slower(void **state)
{
    struct child *a = side(TASK("return x + 1"), 4099);
    struct child *b = side(TASK("y = x\n        for _ in range(200): y = y * 1.001\n        return y[:4097], 7"), 4099);
    struct measure_side one = {.fd = a->fd, .which = "eager", .timeout_s = 60};
    struct measure_side two = {.fd = b->fd, .which = "eager", .timeout_s = 60};
    struct measure_plan plan = {.calls = 15};
    struct measure_fault fault;
    struct measure_calls fast, slow;
    struct perf_estimate r;
    struct err e = ERR_INIT;

    (void)state;
    if (measure_pair(&one, &two, &plan, &fault, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(two.calls.n, 15 + MEASURE_ROUNDS * MEASURE_EMPTY);
    measure_calls(&one.calls, TIMING_COLD, &fast);
    measure_calls(&two.calls, TIMING_COLD, &slow);
    assert_int_equal(fast.c.n, 15);
    assert_int_equal(one.calls.n, two.calls.n);
    r = perf_ratio(&slow.c, &fast.c, 1);
    if (!(r.value > 5))
        fail_msg("200 operations against one: %g", r.value);
    for (int i = 0; i < 15; i++)
        assert_true(fast.c.event_ms[i] > 0 && fast.c.span_ms[i] >= fast.c.event_ms[i] && fast.c.round[i] == i / 3);
    for (int i = 1; i < two.calls.n; i++)
        assert_true(two.calls.v[i].seed != two.calls.v[i - 1].seed); /* each call has data of its own */
    measure_calls_free(&fast);
    measure_calls_free(&slow);
    measure_side_free(&one);
    measure_side_free(&two);
    child_kill(a);
    child_kill(b);
    child_free(a);
    child_free(b);
}

/* As many calls as the published scripts make, and no longer than two seconds for it; strict has fewer. */
static void test_how_many_calls(void **state)
{
    static const struct {
        bool published;
        double call_s;
        int want;
    } rows[] = {{true, 1e-5, 100}, {true, 0.01, 100}, {true, 0.025, 80}, {true, 0.1, 20}, {true, 0.5, 3}, {true, 2, 2},
                {false, 1e-5, 60}, {false, 0.004, 50}, {false, 0.025, 30}, {false, 0.1, 20}, {false, 0.5, 3},
                {false, 2, 2}};
    struct measure_plan p = MEASURE_PLAN_DEFAULT;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p.published = rows[i].published;
        assert_int_equal(measure_usual(&p), p.published ? 100 : 30);
        assert_int_equal(measure_cold_calls(&p, rows[i].call_s), rows[i].want);
    }
    p.calls = 7;
    assert_int_equal(measure_usual(&p), 7);
}

static void test_published_calls(void **state)
{
    struct child *a = side(TASK("return x + 1"), 64);
    struct measure_plan plan = {.published = true};
    struct measure_side one = {.fd = a->fd, .which = "eager", .timeout_s = 60}, two = one;
    struct measure_fault fault;
    struct measure_calls c;
    struct err e = ERR_INIT;

    (void)state;
    if (measure_pair(&one, &two, &plan, &fault, &e) < 0)
        fail_msg("%s", e.msg);
    measure_calls(&two.calls, TIMING_COLD, &c);
    assert_int_equal(c.c.n, MEASURE_PUBLISHED);
    measure_calls_free(&c);
    measure_side_free(&one);
    measure_side_free(&two);
    child_kill(a);
    child_free(a);
}

/* Empty calls do all that others do but forward: of tasks of gigabytes there are few. */
static void test_few_empty_calls_of_gigabytes(void **state)
{
    static const struct {
        double in; /* GiB */
        int want;
    } rows[] = {{0, MEASURE_EMPTY}, {0.75, MEASURE_EMPTY}, {1, MEASURE_EMPTY}, {2, 10}, {3, 6}, {8, 5}, {40, 5}};
    struct child *a = side(TASK("return x + 1"), 64);
    struct measure_plan few = {.calls = 5, .input_bytes = (size_t)8 << 30};
    struct measure_side one = {.fd = a->fd, .which = "eager", .timeout_s = 60}, two = one;
    struct measure_fault fault;
    struct measure_calls empty;
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct measure_plan p = {.input_bytes = (size_t)(rows[i].in * (1 << 30))};

        assert_int_equal(measure_empty(&p), rows[i].want);
    }
    if (measure_pair(&one, &two, &few, &fault, &e) < 0)
        fail_msg("%s", e.msg);
    measure_calls(&one.calls, TIMING_NULL, &empty);
    assert_int_equal(empty.c.n, MEASURE_EMPTY_LEAST * MEASURE_ROUNDS);
    measure_calls_free(&empty);
    measure_calls(&two.calls, TIMING_NULL, &empty);
    assert_int_equal(empty.c.n, MEASURE_EMPTY_LEAST * MEASURE_ROUNDS);
    measure_calls_free(&empty);
    measure_side_free(&one);
    measure_side_free(&two);
    child_kill(a);
    child_free(a);
}

static void test_the_pad_is_bounded_whatever_a_side_says(void **state)
{
    static const struct {
        double a, b;
        int want;
    } rows[] = {{0, 0, 200}, {40, 166, 200}, {40, 170, 204}, {170, 40, 204}, {200, 800, 960}, {1e9, 10, 1000},
                {-1e300, 300, 360}, {NAN, 300, 360}, {INFINITY, 1, 1000}, {-5, -INFINITY, 200}, {NAN, NAN, 200}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(measure_pad_us(rows[i].a, rows[i].b), rows[i].want);
}

/* A side whose calls take as long as is said here, on no clock. */
struct told_side {
    struct measure_side *side;
    double first_s, other_s;
    int blocks, calls;
};

static int tell_block(void *ctx, const struct timing_block *b, struct timed_calls *calls, struct err *e)
{
    struct told_side *s = ctx;

    (void)e;
    s->blocks++;
    calls->v = xrealloc(calls->v, (size_t)(calls->n + b->n) * sizeof *calls->v);
    for (int i = 0; i < b->n; i++) {
        double ms = 1e3 * (s->calls++ ? s->other_s : s->first_s);

        calls->v[calls->n++] = (struct timed_call){.mode = b->mode, .round = b->round, .span_ms = ms, .event_ms = ms};
        s->side->host_us = fmax(s->side->host_us, 1e3 * ms);
    }
    calls->capacity = calls->n;
    return 0;
}

/* How many blocks nobody counted; *ret_counted: calls that somebody did. */
static int warming_up(double first_s, double other_s, double known_s, int *ret_counted, int *ret_pad)
{
    struct measure_side one = {.which = "eager", .timeout_s = 60, .replay = tell_block}, two = one;
    struct told_side fast = {.side = &one, .first_s = 1e-5, .other_s = 1e-5};
    struct told_side told = {.side = &two, .first_s = first_s, .other_s = other_s};
    struct measure_plan plan = {.calls = 5};
    struct measure_fault fault;
    struct measure_calls cold;
    struct err e = ERR_INIT;
    int rounds;

    one.ctx = &fast, two.ctx = &told, two.known_s = known_s;
    if (measure_pair(&one, &two, &plan, &fault, &e) < 0)
        fail_msg("%s", e.msg);
    measure_calls(&two.calls, TIMING_COLD, &cold);
    *ret_counted = cold.c.n;
    rounds = cold.c.round[cold.c.n - 1] + 1;
    measure_calls_free(&cold);
    assert_true(two.host_us > 0);
    assert_int_equal(one.pad_us, two.pad_us);
    *ret_pad = two.pad_us;
    measure_side_free(&one);
    measure_side_free(&two);
    return told.blocks - 2 * rounds; /* each has one of calls and an empty one */
}

static void test_a_slow_side_is_not_warmed_up_for_long(void **state)
{
    int counted, pad;

    (void)state;
    assert_int_equal(warming_up(0.26, 0.26, 2, &counted, &pad), 2);
    assert_int_equal(pad, MEASURE_PAD_MAX_US); /* its host needs longer */
    assert_int_equal(counted, MEASURE_SLOW_ROUNDS);
    assert_int_equal(warming_up(1.02, 1.02, 2, &counted, &pad), 1);
    assert_int_equal(counted, MEASURE_CRAWL_ROUNDS);
    assert_int_equal(warming_up(1.02, 1e-5, 0, &counted, &pad), 2 + 2 + 2);
    assert_int_equal(warming_up(1e-5, 1e-5, 0, &counted, &pad), 2 + 2 + 2);
    assert_int_equal(counted, MEASURE_ROUNDS);
    assert_int_equal(warming_up(0.3, 1e-5, 0, &counted, &pad), 2 + 2 + 2); /* a load */
    assert_int_equal(counted, MEASURE_ROUNDS);
}

/* Ends each block before its first call, and says that all is well. */
#define ANSWERS_ITSELF \
    TASK("return x if x[0] == 1 else lie()") \
    "import os, socket, frame\n" \
    "def lie():\n" \
    "    s = socket.socket(fileno=os.dup(3))\n" \
    "    while True:\n" \
    "        os.write(3, b'MCTE' + bytes(20))\n" \
    "        frame.send(s, {'op': 'timed'})\n" \
    "        while frame.recv(s)[0]['op'] != 'time':\n" \
    "            frame.send(s, {'op': 'ok'})\n" \
    "        s.recv(24)\n"

static void test_who_failed_is_said(void **state)
{
    struct child *a = side(TASK("return x + 1"), 8);
    struct child *b = side(TASK("return x if x[0] == 1 else x.missing"), 8);
    struct child *c = side(TASK("import os; return x if x[0] == 1 else os._exit(3)"), 8);
    struct child *d = side(TASK("import os; return x if x[0] == 1 else (os.write(3, b'MCTD' * 12), x)[1]"), 8);
    struct child *f = side(ANSWERS_ITSELF, 8);
    struct child *bad[] = {b, c, d, f};
    static const enum frame_fault want[] = {FRAME_OK, FRAME_CLOSED, FRAME_BAD, FRAME_BAD};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct measure_side one = {.fd = a->fd, .which = "eager", .timeout_s = 60};
        struct measure_side two = {.fd = bad[i]->fd, .which = "eager", .timeout_s = 60};
        struct measure_plan plan = {.calls = 5};
        struct measure_fault fault;
        struct err e = ERR_INIT;

        assert_int_equal(measure_pair(&one, &two, &plan, &fault, &e), -1);
        assert_ptr_equal(fault.side, &two);
        if (fault.frame != want[i])
            fail_msg("%d: fault %d, %s", i, (int)fault.frame, e.msg);
        assert_true(!!fault.error == (i == 0));
        if (fault.error)
            assert_string_equal(json_str(fault.error, "type", ""), "AttributeError");
        json_decref(fault.error);
        measure_side_free(&one);
        measure_side_free(&two);
        child_kill(bad[i]);
        child_free(bad[i]);
    }
    child_kill(a);
    child_free(a);
}

/* ---- who holds the device ---- */

static struct {
    pthread_mutex_t lock;
    int sharing, most_sharing, alone;
    bool broken;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct schedule device;

static void *holder(void *arg)
{
    bool alone = arg != NULL;

    for (int i = 0; i < 20; i++) {
        struct device_lock h = {0};
        struct err e = ERR_INIT;

        if (device_lock_take(&device, alone, &h, &e) < 0)
            return (void *)1;
        pthread_mutex_lock(&seen.lock);
        seen.alone += alone;
        seen.sharing += !alone;
        seen.most_sharing = seen.sharing > seen.most_sharing ? seen.sharing : seen.most_sharing;
        seen.broken |= seen.alone > 1 || (seen.alone && seen.sharing);
        pthread_mutex_unlock(&seen.lock);
        usleep(1000);
        pthread_mutex_lock(&seen.lock);
        seen.alone -= alone;
        seen.sharing -= !alone;
        pthread_mutex_unlock(&seen.lock);
        device_lock_drop(&h);
    }
    return NULL;
}

static void *alone(void *arg)
{
    struct device_lock h = {0};

    if (device_lock_take(&device, true, &h, NULL) < 0)
        return (void *)1;
    *(int *)arg = 1;
    device_lock_drop(&h);
    return NULL;
}

/* A second share of one thread must not wait behind somebody who waits for the first one's end. */
static void test_a_share_within_a_share(void **state)
{
    struct device_lock outer = {0}, inner = {0};
    struct err e = ERR_INIT;
    volatile int was_alone = 0;
    pthread_t t;

    (void)state;
    assert_int_equal(device_lock_take(&device, false, &outer, &e), 0);
    assert_int_equal(device_lock_take(&device, true, &inner, &e), -1); /* would wait for itself */
    assert_int_equal(pthread_create(&t, NULL, alone, (void *)&was_alone), 0);
    usleep(50000);
    assert_int_equal(device_lock_take(&device, false, &inner, &e), 0);
    device_lock_drop(&inner);
    assert_int_equal(was_alone, 0);
    device_lock_drop(&outer);
    pthread_join(t, NULL);
    assert_int_equal(was_alone, 1);
}

/* Two that share in turn, so that one always does, until *stop. */
static void *never_gone(void *arg)
{
    struct device_lock h[2] = {{0}};
    bool *stop = arg;
    int rounds = 0;

    while (!__atomic_load_n(stop, __ATOMIC_SEQ_CST) && rounds < 10000) {
        pthread_mutex_lock(&seen.lock);
        seen.broken |= seen.alone > 0;
        pthread_mutex_unlock(&seen.lock);
        if (device_lock_take(&device, false, &h[0], NULL) < 0)
            return (void *)1;
        usleep(3000);
        device_lock_drop(&h[0]);
        rounds++;
    }
    return NULL;
}

static struct {
    pthread_mutex_t lock;
    char order[16]; /* 'a' alone, 's' a share */
    int n;
} log_of = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *logged(void *arg)
{
    bool alone = arg != NULL;
    struct device_lock h = {0};

    if (device_lock_take(&device, alone, &h, NULL) < 0)
        return (void *)1;
    pthread_mutex_lock(&log_of.lock);
    log_of.order[log_of.n++] = alone ? 'a' : 's';
    pthread_mutex_unlock(&log_of.lock);
    usleep(20000);
    device_lock_drop(&h);
    return NULL;
}

/* Sharers come and go and are never all gone: who wants to be alone gets in all the same. */
static void test_patience_ends(void **state)
{
    struct device_lock h = {0};
    pthread_t t[3];
    bool stop = false;
    double t0;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, never_gone, &stop), 0);
    usleep(20000);
    t0 = now_s();
    assert_int_equal(device_lock_take(&device, true, &h, NULL), 0);
    assert_true(now_s() - t0 < 5);
    device_lock_drop(&h);
    __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++) {
        void *rc;
        pthread_join(t[i], &rc);
        assert_null(rc);
    }
}

/* Three that want to be alone, and a sharer that comes before the last of them but after they were kept out: it waits
 * for all three. */
static void test_batch(void **state)
{
    struct device_lock h = {0};
    pthread_t t[4];

    (void)state;
    assert_int_equal(device_lock_take(&device, false, &h, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, logged, i == 2 ? NULL : &t), 0);
        usleep(150000); /* the first two wait when the sharer comes */
    }
    device_lock_drop(&h);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_string_equal(log_of.order, "aaas");
}

static void test_hold(void **state)
{
    pthread_t t[6];
    void *failed;

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&t[i], NULL, holder, i < 2 ? &seen : NULL), 0);
    for (int i = 0; i < 6; i++) {
        pthread_join(t[i], &failed);
        assert_null(failed);
    }
    assert_false(seen.broken);
    assert_true(seen.most_sharing > 1); /* sharers do share */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold), cmocka_unit_test(test_patience_ends), cmocka_unit_test(test_batch),
        cmocka_unit_test(test_a_share_within_a_share),
        cmocka_unit_test(test_a_slower_side_is_slower), cmocka_unit_test(test_how_many_calls),
        cmocka_unit_test(test_published_calls),
        cmocka_unit_test(test_few_empty_calls_of_gigabytes),
        cmocka_unit_test(test_the_pad_is_bounded_whatever_a_side_says),
        cmocka_unit_test(test_a_slow_side_is_not_warmed_up_for_long),
        cmocka_unit_test(test_who_failed_is_said),
    };

    schedule_init(&device, 0, 1);
    return cmocka_run_group_tests(tests, start, stop);
}
