/* test_timing.c - the commitment to an output, by the host over bytes and by the judge's kernel over device memory (the
 * host backend, and the cuda backend over a fake driver), beside its definition in timing.h, written here anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "eval/timing.h"

#define BLOB 4000

static uint8_t blob[BLOB];

static void must(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

/* ---- the definition ---- */

static uint64_t mixed(uint64_t word, uint64_t i)
{
    uint64_t h = (word ^ i * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);

    return (h ^ h / (UINT64_C(1) << 32)) * UINT64_C(0x94D049BB133111EB);
}

/* Goes on from word *i. */
static uint64_t of_bytes(const uint8_t *p, size_t n, uint64_t *i)
{
    uint64_t sum = 0, word = 0;

    for (size_t k = 0; k < n; k++) {
        word += (uint64_t)p[k] << k % 8 * 8;
        if (k % 8 == 7 || k == n - 1) {
            sum += mixed(word, ++*i);
            word = 0;
        }
    }
    return sum;
}

static uint64_t of_number(double x, uint64_t i)
{
    uint64_t bits;

    memcpy(&bits, &x, 8);
    return mixed(bits, i);
}

/* ---- trees ---- */

static json_t *leaf(const char *dtype, int elements, int bytes, int offset)
{
    return json_pack("{s:s,s:s,s:[i],s:[i],s:i,s:i}", "t", "tensor", "dtype", dtype, "shape", elements, "strides", 1,
                     "offset", offset, "nbytes", bytes);
}

/* Tensors of whole words and of others, in another order than they lie, aligned and not, one empty; and what is no
 * tensor. */
static json_t *output(void)
{
    json_t *dict = json_pack("{s:s,s:[[s,o],[s,o],[s,s]]}", "t", "dict", "v", "a", leaf("uint8", 33, 33, 1001), "b",
                             leaf("float64", 0, 0, 0), "c", "text");

    return json_pack("{s:s,s:[o,f,o,i,b,o,n,{s:s,s:s},o]}", "t", "tuple", "v", leaf("float32", 64, 256, 2048), 0.5,
                     dict, 7, 1, leaf("float16", 7, 14, 64), "t", "float", "v", "-inf", leaf("int16", 7, 14, 97));
}

static uint64_t output_defined(const uint8_t *p)
{
    uint64_t i = 0, sum = of_bytes(p + 2048, 256, &i) + of_bytes(p + 1001, 33, &i);

    sum += of_bytes(p + 64, 14, &i);
    sum += of_bytes(p + 97, 14, &i);
    assert_int_equal(i, 32 + 5 + 2 + 2);
    return sum + of_number(0.5, 1) + of_number(7, 2) + of_number(1, 3) + of_number(-__builtin_inf(), 4);
}

/* ---- where the bytes are ---- */

static uint64_t here(const json_t *tree)
{
    struct err e = ERR_INIT;
    uint64_t sum = 0;

    must(timing_commitment(tree, (char *)blob, BLOB, &sum, &e), &e);
    return sum;
}

static uint64_t there(const json_t *tree, const struct device_buf *b)
{
    struct err e = ERR_INIT;
    uint64_t sum = 0;

    must(timing_commitment_on(tree, b, BLOB, &sum, &e), &e);
    return sum;
}

static bool inside(size_t i)
{
    return (i >= 2048 && i < 2048 + 256) || (i >= 1001 && i < 1001 + 33) || (i >= 64 && i < 64 + 14) ||
           (i >= 97 && i < 97 + 14);
}

