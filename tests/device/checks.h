/* checks.h - what must hold on every backend of src/device: included by tests/device/test_device.c (host) and
 * tests/gpu/test_device.c (cuda). The including file opens 'dev'. compare_tensors(), which shares no code with the
 * kernels, is the judge of device_compare(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/device.h"
#include "eval/check/compare_device.h"

static struct device *dev;
static struct err err = ERR_INIT;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != 0)                                                                                               \
            fail_msg("%s: %s", #call, err.msg);                                                                        \
    } while (0)

/* ---- memory ---- */

static void check_memory(void **state)
{
    static const enum device_mem kinds[] = {DEVICE_PLAIN, DEVICE_SHARED, DEVICE_PINNED};
    uint8_t in[5000], out[5000];
    struct device_buf a, b;
    struct rng r;

    (void)state;
    rng_seed(&r, 1, 0);
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)rng_u64(&r);
    for (size_t k = 0; k < 3; k++) {
        OK(device_alloc(dev, sizeof in, kinds[k], &a, &err));
        OK(device_alloc(dev, sizeof in + 64, DEVICE_PLAIN, &b, &err));
        assert_true(a.capacity >= a.size && a.size == sizeof in);
        OK(device_upload(&a, 0, in, sizeof in, &err));
        OK(device_memset(&b, 0, 7, sizeof in + 64, &err));
        OK(device_copy(&b, 64, &a, 10, 4000, &err));
        OK(device_download(&b, 64, out, 4000, &err));
        assert_memory_equal(out, in + 10, 4000);
        OK(device_download(&b, 63, out, 1, &err));
        assert_int_equal(out[0], 7);
        assert_int_equal(device_upload(&a, 1, in, sizeof in, &err), -1);
        assert_int_equal(err.kind, ERR_BUG);
        assert_int_equal(device_copy(&b, 0, &a, SIZE_MAX, 2, &err), -1);
        device_free(&a);
        device_free(&b);
        assert_null(a.dev);
        device_free(&a);
    }
    assert_int_equal(device_alloc(dev, (size_t)1 << 46, DEVICE_PLAIN, &a, &err), -1);
    assert_false(device_lost(dev));
}

