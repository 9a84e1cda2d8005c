/* waiters.h - parked calls and the jobs that they wait for. One thread follows the queue: it takes what ended, gives
 * it to whoever waits, and to the listener (metrics, event streams). */
#ifndef MC_SERVE_WAITERS_H
#define MC_SERVE_WAITERS_H

#include "base/err.h"
#include "queue/queue.h"

struct waiters;
struct waiter; /* one call, n jobs */

/* Called on the waiters' thread for each job that ended. text: its result, or the reason; borrowed. */
typedef void waiters_listener(int64_t id, int state, const char *text, void *ctx);
/* Called about four times a second, on the same thread. */
typedef void waiters_tick(struct queue *q, void *ctx);

int waiters_start(const char *queue_url, waiters_listener *heard, waiters_tick *tick, void *ctx, struct waiters **ret,
                  struct err *e);
void waiters_stop(struct waiters *w); /* NULL is fine */

/* Waits for n jobs, at most wait_s. wake(arg) is called once, from any thread, when all have ended or the time is
 * over: also before this returns. */
struct waiter *waiter_new(struct waiters *w, const int64_t *ids, int n, double wait_s, void (*wake)(void *arg),
                          void *arg);
/* A job that had ended before anybody waited for it. */
void waiter_seed(struct waiter *r, int i, int state, const char *text);
/* Job i's state, and its result, borrowed until waiter_free; QUEUE_WAITING: not ended. */
int waiter_result(struct waiter *r, int i, const char **ret_text);
int waiter_count(const struct waiter *r);
int64_t waiter_id(const struct waiter *r, int i);
void waiter_free(struct waiter *r);

#endif
