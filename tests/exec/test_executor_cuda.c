/* test_executor_cuda.c - the cuda backend over a driver without a GPU (tests/device/fake_cuda.c): memory at true
 * addresses, launches with a buffer of arguments, replays, timing, faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/mem.h"
#include "fake_client.h"

#define N 1000

static struct executor *x;
static struct front f;
static struct buf image; /* "fake image", or what $MUSACODER_TEST_CUBIN names: then it runs on a GPU */

struct scale {
    uint64_t x, y;
    int n;
    float f;
};

static void must(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

static void executor(void)
{
    const struct executor_options o = {.backend = "cuda", .memory = 1 << 30};
    struct err e = ERR_INIT;

    must(executor_start(&o, &x, &e), &e);
}

static void begin(void (*step)(struct client *, int, struct front_notes *))
{
    struct err e = ERR_INIT;
    char hash[65];
    int fds[2];

    must(executor_context(x, fds, &e), &e);
    must(executor_image(x, image.p, image.n, hash, &e), &e);
    front_start(&f, fds, step);
    for (int i = 0; i < 32; i++) {
        const char pair[3] = {hash[2 * i], hash[2 * i + 1], 0};

        f.notes->image[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

static int launch(struct client *c, struct front_notes *n, const char *name, const struct scale *a)
{
    struct wire_function_info info;
    struct client_launch l = {.grid = {4, 1, 1}, .block = {256, 1, 1}, .args = a, .args_bytes = sizeof *a};
    const void *args[] = {&a->x, &a->y, &a->n, &a->f};
    uint32_t module;
    int code = client_module(c, n->image, &module);

    if (!code)
        code = client_function(c, module, name, (uint32_t)strlen(name), &l.function, &info);
    l.info = &info;
    return code ? code : info.params == 4 ? client_launch_args(c, &l, (void *const *)args) : client_launch(c, &l);
}

static void step_scale(struct client *c, int step, struct front_notes *n)
{
    struct scale a = {n->in, 0, N, 2};
    uint32_t stream, event;

    if (step == 0)
        return;
    n->code = client_alloc(c, N * 4, WIRE_ALLOC_RAW, 0, &n->out);
    a.y = n->out;
    n->code = n->code ? n->code : launch(c, n, "scale", &a);
    client_stream_create(c, 1, 0, &stream);
    client_event_create(c, 0, &event);
    client_event_record(c, event, 0);
    client_event_wait(c, stream, event);
    client_stream_sync(c, stream);
    client_event_destroy(c, event);
    client_stream_destroy(c, stream);
}

static void binding(float start)
{
    struct err e = ERR_INIT;
    float v[N];

    for (int i = 0; i < N; i++)
        v[i] = start + (float)i;
    must(executor_bind(x, f.notes->in, v, sizeof v, 1, &e), &e);
}

static void call(uint32_t k, struct executor_call *ret)
{
    struct err e = ERR_INIT;

    must(executor_call_begin(x, k, &e), &e);
    binding((float)k);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, ret, &e), &e);
}

static int bind_secret(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    (void)tag, (void)addr, (void)part, (void)e;
    for (uint64_t i = 0; i < n / 4; i++)
        ((float *)data)[i] = *(float *)ctx + (float)i;
    return 0;
}

static void expect(float start)
{
    struct err e = ERR_INIT;
    float v[N];

    must(executor_peek(x, f.notes->out, v, sizeof v, &e), &e);
    for (int i = 0; i < N; i++)
        assert_float_equal(v[i], (start + (float)i) * 2, 0);
}

static void test_live_replay_and_time(void **state)
{
    float secret = 50;
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .ctx = &secret};
    double ms[5];
    struct executor_timing t = {.n = 5, .ret_ms = ms, .binding = bind_secret, .ctx = &secret};
    struct executor_call c;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_scale);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    for (uint32_t k = 1; k <= 3; k++) {
        call(k, &c);
        assert_int_equal(c.error, 0);
        assert_string_equal(c.why, "");
        assert_int_equal(f.notes->code, 0);
        expect((float)k);
    }
    front_end(&f);
    must(executor_replay(x, &r, &e), &e);
    assert_string_equal(r.ret_why, "");
    expect(50);
    r.last_call = true;
    for (secret = 60; secret < 63; secret++) {
        must(executor_replay(x, &r, &e), &e);
        expect(secret);
    }
    must(executor_time(x, &t, &e), &e);
    assert_string_equal(t.ret_why, "");
    assert_true(t.ret_clock_ms >= t.ret_sum_ms);
    expect(secret);
}