/* Fields of ours come back where they are asked of a view; hostile numbers do not get through. */
static void check_views(void **state)
{
    int64_t shape[] = {4, 8}, back[] = {1, 4}, far[] = {INT64_MAX / 2, 1}, minus[] = {-8, 1},
            huge[] = {INT64_MAX, INT64_MAX};
    int64_t none[] = {0, INT64_MAX / 2};
    struct device_buf b;
    struct device_view v;

    (void)state;
    OK(device_alloc(dev, 128 + 4, DEVICE_PLAIN, &b, &err));
    OK(device_view_make(&b, 4, DT_F32, 2, shape, NULL, &v, &err));
    assert_true(v.ptr == b.ptr + 4 && v.strides[0] == 8 && v.strides[1] == 1);
    OK(device_view_make(&b, 4, DT_F32, 2, shape, back, &v, &err));
    assert_int_equal(device_view_numel(&v), 32);
    assert_int_equal(device_view_make(&b, 8, DT_F32, 2, shape, NULL, &v, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_int_equal(device_view_make(&b, 0, DT_C64, 2, shape, NULL, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 2, DT_F32, 2, shape, NULL, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 0, DT_F32, 2, shape, far, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 0, DT_F32, 2, shape, minus, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 0, DT_U8, 2, huge, none, &v, &err), -1);
    assert_int_equal(device_view_make(&b, SIZE_MAX - 3, DT_U8, 2, shape, NULL, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 0, (enum dtype)99, 2, shape, NULL, &v, &err), -1);
    assert_int_equal(device_view_make(&b, 0, DT_U8, 17, shape, NULL, &v, &err), -1);
    device_free(&b);
}

/* ---- compare ---- */

static const enum dtype all_types[] = {DT_BOOL, DT_U8,   DT_I8,  DT_I16, DT_I32, DT_I64,
                                       DT_F16,  DT_BF16, DT_F32, DT_F64, DT_C64, DT_C128};
#define N_TYPES (sizeof all_types / sizeof all_types[0])

static void put(uint8_t *p, enum dtype t, int64_t i, double x)
{
    float f = (float)x;
    uint32_t b;
    uint16_t h;

    memcpy(&b, &f, 4);
    switch (t) {
    case DT_BOOL: p[i] = x != 0 && !isnan(x); break;
    case DT_U8: p[i] = (uint8_t)(int64_t)fmod(fabs(x), 256); break;
    case DT_I8: ((int8_t *)p)[i] = (int8_t)fmod(x, 127); break;
    case DT_I16: ((int16_t *)p)[i] = (int16_t)fmod(x, 32767); break;
    case DT_I32: ((int32_t *)p)[i] = (int32_t)x; break;
    case DT_I64: ((int64_t *)p)[i] = (int64_t)x; break;
    case DT_BF16: h = (uint16_t)(b >> 16); memcpy(p + 2 * i, &h, 2); break;
    case DT_F16: /* truncating: any half will do */
        h = (uint16_t)(b >> 16 & 0x8000);
        if (isnan(x) || isinf(x))
            h |= isnan(x) ? 0x7e00 : 0x7c00;
        else if (fabs(x) >= 0x1p-24)
            h |= (uint16_t)(fabs(x) >= 0x1p-14 ? ((b & 0x7fffffff) - 0x38000000u) >> 13 : (uint32_t)(fabs(x) * 0x1p24));
        memcpy(p + 2 * i, &h, 2);
        break;
    case DT_F32:
    case DT_C64: memcpy(p + 4 * i, &f, 4); break;
    default: memcpy(p + 8 * i, &x, 8); break;
    }
}

/* One comparison on both sides. got may be laid out with strides in device memory; the CPU sees it contiguous. */
struct pair {
    enum dtype type, oracle_type;
    int ndim;
    int64_t shape[DEVICE_MAX_DIMS], n; /* n real components */
    uint8_t *eager, *oracle, *got;
    int64_t strides[DEVICE_MAX_DIMS]; /* of got */
    bool strided;
    size_t shift; /* bytes that got's memory starts late: alignment */
};

static void pair_make(struct pair *p, enum dtype type, bool wide, int ndim, const int64_t *shape, struct rng *r)
{
    *p = (struct pair){.type = type, .ndim = ndim, .n = dt_components(type)};
    p->oracle_type = !wide || !dt_is_float(type) ? type : dt_components(type) == 2 ? DT_C128 : DT_F64;
    for (int d = 0; d < ndim; d++)
        p->n *= p->shape[d] = shape[d];
    p->eager = xcalloc((size_t)p->n + 1, dt_size(type));
    p->got = xcalloc((size_t)p->n + 1, dt_size(type));
    p->oracle = xcalloc((size_t)p->n + 1, dt_size(p->oracle_type));
    for (int64_t i = 0; i < p->n; i++) {
        double x = dt_is_float(type) ? rng_normal(r) : (double)rng_below(r, 100);

        put(p->oracle, p->oracle_type, i, x);
        put(p->eager, type, i, x);
        put(p->got, type, i, x);
    }
}

static void pair_free(struct pair *p)
{
    free(p->eager);
    free(p->oracle);
    free(p->got);
}

/* got's strides: dimensions in reverse order of memory, with a gap after each row. */
static void pair_stride(struct pair *p)
{
    int64_t at = 1;

    for (int d = 0; d < p->ndim; d++) {
        p->strides[d] = at;
        at *= p->shape[d] + 1;
    }
    p->strided = true;
}

static int64_t offset_of(const struct pair *p, int64_t element)
{
    int64_t at = 0;

    for (int d = p->ndim - 1; d >= 0; d--) {
        at += element % p->shape[d] * p->strides[d];
        element /= p->shape[d];
    }
    return at;
}

static void upload_got(const struct pair *p, struct device_buf *b, struct device_view *v)
{
    size_t item = dt_size(p->type) * (size_t)dt_components(p->type), n = (size_t)p->n / (size_t)dt_components(p->type),
           room = n;
    uint8_t *bytes;

    if (p->strided)
        room = n ? (size_t)offset_of(p, (int64_t)n - 1) + 1 : 0;
    bytes = xcalloc(room * item + p->shift + 1, 1);
    for (size_t i = 0; i < n; i++)
        memcpy(bytes + p->shift + (p->strided ? (size_t)offset_of(p, (int64_t)i) : i) * item, p->got + i * item, item);
    OK(device_alloc(dev, room * item + p->shift, DEVICE_PLAIN, b, &err));
    OK(device_upload(b, 0, bytes, room * item + p->shift, &err));
    OK(device_view_make(b, p->shift, p->type, p->ndim, p->shape, p->strided ? p->strides : NULL, v, &err));
    free(bytes);
}

static void upload_plain(const struct pair *p, enum dtype type, const uint8_t *bytes, struct device_buf *b,
                         struct device_view *v)
{
    size_t n = (size_t)p->n * dt_size(type);

    OK(device_alloc(dev, n, DEVICE_PLAIN, b, &err));
    OK(device_upload(b, 0, bytes, n, &err));
    OK(device_view_make(b, 0, type, p->ndim, p->shape, NULL, v, &err));
}

static struct tensor host_tensor(const struct pair *p, enum dtype type, const uint8_t *data)
{
    struct tensor t = {.dtype = type, .ndim = p->ndim, .n = p->n, .data = data};

    memcpy(t.shape, p->shape, sizeof t.shape);
    return t;
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* A device does not say which memory was never written. */
static bool same_pattern(const char *cpu, const char *device)
{
    const char *unknown = strstr(device, " (never written?)");

    return unknown ? !strncmp(cpu, device, (size_t)(unknown - device)) : !strcmp(cpu, device);
}

static void assert_same(const struct comparison *a, const struct comparison *b, const char *what)
{
    if (a->kind == b->kind && a->n == b->n && a->n_bad == b->n_bad && a->n_nan == b->n_nan && a->first == b->first &&
        a->worst == b->worst && same_double(a->max_abs, b->max_abs) && same_double(a->max_rel, b->max_rel) &&
        same_double(a->first_expected, b->first_expected) && same_double(a->first_got, b->first_got) &&
        same_double(a->worst_expected, b->worst_expected) && same_double(a->worst_got, b->worst_got) &&
        !strcmp(a->first_at, b->first_at) && !strcmp(a->worst_at, b->worst_at) &&
        same_pattern(a->pattern, b->pattern) &&
        !strcmp(a->detail, b->detail))
        return;
    fail_msg("%s\ncpu:    kind %d n %lld bad %lld nan %lld first %lld (%a %a) worst %lld (%a %a) abs %a rel %a '%s'\n"
             "device: kind %d n %lld bad %lld nan %lld first %lld (%a %a) worst %lld (%a %a) abs %a rel %a '%s'",
             what, a->kind, (long long)a->n, (long long)a->n_bad, (long long)a->n_nan, (long long)a->first,
             a->first_expected, a->first_got, (long long)a->worst, a->worst_expected, a->worst_got, a->max_abs,
             a->max_rel, a->pattern, b->kind, (long long)b->n, (long long)b->n_bad, (long long)b->n_nan,
             (long long)b->first, b->first_expected, b->first_got, (long long)b->worst, b->worst_expected, b->worst_got,
             b->max_abs, b->max_rel, b->pattern);
}

/* Compares on the CPU and on the device, twice; *ret is the answer that all gave. */
static void pair_check(const struct pair *p, const struct tolerance *tol, struct comparison *ret, const char *what)
{
    struct tensor eager = host_tensor(p, p->type, p->eager), oracle = host_tensor(p, p->oracle_type, p->oracle);
    struct tensor got = host_tensor(p, p->type, p->got);
    struct device_buf be, bo, bg;
    struct device_view ve, vo, vg;
    struct comparison want, have;

    compare_tensors(&eager, &oracle, &got, tol, &want);
    upload_plain(p, p->type, p->eager, &be, &ve);
    upload_plain(p, p->oracle_type, p->oracle, &bo, &vo);
    upload_got(p, &bg, &vg);
    for (int twice = 0; twice < 2; twice++) {
        OK(device_compare(dev, &ve, &vo, &vg, tol, &have, &err));
        assert_same(&want, &have, what);
    }
    device_free(&be);
    device_free(&bo);
    device_free(&bg);
    *ret = want;
}

static const struct tolerance strict_tol = {.abs = 1e-3, .rel = 2e-2, .usable = true};
static const struct tolerance close_tol = {.abs = 1e-2, .rel = 1e-2, .usable = true, .allclose = true};

/* Every dtype, contiguous, late by one element and strided, equal and disturbed at random. */
static void check_compare_random(void **state)
{
    static const int64_t shapes[][4] = {{1}, {37}, {31, 33}, {4, 5, 6, 7}, {1, 300, 1, 7}, {129, 255}, {0, 3}, {2049}};
    static const int ndims[] = {1, 1, 2, 4, 4, 2, 2, 1};
    struct comparison c;
    struct rng r;
    struct pair p;
    char what[96];
    int wrong = 0, right = 0;

    (void)state;
    rng_seed(&r, 7, 0);
    for (size_t k = 0; k < N_TYPES * 8 * 12; k++) {
        enum dtype type = all_types[k % N_TYPES];
        size_t s = k / N_TYPES % 8, how = k / N_TYPES / 8;

        snprintf(what, sizeof what, "%s, shape %zu, variant %zu", dt_name(type), s, how);
        pair_make(&p, type, how % 2, ndims[s], shapes[s], &r);
        p.shift = how % 3 == 1 ? dt_size(type) : 0;
        if (how % 3 == 2)
            pair_stride(&p);
        if (how >= 6)
            for (int64_t i = 0; i < p.n; i++)
                if (rng_below(&r, 5) == 0)
                    put(p.got, type, i, rng_normal(&r) * 3);
        pair_check(&p, how % 4 < 2 ? &strict_tol : &close_tol, &c, what);
        wrong += c.kind == CMP_VALUES;
        right += c.kind == CMP_SAME;
        pair_free(&p);
    }
    assert_true(wrong > 200 && right > 200);
}

/* NaN, infinities, signed zeros, subnormals, overflow of the difference; on either side, under both rules. */
static void check_compare_special(void **state)
{
    static const double values[] = {0.0,      -0.0,    1.0,   -1.0,   INFINITY, -INFINITY, NAN,   0x1p-1074,
                                    0x1p-149, 0x1p-24, 1e308, -1e308, 65504,    3e38,      -3e38, 1.0000001};
    enum { N = sizeof values / sizeof values[0] };
    static const enum dtype types[] = {DT_F16, DT_BF16, DT_F32, DT_F64, DT_C64, DT_C128};
    int64_t shape[] = {N, N};
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 8, 0);
    for (int k = 0; k < 6 * 2 * 2 * 2; k++) {
        enum dtype type = types[k % 6];

        pair_make(&p, type, k / 6 % 2, 2, shape, &r);
        if (k / 12 % 2)
            pair_stride(&p);
        for (int64_t i = 0; i < p.n; i++) {
            put(p.oracle, p.oracle_type, i, values[i / N % N]);
            put(p.got, type, i, values[i % N]);
        }
        pair_check(&p, k / 24 ? &close_tol : &strict_tol, &c, dt_name(type));
        assert_int_equal(c.kind, CMP_VALUES);
        assert_true(c.n_nan > 0);
        pair_free(&p);
    }
}

/* One wrong element at the ends, in the middle, at block and tile borders: found, and nothing else. */
static void check_compare_single(void **state)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_F64, DT_I64, DT_U8, DT_C64};
    int64_t shape[] = {70001};
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 9, 0);
    for (size_t k = 0; k < 6; k++) {
        int64_t n = 70001 * dt_components(types[k]), spots[] = {0, 1, 255, 256, 2047, 2048, 35000, n - 2, n - 1};

        for (size_t s = 0; s < sizeof spots / sizeof spots[0]; s++) {
            pair_make(&p, types[k], s % 2 == 0, 1, shape, &r);
            put(p.got, types[k], spots[s], 111);
            pair_check(&p, &strict_tol, &c, dt_name(types[k]));
            assert_true(c.n_bad == 1 && c.first == spots[s] && c.worst == spots[s]);
            pair_free(&p);
        }
    }
}

