/* cuda.c - the cuda backend: the device's primary context, one stream, plain and shared memory, the fatbin's kernels.
 * Every call makes the context current first: any thread may call, one at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/device_backend.h"
#include "device/cuda_driver.h"

struct cuda {
    const struct drv *c;
    int ordinal;
    bool retained;
    drv_ctx ctx;
    drv_stream stream;
    drv_module module;
    drv_function kernels[K_COUNT];
};

/* Errors after which the context answers nothing else: faults of kernels, and a device that is gone. "Unknown" is
 * either: then the stream knows. */
static void cuda_note_lost(struct device *d, int code)
{
    static const int sticky[] = {4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721};
    struct cuda *g = d->self;

    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++)
        d->lost |= sticky[i] == code;
    if (code == DRV_UNKNOWN)
        d->lost |= !g->stream || g->c->StreamSync(g->stream) != 0;
}

/* Checks one driver call; 'what' is printf-like. */
#define TRY(d, call, ...)                                                                                              \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_)                                                                                                     \
            return fail((d), code_, e, __VA_ARGS__);                                                                   \
    } while (0)
#define fail(d, code, e, ...) (cuda_note_lost(d, code), drv_fail(((struct cuda *)(d)->self)->c, code, e, __VA_ARGS__))

/* Makes the device's context current; NULL with e. */
static struct cuda *cuda_enter(struct device *d, struct err *e)
{
    struct cuda *g = d->self;
    int code = g->c->CtxSetCurrent(g->ctx);

    if (code) {
        fail(d, code, e, "the judge's context");
        return NULL;
    }
    return g;
}

/* ---- what there is ---- */

/* The device's attribute; 0 if the driver does not know it. */
static int cuda_attribute(const struct drv *c, int dev, int what)
{
    int v = 0;

    return c->DeviceGetAttribute(&v, what, dev) == 0 ? v : 0;
}

