/* test_executor.c - a front, an executor on 'sim', and the judge: values, launches, echoes, replays. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/mem.h"
#include "exec/capsule.h"
#include "proc/jail.h"
#include "fake_client.h"

/* Thunks as the compile stage writes them: one call a thread, arguments in one block. */
static const char source[] =
    "#include <cuda_runtime.h>\n"
    "__device__ float bias;\n"
    "struct scale { const float *x; float *y; int n; float f; };\n"
    "extern \"C\" void thunk_scale(void *c)\n{\n    scale *a = (scale *)c;\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < a->n)\n        a->y[i] = a->x[i] * a->f + bias;\n}\n"
    "struct one { float *p; };\n"
    "static __device__ float seen;\n"
    "extern \"C\" void thunk_keep(void *c)\n{\n    float *p = ((one *)c)->p;\n"
    "    p[0] = seen;\n    seen += 1;\n    p[1] = p[2];\n    p[2] = 5;\n}\n"
    "extern \"C\" void thunk_wild(void *c)\n{\n    ((one *)c)->p[threadIdx.x + 100000] = 1;\n}\n"
    "extern \"C\" void thunk_count(void *c)\n{\n    if (threadIdx.x == 0)\n        ((one *)c)->p[0] += 1;\n}\n"
    "extern \"C\" long syscall(long, ...);\n"
    "extern \"C\" void thunk_escape(void *c)\n{\n    float *p = ((one *)c)->p;\n"
    "    p[0] = syscall(57) == 0 ? -1 : 1;\n" /* fork */
    "    p[1] = syscall(41, 1, 1, 0);\n"       /* socket */
    "    p[2] = syscall(62, 1, 0);\n"          /* kill */
    "    p[3] = syscall(2, \"/tmp/escaped\", 0102, 0600);\n" /* open for writing */
    "    p[4] = syscall(257, -100, \"/tmp/escaped\", 0102, 0600);\n"
    "    p[5] = syscall(257, -100, \"/proc/self/mem\", 0);\n" /* reading is allowed, but there is nothing to read */
    "    p[6] = syscall(257, -100, \"/etc/passwd\", 0);\n"
    "    p[7] = syscall(257, -100, \"../../../../etc/passwd\", 0);\n}\n"
    "extern \"C\" void thunk_forever(void *c)\n{\n    for (volatile int i = 0;; i++)\n        ;\n}\n"
    "extern \"C\" void thunk_null(void *c)\n{\n    *(volatile int *)0 = 1;\n}\n";
#define SCALE "thunk_scale\n\nscale\ncuda_source\n9"
#define COUNT "thunk_count\n\ncount\ncuda_source\n19"
#define WILD "thunk_wild\n\nwild\ncuda_source\n14"
#define NULLPTR "thunk_null\n\nnull\ncuda_source\n24"
#define ESCAPE "thunk_escape\n\nescape\ncuda_source\n24"

struct scale {
    uint64_t x, y;
    int n;
    float f;
};

static struct executor *x;
static struct buf image;
static struct front f;

static void must(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

static void build_image(void)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("exec-test", &e), *cu = path_join(dir, "k.cc"), *so = path_join(dir, "k.so");
    char *include = path_share("simt/include"), *lib = path_lib("libsimt.so"), *cmd;

    must(file_write(cu, source, sizeof source - 1, &e), &e);
    *strrchr(lib, '/') = 0;
    cmd = xasprintf("g++ -x c++ -std=gnu++17 -O1 -g1 -fPIC -w -shared -I%s -fsanitize=thread "
                    "--param tsan-instrument-func-entry-exit=0 -c -o %s.o %s && g++ -shared -o %s %s.o -L%s -lsimt",
                    include, so, cu, so, so, lib);
    assert_int_equal(system(cmd), 0);
    buf_init(&image, 1 << 24);
    must(file_read(so, &image, &e), &e);
    dir_remove(dir, &e);
    free(dir), free(cu), free(so), free(include), free(lib), free(cmd);
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

static uint32_t function_of(struct client *c, struct front_notes *n, const char *name)
{
    struct wire_function_info info;
    uint32_t module, fn = 99;

    if (!(n->code = client_module(c, n->image, &module)))
        n->code = client_function(c, module, name, (uint32_t)strlen(name), &fn, &info);
    return fn;
}

static int launch(struct client *c, uint32_t fn, uint32_t blocks, uint32_t threads, const void *args, uint32_t n)
{
    const struct client_launch l = {.function = fn, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .args = args,
                                    .args_bytes = n};

    return client_launch(c, &l);
}

/* ---- a kernel: y = x * f + bias ---- */

#define N 1000

/* Step 0 is construction, others are calls. The factor lies in a parameter that the judge lays. */
static void step_scale(struct client *c, int step, struct front_notes *n)
{
    struct scale a = {n->in, 0, N, 2};
    uint32_t fn;

    if (step == 0) {
        n->code = client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->param);
        return;
    }
    fn = function_of(c, n, SCALE);
    n->code = n->code ? n->code : client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    a.y = n->out;
    n->code = n->code ? n->code : launch(c, fn, 4, 256, &a, sizeof a);
    a.x = n->out;
    n->code = n->code ? n->code : launch(c, fn, 4, 256, &a, sizeof a); /* again, in place */
    client_device_sync(c);
}

