/* reference.h - expected values of a task: made once by the reference side (runner/reference.py), then shared by all
 * candidates. They are bytes, in memory and in a content-addressed file under path_cache("reference"), which no
 * candidate can see. Draws of large tasks on a device are streamed (streamed.h): made when they are asked for, and
 * never bytes here. */
#ifndef MC_EVAL_REFERENCE_H
#define MC_EVAL_REFERENCE_H

#include <pthread.h>

#include "eval/check/protocol.h"
#include "eval/check/tensor.h"
#include "eval/server/judge_server.h"
#include "proc/forkserver.h"
#include "proc/frame.h"
#include "task/task.h"

struct streamed;

#define REF_SETS 2 /* of parameters, at most (runner/reference.py) */

struct section { /* a value tree and its bytes */
    const json_t *tree;
    const char *bytes; /* NULL: streamed (streamed.h) */
    size_t n;
};

struct ref_draw {
    const char *regime;
    int trial;
    struct section inputs, eager, oracle;
    /* what the reference leaves in the inputs that it changes, in order; bytes NULL: not known */
    struct section after;
    struct section left;   /* what it leaves in buffers; bytes NULL where nobody asks (task/sidecar.h, effects) */
    const json_t *left_rows; /* which: indices of the reference's state */
    const json_t *noise;   /* per output tensor {"n1","n2","max_abs","fan_in","dtype"} */
    const json_t *mutates; /* inputs that the reference itself changes */
    bool extreme;          /* of a kind of runner/influence.py: far from what a host that reads values may expect */
    int parameters;        /* which set of the reference's parameters it is made with */
    json_t *head;          /* of a streamed one: owned; what the rest points into */
};

struct reference {
    struct frame f;
    char key[65];
    int users;
    bool listed;
    struct section init, state_values;
    struct section other_states[REF_SETS - 1]; /* further sets of parameters, as state_values */
    struct section built;  /* as state_values, of the model as init_seed constructs it; tree NULL: not known */
    int n_sets;            /* of parameters, state_values among them */
    const json_t *state; /* [{"name","kind","dtype","shape"}] */
    const json_t *skipped; /* {"regime": reason}; NULL: not all draws are made */
    bool copies;           /* it only moves values: no arithmetic at all */
    uint64_t tables;       /* bytes of constants that it holds itself, by no seed: a program may bring as much along */
    bool folds;            /* it holds what its seed decides and nobody binds */
    bool numbers;          /* variant TASK_NUMBERS is another task than this one */
    const char *changed;   /* of variant TASK_NUMBERS: which numbers are others, in words; else NULL */
    bool counts;           /* its calls count in Python: each draw's values are those of a first call */
    bool keeps;            /* its answers may lie in inputs, or in memory that it keeps from call to call */
    bool alters;           /* its forward changes a parameter */
    const json_t *defects; /* protocol kernelbench: [{"name","detail"}], known defects of that algorithm on this task */
    const char *dtype;     /* floating parameters are to have it: "float16"...; NULL: as constructed */
    const char *mode;
    const json_t *tf32;    /* on a GPU: {"matmul","cudnn"}, what the reference was allowed; else NULL */
    int64_t init_seed, second_seed;
    bool has_second;       /* protocol kernelbench: its secret draws are of models that second_seed constructs, */
    struct section second; /* with these arguments */
    struct ref_draw *draws;   /* they stay where they are */
    _Atomic size_t n_draws;   /* so many are made */
    size_t n_most;        /* more draws there cannot be */
    bool ended;           /* streamed: all draws are there */
    struct frame end;     /* streamed: the last answer, which skipped points into */
    struct streamed *streamed; /* large tasks on a device: no draw has values (streamed.h); else NULL */
};

#define REGIME_SECRET "secret" /* runner/reference.py: draws of protocol kernelbench whose seed is not published */

