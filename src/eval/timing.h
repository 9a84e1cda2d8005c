/* timing.h - the judge's end of a block of timed calls (runner/timing.py is the other end, and says what a call does).
 *
 * The other side says that it is ready: what it did after its last call is over. The judge's clock runs from sending
 * a call's seed, from which its data is drawn, until it holds a commitment to the call's output. The other side may
 * be hostile: whatever it answers is only a claim, except that it answered then. */
#ifndef MC_EVAL_TIMING_H
#define MC_EVAL_TIMING_H

#include <stdint.h>

#include "device/device.h"
#include "proc/frame.h"

enum timing_mode { TIMING_COLD, TIMING_WARM, TIMING_NULL }; /* L2 flushed, L2 warm, an empty kernel in place of forward */

#define TIMING_NO_SLOT UINT32_MAX /* the output is committed but not kept */

struct timed_call {
    enum timing_mode mode;
    int round;
    uint32_t slot;       /* where the other side keeps the output */
    uint64_t seed, commitment;
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
    int64_t slot; /* of the first call, the others follow; -1: outputs are not kept */
    int pad_us;   /* how long the device is kept busy before each call's data are drawn (runner/timing.py) */
};

/* Runs one block and appends its calls. On 0 *ret holds the closing frame (frame_free it): op "timed" with
 * "host_us", the side's own claim of how long its host took to queue a call (median of the block), when all calls are
 * appended, or "error" when a call raised (the calls before it are appended). -1 as frame_recv. deadline: now_s() value
 * for the whole block. */
int timing_block(int fd, const struct timing_block *b, double deadline, struct timed_calls *calls, struct frame *ret,
                 enum frame_fault *ret_fault, struct err *e);
void timed_calls_free(struct timed_calls *c);

/* The commitment to an output tree over its blob, as runner/timing.py computes it on the device: the sum modulo 2^64 of
 * el_mix(word, i) (device/element.h) over 8-byte words, each tensor padded with zeros to whole words, i = 1, 2, ...
 * through all tensors; and of el_mix(bits of the double, i) over numbers, with an i of their own. ERR_INPUT if the tree
 * does not fit the blob, or its tensors share bytes of it. */
int timing_commitment(const json_t *tree, const char *blob, size_t n, uint64_t *ret, struct err *e);
/* The same where the blob is the first n bytes of memory of the judge's device, by the judge's own kernel: nothing but
 * sums leaves the device. waits; who calls has the device (desk_lock). Errors other than ERR_INPUT are the device's. */
int timing_commitment_on(const json_t *tree, const struct device_buf *mem, size_t n, uint64_t *ret, struct err *e);

#endif