static void fill(float *v, float start)
{
    for (int i = 0; i < N; i++)
        v[i] = start + (float)i;
}

static void one_call(uint32_t index, float start, float *out, struct executor_call *ret)
{
    struct err e = ERR_INIT;
    float in[N];

    fill(in, start);
    must(executor_bind(x, f.notes->in, in, sizeof in, 1, &e), &e);
    must(executor_call_begin(x, index, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, ret, &e), &e);
    assert_int_equal(f.notes->code, 0);
    must(executor_peek(x, f.notes->out, out, N * 4, &e), &e);
}

static float secret_start;
static float last_out[N];
static int ends;
static uint32_t last_call = 2; /* whose output is looked at */

static int bind_secret(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    float *v = data;

    (void)ctx, (void)addr, (void)e;
    assert_int_equal(part, 0);
    assert_int_equal(n, N * 4);
    assert_int_equal(tag, 1);
    fill(v, secret_start);
    return 0;
}

static int look(void *ctx, uint32_t call, struct err *e)
{
    (void)ctx;
    ends++;
    assert_int_equal(call, ends);
    return call != last_call ? 0 : executor_peek(x, f.notes->out, last_out, sizeof last_out, e);
}

static void two_calls(void)
{
    struct err e = ERR_INIT;
    struct executor_call call;
    float out[N];

    begin(step_scale);
    assert_int_equal(front_step(&f), 0);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    last_call = 2;
    for (uint32_t k = 1; k <= 2; k++) {
        one_call(k, (float)k * 100, out, &call);
        assert_int_equal(call.error, 0);
        assert_int_equal(call.launches, 2);
        assert_int_equal(call.bytes_down, 0);
        assert_int_equal(call.reads, k == 1 ? 2 : 2); /* module and function */
        for (int i = 0; i < N; i++)
            assert_float_equal(out[i], ((float)k * 100 + (float)i) * 4, 0);
    }
}

static void test_live_then_replay_on_secret_inputs(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    struct exec_log log;

    (void)state;
    two_calls();
    must(executor_log(x, &log, &e), &e);
    assert_int_equal(log.counts.launches, 4);
    assert_true(log.counts.bytes_up <= 1024); /* what every library holds */
    assert_false(log.full);
    exec_log_free(&log);
    front_end(&f); /* dead */
    for (int pass = 0; pass < 2; pass++) {
        ends = 0;
        secret_start = 7000 + (float)pass;
        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(r.ret_error, 0);
        assert_int_equal(ends, 2);
        for (int i = 0; i < N; i++)
            assert_float_equal(last_out[i], (secret_start + (float)i) * 4, 0);
        r.poison = 0x3c;
    }
}

