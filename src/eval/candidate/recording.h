/* recording.h - a candidate's run on an executor: recorded once, while the candidate's process calls forward, then
 * replayed by the judge on data that no process of the candidate ever met (docs/internals/executor.md,
 * docs/internals/front.md). Inside src/eval only.
 *
 * The candidate's process constructs, the judge binds parameters that it makes up, and the process calls forward three
 * to five times; then it ends. A replay binds the real parameters and, for each call, another draw's inputs, where the
 * log says. Each call's outputs are compared at its end. So what is compared was computed by the candidate's kernels
 * from what the judge bound, or it is wrong. */
#ifndef MC_EVAL_CANDIDATE_RECORDING_H
#define MC_EVAL_CANDIDATE_RECORDING_H

#include "eval/reference/reference.h"
#include "eval/candidate/session.h"
#include "exec/capsule.h"
#include "exec/exec.h"
#include "exec/order.h"
#include "exec/rules.h"

struct job;

#define TAG_INPUTS 1000000u /* of values that are bound; tags below are rows of parameters */
#define RECORDING_CALLS_LEAST 3 /* of forward, in a recording: how many, a secret decides */
#define RECORDING_CALLS 5  /* most */
#define RECORDING_HELD 6   /* first calls whose answers are held until the last of them has ended, where they are */
#define RECORDING_EARLIER 96 /* calls before those that are compared, at most (stage/later_life.h) */

struct recording {
    struct executor *x;
    struct executors *home; /* where x goes when all is over */
    bool harmed;            /* not to be used again: a fault, or the device's own runtime */
    bool recorded_run;      /* forward was called n_calls times and returned */
    bool live;              /* draws are judged as they are lived, on the real parameters: for what the host reads */
    bool live_right;        /* and all of them were right */
    uint32_t n_calls;       /* of a recording that is replayed */
    uint32_t earlier;       /* so many of them, the first ones, are not compared; the first and the last of these are */
    bool other;             /* another instance's, where there is one */
    bool holds;             /* the candidate's process holds the answers of the first calls */
    bool dry;               /* calls' launches are logged and played in replays alone (executor_dry) */
    bool thrifty;           /* it becomes dry behind the first call, where that call looks at no value */
    uint32_t calls;         /* of forward so far */
    uint64_t launches;      /* in them */
    struct rules_reads most; /* of any call */
    uint64_t smallest;      /* bytes of the smallest output */
    json_t *notes;          /* what the candidate's process said about itself, owned array (litetorch/front/front.h) */
    json_t *refused_launch; /* the first launch of forward that was refused, as a finding, owned; NULL: none */
    /* tree of each call's output: where it lies; owned. Live: [0] is the last call's */
    json_t *outputs[RECORDING_CALLS + RECORDING_EARLIER];
    struct recording_binding *bindings; /* parameters and inputs: what is bound where */
    size_t n_bindings;
    uint64_t *inputs;       /* two addresses of each input tensor, in order of the draw's leaves; streamed: one */
    size_t n_inputs;
    uint64_t area, tile;    /* streamed tasks: where the judge's memory lies (recording_streamed.h) */
    int replays;
    bool shuffled; /* the replay that runs plays streams in another order than the program's own, */
    bool blocks_vary; /* and blocks than their numbers' */
    struct executor_call last; /* of the last live call */
    struct log_counts counts;
    char log_sha256[65];
    char outputs_sha256[65]; /* of what all replays left, one after the other; "" before the first */
    struct capsule *capsule; /* what --capsule asks for; NULL */
    bool recording;          /* the replay that runs is for it */
    struct order_finding order; /* of the log: is all of the last call's work waited for? */
    char altered[64];       /* a parameter that a forward of this recording changed and the task does not; "": none */
    bool log_full;          /* it cannot be replayed */
    bool refused;           /* the log cannot be replayed: why */
    char why[256];
};

/* For a session that has just been opened: an executor, and the candidate's process attached to it. -1: infra. */
int recording_open(struct job *j, struct err *e);
void recording_close(struct recording *l); /* NULL is fine */
/* Takes over notes of a reply. */
void recording_take_report(struct job *j, const json_t *head);
/* The program fails, and forward's launch was refused: that becomes the finding. The client says so itself; it turns
 * one failure into another one and never makes an answer right. False: no launch was refused. */
