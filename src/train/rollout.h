/* rollout.h - groups of trajectories: sample, verify while others are still being drawn, feed the verdict back.
 *
 * Turn 1 draws n samples for each prompt. A trajectory that failed goes on: its own tokens, then MooreEval's feedback
 * as the next request (append only: what was sampled is never tokenised again), until it passes, the last turn is
 * over, a verdict that is not scored ends it, or the dialogue leaves no room for an answer (rollout_room).
 * Behaviour log-probs are log-softmax(z / T) over the whole vocabulary; with top-p below 1 over the ids that could be
 * drawn, which the turns hold. */
#ifndef MC_TRAIN_ROLLOUT_H
#define MC_TRAIN_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "answers/rollout_engine.h"
#include "base/err.h"
#include "nn/chat.h"
#include "nn/model.h"
#include "nn/sampler.h"
#include "task/prompt.h"
#include "train/outcome.h"
#include "verdicts/verdicts.h"

#define ROLLOUT_MAX_TURNS 8
#define ROLLOUT_MAX_GROUP 1024 /* samples of a prompt */

struct rollout_turn {
    int32_t *added; /* (n_added) what the dialogue gained since the response before: feedback, generation prompt */
    int n_added;    /* 0 in turn 1, whose request is the group's prompt */
    int32_t *ids;   /* (n) the response, as sampled */
    float *logp;    /* (n) its behaviour log-probs */
    int32_t *kept;  /* with top-p below 1: as in struct sample */
    int *kept_to;
    int n;
    bool cut;       /* hit the length limit */
    enum outcome_kind kind;
    double score;   /* 0 when it is not scored */
    char *text, *feedback; /* the response as text, and what the judge said of it */
    /* the whole program that an answer of edits stands for (task/repair_text.h); NULL: text itself */
    char *written;
    char category[24];     /* "" when passed */
    char key[65];          /* of the verdict in the verdict log */
};

/* Everything is owned by the rollout. */
struct rollout {
    struct rollout_turn turn[ROLLOUT_MAX_TURNS];
    int turns;         /* played; 0: its prompt left no room, or it was stopped */
    int passed_turn;   /* 1-based, 0: never */
    bool full;         /* it failed and would have gone on, but the dialogue had no room left */
    struct chat chat;  /* the dialogue so far; private to rollout_run */
};

static inline const char *rollout_program(const struct rollout_turn *t) /* the response that was judged */
{
    return t->written ? t->written : t->text;
}

/* Whether all its turns are scored: a trajectory that is not leaves its group. */
bool rollout_scored(const struct rollout *r);
bool rollout_has(const struct rollout *r, enum outcome_kind kind); /* some turn ended so */

struct rollout_group {
    const char *task_code, *task_name; /* borrowed */
    struct chat prompt;                /* ends with the generation prompt; owned */
    struct rollout *r;                 /* (n), owned */
    int n;
    char *before;                      /* of a repair task: the response that failed, which edits may change. Owned */
    uint64_t seed;
};

/* Where the seconds of rollout_run went: sampling, with verdicts in the background, then waiting for verdicts alone. */
struct rollout_times {
    double sampling, judging;
};

struct rollout_options {
    int turns, max_new, positions;   /* positions: of the model */
    int max_batch;                   /* rows decoded together; 0: the sampler's default */
    double temperature, top_p;       /* top_p: 0 means 1; below it turns hold their kept sets */
    enum prompt_style style;
    const struct reward_params *reward; /* of outcome_of; NULL: the records' own */
    bool edits;                      /* feedback shows the program's lines with their numbers */
    const char *name;                /* progress line; NULL: silent */
    struct rollout_times *times;     /* added to; may be NULL */
};

/* The longest request (tokens) that leaves room for an answer of max_new tokens, or at least of ROLLOUT_MIN_ROOM: the
 * sampler shortens answers at the end of the model's positions. */
#define ROLLOUT_MIN_ROOM 32
int rollout_room(int positions, int max_new);

/* messages: [{"role","content"},..] ending with a user message. Fills g (n rollouts, empty). */
int rollout_group_init(struct rollout_group *g, struct tokenizer *tok, const json_t *messages, int n, struct err *e);
/* The same from the prompt's ids. */
int rollout_group_ids(struct rollout_group *g, struct tokenizer *tok, const int32_t *ids, size_t n_ids, int n,
                      struct err *e);
void rollout_group_free(struct rollout_group *g);

/* Plays all groups. ERR_STOP after Ctrl-C: nothing of the step may be used. */
int rollout_run(struct rollout_engine *d, struct tokenizer *tok, struct verdicts *v, const struct rollout_options *o,
                struct rollout_group *g, int n_groups, struct err *e);

#endif