/* A worst error that occurs often is reported where it is first; NaN counts as infinitely wrong. */
static void check_compare_worst(void **state)
{
    int64_t shape[] = {100000};
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 10, 0);
    pair_make(&p, DT_F32, true, 1, shape, &r);
    for (int64_t i = 0; i < p.n; i++) {
        put(p.oracle, DT_F64, i, 1);
        put(p.got, DT_F32, i, i >= 777 && i % 7 == 0 ? 5 : 1);
    }
    pair_check(&p, &strict_tol, &c, "ties");
    assert_true(c.worst == 777 && c.first == 777 && c.max_abs == 4 && c.max_rel == 4);
    put(p.got, DT_F32, 99990, NAN);
    put(p.got, DT_F32, 99991, INFINITY);
    pair_check(&p, &strict_tol, &c, "ties and nan");
    assert_true(c.worst == 99990 && c.n_nan == 1 && c.max_abs == 4);
    pair_free(&p);
}

/* Integers: the reference and the oracle may differ, then both are right. */
static void check_compare_integers(void **state)
{
    static const enum dtype types[] = {DT_BOOL, DT_U8, DT_I8, DT_I16, DT_I32, DT_I64};
    int64_t shape[] = {5000};
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 11, 0);
    for (size_t k = 0; k < 6; k++) {
        pair_make(&p, types[k], false, 1, shape, &r);
        memset(p.eager, 1, (size_t)p.n * dt_size(types[k]));
        memcpy(p.got, p.eager, (size_t)p.n * dt_size(types[k]));
        memcpy(p.got, p.oracle, 2000 * dt_size(types[k]));
        pair_check(&p, &strict_tol, &c, "eager or oracle");
        assert_int_equal(c.kind, CMP_SAME);
        put(p.got, types[k], 17, types[k] == DT_BOOL ? !p.oracle[17] : 77);
        put(p.eager, types[k], 17, types[k] == DT_BOOL ? p.oracle[17] : 2);
        pair_check(&p, &strict_tol, &c, "one wrong");
        assert_int_equal(c.n_bad, 1);
        if (types[k] == DT_I64) { /* beyond 2^53, where doubles do not see the difference */
            ((int64_t *)p.got)[3000] = ((int64_t *)p.eager)[3000] = ((int64_t *)p.oracle)[3000] = INT64_MAX;
            ((int64_t *)p.got)[3000] -= 1;
            pair_check(&p, &strict_tol, &c, "large integers");
            assert_int_equal(c.n_bad, 2);
        }
        if (types[k] == DT_BOOL) { /* any byte but 0 is true */
            memset(p.got, 0x80, (size_t)p.n);
            memset(p.eager, 1, (size_t)p.n);
            pair_check(&p, &strict_tol, &c, "true is true");
            assert_int_equal(c.kind, CMP_SAME);
        }
        pair_free(&p);
    }
}

