/* test_exec.c - calls of forward whose values lie in shared device memory, without a GPU: on the host backend and on
 * the cuda backend over the fake driver (tests/device/fake_cuda.c). The candidate's process is a thread of this
 * test: honest, wrong, silent, or hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/job.h"
#include "eval/record.h"

#define N 100
#define TASK "class Model: pass\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n"

enum manner { HONEST, WRONG, SILENT, CHANGES_INPUT, OUTSIDE, UNALIGNED, LARGER, REFUSES, FULL, LATE };

struct peer {
    int fd;
    enum manner manner;
    int slow_calls; /* so many calls, from the first on, take 0.4 s */
    bool open_ends; /* something was mapped that the judge cannot clear */
    float *in, *out;
};

static json_t *tensor(const char *dtype, int n, int item, int offset)
{
    return json_pack("{s:s,s:s,s:[i],s:[i],s:i,s:i}", "t", "tensor", "dtype", dtype, "shape", n, "strides", 1, "offset", offset,
                     "nbytes", n * item);
}

static void map(struct peer *p, const json_t *req, const int *fds)
{
    float **to[] = {&p->in, &p->out};
    const char *names[] = {"inputs", "outputs"};

    for (int i = 0; i < 2; i++) {
        const json_t *spec = json_object_get(req, names[i]);
        size_t n = (size_t)json_i64(spec, "capacity", 0);

        p->open_ends |= (size_t)json_i64(spec, "size", 0) != n;
        *to[i] = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
        close(fds[i]);
    }
}

static json_t *forward(struct peer *p)
{
    int n = p->manner == LARGER ? 1 << 24 : N, at = p->manner == OUTSIDE ? 1 << 20 : p->manner == UNALIGNED ? 2 : 0;

    if (p->manner == LATE)
        usleep(700000);
    if (p->slow_calls-- > 0)
        usleep(400000);
    for (int i = 0; i < N && p->manner != SILENT; i++)
        p->out[i] = p->in[i] > 0 ? p->in[i] : 0;
    if (p->manner == WRONG)
        p->out[17] += 1;
    if (p->manner == CHANGES_INPUT)
        p->in[3] += 1;
    return json_pack("{s:s,s:o,s:[],s:[],s:i,s:i,s:i,s:{},s:{},s:[],s:[]}", "op", "result", "output",
                     tensor("float32", n, 4, at), "changed", "on_host", "to_host", 0, "to_device", 0, "found", 0,
                     "trace", "launches", "findings", "replaced");
}

static void *serve(void *arg)
{
    struct peer *p = arg;
    struct frame f;
    int fds[2], n;

    while (frame_recv_fds(p->fd, 0, 0, 0, &f, fds, 2, &n, NULL, NULL) == 0) {
        const char *op = json_str(f.head, "op", "");
        json_t *reply;

        if (!strcmp(op, "run"))
            reply = forward(p);
        else if (p->manner == REFUSES || p->manner == FULL)
            reply = json_pack("{s:s,s:s,s:b}", "op", "refused", "message", "no such call", "memory", p->manner == FULL);
        else
            map(p, f.head, fds), reply = json_pack("{s:s}", "op", "ok");
        frame_send(p->fd, reply, NULL, 0, 0, NULL, NULL);
        json_decref(reply);
        frame_free(&f);
    }
    return NULL;
}

/* ---- the judge's side ---- */

struct bench {
    struct desk_common common;
    struct desk desk;
    struct device_buf master;
    struct ref_draw draw;
    struct reference ref;
    struct job job;
    struct backend timed; /* whose run time is shared */
    struct server server;
    struct session session;
    struct child child;
    struct eval_options opt;
    struct task task;
    struct peer peer;
    pthread_t thread;
    json_t *trees[3], *noise;
};

