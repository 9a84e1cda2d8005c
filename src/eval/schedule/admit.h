/* admit.h - a job comes in when a device and its machine have room for what its task is known or expected to need
 * (room.h), and when it goes, what nobody uses goes too if somebody wants everything. Inside src/eval only. */
#ifndef MC_EVAL_ADMIT_H
#define MC_EVAL_ADMIT_H

#include "eval/schedule/retry.h"
#include "eval/schedule/room.h"

struct admit { /* one device, as one process uses it; names are borrowed */
    const char *device;    /* its uuid, or any name */
    uint64_t budget;       /* bytes of its memory that all jobs may have */
    struct room_need most; /* host_own, host_shared: what processes may have of the machine's memory; 0: no limit */
    double settle_s;       /* so long the others take until they have seen that somebody wants everything */
    void (*give_way)(void *ctx); /* gives back what nobody uses */
    void *ctx;
};

/* Waits for room for a candidate of the task; how says how much: what is expected now (room_expect), a quarter of the
 * device at least, all of it, or all of the machine too. Without a ledger there is no waiting, and r holds nothing.
 * -1 only for Ctrl-C. */
int admit_enter(const struct admit *a, const char *task, const char *protocol, enum retry_step how, struct room *r,
                struct err *e);
/* Is more known by now of what the task needs than r claims? Holding nothing: no. */
bool admit_learned(const char *task, const char *protocol, const struct room *r);
void admit_leave(const struct admit *a, struct room *r); /* holding nothing is fine */
/* For who has nothing to do. */
void admit_idle(const struct admit *a);

#endif
