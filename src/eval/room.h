/* room.h - the memory of a device as a budget that all jobs of all processes on a machine share. A job claims what it
 * and its task's reference will need at most, once, while it holds nothing else, and waits until there is room: nobody
 * who has room waits for room, so there is no deadlock. What is claimed is a promise, not a limit.
 *
 * The ledger is a file under path_cache("device"): one record for each claim, which counts while its owner holds the
 * lock on one byte of the file. The lock goes with the process, however it ends. Inside src/eval only. */
#ifndef MC_EVAL_ROOM_H
#define MC_EVAL_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ROOM_PASS_S 10.0 /* whoever has waited so long is not overtaken any more */

struct room_need { /* bytes of device memory */
    size_t own;    /* the candidate's process, its areas, the snapshot of its outputs */
    size_t shared; /* the reference's process and values: once for all claims of a group */
};

struct room_claim {
    uint64_t state;  /* 0: nobody's, else ROOM_WAITS or ROOM_IN */
    uint64_t ticket; /* order of arrival, from 1 */
    uint64_t own, shared, group;
    double since;    /* now_s() of the arrival: one clock for all processes */
};
enum { ROOM_WAITS = 1, ROOM_IN = 2 };

/* May claim 'who' come in? If it fits beside those that are in, or nobody is in; but not before a claim that arrived
 * earlier and has waited for ROOM_PASS_S. Pure. */
bool room_admits(const struct room_claim *c, int n, int who, uint64_t budget, double now);
/* Bytes of those that are in, and of 'who' (-1: nobody) beside them. Pure. */
uint64_t room_sum(const struct room_claim *c, int n, int who);

struct room { /* zeroed: holds nothing */
    int fd;   /* file descriptor + 1 */
    int slot;
};

/* Waits until there is room. More than the budget means: alone. group: claims of one process with the same number share
 * need->shared. make_room(ctx) is called now and then while it waits; may be NULL. ERR_STOP on Ctrl-C; ERR_ENV: the
 * ledger cannot be kept, and everything goes on without. */
int room_take(const char *device, uint64_t budget, const struct room_need *need, uint64_t group,
              void (*make_room)(void *ctx), void *ctx, struct room *r, struct err *e);
void room_drop(struct room *r); /* holding nothing is fine */
/* Does anybody want all of the budget, or has got it? Then what is kept for later must go. */
bool room_wanted(const char *device, uint64_t budget);

/* What a task was seen to need, by its hash and protocol; false: nobody knows. The largest note is kept. */
bool room_recall(const char *task, const char *protocol, struct room_need *ret);
void room_note(const char *task, const char *protocol, const struct room_need *need);

#endif