/* The shapes of typical mistakes are named alike, and by name. */
static void check_patterns(void **state)
{
    static const struct {
        const char *text; /* part of what must be said; NULL: only equal on both sides */
        int64_t shape[4];
        int ndim;
        int rule;
    } rows[] = {
        {"last 5 of 37 rows", {37, 41}, 2, 0},
        {"columns", {37, 41}, 2, 1},
        {"every 2nd row", {64, 33}, 2, 2},
        {"all elements from", {100, 77}, 2, 3},
        {"dim 1", {6, 8, 10, 5}, 4, 4},
        {"all elements", {9, 9}, 2, 5},
        {"every 3th element", {10001}, 1, 6},
        {"every 64th element", {9999}, 1, 7},
        {"got = expected * 2", {3000}, 1, 8},
        {"got = expected +3", {3000}, 1, 9},
        {"sign is inverted", {50, 60}, 2, 10},
        {"all of them nan", {50, 60}, 2, 11},
        {"all of them 4", {4000, 3}, 2, 12},
        {NULL, {70000, 2}, 2, 13},
        {NULL, {2, 70000}, 2, 13},
        {"every 4th column", {200, 64}, 2, 14},
        {"only row 3", {5, 9000}, 2, 15},
        {"flat indices 1 to", {9001}, 1, 16},
    };
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 12, 0);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        pair_make(&p, k % 3 ? DT_F32 : DT_F64, true, rows[k].ndim, rows[k].shape, &r);
        for (int64_t i = 0; i < p.n; i++) {
            int64_t cols = rows[k].shape[rows[k].ndim - 1], row = i / cols, col = i % cols;
            double x = 1 + (double)rng_below(&r, 1000) / 100, y = x;
            bool noisy = rng_below(&r, 3) == 0;

            switch (rows[k].rule) {
            case 0: y += row >= 32 ? 1 + x * x : 0; break;
            case 1: y += col >= 7 && col < 12 ? 1 + x * x : 0; break;
            case 2: y += row % 2 ? 1 + x * x : 0; break;
            case 3: y += i >= 4128 ? 1 + x * x : 0; break;
            case 4: y += i / 50 % 8 >= 3 && i / 50 % 8 < 6 ? 1 + x * x : 0; break;
            case 5: y += 1 + x * x; break;
            case 6: y += i % 3 == 1 ? 1 + x * x : 0; break;
            case 7: y += i % 64 == 5 ? 1 + x * x : 0; break;
            case 8: y *= 2; break;
            case 9: y += 3; break;
            case 10: y = -x; break;
            case 11: y = noisy ? NAN : x; break;
            case 12: x += 10; y = 4; break;
            case 13: y += noisy ? x * x : 0; break;
            case 14: y += col % 4 == 2 ? x * x : 0; break;
            case 15: y += row == 3 ? x * x : 0; break;
            default: y += i % 50 ? 1 + x * x : 0; break;
            }
            put(p.oracle, p.oracle_type, i, x);
            put(p.got, p.type, i, y);
        }
        pair_check(&p, &strict_tol, &c, rows[k].text ? rows[k].text : "any pattern");
        if (rows[k].text && !strstr(c.pattern, rows[k].text))
            fail_msg("expected '%s', got '%s'", rows[k].text, c.pattern);
        pair_free(&p);
    }
}

