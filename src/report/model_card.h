/* model_card.h - what a model came from and what it can do, as the README.md of its folder: Markdown with Hugging
 * Face's metadata in front. Every figure is the run folder's own; what the run did not measure is not said. */
#ifndef MC_REPORT_MODEL_CARD_H
#define MC_REPORT_MODEL_CARD_H

#include "base/buf.h"
#include "base/err.h"

/* run: a folder of 'musacoder run' that has ended (recipe.yaml, summary.json, data/stats.json if it made a corpus);
 * ERR_INPUT otherwise. version: of the program that writes the card. */
int model_card_build(const char *run, const char *version, struct buf *out, struct err *e);

#endif
