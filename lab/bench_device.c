/* bench_device.c - the judge's kernels against the device's own copy: 'make bench-device' (needs a GPU).
 * Bytes are those that must move, read plus written; times are medians on the host's clock of the whole call, its
 * launch and the answer's way back included. The yardstick is device_copy: bytes read plus bytes written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/device.h"
#include "eval/check/compare_device.h"

#define RUNS 15
#define BLOCK ((int64_t)1 << 22) /* elements that the host draws; repeated over the whole tensor */

static struct device *dev;
static struct err err = ERR_INIT;
static double copy_gbs;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != 0) {                                                                                             \
            fprintf(stderr, "%s: %s\n", #call, err.msg);                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct work {
    void (*run)(struct work *w);
    struct device_buf *a, *b;
    struct device_view eager, oracle, got;
    struct device_tolerance tol;
    size_t n; /* bytes */
    struct device_diff diff;
};

static double median_ms(struct work *w)
{
    double v[RUNS];

    w->run(w);
    for (int i = 0; i < RUNS; i++) {
        OK(device_sync(dev, &err));
        v[i] = now_s();
        w->run(w);
        OK(device_sync(dev, &err));
        v[i] = (now_s() - v[i]) * 1e3;
    }
    qsort(v, RUNS, sizeof *v, by_value);
    return v[RUNS / 2];
}

static void report(const char *what, double bytes, double ms)
{
    double gbs = bytes / ms / 1e6;

    if (copy_gbs == 0)
        copy_gbs = gbs;
    printf("| %-44s | %7.2f | %8.3f | %6.0f | %5.2f |\n", what, bytes / 1e9, ms, gbs, gbs / copy_gbs);
    fflush(stdout);
}

static void run_copy(struct work *w)
{
    OK(device_copy(w->b, 0, w->a, 0, w->n, &err));
}

static void run_set(struct work *w)
{
    OK(device_memset(w->a, 0, 1, w->n, &err));
}

static void run_checksum(struct work *w)
{
    uint64_t sum;

    OK(device_checksum(w->a, 0, w->n, 1, &sum, &err));
}

static void run_diff(struct work *w)
{
    OK(device_diff(dev, &w->eager, &w->oracle, &w->got, &w->tol, &w->diff, &err));
}

/* Repeats the first 'have' bytes over the buffer. */
static void spread(struct device_buf *b, size_t have, size_t n)
{
    for (; have < n; have *= 2)
        OK(device_copy(b, have, b, 0, have < n - have ? have : n - have, &err));
}

static void put(uint8_t *p, enum dtype t, int64_t i, double x)
{
    float f = (float)x;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    if (t == DT_F64)
        memcpy(p + 8 * i, &x, 8);
    else if (t == DT_F32)
        memcpy(p + 4 * i, &f, 4);
    else if (t == DT_BF16)
        memcpy(p + 2 * i, (uint8_t *)&bits + 2, 2);
    else if (t == DT_F16)
        memcpy(p + 2 * i, &(uint16_t){(uint16_t)((bits >> 16 & 0x8000) | (((bits & 0x7fffffff) - 0x38000000u) >> 13))},
               2);
    else if (t == DT_I64)
        memcpy(p + 8 * i, &(int64_t){(int64_t)(x * 1e6)}, 8);
    else
        p[i] = (uint8_t)(x * 100);
}

/* Values in [1, 2), the same every time, with relative noise; a share 'wrong' of them is half as large again. */
static void draw(struct device_buf *b, enum dtype t, int64_t n, double noise, double wrong)
{
    uint8_t *raw = xcalloc((size_t)BLOCK, dt_size(t));
    size_t bytes = (size_t)n * dt_size(t), have = (size_t)BLOCK * dt_size(t);
    struct rng values, errors;

    rng_seed(&values, 5, 0);
    rng_seed(&errors, 6, 0);
    for (int64_t i = 0; i < BLOCK; i++) {
        double x = (1 + rng_f64(&values)) * (1 + noise * (rng_f64(&errors) - 0.5));

        put(raw, t, i, wrong > 0 && rng_f64(&errors) < wrong ? x * 1.5 : x);
    }
    OK(device_upload(b, 0, raw, have < bytes ? have : bytes, &err));
    spread(b, have, bytes);
    free(raw);
}

static void bench_diff(const char *what, enum dtype type, enum dtype oracle, int64_t n, double wrong, bool strided,
                       bool close)
{
    int64_t side = 1 << 14, shape[] = {n / side, side}, strides[] = {1, n / side};
    struct work w = {.run = run_diff, .tol = {close ? 1e-2 : 1e-5, 1e-2, close}};
    struct device_buf bo, bg;
    double ms;

    OK(device_alloc(dev, (size_t)n * dt_size(oracle), DEVICE_PLAIN, &bo, &err));
    OK(device_alloc(dev, (size_t)n * dt_size(type), DEVICE_SHARED, &bg, &err));
    draw(&bo, oracle, n, 0, 0);
    draw(&bg, type, n, dt_is_float(type) ? type == DT_F32 || type == DT_F64 ? 1e-6 : 0x1p-8 : 0, wrong);
    if (strided) /* other values than expected, but the cost does not depend on them being right: one constant */
        for (int k = 0; k < 2; k++)
            OK(device_memset(k ? &bg : &bo, 0, 0, k ? bg.size : bo.size, &err));
    OK(device_view_make(&bo, 0, oracle, 2, shape, NULL, &w.oracle, &err));
    OK(device_view_make(&bg, 0, type, 2, shape, strided ? strides : NULL, &w.got, &err));
    w.eager = w.got;
    ms = median_ms(&w);
    report(what, (double)n * (double)(dt_size(type) + dt_size(oracle)), ms);
    if ((w.diff.n_bad > 0) != (wrong > 0))
        printf("  %lld wrong elements?\n", (long long)w.diff.n_bad);
    if (wrong > 0) {
        struct tolerance tol = {.abs = 1e-5, .rel = 1e-2, .usable = true, .allclose = close};
        struct comparison c;
        double start = now_s();

        OK(device_compare(dev, &w.eager, &w.oracle, &w.got, &tol, &c, &err));
        printf("  with its diagnosis ('%s', %.1f %% wrong): %.1f ms on the host's clock\n", c.pattern,
               100.0 * (double)c.n_bad / (double)c.n, (now_s() - start) * 1e3);
    }
    device_free(&bo);
    device_free(&bg);
}

static void bench_moves(size_t n)
{
    struct device_buf a, b;
    struct work w = {.run = run_copy, .a = &a, .b = &b, .n = n};

    OK(device_alloc(dev, n, DEVICE_PLAIN, &a, &err));
    OK(device_alloc(dev, n, DEVICE_SHARED, &b, &err));
    OK(device_memset(&a, 0, 1, n, &err));
    report("copy, plain to shared (the yardstick)", 2.0 * (double)n, median_ms(&w));
    w.run = run_checksum;
    report("checksum", (double)n, median_ms(&w));
    w.run = run_set;
    report("memset", (double)n, median_ms(&w));
    device_free(&a);
    device_free(&b);
}

static void bench_host(size_t n)
{
    static const char *const names[] = {"plain", "shared", "pinned"};
    char *p = xcalloc(n, 1);
    struct device_buf b, c;
    double t[6];
    int fd;

    memset(p, 1, n);
    for (int k = 0; k < 3; k++) {
        t[0] = now_s();
        OK(device_alloc(dev, n, (enum device_mem)k, &b, &err));
        t[1] = now_s();
        OK(device_upload(&b, 0, p, n, &err));
        t[2] = now_s();
        OK(device_download(&b, 0, p, n, &err));
        t[3] = t[4] = now_s();
        if (k) {
            OK(device_export(&b, &fd, &err));
            OK(device_import(dev, fd, (enum device_mem)k, n, b.capacity, &c, &err));
            t[4] = now_s();
            close(fd);
            device_free(&c);
        }
        t[5] = now_s();
        device_free(&b);
        printf("%s, %zu MB: allocate %.2f ms, upload %.1f GB/s, download %.1f GB/s, export and import %.2f ms, free "
               "%.2f ms\n",
               names[k], n >> 20, (t[1] - t[0]) * 1e3, (double)n / (t[2] - t[1]) / 1e9, (double)n / (t[3] - t[2]) / 1e9,
               (t[4] - t[3]) * 1e3, (now_s() - t[5]) * 1e3);
    }
    free(p);
}

static void bench_small(void)
{
    struct work w = {.run = run_diff, .tol = {1e-5, 1e-2, false}};
    struct device_buf a, b;
    int64_t n = 65536;
    double start;

    OK(device_alloc(dev, (size_t)n * 8, DEVICE_PLAIN, &a, &err));
    OK(device_alloc(dev, (size_t)n * 4, DEVICE_PLAIN, &b, &err));
    draw(&a, DT_F64, n, 0, 0);
    draw(&b, DT_F32, n, 1e-6, 0);
    OK(device_view_make(&a, 0, DT_F64, 1, &n, NULL, &w.oracle, &err));
    OK(device_view_make(&b, 0, DT_F32, 1, &n, NULL, &w.got, &err));
    w.eager = w.got;
    run_diff(&w);
    start = now_s();
    for (int i = 0; i < 200; i++)
        run_diff(&w);
    printf("device_diff of 65,536 elements, answer included: %.1f us on the host's clock\n",
           (now_s() - start) / 200 * 1e6);
    device_free(&a);
    device_free(&b);
}

int main(int argc, char **argv)
{
    const int64_t n = (int64_t)1 << (argc > 1 ? atoi(argv[1]) : 28);
    double start = now_s();

    OK(device_open("cuda", 0, &dev, &err));
    printf("%s, device opened in %.0f ms\n", device_info(dev)->name, (now_s() - start) * 1e3);
    printf("| %-44s | %7s | %8s | %6s | %5s |\n|---|---|---|---|---|\n", "what", "GB", "ms", "GB/s", "ratio");
    bench_moves((size_t)n * 8);
    bench_diff("compare float32, oracle float64", DT_F32, DT_F64, n, 0, false, false);
    bench_diff("compare float16, oracle float64", DT_F16, DT_F64, n, 0, false, false);
    bench_diff("compare bfloat16, oracle float64", DT_BF16, DT_F64, n, 0, false, false);
    bench_diff("compare float64, oracle float64", DT_F64, DT_F64, n, 0, false, false);
    bench_diff("compare float32, oracle float32 (kernelbench)", DT_F32, DT_F32, n, 0, false, true);
    bench_diff("compare float16, oracle float16 (kernelbench)", DT_F16, DT_F16, n * 2, 0, false, true);
    bench_diff("compare bfloat16, the same, 1 % wrong", DT_BF16, DT_BF16, n * 2, 0.01, false, true);
    bench_diff("compare int64", DT_I64, DT_I64, n, 0, false, false);
    bench_diff("compare uint8", DT_U8, DT_U8, n * 4, 0, false, false);
    bench_diff("compare float32 transposed, oracle float64", DT_F32, DT_F64, n, 0, true, false);
    bench_diff("compare float32, 1 % wrong", DT_F32, DT_F64, n, 0.01, false, false);
    bench_diff("compare float32, all wrong", DT_F32, DT_F64, n, 1, false, false);
    bench_small();
    bench_host((size_t)256 << 20);
    device_close(dev);
    return 0;
}
