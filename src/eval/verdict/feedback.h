/* feedback.h - a verdict in words that a model or a person can act on. Pure functions of the record.
 *
 * Text of at most FEEDBACK_MAX bytes, because it becomes part of a prompt: what is wrong, where, with the numbers, and
 * what usually causes it. Lines, no Markdown. */
#ifndef MC_FEEDBACK_H
#define MC_FEEDBACK_H

#include <jansson.h>

#include "base/buf.h"

#define FEEDBACK_MAX 1500

void feedback_text(const json_t *verdict, struct buf *out);
void feedback_line(const json_t *verdict, struct buf *out); /* one line for the terminal */

#endif
