/* lr_schedule.h - learning rate by step, and when a validation curve has gone flat. Pure. */
#ifndef MC_TRAIN_LR_SCHEDULE_H
#define MC_TRAIN_LR_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* SCHED_WSD: constant, then linear over the last SCHED_DECAY of the steps. */
enum schedule_kind { SCHED_CONSTANT, SCHED_LINEAR, SCHED_COSINE, SCHED_WSD };
#define SCHED_DECAY 0.15

struct lr_schedule {
    enum schedule_kind kind;
    double peak;      /* learning rate after warm-up */
    double warmup;    /* share of the steps, e.g. 0.03 */
    double floor;     /* final rate as a share of peak (linear, cosine, wsd) */
    int64_t steps;
};

int schedule_check(const struct lr_schedule *s, struct err *e); /* ERR_INPUT unless 0 < peak <= 1, the shares in 0..1 */
int schedule_kind_of(const char *name, enum schedule_kind *ret, struct err *e); /* "constant" "linear" "cosine" "wsd" */

/* Step counts from 0; warm-up step s of w has rate peak (s + 1) / w, so no step has rate 0. w = ceil(warmup steps). */
double schedule_lr(const struct lr_schedule *s, int64_t step);
/* Factor of the rate where warm-up goes by optimiser updates, several of which share a step: (update + 1) / warm, at
 * most 1. Update counts from 0. */
double schedule_warm(int64_t update, int64_t warm);

/* The curve is flat when the last 'patience' values (at least 1) have lowered its best by no more than the share tol of
 * what there is to compare with: the larger of the best before them and of the whole fall since loss[0]. A share of the
 * level alone never ends for losses that go towards 0, where each step is a small share of the way and a large one of
 * what is left; a share of the fall alone never ends for a run that starts at its floor. Fewer than patience + 1 values
 * are never flat, nor are values that are not finite. */
bool plateau_reached(const double *loss, size_t n, size_t patience, double tol);

#endif
