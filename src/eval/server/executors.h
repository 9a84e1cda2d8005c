/* executors.h - executors that are used again: where one takes a context of a device, the next candidate finds it warm.
 * One that a kernel may have harmed is ended. Inside src/eval only. */
#ifndef MC_EVAL_EXECUTORS_H
#define MC_EVAL_EXECUTORS_H

#include <pthread.h>

#include "exec/exec.h"

#define EXECUTORS_IDLE 4 /* that wait; each holds half a gigabyte of the device */
#define EXECUTORS_PART 8 /* of the device that others use too: a client of a small task may hold so much of it */

struct executors {
    pthread_mutex_t lock;
    struct executor *idle[EXECUTORS_IDLE];
    int n;
    bool used_again; /* false: a new one for each recording, where starting one takes no time */
};

void executors_init(struct executors *all, bool used_again);
/* An executor with a recording begun, whose descriptors are in fds (the caller's). memory: bytes that its client may
 * hold by a plan of the device's memory, in which no executor waits; 0: a part of what there is. -1: ERR_ENV. */
int executors_take(struct executors *all, const struct executor_options *o, uint64_t memory, struct executor **ret,
                   int fds[2], struct err *e);
/* sound: no fault, no time limit, nothing of the device's own runtime (executors_harmless) was met. NULL is fine. */
void executors_give(struct executors *all, struct executor *x, bool sound);
/* Ends those that wait: somebody needs the device's memory, or it is over. */
void executors_end(struct executors *all);
/* Does an image do without what leaves something behind in a context: printf, malloc and assert of kernels? Pure. */
bool executors_harmless(const void *image, size_t n);

#endif
