/* rft.h - diversity-preserving rejection fine-tuning, the data half: sample several answers for each training prompt,
 * keep what MooreEval passes, cluster the correct programs of a prompt, draw one of each cluster.
 *
 * With 'repairs' the failures of a prompt are kept too where a sample that passed is a few lines away: records of kind
 * "own", dialogues in which the judge's words are answered by the lines that change.
 *
 * Writes out/rft.jsonl (records of kind "rft", see synth/training_record.h; and "own") and out/rft_stats.json:
 * acceptance in all and per family, the effective number of strategies per prompt before and after; and
 * out/groups.jsonl: how often each prompt passed, which RL begins with (asker.h). The learning half is sft.h on a
 * mixture. */
#ifndef MC_TRAIN_RFT_H
#define MC_TRAIN_RFT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "task/prompt.h"

struct rft_options {
    const char *model, *data, *out, *metrics; /* data: prompts.jsonl */
    const char *stage;                        /* name in metrics.jsonl; NULL: "rft" */
    int64_t prompts;      /* how many prompts of the shuffled file; 0: all */
    int samples;          /* of each prompt */
    int max_new, chunk;   /* prompts sampled together; a chunk is the unit of resuming */
    int max_keep;         /* programs kept of one prompt at most */
    int keep_min, keep_max; /* prompts with so many passes are kept; 0: at least 1; no upper limit */
    double temperature, threshold; /* cluster.h */
    bool repairs;           /* failures with a near success become dialogues */
    enum prompt_style style; /* of the judge's words in them */
    const json_t *verdict;
    int workers, jobs;
    uint64_t seed;
    const json_t *claim;  /* all options as the user sees them, for run_claim; may be NULL */
    const char *device, *dtype; /* of model_to_device; NULL: the host */
};

/* Continues with the first chunk that is not done. ERR_STOP after Ctrl-C. */
int rft_check(const struct rft_options *o, struct err *e); /* ERR_INPUT for options that rft_collect would refuse */
int rft_collect(const struct rft_options *o, struct err *e);

#endif
