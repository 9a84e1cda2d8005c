/* desk.h - the judge's own device as a place for values: master copies that nobody else can reach (DEVICE_PLAIN),
 * and areas, each shared with one child (DEVICE_SHARED, runner/area.py). One desk per backend, opened when first
 * asked for; where there is none (no shared memory on this device, or $MUSACODER_VALUES says "frames") values travel
 * as bytes in frames.
 *
 * desk_lock: one thread at a time uses a desk; whoever does, has a share of the device where it has a clock (hold.h). On a
 * device that many share every wait for it takes its turn among their contexts (some 10 ms), so there are several desks,
 * each with a stream of its own in the judge's one context: waits overlap. All of a task use one desk, and a buffer
 * stays with the desk that made it. */
#ifndef MC_EVAL_DESK_H
#define MC_EVAL_DESK_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

#define DESK_SHARE 6 /* master copies take at most one part in so many of the device's memory */
#define DESKS 32     /* of a backend: so many that few of the tasks at once meet at one */

struct backend;

struct desk_common {             /* of the desks of a device */
    _Atomic bool off;            /* frames it is, for good */
    _Atomic bool mapped;         /* a candidate's process has mapped areas: that can be done */
    _Atomic size_t held, budget; /* bytes of master copies; how many there may be (0: not known yet) */
};

struct desk {
    pthread_mutex_t lock;
    struct device *dev; /* NULL: not opened */
    struct desk_common *common;
    double since; /* when the lock was taken */
};

struct desk_set {
    struct desk_common common;
    struct desk each[DESKS];
};

void desk_set_init(struct desk_set *s);
void desk_set_close(struct desk_set *s);
struct desk *desk_of(struct desk_set *s, const char *task); /* by its hash */

void desk_init(struct desk *k, struct desk_common *common); /* which must outlive it */
/* Opens it if it is not. 1: it is open; 0: values travel in frames (said in the log once, if that is a surprise).
 * -1: there was no memory for it on the device, LACK_DEVICE: desks are opened when others already have theirs. */
int desk_open(struct desk *k, const struct backend *b, struct err *e);
/* As desk_open, for streamed tasks (streamed.h): their values have no other way. ERR_ENV where the device cannot. */
int desk_open_streamed(struct desk *k, const struct backend *b, struct err *e);
/* Areas cannot be had, a candidate's process says: frames from now on, said in the log. Where others could, it is not
 * believed: foreign code may have had that process say so. */
void desk_refuse(struct desk *k, const char *why);
void desk_close(struct desk *k); /* after all its buffers are freed; a zeroed one is fine */

void desk_lock(struct desk *k);
void desk_unlock(struct desk *k);

/* These take the lock themselves. Masters count against the budget, which is the caller's to keep. */
int desk_alloc(struct desk *k, size_t n, enum device_mem kind, struct device_buf *ret, struct err *e);
void desk_free(struct desk *k, struct device_buf *b); /* a zeroed one is fine */
/* An area of at least n bytes in *b: kept if it is large enough (*ret_fd = -1), else made anew, all of it zero, with a
 * descriptor that the caller hands to the child and closes. */
int desk_area(struct desk *k, size_t n, struct device_buf *b, int *ret_fd, struct err *e);
json_t *desk_spec(const struct device_buf *b); /* what runner/area.py wants to know */
/* Waits. */
int desk_copy(struct desk *k, struct device_buf *to, const struct device_buf *from, size_t from_at, size_t n,
              struct err *e);
int desk_fetch(struct desk *k, const struct device_buf *from, size_t at, void *to, size_t n, struct err *e);

#endif
