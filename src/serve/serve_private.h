/* serve_private.h - what the routes share. */
#ifndef MC_SERVE_PRIVATE_H
#define MC_SERVE_PRIVATE_H

#include <stdatomic.h>

#include "serve/backends.h"
#include "serve/events.h"
#include "serve/http.h"
#include "serve/serve_metrics.h"
#include "serve/retry_buffer.h"
#include "serve/runs.h"
#include "serve/serve.h"
#include "serve/tokens.h"
#include "serve/waiters.h"

struct serve {
    struct serve_config c;
    struct http *http;
    struct waiters *waiters;
    struct serve_metrics *metrics;
    struct events *events;
    struct tokens *tokens;
    atomic_long load;     /* jobs that wait or run, as of the last look, and what came since */
    atomic_bool queue_up; /* the last look went well */
    double swept, looked, look_took; /* the waiters' thread's own */
    struct retry *retry;
    struct runs *runs;
    struct backends *backends;
};

/* This thread's connection to the queue, made at its first use and closed when it ends; NULL with *e set. */
struct queue *serve_queue(struct serve *s, struct err *e);

/* Handlers (http.h); ctx is the struct serve. */
void route_eval(struct http_call *c, void *ctx);
void route_job(struct http_call *c, void *ctx);
void route_jobs(struct http_call *c, void *ctx);
void route_runs(struct http_call *c, void *ctx);
void route_retry_draw(struct http_call *c, void *ctx);
void route_openapi(struct http_call *c, void *ctx);
void route_docs(struct http_call *c, void *ctx);
void route_page(struct http_call *c, void *ctx);
void route_job_cancel(struct http_call *c, void *ctx);
void route_verdict(struct http_call *c, void *ctx);
void route_events(struct http_call *c, void *ctx);
void route_health(struct http_call *c, void *ctx);
void route_ready(struct http_call *c, void *ctx);
void route_metrics(struct http_call *c, void *ctx);
void route_stats(struct http_call *c, void *ctx);
void route_drain(struct http_call *c, void *ctx);

/* KernelGYM's endpoints. */
void kernelgym_evaluate(struct http_call *c, void *ctx);
void kernelgym_status(struct http_call *c, void *ctx);
void kernelgym_result(struct http_call *c, void *ctx);
void kernelgym_cancel(struct http_call *c, void *ctx);
void kernelgym_health(struct http_call *c, void *ctx);
void kernelgym_queue(struct http_call *c, void *ctx);
void kernelgym_workers(struct http_call *c, void *ctx);

/* This thread's connection, or NULL with 503 set. */
struct queue *serve_queue_or_refuse(struct serve *s, struct http_call *c);
/* Is there room for n more jobs? false with 429 set. */
bool serve_room(struct serve *s, struct http_call *c, struct queue *q, int n);

/* Sees the caller all owners' jobs, and may it drain workers? Without tokens everybody does. */
bool serve_operates(const struct serve *s, const struct http_call *c);
/* Is the job the caller's to see? 1, 0, or -1: the queue does not say. */
int serve_may_see(struct serve *s, struct http_call *c, struct queue *q, int64_t id, struct err *e);
/* The same; false with 404 set: to others it is not there. */
bool serve_owns(struct serve *s, struct http_call *c, struct queue *q, int64_t id);
/* What is asked belongs to its owner: another owner's equal request is another job, which the first may neither see nor
 * cancel. */
void serve_sign(const struct serve *s, const struct http_call *c, json_t *payload);

/* http_refuse, counted. */
void serve_refuse(struct serve *s, struct http_call *c, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
