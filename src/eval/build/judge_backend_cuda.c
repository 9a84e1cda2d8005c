/* judge_backend_cuda.c - the backend 'cuda': NVIDIA GPUs. What must be there, and what a child is shown of the
 * driver. How its candidates are compiled is build_cuda.c's. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/device.h"
#include "eval/build/build_target.h"
#include "eval/build/judge_backend.h"

/* Fills *ret with the first GPU's name, driver, UUID, architecture and memory. */
static int judge_cuda_look(struct device_facts *ret, struct err *e)
{
    struct device_info *info = NULL;
    int n = 0;

    if (device_list("cuda", &info, &n, e) < 0)
        return -1;
    ret->name = xasprintf("%s, driver %s", info[0].name, info[0].driver_version);
    ret->uuid = xstrdup(info[0].uuid);
    ret->arch = xasprintf("sm_%d", info[0].cc);
    ret->memory = info[0].memory;
    free(info);
    return 0;
}

/* Appends text (taken) to a list that ends with NULL. */
static void judge_cuda_add(char ***list, size_t *n, char *text)
{
    *list = xrealloc(*list, (*n + 2) * sizeof **list);
    (*list)[(*n)++] = text;
    (*list)[*n] = NULL;
}

/* Environment of processes that use the device, as NAME=VALUE; the caller frees list and words. */
static char **judge_cuda_env(size_t *ret_n)
{
    static const char *const passed[] = {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
                                         "CUDA_HOME"};
    char **list = NULL;

    *ret_n = 0;
    judge_cuda_add(&list, ret_n, xstrdup("CUDA_CACHE_DISABLE=1"));
    judge_cuda_add(&list, ret_n, xstrdup("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    judge_cuda_add(&list, ret_n, xstrdup("CUDA_MODULE_LOADING=LAZY"));
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        if (getenv(passed[i]))
            judge_cuda_add(&list, ret_n, xasprintf("%s=%s", passed[i], getenv(passed[i])));
    return list;
}

/* The GPUs, the control node and unified memory; not the node that watches other processes' memory. */
static char **cuda_devices(size_t *ret_n)
{
    static const char *const patterns[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia[0-9]*"};
    char **list = NULL;
    glob_t g;

    *ret_n = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (glob(patterns[i], 0, NULL, &g) == 0) {
            for (size_t k = 0; k < g.gl_pathc; k++)
                judge_cuda_add(&list, ret_n, xstrdup(g.gl_pathv[k]));
            globfree(&g);
        }
    }
    return list;
}

/* Where the loader looks for the driver besides /usr. */
static char **cuda_folders(size_t *ret_n)
{
    char **list = NULL, *copy = xstrdup(getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : ""), *save = NULL;

    *ret_n = 0;
    for (char *d = strtok_r(copy, ":", &save); d; d = strtok_r(NULL, ":", &save))
        if (d[0] == '/' && strncmp(d, "/usr/", 5) && file_is_dir(d))
            judge_cuda_add(&list, ret_n, xstrdup(d));
    free(copy);
    return list;
}

/* For tests with a driver that is none ($MUSACODER_LIBCUDA, tests/device/fake_cuda.c): reference and baseline are on
 * the CPU. */
static const struct judge_backend backend_cuda_test = {
    .name = "cuda", .target = &build_target_cuda, BACKEND_ON_CPU, BACKEND_TIMED_BY_HOST,
};

const struct judge_backend backend_cuda = {
    .name = "cuda",
    .device = "cuda",
    .client_device = "front",
    .candidate = "front",
    .reference = "reference_cuda",
    .baseline = "baseline_cuda",
    .clock = "cuda",
    .place = "cuda:0",
    .target = &build_target_cuda,
    .on_device = true,
    .timed = true,
    .slots = 18,
    .memory_bytes = (size_t)8 << 30,
    .reference_memory_bytes = (size_t)24 << 30,
    .look = judge_cuda_look,
    .env = judge_cuda_env,
    .devices = cuda_devices,
    .folders = cuda_folders,
    .test_variable = "MUSACODER_TEST_REFERENCE",
    .for_tests = &backend_cuda_test,
};
