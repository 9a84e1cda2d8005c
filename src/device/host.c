/* host.c - the host backend: one device, plain memory, kernels in C on the calling thread. Every buffer is a memfd,
 * so that export and import work as on a GPU. "queued" work is done at once. host_NAME is the member NAME of struct
 * device_backend (device_backend.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/device_backend.h"
#include "device/host_kernels.h"

#define AT(address) ((void *)(uintptr_t)(address))

struct host {
    size_t used;
};

/* *ret is a new array of one: the machine's own memory. */
static int host_list(struct device_info **ret, int *ret_n, struct err *e)
{
    struct device_info *i = xcalloc(1, sizeof *i);

    (void)e;
    snprintf(i->backend, sizeof i->backend, "host");
    snprintf(i->name, sizeof i->name, "host memory");
    i->memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    i->l2 = (size_t)(sysconf(_SC_LEVEL3_CACHE_SIZE) > 0 ? sysconf(_SC_LEVEL3_CACHE_SIZE) : 0);
    i->sm_count = 1;
    i->warp_size = 1;
    i->vmm_fd = true;
    *ret = i;
    *ret_n = 1;
    return 0;
}

/* The host as a device: memory is the process's own. */
static int host_open(struct device *d, struct err *e)
{
    (void)e;
    d->self = xcalloc(1, sizeof(struct host));
    d->kernels = true;
    return 0;
}

static void host_close(struct device *d)
{
    free(d->self);
}

/* Bytes of our buffers, and all memory of the machine. */
static int host_usage(struct device *d, size_t *ret_used, size_t *ret_total, struct err *e)
{
    (void)e;
    *ret_used = ((struct host *)d->self)->used;
    *ret_total = d->info.memory;
    return 0;
}

/* The host tells nothing; all figures are unknown. */
static int host_health(struct device *d, struct device_health *ret, struct err *e)
{
    (void)d;
    (void)e;
    *ret = (struct device_health){false, -1, -1, -1, -1, -1, -1, -1, 0, false, "", -1};
    return 0;
}

/* Maps the file behind fd, which b then owns. */
static int host_map(struct device_buf *b, int fd, struct err *e)
{
    if (memfd_map(fd, b->capacity, &b->host, e) < 0)
        return -1;
    b->fd = fd;
    b->ptr = (uint64_t)(uintptr_t)b->host;
    ((struct host *)b->dev->self)->used += b->capacity;
    return 0;
}

/* Memory that other processes can map, rounded up to pages of 4 KiB. */
static int host_alloc(struct device_buf *b, struct err *e)
{
    int fd;

    b->capacity = (b->size + 4095) / 4096 * 4096;
    if (b->capacity > b->dev->info.memory)
        return err_set(e, ERR_ENV, "%zu bytes of device memory: out of memory", b->size), err_lack(e, LACK_DEVICE);
    if (memfd_open(b->capacity, &fd, e) < 0)
        return -1;
    if (host_map(b, fd, e) < 0) {
        close(fd);
        return -1;
    }
    return 0;
}

/* Maps another process's buffer; fd stays the caller's. */
static int host_import(struct device_buf *b, int fd, struct err *e)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (own < 0)
        return err_sys(e, "cannot import a buffer");
    if (host_map(b, own, e) < 0) {
        close(own);
        return -1;
    }
    return 0;
}

/* *ret_fd is a new descriptor of the buffer. */
static int host_export(struct device_buf *b, int *ret_fd, struct err *e)
{
    int fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);

    if (fd < 0)
        return err_sys(e, "cannot export a buffer");
    *ret_fd = fd;
    return 0;
}

static void host_free(struct device_buf *b)
{
    ((struct host *)b->dev->self)->used -= b->capacity;
    munmap(b->host, b->capacity);
    close(b->fd);
}

static int host_upload(struct device *d, uint64_t to, const void *from, size_t n, struct err *e)
{
    (void)d;
    (void)e;
    memcpy(AT(to), from, n);
    return 0;
}

static int host_download(struct device *d, void *to, uint64_t from, size_t n, struct err *e)
{
    (void)d;
    (void)e;
    memcpy(to, AT(from), n);
    return 0;
}

static int host_copy(struct device *d, uint64_t to, uint64_t from, size_t n, struct err *e)
{
    (void)d;
    (void)e;
    memmove(AT(to), AT(from), n);
    return 0;
}

static int host_set(struct device *d, uint64_t to, uint8_t byte, size_t n, struct err *e)
{
    (void)d;
    (void)e;
    memset(AT(to), byte, n);
    return 0;
}

static int host_sync(struct device *d, struct err *e)
{
    (void)d;
    (void)e;
    return 0;
}

static int host_launch(struct device *d, enum kernel_id k, unsigned blocks, const void *args, struct err *e)
{
    (void)d;
    (void)blocks;
    (void)e;
    host_kernel(k, args);
    return 0;
}

const struct device_backend device_host = {
    "host", host_list, host_open, host_close, host_usage, host_health, host_alloc, host_import, host_export, host_free,
    host_upload, host_download, host_copy, host_set, host_sync, host_launch};
