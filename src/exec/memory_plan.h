/* memory_plan.h - what judging a streamed task needs on the device at once, and what that leaves for the candidate.
 * Pure.
 *
 * Nothing is kept that can be made again (eval/reference/streamed.h). From a recording's first call to its end there
 * are
 *   judge      one set of inputs, a tile of expected values, a tile of an output
 *   reference  what its process needs while it makes expected values: beside them what the candidate holds stays mapped
 *   timing     in the reference's place: its model at rest, and the baseline's (two while it is made) with what forward
 *              has alive
 *   life       what the candidate holds: parameters, outputs, workspace
 * and a context each of judge, executor, reference and baseline. So what a recording may hold is what the others leave:
 * a program that wants more is out of memory by itself, whatever is on the device at that time. Candidate and baseline
 * are timed beside each other, always. A reference that takes more than it must (all in double) leaves a recording
 * twice what it needs, or makes expected values in smaller parts. Sizes are lab/task_sizes.py's or a reference's own
 * account; of a library's workspaces only what the reference was seen to need is in them. */
#ifndef MC_EXEC_MEMORY_PLAN_H
#define MC_EXEC_MEMORY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct plan_sizes {          /* bytes */
    uint64_t inputs;         /* one set, all tensors */
    uint64_t state;          /* parameters and buffers of one model */
    uint64_t outputs;        /* one set */
    uint64_t eager_peak;     /* alive at most in the reference's forward, outputs included; 0: twice the outputs */
    uint64_t reference_peak; /* of the reference's process, as it was seen; 0: as expected */
};

#define PLAN_CONTEXT ((uint64_t)512 << 20) /* of a process on the device: measured on an H100, driver 580 */
#define PLAN_CONTEXTS 4                    /* judge, executor, reference, baseline */
#define PLAN_TILE ((uint64_t)256 << 20)    /* of values that are compared: keeps the device busy */
#define PLAN_SLACK 64                      /* 1/64 of the memory is lost to fragments of 2 MiB handles */

struct memory_plan {
    uint64_t usable;    /* of the device, without contexts and fragments */
    uint64_t judge, reference, timing;
    uint64_t recording; /* 0 where nothing is left */
    uint64_t least;     /* of a recording: parameters and outputs */
    bool fits;          /* life >= least */
};

void memory_plan_make(const struct plan_sizes *s, uint64_t device_memory, struct memory_plan *ret);
/* "a candidate may hold 52.1 of 76.8 GiB, and needs 12.0" */
void plan_text(const struct memory_plan *p, struct buf *out);

/* ---- tiles ---- */

/* n elements in parts of at most PLAN_TILE bytes, whole rows of 'row' elements where a row fits into a tile. */
struct plan_tiles {
    int64_t n, per; /* elements: all, of one tile but the last */
};

struct plan_tiles plan_tiles_make(int64_t n, int64_t row, uint64_t element_bytes);
int64_t plan_tiles_count(const struct plan_tiles *t);
/* Elements [*ret_from, *ret_from + returned) of tile i. */
int64_t plan_tile(const struct plan_tiles *t, int64_t i, int64_t *ret_from);

#endif
