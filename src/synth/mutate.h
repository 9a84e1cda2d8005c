/* mutate.h - bug injection: rewrites of a correct program that a person could have slipped into (research catalogue of
 * 50 bug kinds). Whether a mutant is really wrong is for the judge to say: undetected ones are logged, never used. */
#ifndef MC_SYNTH_MUTATE_H
#define MC_SYNTH_MUTATE_H

#include "base/buf.h"
#include "base/rng.h"

enum bug_class { BUG_COMPILE, BUG_RUN, BUG_VALUE }; /* what it is expected to cause; the verdict decides */

/* Number of bug kinds, and the name of one. */
int mutate_kinds(void);
const char *mutate_name(int kind);
enum bug_class mutate_class(int kind);

/* Applies one bug of this kind to a plain-style program at a random place. false: nothing here to break this way. */
bool mutate_apply(int kind, struct rng *r, const char *program, struct buf *out);

/* Picks an applicable kind, the rarer so far the likelier (count has one entry per kind and is updated), and applies
 * it. Returns the kind, or -1 if none applies. */
int mutate_any(struct rng *r, int *count, const char *program, struct buf *out);

#endif
