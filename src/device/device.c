/* device.c - see device.h: choice of backend, ranges checked, scratch memory. */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/device_backend.h"

static const struct device_backend *const backends[] = {&device_cuda, &device_host};

static const struct device_backend *device_backend_find(const char *name, struct err *e)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (!strcmp(backends[i]->name, name))
            return backends[i];
    err_set(e, ERR_INPUT, "there is no device backend '%.40s'; known: cuda, host", name);
    return NULL;
}

int device_list(const char *backend, struct device_info **ret, int *ret_n, struct err *e)
{
    const struct device_backend *be = device_backend_find(backend, e);

    return be ? be->list(ret, ret_n, e) : -1;
}

/* *ret is device 'index'. ERR_INPUT: there are not so many. */
static int device_find_info(const struct device_backend *be, int index, struct device_info *ret, struct err *e)
{
    struct device_info *all;
    int n, rc = 0;

    if (be->list(&all, &n, e) < 0)
        return -1;
    if (index < 0 || index >= n)
        rc = err_set(e, ERR_INPUT, "there is no %s device %d; devices: 0 to %d", be->name, index, n - 1);
    else
        *ret = all[index];
    free(all);
    return rc;
}

int device_open(const char *backend, int index, struct device **ret, struct err *e)
{
    struct device *d = xcalloc(1, sizeof *d);

    d->be = device_backend_find(backend, e);
    if (!d->be || device_find_info(d->be, index, &d->info, e) < 0 || d->be->open(d, e) < 0) {
        free(d);
        return -1;
    }
    if (device_alloc(d, sizeof(struct device_scratch), DEVICE_PLAIN, &d->scratch, e) < 0 ||
        device_memset(&d->scratch, 0, 0, sizeof(struct device_scratch), e) < 0) {
        device_close(d);
        return -1;
    }
    *ret = d;
    return 0;
}

void device_close(struct device *d)
{
    if (!d)
        return;
    device_free(&d->scratch);
    d->be->close(d);
    free(d);
}

const struct device_info *device_info(const struct device *d)
{
    return &d->info;
}

bool device_has_kernels(const struct device *d)
{
    return d->kernels;
}

bool device_lost(const struct device *d)
{
    return d->lost;
}

int device_usage(struct device *d, size_t *ret_used, size_t *ret_total, struct err *e)
{
    return d->be->usage(d, ret_used, ret_total, e);
}

int device_health(struct device *d, struct device_health *ret, struct err *e)
{
    return d->be->health(d, ret, e);
}

int device_need_kernels(const struct device *d, struct err *e)
{
    if (!d->kernels)
        return err_set(e, ERR_ENV, "the judge's GPU kernels are missing (build/lib/judge.fatbin); "
                                   "install the CUDA toolkit so that nvcc is found, then run 'make'");
    return 0;
}

unsigned device_blocks(const struct device *d, int64_t items)
{
    int64_t most = (int64_t)d->info.sm_count * 12, n = (items + K_THREADS - 1) / K_THREADS;

    most = most < K_MAX_BLOCKS ? most : K_MAX_BLOCKS;
    return (unsigned)(n < 1 ? 1 : n < most ? n : most);
}

/* ---- memory ---- */

int device_alloc(struct device *d, size_t size, enum device_mem kind, struct device_buf *ret, struct err *e)
{
    struct device_buf b = {.dev = d, .kind = kind, .size = size ? size : 1, .fd = -1};

    if (size > (size_t)1 << 48)
        return err_set(e, ERR_ENV, "a buffer of %zu bytes is more than any device has", size);
    if (d->be->alloc(&b, e) < 0)
        return -1;
    *ret = b;
    return 0;
}

int device_import(struct device *d, int fd, enum device_mem kind, size_t size, size_t capacity, struct device_buf *ret,
                  struct err *e)
{
    struct device_buf b = {.dev = d, .kind = kind, .size = size ? size : 1, .capacity = capacity, .fd = -1};

    if (kind == DEVICE_PLAIN)
        return err_set(e, ERR_BUG, "a plain buffer cannot be imported");
    if (capacity < b.size)
        return err_set(e, ERR_INPUT, "an imported buffer is smaller than its contents");
    if (d->be->import(&b, fd, e) < 0)
        return -1;
    *ret = b;
    return 0;
}