static void check_compare_kinds(void **state)
{
    int64_t a[] = {4, 8}, b[] = {8, 4};
    struct device_buf m;
    struct device_view va, vb, vc;
    struct comparison c;

    (void)state;
    OK(device_alloc(dev, 256, DEVICE_PLAIN, &m, &err));
    OK(device_memset(&m, 0, 0, 256, &err));
    OK(device_view_make(&m, 0, DT_F32, 2, a, NULL, &va, &err));
    OK(device_view_make(&m, 0, DT_F32, 2, b, NULL, &vb, &err));
    OK(device_view_make(&m, 0, DT_F64, 2, a, NULL, &vc, &err));
    OK(device_compare(dev, &va, &va, &vb, &strict_tol, &c, &err));
    assert_int_equal(c.kind, CMP_SHAPE);
    assert_string_equal(c.detail, "shape: expected (4, 8), got (8, 4)");
    OK(device_compare(dev, &va, &va, &vc, &strict_tol, &c, &err));
    assert_int_equal(c.kind, CMP_DTYPE);
    OK(device_compare(dev, &va, &vc, &va, &strict_tol, &c, &err));
    assert_int_equal(c.kind, CMP_SAME);
    device_free(&m);
}

/* ---- checksum ---- */

/* The checksum of the last bytes uploaded to a, [at, at + n) of them. */
static uint64_t checksum(const struct device_buf *a, size_t at, size_t n, uint64_t first)
{
    uint64_t sum = 0;

    OK(device_checksum(a, at, n, first, &sum, &err));
    return sum;
}

