/* card.h - the dataset card of a folder of shards: README.md as Hugging Face reads it, with statistics and plots.
 *
 * Summed from OUT/stats/NNNNN.json, so that any process may write it; the same shards give the same bytes. The head
 * says which files are which split, so that datasets.load_dataset(OUT) reads the folder. */
#ifndef MC_SYNTH_CARD_H
#define MC_SYNTH_CARD_H

#include <jansson.h>

#include "base/err.h"

/* Writes OUT/README.md, OUT/plots/difficulty.svg and OUT/plots/schedules.svg by listing_replace, and adds their
 * SHA-256 to hashes. shards: how many there are. */
int card_write(const char *out, long shards, json_t *hashes, struct err *e);

#endif