/* What is asked for: the way to make the values. */
struct reference_want {
    struct judge_server *sv;
    const struct task *t;
    const struct eval_options *o;
    const char *params;
    int variant;
    int64_t seed;    /* of the draws: reference_seed */
    struct reservation *reservation; /* of the job that asks; NULL: nothing is claimed */
    int64_t small;   /* streamed.py: elements up to which a task is small; 0: as it says */
    bool yields;     /* it ends where that is too small and cannot grow */
    bool anew;       /* its process serves this task alone */
    bool *used;      /* set where its process has served another task before; NULL: nobody asks */
    char title[160]; /* "task 'x'", "task 'x', variant 'odd'": for messages */
};

/* One job's hold on its reference. Zeroed but for want: it has none. */
struct reference_held {
    struct reference_want want; /* sv, t, o, params, variant, seed, reservation and yields are set by the job */
    struct reference *ref;  /* NULL: none yet */
    bool owns;              /* its areas (reference_own) */
    double seconds;         /* of wall time until the expected values were there: what reference_draw took */
};

/* Of h->want's task and variant, whatever h->ref is. params: "random" (floating parameters re-randomised) or "seed"
 * (as constructed). ERR_INPUT: the task or its sidecar is at fault. Before its process uses the device, the
 * reservation grows to what the task is known or (estimated) expected to need; where that does not fit and it yields:
 * LACK_DEVICE, and nothing was made. h->ref is NULL before, and h's until reference_release. The caller holds no run
 * slot. */
int reference_get(struct reference_held *h, struct err *e);
/* Makes the process and the buffers of a streamed reference h's alone, until reference_release by the same thread.
 * Called before any trial is asked for. Blocks until the buffers are free: call without a run slot, or this deadlocks.
 * May replace h->ref by an equal reference. Does nothing if h owns them already or the reference is not streamed. */
int reference_own(struct reference_held *h, struct err *e);
/* One section or draw of a frame from runner/; the result points into the frame. ERR_BUG if it is broken. */
int ref_section_parse(const struct frame *f, const json_t *s, struct section *ret, struct err *e);
int ref_draw_parse(const struct frame *f, const json_t *d, struct ref_draw *ret, struct err *e);
/* The same of a streamed draw: all but the bytes. */
int ref_draw_place(const json_t *d, struct ref_draw *ret, struct err *e);
/* How far output 'tensor' of a draw may be from expected. own: a sidecar's {"abs","rel"} for floating outputs, or
 * NULL. */
struct tolerance ref_tolerance(const struct ref_draw *d, size_t tensor, const struct protocol *protocol,
                               const json_t *own);
/* Can this draw tell a right answer from zeros, in any of its outputs? Arguments as ref_tolerance's. */
bool ref_decides(const struct ref_draw *d, const struct protocol *protocol, const json_t *own);
/* The seed that draws are made from: of the user's seed and a secret of this machine (path_cache("judge-secret"), or
 * $MUSACODER_SECRET), so that a program which knows this source cannot draw them itself.
 * A hash of it is recorded as "inputs_id". */
int64_t reference_seed(const char *secret, int64_t seed);
void reference_release(struct reference_held *h); /* having none is fine */
void reference_list_free(struct judge_kept *k);
/* Of those that nobody uses the most recent ones stay, as many as have 'room' bytes of the device together; the others
 * give theirs back. Did all stay? Where the device has a clock the caller shares it (schedule.h). */
bool reference_list_fit(struct judge_kept *k, size_t room);

/* Draw i of h->ref, from 0. Returns 1; 0: there are no so many; -1: it cannot be made (ERR_INPUT: the task is at
 * fault). The caller has a share of the device, where it has a clock. What it takes to make one is h->seconds. */
int reference_draw(struct reference_held *h, size_t i, const struct ref_draw **ret, struct err *e);
/* All draws of h->ref are made: for who looks for one among them. 0, or -1 as reference_draw. */
int reference_all(struct reference_held *h, struct err *e);
#endif
