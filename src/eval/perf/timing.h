/* timing.h - the judge's end of a block of timed calls (runner/timing.py is the other end, and says what a call does).
 *
 * The other side says that it is ready: what it did after its last call is over. The judge's clock runs from sending
 * a call's seed, from which its data is drawn, until the other side says that the device has finished. */
#ifndef MC_EVAL_TIMING_H
#define MC_EVAL_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/frame.h"

enum timing_mode { TIMING_COLD, TIMING_NULL }; /* L2 flushed; the same with an empty kernel in place of forward */

struct timed_call {
    enum timing_mode mode;
    int round;
    uint64_t seed;
    double span_ms, event_ms;
};

struct timed_calls { /* zeroed: empty; v is owned */
    struct timed_call *v;
    int n, capacity;
};

struct timing_block {
    const char *which; /* "eager", "compile", "candidate" */
    enum timing_mode mode;
    int n, round;
    int left;     /* measured calls that are to come, this block's among them; 0: its times are not wanted */
    int pad_us;   /* how long the device is kept busy before each call's data are drawn (runner/timing.py) */
};

/* Runs one block and appends its calls. On 0 *ret holds the closing frame (frame_free it): op "timed" with
 * "host_us", the side's own claim of how long its host took to queue a call (median of the block), when all calls are
 * appended, or "error" when a call raised (the calls before it are appended). -1 as frame_recv. deadline: now_s() value
 * for the whole block. */
int timing_block(int fd, const struct timing_block *b, double deadline, struct timed_calls *calls, struct frame *ret,
                 enum frame_fault *ret_fault, struct err *e);
void timed_calls_free(struct timed_calls *c);

#endif
