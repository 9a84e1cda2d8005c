/* emit.h - a loop nest and a schedule become CUDA text: the holes of sched.h are filled here. */
#ifndef MC_SYNTH_EMIT_H
#define MC_SYNTH_EMIT_H

#include "base/buf.h"
#include "synth/sched/sched.h"

enum size_style { SIZES_LITERAL, SIZES_CONSTEXPR, SIZES_PARAMS };

/* Where a nest stands in a program. */
struct placing {
    const char *kernel;              /* name of its kernel */
    const char *name[NEST_OPERANDS]; /* of its operands, in host and kernel */
    const char *out;                 /* of its result, in the host; the kernel says "out" */
    int tuned[3];                    /* choices for $B $C $D */
    enum size_style sizes;
    bool terse;
};

/* Appends kernels (with helpers) to device, and to host: the result's allocation and the launches. The nest must be
 * collapsed; the schedule must fit. */
void emit_nest(const struct nest *k, const struct sched *s, const struct placing *p, struct buf *device,
    struct buf *host);
/* "auto out = torch::empty(..);": goes in front. */
void emit_allocation(const struct nest *k, const struct sched *s, const struct placing *p, struct buf *host);

extern const char *const c_types[N_DTYPES]; /* "float", "at::Half", .. */

#endif
