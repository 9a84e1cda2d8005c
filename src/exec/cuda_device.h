/* cuda_device.h - what exec_backend_cuda.c and cuda_code.c share. */
#ifndef MC_EXEC_CUDA_DEVICE_H
#define MC_EXEC_CUDA_DEVICE_H

#define EXEC_BACKEND exec_driver
#include "exec/exec_backend.h"
#include "exec/cuda_more.h"
#include "exec/context.h"

#define LEGACY ((drv_stream)BACKEND_STREAM_LEGACY)
#define N_MOVEMENT 7

struct cuda_chunk {
    drv_handle handle;
    uint64_t bytes;
};

struct share { /* the judge's memory, mapped here too */
    uint64_t addr, bytes;
};

struct exec_driver {
    const struct drv_vendor *vendor;
    const struct drv *c;
    struct drv_more m;
    drv_ctx ctx;
    int device, error;
    uint64_t reserved, mapped; /* bytes behind WIRE_BASE */
    struct cuda_chunk *chunks;
    size_t n_chunks;
    struct share *shares;
    size_t n_shares;
    uint64_t scratch; /* 8 bytes: elements that casts changed; 8 bytes: elements that differ */
    uint64_t flush, l2;
    drv_module movement, modules[CONTEXT_MODULES];
    size_t n_modules;
    drv_function kernels[N_MOVEMENT];
    char why[256];
};

/* The first code that is not 0 stays, with its text. Returns the sticky error. */
int cuda_fault(struct exec_driver *b, int code, const char *what);

int cuda_module(struct exec_driver *b, const void *image, size_t n, backend_handle *ret);
int cuda_function(struct exec_driver *b, backend_handle module, const char *name, backend_handle *ret,
                  struct wire_function_info *info);
int cuda_symbol(struct exec_driver *b, backend_handle module, const char *name, uint64_t *ret_addr,
                uint64_t *ret_bytes);
int cuda_func_attr(struct exec_driver *b, backend_handle function, int attr, int value);
int cuda_occupancy(struct exec_driver *b, backend_handle function, uint32_t threads, uint64_t shared, int *ret);
int cuda_tensor_map(struct exec_driver *b, const struct wire_tensor_map *m, uint8_t ret[128]);
int cuda_launch(struct exec_driver *b, const struct backend_launch *l);

#endif
