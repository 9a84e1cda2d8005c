/* page.h - the one page of results (page.html): it loads nothing and draws the data that it carries.
 *
 * data is an object, "schema" "musacoder.report/1":
 *   {"kind":"run"|"bench"|"suite"|"compare"|"watch","title","about" (a sentence),"facts":[[name, text],..] (the head:
 *    what made it, on which machine, with which seed),"from" (the files it was made from),
 *    "stages":[{"name","bench" (bench.json),"avg_ci","pass_ci":[lo,hi]|null,
 *               "change":null|{"difference","ci"} (Avg@n against the first stage, paired by task),
 *               "families":{NAME:{"tasks","avg","ci","change"},..}},..],
 *    "metrics":[line of metrics.jsonl,..],
 *    "programs":[{"task","eager","compile" (trusted speedups, or absent),"ms"},..],
 *    "examples":null|{"stage","passed":[..],"repaired":[..],"failed":[..]} (report_examples.c),
 *    "compare" (bench/bench_compare.h),"tiles":[{"label","last","mean","n","percent"},..] and "reload" (seconds) of
 *    watch,"recipe","seconds","notes":[what could not be read,..]}
 * A page shows the keys that its kind has; all but the first three may be absent. */
#ifndef MC_REPORT_PAGE_H
#define MC_REPORT_PAGE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the page with the data in it; text in the data cannot end the element that holds it. */
void page_add(const json_t *data, struct buf *out);
/* The page as a file, atomically. ERR_BUG when it exceeds BUF_MAX_TEXT. */
int page_write(const json_t *data, const char *path, struct err *e);

#endif