/* The device's UUID as "GPU-8-4-4-4-12"; "" where the driver does not say. */
static void cuda_uuid_text(const struct drv *c, int dev, char *out, size_t n)
{
    unsigned char u[16];
    size_t k = (size_t)snprintf(out, n, "GPU-");

    *out = 0;
    if (c->DeviceGetUuid(u, dev) != 0)
        return;
    *out = 'G';
    for (int i = 0; i < 16; i++)
        k += (size_t)snprintf(out + k, n - k, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

/* Fills i with what the driver says of a GPU: name, memory in bytes, cache, clocks, features. */
static int cuda_fill_info(const struct drv *c, int index, struct device_info *i, struct err *e)
{
    int dev, code;

    if ((code = c->DeviceGet(&dev, index)) || (code = c->DeviceTotalMem(&i->memory, dev)) ||
        (code = c->DriverGetVersion(&i->driver)))
        return drv_fail(c, code, e, "device %d", index);
    snprintf(i->backend, sizeof i->backend, "cuda");
    i->index = index;
    if (c->DeviceGetName(i->name, sizeof i->name, dev) != 0)
        snprintf(i->name, sizeof i->name, "NVIDIA device %d", index);
    cuda_uuid_text(c, dev, i->uuid, sizeof i->uuid);
    i->cc = cuda_attribute(c, dev, DRV_ATTR_CC_MAJOR) * 10 + cuda_attribute(c, dev, DRV_ATTR_CC_MINOR);
    i->l2 = (size_t)cuda_attribute(c, dev, DRV_ATTR_L2);
    i->sm_count = cuda_attribute(c, dev, DRV_ATTR_SM_COUNT);
    i->warp_size = cuda_attribute(c, dev, DRV_ATTR_WARP_SIZE);
    i->clock_mhz = cuda_attribute(c, dev, DRV_ATTR_CLOCK_KHZ) / 1e3;
    i->memory_clock_mhz = cuda_attribute(c, dev, DRV_ATTR_MEMORY_CLOCK_KHZ) / 1e3;
    i->bus_bits = cuda_attribute(c, dev, DRV_ATTR_BUS_BITS);
    i->memory_gbs = 2 * i->memory_clock_mhz * 1e6 * i->bus_bits / 8 / 1e9;
    i->vmm_fd = cuda_attribute(c, dev, DRV_ATTR_VMM) && cuda_attribute(c, dev, DRV_ATTR_POSIX_FD);
    nvml_driver_version(i->driver_version, sizeof i->driver_version);
    device_rates(i);
    return 0;
}

/* *ret is a new array of all GPUs. ERR_ENV: no driver, or it sees none. */
static int cuda_list(struct device_info **ret, int *ret_n, struct err *e)
{
    const struct drv *c = drv_load("cuda", e);
    struct device_info *all;
    int n = 0, code;

    if (!c)
        return -1;
    if ((code = c->DeviceGetCount(&n)))
        return drv_fail(c, code, e, "the NVIDIA driver lists no devices");
    if (n == 0)
        return err_set(e, ERR_ENV,
                       "the NVIDIA driver sees no device; check CUDA_VISIBLE_DEVICES and the container's devices");
    all = xcalloc((size_t)n, sizeof *all);
    for (int i = 0; i < n; i++)
        if (cuda_fill_info(c, i, &all[i], e) < 0) {
            free(all);
            return -1;
        }
    *ret = all;
    *ret_n = n;
    return 0;
}

/* ---- opening ---- */

/* Loads the judge's kernels from a fatbin and checks that the image is complete. */
static int cuda_load_kernels(struct device *d, const void *image, struct err *e)
{
    static const char *const names[K_COUNT] = KERNEL_NAMES;
    struct cuda *g = d->self;
    uint64_t at;
    size_t n;
    int version = 0;

    TRY(d, g->c->ModuleLoad(&g->module, image),
        "the judge's kernels do not load; run 'make' with a toolkit for this GPU");
    for (int k = 0; k < K_COUNT; k++)
        TRY(d, g->c->ModuleFunction(&g->kernels[k], g->module, names[k]), "judge.fatbin has no '%s'; run 'make'",
            names[k]);
    if (g->c->ModuleGlobal(&at, &n, g->module, "judge_cuda_version") == 0 && n == sizeof version &&
        d->be->download(d, &version, at, n, e) == 0)
        d->info.runtime = version / 10 * 10;
    d->kernels = true;
    return 0;
}

/* No fatbin is no error: memory works without it. */
static int cuda_find_kernels(struct device *d, struct err *e)
{
    char *path = path_lib("judge.fatbin");
    struct buf image;
    int rc = 0;

    if (!path)
        return 0;
    buf_init(&image, (size_t)256 << 20);
    rc = file_read(path, &image, e) < 0 || cuda_load_kernels(d, image.p, e) < 0 ? -1 : 0;
    buf_free(&image);
    free(path);
    return rc;
}

/* Retains the primary context and makes the judge's stream. */
static int cuda_open_context(struct device *d, struct err *e)
{
    struct cuda *g = d->self;

    TRY(d, g->c->DeviceGet(&g->ordinal, d->info.index), "device %d", d->info.index);
    TRY(d, g->c->PrimaryCtxRetain(&g->ctx, g->ordinal), "no context on device %d (%s)", d->info.index, d->info.name);
    g->retained = true;
    TRY(d, g->c->CtxSetCurrent(g->ctx), "the judge's context");
    TRY(d, g->c->StreamCreate(&g->stream, DRV_STREAM_NON_BLOCKING), "the judge's stream");
    return cuda_find_kernels(d, e);
}

/* Frees the context and everything in it. */
static void cuda_close(struct device *d)
{
    struct cuda *g = d->self;

    if (g->retained && g->c->CtxSetCurrent(g->ctx) == 0) {
        if (g->module)
            g->c->ModuleUnload(g->module);
        if (g->stream)
            g->c->StreamDestroy(g->stream);
        g->c->CtxSetCurrent(NULL);
    }
    if (g->retained)
        g->c->PrimaryCtxRelease(g->ordinal);
    free(g);
}

/* Opens GPU d->info.index; on failure nothing is kept. */
static int cuda_open(struct device *d, struct err *e)
{
    struct cuda *g = xcalloc(1, sizeof *g);

    d->self = g;
    g->c = drv_load("cuda", e);
    if (g->c && cuda_open_context(d, e) == 0)
        return 0;
    if (g->c)
        cuda_close(d);
    else
        free(g);
    d->self = NULL;
    return -1;
}

/* Bytes in use by everybody, and all that there are. */
static int cuda_usage(struct device *d, size_t *ret_used, size_t *ret_total, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);
    size_t left, total;

    if (!g)
        return -1;
    TRY(d, g->c->MemGetInfo(&left, &total), "memory in use");
    *ret_used = total - left;
    *ret_total = total;
    return 0;
}

static int cuda_health(struct device *d, struct device_health *ret, struct err *e)
{
    (void)e;
    nvml_health(d->info.uuid, ret);
    return 0;
}

/* ---- memory ---- */

static struct drv_allocation cuda_shared_kind(const struct cuda *g)
{
    return (struct drv_allocation){.type = DRV_ALLOCATION_PINNED,
                                   .handle_types = DRV_HANDLE_POSIX_FD,
                                   .location = {DRV_LOCATION_DEVICE, g->ordinal}};
}

/* Maps handle b->handle, which this call owns from here on. */
static int cuda_map_shared(struct cuda *g, struct device_buf *b, struct err *e)
{
    struct drv_access access = {{DRV_LOCATION_DEVICE, g->ordinal}, DRV_ACCESS_READWRITE};
    int code = g->c->MemReserve(&b->ptr, b->capacity, 0, 0, 0);

    if (code == 0) {
        code = g->c->MemMap(b->ptr, b->capacity, 0, b->handle, 0);
        if (code == 0 && (code = g->c->MemSetAccess(b->ptr, b->capacity, &access, 1)))
            g->c->MemUnmap(b->ptr, b->capacity);
        if (code)
            g->c->MemUnreserve(b->ptr, b->capacity);
    }
    if (code) {
        g->c->MemRelease(b->handle);
        return fail(b->dev, code, e, "mapping %zu bytes of shared device memory", b->capacity);
    }
    return 0;
}

/* Memory that can be exported as a descriptor; its capacity is a multiple of the granularity. */
static int cuda_alloc_shared(struct cuda *g, struct device_buf *b, struct err *e)
{
    struct drv_allocation kind = cuda_shared_kind(g);
    size_t unit = 0;
    drv_handle h;

    TRY(b->dev, g->c->MemGranularity(&unit, &kind, DRV_GRANULARITY_MINIMUM), "granularity of shared device memory");
    b->capacity = (b->size + unit - 1) / unit * unit;
    TRY(b->dev, g->c->MemCreate(&h, b->capacity, &kind, 0), "%zu bytes of shared device memory", b->capacity);
    b->handle = h;
    return cuda_map_shared(g, b, e);
}

/* Registers the memfd's pages with the device; fd becomes the buffer's. */
static int cuda_map_pinned(struct cuda *g, struct device_buf *b, int fd, struct err *e)
{
    int code;

    if (memfd_map(fd, b->capacity, &b->host, e) < 0)
        return -1;
    code = g->c->HostRegister(b->host, b->capacity, DRV_HOST_REGISTER_PORTABLE_MAP);
    if (code == 0 && (code = g->c->HostDevicePointer(&b->ptr, b->host, 0)))
        g->c->HostUnregister(b->host);
    if (code) {
        munmap(b->host, b->capacity);
        return fail(b->dev, code, e, "pinning %zu bytes of host memory", b->capacity);
    }
    b->fd = fd;
    return 0;
}

/* Host memory that the device reads and other processes can map. */
static int cuda_alloc_pinned(struct cuda *g, struct device_buf *b, struct err *e)
{
    int fd;

    b->capacity = (b->size + 4095) / 4096 * 4096;
    if (memfd_open(b->capacity, &fd, e) < 0)
        return -1;
    if (cuda_map_pinned(g, b, fd, e) < 0) {
        close(fd);
        return -1;
    }
    return 0;
}

/* Allocates b->size bytes of b->kind. */
static int cuda_alloc(struct device_buf *b, struct err *e)
{
    struct cuda *g = cuda_enter(b->dev, e);

    if (!g)
        return -1;
    if (b->kind == DEVICE_SHARED)
        return cuda_alloc_shared(g, b, e);
    if (b->kind == DEVICE_PINNED)
        return cuda_alloc_pinned(g, b, e);
    b->capacity = b->size;
    TRY(b->dev, g->c->MemAlloc(&b->ptr, b->size), "%zu bytes of device memory", b->size);
    return 0;
}

/* Maps the memory behind a descriptor that another process exported. b takes nothing on failure; fd stays the
 * caller's. */
static int cuda_import(struct device_buf *b, int fd, struct err *e)
{
    struct cuda *g = cuda_enter(b->dev, e);
    drv_handle h;
    int own;

    if (!g)
        return -1;
    if (b->kind == DEVICE_SHARED) {
        TRY(b->dev, g->c->MemImport(&h, (void *)(intptr_t)fd, DRV_HANDLE_POSIX_FD), "importing shared device memory");
        b->handle = h;
        return cuda_map_shared(g, b, e);
    }
    own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return err_sys(e, "cannot import a buffer");
    if (cuda_map_pinned(g, b, own, e) < 0) {
        close(own);
        return -1;
    }
    return 0;
}

/* *ret_fd is a new descriptor through which another process can import the buffer. */
static int cuda_export(struct device_buf *b, int *ret_fd, struct err *e)
{
    struct cuda *g = cuda_enter(b->dev, e);
    int fd = -1;

    if (!g)
        return -1;
    if (b->kind == DEVICE_SHARED)
        TRY(b->dev, g->c->MemExport(&fd, b->handle, DRV_HANDLE_POSIX_FD, 0), "exporting shared device memory");
    else if ((fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return err_sys(e, "cannot export a buffer");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    *ret_fd = fd;
    return 0;
}

/* Unmaps and frees a buffer of any kind. */
static void cuda_free(struct device_buf *b)
{
    struct cuda *g = cuda_enter(b->dev, NULL);

    if (g && b->kind == DEVICE_SHARED) {
        g->c->MemUnmap(b->ptr, b->capacity);
        g->c->MemUnreserve(b->ptr, b->capacity);
        g->c->MemRelease(b->handle);
    } else if (g && b->kind == DEVICE_PLAIN) {
        g->c->MemFree(b->ptr);
    } else if (g) {
        g->c->HostUnregister(b->host);
    }
    if (b->kind == DEVICE_PINNED) {
        munmap(b->host, b->capacity);
        close(b->fd);
    }
}

/* ---- work ---- */

/* Waits for the judge's stream. -1: work on it failed. */
static int cuda_sync(struct device *d, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);

    if (!g)
        return -1;
    TRY(d, g->c->StreamSync(g->stream), "the judge's work on the device failed");
    return 0;
}

/* Copies n bytes to the device and waits. */
static int cuda_upload(struct device *d, uint64_t to, const void *from, size_t n, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);

    if (!g)
        return -1;
    TRY(d, g->c->CopyHtoD(to, from, n, g->stream), "copying %zu bytes to the device", n);
    return cuda_sync(d, e);
}

/* Copies n bytes from the device and waits. */
static int cuda_download(struct device *d, void *to, uint64_t from, size_t n, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);

    if (!g)
        return -1;
    TRY(d, g->c->CopyDtoH(to, from, n, g->stream), "copying %zu bytes from the device", n);
    return cuda_sync(d, e);
}

