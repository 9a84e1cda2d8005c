/* fake_cuda.c - a CUDA driver without a GPU: libcuda's functions over host memory, the judge's kernels run by their
 * twins (device/host_kernels.h). Built into the test that uses it; with it all of cuda.c runs in 'make test', and a GPU
 * can fall off. fake_fail_after: calls until every further one answers a code; -1 = never. fake_memory: it is so
 * small. It checks what a driver would: contexts, sizes, addresses that are mapped, handles that are alive. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/cuda_driver.h"
#include "device/host_kernels.h"
#include "exec/data_movement.h"
#include "exec/data_movement_kernels.h"

#define UNIT ((size_t)2 << 20)
#define INVALID 1
#define OUT_OF_MEMORY 2
#define EXPORT __attribute__((visibility("default")))

static long left = -1, live; /* live: allocations, handles, registrations, events, streams that were not given back */
static int fail_code = 719;
static bool current;
static size_t memory = (size_t)1 << 40, used; /* bytes of cuMemAlloc: what there is, what is taken */

EXPORT void fake_fail_after(long calls, int code);
EXPORT long fake_live(void);
EXPORT void fake_memory(size_t n);

void fake_fail_after(long calls, int code)
{
    left = calls;
    fail_code = code;
}

long fake_live(void)
{
    return live;
}

void fake_memory(size_t n)
{
    memory = n;
}

#define CALL                                                                                                           \
    if (left == 0)                                                                                                     \
        return fail_code;                                                                                              \
    if (left > 0)                                                                                                      \
        left--;
#define NEED_CONTEXT                                                                                                   \
    CALL if (!current) return 201;

#define FAKE(name, ...)                                                                                                \
    EXPORT int name(__VA_ARGS__);                                                                                      \
    int name(__VA_ARGS__)

FAKE(cuInit, unsigned flags)
{
    return flags ? INVALID : 0;
}

/* ---- for the CUDA runtime: the driver of a full GPU, if a file "full" lies beside this library; else there is none
 * ---- */

static int full(void)
{
    return OUT_OF_MEMORY;
}

static bool is_full;

/* When it is loaded: a jailed process may not look later. */
__attribute__((constructor)) static void look_beside(void)
{
    char path[4096];
    Dl_info at;

    if (!dladdr((void *)(intptr_t)full, &at) || !strrchr(at.dli_fname, '/'))
        return;
    snprintf(path, sizeof path, "%.*s/full", (int)(strrchr(at.dli_fname, '/') - at.dli_fname), at.dli_fname);
    is_full = access(path, F_OK) == 0;
}

EXPORT int cuDriverGetVersion(int *v);

FAKE(cuGetProcAddress_v2, const char *name, void **p, int version, unsigned long long flags, void *status)
{
    (void)version;
    (void)flags;
    (void)status;
    *p = (void *)(intptr_t)full;
    if (!strcmp(name, "cuGetProcAddress"))
        *p = (void *)(intptr_t)cuGetProcAddress_v2;
    if (!strcmp(name, "cuDriverGetVersion"))
        *p = (void *)(intptr_t)cuDriverGetVersion;
    return is_full ? 0 : 500;
}

FAKE(cuDriverGetVersion, int *v)
{
    *v = 13000;
    return 0;
}

FAKE(cuGetErrorString, int code, const char **text)
{
    *text = code == 719 ? "unspecified launch failure" : code == OUT_OF_MEMORY ? "out of memory" : "some error";
    return 0;
}

FAKE(cuGetErrorName, int code, const char **text)
{
    *text = code == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
    return 0;
}

static int cards(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    return visible && !*visible ? 0 : 2;
}

FAKE(cuDeviceGetCount, int *n)
{
    CALL
    *n = cards();
    return 0;
}

FAKE(cuDeviceGet, int *dev, int index)
{
    *dev = index;
    return index < cards() ? 0 : 101;
}

FAKE(cuDeviceGetName, char *name, int n, int dev)
{
    snprintf(name, (size_t)n, "Fake GPU %d", dev);
    return 0;
}

FAKE(cuDeviceGetUuid_v2, void *uuid, int dev)
{
    memset(uuid, 0xa0 + dev, 16);
    return 0;
}

