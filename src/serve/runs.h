/* runs.h - how far trainers' runs are: a request may name its run and its turn, and verdicts are counted by both. What
 * is asked again within a run's turn counts once. In memory: a restart begins anew. Thread-safe.
 *
 * owner: as the tokens name it; NULL: there are no tokens. */
#ifndef MC_SERVE_RUNS_H
#define MC_SERVE_RUNS_H

#include <jansson.h>
#include <stdint.h>

#define RUNS_NAME_MAX 80 /* bytes */
#define RUNS_TURN_MAX 64

struct runs;

struct runs *runs_new(void);
void runs_free(struct runs *r); /* NULL is fine */

/* Job id was asked in this turn of this run. key: of its content (queue/queue_ask.h). A job that comes again under
 * it, with another id, is the same one, and its old end does not count if it had no score. Where there are too many,
 * whoever has most of them loses its oldest. */
void runs_join(struct runs *r, const char *owner, const char *run, int turn, const char *key, int64_t id);
/* A job ended; v: its verdict, NULL: it has none. A job of no run is nothing to it. */
void runs_ended(struct runs *r, int64_t id, const json_t *v);
/* Of an owner, NULL: of all; the newest first: new [{"run","owner","turn","asked","judged","passed","unscored",
 * "reward"}], reward: the mean of those judged, null where there is none. */
json_t *runs_json(struct runs *r, const char *owner);

#endif