/* Queues a copy of n bytes on the device. */
static int cuda_copy(struct device *d, uint64_t to, uint64_t from, size_t n, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);

    if (!g)
        return -1;
    TRY(d, g->c->CopyDtoD(to, from, n, g->stream), "copying %zu bytes on the device", n);
    return 0;
}

/* Queues the filling of n bytes. */
static int cuda_set(struct device *d, uint64_t to, uint8_t byte, size_t n, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);

    if (!g)
        return -1;
    TRY(d, g->c->Set8(to, byte, n, g->stream), "filling %zu bytes on the device", n);
    return 0;
}

/* Queues a kernel; args is copied at once. */
static int cuda_launch(struct device *d, enum kernel_id k, unsigned blocks, const void *args, struct err *e)
{
    struct cuda *g = cuda_enter(d, e);
    void *params[] = {(void *)args};

    if (!g)
        return -1;
    TRY(d, g->c->Launch(g->kernels[k], blocks, 1, 1, K_THREADS, 1, 1, 0, g->stream,
                        args ? params : NULL, NULL),
        "launching the judge's kernel %d", k);
    return 0;
}

const struct device_backend device_cuda = {
    "cuda", cuda_list, cuda_open, cuda_close, cuda_usage, cuda_health, cuda_alloc, cuda_import, cuda_export, cuda_free,
    cuda_upload, cuda_download, cuda_copy, cuda_set, cuda_sync, cuda_launch};