/* The same from its definition: the sum of mix(word ^ i * C1), the bytes padded with zeros to whole words. */
static uint64_t checksum_defined(const uint8_t *p, size_t n, uint64_t first)
{
    size_t words = (n + 7) / 8;
    uint64_t *w = xcalloc(words + 1, 8), sum = 0;

    memcpy(w, p, n);
    for (size_t i = 0; i < words; i++) {
        uint64_t h = w[i] ^ (first + i) * 11400714819323198485u;

        h = h * 13787848793156543929u;
        h = (h ^ (h / 4294967296u)) * 10723151780598845931u;
        sum += h;
    }
    free(w);
    return sum;
}

static void check_checksum(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 2051, 4096, 100003, 300007};
    static const size_t offsets[] = {0, 1, 3, 4, 8, 13, 64};
    static const uint64_t firsts[] = {1, 2, 1 << 20, 0xfffffffffffffff0u};
    static uint8_t x[300100];
    struct device_buf a;
    struct rng r;

    (void)state;
    rng_seed(&r, 17, 0);
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)rng_u64(&r);
    OK(device_alloc(dev, sizeof x, DEVICE_PLAIN, &a, &err));
    OK(device_upload(&a, 0, x, sizeof x, &err));
    for (size_t k = 0; k < 12 * 7 * 4; k++) {
        size_t n = sizes[k % 12], at = offsets[k / 12 % 7];
        uint64_t first = firsts[k / 84], sum = checksum(&a, at, n, first);
        size_t half = n / 16 * 8;

        assert_true(sum == checksum_defined(x + at, n, first));
        assert_true(sum == checksum(&a, at, n, first));
        assert_true(sum == checksum(&a, at, half, first) + checksum(&a, at + half, n - half, first + half / 8));
        assert_true(n == 0 ? sum == 0 : sum != checksum(&a, at, n, first + 1));
    }
    assert_int_equal(device_checksum(&a, 1, sizeof x, 1, &(uint64_t){0}, &err), -1);
    device_free(&a);
}

