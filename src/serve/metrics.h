/* metrics.h - what the server counts, as Prometheus text. One lock; a handful of numbers. */
#ifndef MC_SERVE_METRICS_H
#define MC_SERVE_METRICS_H

#include <jansson.h>

#include "base/buf.h"
#include "queue/queue.h"

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

void metrics_verdict(struct metrics *m, int state, const json_t *verdict); /* a job ended; NULL: it failed */
void metrics_request(struct metrics *m, const char *route);                /* a static string */
void metrics_refused(struct metrics *m, int status);
void metrics_queue(struct metrics *m, const struct queue_stats *st, int workers);

void metrics_print(struct metrics *m, struct buf *out); /* text format 0.0.4 */
json_t *metrics_json(struct metrics *m);                /* new: the same for the dashboard */

#endif
