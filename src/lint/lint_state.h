/* lint_state.h - what lint knows after a task's draws: lint.c fills it, lint_rules.c reads it. Inside src/eval only. */
#ifndef MC_EVAL_LINT_STATE_H
#define MC_EVAL_LINT_STATE_H

#include "lint/lint.h"
#include "task/trivial.h"

enum { LEVEL_STRICT, LEVEL_FP32, LEVEL_HALF, N_LEVELS };
enum { GROUP_STRICT, GROUP_KERNELBENCH, N_GROUPS };

struct level {
    const char *name;
    int group;
};
extern const struct level lint_levels[N_LEVELS];

struct lint_drop { /* one operator that was left out */
    int64_t call, line; /* number among the calls of forward; line of the task, 0 if unknown */
    char name[64];
    int passed[N_LEVELS];
    double max_err;     /* over the draws that pass */
};

struct lint_group { /* draws of one way to make them */
    int draws, outputs, unusable; /* outputs: over all draws; unusable: too ill-conditioned to decide anything */
    double max_expected;          /* largest |expected| of any draw */
    double min_top;               /* smallest over the draws of the largest |expected| */
    int constant, zero;           /* draws whose outputs are each one value everywhere; which are all 0 */
    double worst_own, worst_moved; /* largest n1 and n2 (tolerance.h) over max |expected| of a draw */
    double **last;                /* [n_last] the answer before, per output; owned */
    size_t *last_n;
    size_t n_last;
    struct lint_drop *drop;
    size_t n_drop;
};

struct lint_state {
    const struct lint_options *o;
    const struct task *task;
    int variant;
    struct lint_group group[N_GROUPS];
    struct battery battery[N_LEVELS];
    double trivial_err[N_LEVELS][N_TRIVIAL]; /* largest error of an answer that passes so far */
    double allowed[N_LEVELS];                /* largest absolute tolerance that was applied */
    json_t *facts;                           /* owned; NULL while unknown */
};

/* Appends findings of a state with facts. Pure. */
void lint_judge(const struct lint_state *s, json_t *findings);
/* Appends one finding; evidence is taken over and may be NULL. */
void lint_add(const struct lint_state *s, json_t *findings, const char *rule, json_t *evidence, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
