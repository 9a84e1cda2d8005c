/* surface_wiring.h - bugs of several lines in public programs: what is handed from forward() over the module's function
 * to its kernel, and does not fit along that way. Of 269 failures of SmolLM2 after SFT, tasks of unseen operators left
 * out, 92 differ from a right program in four to six lines, and most of these are of this sort: a parameter is used and
 * handed to nobody, or handed on and there is none, or a function has its neighbour's name
 * (docs/internals/synth.md, Repairs). Pure text. */
#ifndef MC_SYNTH_SURFACE_WIRING_H
#define MC_SYNTH_SURFACE_WIRING_H

#include "base/rng.h"

/* Each returns the program with one such bug, or NULL where it has no place for it. The caller frees. */
typedef char *surface_wiring(struct rng *r, const char *program);

/* A parameter of a kernel goes from its signature, the function's, the launch and the call; its use stays. */
surface_wiring surface_wiring_drop;
/* A parameter more in these four places: forward reads an attribute for it that is not there. */
surface_wiring surface_wiring_add;
/* A function is bound and called by the name of another operator. */
surface_wiring surface_wiring_rename;
/* The sizes of a convolution's result are computed as a transposed one's, or the other way round. */
surface_wiring surface_wiring_sizes;

#endif
