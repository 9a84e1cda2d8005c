/* room.h - the memory of devices, and of their machine, as budgets that all jobs of all processes share. A job claims what
 * it and its task's reference will need at most, once, while it holds nothing else, and waits until there is room: nobody
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

#define ROOM_PASS_S 25.0     /* whoever has waited so long is not overtaken any more, but by who is small: */
#define ROOM_SMALL 16        /* wants at most such a part of its device, */
#define ROOM_PASS_SMALL_S 30.0 /* and after so long by nobody (longer, and large ones come last, one by one). */
#define ROOM_PASS_ALL_S 90.0 /* Who wants everything is overtaken by all until then: it comes in when nobody is there, or
                              * stops all others */

#define ROOM_BLIND 60        /* percent of a device's budget, for all blind claims */
#define ROOM_CONTEXT_BYTES ((size_t)600 << 20) /* of a process on the device, with its libraries */
#define ROOM_PROCESS_BYTES ((size_t)1 << 30) /* of the machine, a process's own: 0.3 GB, the driver's and torch's */
#define ROOM_ALL ((uint64_t)1 << 60) /* as host_own: all that the machine has, whatever that is */

struct room_need { /* bytes; seen: 0 is not known */
    size_t own;         /* of the device: the candidate's process, its areas, the snapshot of its outputs */
    size_t shared;      /* of the device: the reference's process and values, once for all claims of a group */
    size_t host_own;    /* of the machine: the candidate's process */
    size_t host_shared; /* of the machine: the reference's process, once for all claims of a group */
    bool blind;         /* nobody knows what it needs of the device: room_expect's guess */
};

struct room_budget { /* bytes */
    uint64_t device;
    uint64_t host; /* 0: nobody knows, and it is not counted */
};

struct room_claim {
    uint64_t state;  /* 0: nobody's, else ROOM_WAITS or ROOM_IN */
    uint64_t ticket; /* order of arrival, from 1 */
    uint64_t own, shared, host_own, host_shared;
    uint64_t device, group; /* hashes of names */
    uint64_t blind;         /* as in room_need; no longer once more is known */
    double since;    /* now_s() of the arrival: one clock for all processes */
};
enum { ROOM_WAITS = 1, ROOM_IN = 2 };

/* May claim 'who' come in? If it fits beside those that are in on its device, or nobody is in there, and the same of the
 * machine; blind claims together only into ROOM_BLIND percent of their device's budget, so that who turns out to be large
 * finds room at once, and need not leave and come last. But not before a claim that arrived earlier, has waited for
 * ROOM_PASS_S (ROOM_PASS_ALL_S: one for all of the device's budget or of the machine; ROOM_PASS_SMALL_S where 'who' is
 * small) and is for the same device, or for more of the machine than there is now; who is small passes all the same where
 * large ones keep that claim out. b: of who's device. Pure. */
bool room_admits(const struct room_claim *c, int n, int who, const struct room_budget *b, double now);
/* Bytes of those that are in, and of 'who' (-1: nobody) beside them: on 'device', and of the machine. Pure. */
struct room_budget room_sum(const struct room_claim *c, int n, int who, uint64_t device);

/* What is claimed for a task of which this much was seen (NULL: nothing). Most tasks are small, and a reference says how
 * large its task is before it puts anything on the device (room_estimate); whoever claimed too little then claims more or
 * comes again. So what nobody has seen counts as a context and a 64th of the device for the reference, but no more than a
 * 16th, a candidate as a context and a 128th, but no more than a 32nd, or a context where that is less than an eighth; of the
 * machine as ROOM_PROCESS_BYTES, but no more than their processes may have ('most'; 0: no such
 * limit). Where only the reference was seen there, a candidate is taken to be as large: it makes the same model. Pure. */
struct room_need room_expect(const struct room_need *seen, const struct room_budget *b, const struct room_need *most);
/* What a streamed task (streamed.h) needs of the device, as exec/plan.h has it, of which only this is known: bytes of its
 * model's parameters and buffers, of one draw's inputs and of its outputs. A candidate: a context and twice what its life
 * needs at least. Of the machine nothing is said. Pure. */
struct room_need room_estimate(size_t state, size_t in, size_t out);
/* The budget of a machine of which so much is left: three quarters; files that are read, and judges, have the rest. Pure. */
uint64_t room_host_budget(uint64_t left);

struct room { /* zeroed: holds nothing */
    int fd;   /* file descriptor + 1 */
    int slot;
    uint64_t budget;       /* of its device */
    struct room_need need; /* what it claims */
    bool wide;             /* more of the device than is known to be needed, on purpose: that stays */
};

/* Waits until there is room. More than a budget means: alone there. group: claims of one process with the same number
 * share what is shared. b->host is what the machine has now; it counts for all who come while anybody is in.
 * make_room(ctx) is called now and then while it waits; may be NULL. ERR_STOP on Ctrl-C; ERR_ENV: the ledger cannot be
 * kept, and everything goes on without. */
int room_take(const char *device, const struct room_budget *b, const struct room_need *need, uint64_t group,
              void (*make_room)(void *ctx), void *ctx, struct room *r, struct err *e);
/* Claims as much as 'need' where that is more, at once if it fits beside those that are in, whoever waits. False: it
 * does not, and the claim is as before. Holding nothing: true. */
bool room_grow(struct room *r, const struct room_need *need);
/* Claims no more than 'need', of each number that it knows (0: it does not), unless everything is claimed; of the
 * device as before where that is wide. */
void room_shrink(struct room *r, const struct room_need *need);
/* Holds a claim of more than a part (ROOM_SMALL) of its device and two contexts. */
bool room_is_large(const struct room *r);
bool room_covers(const struct room_need *have, const struct room_need *need); /* is no number of need larger? Pure. */
void room_drop(struct room *r); /* holding nothing is fine */
/* Does anybody want all of the device's budget or of the machine's, or has got it? Then what is kept for later must go. */
bool room_wanted(const char *device, uint64_t budget);

/* What a task was seen to need, by its hash and protocol, or else estimated to, each number for itself; false: nobody
 * knows. Of each number the largest note is kept; 0 says nothing. */
bool room_recall(const char *task, const char *protocol, struct room_need *ret);
void room_note(const char *task, const char *protocol, const struct room_need *need);
void room_note_estimate(const char *task, const char *protocol, const struct room_need *need);

#endif
