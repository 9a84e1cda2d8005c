/* schedule.h - who gets a device, in the one process that owns it: a claim of its memory for each candidate, and within
 * it the device itself, shared with others or alone. All in memory: what the process forgets dies with it. Inside
 * src/eval only.
 *
 * Claims come in by turns of the callers, then in order of arrival. The next one waits until it fits, and nobody passes
 * it: so one that wants all of the device waits for those that are in, and for nobody else. A claim is a promise, not a
 * limit. */
#ifndef MC_EVAL_SCHEDULE_H
#define MC_EVAL_SCHEDULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SCHEDULE_CONTEXT ((size_t)600 << 20) /* bytes of a process on the device, with its libraries: as measured */
/* timings follow each other so long, then come those that share: a change costs, because all must have left. As long
 * a call of seconds may keep a timing waiting that keeps others out */
#define SCHEDULE_TURN_S 10.0
#define SCHEDULE_LASTS_S 2.0 /* what takes longer to answer is such a call: most take milliseconds */

struct need { /* bytes of the device; 0: not known */
    size_t own;    /* the candidate's part */
    size_t shared; /* the reference's part: once for all claims of a task */
};

struct reservation { /* of one candidate; zeroed: claims nothing */
    struct reservation *next;
    struct schedule *s;
    pthread_cond_t turn;
    struct need need;
    uint64_t task, ticket;
    int64_t caller;
    bool all, in; /* wants nobody else there; has come in */
};

struct schedule {
    pthread_mutex_t lock;
    pthread_cond_t change; /* of the device's users */
    uint64_t memory;       /* bytes that claims may have; 0: they count for nothing */
    int most;              /* claims at once */
    struct reservation *first; /* of all, in order of arrival */
    uint64_t ticket;
    struct note *notes;
    size_t n_notes;
    /* the device's users */
    int sharing, lasting;  /* have a share; and will keep it for seconds */
    int want_share, want_alone, let_in;
    bool alone;
    double batch_since, alone_since; /* now_s(): of timings in a row, 0: none; of the one that has waited longest */
    int running;           /* candidates that run, and the seconds that each of them has had up to 'at' */
    double had, at;
};

void schedule_init(struct schedule *s, uint64_t memory, int most);
void schedule_free(struct schedule *s);

/* ---- memory ---- */

/* Waits until the claim comes in. task: its hash and protocol in one text. caller: whose turn it is. all: with
 * nobody else. *ret_fresh: no other claim of this task is in. ERR_STOP: nothing is claimed. */
int reservation_enter(struct schedule *s, const char *task, int64_t caller, bool all, struct reservation *c,
                      bool *ret_fresh, struct err *e);
/* The task needs at least so much, each number for itself: claims that come learn of it. */
void reservation_learn(const struct reservation *c, const struct need *need);
/* Claims what is known to be needed. False: it does not fit beside those that are in, and the claim is as before. */
bool reservation_grow(struct reservation *c);
/* Is the task known to need more than is claimed? */
bool reservation_learned(const struct reservation *c);
void reservation_leave(struct reservation *c); /* claiming nothing is fine */
/* Bytes that nobody claims: what is kept for later, and claimed by nobody, may have them. SIZE_MAX: claims count for
 * nothing. */
size_t schedule_room(struct schedule *s);
/* What a streamed task (streamed.h) needs of the device, as exec/memory_plan.h has it, by the bytes of its model's
 * state, of one draw's inputs and of its outputs. Pure. */
struct need need_estimate(size_t state, size_t in, size_t out);

/* ---- the device ---- */

struct device_lock { /* zeroed: holds nothing */
    struct schedule *s;
    bool alone, lasts, nested;
    double since;
};

/* Waits. A share taken by a thread that has one already is that share, and the first is dropped last. To be alone a
 * thread must hold nothing. ERR_STOP on Ctrl-C. */
int device_lock_take(struct schedule *s, bool alone, struct device_lock *h, struct err *e);
/* Does somebody keep sharers out? Who shares and is between two things may drop its share and take another one. */
bool device_lock_wanted(struct schedule *s);
/* This share will be kept for seconds: whoever wants to be alone waits for its end without keeping others out, for
 * SCHEDULE_TURN_S. Until it is taken back, or device_lock_drop. Returns what was said before. */
bool device_lock_lasts(struct device_lock *h, bool lasts);
void device_lock_drop(struct device_lock *h); /* holding nothing is fine */

/* ---- run time ---- */

#define SHARE_MOST 3.0 /* a limit lasts at most so many times as long as alone: all may hang */

/* The virtual time of processor sharing: who runs beside k - 1 others gets about a k-th of the device, so its clock
 * runs at 1 / k, and a limit means about the same on a busy device. From 'now' (now_s()) on so many more run: 1, 0,
 * -1. Returns the virtual time; its difference is what was used. */
double share_time(struct schedule *s, double now, int more);
/* How long 'left' seconds of it last if nothing changes. */
double share_lasts(struct schedule *s, double left);

#endif
