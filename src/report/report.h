/* report.h - report.html: what a run or a benchmark did, for people; and the page of a comparison.
 *
 * Reads what is there of RUN/recipe.yaml, summary.json, metrics.jsonl, bench/STAGE/bench.json and verdicts.jsonl (or
 * RUN/bench.json itself for a lone benchmark). What is missing or unreadable is left out and said so in the page. */
#ifndef MC_REPORT_REPORT_H
#define MC_REPORT_REPORT_H

#include <jansson.h>

#include "base/err.h"

/* The page's data (report/page.h); *ret is new. ERR_INPUT: run is not a folder. */
int report_data(const char *run, json_t **ret, struct err *e);
int report_write(const char *run, struct err *e); /* RUN/report.html, atomically */

int report_compare_write(const json_t *compared, const char *path, struct err *e);

#endif
