/* job.h - one candidate's way through the stages: what the stages share. Inside src/eval only. */
#ifndef MC_EVAL_JOB_H
#define MC_EVAL_JOB_H

#include <jansson.h>

#include "eval/candidate/session.h"
#include "eval/reference/reference.h"
#include "eval/server/options.h"

struct job {
    struct judge_server *server; /* of the backend */
    const struct task *task;
    const struct eval_candidate *cand;
    const struct eval_options *opt;
    const struct protocol *protocol; /* of opt */
    json_t *rec;
    struct extraction extraction;
    char *code;             /* NUL-terminated copy of the extracted program */
    struct reference_held held; /* held.ref is NULL before stage load */
    struct session *session; /* NULL before stage load */
    struct recording *recording; /* NULL before the session is open */
    int64_t seed;           /* of all that is drawn: reference_seed */
    const char *params;     /* how parameters were made equal: "none", "name", "order", "seed" */
    int variant;            /* of the task (task_variant) that the candidate is constructed for; 0: as it is written */
    bool second;            /* the candidate lives a second time, of a secret seed (reference.h, has_second) */
    bool alone;             /* on the device: a try after one that others may have disturbed */
    bool ready;             /* the candidate was constructed */
    bool ran;               /* forward returned at least once */
    bool all_passed;        /* all draws that were run */
    bool reproduced;        /* a draw was written down for --repro */
    bool slow;              /* it got fewer draws, because each call took longer than stage.h's SLOW_S */
    double call_s;          /* of run time (schedule.h): the fastest call for a draw; 0: none ended */
    json_t *state;          /* the candidate's parameters and buffers: [{name,kind,dtype,shape}], owned */
    json_t *findings;       /* of the executor, owned array */
};

#endif