static void fill_master(struct bench *b)
{
    float x[N], y[N];
    double z[N];
    struct err e = ERR_INIT;

    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * 37 % N) - 50;
        z[i] = y[i] = x[i] > 0 ? x[i] : 0;
    }
    assert_int_equal(desk_alloc(&b->desk, 2048, DEVICE_PLAIN, &b->master, &e), 0);
    assert_int_equal(device_upload(&b->master, 0, x, sizeof x, &e), 0);
    assert_int_equal(device_upload(&b->master, 448, y, sizeof y, &e), 0);
    assert_int_equal(device_upload(&b->master, 896, z, sizeof z, &e), 0);
}

static void open_bench(struct bench *b, const char *device, enum manner m)
{
    const struct backend row = {.name = "test", .values = device};
    struct err e = ERR_INIT;
    int pair[2];

    memset(b, 0, sizeof *b);
    desk_init(&b->desk, &b->common);
    assert_int_equal(desk_open(&b->desk, &row, NULL), 1);
    fill_master(b);
    b->trees[0] = json_pack("{s:s,s:[o]}", "t", "list", "v", tensor("float32", N, 4, 0));
    b->trees[1] = tensor("float32", N, 4, 0);
    b->trees[2] = tensor("float64", N, 8, 0);
    b->noise = json_pack("[{s:f,s:f,s:f,s:f,s:s}]", "n1", 0.0, "n2", 0.0, "max_abs", 49.0, "fan_in", 1.0, "dtype", "float32");
    b->draw = (struct ref_draw){.regime = "normal", .noise = b->noise, .mem = &b->master, .kept = true, .size = 2048};
    b->draw.inputs = (struct section){b->trees[0], NULL, 448, &b->master, 0};
    b->draw.eager = (struct section){b->trees[1], NULL, 448, &b->master, 448};
    b->draw.oracle = (struct section){b->trees[2], NULL, 832, &b->master, 896};
    b->ref = (struct reference){.desk = &b->desk, .draws = &b->draw, .n_draws = 1};
    b->opt = EVAL_OPTIONS_DEFAULT;
    assert_int_equal(task_make("t", TASK, strlen(TASK), &b->task, &e), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    b->child = (struct child){.fd = pair[0]};
    b->peer = (struct peer){.fd = pair[1], .manner = m};
    b->timed = (struct backend){.name = "test", .timed = true};
    b->server.backend = &b->timed;
    share_init(&b->server.share);
    b->session = (struct session){.child = &b->child, .opt = &b->opt, .server = &b->server};
    b->job = (struct job){.ref = &b->ref, .session = &b->session, .opt = &b->opt, .task = &b->task};
    assert_int_equal(pthread_create(&b->thread, NULL, serve, &b->peer), 0);
}

static void close_bench(struct bench *b)
{
    exec_free(&b->job);
    close(b->child.fd);
    pthread_join(b->thread, NULL);
    assert_false(b->peer.open_ends);
    close(b->peer.fd);
    desk_free(&b->desk, &b->master);
    share_free(&b->server.share);
    assert_int_equal(b->desk.common->held, 0);
    desk_close(&b->desk);
    task_free(&b->task);
    for (int i = 0; i < 3; i++)
        json_decref(b->trees[i]);
    json_decref(b->noise);
}

/* One call and its comparison: 1 right, 0 wrong. *ret_worst: what is wrong, or NULL; *ret_changed: inputs that
 * changed. */
static int call(struct bench *b, json_t **ret_worst, size_t *ret_changed)
{
    struct exec_call c = {.draw = &b->draw};
    struct err e = ERR_INIT;
    struct frame f;
    double abs = 0, rel = 0;
    int ok;

    *ret_worst = NULL;
    assert_int_equal(exec_run(&b->job, &c, &f, &e), CALL_OK);
    memset(b->peer.out, 0x11, 4 * N); /* whoever writes now is too late */
    ok = correct_compare(&b->job, &b->draw, &f, ret_worst, &abs, &rel, &e);
    *ret_changed = json_array_size(json_object_get(f.head, "changed"));
    frame_free(&f);
    return ok;
}

/* An answer after 0.7 s where 0.5 are allowed: too late alone, in time beside somebody else, who had half of the device. */
static void test_time_is_shared(void **state)
{
    struct exec_call c;
    struct err e = ERR_INIT;
    struct bench b;
    struct frame f;

    (void)state;
    for (int others = 0; others < 2; others++) {
        open_bench(&b, "host", LATE);
        b.opt.timeout_s = 0.5;
        c = (struct exec_call){.draw = &b.draw};
        if (others)
            share_begin(&b.server.share, now_s());
        assert_int_equal(exec_run(&b.job, &c, &f, &e), others ? CALL_OK : CALL_TIMEOUT);
        assert_true(b.session.used_s > (others ? 0.34 : 0.49));
        if (others)
            frame_free(&f);
        close_bench(&b);
    }
}

static void expect(const char *device, enum manner m, int want, const char *kind, const char *detail, size_t want_changed)
{
    struct bench b;
    json_t *worst;
    size_t changed;

    open_bench(&b, device, m);
    for (int i = 0; i < 2; i++) { /* the second call finds its room made */
        assert_int_equal(call(&b, &worst, &changed), want);
        assert_string_equal(json_str(worst, "kind", ""), kind);
        assert_non_null(strstr(json_str(worst, "detail", ""), detail));
        assert_int_equal(changed, want_changed);
        json_decref(worst);
    }
    close_bench(&b);
}

static void all_manners(const char *device)
{
    expect(device, HONEST, 1, "", "", 0);
    expect(device, WRONG, 0, "values", "", 0);
    expect(device, SILENT, 0, "values", "", 0); /* what lies there is poison, not the answer of the call before */
    expect(device, CHANGES_INPUT, 1, "", "", 1);
    expect(device, OUTSIDE, 0, "structure", "cannot be read", 0);
    expect(device, UNALIGNED, 0, "structure", "cannot be read", 0);
    expect(device, LARGER, 0, "shape", "expected (100,), got (16777216,)", 0);
}

static void test_on_the_host(void **state)
{
    (void)state;
    all_manners("host");
}

static void test_on_a_fake_gpu(void **state)
{
    (void)state;
    all_manners("cuda");
}

/* Where the other process cannot map, the try is the machine's fault, with this lack. ways: desk_open's answer from then on. */
static void cannot_map(struct bench *b, enum err_lack lack, int ways)
{
    const struct backend row = {.name = "test", .values = "host"};
    struct exec_call c = {.draw = &b->draw};
    struct err e = ERR_INIT;
    struct frame f;

    assert_int_equal(exec_run(&b->job, &c, &f, &e), CALL_INFRA);
    if (lack == LACK_NONE)
        assert_non_null(strstr(e.msg, "no such call"));
    assert_int_equal(e.lack, lack);
    assert_int_equal(desk_open(&b->desk, &row, NULL), ways);
}

/* The next try goes without. */
static void test_refused(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, "host", REFUSES);
    cannot_map(&b, LACK_NONE, 0);
    close_bench(&b);
}