FAKE(cuDeviceTotalMem_v2, size_t *n, int dev)
{
    (void)dev;
    *n = (size_t)1 << 40;
    return 0;
}

FAKE(cuDeviceGetAttribute, int *v, int what, int dev)
{
    static const int values[][2] = {{DRV_ATTR_WARP_SIZE, 32},  {DRV_ATTR_CLOCK_KHZ, 1980000}, {DRV_ATTR_SM_COUNT, 132},
                                    {DRV_ATTR_L2, 1 << 16},    {DRV_ATTR_CC_MAJOR, 9},        {DRV_ATTR_CC_MINOR, 0},
                                    {DRV_ATTR_BUS_BITS, 6144}, {DRV_ATTR_MEMORY_CLOCK_KHZ, 3201000}, {DRV_ATTR_VMM, 1},
                                    {DRV_ATTR_POSIX_FD, 1},    {DRV_ATTR_SHARED_OPTIN, 232448},
                                    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535},
                                    {8, 49152}};

    (void)dev;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i][0] == what) {
            *v = values[i][1];
            return 0;
        }
    *v = 0;
    return 0;
}

FAKE(cuDevicePrimaryCtxRetain, drv_ctx *ctx, int dev)
{
    CALL
    *ctx = (drv_ctx)(intptr_t)(dev + 1);
    live++;
    return 0;
}

FAKE(cuDevicePrimaryCtxRelease_v2, int dev)
{
    (void)dev;
    live--;
    return 0;
}

FAKE(cuCtxSetCurrent, drv_ctx ctx)
{
    current = ctx != NULL;
    return 0;
}

FAKE(cuCtxResetPersistingL2Cache, void)
{
    NEED_CONTEXT
    return 0;
}

FAKE(cuMemGetInfo_v2, size_t *left_bytes, size_t *total)
{
    NEED_CONTEXT
    *total = (size_t)1 << 40;
    *left_bytes = *total - (size_t)live * ((size_t)64 << 20);
    return 0;
}

FAKE(cuMemAlloc_v2, uint64_t *p, size_t n)
{
    NEED_CONTEXT
    if (used > memory || n > memory - used)
        return OUT_OF_MEMORY;
    *p = (uint64_t)(uintptr_t)aligned_alloc(512, (n + 511) / 512 * 512);
    live++;
    used += malloc_usable_size((void *)(uintptr_t)*p);
    return *p ? 0 : OUT_OF_MEMORY;
}

FAKE(cuMemFree_v2, uint64_t p) /* giving back never fails: a lost context takes everything along */
{
    used -= malloc_usable_size((void *)(uintptr_t)p);
    free((void *)(uintptr_t)p);
    live--;
    return 0;
}

FAKE(cuMemGetAllocationGranularity, size_t *n, const struct drv_allocation *kind, int which)
{
    NEED_CONTEXT
    *n = UNIT;
    return kind->type == DRV_ALLOCATION_PINNED && which == DRV_GRANULARITY_MINIMUM ? 0 : INVALID;
}

/* A handle is a memfd. */
FAKE(cuMemCreate, drv_handle *h, size_t n, const struct drv_allocation *kind, unsigned long long flags)
{
    int fd;

    NEED_CONTEXT
    if (n % UNIT || kind->handle_types != DRV_HANDLE_POSIX_FD || kind->location.type != DRV_LOCATION_DEVICE || flags)
        return INVALID;
    if (n > (size_t)1 << 40)
        return OUT_OF_MEMORY;
    fd = memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)n) < 0)
        return OUT_OF_MEMORY;
    *h = (drv_handle)fd;
    live++;
    return 0;
}

FAKE(cuMemRelease, drv_handle h)
{
    live--;
    return close((int)h) ? INVALID : 0;
}

