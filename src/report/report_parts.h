/* report_parts.h - what the files of report.html share: a run's files as they were read, and what is made of them. */
#ifndef MC_REPORT_REPORT_PARTS_H
#define MC_REPORT_REPORT_PARTS_H

#include <jansson.h>

#define REPORT_MAX_STAGES 32

struct report_stage {
    char *name;
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

/* The page's "stages": each stage's bench.json with its intervals, and its change against the first. New. */
json_t *report_stages(const struct report *r);

/* The page's "examples" of one stage (report_examples.c), null without verdicts: a few passed, repaired and failed
 * programs, no two of a family, or of a category:
 * [{"task","sample","source" (the task file, or absent),"turns":[{"turn","status","category","code","feedback",
 * "compile_ms","trials","passed","reward"},..]},..]. New. */
json_t *report_examples(const struct report_stage *s);

#endif
