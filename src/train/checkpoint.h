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

/* state: a JSON object of the caller's (step, cursors, buffers). Removes older checkpoints afterwards. A step that
 * 'latest' names already is not written again. */
int checkpoint_save(const char *run, int64_t step, const struct model *m, const struct optim *o, const json_t *state,
                    struct err *e);

/* The folder of the latest checkpoint (caller frees), or NULL when there is none. ERR_INPUT where 'latest' names
 * one that is not there: a run never starts from nothing because something is missing. */
int checkpoint_latest(const char *run, char **ret, struct err *e);
/* The same for a training that goes on in its own folder: a whole checkpoint that has no pointer gets it. */
int checkpoint_resume(const char *run, char **ret, struct err *e);
/* The model of a checkpoint, or of 'start' when folder is NULL. Either way what a model folder carries besides the
 * weights (tokenizer, unused tensors) comes from 'start' later on: checkpoints go away, the start stays. */
struct model *checkpoint_model(const char *folder, const char *start, struct err *e);
/* Loads optimiser and state from a folder of checkpoint_latest; see checkpoint_model for the model. */
int checkpoint_load(const char *folder, struct optim *o, json_t **ret_state, struct err *e);

/* The optimiser's moments from where 'model' (RUN/model) was trained: RUN/checkpoint. ERR_INPUT where there are
 * none. */
int checkpoint_moments(const char *model, struct optim *o, struct err *e);

/* A run folder belongs to one set of options and to one process at a time. run/options.json holds the options and
 * what the inputs hold (keys 'model', 'data', 'prompts', 'harvest', 'asked'; content.h); other values are refused later
 * (ERR_INPUT names the first key that differs). Keys in 'ignore' (NULL-terminated) may change. */
struct run_folder {
    char *path;
    json_t *claim;
    int lock; /* held until run_close; -1: nothing is claimed */
};

/* Before anything is read from the folder: takes the lock of one that is there and compares. Makes no folder. */
int run_open(const char *run, const json_t *options, const char *const *ignore, struct run_folder *ret, struct err *e);
/* Once the inputs are open, so that a failed start claims nothing: makes, stamps and locks a folder that was not
 * there. */
int run_claim(struct run_folder *f, struct err *e);
void run_close(struct run_folder *f); /* a zeroed one is fine */
/* run/model, whole or not there at all. Nothing is written where it is the latest checkpoint's already; what else a
 * user put into the folder is kept. */
int run_save_model(const char *run, const struct model *m, struct err *e);
bool run_model_is_saved(const char *run); /* run/model is what the latest checkpoint lists as written */
/* SHA-256 of what the run's latest checkpoint says of the files in run/model; "" where it says nothing. */
void run_model_digest(const char *run, char ret[65]);
char *run_model_foreign(const char *run); /* a file in run/model that is not as it was saved there; owned, or NULL */
bool run_model_is_changed(const char *run); /* it was, and a file of it is another now; false without a listing */

#endif
