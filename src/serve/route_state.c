/* route_state.c - how the server is: health, metrics, numbers for the dashboard, workers. */
#include <stdlib.h>
#include <string.h>

#include "serve/serve_private.h"

void route_events(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;

    metrics_request(s->metrics, "/v1/events");
    events_stream(s->events, serve_operates(s, c) ? NULL : http_owner(c), c);
}

/* The process is alive. */
void route_health(struct http_call *c, void *ctx)
{
    http_reply_json(c, 200, json_pack("{s:s}", "status", "ok"));
}

/* Verdicts can be had: the queue answers, and a worker is there. With ?queue=1 the queue alone is asked for, by who
 * starts workers when there is work. */
void route_ready(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct buf why;

    if (!atomic_load(&s->queue_up) || http_stopping(c)) {
        serve_refuse(s, c, 503, "not_ready", "the queue does not answer");
    } else if (http_arg(c, "queue") || backends_served(s->backends, s->c.backend)) {
        http_reply_json(c, 200, json_pack("{s:s}", "status", "ready"));
    } else {
        buf_init(&why, BUF_MAX_TEXT);
        backends_say_lack(s->c.backend, s->c.own_workers, &why);
        serve_refuse(s, c, 503, "no_worker", "%s", why.p);
        buf_free(&why);
    }
}

void route_metrics(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct buf b;
    size_t n;

    buf_init(&b, 1 << 20);
    metrics_print(s->metrics, &b);
    if (s->c.more_metrics)
        s->c.more_metrics(s->c.more_ctx, &b);
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
    struct queue *q;
    int rc;

    metrics_request(s->metrics, "/v1/workers");
    if (!serve_operates(s, c)) {
        serve_refuse(s, c, 403, "forbidden", "only an operator drains workers: a third word in the file of tokens");
        return;
    }
    q = serve_queue(s, &e);
    rc = q ? queue_worker_drain(q, http_part(c), &e) : -1;
    if (rc == 1)
        http_reply_json(c, 202, json_pack("{s:s}", "status", "draining"));
    else if (rc == 0)
        serve_refuse(s, c, 404, "not_found", "there is no worker of this name");
    else
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
}

/* Files inside the program: the dashboard and the page of the API, which need nothing from elsewhere, and the API's
 * description. */
#define ROUTE_STATE_FILE(name, path)                                                                                   \
    __asm__(".pushsection .rodata\n.global " #name "\n" #name ": .incbin \"" path "\"\n"                              \
            ".global " #name "_end\n" #name "_end: .byte 0\n.popsection");                                            \
    extern const char name[], name##_end[]
ROUTE_STATE_FILE(serve_page, "src/serve/dashboard.html");
ROUTE_STATE_FILE(serve_docs, "src/serve/api.html");
ROUTE_STATE_FILE(serve_openapi, "docs/openapi.json");

/* Replies with a page that is compiled in, [from, to). */
static void route_state_file(struct http_call *c, const char *type, const char *from, const char *to)
{
    size_t n = (size_t)(to - from);
    char *copy = malloc(n + 1);

    if (!copy) {
        http_refuse(c, 503, "memory", "no memory for the page");
        return;
    }
    memcpy(copy, from, n);
    http_header_add(c, "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    http_reply(c, 200, type, copy, n);
}

void route_page(struct http_call *c, void *ctx)
{
    route_state_file(c, "text/html; charset=utf-8", serve_page, serve_page_end);
}

void route_docs(struct http_call *c, void *ctx)
{
    route_state_file(c, "text/html; charset=utf-8", serve_docs, serve_docs_end);
}

void route_openapi(struct http_call *c, void *ctx)
{
    route_state_file(c, "application/json", serve_openapi, serve_openapi_end);
}