static void test_without_launches_the_answer_is_poison(void **state)
{
    struct executor_replay r = {.poison = 0x3c, .movement_only = true, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    const uint32_t want = 0x3c3c3c3c;

    (void)state;
    two_calls();
    front_end(&f);
    ends = 0;
    must(executor_replay(x, &r, &e), &e);
    assert_int_equal(r.ret_error, 0);
    for (int i = 0; i < N; i++)
        assert_memory_equal(&last_out[i], &want, 4);
}

/* ---- inputs in memory of the judge's, outputs in tiles ---- */

static struct {
    float *inputs, *tile; /* the judge's mappings */
    uint64_t at_inputs, at_tile;
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

static int tile_at(uint64_t from, int64_t n, int64_t stride, uint64_t span, struct err *e)
{
    const struct wire_strided m = {.to = shared.at_tile, .from = from, .to_dtype = DT_F32, .from_dtype = DT_F32,
                                   .dims = 1,
                                   .size = {n}, .to_stride = {1}, .from_stride = {stride}};

    return executor_tile(x, &m, span, e);
}

static int bind_shared(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    (void)ctx, (void)e;
    assert_int_equal(tag, 1);
    assert_int_equal(addr, shared.at_inputs);
    assert_int_equal(n, N * 4);
    fill(shared.inputs, secret_start);
    return 0;
}

static int look_at_tile(void *ctx, uint32_t call, struct err *e)
{
    (void)ctx, (void)call;
    ends++;
    memset(shared.tile, 0, N * 4);
    return tile_at(f.notes->out, N, 1, N * 4, e);
}

static void test_inputs_are_shared_and_outputs_come_in_tiles(void **state)
{
    struct executor_replay r = {.poison = 0xff, .bound = bind_shared, .call_end = look_at_tile};
    struct err e = ERR_INIT;
    struct executor_call call;

    (void)state;
    begin(step_scale);
    assert_int_equal(front_step(&f), 0);
    shared.inputs = share(N * 4, &shared.at_inputs);
    shared.tile = share(0, &shared.at_tile);
    f.notes->in = shared.at_inputs;
    fill(shared.inputs, 10);
    must(executor_bound(x, shared.at_inputs, N * 4, 1, &e), &e);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_equal(call.error, 0);
    must(tile_at(f.notes->out + 16, N / 2 - 4, 2, (N - 8) * 4, &e), &e); /* every second element from the fifth on */
    for (int i = 0; i < N / 2 - 4; i++)
        assert_float_equal(shared.tile[i], (14 + 2 * (float)i) * 4, 0);
    assert_int_equal(tile_at(f.notes->out + 16, N, 1, N * 4, &e), -1); /* behind the output's end */
    assert_int_equal(tile_at(f.notes->out, N, 2, N * 4, &e), -1);
    e = (struct err)ERR_INIT;
    front_end(&f);
    for (int pass = 0; pass < 2; pass++) {
        ends = 0;
        secret_start = 900 + (float)pass;
        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(r.ret_error, 0);
        assert_int_equal(ends, 1);
        for (int i = 0; i < N; i++)
            assert_float_equal(shared.tile[i], (secret_start + (float)i) * 4, 0);
        shared.inputs[0] = -1;
        must(executor_pull(x, shared.at_inputs, N * 4, &e), &e); /* as the call left it */
        assert_float_equal(shared.inputs[0], secret_start, 0);
        r.poison = 0x3c;
    }
    munmap(shared.inputs, 2 << 20);
    munmap(shared.tile, 2 << 20);
}

/* ---- between calls nobody is served ---- */

static void step_between(struct client *c, int step, struct front_notes *n)
{
    const uint32_t value = (uint32_t)step;

    if (step == 0)
        n->code = client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    client_memset(c, n->out, &value, 4, N, 0);
}

static uint32_t first_word(void)
{
    struct err e = ERR_INIT;
    uint32_t v[N];

    must(executor_peek(x, f.notes->out, v, sizeof v, &e), &e);
    return v[0];
}

static void test_requests_between_calls_wait(void **state)
{
    struct executor_call call;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_between);
    assert_int_equal(front_step(&f), 0);
    assert_int_equal(first_word(), 0);
    must(executor_pause(x, &e), &e); /* the judge is about to lay parameters */
    assert_int_equal(front_step(&f), 0);
    assert_int_equal(first_word(), 0);
    must(executor_call_begin(x, 1, &e), &e);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_equal(first_word(), 1);
    assert_int_equal(front_step(&f), 0);
    assert_int_equal(first_word(), 1);
    must(executor_call_begin(x, 2, &e), &e);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_equal(first_word(), 2);
    front_end(&f);
}

/* ---- a host that computes: down, changed, up ---- */

static void step_host(struct client *c, int step, struct front_notes *n)
{
    float v[N];

    if (step == 0)
        return;
    client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    n->code = client_down(c, v, n->in, sizeof v, 0);
    for (int i = 0; i < N; i++)
        v[i] *= 4;
    client_up(c, n->out, v, sizeof v, 0);
}

static void test_host_computes_live_but_not_in_replay(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    struct executor_call call;
    float out[N];

    (void)state;
    begin(step_host);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    one_call(1, 1, out, &call);
    assert_float_equal(out[3], 16, 0);
    last_call = 1;
    assert_int_equal(call.bytes_down, N * 4);
    assert_int_equal(call.bytes_up, N * 4);
    assert_int_equal(call.reads, 1);
    front_end(&f);
    ends = 0;
    secret_start = 50;
    must(executor_replay(x, &r, &e), &e);
    assert_float_equal(last_out[3], 16, 0); /* the stale upload, not (50 + 3) * 4 */
}

/* ---- more than a log holds ---- */

/* Construction uploads more than LOG_MAX, all to one place; calls are as step_scale's. */
static void step_much(struct client *c, int step, struct front_notes *n)
{
    const uint64_t part = 16 << 20;
    char *v = xcalloc(1, part);
    uint64_t at = 0;

    step_scale(c, step, n);
    if (step == 0)
        n->code = client_alloc(c, part, WIRE_ALLOC_POOL, 0, &at);
    for (uint64_t up = 0; step == 0 && up <= LOG_MAX && !n->code; up += part)
        n->code = client_up(c, at, v, part, 0);
    n->code = n->code ? n->code : client_error(c);
    free(v);
}

static void test_more_than_a_log_holds_is_lived_and_not_replayed(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    struct executor_call call;
    struct exec_log log;
    float out[N];

    (void)state;
    begin(step_much);
    front_step(&f);
    assert_int_equal(f.notes->code, 0);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    one_call(1, 100, out, &call);
    assert_int_equal(call.error, 0);
    assert_float_equal(out[3], 103 * 4, 0);
    must(executor_log(x, &log, &e), &e);
    assert_true(log.full);
    assert_int_equal(log.counts.launches, 2);
    exec_log_free(&log);
    front_end(&f);
    assert_int_equal(executor_replay(x, &r, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
}

/* ---- an echo ---- */

static void step_echo(struct client *c, int step, struct front_notes *n)
{
    float v[N];

    if (step == 0)
        return;
    client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    n->code = client_down(c, v, n->in, sizeof v, 0);
    client_up(c, n->out, v, sizeof v, 0);
}

static void test_an_echo_is_a_device_copy(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    struct executor_call call;
    struct exec_log log;
    float out[N];

    (void)state;
    begin(step_echo);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    one_call(1, 1, out, &call);
    /* looking for an echo waits for the device: what is answered next would tell when */
    assert_int_equal(call.reads, 2);
    must(executor_log(x, &log, &e), &e);
    assert_int_equal(log.counts.echoes, 1);
    assert_true(log.counts.bytes_up <= 1024); /* what every library holds */
    exec_log_free(&log);
    front_end(&f);
    ends = 0;
    secret_start = 50;
    must(executor_replay(x, &r, &e), &e);
    assert_float_equal(last_out[3], 53, 0);
}

/* ---- a variable of the program, state across calls ---- */

static void step_symbol(struct client *c, int step, struct front_notes *n)
{
    float three = 3, back = 0;
    uint64_t addr, bytes;
    uint32_t module, fn;

    if (step == 0)
        return;
    fn = function_of(c, n, SCALE);
    client_module(c, n->image, &module);
    n->code = client_symbol(c, module, "bias", &addr, &bytes);
    client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    client_up(c, addr, &three, sizeof three, 0);
    n->code = n->code ? n->code : bytes != 4;
    {
        const struct scale a = {n->in, n->out, N, 1};

        launch(c, fn, 4, 256, &a, sizeof a);
    }
    n->code = n->code ? n->code : client_down(c, &back, addr, sizeof back, 0);
    n->f = back;
}

static void test_variables_survive_a_replay(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;
    struct executor_call call;
    float out[N];

    (void)state;
    begin(step_symbol);
    front_step(&f);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    one_call(1, 10, out, &call);
    assert_float_equal(out[0], 13, 0);
    assert_float_equal(f.notes->f, 3, 0);
    front_end(&f);
    ends = 0;
    secret_start = 20;
    must(executor_replay(x, &r, &e), &e);
    assert_string_equal(r.ret_why, "");
    assert_int_equal(r.ret_error, 0);
    assert_float_equal(last_out[0], 23, 0);
}

/* ---- faults ---- */

static const char *bad_kernel;

static void step_bad(struct client *c, int step, struct front_notes *n)
{
    uint64_t p = 0;
    uint32_t fn = function_of(c, n, bad_kernel);

    (void)step;
    client_alloc(c, 64, WIRE_ALLOC_POOL, 0, &p);
    n->code = n->code ? n->code : launch(c, fn, 1, 32, &p, sizeof p);
}

static void bad(const char *kernel, const char *kind)
{
    struct err e = ERR_INIT;
    struct executor_call call;
    char *json;

    bad_kernel = kernel;
    begin(step_bad);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_not_equal(call.error, 0);
    must(executor_findings(x, &json, &e), &e);
    if (!strstr(json, kind) || !strstr(json, "k.cc"))
        fail_msg("%s is not among the findings: %s", kind, json);
    free(json);
    front_end(&f);
}

static void test_a_fault_is_told_and_the_next_context_is_whole(void **state)
{
    (void)state;
    bad(WILD, "out_of_bounds");
    bad(NULLPTR, "illegal_access");
    two_calls();
    front_end(&f);
}

/* ---- a kernel that is no kernel: on 'sim' it is native code ---- */

static void step_escape(struct client *c, int step, struct front_notes *n)
{
    uint32_t fn = function_of(c, n, ESCAPE);

    (void)step;
    client_alloc(c, 64, WIRE_ALLOC_POOL, 0, &n->out);
    n->code = n->code ? n->code : launch(c, fn, 1, 1, &n->out, sizeof n->out);
}

static void test_native_code_in_a_kernel_reaches_nothing(void **state)
{
    const struct executor_options o = {.backend = "sim", .no_check = true};
    struct executor *checked = x;
    struct executor_call call;
    struct err e = ERR_INIT;
    float out[8];

    (void)state;
    must(executor_start(&o, &x, &e), &e);
    begin(step_escape);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, &call, &e), &e);
    assert_string_equal(call.why, "");
    must(executor_peek(x, f.notes->out, out, sizeof out, &e), &e);
    assert_float_equal(out[0], 1, 0); /* fork failed */
    for (int i = 1; i < 8; i++)
        assert_float_equal(out[i], -1, 0);
    front_end(&f);
    executor_stop(x);
    x = checked;
}

/* ---- hostile requests ---- */

static int hostile;

static void step_hostile(struct client *c, int step, struct front_notes *n)
{
    uint64_t p;
    const int64_t size[2] = {INT64_MAX, INT64_MAX}, stride[2] = {INT64_MAX, 1};
    const struct client_view huge = {WIRE_BASE, 8, 2, size, stride};
    const char one[16] = {1};

    (void)step;
    client_alloc(c, 4096, WIRE_ALLOC_POOL, 0, &p);
    switch (hostile) {
    case 0: client_up(c, p + 4095, "ab", 2, 0); break;
    case 1: client_up(c, n->in - 1, "a", 1, 0); break;
    case 2: client_memset(c, p, one, 1, UINT64_MAX, 0); break;
    case 3: client_memset(c, p, "0123456789abcdef", 16, UINT64_MAX / 8, 0); break;
    case 4: client_copy(c, p, p, UINT64_MAX - p + 1, 0); break;
    case 5: client_fill(c, &huge, one, 0); break;
    case 6: client_free(c, p + 512, 0, 0); break;
    case 7: client_free(c, n->in, 0, 0); break; /* the judge's */
    case 8: launch(c, 77, 1, 1, &p, 8); break;
    case 9: client_event_record(c, 40000000, 0); break;
    case 10: client_stream_sync(c, 12); break;
    case 11: client_func_attr(c, 3, 8, -1); break;
    case 12: client_up(c, (uint64_t)(uintptr_t)&one, "a", 1, 0); break;
    }
    n->code = client_fence(c);
}

static void test_hostile_requests_are_refused(void **state)
{
    (void)state;
    for (hostile = 0; hostile <= 12; hostile++) {
        struct err e = ERR_INIT;
        struct executor_call call;

        begin(step_hostile);
        must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
        must(executor_call_begin(x, 1, &e), &e);
        assert_int_equal(front_step(&f), 0);
        must(executor_call_end(x, &call, &e), &e);
        assert_int_equal(call.refused, 1);
        assert_true(call.why[0] != 0);
        front_end(&f);
    }
}

static void step_garbage(struct client *c, int step, struct front_notes *n)
{
    struct wire_area *a = *(struct wire_area **)(void *)c; /* the first member */

    (void)step;
    memset((uint8_t *)a + WIRE_RING_AT, 0xa5, WIRE_RING);
    __atomic_store_n(&a->head, a->head + 4096, __ATOMIC_SEQ_CST);
    n->code = 0;
}

static void test_a_broken_ring_ends_the_context_only(void **state)
{
    struct executor_call call;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_garbage);
    must(executor_call_begin(x, 1, &e), &e);
    front_step(&f);
    must(executor_call_end(x, &call, &e), &e);
    assert_non_null(strstr(call.why, "the ring was written to"));
    front_end(&f);
    two_calls();
    front_end(&f);
}

