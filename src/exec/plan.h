/* plan.h - what judging one task needs on the device at once, and what that leaves for the candidate. Pure.
 *
 * Nothing is kept that can be made again: inputs are drawn by a counter-based generator (device_fill) and checked by a
 * sum (device_checksum), expected values are made, compared and dropped in turn, the reference gives its memory back
 * while a candidate runs. So at once there are
 *   call     both models' state, one set of inputs, the candidate's outputs, and what it allocates besides (W)
 *   expect   both states, the inputs, the candidate's outputs (W is unmapped), what the reference's forward has alive
 *   compare  the candidate's outputs, the expected ones, and one tile of marks
 *   oracle   before any candidate: state and inputs in their own precision and in double, forward's memory in double,
 *            the reference's own outputs and the first oracle's. In tiles of rows where that is more than there is
 *   time     a call of the candidate and forward of the baseline, beside each other if they fit, else in turns
 * Sizes are of lab/task_sizes.py or of a reference's own account; a library's workspaces are not in them. */
#ifndef MC_EXEC_PLAN_H
#define MC_EXEC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct plan_sizes {      /* bytes */
    uint64_t inputs;     /* one set, all tensors */
    uint64_t state;      /* parameters and buffers of one model */
    uint64_t outputs;    /* one set */
    uint64_t eager_peak; /* alive at most in the reference's forward, outputs included; 0: twice the outputs */
    int64_t rows;        /* of independent rows that inputs and outputs begin with; 0: none are known */
    bool is_double;      /* the task is in double itself: its oracle is the reference */
};

#define PLAN_CONTEXT ((uint64_t)512 << 20) /* of a process on the device: measured on an H100, driver 580 */
#define PLAN_TILE ((uint64_t)256 << 20)    /* of marks and of rows that are compared: keeps the device busy */
#define PLAN_SLACK 64                      /* 1/64 of the memory is lost to fragments of 2 MiB handles */

struct plan_device {
    uint64_t memory; /* bytes of the device, nothing else on it */
    int contexts;    /* processes with a context there: judge, executor, reference: 3 */
};

enum plan_phase { PLAN_CALL, PLAN_EXPECT, PLAN_COMPARE, PLAN_ORACLE, PLAN_TIME, PLAN_PHASES };
extern const char *const plan_phase_name[PLAN_PHASES];

enum plan_oracle {
    ORACLE_WHOLE,
    ORACLE_TILES, /* oracle_tiles parts of the rows, one after the other */
    ORACLE_SMALL  /* of a smaller task: its noise holds for this one, whose expected values are the reference's */
};

struct plan {
    bool fits;              /* call, expect and compare do, with at least nothing for W */
    uint64_t usable;        /* bytes that the phases share */
    uint64_t need[PLAN_PHASES]; /* without W; oracle: of one tile; time: of the larger turn where there are turns */
    enum plan_phase worst;  /* the largest of call, expect and compare */
    uint64_t candidate;     /* W: bytes that a candidate may allocate besides its outputs; more is its own fault */
    enum plan_oracle oracle;
    int64_t oracle_tiles;   /* 1 with ORACLE_WHOLE */
    bool timed_together;    /* candidate and baseline lie on the device at once with W = together */
    uint64_t together;      /* W then; a candidate that took more is timed in turns with the baseline */
};

void memory_plan_make(const struct plan_sizes *s, const struct plan_device *d, struct plan *ret);
/* "16.5 of 76.8 GiB in expect; a candidate may allocate 52.1 GiB; oracle whole; timed together up to 40.2 GiB" */
void plan_text(const struct plan *p, struct buf *out);

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
