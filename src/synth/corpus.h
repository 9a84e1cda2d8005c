/* corpus.h - from options to the files of record.h: plan, verify, inject bugs, write.
 *
 * What is written depends on the options and the verdicts only. Interrupting is safe: files appear at the end, complete,
 * and verdicts are cached, so a rerun continues where this one stopped. */
#ifndef MC_SYNTH_CORPUS_H
#define MC_SYNTH_CORPUS_H

#include "synth/plan.h"

struct corpus_options {
    struct plan_options plan;
    const char *out;
    double repairs; /* repair dialogues wanted per training task */
    bool verify;    /* false: keep everything unverified, for development of what reads the files */
    int jobs;       /* verifier workers */
    const char *backend, *jail;
};

struct corpus_stats {
    int train, heldout, prompts, repairs, rejected;
};

int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e);

#endif