/* One that says so where others could map: they go on as they did. */
static void test_refused_by_one(void **state)
{
    struct exec_call c;
    struct err e = ERR_INIT;
    struct frame f;
    struct bench b;

    (void)state;
    open_bench(&b, "host", HONEST);
    c = (struct exec_call){.draw = &b.draw};
    assert_int_equal(exec_run(&b.job, &c, &f, &e), CALL_OK);
    frame_free(&f);
    exec_free(&b.job); /* another candidate's turn */
    b.peer.manner = REFUSES;
    cannot_map(&b, LACK_NONE, 1);
    close_bench(&b);
}

/* Where it cannot for lack of memory, it is not the way that values travel. */
static void test_full(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, "host", FULL);
    cannot_map(&b, LACK_DEVICE, 1);
    close_bench(&b);
}

/* A whole stage: two regimes of four draws each, by a candidate whose first calls are slow. Returns how many it got. */
static int64_t draws_of_a_slow_one(int slow_calls, bool *ret_slow)
{
    struct ref_draw draws[8];
    struct err e = ERR_INIT;
    struct bench b;
    int64_t n;

    open_bench(&b, "host", HONEST);
    b.peer.slow_calls = slow_calls;
    for (int i = 0; i < 8; i++) {
        draws[i] = b.draw;
        draws[i].regime = i < 4 ? "normal" : "uniform";
        draws[i].trial = i % 4;
    }
    b.ref.draws = draws;
    b.ref.n_draws = 8;
    b.ref.ended = true;
    b.ref.mode = "train";
    b.session.route = "litetorch";
    b.session.dropped = json_array();
    b.session.diagnostics = json_array();
    b.job.server = &b.server;
    b.job.code = "";
    b.job.ready = true;
    b.job.params = "none";
    b.job.trace_init = json_object();
    b.job.trace_forward = json_object();
    b.job.findings = json_array();
    b.job.replaced = json_array();
    b.job.rec = record_new("t", "0", "c", "0", "test", "strict");
    if (stage_correct.run(&b.job, &e) < 0 || record_reason(b.job.rec))
        fail_msg("%s %s", e.msg, json_str(record_reason(b.job.rec), "message", ""));
    n = json_i64(json_object_get(b.job.rec, "correctness"), "trials", 0);
    *ret_slow = b.job.slow;
    json_decref(b.job.rec);
    json_decref(b.session.dropped);
    json_decref(b.session.diagnostics);
    json_decref(b.session.trace_seen);
    json_decref(b.job.trace_init);
    json_decref(b.job.trace_forward);
    json_decref(b.job.launches);
    json_decref(b.job.findings);
    json_decref(b.job.replaced);
    close_bench(&b);
    return n;
}

