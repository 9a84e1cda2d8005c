/* values.h - what the fp64 interpreter says every task of a plan computes, for comparison with PyTorch. */
#ifndef MC_SYNTH_VALUES_H
#define MC_SYNTH_VALUES_H

#include "synth/plan.h"

/* One line per task and regime:
 * {"task","code","regime","inputs":[[..]],"parameters":[[..]],"shape":[..],"output":[..]};
 * tensors are flat, row-major. */
int values_write(const struct plan *p, const char *path, struct err *e);

#endif