/* Every bit of every byte, wherever it lies; none of the bytes beside them. */
static void check_checksum_sees_all(void **state)
{
    uint8_t x[160], bit;
    struct device_buf a;
    uint64_t whole;

    (void)state;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 7 + i / 16);
    OK(device_alloc(dev, sizeof x, DEVICE_PLAIN, &a, &err));
    OK(device_upload(&a, 0, x, sizeof x, &err));
    for (size_t k = 0; k < 4; k++) {
        size_t at = (size_t[]){8, 16, 11, 4}[k], n = (size_t[]){64, 61, 53, 100}[k];

        whole = checksum(&a, at, n, 1);
        for (size_t i = 0; i < sizeof x; i++) {
            bit = (uint8_t)(x[i] ^ 1 << (i * 5 + k) % 8);
            OK(device_upload(&a, i, &bit, 1, &err));
            assert_int_equal(checksum(&a, at, n, 1) != whole, i >= at && i < at + n);
            OK(device_upload(&a, i, &x[i], 1, &err));
        }
    }
    whole = checksum(&a, 0, 64, 1);
    OK(device_upload(&a, 0, x + 8, 8, &err)); /* two words that have changed places */
    OK(device_upload(&a, 8, x, 8, &err));
    assert_true(checksum(&a, 0, 64, 1) != whole);
    device_free(&a);
}

/* Bytes 0, 7, 14, ...: numbers from an evaluation elsewhere (Python's integers). */
static void check_checksum_is_the_one(void **state)
{
    uint8_t x[1003];
    struct device_buf a;

    (void)state;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 7 + i / 256);
    OK(device_alloc(dev, sizeof x, DEVICE_PLAIN, &a, &err));
    OK(device_upload(&a, 0, x, sizeof x, &err));
    assert_true(checksum(&a, 0, sizeof x, 1) == 0x3358ae74f755307bu);
    assert_true(checksum(&a, 3, 500, 1234567890123u) == 0x70c2cd177644bf69u);
    device_free(&a);
}

/* ---- two processes ---- */

static void send_fd(int sock, int fd, size_t capacity)
{
    union {
        char b[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec v = {&capacity, sizeof capacity};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.b, .msg_controllen = sizeof control.b};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    assert_int_equal(sendmsg(sock, &m, 0), sizeof capacity);
}

static int recv_fd(int sock, size_t *capacity)
{
    union {
        char b[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec v = {capacity, sizeof *capacity};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.b, .msg_controllen = sizeof control.b};
    int fd;

    if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != sizeof *capacity || !CMSG_FIRSTHDR(&m))
        return -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

/* The other process: maps the buffer, checks what it finds, writes its answer. Exit code: 0, or the step that failed.
 */
static int peer(const char *backend, int sock, enum device_mem kind, size_t size)
{
    struct device *d;
    struct device_buf b;
    uint8_t *bytes = xcalloc(size, 1);
    size_t capacity;
    int fd = recv_fd(sock, &capacity);

    if (fd < 0 || device_open(backend, 0, &d, &err) < 0)
        return 1;
    if (device_import(d, fd, kind, size, capacity, &b, &err) < 0)
        return fprintf(stderr, "%s\n", err.msg), 2;
    close(fd);
    if (device_download(&b, 0, bytes, size, &err) < 0)
        return 3;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (uint8_t)(i * 3))
            return 4;
        bytes[i] = (uint8_t)(i * 5);
    }
    if (device_upload(&b, 0, bytes, size, &err) < 0)
        return 5;
    device_free(&b);
    device_close(d);
    free(bytes);
    return 0;
}

