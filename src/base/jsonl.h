/* jsonl.h - JSON Lines files that a process fills, dies, and goes on with: journals of answers and verdicts.
 *
 * A line that is believed later carries a member "seal", a hash of all others (SHA-256's first 32 digits). Lines of
 * older versions have none. Plain lines are json.h's jsonl_append; readers that do not append use jsonl_each. */
#ifndef MC_JSONL_H
#define MC_JSONL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

int jsonl_append_sealed(const char *path, const json_t *v, struct err *e); /* one line, one write */
json_t *jsonl_sealed(const json_t *v); /* new: with its seal; for files of one object, too */
bool jsonl_seal_fits(const json_t *v); /* there is no seal, or it is that of the others */

/* As jsonl_each, for a file that the caller is going to append to, which may not be there yet: a torn last line is cut
 * off the file, a whole one without its end gets it, and lines whose seal does not fit go, with a word. */
int jsonl_continue(const char *path, int (*f)(json_t *v, size_t line, void *ctx, struct err *e), void *ctx,
                   struct err *e);

#endif
