/* agent.h - generate, verify, repair: a model writes a kernel for a task, the judge says what is wrong, the model
 * writes again. The best kernel of all turns is kept: the highest reward, and of equal rewards the earlier one. */
#ifndef MC_AGENT_H
#define MC_AGENT_H

#include <jansson.h>

#include "answers/answers.h"
#include "base/err.h"
#include "eval/eval.h"
#include "task/prompt.h"
#include "task/task.h"

struct agent_options {
    int turns; /* answers at most */
    double temperature, top_p;
    int max_new;  /* tokens of one answer */
    int64_t seed; /* answer i is drawn from seed + i */
    enum prompt_style style;
    const char *target; /* "cuda" or "musa": what is asked for */
    bool edits;         /* what failed is shown with numbered lines (task/repair_text.h) */
    bool stop_at_pass;  /* else turns that are left ask for speed */
    struct eval_options eval;
};

struct agent_result {
    json_t *best;       /* verdict record, owned; NULL: no answer was judged */
    char *program;      /* Python text of the best, owned */
    int turn, turns;    /* of the best (from 1); how many there were */
    char *last;         /* the response judged last, which the next answer's edits may change; owned */
    json_t *turns_json; /* [{"turn","response","verdict"}], owned */
};

struct agent_listener { /* all may be NULL */
    void (*on_text)(const char *text, size_t n, void *ctx);
    void (*on_verdict)(int turn, const struct answer *a, const json_t *verdict, void *ctx);
    void (*on_turn)(const struct agent_result *so_far, void *ctx); /* after each turn: what a kill must not take */
    void *ctx;
};

/* An infra verdict ends the loop: nobody learns from it. ERR_INPUT: the task is unusable. */
int agent_run(struct answers *source, struct eval *ev, const struct task *task, const struct agent_options *o,
              const struct agent_listener *l, struct agent_result *ret, struct err *e);
void agent_result_free(struct agent_result *r);

#endif
