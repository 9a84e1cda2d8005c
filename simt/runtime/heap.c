/* heap.c - malloc, free, new and delete of kernels. A build's image calls these instead of the C library's
 * (src/eval/build/build_sim.c), so that the checker knows the memory. A card's limit of its heap is not held to. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "simt/api.h"

void *simt_heap_malloc(size_t bytes), *simt_heap_new(size_t bytes), *simt_heap_new_array(size_t bytes);
void simt_heap_free(void *p), simt_heap_delete(void *p), simt_heap_delete_array(void *p);
void simt_heap_delete_sized(void *p, size_t bytes), simt_heap_delete_array_sized(void *p, size_t bytes);

static const char heap_name[] = "memory that a kernel allocated";

/* Unwritten memory holds NaN, as shared memory does. */
void *simt_heap_malloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    if (!p)
        return NULL;
    memset(p, 0xff, bytes);
    if (simt_mem_register(p, bytes ? bytes : 1, heap_name) < 0) {
        free(p);
        return NULL;
    }
    return p;
}

void simt_heap_free(void *p)
{
    const struct range *r = p ? memory_find((uintptr_t)p) : NULL;

    if (!p)
        return;
    if (r && r->lo == (uintptr_t)p && !strcmp(r->name, heap_name) && simt_mem_unregister(p) == 0) {
        free(p);
        return;
    }
    finding("crash", __builtin_return_address(0), true, "free of %p, which no kernel allocated, or which is free "
                                                        "already", p);
    if (in_my_kernel()) {
        device_error_sticky(CUDA_LAUNCH_FAILURE);
        abort_kernel();
    }
}

void *simt_heap_new(size_t bytes)
{
    return simt_heap_malloc(bytes);
}

void *simt_heap_new_array(size_t bytes)
{
    return simt_heap_malloc(bytes);
}

void simt_heap_delete(void *p)
{
    simt_heap_free(p);
}

void simt_heap_delete_array(void *p)
{
    simt_heap_free(p);
}

void simt_heap_delete_sized(void *p, size_t bytes)
{
    (void)bytes;
    simt_heap_free(p);
}

void simt_heap_delete_array_sized(void *p, size_t bytes)
{
    (void)bytes;
    simt_heap_free(p);
}
