/* exec_backend_cuda.c - a card whose driver has CUDA's interface as the executor's device: memory at fixed addresses,
 * streams, events, data movement. Modules and launches are cuda_code.c's. Which driver: a row of
 * device/cuda_driver.c. Nobody of the project had a card of Moore Threads': docs/musa.md. Functions are the members
 * of struct backend_ops (exec_backend.h) of their name. */
#include "exec/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "exec/data_movement_kernels.h"

#define CHUNK ((uint64_t)32 << 20) /* memory is mapped by at least so much */
#define KEEP ((uint64_t)256 << 20) /* and so much of it stays for the next recording */

static const char *const kernel_names[] = {
#define NAME(k) "movement_" #k,
    MOVEMENT_KERNELS(NAME)
#undef NAME
};

/* ---- opening ---- */

/* A device attribute's value; 0 where the driver does not tell. */
static int exec_cuda_attr(const struct exec_driver *b, int what)
{
    int v = 0;

    b->c->DeviceGetAttribute(&v, what, b->device);
    return v;
}

/* Fills i with the device's limits as a client sees them. */
static void exec_cuda_describe(struct exec_driver *b, const struct backend_options *o, struct wire_info *i)
{
    size_t left = 0, total = 0;

    *i = (struct wire_info){.reserved = b->reserved, .constant = 65536, .pitch = 0x7fffffff,
                            .backend = b->vendor->wire_backend};
    if (b->vendor->partial)
        i->constant = (uint64_t)exec_cuda_attr(b, 9);
    b->c->DeviceGetName(i->name, sizeof i->name, b->device);
    b->c->MemGetInfo(&left, &total);
    i->memory = o->memory ? o->memory : left / 10 * 9;
    for (int k = 0; k < 3; k++)
        i->dim[k] = exec_cuda_attr(b, 2 + k), i->grid[k] = exec_cuda_attr(b, 5 + k);
    i->threads_block = exec_cuda_attr(b, 1), i->shared_block = (uint64_t)exec_cuda_attr(b, 8),
        i->warp = exec_cuda_attr(b, 10);
    i->regs_block = exec_cuda_attr(b, 12), i->clock_khz = exec_cuda_attr(b, 13),
        i->multiprocessors = exec_cuda_attr(b, 16);
    i->memory_clock_khz = exec_cuda_attr(b, 36), i->memory_bus = exec_cuda_attr(b, 37), i->l2 = exec_cuda_attr(b, 38);
    i->threads_multiprocessor = exec_cuda_attr(b, 39), i->major = exec_cuda_attr(b, 75),
        i->minor = exec_cuda_attr(b, 76);
    i->shared_multiprocessor = (uint64_t)exec_cuda_attr(b, 81), i->regs_multiprocessor = exec_cuda_attr(b, 82);
    i->cooperative = exec_cuda_attr(b, 95), i->shared_optin = (uint64_t)exec_cuda_attr(b, 97);
    i->blocks_multiprocessor = exec_cuda_attr(b, 106), i->persisting_l2 = exec_cuda_attr(b, 108);
    i->reaches_host = exec_cuda_attr(b, 88); /* PAGEABLE_MEMORY_ACCESS */
}

/* More addresses than the card has bytes; less where the driver does not give so many. */
static int exec_cuda_reserve(struct exec_driver *b, struct err *e)
{
    int code = 1;

    for (b->reserved = (uint64_t)512 << 30; b->reserved >= (uint64_t)16 << 30; b->reserved /= 2) {
        uint64_t at = 0;

        code = b->c->MemReserve(&at, b->reserved, 0, WIRE_BASE, 0);
        if (code == 0 && at == WIRE_BASE)
            return 0;
        if (code == 0)
            b->c->MemUnreserve(at, b->reserved);
    }
    return code ? drv_fail(b->c, code, e, "cannot reserve addresses")
                : err_set(e, ERR_ENV, "the driver does not give the addresses that it is asked for");
}

static char *exec_cuda_movement_path(const struct exec_driver *b)
{
    const char *own = b->vendor->kernels_env ? getenv(b->vendor->kernels_env) : NULL;

    return own && *own ? xstrdup(own) : path_lib(b->vendor->kernels);
}