/* ---- many threads, more than the ring holds ---- */

#define THREADS 20 /* more than there are slots for replies */
#define BIG_UP (200u << 10)

static struct client *many_client;

/* Each has memory of its own: filled, uploaded to in large messages, read back, again and again. */
static void *hammer(void *arg)
{
    struct client *c = many_client;
    uint8_t *data = malloc(BIG_UP), *back = malloc(BIG_UP), id = (uint8_t)(uintptr_t)arg;
    long wrong = 0;
    uint64_t p;

    for (int i = 0; i < 12; i++) {
        memset(data, id + i, BIG_UP);
        wrong += client_alloc(c, BIG_UP, WIRE_ALLOC_POOL, 0, &p) != 0;
        wrong += client_up(c, p, data, BIG_UP, 0) != 0;
        for (int k = 0; k < 50; k++)
            wrong += client_memset(c, p + (uint64_t)k, &id, 1, 1, 0) != 0;
        wrong += client_down(c, back, p, BIG_UP, 0) != 0;
        memset(data, id, 50);
        wrong += memcmp(data, back, BIG_UP) != 0;
        wrong += client_free(c, p, WIRE_ALLOC_POOL, 0) != 0;
    }
    free(data);
    free(back);
    return (void *)wrong;
}

static void step_many(struct client *c, int step, struct front_notes *n)
{
    pthread_t t[THREADS];
    void *wrong;

    (void)step;
    many_client = c;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, hammer, (void *)(i + 1));
    n->code = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &wrong);
        n->code += (int)(long)wrong;
    }
}

