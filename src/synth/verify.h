/* verify.h - verdicts for (task, program) pairs, with a log (verdicts/verdicts.h) by which an interrupted run
 * continues.
 *
 * The log holds times, so it is no part of the corpus. Verdicts 'infra' and 'timeout' are not kept, but for tasks that
 * cannot be judged in two tries. */
#ifndef MC_SYNTH_VERIFY_H
#define MC_SYNTH_VERIFY_H

#include <jansson.h>

#include "base/err.h"

struct verify_item {
    const char *name, *task, *program; /* borrowed */
    const json_t *sidecar;             /* of the task (task/task.h), borrowed; NULL: none */
};

struct verify_options {
    int jobs;            /* candidates at once; 0: 1.5 for each CPU */
    int trials;          /* trials per input distribution */
    const char *log;     /* path */
    const char *backend; /* where programs run; NULL: sim */
};

/* ret: new array of n verdicts, in order. An item whose verdict stays infra after a second try is an error: the machine
 * is unfit, and what is kept must not depend on luck. A task that cannot be judged (at_fault "request", twice) keeps
 * that verdict and is told; more than half of such items are an error. Ctrl-C: ERR_STOP. */
int verify_all(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e);

#endif
