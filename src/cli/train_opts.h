/* train_opts.h - option rows and readers that more than one training command uses. */
#ifndef MC_TRAIN_OPTS_H
#define MC_TRAIN_OPTS_H

#include "base/opt.h"
#include "train/sft.h"

/* What 'sft' and 'rft' have in common: rft's second half is an SFT on the mixture. */
#define LEARN_ROWS(section)                                                                                           \
    {section, "batch-tokens", OPT_INT, "4096", "tokens a step, at least", INTO(struct sft_options, batch_tokens)},    \
    {section, "micro-tokens", OPT_INT, "4096", "tokens forwarded together", INTO(struct sft_options, micro_tokens)},  \
    {section, "max-length", OPT_INT, "1024", "longer dialogues are left out (tokens)", INTO(struct sft_options,       \
     max_length)},                                                                                                    \
    {section, "lr", OPT_REAL, "1e-5", "peak learning rate", INTO(struct sft_options, schedule.peak)},                 \
    {section, "warmup", OPT_REAL, "0.03", "share of the steps with rising rate", INTO(struct sft_options,             \
     schedule.warmup)},                                                                                               \
    {section, "schedule", OPT_CHOICE, "cosine",                                                                       \
     "constant|linear|cosine|wsd: shape after warm-up (wsd: constant, then down in the last 15 %)"},                  \
    {section, "lr-floor", OPT_REAL, "0.1", "final rate as a share of the peak", INTO(struct sft_options,              \
     schedule.floor)},                                                                                                \
    {section, "weight-decay", OPT_REAL, "0.01", "AdamW's weight decay", INTO(struct sft_options, weight_decay)},      \
    {section, "beta2", OPT_REAL, "0.99", "AdamW's decay of the second moment", INTO(struct sft_options, beta2)},      \
    {section, "eps", OPT_REAL, "1e-8", "AdamW's epsilon", INTO(struct sft_options, eps)},                             \
    {section, "moments", OPT_BOOL, "false",                                                                           \
     "begin with the moments that the model was trained with (RUN/model of a run here)", INTO(struct sft_options,     \
     moments)},                                                                                                       \
    {section, "changed-weight", OPT_REAL, "1", "weight of the tokens that a repair changes; the others have 1",       \
     INTO(struct sft_options, changed_weight)},                                                                       \
    {section, "grad-clip", OPT_REAL, "1", "largest gradient norm; 0: no limit", INTO(struct sft_options,              \
     grad_clip)},                                                                                                     \
    {section, "val-share", OPT_REAL, "0.05", "share of the training graphs kept for the validation loss",             \
     INTO(struct sft_options, val_share)},                                                                            \
    {section, "val-every", OPT_INT, "50", "steps between validations", INTO(struct sft_options, val_every)},          \
    {section, "val-max", OPT_INT, "64", "validation examples at most", INTO(struct sft_options, val_max)},            \
    {section, "save-every", OPT_INT, "100", "steps between checkpoints", INTO(struct sft_options, save_every)}

/* Of the rows above, and of each command's own that are bound to struct sft_options. */
int sft_options_of(const struct opts *o, struct sft_options *ret, struct err *e);

#endif
