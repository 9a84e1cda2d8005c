/* backends.h - for which backends a living worker gives verdicts, as of the last look at the queue. Thread-safe. */
#ifndef MC_SERVE_BACKENDS_H
#define MC_SERVE_BACKENDS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct backends;

struct backends *backends_new(void);
void backends_free(struct backends *b); /* NULL is fine */
/* workers: as queue_workers returns them. One that only builds, or drains, gives no verdicts. */
void backends_look(struct backends *b, const json_t *workers);
bool backends_served(struct backends *b, const char *backend);
/* "no worker gives verdicts for backend 'cuda': .." into out, with the remedy; starts: one is being started. */
void backends_say_lack(const char *backend, bool starts, struct buf *out);

#endif
