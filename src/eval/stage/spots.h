/* spots.h - a few elements of each timed output of a streamed task, at places that nobody knew before the call ended.
 * They are kept, and some calls' are compared later: their inputs are made again from the seed, and the reference's own
 * answer to them. So no timed output is kept, and each call may be the one that is looked at. Inside src/eval only. */
#ifndef MC_EVAL_SPOTS_H
#define MC_EVAL_SPOTS_H

#include "base/rng.h"
#include "eval/stage/stage.h"

struct spots_call;

struct spots {               /* zeroed but for rng, which the caller seeds */
    struct rng rng;
    struct spots_call *v;    /* owned */
    size_t n;
    int checked, wrong;
    json_t *worst;           /* the first wrong one: the record's "worst"; owned */
};

/* Of a call that has just ended, on inputs of that seed (streamed_fresh); output: recording.h's tree. -1: infra. */
int spots_take(struct spots *s, struct job *j, uint64_t seed, const json_t *output, struct err *e);
/* Compares some calls', at least two, eight at most, within two seconds. base: the draw that their inputs are like.
 * The area then holds other values. -1: infra. */
int spots_check(struct spots *s, struct job *j, const struct ref_draw *base, struct err *e);
void spots_free(struct spots *s);

#endif
