/* device.h - the judge's device: its own context and stream, memory, checks. One table, two backends:
 * "cuda" (libcuda and libnvidia-ml through dlopen; nothing is linked) and "host" (plain memory, the same answers, no
 * GPU: everything above this header is tested with it).
 *
 * A struct device owns a context, one stream and the loaded kernels; a struct device_buf owns one allocation.
 * Work goes to the one stream in the order of the calls. "queued" below: the call returns before the device is done;
 * "waits": it returns when the result is there. Before another process may look at a buffer: device_sync().
 * One thread at a time per device; any thread. Open a device only after the last fork (CUDA does not survive one).
 * Errors are ERR_ENV unless said otherwise. After a sticky fault (illegal address in *this* context, the GPU gone)
 * every call fails and device_lost() is true: close, and start the process anew. */
#ifndef MC_DEVICE_H
#define MC_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"

#define DEVICE_MAX_DIMS 16

struct device;

/* ---- what there is ---- */

struct device_info {
    char backend[8];        /* "cuda", "host" */
    int index;
    char name[96];          /* "NVIDIA H200" */
    char uuid[48];          /* "GPU-..."; "" on host */
    int cc;                 /* compute capability, 90 = 9.0; 0 on host */
    int driver, runtime;    /* 13000 = 13.0: what the driver supports; the CUDA version of judge.fatbin, 0 if none */
    char driver_version[48]; /* "580.159.04", "" if NVML does not say */
    size_t memory, l2;      /* bytes */
    int sm_count, warp_size; /* multiprocessors; threads */
    double clock_mhz, memory_clock_mhz, bus_bits;  /* highest clocks */
    double memory_gbs;      /* datasheet-like estimate: 2 * memory clock * bus width, 1e9 bytes/s */
    /* Peak rates, 1e12 operations/s (an FMA is two), dense, at clock_mhz: per-SM rates of the CUDA programming guide
     * ("Arithmetic instructions") and NVIDIA's architecture papers by cc; 0 = unknown cc. fp64 is the larger of CUDA
     * and tensor cores; fp16 = bf16 with fp32 accumulation. An upper bound: good for roofline floors. */
    double fp32_tflops, tf32_tflops, bf16_tflops, fp64_tflops;
    bool vmm_fd;            /* exportable allocations as file descriptors work here (asked of the driver) */
};

/* Lists devices without making a context. *ret is one allocation, the caller frees it. With no driver or no device:
 * -1 and one message that names what is missing ("no NVIDIA driver: libcuda.so.1 is not found; ..."). */
int device_list(const char *backend, struct device_info **ret, int *ret_n, struct err *e);

/* Makes the context, the stream, and loads the kernels (build/lib/judge.fatbin; if that is missing on cuda, the
 * functions under "kernels" below fail with the remedy, all others work). */
int device_open(const char *backend, int index, struct device **ret, struct err *e);
void device_close(struct device *d); /* NULL is fine; every buffer of d must be freed before */
const struct device_info *device_info(const struct device *d);
bool device_has_kernels(const struct device *d);
bool device_lost(const struct device *d);

/* Bytes in use on the whole device, by everyone, and its size. */
int device_usage(struct device *d, size_t *ret_used, size_t *ret_total, struct err *e);

/* NVML's view; fields that it does not give are -1. known = false: no NVML (then all are -1 and reasons is 0). */
struct device_health {
    bool known;
    double sm_mhz, mem_mhz, sm_max_mhz, temperature_c, power_w, power_limit_w, utilization; /* the last in 0..1 */
    uint64_t reasons;       /* NVML's clock event reasons, as they are */
    bool throttled;         /* of these, one that slows work down: power cap, thermal, hardware slowdown, power brake */
    char reasons_text[96];  /* "sw_power_cap, hw_thermal", "" if none */
    int processes;          /* compute processes that NVML sees on the device */
};
int device_health(struct device *d, struct device_health *ret, struct err *e);

/* ---- memory ---- */

enum device_mem {
    DEVICE_PLAIN,  /* device memory that no other process can reach: master copies, expected values */
    DEVICE_SHARED, /* device memory, one handle per buffer, exportable as a file descriptor (CUDA VMM) */
    DEVICE_PINNED  /* host memory (memfd) pinned for the device, exportable: the fallback where vmm_fd is false */
};

struct device_buf {
    struct device *dev;
    enum device_mem kind;
    uint64_t ptr;      /* address on the device */
    void *host;        /* DEVICE_PINNED and every buffer of the host backend: address in this process, else NULL */
    size_t size;       /* bytes asked for */
    size_t capacity;   /* bytes mapped: size rounded up to the granularity (2 MiB for DEVICE_SHARED); import needs it */
    uint64_t handle;   /* backend's own */
    int fd;            /* DEVICE_PINNED and host backend: its memfd; else -1 */
};

