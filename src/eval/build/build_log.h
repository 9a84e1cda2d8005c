/* build_log.h - reading what g++, nvcc, ptxas and ld say. Pure functions of the log's text and the request's sources.
 * */
#ifndef MC_EVAL_BUILD_LOG_H
#define MC_EVAL_BUILD_LOG_H

#include <jansson.h>
#include <stddef.h>

/* Errors of the log as diagnostics (build.h), each at the candidate's own line where the log names one: an error inside
 * our headers is reported at the line that led there. At most 8. New reference, never NULL. */
json_t *build_log_parse(const char *log, const json_t *request);

/* The log without notes about our headers and absolute paths, at most max bytes, cut at a line. Caller frees. */
char *build_log_trim(const char *log, size_t max);

#endif
