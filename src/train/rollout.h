/* rollout.h - groups of trajectories: sample, verify while others are still being drawn, feed the verdict back.
 *
 * Turn 1 draws n samples for each prompt. A trajectory that failed goes on: its own tokens, then MooreEval's feedback
 * as the next request (append only: what was sampled is never tokenised again), until it passes, the last turn is
 * over, or an infra verdict ends it. Behaviour log-probs are log-softmax(z / T) over the whole vocabulary. */
#ifndef MC_TRAIN_ROLLOUT_H
#define MC_TRAIN_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "nn/chat.h"
#include "nn/model.h"
#include "nn/sampler.h"
#include "task/prompt.h"
#include "train/judge.h"

#define ROLLOUT_MAX_TURNS 8

struct rollout {
    int32_t *ids; /* (n) the first response, as sampled */
    float *logp;  /* (n) its behaviour log-probs */
    int n;
    bool cut;     /* the first response hit the length limit */
    int turns;    /* played */
    double score[ROLLOUT_MAX_TURNS];
    int passed_turn; /* 1-based, 0: never */
    bool infra;      /* some turn has no verdict: the trajectory leaves its group */
    char *response, *feedback; /* text of the first response, and what the judge said of it; owned */
    char category[24];         /* of the first response */
    struct chat chat;          /* the dialogue so far; private to rollout_run */
};

struct rollout_group {
    const char *task_code, *task_name; /* borrowed */
    struct chat prompt;                /* ends with the generation prompt; owned */
    struct rollout *r;                 /* (n), owned */
    int n;
    uint64_t seed;
};

struct rollout_options {
    int turns, max_new, max_context; /* a dialogue longer than max_context tokens ends */
    int max_batch;                   /* rows decoded together; 0: the sampler's default */
    double temperature;
    enum prompt_style style;
    const char *name;                /* progress line; NULL: silent */
};

/* messages: [{"role","content"},..] ending with a user message. Fills g (n rollouts, empty). */
int rollout_group_init(struct rollout_group *g, struct tokenizer *tok, const json_t *messages, int n, struct err *e);
void rollout_group_free(struct rollout_group *g);

/* Plays all groups. ERR_STOP after Ctrl-C: nothing of the step may be used. */
int rollout_run(struct model *m, struct tokenizer *tok, struct judge *j, const struct rollout_options *o,
                struct rollout_group *g, int n_groups, struct err *e);

#endif