/* size 0 is rounded up to 1. Contents are undefined (DEVICE_SHARED: zero at first; still, poison it). */
int device_alloc(struct device *d, size_t size, enum device_mem kind, struct device_buf *ret, struct err *e);
void device_free(struct device_buf *b); /* waits for the stream; zeroes *b; a zeroed b is fine */

/* A descriptor of a DEVICE_SHARED or DEVICE_PINNED buffer for another process: the caller closes it. It gives read and
 * write access to exactly this buffer. */
int device_export(struct device_buf *b, int *ret_fd, struct err *e);
/* Maps what device_export gave: kind and capacity as on the other side. fd stays the caller's and may be closed. The
 * memory lives until both sides have freed it. */
int device_import(struct device *d, int fd, enum device_mem kind, size_t size, size_t capacity, struct device_buf *ret,
                  struct err *e);

/* Offsets and sizes in bytes; ranges outside a buffer are ERR_BUG. */
int device_upload(struct device_buf *to, size_t at, const void *from, size_t n, struct err *e);   /* waits */
int device_download(const struct device_buf *from, size_t at, void *to, size_t n, struct err *e); /* waits */
int device_copy(struct device_buf *to, size_t to_at, const struct device_buf *from, size_t from_at, size_t n,
                struct err *e); /* queued; both on one device */
int device_memset(struct device_buf *b, size_t at, uint8_t byte, size_t n, struct err *e); /* queued */
int device_sync(struct device *d, struct err *e);

/* ---- a tensor in device memory ---- */

struct device_view {
    uint64_t ptr;       /* address of element (0, ..., 0) */
    enum dtype dtype;
    int ndim;
    int64_t shape[DEVICE_MAX_DIMS], strides[DEVICE_MAX_DIMS]; /* in elements; >= 0; a complex number is one element */
};

/* A view at byte offset 'at' of b, checked: every element inside [at, b->size), aligned. strides NULL: contiguous,
 * row-major. The numbers may come from a hostile process (ERR_INPUT if they do not fit). */
int device_view_make(const struct device_buf *b, size_t at, enum dtype dtype, int ndim, const int64_t *shape,
                     const int64_t *strides, struct device_view *ret, struct err *e);
int64_t device_view_numel(const struct device_view *v);    /* a complex number counts as one */

/* ---- kernels: compare, check (all deterministic) ---- */

/* Element by element: is got the expected value? Exactly the arithmetic of eval/check/compare.c, in double. Elements
 * are the real components in row-major order of the shape (a complex number counts as two).
 * eager: same shape and dtype as got; oracle: same shape, float64/complex128 or eager's dtype, or eager itself.
 * Floating dtypes are judged against oracle alone; integers and booleans may equal eager or, if it has their dtype,
 * oracle. */
struct device_tolerance {
    double abs, rel;
    bool allclose; /* kernelbench: rel * |got| instead of rel * |oracle|, NaN never right */
};
struct device_diff {
    int64_t n, n_bad, n_nan;         /* elements; wrong; wrong and NaN in got */
    int64_t first, last, worst; /* flat indices of wrong elements, -1 if none; worst: largest error, first of equals */
    double max_abs, max_rel;         /* over all finite elements */
    double first_oracle, first_got, worst_oracle, worst_got;
};
/* One pass over got and oracle; temporaries of a few hundred KB. waits. */
int device_diff(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                const struct device_view *got, const struct device_tolerance *tol, struct device_diff *ret,
                struct err *e);

/* Which elements were wrong: a second pass, for diagnosis only. Makes a mask of one bit per element. */
struct device_marks {
    struct device *dev;
    struct device_buf mask;   /* bit i % 32 of word i / 32 */
    struct device_diff diff;  /* of the same pass */
    /* What all wrong values have in common (compared with the first wrong one, tolerances as in
     * eval/check/compare.c). */
    bool constant, scaled, shifted; /* got = c; got = oracle * c; got = oracle + c */
};
int device_mark(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                const struct device_view *got, const struct device_tolerance *tol, const struct device_diff *diff,
                struct device_marks *ret, struct err *e);
void device_marks_free(struct device_marks *m);
/* Group of element i = i / inner % n_groups. A group is wrong if at least 80 % of n / n_groups elements are. */
struct device_groups {
    int64_t n_bad, first, last, stray; /* wrong groups, -1 if none; wrong elements outside wrong groups */
    int64_t step;                      /* constant distance between wrong groups, 0 if none or uneven */
};
int device_marks_group(struct device_marks *m, int64_t inner, int64_t n_groups, struct device_groups *ret,
                       struct err *e);

/* A 64-bit checksum of n bytes from byte 'at' on, any alignment: the sum modulo 2^64 of el_mix (element.h) over 8-byte
 * words, the last one padded with zeros, numbered from 'first' on. Every byte's value and place matter; sums of pieces
 * of whole words add up to the sum of all. Not cryptographic. waits. */
int device_checksum(const struct device_buf *b, size_t at, size_t n, uint64_t first, uint64_t *ret, struct err *e);

#endif