/* Started before this process opens its device: CUDA does not survive a fork. The parent closes its ends of all others.
 */
struct peer {
    int sock;
    pid_t pid;
};

static struct peer peer_start(const char *backend, enum device_mem kind, size_t size)
{
    struct peer p;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || (p.pid = fork()) < 0)
        abort();
    if (p.pid == 0) {
        close(pair[0]);
        _exit(peer(backend, pair[1], kind, size));
    }
    close(pair[1]);
    p.sock = pair[0];
    return p;
}

static void peer_finish(struct peer *p, enum device_mem kind, size_t size)
{
    uint8_t *bytes = xcalloc(size, 1);
    struct device_buf b;
    int fd, status;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 3);
    OK(device_alloc(dev, size, kind, &b, &err));
    OK(device_upload(&b, 0, bytes, size, &err));
    OK(device_export(&b, &fd, &err));
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    send_fd(p->sock, fd, b.capacity);
    close(fd);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    OK(device_download(&b, 0, bytes, size, &err));
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (uint8_t)(i * 5))
            fail_msg("byte %zu is %d after the other process wrote it", i, bytes[i]);
    device_free(&b);
    close(p->sock);
    free(bytes);
}

static void check_import_refused(void **state)
{
    struct device_buf plain, b;
    int fd, pipes[2];

    (void)state;
    OK(device_alloc(dev, 4096, DEVICE_PLAIN, &plain, &err));
    assert_int_equal(device_export(&plain, &fd, &err), -1);
    assert_int_equal(err.kind, ERR_BUG);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(device_import(dev, pipes[0], DEVICE_SHARED, 4096, 4096, &b, &err), -1);
    assert_int_equal(device_import(dev, pipes[0], DEVICE_PINNED, 4096, 4096, &b, &err), -1);
    OK(device_alloc(dev, 4096, DEVICE_PINNED, &b, &err));
    OK(device_export(&b, &fd, &err));
    assert_int_equal(ftruncate(fd, 0), -1); /* a peer cannot take the pages away */
    device_free(&b);
    assert_int_equal(device_import(dev, fd, DEVICE_PINNED, 4096, 1 << 20, &b, &err), -1); /* more than there is */
    assert_int_equal(device_import(dev, fd, DEVICE_PINNED, 8192, 4096, &b, &err), -1);
    close(fd);
    close(pipes[0]);
    close(pipes[1]);
    device_free(&plain);
    assert_false(device_lost(dev));
}

static void check_usage(void **state)
{
    size_t before, with, after, total;
    struct device_health h;
    struct device_buf b;

    (void)state;
    OK(device_usage(dev, &before, &total, &err));
    OK(device_alloc(dev, 64 << 20, DEVICE_SHARED, &b, &err));
    OK(device_usage(dev, &with, &total, &err));
    device_free(&b);
    OK(device_usage(dev, &after, &total, &err));
    assert_true(with >= before + (64 << 20) && after <= with - (64 << 20) && total >= with);
    OK(device_health(dev, &h, &err));
    assert_true(h.known || h.sm_mhz < 0);
}

#define SHARED_CHECKS                                                                                                  \
    cmocka_unit_test(check_memory), cmocka_unit_test(check_views), cmocka_unit_test(check_compare_random),             \
    cmocka_unit_test(check_compare_special), cmocka_unit_test(check_compare_single),                                   \
    cmocka_unit_test(check_compare_worst), cmocka_unit_test(check_compare_integers),                                   \
    cmocka_unit_test(check_patterns), cmocka_unit_test(check_compare_kinds), cmocka_unit_test(check_checksum),         \
    cmocka_unit_test(check_checksum_sees_all), cmocka_unit_test(check_checksum_is_the_one),                            \
    cmocka_unit_test(check_import_refused), cmocka_unit_test(check_usage)
