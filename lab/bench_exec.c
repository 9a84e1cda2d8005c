/* bench_exec.c - what a request costs a client: 'bench_exec sim', or 'bench_exec cuda CUBIN [CAPSULE]' (the cubin of
 * tests/exec/kernels.cu). On cuda also: one kernel timed by replay, and its capsule
 * (lab/large_times.py compares such times with plain CUDA programs). One line a figure, JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/exec/fake_client.h"
#include "base/file.h"
#include "exec/capsule.h"

#define ROUNDS 2000
#define MIB ((uint64_t)1 << 20)
#define BIG (64 * MIB) /* bytes of the vector whose scaling is timed */

static struct executor *x;
static struct front f;
static struct buf image;
static bool has_kernel;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", e->msg);
        executor_stop(x);
        exit(1);
    }
}

static int by_size(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;

    return p < q ? -1 : p > q;
}

static void report(const char *what, double *us, int n)
{
    qsort(us, (size_t)n, sizeof *us, by_size);
    printf("{\"what\":\"%s\",\"median_us\":%.2f,\"p10_us\":%.2f,\"p90_us\":%.2f,\"n\":%d}\n", what, us[n / 2],
           us[n / 10], us[n * 9 / 10], n);
    fflush(stdout);
}

struct scale {
    uint64_t x, y;
    int n;
    float f;
};

static uint64_t small;
static uint32_t fn;
static struct wire_function_info info;

static int do_launch(struct client *c)
{
    const struct scale a = {small, small + 4096, 256, 2};
    const struct client_launch l = {.function = fn, .grid = {1, 1, 1}, .block = {256, 1, 1}, .args = &a,
                                    .args_bytes = sizeof a, .info = &info};

    return client_launch(c, &l);
}

static int do_launch_sync(struct client *c)
{
    return do_launch(c) ? 1 : client_device_sync(c);
}

static int do_sync(struct client *c)
{
    return client_device_sync(c);
}

static int do_query(struct client *c)
{
    return client_stream_query(c, 0);
}

static int do_alloc(struct client *c)
{
    uint64_t p;

    return client_alloc(c, 4096, WIRE_ALLOC_POOL, 0, &p) ? 1 : client_free(c, p, WIRE_ALLOC_POOL, 0);
}

static int do_item(struct client *c)
{
    float v;

    return client_down(c, &v, small, sizeof v, 0);
}

static void measure(struct client *c, const char *what, int (*one)(struct client *))
{
    static double us[ROUNDS];
    double first;

    client_fence(c);
    first = now_us();
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_us();

        if (one(c))
            printf("{\"what\":\"%s\",\"error\":%d}\n", what, client_error(c));
        us[i] = now_us() - start;
    }
    client_fence(c);
    first = (now_us() - first) / ROUNDS;
    report(what, us, ROUNDS);
    printf("{\"what\":\"%s, all of them and a fence, each\",\"us\":%.2f}\n", what, first);
    fflush(stdout);
}

static void step(struct client *c, int n, struct front_notes *notes)
{
    uint32_t module;

    if (n == 0) {
        client_alloc(c, 8192, WIRE_ALLOC_POOL, 0, &small);
        measure(c, "device synchronise, nothing queued", do_sync);
        measure(c, "stream query, a round trip to the device", do_query);
        measure(c, "allocate and free 4 KiB", do_alloc);
        measure(c, "download of 4 bytes", do_item);
        if (has_kernel && (client_module(c, notes->image, &module) ||
                           client_function(c, module, "scale", 5, &fn, &info)))
            printf("{\"error\":\"no kernel\"}\n");
        else if (has_kernel) {
            measure(c, "launch, queued", do_launch);
            measure(c, "launch and synchronise", do_launch_sync);
        }
        return;
    }
    client_alloc(c, BIG, WIRE_ALLOC_POOL, 0, &notes->out);
    {
        const struct scale a = {notes->in, notes->out, (int)(BIG / 4), 2};
        const struct client_launch l = {.function = fn, .grid = {(uint32_t)(BIG / 1024), 1, 1}, .block = {256, 1, 1},
                                        .args = &a, .args_bytes = sizeof a, .info = &info};

        client_launch(c, &l);
    }
}

static struct capsule caps;
static const char *caps_path;

