/* exec_backend.h - what a device has to offer the executor; a row for each kind of device. Calls come from one thread
 * at a time, with numbers that the executor has checked. They return enum wire_code; a device's own error is
 * sticky. */
#ifndef MC_EXEC_EXEC_BACKEND_H
#define MC_EXEC_EXEC_BACKEND_H

#include <stdbool.h>

#include "base/err.h"
#include "exec/wire.h"

struct exec_backend; /* each backend's own */
typedef void *backend_handle; /* a module, function, stream or event of the device */

struct backend_options {
    const char *backend;
    int device;
    uint64_t memory; /* bytes a recording may hold; 0: the backend's choice */
    bool no_check;   /* sim */
};

struct backend_launch {
    backend_handle function, stream;
    const struct wire_launch *w;
    const void *args;
    size_t args_bytes;
};

/* As simt_set_blocks (simt/api.h). */
enum backend_blocks { BACKEND_BLOCKS_IN_ORDER, BACKEND_BLOCKS_LAST_FIRST, BACKEND_BLOCKS_GIVE_WAY };

struct backend_ops {
    /* Before any client exists. Fills *info. */
    int (*open)(const struct backend_options *o, struct exec_backend **ret, struct wire_info *info, struct err *e);
    void (*close)(struct exec_backend *b);
    /* from another thread, before the process ends: files go; NULL: there are none */
    void (*tidy)(struct exec_backend *b);
    /* from here on no file is there but its own; NULL: the driver needs some */
    bool (*shut_in)(struct exec_backend *b);
    /* A fresh start: no modules, no handles, no error. Memory stays mapped; its content is what it was. */
    int (*fresh)(struct exec_backend *b, struct err *e);
    int (*map)(struct exec_backend *b, uint64_t bytes); /* [WIRE_BASE, + bytes) can be used from now on */
    uint64_t (*mapped)(struct exec_backend *b); /* bytes behind WIRE_BASE that kernels can reach now; NULL: not timed */
    /* A block begins or ends to live (bounds checks); nothing has written to a new one. */
    void (*block)(struct exec_backend *b, uint64_t addr, uint64_t bytes, bool lives);

    /* Memory of the judge's that other processes map too, at addr (a multiple of 2 MiB) until unshare, which ends all
     * of it. push: what others wrote into [addr, + n) is what kernels see; pull: the other way. NULL: it is the same
     * memory. */
    int (*share)(struct exec_backend *b, int fd, uint64_t addr, uint64_t bytes, struct err *e);
    void (*unshare)(struct exec_backend *b);
    int (*push)(struct exec_backend *b, uint64_t addr, uint64_t n);
    int (*pull)(struct exec_backend *b, uint64_t addr, uint64_t n);

    int (*set)(struct exec_backend *b, const struct wire_memset *m, backend_handle stream);
    int (*write)(struct exec_backend *b, uint64_t to, const void *from, uint64_t n, backend_handle stream);
    int (*read)(struct exec_backend *b, void *to, uint64_t from, uint64_t n); /* after all that was asked before */
    int (*copy)(struct exec_backend *b, uint64_t to, uint64_t from, uint64_t n, backend_handle stream);
    int (*fill)(struct exec_backend *b, const struct wire_fill *m, backend_handle stream);
    int (*strided)(struct exec_backend *b, const struct wire_strided *m, backend_handle stream);
    int (*arange)(struct exec_backend *b, const struct wire_arange *m, backend_handle stream);
    int (*random)(struct exec_backend *b, const struct wire_random *m, backend_handle stream);
    int (*equal)(struct exec_backend *b, const struct wire_equal *m, bool *ret);
    uint64_t (*changed)(struct exec_backend *b); /* elements whose value a cast changed since fresh, roundings apart */

    int (*module)(struct exec_backend *b, const void *image, size_t n, backend_handle *ret);
    int (*function)(struct exec_backend *b, backend_handle module, const char *name, backend_handle *ret,
                    struct wire_function_info *info);
    int (*symbol)(struct exec_backend *b, backend_handle module, const char *name, uint64_t *ret_addr,
                  uint64_t *ret_bytes);
    int (*func_attr)(struct exec_backend *b, backend_handle function, int attr, int value);
    int (*occupancy)(struct exec_backend *b, backend_handle function, uint32_t threads, uint64_t shared, int *ret);
    int (*tensor_map)(struct exec_backend *b, const struct wire_tensor_map *m, uint8_t ret[128]);
    int (*launch)(struct exec_backend *b, const struct backend_launch *l);
    /* In a signal handler: the kernel that runs ends, and a finding says where it stood. NULL: none can be stopped. */
    void (*stop)(struct exec_backend *b);
    void (*poison)(struct exec_backend *b, uint8_t byte); /* what blocks find in shared memory; NULL: not ours to say */

    /* of launches from here on; NULL: not ours to say */
    void (*blocks)(struct exec_backend *b, enum backend_blocks how);

    int (*stream)(struct exec_backend *b, uint32_t flags, int32_t priority, backend_handle *ret);
    void (*stream_end)(struct exec_backend *b, backend_handle stream);
    int (*event)(struct exec_backend *b, uint32_t flags, backend_handle *ret);
    void (*event_end)(struct exec_backend *b, backend_handle event);
    int (*record)(struct exec_backend *b, backend_handle event, backend_handle stream);
    int (*wait)(struct exec_backend *b, backend_handle stream, backend_handle event);
    int (*query_stream)(struct exec_backend *b, backend_handle stream);
    int (*query_event)(struct exec_backend *b, backend_handle event);
    int (*elapsed)(struct exec_backend *b, backend_handle from, backend_handle to, float *ret_ms);
    int (*sync_stream)(struct exec_backend *b, backend_handle stream);
    int (*sync_event)(struct exec_backend *b, backend_handle event);
    int (*sync)(struct exec_backend *b); /* all of it; the sticky error */

    const char *(*why)(struct exec_backend *b); /* of the sticky error, in words; "" */
    /* JSON list of the emulator's findings since the last call; owned by the caller. NULL: none. */
    char *(*findings)(struct exec_backend *b);
    /* For timing; NULL where nothing is timed. L2 flushed; the legacy stream busy for that long. */
    int (*cold)(struct exec_backend *b);
    int (*pad)(struct exec_backend *b, uint64_t ns);
    /* a profiler looks from here on, or no more; NULL: there are none */
    void (*profile)(struct exec_backend *b, bool on);
    bool inline_play; /* calls return before the device is done: no thread of its own is needed */
};

extern const struct backend_ops exec_on_sim;
extern const struct backend_ops exec_on_driver; /* a device of drv_vendor_find (device/cuda_driver.h) */

/* The legacy and the per-thread default stream, as handles. */
#define BACKEND_STREAM_LEGACY ((backend_handle)1)
#define BACKEND_STREAM_PER_THREAD ((backend_handle)2)

#endif
