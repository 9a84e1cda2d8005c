/* stage_perf.h - stage performance: a candidate's log is timed (stage_perf_replay.c). Inside src/eval only. */
#ifndef MC_EVAL_STAGE_PERF_H
#define MC_EVAL_STAGE_PERF_H

#include "device/device.h"
#include "eval/job.h"
#include "eval/perf.h"

/* NVML's clock event reasons that mean a device in trouble: hardware slowdown, software thermal, hardware thermal,
 * power brake. A power cap is no trouble: it is how a device runs at full load. */
#define PERF_TROUBLE (0x8u | 0x20u | 0x40u | 0x80u)

/* Opens ev->timer, the judge's own device, if it is not open. */
int perf_open_device(struct eval *ev, const struct backend *b, struct err *e);
struct perf_device perf_limits(const struct device_info *d, const char *dtype, bool tf32);
json_t *perf_health_json(const struct device_health *h);
/* Why there are no times although there should be: not the candidate's fault, and no reward for speed. */
json_t *perf_untimed(const struct err *why);
/* The stage where the candidate's log is timed. -1: infra. */
int perf_by_replay(struct job *j, struct err *e);

#endif