bool recording_blame_launch(struct job *j);
/* Time is up: where the kernel that still runs stands, as a finding; new. NULL: none runs, or it is not known. */
json_t *recording_stand(struct job *j);
/* What is bound in replays: pairs[i] is the candidate's row for row i of the reference's state, or NULL. -1: infra. */
int recording_params(struct job *j, const json_t *const *pairs, struct err *e);
/* Also: the row of the candidate's state holds elements of the reference's, as 'of' says (arrange.h; the caller's, of
 * recording_read_row). After recording_params. -1: infra, or ERR_INPUT as recording_params. */
int recording_bind_packed(struct job *j, const json_t *row, const int64_t *of, struct err *e);
/* What a row of the candidate's state holds now, as an arrangement of the model as it was constructed: owned, or NULL
 * where it is none. */
int64_t *recording_read_row(struct job *j, const json_t *row);
/* Did forward look at the device's values? Then what a replay finds wrong may still be right of the direct run. */
bool recording_reads(const struct recording *l);
/* Has a call changed a buffer that is bound again before the next one? */
bool recording_changes_buffers(const struct recording *l);
/* Lives: construction has been, the client calls forward n_calls times on d's inputs and ends. *ret_ended: it did not
 * come to that, ret is the error's reply, or a result with findings of the device. Where it was thrifty and is dry by
 * then, that is not the program's: what it looks at was not computed, and it must live once more without thrift. */
enum call_fault recording_direct(struct job *j, const struct ref_draw *d, struct frame *ret, bool *ret_ended,
                                 struct err *e);
/* Replays the recording on n <= n_calls draws of one set of parameters, which the caller holds. At the end of each
 * one's call 'judge' gets what it left: a result with the outputs' bytes, or an error; it frees the frame. Return -1 to
 * stop, with *e. */
typedef int (*recording_judge)(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e);
enum call_fault recording_replay(struct job *j, const struct ref_draw *const *draws, int n, recording_judge judge,
                                 void *ctx, struct err *e);
/* One draw as it is lived (life->live): the candidate's process may read what it computes.
 * CALL_INFRA: *e. */
enum call_fault recording_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e);
/* The draw once more without the candidate's launches: 1: the answer is still there. 0: it is not. -1: infra. */
int recording_movement(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e);
/* A recording that was judged live: its log is whole now. -1: infra. */
int recording_finish(struct job *j, struct err *e);
/* After recording_replay: the last call again, on the draw's inputs, from the state that it left on the device. Nothing
 * is played, and *ret_moved is false, where that is the state that it began with. A fault of the device is judged. */
enum call_fault recording_goes_on(struct job *j, const struct ref_draw *d, recording_judge judge, void *ctx,
                                  bool *ret_moved, struct err *e);
/* The draw once more, as recording_replay does it: 1 with *ret, 0: the device reports an error, -1: infra. */
int recording_again(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e);
/* Times the last call n times, each from the state before it in the latest recording_again. Event times and the
 * judge's own clock without pads, in ms. empty: without launches. long_calls, whole: executor_timing. -1: infra, or a
 * callback's. */
struct recording_timing {
    uint32_t n;
    bool empty, long_calls, whole;
    double *ret_ms, *ret_span_ms;
    const struct ref_draw *base; /* one of draw's, held: for calls of a recording that are not timed */
    /* A streamed task's calls, last or not: other inputs come into the area; then, of a timed one, what it made of
     * them, as the executor has it. NULL for other tasks. */
    int (*fresh)(void *ctx, struct err *e);
    int (*ended)(void *ctx, const json_t *output, struct err *e);
    /* Of other tasks: whose inputs (held) the next call takes. *ret_turn 0: as they are, and 'look' gets what the
     * call made of them. Else they are turned by so many elements and made smaller by a factor: nobody knows the
     * answer. */
    const struct ref_draw *(*draw)(void *ctx, uint64_t *ret_turn, double *ret_scale);
    int (*look)(void *ctx, const struct ref_draw *d, const struct frame *got, struct err *e);
    void *ctx;
};
int recording_time(struct job *j, struct recording_timing *t, struct err *e);
/* The draw once more, written into opt->capsule with all that a replay needs. -1: infra, or the file. */
int recording_section(struct job *j, const struct ref_draw *d, struct err *e);
/* After recording_direct with 'holds': does an answer lie where one of an earlier call lies that is still held, outside
 * of d's inputs and of what is bound? Then *ret_calls is how many calls lie between, and path (size bytes) names it. */
bool recording_overwrites(const struct job *j, const struct ref_draw *d, uint32_t *ret_calls, char *path, size_t size);
/* {"launches","kernels","bytes_up","bytes_down","live","log_sha256","outputs_sha256"}; new reference. */
json_t *recording_json(const struct recording *l);

#endif
