/* ncu.h - what Nsight Compute says of kernels, from its CSV (page "details"), and what follows from it.
 *
 * The format is the one that 'ncu --csv' documents: lines "==PROF== ..", a header with "Kernel Name", "Metric
 * Name", "Metric Unit" and "Metric Value", one line for each kernel and metric; numbers may have thousands
 * separators. */
#ifndef MC_SYNTH_NCU_H
#define MC_SYNTH_NCU_H

#include <jansson.h>

#include "base/err.h"

/* New array: [{"kernel":"k(const float *, ..)","block":"(256, 1, 1)","grid":..,"metrics":[{"name","unit","value"}]}],
 * a row for each launch. ERR_INPUT names the line that does not fit. */
json_t *ncu_parse(const char *text, size_t n, const char *what, struct err *e);

double ncu_metric(const json_t *kernel, const char *name, const char *unit); /* NaN: it is not there */

/* "memory", "compute", "latency", or "unknown" where throughputs are missing. A side that reaches NCU_BUSY percent of
 * its peak limits the kernel; the larger one, if both do; below, time goes into waiting. */
#define NCU_BUSY 60.0
const char *ncu_bound(const json_t *kernel);

/* FOLDER has NAME.csv (of 'musacoder replay --profile NAME.csv') and NAME.py, the program; a record also holds the task
 * where there is NAME.task, and can then be made again. Writes
 * OUT/data/train-00000.jsonl with one record of kind "profile" for each kernel, OUT/report.json with counts. */
struct ncu_stats {
    int files, kernels, memory, compute, latency, unknown;
};
int ncu_records(const char *folder, const char *out, struct ncu_stats *ret, struct err *e);

#endif