FAKE(cuMemAddressReserve, uint64_t *p, size_t n, size_t align, uint64_t at, unsigned long long flags)
{
    void *a;

    NEED_CONTEXT
    (void)align;
    (void)flags;
    a = mmap((void *)(uintptr_t)at, n, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    *p = (uint64_t)(uintptr_t)a;
    live++;
    return n % UNIT ? INVALID : a == MAP_FAILED ? OUT_OF_MEMORY : 0;
}

FAKE(cuMemAddressFree, uint64_t p, size_t n)
{
    live--;
    return munmap((void *)(uintptr_t)p, n) ? INVALID : 0;
}

FAKE(cuMemMap, uint64_t p, size_t n, size_t offset, drv_handle h, unsigned long long flags)
{
    struct stat st;

    NEED_CONTEXT
    if (flags || offset || fstat((int)h, &st) < 0 || (size_t)st.st_size < n)
        return INVALID;
    live++;
    return mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)h, 0) == MAP_FAILED ? INVALID : 0;
}

FAKE(cuMemUnmap, uint64_t p, size_t n)
{
    live--;
    return mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
                   MAP_FAILED
               ? INVALID
               : 0;
}

FAKE(cuMemSetAccess, uint64_t p, size_t n, const struct drv_access *access, size_t count)
{
    NEED_CONTEXT
    if (count != 1 || access->flags != DRV_ACCESS_READWRITE)
        return INVALID;
    return mprotect((void *)(uintptr_t)p, n, PROT_READ | PROT_WRITE) ? INVALID : 0;
}

FAKE(cuMemExportToShareableHandle, void *fd, drv_handle h, int type, unsigned long long flags)
{
    NEED_CONTEXT
    if (type != DRV_HANDLE_POSIX_FD || flags)
        return INVALID;
    *(int *)fd = dup((int)h);
    return *(int *)fd < 0 ? INVALID : 0;
}

/* As the real one does for a descriptor that is not its own: "unknown error", and the context lives on. */
FAKE(cuMemImportFromShareableHandle, drv_handle *h, void *os, int type)
{
    struct stat st;
    int fd;

    NEED_CONTEXT
    if (type != DRV_HANDLE_POSIX_FD || fstat((int)(intptr_t)os, &st) < 0 || !S_ISREG(st.st_mode))
        return DRV_UNKNOWN;
    fd = dup((int)(intptr_t)os);
    *h = (drv_handle)fd;
    live++;
    return 0;
}

FAKE(cuMemHostRegister_v2, void *p, size_t n, unsigned flags)
{
    NEED_CONTEXT
    live++;
    return p && n && flags == DRV_HOST_REGISTER_PORTABLE_MAP ? 0 : INVALID;
}

FAKE(cuMemHostUnregister, void *p)
{
    (void)p;
    live--;
    return 0;
}

FAKE(cuMemHostGetDevicePointer_v2, uint64_t *d, void *p, unsigned flags)
{
    NEED_CONTEXT
    *d = (uint64_t)(uintptr_t)p;
    return flags ? INVALID : 0;
}

FAKE(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t n, drv_stream s)
{
    NEED_CONTEXT
    memcpy((void *)(uintptr_t)to, from, n);
    return s ? 0 : INVALID;
}

FAKE(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t n, drv_stream s)
{
    NEED_CONTEXT
    memcpy(to, (void *)(uintptr_t)from, n);
    return s ? 0 : INVALID;
}

FAKE(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t n, drv_stream s)
{
    NEED_CONTEXT
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
    return s ? 0 : INVALID;
}

FAKE(cuMemsetD8Async, uint64_t to, unsigned char byte, size_t n, drv_stream s)
{
    NEED_CONTEXT
    memset((void *)(uintptr_t)to, byte, n);
    return s ? 0 : INVALID;
}

FAKE(cuStreamCreate, drv_stream *s, unsigned flags)
{
    NEED_CONTEXT
    *s = (drv_stream)(intptr_t)1;
    live++;
    return flags == DRV_STREAM_NON_BLOCKING ? 0 : INVALID;
}

FAKE(cuStreamDestroy_v2, drv_stream s)
{
    (void)s;
    live--;
    return 0;
}

FAKE(cuStreamSynchronize, drv_stream s)
{
    NEED_CONTEXT
    return s ? 0 : INVALID;
}

FAKE(cuEventCreate, drv_event *ev, unsigned flags)
{
    NEED_CONTEXT
    *ev = calloc(1, sizeof(struct timespec));
    live++;
    return flags ? INVALID : 0;
}

FAKE(cuEventDestroy_v2, drv_event ev)
{
    free(ev);
    live--;
    return 0;
}

