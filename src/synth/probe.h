/* probe.h - the registry under test: drawn uses of each operator as tasks, as programs of every schedule that
 * fits, and as numbers (inputs and what the fp64 reference says) to compare with PyTorch and with the loop IR. */
#ifndef MC_SYNTH_PROBE_H
#define MC_SYNTH_PROBE_H

#include "base/err.h"

struct probe_options {
    const char *out;      /* folder: OP_0003.py and programs OP_0003.SCHEDULE.py; NULL: no programs */
    const char *values;   /* JSON Lines for comparison with PyTorch; NULL: none */
    const char *ops;      /* comma-separated names or families, or "graphs"; NULL: all */
    int tasks;            /* uses of each operator */
    int max_numel;
    unsigned long long seed;
    unsigned dtypes;      /* mask of enum dtype */
};

struct probe_stats {
    int ops, tasks, programs, wrong; /* wrong: the loop IR disagrees with the reference */
};

/* Every use is also evaluated through the loop IR, before and after collapsing; disagreement is logged and counted. */
int probe_write(const struct probe_options *o, struct probe_stats *ret, struct err *e);

#endif
