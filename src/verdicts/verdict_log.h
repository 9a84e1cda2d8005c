/* verdict_log.h - the verdict log of a run folder: JSON Lines {"key","task","verdict"} on disk, an index in memory.
 *
 * The index holds 16 bytes a verdict (hash of the key, offset of the line), so a run of millions of verdicts keeps none
 * of their texts in memory. One process writes a log. A last line that its writer did not finish is cut off at
 * opening. */
#ifndef MC_VERDICTS_VERDICT_LOG_H
#define MC_VERDICTS_VERDICT_LOG_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

struct verdict_log;

/* Made at the first add when missing. ERR_INPUT names the line that is no entry, and the remedy. */
int verdict_log_open(const char *path, struct verdict_log **ret, struct err *e);
void verdict_log_close(struct verdict_log *l); /* NULL is fine */

/* 1 and *ret_verdict (new reference), 0 when the key is unknown, -1. The latest entry of a key wins. */
int verdict_log_find(struct verdict_log *l, const char *key, json_t **ret_verdict, struct err *e);
int verdict_log_add(struct verdict_log *l, const char *key, const char *task, const json_t *verdict, struct err *e);

size_t verdict_log_count(const struct verdict_log *l); /* lines */
size_t verdict_log_bytes(const struct verdict_log *l); /* memory of the index */

#endif
