/* watch.h - a training run while it goes on: curves of its metrics.jsonl as a page that loads itself again, and as
 * text.
 *
 * Both are pure functions of the file's lines and of the time since the last one. A last line that is being written
 * is left out. */
#ifndef MC_REPORT_WATCH_H
#define MC_REPORT_WATCH_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* The lines of RUN/metrics.jsonl as an array; ERR_INPUT where there is none. *ret_idle: seconds since it grew. */
int watch_read(const char *run, json_t **ret_lines, double *ret_idle, struct err *e);

/* The data of a page (report/page.h) that loads itself again every 'every' seconds, 0: never. New. */
json_t *watch_data(const char *run, const json_t *lines, double idle, int every);

/* A line for each quantity of the newest stage: name, last value, mean of the last ten (recently), its course in
 * 'width' characters. */
void watch_text(struct buf *out, const char *run, const json_t *lines, double idle, int width);

#endif