/* Loads the kernels that fill, copy and compare. ERR_ENV: they are not built. */
static int exec_cuda_load_movement(struct exec_driver *b, struct err *e)
{
    char *path = exec_cuda_movement_path(b);
    struct buf image;
    int code = 0, rc = -1;

    buf_init(&image, 64u << 20);
    if (!path)
        err_set(e, ERR_ENV, "'%s' is missing; run 'make' where there is an %s", b->vendor->kernels,
                b->vendor->compiler);
    else
        rc = file_read(path, &image, e);
    if (rc == 0 && (code = b->c->ModuleLoad(&b->movement, image.p)))
        rc = drv_fail(b->c, code, e, "cannot load '%s'", path);
    for (int k = 0; rc == 0 && k < N_MOVEMENT; k++)
        if ((code = b->c->ModuleFunction(&b->kernels[k], b->movement, kernel_names[k])))
            rc = drv_fail(b->c, code, e, "'%s' lacks %s", path, kernel_names[k]);
    buf_free(&image);
    free(path);
    return rc;
}

/* Opens the driver and device, reserves addresses and loads the kernels of movement. */
static int exec_cuda_take_device(struct exec_driver *b, const struct backend_options *o, struct err *e)
{
    int code;

    if (!(b->c = drv_load(b->vendor->device, e)) || drv_more_load(b->vendor, &b->m, e) < 0)
        return -1;
    if ((code = b->c->DeviceGet(&b->device, o->device)) || (code = b->c->PrimaryCtxRetain(&b->ctx, b->device)) ||
        (code = b->c->CtxSetCurrent(b->ctx)))
        return drv_fail(b->c, code, e, "cannot use GPU %d", o->device);
    if (exec_cuda_reserve(b, e) < 0 || exec_cuda_load_movement(b, e) < 0)
        return -1;
    if ((code = b->c->MemAlloc(&b->scratch, 4096)) || (code = b->c->Set8(b->scratch, 0, 4096, LEGACY)))
        return drv_fail(b->c, code, e, "cannot get memory of the executor's own");
    b->l2 = (uint64_t)exec_cuda_attr(b, 38);
    return 0;
}

/* exec_backend's 'open' for a driver of CUDA's kind. */
static int exec_cuda_open(const struct backend_options *o, struct exec_driver **ret, struct wire_info *info,
                          struct err *e)
{
    struct exec_driver *b = xcalloc(1, sizeof *b);

    b->vendor = drv_vendor_find(o->backend);
    if (exec_cuda_take_device(b, o, e) < 0) {
        free(b);
        return -1;
    }
    exec_cuda_describe(b, o, info);
    *ret = b;
    return 0;
}

/* exec_backend's 'close'. */
static void exec_cuda_close(struct exec_driver *b)
{
    b->c->PrimaryCtxRelease(b->device); /* and all that is in it */
    free(b->chunks);
    free(b->shares);
    free(b);
}

/* ---- memory ---- */

/* The kind of memory that this device can share. */
static const struct drv_allocation *exec_cuda_kind_of(const struct exec_driver *b)
{
    static struct drv_allocation kind;

    kind = (struct drv_allocation){.type = DRV_ALLOCATION_PINNED, .handle_types = DRV_HANDLE_POSIX_FD,
                                   .location = {DRV_LOCATION_DEVICE, b->device}};
    return &kind;
}

/* Maps n bytes more behind what is mapped; n is a multiple of 2 MiB. 0 or the driver's code. */
static int exec_cuda_map_chunk(struct exec_driver *b, uint64_t n)
{
    const struct drv_access access = {{DRV_LOCATION_DEVICE, b->device}, DRV_ACCESS_READWRITE};
    struct cuda_chunk k = {.bytes = n};
    int code = b->c->MemCreate(&k.handle, n, exec_cuda_kind_of(b), 0);

    if (code)
        return code;
    if ((code = b->c->MemMap(WIRE_BASE + b->mapped, n, 0, k.handle, 0)) ||
        (code = b->c->MemSetAccess(WIRE_BASE + b->mapped, n, &access, 1))) {
        b->c->MemRelease(k.handle);
        return code;
    }
    b->chunks = xrealloc(b->chunks, (b->n_chunks + 1) * sizeof *b->chunks);
    b->chunks[b->n_chunks++] = k;
    b->mapped += n;
    return 0;
}

/* exec_backend's 'map': at least 'bytes' behind WIRE_BASE can be used afterwards. */
static int exec_cuda_map(struct exec_driver *b, uint64_t bytes)
{
    uint64_t unit = (uint64_t)2 << 20, more = bytes > b->mapped ? bytes - b->mapped : 0;
    int code;

    if (!more)
        return WIRE_OK;
    if (bytes > b->reserved)
        return WIRE_OUT_OF_MEMORY;
    more = (more > CHUNK ? more : CHUNK) + unit - 1;
    if ((code = exec_cuda_map_chunk(b, more / unit * unit)))
        return code == WIRE_OUT_OF_MEMORY ? cuda_fault(b, code, "more memory than the GPU has left")
                                          : cuda_fault(b, code, "mapping memory");
    return WIRE_OK;
}

