/* schedule.h - learning rate by step, and when a validation curve has gone flat. Pure. */
#ifndef MC_SCHEDULE_H
#define MC_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum schedule_kind { SCHED_CONSTANT, SCHED_LINEAR, SCHED_COSINE };

struct schedule {
    enum schedule_kind kind;
    double peak;      /* learning rate after warm-up */
    double warmup;    /* share of the steps, e.g. 0.03 */
    double floor;     /* final rate as a share of peak (linear, cosine) */
    int64_t steps;
};

int schedule_kind_of(const char *name, enum schedule_kind *ret, struct err *e); /* "constant" "linear" "cosine" */

/* Step counts from 0; warm-up step s of w has rate peak (s + 1) / w, so no step has rate 0. w = ceil(warmup steps). */
double schedule_lr(const struct schedule *s, int64_t step);

/* The curve is flat when the best of the last 'patience' values is not below the best of those before them by more
 * than the share tol. Fewer than patience + 1 values are never flat. */
bool plateau_reached(const double *loss, size_t n, size_t patience, double tol);

#endif
