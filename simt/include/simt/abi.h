/* abi.h - what candidates' compiled code calls in libsimt.so, in C. Candidates see it through cuda_runtime.h; the
 * functions that carry CUDA's names are declared there, bound to the symbols of runtime/ by asm labels, so that the
 * return address of a call is a line of the candidate and headers stay small. */
#ifndef SIMT_ABI_H
#define SIMT_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "simt/api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct simt_dim {
    unsigned x, y, z;
};

/* Where a launch stands, as written; static strings. */
struct simt_site {
    const char *kernel, *file;
    int line;
};

struct simt_launch {
    const char *kernel, *file; /* as written at the launch; static strings */
    int line;
    struct simt_dim grid, block;
    size_t shared; /* dynamic shared memory, bytes */
    void *stream;
    void (*body)(void *ctx); /* runs one thread */
    void *ctx;               /* the launch's own copy of the arguments; threads may read it */
    size_t ctx_bytes;
    const void *fn;          /* the kernel, or NULL when its address cannot be named */
    const void *const *args; /* its arguments one by one, and their sizes */
    const size_t *sizes;
    int n_args;
    int captures;            /* bytes at the front of ctx that are copies of the caller's variables: one may be fn */
    int cooperative;         /* grid.sync() is allowed */
};

/* Runs the kernel and returns when it is done. Errors go to cudaGetLastError and to the findings. */
void simt_run(const struct simt_launch *l);

/* A launch at s, without kernel and arguments; grid and block: x, y and z. */
void simt_configure(struct simt_launch *l, const struct simt_site *s, const unsigned *grid, const unsigned *block,
                    size_t shared, void *stream);

/* One argument's size and alignment in bytes; behind the last one stands a size of 0. */
struct simt_spot {
    unsigned size, align;
};

/* Copies the arguments, whose addresses follow spots, into a block behind the kernel's address (l->fn), each at its
 * alignment, and calls run (the caller's simt_run) with it; body runs one thread of such a block. */
void simt_run_args(struct simt_launch *l, void (*run)(const struct simt_launch *l), void (*body)(void *ctx),
                   const struct simt_spot *spots, ...);

/* The dynamic shared memory of the running block. */
extern char simt_dynamic_shared[];

#ifdef __cplusplus
}
#endif
#endif
