/* life.h - a candidate's life on an executor: lived once by its front, then replayed by the judge on data that no
 * process of the candidate ever met (docs/internals/executor.md, docs/internals/front.md). Inside src/eval only.
 *
 * The front constructs, the judge lays parameters that it makes up, the front calls forward twice; then the front
 * ends. Every draw is judged by a replay: the real parameters and the draw's inputs are laid where the log says. So
 * what is compared was computed by the candidate's kernels from what the judge laid, or it is wrong. */
#ifndef MC_EVAL_LIFE_H
#define MC_EVAL_LIFE_H

#include "eval/exec.h"
#include "exec/capsule.h"
#include "exec/exec.h"
#include "exec/order.h"

struct job;

#define LIFE_CALLS 2        /* of forward, in a life */
#define LIFE_LIVE_BYTES 64  /* most that a call may bring down and still be judged live, also at most inputs / 16 */
#define LIFE_LIVE_READS 16

struct life {
    struct executor *x;
    bool lived;             /* forward was called LIFE_CALLS times and returned */
    bool live;              /* draws are judged as they are lived, on the real parameters: for what the host reads */
    bool over;              /* more came down in a call than may be judged live */
    uint32_t calls;         /* of forward so far */
    uint64_t read_bytes, reads; /* in calls: came down; replies that depended on the device */
    json_t *notes;          /* what the front said about itself, owned array (litetorch/front/front.h) */
    json_t *output;         /* tree of the last call's output: where it lies; owned */
    struct life_lay *lays;  /* parameters and inputs: what is laid where */
    size_t n_lays;
    uint64_t *inputs;       /* address of each input tensor, in order of the draw's leaves */
    size_t n_inputs;
    int replays;
    struct executor_call last; /* of the last live call */
    struct log_counts counts;
    char log_sha256[65];
    struct capsule *capsule; /* what --capsule asks for; NULL */
    bool recording;          /* the replay that runs is for it */
    struct order_finding order; /* of the log: is all of the last call's work waited for? */
    bool refused;           /* the log cannot be replayed: why */
    char why[256];
};

/* For a session that has just been opened: an executor, and the front attached to it. -1: infra. */
int life_open(struct job *j, struct err *e);
void life_close(struct life *l); /* NULL is fine */
/* Of a built library: the executor may open its device code. */
int life_image(struct life *l, const char *path, struct err *e);
/* Takes over notes of a reply. */
void life_take_report(struct job *j, const json_t *head);
/* What is laid in replays: pairs[i] is the candidate's row for row i of the reference's state, or NULL. -1: infra. */
int life_params(struct job *j, const json_t *const *pairs, struct err *e);
/* Did forward look at the device's values? Then what a replay finds wrong may still be right as it was lived. */
bool life_reads(const struct life *l);
/* One draw: lives first, if it has not yet. As exec_run: ret is a result with the output's bytes, or an error. */
enum call_fault life_run(struct job *j, const struct exec_call *c, struct frame *ret, struct err *e);
/* The draw once more without the candidate's launches: 1: the answer is still there. 0: it is not. -1: infra. */
int life_plumbing(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e);
/* A life that was judged live: its log is whole now. -1: infra. */
int life_finish(struct job *j, struct err *e);
/* The draw once more, written into opt->capsule with all that a replay needs. -1: infra, or the file. */
int life_record(struct job *j, const struct ref_draw *d, struct err *e);
/* {"launches","kernels","bytes_up","bytes_down","live","log_sha256"}; new reference. */
json_t *life_json(const struct life *l);

#endif
