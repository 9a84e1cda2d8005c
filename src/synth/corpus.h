/* corpus.h - a small, whole corpus for one model: training records, repair dialogues, prompts without an answer, and
 * held-out tasks in five splits. (For records in any number see stream.h.)
 *
 * OUT/train.jsonl     records of training_record.h: generate, knowledge, repair
 * OUT/prompts.jsonl   what reinforcement learning asks; OUT/oracle.jsonl answers it (kind "oracle"), for controls
 * OUT/harvest.jsonl   tasks with answers in several strategies: a model's own failures are collected on them
 * OUT/heldout.jsonl   a reference solution of each held-out task, OUT/tasks/heldout/SPLIT_0007.py the tasks
 * OUT/rejected.jsonl  what the judge did not pass, and mutants that it did; OUT/stats.json
 *
 * OUT becomes a folder of ours (base/folder.h): one that holds anything else is refused. A former corpus there goes,
 * which is said where it was made with other options; what somebody has changed or put there stays (base/listing.h).
 * What is written depends on the options and the verdicts only. Interrupting is safe: files appear at the end,
 * complete, and verdicts are journaled and cached, so a rerun continues where this one stopped. */
#ifndef MC_SYNTH_CORPUS_H
#define MC_SYNTH_CORPUS_H

#include "synth/problem.h"
#include "synth/verify.h"

struct corpus_options {
    struct problem_options problem;
    const char *out;
    int tasks, per_task; /* training tasks; programs of each, of different strategies */
    int prompts, harvest, answers; /* tasks of these two sides; answers to each of them */
    int heldout;         /* tasks of each split */
    int knowledge;       /* knowledge records */
    double repairs;      /* mutants made per training task, on tasks of their own */
    double verify_share; /* of programs of training, harvest, prompts, parents of mutants; held-out, mutants always */
    struct verify_options verify; /* log is filled in by corpus_make */
    /* verify_all, or another judge in tests; NULL keeps everything unverified and makes no repairs */
    int (*judge)(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e);
};

struct corpus_stats {
    int train, repairs, knowledge, heldout, prompts, harvest, rejected; /* train includes repairs and knowledge */
};

int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e);

#endif
