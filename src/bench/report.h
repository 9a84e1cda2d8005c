/* report.h - report.html: what a run did, for people. One file, no links to anything outside, light and dark.
 *
 * Reads what is there of RUN/recipe.yaml, summary.json, metrics.jsonl, bench/STAGE/bench.json and verdicts.jsonl (or
 * RUN/bench.json itself for a lone benchmark). What is missing or unreadable is left out and said so in the page. */
#ifndef MC_BENCH_REPORT_H
#define MC_BENCH_REPORT_H

#include "base/buf.h"
#include "base/err.h"

int report_write(const char *run, struct err *e);               /* RUN/report.html, atomically */
int report_build(const char *run, struct buf *out, struct err *e);

#endif