static int binding(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    (void)ctx, (void)tag, (void)addr, (void)part, (void)e;
    memset(data, 0x3c, n);
    if (caps_path && caps.head)
        capsule_add_value(&caps, data, n);
    return 0;
}

/* Twice 0x3c3c3c3c, everywhere. */
static void write_capsule(void)
{
    struct capsule_output o = {.name = "output", .addr = f.notes->out, .dtype = 8, .dims = 1, .size = {BIG / 4},
                               .stride = {1}};
    float *want = malloc(BIG), v;
    const uint32_t bits = 0x3c3c3c3c;
    struct exec_log log;
    struct err e = ERR_INIT;

    memcpy(&v, &bits, sizeof v);
    for (uint64_t i = 0; i < BIG / 4; i++)
        want[i] = v * 2;
    must(executor_log(x, &log, &e), &e);
    capsule_add_log(&caps, &log);
    capsule_add_image(&caps, image.p, image.n);
    capsule_add_output(&caps, &o, want);
    must(capsule_write(&caps, caps_path, &e), &e);
    capsule_free(&caps);
    caps.head = NULL;
    exec_log_free(&log);
    free(want);
}

static void time_big(void)
{
    struct executor_replay r = {.poison = 0xff, .binding = binding};
    double ms[30], us[30];
    struct executor_timing t = {.n = 30, .ret_ms = ms, .binding = binding};
    struct executor_call call;
    struct err e = ERR_INIT;
    uint32_t out;

    must(executor_alloc(x, BIG, &f.notes->in, &e), &e);
    for (uint32_t k = 1; k <= 2; k++) {
        void *data = calloc(1, BIG);

        must(executor_bind(x, f.notes->in, data, BIG, 1, &e), &e);
        free(data);
        must(executor_call_begin(x, k, &e), &e);
        front_step(&f);
        must(executor_call_end(x, &call, &e), &e);
        printf("{\"what\":\"call\",\"error\":%d,\"why\":\"%s\"}\n", call.error, call.why);
    }
    if (caps_path)
        capsule_init(&caps, "cuda", "scale", executor_info(x)->name, 0);
    must(executor_replay(x, &r, &e), &e);
    if (caps_path)
        write_capsule();
    must(executor_peek(x, f.notes->out + BIG - 4, &out, 4, &e), &e);
    printf("{\"what\":\"replay\",\"error\":%d,\"why\":\"%s\",\"last_word\":\"%08x\"}\n", r.ret_error, r.ret_why, out);
    must(executor_time(x, &t, &e), &e);
    for (int i = 0; i < 30; i++)
        us[i] = ms[i] * 1e3;
    report("scale 64 MiB by replay", us, 30);
    printf("{\"what\":\"its sum by events, by the clock\",\"ms\":[%.3f,%.3f],\"error\":%d,\"why\":\"%s\","
           "\"TB_s\":%.2f}\n", t.ret_sum_ms, t.ret_clock_ms, t.ret_error, t.ret_why, 2.0 * (double)BIG / us[15] * 1e-6);
}

int main(int argc, char **argv)
{
    const struct executor_options o = {.backend = argc > 1 ? argv[1] : "sim"};
    double start = now_us();
    struct err e = ERR_INIT;
    char hash[65];
    int fds[2];

    has_kernel = argc > 2;
    caps_path = argc > 3 ? argv[3] : NULL;
    must(executor_start(&o, &x, &e), &e);
    printf("{\"what\":\"an executor starts\",\"ms\":%.1f,\"device\":\"%s\"}\n", (now_us() - start) * 1e-3,
           executor_info(x)->name);
    start = now_us();
    must(executor_context(x, fds, &e), &e);
    printf("{\"what\":\"a life begins\",\"ms\":%.2f}\n", (now_us() - start) * 1e-3);
    fflush(stdout);
    buf_init(&image, 1 << 26);
    if (has_kernel) {
        must(file_read(argv[2], &image, &e), &e);
        must(executor_image(x, image.p, image.n, hash, &e), &e);
    }
    f.notes = NULL;
    front_start(&f, fds, step);
    for (int i = 0; has_kernel && i < 32; i++)
        f.notes->image[i] = (uint8_t)strtoul((char[]){hash[2 * i], hash[2 * i + 1], 0}, NULL, 16);
    front_step(&f);
    if (has_kernel)
        time_big();
    front_end(&f);
    executor_stop(x);
    return 0;
}
