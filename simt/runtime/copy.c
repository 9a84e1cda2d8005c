/* copy.c - copies and fills, as the CUDA runtime API has them. */
#include <string.h>

#include "runtime.h"

/* Does [p, p+n) run out of the device memory that holds p? Then the copy is refused, as the driver would. */
static bool runs_out(const void *p, size_t n)
{
    const struct range *r = memory_find((uintptr_t)p);

    return r && n > r->hi - (uintptr_t)p; /* n may be a negative number, converted */
}

static int refuse_copy(const char *what, const void *p, size_t n, const void *pc)
{
    char where[160];

    memory_describe((uintptr_t)p, n, where, sizeof where);
    finding("out_of_bounds", pc, true, "%s of %zu bytes %s", what, n, where);
    device_error(CUDA_INVALID_VALUE);
    return CUDA_INVALID_VALUE;
}

static int copy(void *to, const void *from, size_t n, const void *pc)
{
    if (n == 0)
        return device_error_state();
    if (!to || !from)
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    if (runs_out(to, n))
        return refuse_copy("copy", to, n, pc);
    if (runs_out(from, n))
        return refuse_copy("copy", from, n, pc);
    count_copy(memory_is_device((uintptr_t)from), memory_is_device((uintptr_t)to), n);
    if (watcher)
        watcher->copy(to, from, n, memory_is_device((uintptr_t)from), memory_is_device((uintptr_t)to));
    crash_install();
    memory_open();
    memory_move(pc);
    memmove(to, from, n);
    memory_move(NULL);
    memory_close();
    return device_error_state();
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int simt_memcpy_async(void *to, const void *from, size_t bytes, int kind, void *stream);
int simt_memcpy2d(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind, void *stream);
int cudaMemset(void *p, int value, size_t bytes), simt_memset_async(void *p, int value, size_t bytes, void *stream);
int simt_copy_symbol(void *to, const void *from, size_t bytes), simt_symbol_address(void **p, const void *twin);

static bool bad_kind(int kind)
{
    return kind < 0 || kind > 4;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    if (bad_kind(kind))
        return device_error(21), 21; /* cudaErrorInvalidMemcpyDirection */
    return copy(to, from, bytes, __builtin_return_address(0));
}

int simt_memcpy_async(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    (void)stream;
    if (bad_kind(kind))
        return device_error(21), 21;
    return copy(to, from, bytes, __builtin_return_address(0));
}

int simt_memcpy2d(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind, void *stream)
{
    (void)kind, (void)stream;
    if (w > tp || w > fp)
        return device_error(12), 12; /* cudaErrorInvalidPitchValue */
    for (size_t i = 0; i < h; i++) {
        int rc = copy((char *)to + i * tp, (const char *)from + i * fp, w, __builtin_return_address(0));

        if (rc)
            return rc;
    }
    return device_error_state();
}

static int set(void *p, int value, size_t bytes, const void *pc)
{
    if (bytes == 0)
        return device_error_state();
    if (!p)
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    if (runs_out(p, bytes))
        return refuse_copy("memset", p, bytes, pc);
    if (!memory_is_device((uintptr_t)p)) {
        finding("illegal_access", pc, true, "cudaMemset of %zu bytes at %p, which is not device memory", bytes, p);
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    }
    if (watcher)
        watcher->set(p, value, bytes);
    memory_open();
    memset(p, value, bytes);
    memory_close();
    return device_error_state();
}

int cudaMemset(void *p, int value, size_t bytes)
{
    return set(p, value, bytes, __builtin_return_address(0));
}

int simt_memset_async(void *p, int value, size_t bytes, void *stream)
{
    (void)stream;
    return set(p, value, bytes, __builtin_return_address(0));
}

int simt_copy_symbol(void *to, const void *from, size_t bytes)
{
    return copy(to, from, bytes, __builtin_return_address(0));
}

/* In one process a variable's twin is the variable. */
int simt_symbol_address(void **p, const void *twin)
{
    *p = (void *)(uintptr_t)twin;
    return CUDA_OK;
}
