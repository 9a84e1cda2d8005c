/* report_parts.h - what the sections of report.html share: the run's data, and one function per section. */
#ifndef MC_BENCH_REPORT_PARTS_H
#define MC_BENCH_REPORT_PARTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define REPORT_MAX_STAGES 32

struct report_stage {
    char *name, *dir;
    json_t *bench;    /* bench.json */
    json_t *verdicts; /* array of verdicts.jsonl's lines; empty when there are none */
    json_t *samples;  /* "task/sample/turn" -> text */
};

struct report {
    char *title, *recipe; /* recipe: text or NULL */
    json_t *summary;      /* or NULL */
    json_t *metrics;      /* array of metrics.jsonl's lines */
    struct report_stage stages[REPORT_MAX_STAGES];
    int n;
    json_t *notes;        /* array of strings: what could not be read */
};

void report_load(const char *run, struct report *r); /* what cannot be read becomes a note */
void report_unload(struct report *r);

/* Sections; each writes nothing when it has nothing to show. */
void report_tiles(struct buf *out, const struct report *r);
void report_stage_table(struct buf *out, const struct report *r);
void report_families(struct buf *out, const struct report *r);
void report_tasks(struct buf *out, const struct report *r);
void report_failures(struct buf *out, const struct report *r);
void report_curves(struct buf *out, const struct report *r);
void report_examples(struct buf *out, const struct report *r);

/* Of a suite with levels (report_suite.c), in place of the tables above. */
bool report_is_suite(const struct report *r);
void report_suite_tiles(struct buf *out, const struct report *r);
void report_suite_results(struct buf *out, const struct report *r);
void report_suite_verdicts(struct buf *out, const struct report *r);
void report_suite_speed(struct buf *out, const struct report *r);
void report_suite_time(struct buf *out, const struct report *r);
void report_suite_left_out(struct buf *out, const struct report *r);

/* The page around the sections; sub is HTML. */
void report_open(struct buf *out, const char *title, const char *sub);
void report_close(struct buf *out, const char *made_from);

/* Half width of the 95 % interval of a mean over tasks (normal approximation over per_task's shares); NaN under 2
 * tasks. */
double report_avg_error(const json_t *bench);
/* A share as "12.3 %", or an en dash when it is missing or not finite. */
void report_percent(struct buf *out, const json_t *obj, const char *key);
void report_code(struct buf *out, const char *code); /* <pre> with light highlighting of Python and CUDA */

extern const char report_css[], report_js[];

#endif
