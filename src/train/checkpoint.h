/* checkpoint.h - atomic checkpoints of a training stage: run/checkpoint/STEP/{model folder, optim.safetensors,
 * state.json}, and run/checkpoint/latest, which names the one to continue from.
 *
 * A checkpoint is written beside, renamed, then 'latest' is replaced: killed at any point, the run continues from the
 * last complete one. Same binary, thread count and verdict log: the continued run is the same bit for bit, because
 * everything random is derived from the seed and the step, or is in state.json. */
#ifndef MC_TRAIN_CHECKPOINT_H
#define MC_TRAIN_CHECKPOINT_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "nn/model.h"
#include "nn/optim.h"

/* state: a JSON object of the caller's (step, cursors, buffers). Removes older checkpoints afterwards. */
int checkpoint_save(const char *run, int64_t step, const struct model *m, const struct optim *o, const json_t *state,
                    struct err *e);

/* The folder of the latest checkpoint (caller frees), or NULL when there is none (no error). */
char *checkpoint_latest(const char *run);
/* The model of a checkpoint, or of 'start' when folder is NULL. Either way what a model folder carries besides the
 * weights (tokenizer, unused tensors) comes from 'start' later on: checkpoints go away, the start stays. */
struct model *checkpoint_model(const char *folder, const char *start, struct err *e);
/* Loads optimiser and state from a folder of checkpoint_latest; see checkpoint_model for the model. */
int checkpoint_load(const char *folder, struct optim *o, json_t **ret_state, struct err *e);

/* A run folder belongs to one set of options: writes run/options.json the first time, later refuses other values
 * (ERR_INPUT names the first key that differs). run_agrees looks before
 * inputs are opened; run_claim writes after that, so that a failed start claims nothing. Keys in 'ignore' (NULL-terminated) may change. */
int run_agrees(const char *run, const json_t *options, const char *const *ignore, struct err *e); /* writes nothing */
int run_claim(const char *run, const json_t *options, const char *const *ignore, struct err *e);

#endif