/* Calls upload more than LOG_MAX, all to one place, while the queue's thread plays it. */
static void step_much(struct client *c, int step, struct front_notes *n)
{
    const uint64_t part = 16 << 20;
    char *v = calloc(1, part);
    uint64_t at = 0;

    if (step)
        n->code = client_alloc(c, part, WIRE_ALLOC_RAW, 0, &at);
    for (uint64_t up = 0; step == 1 && up <= LOG_MAX && !n->code; up += part)
        n->code = client_up(c, at, v, part, 0);
    step_scale(c, step, n);
    free(v);
}

static void test_more_than_a_log_holds_is_lived_and_not_replayed(void **state)
{
    float secret = 50;
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .ctx = &secret};
    struct executor_call c;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_much);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    for (uint32_t k = 1; k <= 2; k++) {
        call(k, &c);
        assert_int_equal(c.error, 0);
        assert_int_equal(f.notes->code, 0);
        expect((float)k);
    }
    front_end(&f);
    assert_int_equal(executor_replay(x, &r, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
}

/* ---- the judge's memory in a life, as streamed tasks have it ---- */

static struct {
    float *inputs, *tile;
    uint64_t at_inputs, at_tile;
    int bound, looked;
} shared;

static float *share(uint64_t inputs, uint64_t *ret_addr)
{
    struct err e = ERR_INIT;
    int fd = memfd_create("shared", 0);
    float *p;

    assert_int_equal(ftruncate(fd, 2 << 20), 0);
    p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    must(executor_share(x, fd, 2 << 20, inputs, ret_addr, &e), &e);
    close(fd);
    return p;
}

static int bind_shared(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    (void)ctx, (void)e;
    assert_true(tag == 1 && addr == shared.at_inputs && n == N * 4);
    shared.bound++;
    for (int i = 0; i < N; i++)
        shared.inputs[i] = (float)(100 * shared.bound + i);
    return 0;
}

/* Of a timed call: the last hundred elements, from which nobody could know. */
static int look_at_tile(void *ctx, uint32_t round, struct err *e)
{
    const struct wire_strided m = {.to = shared.at_tile + 64, .from = f.notes->out + (N - 100) * 4, .to_dtype = DT_F32,
                                   .from_dtype = DT_F32, .dims = 1, .size = {100}, .to_stride = {1},
                                   .from_stride = {1}};

    (void)ctx, (void)round;
    memset(shared.tile, 0, 4096);
    if (executor_tile(x, &m, 400, e) < 0)
        return -1;
    for (int i = 0; i < 100; i++)
        assert_float_equal(shared.tile[16 + i], 2 * shared.inputs[N - 100 + i], 0);
    shared.looked++;
    return 0;
}

static void test_shared_inputs_are_timed(void **state)
{
    struct executor_replay r = {.poison = 0x3c, .bound = bind_shared};
    struct executor_call c;
    struct err e = ERR_INIT;
    double ms[4];

    (void)state;
    if (getenv("MUSACODER_TEST_CUBIN")) /* a GPU takes no memfd */
        skip();
    for (int whole = 0; whole < 2; whole++) {
        struct executor_timing t = {.n = 4, .ret_ms = ms, .bound = bind_shared, .call_end = look_at_tile,
                                    .whole = whole};

        begin(step_scale);
        front_step(&f);
        shared.inputs = share(N * 4, &f.notes->in);
        shared.at_inputs = f.notes->in;
        shared.tile = share(0, &shared.at_tile);
        for (uint32_t k = 1; k <= 3; k++) {
            must(executor_call_begin(x, k, &e), &e);
            must(executor_bound(x, shared.at_inputs, N * 4, 1, &e), &e);
            assert_int_equal(front_step(&f), 0);
            must(executor_call_end(x, &c, &e), &e);
            assert_string_equal(c.why, "");
        }
        front_end(&f);
        shared.bound = shared.looked = 0;
        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(shared.bound, 3);
        shared.bound = 0;
        must(executor_time(x, &t, &e), &e);
        assert_string_equal(t.ret_why, "");
        assert_int_equal(shared.looked, 4);
        assert_int_equal(shared.bound, whole ? 15 : 5); /* the first call finds the pad */
        munmap(shared.inputs, 2 << 20);
        munmap(shared.tile, 2 << 20);
    }
}

static void step_movement(struct client *c, int step, struct front_notes *n)
{
    const int64_t size[2] = {4, 5}, row[2] = {5, 1}, turned[2] = {1, 4};
    const float one = 1.5f;
    const int64_t odd = (1 << 24) + 1;
    const struct client_view a = {n->in, 8, 2, size, row};
    struct client_view t = {0, 8, 2, size, turned}, i64 = {0, 5, 2, size, row};
    int same = 7;

    if (step == 0)
        return;
    client_alloc(c, 80, WIRE_ALLOC_POOL, 0, &t.addr);
    client_alloc(c, 160, WIRE_ALLOC_POOL, 0, &i64.addr);
    n->code = client_fill(c, &a, &one, 0);
    client_strided(c, &t, &a, 0);
    n->code = n->code ? n->code : client_close_to(c, &a, &t, 0, 0, 0, &same);
    n->f = (float)same;
    client_fill(c, &i64, &odd, 0);
    client_strided(c, &t, &i64, 0); /* no float32 is 2^24 + 1: twenty values change */
    client_arange(c, n->in, 20, 8, 10, 2, 0, 0, 0);
    n->out = n->in;
}

static void test_movement(void **state)
{
    struct executor_call c;
    struct err e = ERR_INIT;
    float v[20];

    (void)state;
    begin(step_movement);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    call(1, &c);
    assert_string_equal(c.why, "");
    assert_int_equal(f.notes->code, 0);
    assert_float_equal(f.notes->f, 1, 0);
    assert_int_equal(c.casts_changed, 20);
    must(executor_peek(x, f.notes->in, v, sizeof v, &e), &e);
    assert_float_equal(v[19], 48, 0);
    front_end(&f);
}

static void step_unknown(struct client *c, int step, struct front_notes *n)
{
    uint32_t module;

    (void)step;
    n->image[3] ^= 1;
    n->code = client_module(c, n->image, &module);
}

static void test_an_image_that_no_worker_wrote(void **state)
{
    struct executor_call c;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_unknown);
    must(executor_call_begin(x, 1, &e), &e);
    front_step(&f);
    must(executor_call_end(x, &c, &e), &e);
    assert_int_equal(f.notes->code, WIRE_NOT_FOUND);
    assert_non_null(strstr(c.why, "no compile worker wrote this image"));
    front_end(&f);
}

