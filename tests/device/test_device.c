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

/* Known answers of the generator's authors (Random123, kat_vectors). */
static void test_philox(void **state)
{
    struct el_u4 x = el_philox(0, 0);

    (void)state;
    assert_true(x.v[0] == 0x6627e8d5 && x.v[1] == 0xe169c58d && x.v[2] == 0xbc57ac4c && x.v[3] == 0x9b00dbd8);
}

/* Conversions of every half number against the CPU's reader; rounding of every bfloat16 and half number back. */
static void test_half(void **state)
{
    uint16_t h;
    struct tensor t = {.dtype = DT_F16, .data = (uint8_t *)&h};

    (void)state;
    for (int i = 0; i < 65536; i++) {
        double want;

        h = (uint16_t)i;
        t.dtype = DT_F16;
        want = tensor_at(&t, 0);
        assert_true(isnan(want) ? isnan(el_half(h)) : want == (double)el_half(h));
        if (isfinite(want))
            assert_true(el_to_half((float)want) == h);
        t.dtype = DT_BF16;
        want = tensor_at(&t, 0);
        assert_true(isnan(want) ? isnan(el_bf16(h)) : want == (double)el_bf16(h));
        if (isfinite(want))
            assert_true(el_to_bf16((float)want) == h);
    }
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
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_info), cmocka_unit_test(test_philox),
        cmocka_unit_test(test_half), cmocka_unit_test(test_two_processes), SHARED_CHECKS,
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