static uint64_t exec_cuda_mapped(struct exec_driver *b)
{
    return b->mapped;
}

/* Gives the last mapped piece back to the device. */
static void exec_cuda_unmap_last(struct exec_driver *b)
{
    const struct cuda_chunk *k = &b->chunks[--b->n_chunks];

    b->mapped -= k->bytes;
    b->c->MemUnmap(WIRE_BASE + b->mapped, k->bytes);
    b->c->MemRelease(k->handle);
}

/* exec_backend's 'fresh': unloads modules and gives memory back. ERR_ENV: the context is broken. */
static int exec_cuda_fresh(struct exec_driver *b, struct err *e)
{
    int code = b->m.CtxSync();

    if (b->error && b->error != WIRE_OUT_OF_MEMORY)
        return err_set(e, ERR_ENV, "the GPU's context has failed (%s); a new executor is needed", b->why);
    if (code)
        return drv_fail(b->c, code, e, "the GPU's context has failed; a new executor is needed");
    for (size_t i = 0; i < b->n_modules; i++)
        b->c->ModuleUnload(b->modules[i]);
    b->n_modules = 0;
    while (b->mapped > KEEP && b->n_chunks > 1)
        exec_cuda_unmap_last(b);
    b->error = WIRE_OK;
    b->why[0] = 0;
    return b->c->Set8(b->scratch, 0, 4096, LEGACY) ? err_set(e, ERR_ENV, "the GPU does not answer") : 0;
}

/* exec_backend's 'share': maps the judge's memory behind fd at addr. */
static int exec_cuda_share(struct exec_driver *b, int fd, uint64_t addr, uint64_t bytes, struct err *e)
{
    const struct drv_access access = {{DRV_LOCATION_DEVICE, b->device}, DRV_ACCESS_READWRITE};
    drv_handle h;
    int code = b->c->MemImport(&h, (void *)(intptr_t)fd, DRV_HANDLE_POSIX_FD);

    if (code)
        return drv_fail(b->c, code, e, "importing memory of the judge's");
    code = b->c->MemMap(addr, bytes, 0, h, 0);
    b->c->MemRelease(h); /* the mapping keeps it */
    if (code)
        return drv_fail(b->c, code, e, "mapping memory of the judge's");
    b->shares = xrealloc(b->shares, (b->n_shares + 1) * sizeof *b->shares);
    b->shares[b->n_shares++] = (struct share){addr, bytes};
    code = b->c->MemSetAccess(addr, bytes, &access, 1);
    return code ? drv_fail(b->c, code, e, "mapping memory of the judge's") : 0;
}

/* exec_backend's 'unshare': unmaps all of the judge's memory. */
static void cuda_unshare(struct exec_driver *b)
{
    for (size_t i = 0; i < b->n_shares; i++)
        b->c->MemUnmap(b->shares[i].addr, b->shares[i].bytes);
    free(b->shares);
    b->shares = NULL;
    b->n_shares = 0;
}

static void exec_cuda_block(struct exec_driver *b, uint64_t addr, uint64_t bytes, bool lives)
{
    (void)b, (void)addr, (void)bytes, (void)lives;
}

static int exec_cuda_write(struct exec_driver *b, uint64_t to, const void *from, uint64_t n, backend_handle s)
{
    return cuda_fault(b, b->error ? 0 : b->c->CopyHtoD(to, from, n, s), "upload");
}

static int exec_cuda_sync(struct exec_driver *b)
{
    return cuda_fault(b, b->error ? 0 : b->m.CtxSync(), "kernel");
}

/* exec_backend's 'read': waits for all work, then copies n bytes to the host. */
static int exec_cuda_read(struct exec_driver *b, void *to, uint64_t from, uint64_t n)
{
    int code = exec_cuda_sync(b);

    if (code || (code = cuda_fault(b, b->c->CopyDtoH(to, from, n, LEGACY), "download")))
        return code;
    return exec_cuda_sync(b);
}

static int exec_cuda_copy(struct exec_driver *b, uint64_t to, uint64_t from, uint64_t n, backend_handle s)
{
    return cuda_fault(b, b->error ? 0 : b->c->CopyDtoD(to, from, n, s), "copy");
}

/* ---- data movement ---- */

enum { K_SET, K_FILL, K_STRIDED, K_ARANGE, K_RANDOM, K_EQUAL, K_SPIN };

