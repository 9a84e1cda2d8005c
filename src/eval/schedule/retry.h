/* retry.h - what follows a try of one candidate: a verdict stands; a fault of ours is tried again; where memory was
 * short it is tried with as much of it as is known by then to be needed, or with nobody else there. Inside src/eval
 * only. */
#ifndef MC_EVAL_RETRY_H
#define MC_EVAL_RETRY_H

#include <stdbool.h>

#include "base/err.h"

#define RETRY_TRIES 3

enum try_end {
    TRY_VERDICT, /* about the candidate */
    TRY_INFRA,   /* a record that says what of ours or of the machine's failed */
    TRY_NOTHING  /* no record: the task cannot be used, or Ctrl-C */
};

struct try_seen {
    enum try_end end;
    enum err_lack lack; /* what there was too little of; of a verdict: not looked at */
    bool learned;       /* the task is known by now to need more than this try had claimed */
    bool stopped;       /* Ctrl-C */
    bool shared;        /* the backend's memory is claimed (schedule.h); else nobody can be alone */
};

enum retry_step {
    RETRY_STOP,  /* what was seen is how it is */
    RETRY_AGAIN, /* as before */
    RETRY_KNOWN, /* with what is known by now to be needed, beside others */
    RETRY_ALONE  /* with nobody else on the device */
};

struct try_error { /* a candidate's runtime_error */
    bool alone;           /* no other candidate was on its device */
    const char *finding;  /* kind of what was found (recording.c); "" */
    bool killed_outside;  /* struct child_end */
    bool large;           /* of the machine's memory it had half of what it may have, or more */
};

/* May others have taken what the candidate lacked? Then it is no verdict about the candidate. Who was killed because
 * the machine had no memory is to blame if nobody else of ours was there and it was large; if it was small, then what
 * is not ours took it. Pure. */
enum err_lack retry_others(const struct try_error *x);

/* made: tries so far, this one included; had: what this one was made with (RETRY_AGAIN for the first). The last of
 * RETRY_TRIES is made alone whatever failed, and who was alone once stays so. A task that cannot be used is not asked
 * again, unless memory was short and it was not alone. Pure. */
enum retry_step retry_next(int made, enum retry_step had, const struct try_seen *seen);

/* Makes tries as retry_next says: once() makes one and fills *seen, again() (NULL is fine) is called between two.
 * Returns what the last was made with, and *ret_seen what came of it. */
enum retry_step retry_run(void (*once)(void *ctx, enum retry_step how, struct try_seen *seen), void (*again)(void *ctx),
                          void *ctx, struct try_seen *ret_seen);

/* Was memory short with nobody else there? Then that is final, and the record may say so. Pure. */
bool retry_is_final(enum retry_step had, const struct try_seen *seen);

#endif
