/* train_opts.h - option readers that more than one training command uses. */
#ifndef MC_TRAIN_OPTS_H
#define MC_TRAIN_OPTS_H

#include "base/opt.h"
#include "train/sft.h"

/* Rows as in cmd_sft.c; 'rft' has them too, because its second half is an SFT on the mixture. */
int sft_options_of(const struct opts *o, struct sft_options *ret, struct err *e);

#endif
