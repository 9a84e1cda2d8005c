/* streamed.h - a task whose values would fill the device several times (docs/internals/memory.md). Nothing is kept
 * that can be made again: one set of inputs lies in an area of the judge's that the reference's process maps, and the
 * executor too; expected values are made by that process, compared in tiles and dropped.
 *
 * For each draw of a candidate: streamed_bind, (the candidate runs), streamed_changed, streamed_expect,
 * streamed_compare of each output, streamed_drop. One thread at a time. Inside src/eval only. */
#ifndef MC_EVAL_STREAMED_H
#define MC_EVAL_STREAMED_H

#include "eval/check/compare.h"
#include "eval/server/device_context.h"
#include "eval/reference/reference.h"
#include "eval/reference/reference_child.h"
#include "exec/memory_plan.h"

#define STREAMED_LEAST ((int64_t)24 << 20) /* bytes of inputs and outputs; below it all draws fit into a cached frame */
#define STREAMED_INPUTS 64 /* tensors of a draw, at most */

struct streamed {
    struct reference_want w;  /* its task, options and title are copies; the server outlives it */
    uint64_t number;          /* its own, in this process; from 1 */
    struct child *child;
    struct device_context *device_context;
    pthread_mutex_t lock;     /* of the one candidate that has areas and process, from reference_own to _release */
    struct task task;         /* own copies of what w borrows */
    struct eval_options options;
    struct frame told;        /* the task's sizes */
    bool broken;              /* left in the middle of an answer: its process was ended, nobody may use it again */
    json_t *inputs;           /* the tree of a draw's inputs: where each lies in 'area'; owned */
    struct device_buf area;   /* DEVICE_SHARED: one set of inputs */
    struct device_buf truth;  /* DEVICE_SHARED: a tile of expected values, which the reference's process writes */
    struct device_buf mine;   /* DEVICE_SHARED: a tile of a candidate's output */
    size_t n_inputs;
    uint64_t sums[STREAMED_INPUTS]; /* of each input, as streamed_bind left it */
    const char *truth_is;     /* "double", "rows", "own": of the draw that is expected now */
    double spent_s;           /* on values: in the reference's process, and comparing them */
    size_t peak;              /* bytes in use on the whole device, most that was seen */
    size_t own_peak;          /* bytes of the reference's process and the areas, at most */
    _Atomic size_t torch_peak, eager_peak; /* of the process alone, and of its forward; 0: not known */
};

/* Its process is there, and has a context on the device. Errors as reference_get, of all of these. */
int streamed_start(const struct reference_want *w, struct device_context *k, struct streamed **ret, struct err *e);
/* Its process has the task, whose model is constructed on the CPU, seconds for weights of gigabytes; nothing of it is
 * on the device yet. told: what it says of the task's size ("state_bytes", "input_bytes": null where that depends on
 * values); borrowed until the next call. */
int streamed_construct(struct streamed *s, const json_t **told, struct err *e);
/* How inputs and outputs lie: s->inputs. */
int streamed_learn(struct streamed *s, struct err *e);
/* Is a task of that size worth it? */
bool streamed_worth(const struct streamed *s);
/* What it and its candidates may have of a device. */
void streamed_plan(const struct streamed *s, uint64_t device_memory, struct memory_plan *ret);
/* Bytes of the device that it has while nobody uses it. */
size_t streamed_rests(const struct streamed *s);
/* The areas are there; no draw yet. */
int streamed_areas(struct streamed *s, struct err *e);
/* All of these. */
int streamed_open(const struct reference_want *w, struct device_context *k, struct streamed **ret, struct err *e);
void streamed_close(struct streamed *s); /* NULL is fine */
/* Facts about the next draw: *ret_head owns what *ret points into (trees without values). 1; 0: there is none,
 * *ret_head has "skipped"; -1. The area's content is lost. */
int streamed_next(struct streamed *s, struct ref_draw *ret, json_t **ret_head, struct err *e);
/* All but the draws, as reference.py's facts. */
int streamed_facts(struct streamed *s, struct frame *ret, struct err *e);
/* The draw's inputs come into the area. other: values of the same kind that no answer is judged by. */
int streamed_bind(struct streamed *s, const struct ref_draw *d, bool other, struct err *e);
/* Which inputs are not what streamed_bind left: as many as s->n_inputs says. */
int streamed_changed(struct streamed *s, bool ret[STREAMED_INPUTS], struct err *e);
/* After a binding, inputs of the same kind in its place: the same for the same seed, and none that a call met before.
 * Nothing is said of them by streamed_changed. */
int streamed_fresh(struct streamed *s, uint64_t seed, struct err *e);
/* Expected values of the inputs that lie in the area. own: the reference's own answer. */
int streamed_expect(struct streamed *s, bool own, struct err *e);
/* Puts elements [from, from + n) of an output, in C order, to the start of s->mine. */
typedef int streamed_part(void *ctx, int64_t from, int64_t n, struct err *e);
/* Output 'leaf' (of d's tensors, from 0) against what is expected. As compare_tensors; dtype and shape are the
 * caller's. */
int streamed_compare(struct streamed *s, size_t leaf, const struct tensor *whole, const struct tolerance *tol,
                     streamed_part *mine, void *ctx, struct comparison *ret, struct err *e);
/* Elements [from, from + n) of the reference's own answer (own) or of what is expected come to the start of s->truth.
 * Their type in *ret. */
int streamed_tile(struct streamed *s, size_t leaf, int64_t from, int64_t n, bool own, enum dtype *ret, struct err *e);
/* Expected values are gone, and the process has given its memory back. */
int streamed_drop(struct streamed *s, struct err *e);

#endif
