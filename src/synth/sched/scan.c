/* scan.c - schedules of scans: running sums and products along an axis. */
#include "synth/sched/sched.h"

const struct sched sched_scan_rows[] = {{0}};
