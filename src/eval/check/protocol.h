/* protocol.h - what differs between protocols: a row each. Stages ask the row and never the name. */
#ifndef MC_EVAL_PROTOCOL_H
#define MC_EVAL_PROTOCOL_H

#include "eval/check/tolerance.h"

struct protocol {
    const char *name;
    bool binds_params; /* the judge draws parameters and binds them; else both models draw them from one seed */
    bool sidecar;     /* a sidecar's regimes, variants and tolerances hold */
    bool stops_early; /* the trials end where no other draw changes the verdict; slow programs get fewer */
    bool operators;   /* torch's operators and vendors' libraries may do the work; legality says that they did */
    bool published;   /* as KernelBench runs: torch's own TF32 defaults, its number of timed calls */
    /* out, low, n: as for tolerance_strict; own: NULL if there is none, or the protocol knows none. */
    struct tolerance (*tolerance)(enum dtype out, enum dtype low, const struct noise *n,
                                  const struct own_tolerance *own);
};

const struct protocol *protocol_find(const char *name); /* NULL if there is none */

#endif
