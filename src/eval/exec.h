/* exec.h - one call of forward on one draw, wherever the values lie: in the frames, or in areas of the desk
 * (desk.h). With areas the judge lays fresh copies of the inputs out, poisons where the outputs will be, and takes a
 * snapshot of them when the reply is there: what it compares is out of the candidate's reach. Inside src/eval only. */
#ifndef MC_EVAL_EXEC_H
#define MC_EVAL_EXEC_H

#include "eval/desk.h"
#include "eval/reference.h"
#include "eval/session.h"

struct job;

struct exec_room {
    struct device_buf inputs, outputs; /* areas of the candidate's process */
    struct device_buf copy;            /* the snapshot of the last outputs */
};

struct exec_call {
    const struct ref_draw *draw;
    bool ablation;    /* without the candidate's launches */
    bool same_memory; /* new contents in the tensors of the call before */
    const char *watch; /* "record" or "gate": the reply has "watched" (hostflow.h); NULL: not watched */
};

/* Runs it and fills *ret with the reply: op "result" or "error"; with areas, "changed" lists what the judge found
 * changed. The caller holds the draw (reference_hold) until it has compared. CALL_INFRA: *e. */
enum call_fault exec_run(struct job *j, const struct exec_call *c, struct frame *ret, struct err *e);
/* Sends a request that reads inputs from the area: {"op","..."}; "area" is added when what it reads has been laid
 * out there, else the bytes ride along. d: whose inputs (held by the caller), for exec_put; any section for
 * exec_bytes. req is taken. */
enum call_fault exec_put(struct job *j, const struct ref_draw *d, json_t *req, struct frame *ret, struct err *e);
enum call_fault exec_bytes(struct job *j, const struct section *s, json_t *req, struct frame *ret, struct err *e);
/* An output that the candidate's process kept while it was timed (runner/timing.py): as exec_run, the outputs of
 * *want are at most as large. */
enum call_fault exec_reveal(struct job *j, const struct ref_draw *want, uint32_t slot, struct frame *ret, struct err *e);
void exec_free(struct job *j); /* gives the room back, at the job's end */

#endif
