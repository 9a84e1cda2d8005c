/* test_device.c - src/device on the host backend: all that does not need a GPU, and what is said when there is none. */
#include "checks.h"
#include "device/element.h"

static void test_no_driver(void **state)
{
    struct device_info *all;
    int n;

    (void)state;
    assert_int_equal(setenv("MUSACODER_LIBCUDA", "libno-such-driver.so.1", 1), 0);
    assert_int_equal(device_list("cuda", &all, &n, &err), -1);
    assert_int_equal(err.kind, ERR_ENV);
    assert_non_null(strstr(err.msg, "no NVIDIA driver: 'libno-such-driver.so.1' is not found; install"));
    assert_int_equal(device_list("vulkan", &all, &n, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
}

static void test_info(void **state)
{
    struct device *d;

    (void)state;
    assert_string_equal(device_info(dev)->backend, "host");
    assert_true(device_info(dev)->memory > 0 && device_has_kernels(dev));
    assert_int_equal(device_open("host", 1, &d, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
}

/* Passing over dull elements changes nothing: half and single precision, noise of few and of many bits, zeros, ties,
 * NaN. */
static void test_dull(void **state)
{
    static const struct el_tolerance tols[] = {
        {1e-2, 1e-2, 1, 0}, {0, 0, 0, 0}, {0, 1e-3, 0, 0}, {NAN, 0, 0, 0}, {1e-2, 5, 0, 0}};
    struct rng r;
    int64_t skipped = 0, all = 0;

    (void)state;
    rng_seed(&r, 31, 0);
    for (int k = 0; k < 3000; k++) {
        struct el_tally full, lazy;
        struct el_bounds b = {0, 0};
        const struct el_tolerance *tol = &tols[k % 5];
        int bits = k / 5 % 3 == 0 ? 8 : k / 5 % 3 == 1 ? 11 : 24, spread = k / 15 % 2 ? 40 : 2, errors = 1 + k / 30 % 4;

        el_tally_init(&full);
        el_tally_init(&lazy);
        for (int64_t i = 0; i < 300; i++) {
            double unit = ldexp(1, -bits + 1), scale = ldexp(1, (int)rng_below(&r, (uint64_t)spread));
            double o = (double)rng_below(&r, 1ull << (bits < 9 ? bits : 8 + (int)rng_below(&r, (uint64_t)bits - 7))) *
                       unit * scale;
            double g = o + (double)((int)rng_below(&r, (uint64_t)(2 * errors + 1)) - errors) * unit * scale;

            g = rng_below(&r, 400) == 0 ? (rng_below(&r, 2) ? NAN : INFINITY) : (double)(float)g;
            o = rng_below(&r, 8) == 0 ? 0 : o;
            g = rng_below(&r, 8) == 0 ? o : g;
            el_float(&full, i, o, g, tol);
            all++;
            if (el_dull(o, g, &b, tol)) {
                skipped++;
                continue;
            }
            el_float(&lazy, i, o, g, tol);
            b = el_bounds_of(lazy.max_abs, lazy.max_rel);
        }
        assert_memory_equal(&full, &lazy, sizeof full);
    }
    assert_true(skipped > all / 3);
}

static struct peer peers[2];

static void test_two_processes(void **state)
{
    (void)state;
    peer_finish(&peers[0], DEVICE_SHARED, 100000);
    peer_finish(&peers[1], DEVICE_PINNED, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_info), cmocka_unit_test(test_dull),
        cmocka_unit_test(test_two_processes), SHARED_CHECKS,
    };
    int failed;

    peers[0] = peer_start("host", DEVICE_SHARED, 100000);
    peers[1] = peer_start("host", DEVICE_PINNED, 100000);
    if (device_open("host", 0, &dev, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(dev);
    return failed;
}
