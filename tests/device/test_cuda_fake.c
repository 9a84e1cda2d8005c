/* test_cuda_fake.c - the cuda backend without a GPU: build/lib/libfakecuda.so (tests/device/fake_cuda.c) stands in for
 * the driver. All that holds on every backend, nothing left behind, and a GPU that falls off at any call. */
#include "checks.h"

#include <dlfcn.h>
#include <limits.h>

#include "base/file.h"

static void (*fake_fail_after)(long calls, int code);
static long (*fake_live)(void);

static void test_list(void **state)
{
    struct device_info *all;
    int n;

    (void)state;
    OK(device_list("cuda", &all, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(all[1].name, "Fake GPU 1");
    assert_string_equal(all[1].uuid, "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1");
    assert_true(all[0].cc == 90 && all[0].sm_count == 132 && all[0].vmm_fd && fabs(all[0].memory_gbs - 4916.7) < 1);
    assert_true(fabs(all[0].bf16_tflops - 1070.5) < 1 && fabs(all[0].fp32_tflops - 66.9) < 0.1);
    free(all);
    assert_true(device_has_kernels(dev) && device_info(dev)->runtime == 13000);
}

/* One session from opening to closing; -1 if any call failed. Whatever fails, all is given back. */
static int session(bool *ret_lost)
{
    int64_t n = 100;
    struct device_tolerance tol = {0, 0, false};
    struct device_buf a = {0}, b = {0}, c = {0};
    struct device_view v;
    struct device_diff diff;
    struct device *d;
    uint64_t sum;
    int fd = -1, rc = -1;

    *ret_lost = false;
    if (device_open("cuda", 0, &d, &err) < 0)
        return -1;
    if (device_alloc(d, 400, DEVICE_SHARED, &a, &err) == 0 && device_alloc(d, 400, DEVICE_PINNED, &b, &err) == 0 &&
        device_memset(&a, 0, 1, 400, &err) == 0 &&
        device_copy(&b, 0, &a, 0, 400, &err) == 0 && device_export(&a, &fd, &err) == 0 &&
        device_import(d, fd, DEVICE_SHARED, a.size, a.capacity, &c, &err) == 0 &&
        device_view_make(&c, 0, DT_F32, 1, &n, NULL, &v, &err) == 0 &&
        device_diff(d, &v, &v, &v, &tol, &diff, &err) == 0 && device_checksum(&b, 0, 400, 1, &sum, &err) == 0) {
        assert_true(diff.n_bad == 0 && sum != 0);
        rc = 0;
    }
    *ret_lost = device_lost(d);
    if (fd >= 0)
        close(fd);
    device_free(&a);
    device_free(&b);
    device_free(&c);
    device_close(d);
    return rc;
}

/* The device fails at the n-th call, for every n: an error that says so, no crash, nothing left behind. */
static void test_falls_off(void **state)
{
    long before = fake_live(), fell = 0;
    bool lost;

    (void)state;
    for (long n = 0; n < 500; n++) {
        fake_fail_after(n, 719);
        if (session(&lost) == 0) {
            printf("%ld calls, lost after %ld of them\n", n, fell);
            assert_true(n > 40 && fell > 20);
            assert_int_equal(fake_live(), before);
            return;
        }
        assert_int_equal(err.kind, ERR_ENV);
        assert_non_null(strstr(err.msg, "unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED, 719)"));
        fell += lost;
        fake_fail_after(-1, 0);
        if (fake_live() != before)
            fail_msg("%ld things are left behind when call %ld fails: %s", fake_live() - before, n, err.msg);
    }
    fail_msg("a session never ends");
}

/* No memory is a plain error: the device goes on. */
static void test_out_of_memory(void **state)
{
    struct device_buf b;

    (void)state;
    fake_fail_after(0, 2);
    assert_int_equal(device_alloc(dev, 4096, DEVICE_SHARED, &b, &err), -1);
    assert_non_null(strstr(err.msg, "out of memory"));
    assert_int_equal(err.lack, LACK_DEVICE);
    fake_fail_after(0, 1);
    assert_int_equal(device_alloc(dev, 4096, DEVICE_SHARED, &b, &err), -1);
    assert_int_equal(err.lack, LACK_NONE); /* of what was said before nothing is left */
    fake_fail_after(-1, 0);
    assert_false(device_lost(dev));
    check_memory(NULL);
}

static struct peer peers[2];

static void test_two_processes(void **state)
{
    (void)state;
    peer_finish(&peers[0], DEVICE_SHARED, 3 << 20);
    peer_finish(&peers[1], DEVICE_PINNED, 100000);
}

/* The backend looks for its kernels in lib/ beside the program, from the inside out: ours are a word. */
static void make_fatbin(void)
{
    char exe[PATH_MAX], *lib, *path;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n < 0 ? 0 : n] = 0;
    *strrchr(exe, '/') = 0;
    lib = path_join(exe, "lib");
    path = path_join(lib, "judge.fatbin");
    if (dir_make(lib, &err) < 0 || file_write(path, "fake", 5, &err) < 0)
        abort();
    free(path);
    free(lib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),      cmocka_unit_test(test_two_processes), SHARED_CHECKS,
        cmocka_unit_test(test_falls_off), cmocka_unit_test(test_out_of_memory),
    };
    char *path = path_lib("libfakecuda.so");
    void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
    int failed;

    if (!lib) {
        fprintf(stderr, "no libfakecuda.so: %s\n", path ? dlerror() : "make builds it with the tests");
        return 1;
    }
    *(void **)&fake_fail_after = dlsym(lib, "fake_fail_after");
    *(void **)&fake_live = dlsym(lib, "fake_live");
    setenv("MUSACODER_LIBCUDA", path, 1);
    setenv("MUSACODER_LIBNVML", "libno-nvml.so.1", 1);
    make_fatbin();
    peers[0] = peer_start("cuda", DEVICE_SHARED, 3 << 20);
    peers[1] = peer_start("cuda", DEVICE_PINNED, 100000);
    if (device_open("cuda", 0, &dev, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(dev);
    free(path);
    return failed;
}