static void test_many_threads_share_the_ring(void **state)
{
    struct executor_call call;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_many);
    assert_int_equal(front_step(&f), 0);
    assert_int_equal(f.notes->code, 0);
    must(executor_call_begin(x, 1, &e), &e);
    must(executor_call_end(x, &call, &e), &e);
    assert_string_equal(call.why, "");
    front_end(&f);
}

/* ---- ends ---- */

static int folders(void)
{
    char **names, own[48];
    size_t n, ours = 0;
    struct err e = ERR_INIT;

    snprintf(own, sizeof own, "musacoder-exec-%d.", (int)getpid());
    must(dir_list("/tmp", &names, &n, &e), &e);
    for (size_t i = 0; i < n; i++)
        ours += !strncmp(names[i], own, strlen(own));
    names_free(names, n);
    return (int)ours;
}

/* Text of /proc/PID/name; a link's target. */
static char *of_process(const char *pid, const char *name)
{
    char *path = xasprintf("/proc/%s/%s", pid, name), text[4096];
    FILE *file = strncmp(name, "ns/", 3) ? fopen(path, "r") : NULL;
    ssize_t n = file ? (ssize_t)fread(text, 1, sizeof text - 1, file) : readlink(path, text, sizeof text - 1);

    if (file)
        fclose(file);
    free(path);
    text[n > 0 ? n : 0] = 0;
    return xstrdup(text);
}

/* The executor that is this process's child. */
static char *executor_process(void)
{
    char **names, *found = NULL, parent[32];
    struct err e = ERR_INIT;
    size_t n;

    snprintf(parent, sizeof parent, "PPid:\t%d\n", (int)getpid());
    must(dir_list("/proc", &names, &n, &e), &e);
    for (size_t i = 0; i < n && !found; i++) {
        char *status = of_process(names[i], "status");

        if (!strncmp(status, "Name:\tmcexec\n", 13) && strstr(status, parent))
            found = xstrdup(names[i]);
        free(status);
    }
    names_free(names, n);
    return found;
}

static void test_an_executor_lives_apart(void **state)
{
    static const char *const spaces[] = {"ns/net", "ns/pid", "ns/ipc", "ns/mnt", "ns/uts"};
    char *pid = executor_process(), *status;

    (void)state;
    if (!(jail_probe()->held & JAIL_NAMESPACES)) {
        free(pid);
        skip();
    }
    assert_non_null(pid);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        char *own = of_process("self", spaces[i]), *theirs = of_process(pid, spaces[i]);

        assert_string_not_equal(theirs, "");
        assert_string_not_equal(own, theirs);
        free(own);
        free(theirs);
    }
    status = of_process(pid, "status");
    assert_non_null(strstr(status, "CapEff:\t0000000000000000"));
    assert_non_null(strstr(status, "Seccomp:\t2"));
    free(status);
    free(pid);
}

