/* surface_mutate.h - a line, or a few, of a public program as models get them wrong. The kinds are those of what a
 * pretrained model of 135 million weights got wrong after SFT (docs/internals/synth.md, Repairs): calls in forward(),
 * names that are not there, statements of another operator, parameters that are not handed on (surface_wiring.h).
 * Whether a mutant is wrong is for the judge to say. */
#ifndef MC_SYNTH_SURFACE_MUTATE_H
#define MC_SYNTH_SURFACE_MUTATE_H

#include "base/rng.h"

struct surface_mutation {
    const char *name;
    const char *reason; /* a clause: what is wrong then */
};

/* The program with one line changed, or gone, or with a few that do not fit together and how; NULL if no kind
 * applies. Caller frees. */
char *surface_mutate(const char *program, struct rng *r, const struct surface_mutation **ret);

#endif