FAKE(cuEventRecord, drv_event ev, drv_stream s)
{
    NEED_CONTEXT
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)ev);
    return s ? 0 : INVALID;
}

FAKE(cuEventSynchronize, drv_event ev)
{
    NEED_CONTEXT
    return ev ? 0 : INVALID;
}

FAKE(cuEventElapsedTime, float *ms, drv_event from, drv_event to)
{
    struct timespec *a = (struct timespec *)from, *b = (struct timespec *)to;

    NEED_CONTEXT
    *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) / 1e6);
    return 0;
}

FAKE(cuModuleLoadData, drv_module *m, const void *image)
{
    NEED_CONTEXT
    *m = (drv_module)(intptr_t)1;
    live++;
    /* ours, any fat binary, what nvcc made */
    return memcmp(image, "fake", 4) && memcmp(image, "\x50\xed\x55\xba", 4) && memcmp(image, "\x7f" "ELF", 4) ? 200 : 0;
}

FAKE(cuModuleUnload, drv_module m)
{
    (void)m;
    live--;
    return 0;
}

/* The executor's plumbing, and two kernels that a candidate could have. */
static const char *const exec_names[] = {
#define NAME(k) "movement_" #k,
    MOVEMENT_KERNELS(NAME)
#undef NAME
    "scale", "fault"};
enum { E_SET, E_FILL, E_STRIDED, E_ARANGE, E_RANDOM, E_EQUAL, E_SPIN, E_SCALE, E_FAULT, N_EXEC, FIRST_EXEC = 1000 };
struct scale {
    const float *x;
    float *y;
    int n;
    float f;
};

static void spin(uint64_t ns)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    do
        clock_gettime(CLOCK_MONOTONIC, &b);
    while ((uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec < ns);
}

static int run_exec(int k, const void *args)
{
    const struct movement_strided_args *s = args;
    const struct movement_equal_args *q = args;
    const struct wire_memset *m = args;
    const struct scale *a = args;

    switch (k) {
    case E_SET: movement_host_set((void *)(uintptr_t)m->addr, m); return 0;
    case E_FILL: movement_host_fill((void *)(uintptr_t)((const struct wire_fill *)args)->addr, args); return 0;
    case E_STRIDED:
        *s->changed += movement_host_strided((void *)(uintptr_t)s->m.to, (void *)(uintptr_t)s->m.from, &s->m);
        return 0;
    case E_ARANGE: movement_host_arange((void *)(uintptr_t)((const struct wire_arange *)args)->addr, args); return 0;
    case E_RANDOM: movement_host_random((void *)(uintptr_t)((const struct wire_random *)args)->addr, args); return 0;
    case E_EQUAL:
        *q->differ += !movement_host_equal((void *)(uintptr_t)q->m.a, (void *)(uintptr_t)q->m.b, &q->m);
        return 0;
    case E_SPIN: spin(((const struct movement_spin_args *)args)->ns); return 0;
    case E_SCALE:
        for (int i = 0; i < a->n; i++)
            a->y[i] = a->x[i] * a->f;
        return 0;
    default: left = 0; return 0; /* every further call answers fail_code */
    }
}

FAKE(cuModuleGetFunction, drv_function *f, drv_module m, const char *name)
{
    static const char *const names[K_COUNT] = KERNEL_NAMES;

    NEED_CONTEXT
    (void)m;
    for (int k = 0; k < K_COUNT; k++)
        if (!strcmp(names[k], name)) {
            *f = (drv_function)(intptr_t)(k + 1);
            return 0;
        }
    if (!strcmp(name, "_Z5scalePKfPfif")) /* as nvcc calls it */
        name = "scale";
    for (int k = 0; k < N_EXEC; k++)
        if (!strcmp(exec_names[k], name)) {
            *f = (drv_function)(intptr_t)(k + FIRST_EXEC);
            return 0;
        }
    return 500;
}

FAKE(cuModuleGetGlobal_v2, uint64_t *p, size_t *n, drv_module m, const char *name)
{
    static int version = 13000;
    static float table[16];

    NEED_CONTEXT
    (void)m;
    if (!strcmp(name, "fake_table")) { /* a candidate's __constant__ */
        *p = (uint64_t)(uintptr_t)table;
        *n = sizeof table;
        return 0;
    }
    *p = (uint64_t)(uintptr_t)&version;
    *n = sizeof version;
    return strcmp(name, "judge_cuda_version") ? 500 : 0;
}