/* Queues one of our kernels of movement over so many elements. A code of WIRE. */
static int cuda_movement(struct exec_driver *b, int kernel, uint64_t elements, const void *args, backend_handle s)
{
    uint64_t blocks = (elements + MOVEMENT_THREADS - 1) / MOVEMENT_THREADS;
    void *params[] = {(void *)args};

    if (!elements || b->error)
        return b->error;
    return cuda_fault(b, b->c->Launch(b->kernels[kernel], (unsigned)(blocks < 65536 ? blocks : 65536), 1, 1,
                                      MOVEMENT_THREADS, 1, 1, 0, s, params, NULL), "plumbing");
}

/* Elements of a view. */
static uint64_t exec_cuda_elements_of(uint32_t dims, const int64_t *size)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < dims; i++)
        n *= (uint64_t)size[i];
    return n;
}

/* exec_backend's 'set', by the driver where its widths allow. */
static int exec_cuda_set(struct exec_driver *b, const struct wire_memset *m, backend_handle s)
{
    uint32_t v = 0;

    memcpy(&v, m->value, m->width < 4 ? m->width : 4);
    if (b->error || !m->count)
        return b->error;
    switch (m->width) {
    case 1: return cuda_fault(b, b->c->Set8(m->addr, (unsigned char)v, m->count, s), "memset");
    case 2: return cuda_fault(b, b->m.Set16(m->addr, (unsigned short)v, m->count, s), "memset");
    case 4: return cuda_fault(b, b->m.Set32(m->addr, v, m->count, s), "memset");
    default: return cuda_movement(b, K_SET, m->count, m, s);
    }
}

static int exec_cuda_fill(struct exec_driver *b, const struct wire_fill *m, backend_handle s)
{
    return cuda_movement(b, K_FILL, exec_cuda_elements_of(m->dims, m->size), m, s);
}

static int cuda_strided(struct exec_driver *b, const struct wire_strided *m, backend_handle s)
{
    const struct movement_strided_args a = {*m, (uint64_t *)b->scratch};

    return cuda_movement(b, K_STRIDED, exec_cuda_elements_of(m->dims, m->size), &a, s);
}

static int exec_cuda_arange(struct exec_driver *b, const struct wire_arange *m, backend_handle s)
{
    return cuda_movement(b, K_ARANGE, m->count, m, s);
}

static int exec_cuda_random(struct exec_driver *b, const struct wire_random *m, backend_handle s)
{
    return cuda_movement(b, K_RANDOM, m->count, m, s);
}

/* exec_backend's 'equal': waits, then compares on the device. */
static int exec_cuda_equal(struct exec_driver *b, const struct wire_equal *m, bool *ret)
{
    const struct movement_equal_args a = {*m, (uint64_t *)(b->scratch + 8)};
    uint64_t differ = 1;
    int code = exec_cuda_sync(b);

    if (code || (code = cuda_fault(b, b->c->Set8(b->scratch + 8, 0, 8, LEGACY), "comparison")) ||
        (code = cuda_movement(b, K_EQUAL, exec_cuda_elements_of(m->dims, m->size), &a, LEGACY)) ||
        (code = exec_cuda_read(b, &differ, b->scratch + 8, 8)))
        return code;
    *ret = differ == 0;
    return WIRE_OK;
}

/* Elements that the last strided copy changed. */
static uint64_t cuda_changed(struct exec_driver *b)
{
    uint64_t n = 0;

    return exec_cuda_read(b, &n, b->scratch, 8) ? 0 : n;
}

/* ---- order ---- */

/* exec_backend's 'stream'. */
static int exec_cuda_stream(struct exec_driver *b, uint32_t flags, int32_t priority, backend_handle *ret)
{
    drv_stream s = NULL;
    int code = b->m.StreamCreatePriority(&s, flags & 1, priority);

    *ret = s;
    return cuda_fault(b, code, "a stream");
}

static void cuda_stream_end(struct exec_driver *b, backend_handle s)
{
    b->c->StreamDestroy(s);
}

/* exec_backend's 'event'; whether it can tell time is in flags. */
static int exec_cuda_event(struct exec_driver *b, uint32_t flags, backend_handle *ret)
{
    drv_event v = NULL;
    int code = b->c->EventCreate(&v, flags & 2); /* whether it can be asked for a time; how it waits is ours */

    *ret = v;
    return cuda_fault(b, code, "an event");
}

static void cuda_event_end(struct exec_driver *b, backend_handle v)
{
    b->c->EventDestroy(v);
}

static int exec_cuda_record(struct exec_driver *b, backend_handle v, backend_handle s)
{
    return cuda_fault(b, b->error ? 0 : b->c->EventRecord(v, s), "an event");
}

