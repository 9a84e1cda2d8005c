/* exec_backend.h - what a device has to offer the executor; a row for each kind of device. Calls come from one thread
 * at a time, with numbers that the executor has checked. They return enum wire_code; a device's own error is
 * sticky. */
#ifndef MC_EXEC_EXEC_BACKEND_H
#define MC_EXEC_EXEC_BACKEND_H

#include <stdbool.h>

#include "base/err.h"
#include "exec/wire.h"

/* A backend's own files name its struct here; to all others a backend is opaque. */
#ifndef EXEC_BACKEND
#define EXEC_BACKEND exec_backend
#endif
struct EXEC_BACKEND;
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
    int (*open)(const struct backend_options *o, struct EXEC_BACKEND **ret, struct wire_info *info, struct err *e);
    void (*close)(struct EXEC_BACKEND *b);
    /* from another thread, before the process ends: files go; NULL: there are none */
    void (*tidy)(struct EXEC_BACKEND *b);
    /* from here on no file is there but its own; NULL: the driver needs some */
    bool (*shut_in)(struct EXEC_BACKEND *b);
    /* A fresh start: no modules, no handles, no error. Memory stays mapped; its content is what it was. */
    int (*fresh)(struct EXEC_BACKEND *b, struct err *e);
    int (*map)(struct EXEC_BACKEND *b, uint64_t bytes); /* [WIRE_BASE, + bytes) can be used from now on */
    uint64_t (*mapped)(struct EXEC_BACKEND *b); /* bytes behind WIRE_BASE that kernels can reach now; NULL: not timed */
    /* A block begins or ends to live (bounds checks); nothing has written to a new one. */
    void (*block)(struct EXEC_BACKEND *b, uint64_t addr, uint64_t bytes, bool lives);

    /* Memory of the judge's that other processes map too, at addr (a multiple of 2 MiB) until unshare, which ends all
     * of it. push: what others wrote into [addr, + n) is what kernels see; pull: the other way. NULL: it is the same
     * memory. */
    int (*share)(struct EXEC_BACKEND *b, int fd, uint64_t addr, uint64_t bytes, struct err *e);
    void (*unshare)(struct EXEC_BACKEND *b);
    int (*push)(struct EXEC_BACKEND *b, uint64_t addr, uint64_t n);
    int (*pull)(struct EXEC_BACKEND *b, uint64_t addr, uint64_t n);

    int (*set)(struct EXEC_BACKEND *b, const struct wire_memset *m, backend_handle stream);
    int (*write)(struct EXEC_BACKEND *b, uint64_t to, const void *from, uint64_t n, backend_handle stream);
    int (*read)(struct EXEC_BACKEND *b, void *to, uint64_t from, uint64_t n); /* after all that was asked before */
    int (*copy)(struct EXEC_BACKEND *b, uint64_t to, uint64_t from, uint64_t n, backend_handle stream);
    int (*fill)(struct EXEC_BACKEND *b, const struct wire_fill *m, backend_handle stream);
    int (*strided)(struct EXEC_BACKEND *b, const struct wire_strided *m, backend_handle stream);
    int (*arange)(struct EXEC_BACKEND *b, const struct wire_arange *m, backend_handle stream);
    int (*random)(struct EXEC_BACKEND *b, const struct wire_random *m, backend_handle stream);
    int (*equal)(struct EXEC_BACKEND *b, const struct wire_equal *m, bool *ret);
    uint64_t (*changed)(struct EXEC_BACKEND *b); /* elements whose value a cast changed since fresh, roundings apart */

    int (*module)(struct EXEC_BACKEND *b, const void *image, size_t n, backend_handle *ret);
    int (*function)(struct EXEC_BACKEND *b, backend_handle module, const char *name, backend_handle *ret,
                    struct wire_function_info *info);
    int (*symbol)(struct EXEC_BACKEND *b, backend_handle module, const char *name, uint64_t *ret_addr,
                  uint64_t *ret_bytes);
    int (*func_attr)(struct EXEC_BACKEND *b, backend_handle function, int attr, int value);
    int (*occupancy)(struct EXEC_BACKEND *b, backend_handle function, uint32_t threads, uint64_t shared, int *ret);
    int (*tensor_map)(struct EXEC_BACKEND *b, const struct wire_tensor_map *m, uint8_t ret[128]);
    int (*launch)(struct EXEC_BACKEND *b, const struct backend_launch *l);
    /* In a signal handler: the kernel that runs ends, and a finding says where it stood. NULL: none can be stopped. */
    void (*stop)(struct EXEC_BACKEND *b);
    void (*poison)(struct EXEC_BACKEND *b, uint8_t byte); /* what blocks find in shared memory; NULL: not ours to say */

    /* of launches from here on; NULL: not ours to say */
    void (*blocks)(struct EXEC_BACKEND *b, enum backend_blocks how);

    int (*stream)(struct EXEC_BACKEND *b, uint32_t flags, int32_t priority, backend_handle *ret);
    void (*stream_end)(struct EXEC_BACKEND *b, backend_handle stream);
    int (*event)(struct EXEC_BACKEND *b, uint32_t flags, backend_handle *ret);
    void (*event_end)(struct EXEC_BACKEND *b, backend_handle event);
    int (*record)(struct EXEC_BACKEND *b, backend_handle event, backend_handle stream);
    int (*wait)(struct EXEC_BACKEND *b, backend_handle stream, backend_handle event);
    int (*query_stream)(struct EXEC_BACKEND *b, backend_handle stream);
    int (*query_event)(struct EXEC_BACKEND *b, backend_handle event);
    int (*elapsed)(struct EXEC_BACKEND *b, backend_handle from, backend_handle to, float *ret_ms);
    int (*sync_stream)(struct EXEC_BACKEND *b, backend_handle stream);
    int (*sync_event)(struct EXEC_BACKEND *b, backend_handle event);
    int (*sync)(struct EXEC_BACKEND *b); /* all of it; the sticky error */

    const char *(*why)(struct EXEC_BACKEND *b); /* of the sticky error, in words; "" */
    /* JSON list of the emulator's findings since the last call; owned by the caller. NULL: none. */
    char *(*findings)(struct EXEC_BACKEND *b);
    /* For timing; NULL where nothing is timed. L2 flushed; the legacy stream busy for that long. */
    int (*cold)(struct EXEC_BACKEND *b);
    int (*pad)(struct EXEC_BACKEND *b, uint64_t ns);
    /* a profiler looks from here on, or no more; NULL: there are none */
    void (*profile)(struct EXEC_BACKEND *b, bool on);
    bool inline_play; /* calls return before the device is done: no thread of its own is needed */
};

extern const struct backend_ops exec_on_sim;
extern const struct backend_ops exec_on_driver; /* a device of drv_vendor_find (device/cuda_driver.h) */

/* The legacy and the per-thread default stream, as handles. */
#define BACKEND_STREAM_LEGACY ((backend_handle)1)
#define BACKEND_STREAM_PER_THREAD ((backend_handle)2)

#endif