static void step_fault(struct client *c, int step, struct front_notes *n)
{
    const struct scale a = {0};

    (void)step;
    n->code = launch(c, n, "fault", &a);
}

/* Last: the executor is thrown away afterwards. */
static void test_a_fault_ends_the_executor(void **state)
{
    struct executor_call c;
    struct err e = ERR_INIT;
    int fds[2];

    (void)state;
    begin(step_fault);
    must(executor_call_begin(x, 1, &e), &e);
    front_step(&f);
    must(executor_call_end(x, &c, &e), &e);
    assert_true(c.error == WIRE_LAUNCH_FAILED || c.error == WIRE_ILLEGAL_ADDRESS); /* a GPU says the latter */
    front_end(&f);
    assert_int_equal(executor_context(x, fds, &e), -1);
    assert_non_null(strstr(e.msg, "a new executor is needed"));
    executor_stop(x);
    executor();
    test_live_replay_and_time(state);
}

/* Which cards are ours is said in the environment, as for every other program of the judge. */
static void test_the_cards_that_are_ours(void **state)
{
    const struct executor_options o = {.backend = "cuda"};
    const char *had = getenv("CUDA_VISIBLE_DEVICES");
    char *again = had ? xstrdup(had) : NULL;
    struct executor *none = NULL;
    struct err e = ERR_INIT;

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_int_equal(executor_start(&o, &none, &e), -1);
    assert_int_equal(again ? setenv("CUDA_VISIBLE_DEVICES", again, 1) : unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_replay_and_time),
        cmocka_unit_test(test_more_than_a_log_holds_is_lived_and_not_replayed),
        cmocka_unit_test(test_shared_inputs_are_timed),
        cmocka_unit_test(test_movement),
        cmocka_unit_test(test_an_image_that_no_worker_wrote),
        cmocka_unit_test(test_a_fault_ends_the_executor),
        cmocka_unit_test(test_the_cards_that_are_ours),
    };
    char *fake = path_lib("libfakecuda.so"), *kernels = path_lib("exec.fatbin");
    const char *cubin = getenv("MUSACODER_TEST_CUBIN");
    struct err e = ERR_INIT;
    int rc;

    if (!kernels) { /* made by nvcc; there is none here */
        printf("no exec.fatbin: skipped\n");
        free(fake);
        return 0;
    }
    buf_init(&image, 1 << 24);
    if (cubin && file_read(cubin, &image, &e) < 0)
        return fprintf(stderr, "%s\n", e.msg), 1;
    if (!cubin) {
        buf_adds(&image, "fake image");
        setenv("MUSACODER_LIBCUDA", fake, 1);
    }
    executor();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    executor_stop(x);
    free(fake), free(kernels);
    buf_free(&image);
    return rc;
}