static void step_forever(struct client *c, int step, struct front_notes *n)
{
    uint32_t fn = function_of(c, n, "thunk_forever\n\nforever\ncuda_source\n30");

    (void)step;
    n->code = n->code ? n->code : launch(c, fn, 1, 1, &fn, sizeof fn);
}

static void test_an_executor_leaves_nothing_behind(void **state)
{
    const struct executor_options o = {.backend = "sim", .no_check = true, .timeout_s = 0.5};
    struct executor *first = x;
    struct executor_call call;
    struct err e = ERR_INIT;
    int before = folders();
    char *stand;

    (void)state;
    must(executor_start(&o, &x, &e), &e);
    assert_in_range(folders(), before, before + 1); /* none where its files lie in memory of its own */
    executor_stop(x);
    assert_int_equal(folders(), before);
    must(executor_start(&o, &x, &e), &e);
    begin(step_forever);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    assert_int_equal(executor_call_end(x, &call, &e), -1);
    assert_true(executor_timed_out(x));
    stand = executor_stand(x);
    assert_non_null(stand);
    if (!strstr(stand, "still_running") || !strstr(stand, "k.cc") || !strstr(stand, "\"thread\":[0,0,0]"))
        fail_msg("the kernel does not say where it stands: %s", stand);
    free(stand);
    front_end(&f);
    executor_stop(x);
    assert_int_equal(folders(), before);
    x = first;
}

/* ---- capsules ---- */

static struct capsule caps;

static int bind_and_keep(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    bind_secret(ctx, tag, addr, part, data, n, e);
    capsule_add_value(&caps, data, n);
    return 0;
}

static void make_capsule(const char *path)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_and_keep, .call_end = look};
    struct capsule_output o = {.name = "output", .addr = f.notes->out, .dtype = 8, .dims = 1, .size = {N},
                               .stride = {1}};
    struct err e = ERR_INIT;
    struct exec_log log;

    must(executor_log(x, &log, &e), &e);
    capsule_init(&caps, "sim", "a test", "musacoder sim", 0);
    capsule_add_log(&caps, &log);
    capsule_add_image(&caps, image.p, image.n);
    ends = 0, last_call = 2, secret_start = 300;
    must(executor_replay(x, &r, &e), &e);
    capsule_add_output(&caps, &o, last_out);
    must(capsule_write(&caps, path, &e), &e);
    capsule_free(&caps);
    exec_log_free(&log);
}

static void run_capsule(const char *path, struct capsule_result *ret)
{
    const struct executor_options o = {.backend = "sim"};
    struct executor *own;
    struct err e = ERR_INIT;
    struct capsule c;

    must(capsule_read(path, &c, &e), &e);
    must(executor_start(&o, &own, &e), &e);
    must(capsule_run(&c, own, 0x3c, ret, &e), &e);
    executor_end(own);
    capsule_free(&c);
}

static void test_a_capsule_runs_elsewhere(void **state)
{
    char *dir, *path;
    struct err e = ERR_INIT;
    struct capsule_result r;
    struct capsule c;
    struct buf b;

    (void)state;
    dir = dir_temp("caps", &e);
    path = path_join(dir, "k.caps");
    last_call = 2;
    two_calls();
    front_end(&f);
    make_capsule(path);
    run_capsule(path, &r);
    assert_true(r.right);
    assert_int_equal(r.elements, N);
    buf_init(&b, 1 << 26);
    must(file_read(path, &b, &e), &e);
    b.p[b.n - 2] ^= 0x40;
    must(file_write(path, b.p, b.n, &e), &e);
    assert_int_equal(capsule_read(path, &c, &e), -1);
    assert_non_null(strstr(e.msg, "is damaged"));
    b.p[b.n - 2] ^= 0x40;
    must(file_write(path, b.p, b.n, &e), &e);
    must(capsule_read(path, &c, &e), &e);
    c.data.p[c.data.n - 2] ^= 0x40; /* the last expected value */
    must(capsule_write(&c, path, &e), &e);
    capsule_free(&c);
    run_capsule(path, &r);
    assert_false(r.right);
    assert_int_equal(r.wrong, 1);
    assert_non_null(strstr(r.text, "output: element 999"));
    must(file_write(path, b.p, 100, &e), &e);
    assert_int_equal(capsule_read(path, &c, &e), -1);
    assert_non_null(strstr(e.msg, "is damaged or cut off"));
    buf_free(&b);
    dir_remove(dir, &e);
    free(dir), free(path);
}

static void test_a_log_that_does_not_follow_is_refused(void **state)
{
    const struct wire_up wild = {WIRE_BASE + 4096, 0, 0};
    struct err e = ERR_INIT;
    struct exec_log log;

    (void)state;
    assert_int_equal(exec_log_init(&log, 1 << 20), 0);
    exec_log_add(&log, WIRE_UP, 0, 0, &wild, sizeof wild, "abcd", 4, NULL);
    assert_int_equal(executor_adopt(x, &log, &e), -1);
    assert_non_null(strstr(e.msg, "UP cannot follow from what comes before"));
    log.n -= 8;
    assert_int_equal(executor_adopt(x, &log, &e), -1);
    assert_non_null(strstr(e.msg, "is no entry"));
    exec_log_free(&log);
}

/* ---- many calls from one replay of the whole life ---- */

