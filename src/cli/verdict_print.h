/* verdict_print.h - verdicts as people, editors and CI read them: text, JSON Lines, GitHub annotations, SARIF 2.1.0.
 *
 * A report takes verdicts one by one and ends with a summary. Text and annotations speak of the user's own file and
 * lines (eval/verdict/locate.h). */
#ifndef MC_CLI_VERDICT_PRINT_H
#define MC_CLI_VERDICT_PRINT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum verdict_detail { VERDICT_QUIET, VERDICT_PLAIN, VERDICT_VERBOSE };

struct verdict_report {
    const struct verdict_format *format;
    enum verdict_detail detail;
    bool colour;    /* of text */
    bool explain;   /* text: what the code means, the facts of a conviction, how to contest it */
    const char *to; /* a file that is written at the end; NULL: standard output, as verdicts come */
    struct buf out; /* what is not written yet */
    json_t *sarif;  /* results so far, owned */
    int n, passed, failed, unjudged, infra;
};

/* format: "text", "json", "github", "sarif". colour: "auto" (a terminal, and NO_COLOR is not set), "always", "never".
 */
void verdict_report_open(struct verdict_report *r, const char *format, const char *colour, const char *to);
/* -1: standard output cannot be written. */
int verdict_report_add(struct verdict_report *r, const json_t *verdict, struct err *e);
int verdict_report_end(struct verdict_report *r, struct err *e); /* the summary; writes r->to */
void verdict_report_free(struct verdict_report *r);

#endif
