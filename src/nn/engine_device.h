/* engine_device.h - where the engine's tensors live when it is not the host: a library of operators, opened with
 * dlopen, and one queue on one device. A model, its optimiser and its sampler share one struct nn_device; one thread at
 * a time uses it.
 *
 * build/lib/libnncuda.so (NVIDIA), libnnmusa.so (Moore Threads; never run on a card) and libnnsim.so (the CPU emulator,
 * for tests) export the same table, nn/ops/dev_ops.h.
 * Nothing vendor-specific is linked into the binary: it starts on any machine, and says here what is missing. */
#ifndef MC_NN_ENGINE_DEVICE_H
#define MC_NN_ENGINE_DEVICE_H

#include "base/err.h"
#include "nn/ops/dev_ops.h"

struct nn_device {
    const struct nn_dev_ops *ops;
    struct nn_queue *q;
    struct nn_dev_info info; /* as it was when the device was opened */
};

/* spec: "cuda", "cuda:1", "musa", "sim". ERR_INPUT for another one; ERR_ENV with the remedy where the library, the
 * driver, the device or a vendor library is missing. NULL on error. */
struct nn_device *nn_device_open(const char *spec, struct err *e);
/* Would nn_device_open find this device? Opens nothing. As its errors. */
int nn_device_check(const char *spec, struct err *e);
const struct nn_dev_ops *nn_device_ops(const char *spec, struct err *e); /* the table alone */
void nn_device_close(struct nn_device *d);

/* zeroed; ERR_ENV when full */
void *nn_device_alloc(struct nn_device *d, size_t bytes, const char *what, struct err *e);
void nn_device_free(struct nn_device *d, void *p);                                         /* NULL is fine */
int nn_device_sync(struct nn_device *d, struct err *e); /* waits; ERR_ENV with the first error of any operator so far */

static inline size_t dtype_size(enum nn_dtype t) { return t == NN_BF16 ? 2 : 4; }

#endif
