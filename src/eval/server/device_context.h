/* device_context.h - the judge's own device as a place for values: memory that nobody else can reach (DEVICE_PLAIN),
 * and areas, each shared with one child (DEVICE_SHARED, runner/area.py).
 *
 * device_context_lock: one thread at a time uses a device context; whoever does, has a share of the device where it
 * has a clock (schedule.h). On a device that many share every wait for it takes its turn among their contexts (some
 * 10 ms), so there are several device contexts, each with a stream of its own in the judge's one context: waits
 * overlap. All of a task use one device context, and a buffer stays with the device context that made it. */
#ifndef MC_EVAL_SERVER_DEVICE_CONTEXT_H
#define MC_EVAL_SERVER_DEVICE_CONTEXT_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

#define DEVICE_CONTEXTS 32 /* of a backend: so many that few of the tasks at once meet at one */

struct judge_backend;

struct device_context {
    pthread_mutex_t lock;
    struct device *dev; /* NULL: not opened */
    double since; /* when the lock was taken */
    pthread_mutex_t making; /* of a reference of its tasks (reference.c): one at a time */
};

struct device_context_set {
    struct device_context each[DEVICE_CONTEXTS];
};

void device_context_set_init(struct device_context_set *s);
void device_context_set_close(struct device_context_set *s);
struct device_context *device_context_of(struct device_context_set *s, const char *task); /* by its hash */

/* Opens it if it is not. ERR_ENV: the device cannot share memory, or (LACK_DEVICE) has none left now. */
int device_context_open(struct device_context *k, const struct judge_backend *b, struct err *e);

void device_context_lock(struct device_context *k);
void device_context_unlock(struct device_context *k);

/* These take the lock themselves. */
int device_context_alloc(struct device_context *k, size_t n, enum device_mem kind, struct device_buf *ret,
                         struct err *e);
void device_context_free(struct device_context *k, struct device_buf *b); /* a zeroed one is fine */
json_t *device_context_spec(const struct device_buf *b); /* what runner/area.py wants to know */
/* Waits. */
int device_context_fetch(struct device_context *k, const struct device_buf *from, size_t at, void *to, size_t n,
                         struct err *e);

#endif