FAKE(cuLaunchKernel, drv_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
     unsigned shared, drv_stream s, void **params, void **extra)
{
    NEED_CONTEXT
    if ((intptr_t)f >= FIRST_EXEC)
        return run_exec((int)((intptr_t)f - FIRST_EXEC), extra ? extra[1] : params[0]);
    if (!s || !gx || gx > K_MAX_BLOCKS || gy != 1 || gz != 1 || bx > K_THREADS || by != 1 || bz != 1 || shared || extra)
        return INVALID;
    host_kernel((enum kernel_id)((intptr_t)f - 1), params ? params[0] : NULL);
    return 0;
}

/* ---- what the executor needs beyond ---- */

FAKE(cuProfilerStart, void)
{
    NEED_CONTEXT
    return 0;
}

FAKE(cuProfilerStop, void)
{
    NEED_CONTEXT
    return 0;
}

FAKE(cuCtxSynchronize, void)
{
    NEED_CONTEXT
    return 0;
}

FAKE(cuMemsetD16Async, uint64_t to, unsigned short v, size_t n, drv_stream s)
{
    NEED_CONTEXT
    for (size_t i = 0; i < n; i++)
        ((unsigned short *)(uintptr_t)to)[i] = v;
    return s ? 0 : INVALID;
}

FAKE(cuMemsetD32Async, uint64_t to, unsigned v, size_t n, drv_stream s)
{
    NEED_CONTEXT
    for (size_t i = 0; i < n; i++)
        ((unsigned *)(uintptr_t)to)[i] = v;
    return s ? 0 : INVALID;
}

FAKE(cuFuncGetParamInfo, drv_function f, size_t i, size_t *offset, size_t *bytes)
{
    static const size_t at[] = {0, 8, 16, 20}, n[] = {8, 8, 4, 4};

    if ((intptr_t)f - FIRST_EXEC != E_SCALE || i >= 4)
        return INVALID;
    *offset = at[i];
    *bytes = n[i];
    return 0;
}

FAKE(cuFuncGetAttribute, int *v, int what, drv_function f)
{
    (void)f;
    *v = what == 0 ? 1024 : what == 8 ? 49152 : 0;
    return 0;
}

FAKE(cuFuncSetAttribute, drv_function f, int what, int value)
{
    (void)f, (void)what, (void)value;
    return 0;
}

FAKE(cuLaunchKernelEx, const void *config, drv_function f, void **params, void **extra)
{
    NEED_CONTEXT
    (void)config;
    return run_exec((int)((intptr_t)f - FIRST_EXEC), extra ? extra[1] : params[0]);
}

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, drv_function f, int threads, size_t shared)
{
    (void)f, (void)shared;
    *n = 2048 / threads;
    return 0;
}

FAKE(cuStreamCreateWithPriority, drv_stream *s, unsigned flags, int priority)
{
    NEED_CONTEXT
    (void)flags, (void)priority;
    *s = (drv_stream)(intptr_t)8;
    live++;
    return 0;
}

FAKE(cuStreamWaitEvent, drv_stream s, drv_event v, unsigned flags)
{
    NEED_CONTEXT
    (void)flags;
    return s && v ? 0 : INVALID;
}

FAKE(cuStreamQuery, drv_stream s)
{
    NEED_CONTEXT
    return s ? 0 : INVALID;
}

FAKE(cuEventQuery, drv_event v)
{
    NEED_CONTEXT
    return v ? 0 : INVALID;
}

FAKE(cuTensorMapEncodeTiled, void *map, int type, unsigned rank, void *at, const uint64_t *size, const uint64_t *stride,
     const uint32_t *box, const uint32_t *element, int interleave, int swizzle, int l2, int fill)
{
    (void)type, (void)rank, (void)at, (void)size, (void)stride, (void)box, (void)element, (void)interleave;
    (void)swizzle, (void)l2, (void)fill;
    memset(map, 0, 128);
    return 0;
}
