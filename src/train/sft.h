/* sft.h - supervised fine-tuning on a multi-task mixture: token mean of -log p over the last responses only.
 *
 * Also the continuation after RFT and the control run: another data list, another starting model. The validation loss
 * is measured on a share of the training graphs that is left out of training; held-out tasks are never looked at. */
#ifndef MC_TRAIN_SFT_H
#define MC_TRAIN_SFT_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "train/lr_schedule.h"

struct sft_options {
    const char *model;   /* starting folder, with tokenizer */
    const char *data;    /* JSON Lines files, separated by commas */
    const char *out;     /* run folder: out/model at the end, out/checkpoint on the way */
    const char *metrics; /* folder of metrics.jsonl; NULL: out */
    const char *stage;   /* name in metrics.jsonl */
    const char *mix;     /* mixture_shares; may be NULL */
    bool easy_first;     /* mixture_plan */
    const json_t *claim; /* all options as the user sees them, for run_claim; may be NULL */
    int64_t steps, batch_tokens;
    int micro_tokens, max_length;
    struct lr_schedule schedule; /* .steps is set from steps */
    double weight_decay, grad_clip;
    double beta2, eps;    /* of AdamW; 0: 0.99, 1e-8 */
    bool moments;         /* AdamW's moments begin as those that the model was trained with (checkpoint_moments) */
    double changed_weight; /* of tokens that a repair changes, beside 1 for the others; 0: 1. Gradients only */
    double val_share;     /* share of graphs for validation */
    int64_t val_every, save_every;
    int val_max;          /* validation examples at most */
    uint64_t seed;
    int zero;                   /* several ranks: what lies in parts, 0 to 2 (model_part_state) */
    const char *device, *dtype; /* of model_to_device; NULL: the host */
};

/* Runs or continues to the last step. ERR_STOP after Ctrl-C, with a checkpoint written. */
int sft_run(const struct sft_options *o, struct err *e);
/* ERR_INPUT where o->out was begun with other options (o->claim) or other contents. Trains nothing. */
int sft_check(const struct sft_options *o, struct err *e); /* ERR_INPUT for options that sft_run would refuse */
int sft_check_same(const struct sft_options *o, struct err *e);

#endif
