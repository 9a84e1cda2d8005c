/* advantage.h - group-relative advantages (GRPO, DeepSeekMath section 4.1; RLOO; Dr. GRPO).
 *
 * With r_i the rewards of the valid samples of one prompt, n of them, mean m:
 *   grpo     A_i = (r_i - m) / (s + eps), s the sample standard deviation (n - 1)
 *   rloo     A_i = r_i - mean_{j != i} r_j = (r_i - m) n / (n - 1)
 *   dr_grpo  A_i = r_i - m
 * Equal rewards (to 1e-12 of their size) give A = 0 exactly, whatever their mean rounds to.
 * A sample whose verdict is infra or unsupported (valid[i] false) leaves the group: it takes no part in m, s or n and
 * gets A = 0.
 * A group with fewer than two valid samples carries no signal and is skipped. */
#ifndef MC_ADVANTAGE_H
#define MC_ADVANTAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum advantage_kind { ADV_GRPO, ADV_RLOO, ADV_DR_GRPO };
#define ADVANTAGE_EPS 1e-6

int advantage_kind_of(const char *name, enum advantage_kind *ret, struct err *e); /* "grpo" "rloo" "dr_grpo" */

/* reward, valid, adv: n entries; valid may be NULL (all valid). Fills adv. Returns the number of valid samples used,
 * 0 when the group is skipped (adv all 0), -1 when a valid reward is not finite (adv untouched). */
int advantage_group(enum advantage_kind kind, double eps, const double *reward, const bool *valid, size_t n,
                    double *adv, struct err *e);

#endif
