/* cost.h - a static estimate of what a list of kernels costs: to tell slow programs from fast ones without a GPU.
 *
 *   us = sum over kernels of  LAUNCH_US + max(bytes / BYTES_US, steps * waves * STEP_US)
 *
 * bytes: what the kernel's loads and its store ask of memory, after the reuse that its schedule has by construction
 * (tiles, registers, shuffles); caches are left out. steps: loop iterations that follow one another in the busiest
 * thread. waves: how often the device's resident threads must be filled. The constants are those of a large GPU in
 * round numbers. It is an estimate of the loop IR: nobody's measurement, and records that use it say "static". */
#ifndef MC_SYNTH_COST_H
#define MC_SYNTH_COST_H

#include "synth/fuse.h"

#define COST_LAUNCH_US 4.0
#define COST_BYTES_US 2e6
#define COST_STEP_US 0.02
#define COST_RESIDENT 200000

struct cost {
    int kernels;
    int64_t bytes; /* of all kernels */
    int64_t steps; /* of the longest kernel */
    double us;
};

struct cost cost_of(const struct kernels *k);

#endif
