/* reference.h - expected values of a task: made once by the reference side (runner/reference.py), then shared by all
 * candidates through memory and a content-addressed file under path_cache("reference"), which no candidate can see. */
#ifndef MC_EVAL_REFERENCE_H
#define MC_EVAL_REFERENCE_H

#include <pthread.h>

#include "eval/tensor.h"
#include "eval/tolerance.h"
#include "proc/frame.h"
#include "task/task.h"

struct eval;
struct eval_options;
struct server;

struct section { /* a value tree and its bytes */
    const json_t *tree;
    const char *bytes;
    size_t n;
};

struct ref_draw {
    const char *regime;
    int trial;
    struct section inputs, eager, oracle;
    const json_t *noise;   /* per output tensor {"n1","n2","max_abs","fan_in","dtype"} */
    const json_t *mutates, *aliases; /* inputs that the reference itself changes; outputs that share their memory */
};

struct reference {
    struct frame f;
    char key[65];
    int users;
    bool listed;
    struct section init, state_values;
    const json_t *state; /* [{"name","kind","dtype","shape"}] */
    const json_t *skipped; /* {"regime": reason} */
    const json_t *defects; /* protocol kernelbench: [{"name","detail"}], known defects of that algorithm on this task */
    const char *dtype;     /* floating parameters are to have it: "float16"...; NULL: as constructed */
    const char *mode;
    const json_t *tf32;    /* on a GPU: {"matmul","cudnn"}, what the reference was allowed; else NULL */
    int64_t init_seed;
    struct ref_draw *draws;
    size_t n_draws;
};

#define REFERENCE_LIST 16
struct reference_list {
    struct reference *items[REFERENCE_LIST]; /* most recent first */
};

/* params: "random" (floating parameters re-randomised) or "seed" (as constructed). variant: of the task's sidecar, 0 is the
 * task as written. ERR_INPUT: the task or its sidecar is at fault. */
int reference_get(struct eval *ev, struct server *sv, const struct task *t, const struct eval_options *o,
                  const char *params, int variant, struct reference **ret, struct err *e);
/* One section or draw of a frame from runner/; the result points into the frame. ERR_BUG if it is broken. */
int ref_section_parse(const struct frame *f, const json_t *s, struct section *ret, struct err *e);
int ref_draw_parse(const struct frame *f, const json_t *d, struct ref_draw *ret, struct err *e);
/* How far output 'tensor' of a draw may be from expected. own: a sidecar's {"abs","rel"} for floating outputs, or NULL. */
struct tolerance ref_tolerance(const struct ref_draw *d, size_t tensor, const char *protocol, const json_t *own);
/* The seed that draws are made from: of the user's seed and a secret of this machine (path_cache("judge-secret"), or
 * $MUSACODER_SECRET), so that a program which knows this source cannot draw them itself. Recorded as "inputs_seed". */
int64_t reference_seed(const struct eval *ev, int64_t seed);
void reference_release(struct eval *ev, struct reference *r); /* NULL is fine */
void reference_list_free(struct eval *ev);

#endif
