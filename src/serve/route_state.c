/* route_state.c - how the server is: health, metrics, numbers for the dashboard, workers. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "serve/serve_private.h"

void route_events(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;

    metrics_request(s->metrics, "/v1/events");
    events_stream(s->events, c);
}

/* The process is alive. */
void route_health(struct http_call *c, void *ctx)
{
    http_reply_json(c, 200, json_pack("{s:s}", "status", "ok"));
}

/* Work can be taken: the queue answers. */
void route_ready(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;

    if (atomic_load(&s->queue_up) && !http_stopping(c))
        http_reply_json(c, 200, json_pack("{s:s}", "status", "ready"));
    else
        serve_refuse(s, c, 503, "not_ready", "the queue does not answer");
}

void route_metrics(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct buf b;
    size_t n;

    buf_init(&b, 1 << 20);
    metrics_print(s->metrics, &b);
    n = b.n;
    http_reply(c, 200, "text/plain; version=0.0.4", buf_detach(&b), n);
}

void route_stats(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    struct queue *q = serve_queue(s, &e);
    json_t *workers = q ? queue_workers(q, &e) : NULL, *v;

    metrics_request(s->metrics, "/v1/stats");
    if (!workers) {
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
        return;
    }
    v = metrics_json(s->metrics);
    json_object_set_new(v, "worker", workers);
    http_reply_json(c, 200, v);
}

void route_drain(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    struct queue *q = serve_queue(s, &e);
    int rc = q ? queue_worker_drain(q, http_part(c), &e) : -1;

    metrics_request(s->metrics, "/v1/workers");
    if (rc == 1)
        http_reply_json(c, 202, json_pack("{s:s}", "status", "draining"));
    else if (rc == 0)
        serve_refuse(s, c, 404, "not_found", "there is no worker of this name");
    else
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
}
