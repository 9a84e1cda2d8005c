/* corpus.h - from options to the files of record.h: plan, inject bugs, verify, write.
 *
 * What is written depends on the options and the verdicts only. Interrupting is safe: files appear at the end,
 * complete,
 * and verdicts are journaled and cached, so a rerun continues where this one stopped. */
#ifndef MC_SYNTH_CORPUS_H
#define MC_SYNTH_CORPUS_H

#include "synth/plan.h"
#include "synth/verify.h"

struct corpus_options {
    struct plan_options plan;
    const char *out;
    const char *values; /* NULL, or a path for values_write */
    int knowledge;  /* knowledge records wanted */
    double repairs; /* mutants made per training task; those that the judge convicts become repair dialogues */
    struct verify_options verify; /* journal is filled in by corpus_make */
    /* verify_all, or another judge in tests; NULL keeps everything unverified and makes no repairs */
    int (*judge)(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e);
};

struct corpus_stats {
    int train, repairs, knowledge, heldout, prompts, rejected; /* train includes repairs and knowledge */
};

int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e);

#endif
