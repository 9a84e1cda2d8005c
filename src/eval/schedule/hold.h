/* hold.h - who may use a device: many that share it, or one alone. Over threads and processes (two flock'ed files under
 * path_cache("device")). Changing sides costs: everybody must have left. So who wants to be alone waits for a moment
 * without sharers first. Later sharers are kept out only when all of its process that want to be alone have waited for
 * hold_patience_s together, and it has for a quarter of that; and those of one process that want to be alone follow
 * each other without letting anybody in between (HOLD_BATCH_S). */
#ifndef MC_EVAL_HOLD_H
#define MC_EVAL_HOLD_H

#include <stdbool.h>

#include "base/err.h"
#include "base/trace.h"

extern double hold_patience_s; /* tests make it short */
#define HOLD_BATCH_S 20.0
#define HOLD_LASTS_S 30.0

struct hold { /* zeroed: holds nothing */
    int fd;   /* file descriptor + 1; -1: a share of the share that this thread has */
    bool alone;
    bool lasts; /* hold_lasts */
    double since; /* when it was taken */
};

/* Waits. A share taken by a thread that has one already is that share (two could wait for each other, with somebody who
 * wants to be alone in between), and nothing is shared any more once the first of them is dropped: the first is dropped
 * last. To be alone a thread must hold nothing. device: its uuid, or any name. ERR_STOP on Ctrl-C. *h must hold
 * nothing. */
int hold_take(const char *device, bool alone, struct hold *h, struct err *e);
/* Does somebody keep sharers out to get the device alone (or pass the gate just now)? Who shares it and is between two things may then drop its
 * share and take another one. */
bool hold_wanted(const char *device);
/* This share will be kept for seconds: whoever of this process wants to be alone waits for its end without keeping
 * others out meanwhile, HOLD_LASTS_S at most. Until it is taken back, or hold_drop. Returns what was said before. */
bool hold_lasts(struct hold *h, bool lasts);
bool hold_any_lasts(void); /* is there such a share, of any thread of this process? */
/* Does anybody of this process want the device alone, or have it? Who is about to take a share that lasts may let them. */
bool hold_awaited(const char *device);
void hold_drop(struct hold *h); /* holding nothing is fine */

#endif
