/* tokens.h - who may call: a file of lines "TOKEN OWNER" or "TOKEN OWNER operator", '#' begins a comment. An owner sees
 * its own jobs; an operator sees all, and may drain workers. */
#ifndef MC_SERVE_TOKENS_H
#define MC_SERVE_TOKENS_H

#include <stdbool.h>

#include "base/err.h"

struct tokens;

int tokens_read(const char *path, struct tokens **ret, struct err *e);
void tokens_free(struct tokens *t); /* NULL is fine */
/* The owner of a token, or NULL. Takes as long for a near miss as for a far one. */
const char *tokens_owner(const struct tokens *t, const char *token);
bool tokens_operates(const struct tokens *t, const char *owner);

#endif
