/* train_metrics.h - metrics.jsonl of a run folder: one flat JSON object a line, {"stage","step","time_s", name:
 * number..}. A resumed stage first drops its own lines from the step on where it continues, so that no step appears
 * twice. Steps whose rows are gone are told: they cannot be made again. */
#ifndef MC_TRAIN_TRAIN_METRICS_H
#define MC_TRAIN_TRAIN_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct train_metrics {
    char *path;
    const char *stage; /* borrowed */
    double start;      /* now_s() minus the time spent before the resume */
};

/* Opens run/metrics.jsonl, or apart/metrics.jsonl, for a stage that continues with step 'from' after 'spent' seconds.
 * apart: NULL, or a folder of curves; ERR_INPUT where it is of somebody else, or of another training. */
int metrics_open(struct train_metrics *m, const char *run, const char *apart, const char *stage, int64_t from,
                 double spent, struct err *e);
void metrics_close(struct train_metrics *m);
double metrics_seconds(const struct train_metrics *m); /* time of the stage so far, resumed parts summed */

json_t *metrics_line(const struct train_metrics *m, int64_t step); /* new: stage, step, time_s */
void metrics_set(json_t *line, const char *name, double value);
int metrics_write(const struct train_metrics *m, json_t *line, struct err *e); /* steals line */

#endif