static void test_last_call_again_and_again(void **state)
{
    struct executor_replay r = {.poison = 0xff, .binding = bind_secret, .call_end = look};
    struct err e = ERR_INIT;

    (void)state;
    two_calls();
    front_end(&f);
    last_call = 2, ends = 0, secret_start = 1;
    r.last_call = true;
    assert_int_equal(executor_replay(x, &r, &e), -1); /* no whole life yet */
    r.last_call = false;
    must(executor_replay(x, &r, &e), &e);
    r.last_call = true;
    for (secret_start = 10; secret_start < 14; secret_start++) {
        ends = 1;
        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(r.ret_error, 0);
        assert_float_equal(last_out[5], (secret_start + 5) * 4, 0);
    }
}

/* ---- nothing of a play is there in the next one ---- */

static void step_keep(struct client *c, int step, struct front_notes *n)
{
    uint32_t fn;

    if (step == 0)
        return;
    fn = function_of(c, n, "thunk_keep\n\nkeep\ncuda_source\n19");
    n->code = n->code ? n->code : client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    n->code = n->code ? n->code : launch(c, fn, 1, 1, &n->out, sizeof n->out);
}

static void test_the_last_call_finds_what_it_found_at_first(void **state)
{
    struct executor_replay r = {.poison = 0xff, .call_end = look};
    struct executor_call call;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_keep);
    for (uint32_t k = 0; k <= 2; k++) {
        if (k)
            must(executor_call_begin(x, k, &e), &e);
        assert_int_equal(front_step(&f), 0);
        assert_int_equal(f.notes->code, 0);
        if (k)
            must(executor_call_end(x, &call, &e), &e);
    }
    front_end(&f);
    last_call = 2;
    for (int pass = 0; pass < 3; pass++) {
        ends = pass ? 1 : 0;
        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(r.ret_error, 0);
        assert_float_equal(last_out[0], 1, 0); /* a variable whose address nobody asked for */
        assert_true(last_out[1] != last_out[1]); /* memory of the call: filled, not what was left there */
        assert_float_equal(last_out[2], 5, 0);
        r.last_call = true;
    }
}

/* ---- timed calls ---- */

/* The output of the call before is given back first, as a front does that holds it until the next call. */
static void step_give_back(struct client *c, int step, struct front_notes *n)
{
    if (step > 1)
        client_free(c, n->out, WIRE_ALLOC_POOL, 0);
    step_keep(c, step, n);
}

static int rounds;

static int look_timed(void *ctx, uint32_t round, struct err *e)
{
    float out[3];

    (void)ctx, (void)round;
    if (executor_peek(x, f.notes->out, out, sizeof out, e) < 0)
        return -1;
    assert_float_equal(out[0], 1, 0);
    assert_true(out[1] != out[1]);
    assert_float_equal(out[2], 5, 0);
    rounds++;
    return 0;
}

static int calls_before, last_calls;

static void count_calls(void *ctx, uint32_t call, bool last)
{
    (void)ctx;
    calls_before += call > 0 && !last;
    last_calls += last;
}

static void test_a_timed_call_finds_what_it_found_at_first(void **state)
{
    void (*const steps[])(struct client *, int, struct front_notes *) = {step_keep, step_give_back};
    struct executor_replay r = {.poison = 0xff};
    struct executor_call call;
    struct err e = ERR_INIT;
    double ms[3], span[3];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct executor_timing t = {.n = 3, .ret_ms = ms, .ret_span_ms = span, .before = count_calls,
                                    .call_end = look_timed, .whole = i / 2, .long_calls = true};

        begin(steps[i % 2]);
        for (uint32_t k = 0; k <= 2; k++) {
            if (k)
                must(executor_call_begin(x, k, &e), &e);
            assert_int_equal(front_step(&f), 0);
            if (k)
                must(executor_call_end(x, &call, &e), &e);
        }
        front_end(&f);
        must(executor_replay(x, &r, &e), &e);
        rounds = calls_before = last_calls = 0;
        must(executor_time(x, &t, &e), &e);
        assert_int_equal(t.ret_error, 0);
        assert_int_equal(rounds, 3);
        assert_int_equal(last_calls, 3);
        assert_int_equal(calls_before, i / 2 ? 3 : 0); /* the first call of two, in a whole life */
        assert_true(ms[0] > 0 && span[2] >= ms[2] && t.whole == i / 2);
    }
}

/* ---- recordings that are played in replays alone, and calls that are alike ---- */

/* As step_give_back; what it launches has one number, so that its calls from the second on ask for the same. */
static void step_alike(struct client *c, int step, struct front_notes *n)
{
    static uint32_t fn;

    if (step == 0)
        fn = function_of(c, n, "thunk_keep\n\nkeep\ncuda_source\n19");
    if (step > 1)
        client_free(c, n->out, WIRE_ALLOC_POOL, 0);
    if (step > 0)
        n->code = client_alloc(c, N * 4, WIRE_ALLOC_POOL, 0, &n->out);
    if (step > 0 && !n->code)
        n->code = launch(c, fn, 1, 1, &n->out, sizeof n->out);
}

static float launches_before; /* the last one that was played, as the kernel's variable counts them */

static int look_at_count(void *ctx, uint32_t call, struct err *e)
{
    (void)ctx;
    return call != last_call ? 0 : executor_peek(x, f.notes->out, &launches_before, 4, e);
}

