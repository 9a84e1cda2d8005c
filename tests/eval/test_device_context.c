/* test_device_context.c - the judge's own device, on a fake GPU that runs out of memory (build/lib/libfakecuda.so). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/build/judge_backend.h"
#include "eval/server/device_context.h"

static void (*fake_memory)(size_t n);

/* The cuda backend looks for its kernels in lib/ beside the program; the fake driver takes any text for them. */
static bool fake_gpu(void)
{
    char exe[PATH_MAX], *lib, *path, *driver = path_lib("libfakecuda.so");
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    void *so = driver ? dlopen(driver, RTLD_NOW) : NULL;
    struct err e = ERR_INIT;

    exe[n < 0 ? 0 : n] = 0;
    *strrchr(exe, '/') = 0;
    lib = path_join(exe, "lib");
    path = path_join(lib, "judge.fatbin");
    if (!so || dir_make(lib, &e) < 0 || file_write(path, "fake", 5, &e) < 0)
        return false;
    *(void **)&fake_memory = dlsym(so, "fake_memory");
    setenv("MUSACODER_LIBCUDA", driver, 1);
    setenv("MUSACODER_LIBNVML", "libno-nvml.so.1", 1);
    free(path);
    free(lib);
    free(driver);
    return fake_memory != NULL;
}

/* Others have the device's memory when a task's device context is opened: the next try may find it. */
static void a_context_for_which_there_is_no_room(void **state)
{
    static struct device_context_set set;
    struct err e = ERR_INIT;

    (void)state;
    device_context_set_init(&set);
    assert_int_equal(device_context_open(&set.each[0], &backend_cuda, &e), 0);
    fake_memory(0);
    assert_int_equal(device_context_open(&set.each[1], &backend_cuda, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    assert_int_equal(device_context_open(&set.each[0], &backend_cuda, &e), 0);
    fake_memory((size_t)1 << 40);
    assert_int_equal(device_context_open(&set.each[1], &backend_cuda, &e), 0);
    device_context_set_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_context_for_which_there_is_no_room)};

    return fake_gpu() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
