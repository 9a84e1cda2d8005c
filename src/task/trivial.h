/* trivial.h - the null battery: answers that need no work. A task that one of them passes asks for nothing.
 *
 * One case is one output of one draw, as doubles in row-major order. An answer counts as passing only if the caller's
 * judge takes it in every case in which it can be given. Synthesis asks it of its own graphs, lint of any task.
 * Pure. */
#ifndef MC_TASK_TRIVIAL_H
#define MC_TASK_TRIVIAL_H

#include <stdbool.h>
#include <stddef.h>

enum trivial {
    TRIVIAL_ZEROS,
    TRIVIAL_ONES,
    TRIVIAL_CONSTANT, /* the mean of the expected values everywhere; not for a single value */
    TRIVIAL_INPUT,    /* an input of as many elements, unchanged */
    TRIVIAL_STALE,    /* the answer to the draw before */
    TRIVIAL_NAN,      /* memory that was never written, as the judge poisons it */
    N_TRIVIAL
};

const char *trivial_name(enum trivial k); /* "zeros", "ones", "a constant", "the input", "the last answer", "nan" */

struct trivial_case {
    const double *want;
    size_t n;
    const double *input; /* n values; NULL: no input has as many */
    const double *last;  /* n values; NULL: this is the first draw, TRIVIAL_STALE is not asked */
};

/* Fills out[n]. False if there is no such answer. */
bool trivial_answer(enum trivial k, const struct trivial_case *c, double *out);

struct battery {
    int asked[N_TRIVIAL], passed[N_TRIVIAL]; /* zeroed at the start */
};

/* Gives the judge every answer that has not failed yet. */
void battery_run(struct battery *b, const struct trivial_case *c,
                 bool (*passes)(enum trivial k, const double *got, void *ctx), void *ctx);
bool battery_passed(const struct battery *b, enum trivial k);

#endif