static void test_calls_that_are_alike_are_played_once(void **state)
{
    /* call 1, which frees nothing, 2, and those from played_from on */
    static const struct {
        uint32_t played_from;
        float before;
    } cases[] = {{0, 5}, {6, 2}, {5, 3}, {1, 5}};
    struct executor_call call;
    struct err e = ERR_INIT;
    float out;

    (void)state;
    begin(step_alike);
    assert_int_equal(front_step(&f), 0);
    must(executor_dry(x, &e), &e);
    for (uint32_t k = 1; k <= 6; k++) {
        must(executor_call_begin(x, k, &e), &e);
        assert_int_equal(front_step(&f), 0);
        must(executor_call_end(x, &call, &e), &e);
        assert_int_equal(call.launches, 1);
        assert_int_equal(call.unanswered, 0);
        must(executor_peek(x, f.notes->out, &out, sizeof out, &e), &e);
        assert_true(out != out); /* nothing has written there */
    }
    front_end(&f);
    last_call = 6;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct executor_replay r = {.poison = 0xff, .call_end = look_at_count, .played_from = cases[i].played_from};

        must(executor_replay(x, &r, &e), &e);
        assert_int_equal(r.ret_error, 0);
        assert_float_equal(launches_before, cases[i].before, 0);
    }
}

static void test_a_dry_recording_answers_no_question_for_values(void **state)
{
    struct executor_call call;
    struct err e = ERR_INIT;

    (void)state;
    begin(step_host);
    assert_int_equal(front_step(&f), 0);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    must(executor_dry(x, &e), &e);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_equal(call.unanswered, 1);
    front_end(&f);
    begin(step_host); /* the next recording is none */
    assert_int_equal(front_step(&f), 0);
    must(executor_alloc(x, N * 4, &f.notes->in, &e), &e);
    must(executor_call_begin(x, 1, &e), &e);
    assert_int_equal(front_step(&f), 0);
    must(executor_call_end(x, &call, &e), &e);
    assert_int_equal(call.unanswered, 0);
    assert_int_equal(f.notes->code, 0);
    front_end(&f);
}

/* ---- memory ---- */

static void step_take_all(struct client *c, int step, struct front_notes *n)
{
    uint64_t at;

    (void)step;
    for (uint64_t bytes = 1 << 20; bytes >= 512; bytes /= 2)
        while ((n->code = client_alloc(c, bytes, WIRE_ALLOC_POOL, 0, &at)) == WIRE_OK)
            n->f += (float)bytes;
}

/* What a front may hold is its own: the judge's inputs have their room besides. */
static void test_a_client_that_takes_all(void **state)
{
    static const uint8_t byte = 7;
    struct err e = ERR_INIT;
    uint64_t at;

    (void)state;
    for (int i = 0; i < 2; i++) {
        executor_limit(x, i ? 2 << 20 : 5 << 20);
        begin(step_take_all);
        f.notes->f = 0;
        assert_int_equal(front_step(&f), 0);
        front_end(&f);
        assert_int_equal(f.notes->code, WIRE_OUT_OF_MEMORY);
        assert_float_equal(f.notes->f, i ? 2 << 20 : 5 << 20, 0);
        must(executor_alloc(x, 64 << 20, &at, &e), &e);
        must(executor_bind(x, at + (64 << 20) - 1, &byte, 1, 1, &e), &e);
    }
    executor_limit(x, 0);
}

static int start(void **state)
{
    const struct executor_options o = {.backend = "sim"};
    struct err e = ERR_INIT;

    (void)state;
    build_image();
    if (executor_start(&o, &x, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    executor_stop(x);
    buf_free(&image);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_then_replay_on_secret_inputs),
        cmocka_unit_test(test_inputs_are_shared_and_outputs_come_in_tiles),
        cmocka_unit_test(test_without_launches_the_answer_is_poison),
        cmocka_unit_test(test_requests_between_calls_wait),
        cmocka_unit_test(test_host_computes_live_but_not_in_replay),
        cmocka_unit_test(test_more_than_a_log_holds_is_lived_and_not_replayed),
        cmocka_unit_test(test_an_echo_is_a_device_copy),
        cmocka_unit_test(test_variables_survive_a_replay),
        cmocka_unit_test(test_a_fault_is_told_and_the_next_context_is_whole),
        cmocka_unit_test(test_native_code_in_a_kernel_reaches_nothing),
        cmocka_unit_test(test_hostile_requests_are_refused),
        cmocka_unit_test(test_a_broken_ring_ends_the_context_only),
        cmocka_unit_test(test_many_threads_share_the_ring),
        cmocka_unit_test(test_an_executor_lives_apart),
        cmocka_unit_test(test_an_executor_leaves_nothing_behind),
        cmocka_unit_test(test_a_capsule_runs_elsewhere),
        cmocka_unit_test(test_a_log_that_does_not_follow_is_refused),
        cmocka_unit_test(test_last_call_again_and_again),
        cmocka_unit_test(test_the_last_call_finds_what_it_found_at_first),
        cmocka_unit_test(test_a_timed_call_finds_what_it_found_at_first),
        cmocka_unit_test(test_calls_that_are_alike_are_played_once),
        cmocka_unit_test(test_a_dry_recording_answers_no_question_for_values),
        cmocka_unit_test(test_a_client_that_takes_all),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
