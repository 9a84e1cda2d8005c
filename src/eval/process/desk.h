/* desk.h - the judge's own device as a place for values: memory that nobody else can reach (DEVICE_PLAIN), and areas,
 * each shared with one child (DEVICE_SHARED, runner/area.py).
 *
 * desk_lock: one thread at a time uses a desk; whoever does, has a share of the device where it has a clock
 * (schedule.h). On a device that many share every wait for it takes its turn among their contexts (some 10 ms), so
 * there are several desks, each with a stream of its own in the judge's one context: waits overlap. All of a task use
 * one desk, and a buffer stays with the desk that made it. */
#ifndef MC_EVAL_DESK_H
#define MC_EVAL_DESK_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

#define DESKS 32     /* of a backend: so many that few of the tasks at once meet at one */

struct backend;

struct desk {
    pthread_mutex_t lock;
    struct device *dev; /* NULL: not opened */
    double since; /* when the lock was taken */
    pthread_mutex_t making; /* of a reference of its tasks (reference.c): one at a time */
};

struct desk_set {
    struct desk each[DESKS];
};

void desk_set_init(struct desk_set *s);
void desk_set_close(struct desk_set *s);
struct desk *desk_of(struct desk_set *s, const char *task); /* by its hash */

void desk_init(struct desk *k);
/* Opens it if it is not. ERR_ENV: the device cannot share memory, or (LACK_DEVICE) has none left now. */
int desk_open(struct desk *k, const struct backend *b, struct err *e);
void desk_close(struct desk *k); /* after all its buffers are freed; a zeroed one is fine */

void desk_lock(struct desk *k);
void desk_unlock(struct desk *k);

/* These take the lock themselves. */
int desk_alloc(struct desk *k, size_t n, enum device_mem kind, struct device_buf *ret, struct err *e);
void desk_free(struct desk *k, struct device_buf *b); /* a zeroed one is fine */
json_t *desk_spec(const struct device_buf *b); /* what runner/area.py wants to know */
/* Waits. */
int desk_fetch(struct desk *k, const struct device_buf *from, size_t at, void *to, size_t n, struct err *e);

#endif
