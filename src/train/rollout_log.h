/* rollout_log.h - what a step of RL saw and made of it: RUN/rollouts/STEP.jsonl, a line for each trajectory.
 *
 * {"step","policy","prompt_id","repair","sample","reward","advantage","minibatch","passed_turn","full",
 *  "prompt_tokens":[ids],"turns":[{"added":[ids],"tokens":[ids],"cut","text","status","category",
 *  "score","feedback","verdict","logp":[..]}]}
 * With top-p below 1 a turn has "kept" and "kept_to" too: struct sample's.
 * The first sample of a group carries prompt_tokens. The dialogue of turn k is prompt_tokens, then tokens and added of
 * the turns before it, in order. logp is at the rollout temperature. "verdict" is a key of verdicts.jsonl (with
 * "@STEP" behind it where the status is infra or unsupported). reward, advantage and minibatch are null for samples
 * outside their group. A file is written whole, so a step that is played again replaces its own.
 * "policy" is the step whose weights drew it, null where a server keeps its own (--rollout-sync none). */
#ifndef MC_TRAIN_ROLLOUT_LOG_H
#define MC_TRAIN_ROLLOUT_LOG_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "train/rollout.h"

struct rollout_note {
    int64_t step, policy;     /* policy -1: null */
    const char *prompt_id;
    bool repair;
    int sample, minibatch;    /* minibatch -1: not learned from */
    double reward, advantage; /* NaN: outside its group */
};

/* Appends one line. prompt: NULL, or the group's dialogue whose ids are the prompt. */
void rollout_log_line(struct buf *out, const struct rollout_note *n, const struct chat *prompt,
                      const struct rollout *r);
/* A trajectory as rollout_log_line wrote it; texts are made of the tokens again. Bit for bit what it was. */
int rollout_log_take(const json_t *line, struct tokenizer *tok, struct rollout *ret, struct err *e);
char *rollout_log_path(const char *run, int64_t step);
int rollout_log_write(const char *run, int64_t step, const struct buf *lines, struct err *e);

#endif