int device_export(struct device_buf *b, int *ret_fd, struct err *e)
{
    if (b->kind == DEVICE_PLAIN)
        return err_set(e, ERR_BUG, "a plain buffer cannot be exported");
    return b->dev->be->export(b, ret_fd, e);
}

void device_free(struct device_buf *b)
{
    if (b->dev) {
        b->dev->be->sync(b->dev, NULL);
        b->dev->be->free(b);
    }
    memset(b, 0, sizeof *b);
}

int device_in_range(const struct device_buf *b, size_t at, size_t n, struct err *e)
{
    if (!b->dev || at > b->size || n > b->size - at)
        return err_set(e, ERR_BUG, "bytes %zu to %zu of a buffer of %zu", at, at + n, b->size);
    return 0;
}

int device_upload(struct device_buf *to, size_t at, const void *from, size_t n, struct err *e)
{
    if (device_in_range(to, at, n, e) < 0)
        return -1;
    return n ? to->dev->be->upload(to->dev, to->ptr + at, from, n, e) : 0;
}

int device_download(const struct device_buf *from, size_t at, void *to, size_t n, struct err *e)
{
    if (device_in_range(from, at, n, e) < 0)
        return -1;
    return n ? from->dev->be->download(from->dev, to, from->ptr + at, n, e) : 0;
}

int device_copy(struct device_buf *to, size_t to_at, const struct device_buf *from, size_t from_at, size_t n,
                struct err *e)
{
    if (device_in_range(to, to_at, n, e) < 0 || device_in_range(from, from_at, n, e) < 0)
        return -1;
    if (to->dev != from->dev)
        return err_set(e, ERR_BUG, "a copy between two devices");
    return n ? to->dev->be->copy(to->dev, to->ptr + to_at, from->ptr + from_at, n, e) : 0;
}

int device_memset(struct device_buf *b, size_t at, uint8_t byte, size_t n, struct err *e)
{
    if (device_in_range(b, at, n, e) < 0)
        return -1;
    return n ? b->dev->be->set(b->dev, b->ptr + at, byte, n, e) : 0;
}

int device_sync(struct device *d, struct err *e)
{
    return d->be->sync(d, e);
}

/* ---- views ---- */

/* True where a dimension reaches beyond 64 bits; otherwise *last moves to its last byte. */
static bool device_bad_extent(int64_t size, int64_t stride, size_t item, uint64_t *last)
{
    uint64_t reach;

    return size < 0 || stride < 0 || size > (int64_t)1 << 48 ||
           (size > 1 && (__builtin_mul_overflow((uint64_t)(size - 1), (uint64_t)stride, &reach) ||
                         __builtin_mul_overflow(reach, item, &reach) || __builtin_add_overflow(*last, reach, last)));
}

int device_view_make(const struct device_buf *b, size_t at, enum dtype dtype, int ndim, const int64_t *shape,
                     const int64_t *strides, struct device_view *ret, struct err *e)
{
    struct device_view v = {.dtype = dtype, .ndim = ndim};
    uint64_t last = 0;
    int64_t n = 1;
    size_t item;

    if ((unsigned)dtype >= DT_COUNT || ndim < 0 || ndim > DEVICE_MAX_DIMS)
        return err_set(e, ERR_INPUT, "a tensor of an unknown dtype or of more than %d dimensions", DEVICE_MAX_DIMS);
    item = dt_size(dtype) * (size_t)dt_components(dtype);
    for (int d = ndim - 1; d >= 0; d--) {
        v.shape[d] = shape[d];
        v.strides[d] = strides ? strides[d] : n;
        if (device_bad_extent(shape[d], v.strides[d], item, &last) ||
            __builtin_mul_overflow(n, shape[d] > 1 ? shape[d] : 1, &n))
            return err_set(e, ERR_INPUT, "a tensor with an impossible shape or stride");
    }
    if (device_view_numel(&v) && (at > b->size || last > b->size - at || item > b->size - at - last))
        return err_set(e, ERR_INPUT, "a tensor that does not lie inside its buffer of %zu bytes", b->size);
    if (at % dt_size(dtype))
        return err_set(e, ERR_INPUT, "a tensor that is not aligned to its dtype");
    v.ptr = b->ptr + at;
    *ret = v;
    return 0;
}

int64_t device_view_numel(const struct device_view *v)
{
    int64_t n = 1;

    for (int d = 0; d < v->ndim; d++)
        n *= v->shape[d]; /* cannot overflow unless a size is 0: device_view_make */
    return n;
}
