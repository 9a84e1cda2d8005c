/* retry_buffer.h - Buffered Dynamic Retry in the service (objective/bdr.h): trainers name groups, and a group that
 * failed entirely leaves one program with its feedback, which its owner's trainers may draw. Each owner has a buffer
 * of its own, kept in the queue's settings; groups that are not complete live in memory, and a restart forgets them.
 * Thread-safe.
 *
 * owner: as the tokens name it; NULL: there are no tokens, and one buffer is everybody's. */
#ifndef MC_SERVE_RETRY_BUFFER_H
#define MC_SERVE_RETRY_BUFFER_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "queue/queue.h"

struct retry;

struct retry *retry_new(void);
void retry_free(struct retry *r); /* NULL is fine */
int retry_open(struct retry *r, const char *queue_url, struct err *e);

/* Job id is a member of this group, which has 'size' in all; response is copied. A member that comes again under
 * its key (queue/queue_ask.h) is the same one, with its new id; had it ended without a score, it has not ended now.
 * Where too much is kept of groups that are not complete, the oldest group of whoever has most of it is forgotten.
 * A complete group whose members all come again adds nothing. */
void retry_join(struct retry *r, const char *owner, const char *group, int size, const char *prompt_id,
                const char *key, int64_t id, const char *response);
/* A job ended; v: its verdict, NULL: it has none. A job that is in no group is nothing to it. */
void retry_ended(struct retry *r, int64_t id, const json_t *v);
/* With this probability the oldest entry, new {"prompt_id","response","feedback"}; else a new null. NULL: what is left
 * could not be saved, and nothing was taken. */
json_t *retry_draw(struct retry *r, const char *owner, double probability, struct err *e);

#endif
