/* harvest.h - a model's own failures as repair dialogues: it answers tasks, MooreEval judges, and each failure becomes
 * a record of kind "own": task, the model's program, the judge's words, the faulty line and the program mended.
 *
 * The mended program is the one of the task's answers that shares most tokens with the failure: the same strategy, so
 * that the judge's words and the failure decide what changes, not a change of mind. The tasks are a set of their own:
 * no record answers them, so what is learned is to mend, not to recall.
 *
 * Writes out/own.jsonl and out/harvest_stats.json. */
#ifndef MC_TRAIN_HARVEST_H
#define MC_TRAIN_HARVEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "task/prompt.h"

struct harvest_options {
    const char *model, *data, *out; /* data: harvest.jsonl, records of kind "generate", several a task */
    int64_t tasks;                  /* how many, in the file's order; 0: all */
    int samples;                    /* of each task */
    int max_new, chunk;             /* tasks sampled together; a chunk is the unit of resuming */
    double temperature;
    enum prompt_style style;
    /* above 0: answers are edits of at most so many lines; what is further off is left out */
    bool edits;                     /* answers are lines (mend_edits); what MEND_LINES lines do not mend is left out */
    const json_t *verdict;
    int workers, jobs;
    uint64_t seed;
    const char *device, *dtype;     /* of model_to_device; NULL: the host */
};

/* Continues with the first chunk that is not done. ERR_STOP after Ctrl-C. */
int harvest_collect(const struct harvest_options *o, struct err *e);

#endif
