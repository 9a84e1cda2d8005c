/* trace.h - where time goes, over threads and processes: spans for chrome://tracing and ui.perfetto.dev. With
 * $MUSACODER_TRACE=FILE every span is one line of JSON, appended to FILE (the Trace Event Format's array, which needs
 * no end); without it nothing is written. Spans of a thread that lie inside each other are shown so. */
#ifndef MC_TRACE_H
#define MC_TRACE_H

#include <stdbool.h>

#include "base/err.h"

int trace_check(struct err *e); /* ERR_INPUT where the file is there and no trace: it would be written to */
bool trace_on(void);
/* What this thread did from 'since' (seconds of now_s()) until now. category: "stage", "wait", ...; by it spans can
 * be told apart and filtered. Spans shorter than TRACE_LEAST_S are left out: there are many, and they say nothing. */
#define TRACE_LEAST_S 1e-3
void trace_span(double since, const char *category, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
