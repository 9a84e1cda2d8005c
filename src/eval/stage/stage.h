/* stage.h - the stages of a candidate's way, and what one offers to another. Inside src/eval only. */
#ifndef MC_EVAL_STAGE_H
#define MC_EVAL_STAGE_H

#include "eval/candidate/job.h"
#include "eval/check/compare.h"
#include "eval/verdict/record.h"

#define SLOW_S 0.3 /* of run time (schedule.h) for one call */

/* A stage returns 0 (go on), or -1 with *e for what is not the candidate's fault. It blames through the record. */
struct stage {
    const char *name;
    int (*run)(struct job *j, struct err *e);
    bool always; /* runs even after an earlier stage blamed */
};

extern const struct stage stage_extract, stage_load, stage_compile, stage_correct, stage_legality, stage_perf,
    stage_reward, stage_feedback;

static inline bool job_blamed(const struct job *j)
{
    return record_blamed(j->rec);
}

/* reference_get into j->held (what it held is released), on the clock of its own. */
int job_reference(struct job *j, const char *params, struct err *e);
/* reference_own, on the same clock: before the first draw. */
int job_own_reference(struct job *j, struct err *e);
/* Constructs ModelNew with the arguments of j->held.ref: sets ready and state, or blames. -1 only for infra. */
int job_construct(struct job *j, struct err *e);
/* Two instances of ModelNew in one process, the first of another seed; state is the second one's. Blames nobody: where
 * either is not there ready is false. -1 only for infra. */
int job_construct_beside(struct job *j, struct err *e);
/* Of a process that has ended: of the machine's memory it had half of what it may have, or more. */
bool job_was_large(const struct job *j);
/* Turns a failed session call into a blame (timeout, crash, tampering); -1 only for infra. */
int job_blame_call(struct job *j, enum call_fault fault, const char *stage, const char *during, struct err *e);
/* Does an error's head say that the machine is unfit (a library too old to load what was compiled)? Then e says so. The
 * dynamic linker is asked: it finds all that the last build needs where a program has raised such an error itself. */
bool job_unfit(const struct job *j, const json_t *head, struct err *e);
void job_blame_error(struct job *j, const json_t *head, const char *stage);
void compile_judge(struct job *j);
/* Is the draw one of the recording that is made? */
bool job_recordings(const struct job *j, const struct ref_draw *d);
/* May draws that were right of the direct run, and not by replay, count as passed? */
bool legality_live(const struct job *j);
/* Does the evidence so far make the program a cheat, whatever comes? Runs nothing. */
bool legality_convicts(const struct job *j);
/* The same of the recording as it was, with all that its replays show. 1, 0, -1: infra. */
int legality_judges(struct job *j, struct err *e);
/* The judge's parameter values into the candidate, as far as they can be matched; sets params. -1 only for infra. */
int correct_parameters(struct job *j, struct err *e);
/* The record's "worst": output 'path' of a draw. New reference. */
json_t *correct_worst(const struct ref_draw *d, const char *path, const struct comparison *c,
                      const struct tolerance *t);
/* Compares one reply with one draw. Fills the record's worst on the first failure. 1 = passed, 0 = failed. */
int correct_compare(struct job *j, const struct ref_draw *d, const struct frame *got, json_t **ret_worst,
                    double *max_abs, double *max_rel, struct err *e);

#endif
