/* device_backend.h - private to src/device: the table that a backend fills, and what every device owns. Kernels are
 * numbered (judge_kernels.h): on cuda a function of judge.fatbin, on host a C function of the same name and
 * argument. */
#ifndef MC_DEVICE_DEVICE_BACKEND_H
#define MC_DEVICE_DEVICE_BACKEND_H

#include "device/device.h"
#include "device/judge_kernels.h"

struct device_backend {
    const char *name;
    int (*list)(struct device_info **ret, int *ret_n, struct err *e);
    int (*open)(struct device *d, struct err *e); /* d->info is filled; sets d->self, d->kernels */
    void (*close)(struct device *d);
    int (*usage)(struct device *d, size_t *ret_used, size_t *ret_total, struct err *e);
    int (*health)(struct device *d, struct device_health *ret, struct err *e);

    /* b->dev, kind and size are set; fills the rest. import: capacity too. */
    int (*alloc)(struct device_buf *b, struct err *e);
    int (*import)(struct device_buf *b, int fd, struct err *e);
    int (*export)(struct device_buf *b, int *ret_fd, struct err *e);
    void (*free)(struct device_buf *b);

    int (*upload)(struct device *d, uint64_t to, const void *from, size_t n, struct err *e);
    int (*download)(struct device *d, void *to, uint64_t from, size_t n, struct err *e);
    int (*copy)(struct device *d, uint64_t to, uint64_t from, size_t n, struct err *e);
    int (*set)(struct device *d, uint64_t to, uint8_t byte, size_t n, struct err *e);
    int (*sync)(struct device *d, struct err *e);

    /* blocks of K_THREADS threads; args of the kernel's struct. */
    int (*launch)(struct device *d, enum kernel_id k, unsigned blocks, const void *args, struct err *e);

};

struct device {
    const struct device_backend *be;
    struct device_info info;
    void *self;               /* the backend's own */
    bool kernels, lost;
    struct device_buf scratch; /* partial results of kernels, in the order of struct device_scratch */
};

/* Layout of scratch. arrivals stays zero between kernels. */
struct device_scratch {
    uint32_t arrivals, relations, pad[62];
    union {
        struct k_diff_result diff;
        struct k_group_result group;
        uint64_t checksum;
    } result;
    struct el_tally partial[K_MAX_BLOCKS];
};
#define SCRATCH(d, field) ((d)->scratch.ptr + offsetof(struct device_scratch, field))

extern const struct device_backend device_cuda, device_host;

/* Blocks for that many items of work, but no more than keep the device busy. */
unsigned device_blocks(const struct device *d, int64_t items);
int device_need_kernels(const struct device *d, struct err *e);
int device_in_range(const struct device_buf *b, size_t at, size_t n, struct err *e); /* ERR_BUG if not */
int memfd_open(size_t size, int *ret_fd, struct err *e);       /* sealed: nobody can change its size */
int memfd_map(int fd, size_t size, void **ret, struct err *e); /* checks size and seals of a foreign one */
void device_rates(struct device_info *i);                      /* fills the peak rates from cc, sm_count, clock_mhz */
/* cuda: health of the device of this UUID through NVML; known = false without it. version may be NULL. */
void nvml_health(const char *uuid, struct device_health *ret);
void nvml_driver_version(char *out, size_t n);

#endif