static int exec_cuda_wait(struct exec_driver *b, backend_handle s, backend_handle v)
{
    return cuda_fault(b, b->error ? 0 : b->m.StreamWait(s, v, 0), "waiting for an event");
}

static int cuda_query_stream(struct exec_driver *b, backend_handle s)
{
    int code = b->error ? b->error : b->m.StreamQuery(s);

    return code == WIRE_NOT_READY ? code : cuda_fault(b, code, "kernel");
}

static int cuda_query_event(struct exec_driver *b, backend_handle v)
{
    int code = b->error ? b->error : b->m.EventQuery(v);

    return code == WIRE_NOT_READY ? code : cuda_fault(b, code, "kernel");
}

/* exec_backend's 'elapsed', in ms; waits for 'to'. */
static int cuda_elapsed(struct exec_driver *b, backend_handle from, backend_handle to, float *ret_ms)
{
    int code = b->error ? b->error : b->c->EventSync(to); /* the client, which waited, only said so */

    if (!code)
        code = b->c->EventElapsed(ret_ms, from, to);
    return code == WIRE_BAD_HANDLE || code == WIRE_NOT_READY ? code : cuda_fault(b, code, "kernel");
}

static int cuda_sync_stream(struct exec_driver *b, backend_handle s)
{
    return cuda_fault(b, b->error ? 0 : b->c->StreamSync(s), "kernel");
}

static int cuda_sync_event(struct exec_driver *b, backend_handle v)
{
    return cuda_fault(b, b->error ? 0 : b->c->EventSync(v), "kernel");
}

static const char *exec_cuda_why(struct exec_driver *b)
{
    return b->why;
}

/* ---- timing ---- */

/* exec_backend's 'cold': overwrites a buffer larger than L2. */
static int exec_cuda_cold(struct exec_driver *b)
{
    uint64_t n = 2 * b->l2 + ((uint64_t)16 << 20);

    if (!b->flush && b->c->MemAlloc(&b->flush, n))
        return cuda_fault(b, WIRE_OUT_OF_MEMORY, "no memory for a buffer that flushes L2");
    if (b->c->CtxResetPersistingL2)
        b->c->CtxResetPersistingL2();
    return cuda_fault(b, b->error ? 0 : b->c->Set8(b->flush, 0, n, LEGACY), "flushing L2");
}

/* exec_backend's 'pad': the device spins for ns. */
static int exec_cuda_pad(struct exec_driver *b, uint64_t ns)
{
    const struct movement_spin_args a = {ns};
    void *params[] = {(void *)&a};

    return cuda_fault(b, b->error ? 0 : b->c->Launch(b->kernels[K_SPIN], 1, 1, 1, 1, 1, 1, 0, LEGACY, params, NULL),
                      "a pad");
}

/* exec_backend's 'profile', where the driver has a profiler. */
static void cuda_profile(struct exec_driver *b, bool on)
{
    int (*f)(void) = on ? b->m.ProfilerStart : b->m.ProfilerStop;

    if (f)
        f();
}

const struct backend_ops exec_on_driver = {
    .open = exec_cuda_open, .close = exec_cuda_close, .fresh = exec_cuda_fresh,
    .map = exec_cuda_map, .mapped = exec_cuda_mapped, .block = exec_cuda_block,
    .share = exec_cuda_share, .unshare = cuda_unshare,
    .set = exec_cuda_set, .write = exec_cuda_write, .read = exec_cuda_read, .copy = exec_cuda_copy,
    .fill = exec_cuda_fill, .strided = cuda_strided, .arange = exec_cuda_arange, .random = exec_cuda_random,
    .equal = exec_cuda_equal, .changed = cuda_changed,
    .module = cuda_module, .function = cuda_function, .symbol = cuda_symbol, .func_attr = cuda_func_attr,
    .occupancy = cuda_occupancy, .tensor_map = cuda_tensor_map, .launch = cuda_launch,
    .stream = exec_cuda_stream, .stream_end = cuda_stream_end,
    .event = exec_cuda_event, .event_end = cuda_event_end, .record = exec_cuda_record, .wait = exec_cuda_wait,
    .query_stream = cuda_query_stream, .query_event = cuda_query_event, .elapsed = cuda_elapsed,
    .sync_stream = cuda_sync_stream, .sync_event = cuda_sync_event, .sync = exec_cuda_sync, .why = exec_cuda_why,
    .cold = exec_cuda_cold, .pad = exec_cuda_pad, .profile = cuda_profile, .inline_play = true};
