/* serve_metrics.h - what the server counts, as Prometheus text. One lock; a handful of numbers. */
#ifndef MC_SERVE_SERVE_METRICS_H
#define MC_SERVE_SERVE_METRICS_H

#include <jansson.h>

#include "base/buf.h"
#include "queue/queue.h"

struct serve_metrics;

struct serve_metrics *metrics_new(void);
void metrics_free(struct serve_metrics *m);

void metrics_verdict(struct serve_metrics *m, int state, const json_t *verdict); /* a job ended; NULL: it failed */
void metrics_request(struct serve_metrics *m, const char *route);          /* a static string */
void metrics_refused(struct serve_metrics *m, int status);
void metrics_queue(struct serve_metrics *m, const struct queue_stats *st, int workers);

void metrics_print(struct serve_metrics *m, struct buf *out); /* text format 0.0.4 */
json_t *metrics_json(struct serve_metrics *m);          /* new: the same for the dashboard */

#endif