static void on_device(const char *name)
{
    json_t *tree = output(), *other;
    struct err e = ERR_INIT;
    struct device_buf b;
    struct device *d;
    uint64_t sum;

    for (size_t i = 0; i < BLOB; i++)
        blob[i] = (uint8_t)(i * i / 3 + i);
    must(device_open(name, 0, &d, &e), &e);
    must(device_alloc(d, BLOB, DEVICE_PLAIN, &b, &e), &e);
    must(device_upload(&b, 0, blob, BLOB, &e), &e);
    sum = output_defined(blob);
    assert_true(here(tree) == sum && there(tree, &b) == sum);
    for (size_t i = 0; i < BLOB; i += i % 100 < 80 ? 1 : 7) { /* every byte of the output, and no other */
        uint8_t was = blob[i];

        blob[i] ^= (uint8_t)(1 << i % 8);
        must(device_upload(&b, i, &blob[i], 1, &e), &e);
        assert_int_equal(there(tree, &b) != sum, inside(i));
        assert_true(there(tree, &b) == here(tree));
        blob[i] = was;
        must(device_upload(&b, i, &was, 1, &e), &e);
    }
    json_array_set_new(json_object_get(tree, "v"), 3, json_integer(8));
    assert_true(there(tree, &b) == sum - of_number(7, 2) + of_number(8, 2));
    other = json_pack("{s:s,s:[o,o]}", "t", "list", "v", leaf("uint8", 8, 8, 16), leaf("uint8", 8, 8, 24));
    sum = there(other, &b);
    json_decref(other);
    other = json_pack("{s:s,s:[o,o]}", "t", "list", "v", leaf("uint8", 8, 8, 24), leaf("uint8", 8, 8, 16));
    assert_true(there(other, &b) != sum); /* their order counts */
    json_decref(other);
    device_free(&b);
    device_close(d);
    json_decref(tree);
}

static void test_on_the_host(void **state)
{
    (void)state;
    on_device("host");
}

static void test_on_a_fake_gpu(void **state)
{
    (void)state;
    on_device("cuda");
}

/* Trees are a foreign process's words. */
static void test_what_does_not_fit(void **state)
{
    json_t *bad[] = {leaf("float32", 10, 40, BLOB - 39), leaf("float32", 10, 41, 0), leaf("float32", 10, 40, -8),
                     leaf("float32", INT_MAX, INT_MAX, 0), leaf("number", 10, 40, 0),
                     json_pack("{s:s,s:[o,o]}", "t", "list", "v", leaf("uint8", BLOB, BLOB, 0),
                               leaf("uint8", 1, 1, 0))};
    struct err e = ERR_INIT;
    struct device_buf b;
    struct device *d;
    uint64_t sum = 5;

    (void)state;
    must(device_open("host", 0, &d, &e), &e);
    must(device_alloc(d, BLOB, DEVICE_PLAIN, &b, &e), &e);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e = (struct err)ERR_INIT;
        assert_int_equal(timing_commitment(bad[i], (char *)blob, BLOB, &sum, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        e = (struct err)ERR_INIT;
        assert_int_equal(timing_commitment_on(bad[i], &b, BLOB, &sum, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        json_decref(bad[i]);
    }
    bad[0] = leaf("uint8", 100, 100, 0);
    assert_int_equal(timing_commitment_on(bad[0], &b, 99, &sum, &e), -1); /* more than the output that was asked for */
    assert_int_equal(sum, 5);
    json_decref(bad[0]);
    device_free(&b);
    device_close(d);
}

/* The cuda backend looks for its kernels in lib/ beside the program; the fake driver takes any text for them. */
static bool fake_gpu(void)
{
    struct err e = ERR_INIT;
    char exe[PATH_MAX], *lib, *path, *driver = path_lib("libfakecuda.so");
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    bool ok;

    exe[n < 0 ? 0 : n] = 0;
    *strrchr(exe, '/') = 0;
    lib = path_join(exe, "lib");
    path = path_join(lib, "judge.fatbin");
    ok = driver && dir_make(lib, &e) == 0 && file_write(path, "fake", 5, &e) == 0;
    if (ok)
        setenv("MUSACODER_LIBCUDA", driver, 1);
    free(path);
    free(lib);
    free(driver);
    return ok;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_on_the_host), cmocka_unit_test(test_on_a_fake_gpu),
                                       cmocka_unit_test(test_what_does_not_fit)};

    return fake_gpu() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