/* Who is slow only while that saves it draws gets them all in the end, and is not known as slow. */
static void test_draws_of_a_slow_one(void **state)
{
    bool slow;

    (void)state;
    assert_int_equal(draws_of_a_slow_one(0, &slow), 8);
    assert_false(slow);
    assert_int_equal(draws_of_a_slow_one(99, &slow), 4);
    assert_true(slow);
    assert_int_equal(draws_of_a_slow_one(3, &slow), 8);
    assert_false(slow);
}

/* Bytes that a request reads are where the other side looks for them. */
static void test_bytes(void **state)
{
    struct section s;
    struct err e = ERR_INIT;
    struct frame f;
    struct bench b;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    open_bench(&b, "host", HONEST);
    s = (struct section){b.trees[1], (char *)x, sizeof x, NULL, 0};
    assert_int_equal(exec_bytes(&b.job, &s, json_pack("{s:s}", "op", "run"), &f, &e), CALL_OK);
    assert_memory_equal(b.peer.in, x, sizeof x);
    frame_free(&f);
    close_bench(&b);
}

/* The cuda backend looks for its kernels in lib/ beside the program; the fake driver takes any text for them. */
static bool fake_gpu(void)
{
    struct err e = ERR_INIT;
    char exe[PATH_MAX], *lib, *path, *driver = path_lib("libfakecuda.so");
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n < 0 ? 0 : n] = 0;
    *strrchr(exe, '/') = 0;
    lib = path_join(exe, "lib");
    path = path_join(lib, "judge.fatbin");
    if (!driver || dir_make(lib, &e) < 0 || file_write(path, "fake", 5, &e) < 0)
        return false;
    setenv("MUSACODER_LIBCUDA", driver, 1);
    free(path);
    free(lib);
    free(driver);
    return true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_shared), cmocka_unit_test(test_on_the_host),
        cmocka_unit_test(test_on_a_fake_gpu),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_by_one),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_draws_of_a_slow_one),
    };

    if (!fake_gpu())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
