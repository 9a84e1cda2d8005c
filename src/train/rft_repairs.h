/* rft_repairs.h - repair dialogues out of a group of samples of one prompt: a failure, the judge's words, and the lines
 * that make a sample that passed of it. The model's own failures, mended by the model's own answers: nothing is told
 * that the group does not hold. */
#ifndef MC_TRAIN_RFT_REPAIRS_H
#define MC_TRAIN_RFT_REPAIRS_H

#include "train/data.h"
#include "train/rft.h"
#include "train/rollout.h"

/* A new array of records of kind "own", empty without o->repairs: each failure once, where a sample that passed in turn
 * 1 is at most MEND_LINES lines away (task/repair_text.h). Reads seed, style and repairs of the options. */
json_t *rft_repairs(const struct rft_options *o, const struct prompt_item *p, const struct rollout_group *g);

#endif
