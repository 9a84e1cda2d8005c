/* http.h - a small HTTP/1.1 server on libmicrohttpd: a table of routes, bodies with a limit, calls that can be
 * parked until somebody else has their answer, and event streams. TLS is a proxy's work (deploy/nginx.conf).
 *
 * A handler runs on a thread of the pool. It answers with http_reply, or parks the call; a parked call is
 * woken by http_wake from any thread, and then its handler runs again with http_woken() true.
 *
 * A body is there for the handler's first run; what a parked call needs of it, its slot has. A call that no owner
 * makes, on an open route, has no body.
 *
 * What a client may take is limited by http_config. Where connections are scarce, those that sent nothing yet go
 * first. A call whose client has hung up, or closed its sending side, ends within two seconds. */
#ifndef MC_SERVE_HTTP_H
#define MC_SERVE_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct http;
struct http_call;

struct http_route {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/jobs/{id}": braces match one part of a path; "{id+}", at the end, all of them */
    void (*handle)(struct http_call *c, void *ctx);
    bool open; /* needs no token */
};

struct http_config {
    const char *address; /* "127.0.0.1" or "::" */
    int port;            /* 0: any free one */
    int threads;
    size_t body_max;     /* bytes; more is 413 */
    size_t bodies_max;   /* bytes of all calls together; beyond it 503 */
    size_t owner_bodies; /* of one owner's; beyond it 503. 0: no limit of its own */
    int idle_s;          /* seconds a client may be silent while it sends: slow-loris */
    double head_s;       /* from a connection's beginning, or its last answer, to the end of the next headers */
    int owner_calls;     /* open calls of one owner; beyond it 429. 0: no limit */
    int connections;     /* at once, of all clients; fewer if the process may not open so many files */
    const struct http_route *routes; /* ends with a NULL method */
    const struct http_route *more;   /* the same, of another part, with a ctx of its own; NULL: none */
    void *more_ctx;
    /* Who calls? Returns an owner's name that outlives the server, or NULL: 401. token: of the bearer, or NULL. */
    const char *(*who)(const char *token, void *ctx);
    void *ctx;
    /* NULL: any name. Else 'Host' must be an address, localhost, or one of these, commas between: for a server whose
     * callers need no token, so that a page whose name leads to this machine is no caller. */
    const char *hosts;
};

int http_start(const struct http_config *c, struct http **ret, struct err *e);
int http_port(const struct http *h);
/* Ends it; parked calls are answered with 503 first. */
void http_stop(struct http *h);

const char *http_owner(const struct http_call *c);
const char *http_body(const struct http_call *c, size_t *ret_n);
const char *http_part(const struct http_call *c);                  /* what stood for "{id}"; NULL: no such part */
const char *http_arg(const struct http_call *c, const char *name); /* of the query; NULL: not given */
const char *http_header(const struct http_call *c, const char *name);

/* One of these once, from the handler. body is taken over (free). */
void http_reply(struct http_call *c, int status, const char *type, char *body, size_t n);
void http_reply_json(struct http_call *c, int status, json_t *v /* taken over */);
/* {"error":{"code":..,"message":..}}, the same for every refusal. */
void http_refuse(struct http_call *c, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void http_header_add(struct http_call *c, const char *name, const char *value); /* before http_reply */

/* Parks the call. 'slot' is the caller's, for when it is woken; gone(slot) is called once when the call has ended for
 * whatever reason, before it is freed. */
void http_park(struct http_call *c, void *slot, void (*gone)(void *slot));
void http_wake(struct http_call *c); /* thread-safe; once for each park */
void *http_woken(const struct http_call *c); /* the slot, or NULL: this is the call's first time */
bool http_stopping(const struct http_call *c);

/* Answers with an event stream. next() fills buf with at most n bytes of text and returns how many; 0: nothing now: the
 * stream sleeps until http_wake; -1: the end. */
void http_stream(struct http_call *c, const char *type, long (*next)(void *slot, char *buf, size_t n), void *slot,
                 void (*gone)(void *slot));

#endif
