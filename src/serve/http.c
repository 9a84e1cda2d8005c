/* http.c - see http.h.
 *
 * A call is parked by suspending its connection. A wake may come before that: it leaves 'woken', which whoever is about
 * to suspend sees under the same lock.
 *
 * libmicrohttpd looks at no suspended connection, and its idle clock starts again with each byte. So one thread looks
 * each second: at connections whose headers do not come, and at parked calls whose client has hung up. It closes by
 * shutdown(), under the lock that a connection's end takes too: the descriptor is still that connection's.
 *
 * Connections that await headers stand in two queues, oldest first: those that never had an answer, and those that
 * rest between two calls. When few are left, each new one closes the oldest of the first queue, else of the second. */
#include "serve/http.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dl.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/mhd.h"

#define STOP_WAIT_S 5.0
#define BODY_S 120.0 /* all of a body has come by then, or the connection is closed */
#define FILES_OF_OURS 256 /* descriptors that are not connections */
#define STREAM_BLOCK 16384
#define URL_MAX 2048
#define HEADERS_MAX 8
#define SPARE 8 /* an eighth of the connections is kept free: a pool's threads have unequal numbers of them */

struct mhd mhd;

#define MHD_ROW(name) {#name, (void **)&mhd.name},
static const struct dl_name mhd_names[] = {MHD_CALLS(MHD_ROW){NULL, NULL}};

static int mhd_load(struct err *e)
{
    return dl_load("libmicrohttpd.so.12", "libmicrohttpd12", mhd_names, e);
}

struct http_call {
    struct http *h;
    struct MHD_Connection *conn;
    const struct http_route *route;
    void *ctx; /* the route's */
    struct http_tenant *owner; /* NULL: nobody, on a route that is open */
    struct buf body;
    char url[URL_MAX], *part;
    bool first_seen, too_large, too_many;
    int fd;
    double began;
    /* the answer */
    struct MHD_Response *response;
    int status;
    struct {
        const char *name;
        char *value;
    } headers[HEADERS_MAX];
    int n_headers;
    /* parking */
    pthread_mutex_t lock;
    bool park, suspended, woken, hung_up;
    void *slot;
    void (*gone)(void *slot);
    long (*next)(void *slot, char *buf, size_t n);
    struct http_call *before, *after; /* all calls of the server */
};

enum http_where { FRESH, RESTS, WHERE_N, IN_CALL };

struct peer { /* a connection */
    int fd;
    enum http_where where;
    bool leaves;  /* it was closed, and libmicrohttpd will see it */
    double since; /* since when headers are awaited */
    struct peer *before, *after; /* of its queue */
};

struct peers {
    struct peer *first, *last;
};

struct http_tenant { /* what one has of the server; kept for as long as it runs */
    const char *name;
    int calls;
    size_t bodies; /* bytes */
    struct http_tenant *after;
};

struct http {
    struct http_config c;
    struct MHD_Daemon *daemon;
    pthread_t watch;
    pthread_mutex_t lock; /* of the lists, and of owners */
    struct http_call *calls;
    struct peers peers[WHERE_N];
    struct http_tenant *owners;
    int n_calls, n_peers; /* n_peers: without those that leave */
    size_t bodies;        /* bytes */
    bool stopping;
};

/* ---- what a handler asks ---- */

const char *http_owner(const struct http_call *c)
{
    return c->owner ? c->owner->name : NULL;
}

const char *http_body(const struct http_call *c, size_t *ret_n)
{
    *ret_n = c->body.n;
    return c->body.p;
}

const char *http_part(const struct http_call *c)
{
    return c->part;
}

const char *http_arg(const struct http_call *c, const char *name)
{
    return mhd.MHD_lookup_connection_value(c->conn, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_call *c, const char *name)
{
    return mhd.MHD_lookup_connection_value(c->conn, MHD_HEADER_KIND, name);
}

void *http_woken(const struct http_call *c)
{
    return c->slot;
}

bool http_stopping(const struct http_call *c)
{
    return __atomic_load_n(&c->h->stopping, __ATOMIC_ACQUIRE);
}

/* ---- answers ---- */

void http_header_add(struct http_call *c, const char *name, const char *value)
{
    if (c->n_headers == HEADERS_MAX)
        return;
    c->headers[c->n_headers].name = name;
    c->headers[c->n_headers++].value = xstrdup(value);
}

/* Sets the reply's status, type and headers; http_send_answer sends it. */
static void http_set_response(struct http_call *c, int status, const char *type, struct MHD_Response *r)
{
    c->status = status;
    c->response = r;
    mhd.MHD_add_response_header(r, "Content-Type", type);
    mhd.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    for (int i = 0; i < c->n_headers; i++)
        mhd.MHD_add_response_header(r, c->headers[i].name, c->headers[i].value);
}

void http_reply(struct http_call *c, int status, const char *type, char *body, size_t n)
{
    http_set_response(c, status, type, mhd.MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE));
}

void http_reply_json(struct http_call *c, int status, json_t *v)
{
    char *text = json_text(v);

    json_decref(v);
    http_reply(c, status, "application/json", text, strlen(text));
}

void http_refuse(struct http_call *c, int status, const char *code, const char *fmt, ...)
{
    char msg[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    http_reply_json(c, status,
                    json_pack("{s:{s:s,s:o}}", "error", "code", code, "message", json_utf8(msg, strlen(msg))));
}

/* ---- parking ---- */

void http_park(struct http_call *c, void *slot, void (*gone)(void *slot))
{
    c->slot = slot;
    c->gone = gone;
    c->park = true;
}

void http_wake(struct http_call *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->suspended) {
        c->suspended = false;
        mhd.MHD_resume_connection(c->conn);
    } else {
        c->woken = true;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Suspends the connection unless it was woken already. */
static bool http_fell_asleep(struct http_call *c)
{
    bool asleep;

    pthread_mutex_lock(&c->lock);
    asleep = !c->woken;
    c->woken = false;
    if (asleep) {
        c->suspended = true;
        mhd.MHD_suspend_connection(c->conn);
    }
    pthread_mutex_unlock(&c->lock);
    return asleep;
}

/* True if the client closed the connection while its call waited. */
static bool http_hung_up(struct http_call *c)
{
    bool ret;

    pthread_mutex_lock(&c->lock);
    ret = c->hung_up;
    pthread_mutex_unlock(&c->lock);
    return ret;
}

/* libmicrohttpd's question for more of a stream; it sleeps where there is none yet. */
static ssize_t http_stream_more(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct http_call *c = ctx;

    (void)pos;
    for (;;) {
        long n = http_stopping(c) || http_hung_up(c) ? -1 : c->next(c->slot, buf, max);
        if (n != 0)
            return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
        if (http_fell_asleep(c))
            return 0;
    }
}

void http_stream(struct http_call *c, const char *type, long (*next)(void *, char *, size_t), void *slot,
                 void (*gone)(void *))
{
    c->slot = slot;
    c->gone = gone;
    c->next = next;
    http_header_add(c, "Cache-Control", "no-store");
    http_set_response(c, 200, type,
                      mhd.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, http_stream_more, c, NULL));
}

/* ---- connections, and who has left ---- */

static int http_fd_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *i = mhd.MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);

    return i ? i->connect_fd : -1;
}

/* All of this is done under the lock. */
static void http_peer_unlink(struct http *h, struct peer *p)
{
    struct peers *q;

    if (p->where == IN_CALL)
        return;
    q = &h->peers[p->where];
    *(p->before ? &p->before->after : &q->first) = p->after;
    *(p->after ? &p->after->before : &q->last) = p->before;
    p->before = p->after = NULL;
}

/* Puts a connection into the list of that kind, as the youngest. */
static void http_peer_put(struct http *h, struct peer *p, enum http_where where)
{
    p->where = where;
    if (where == IN_CALL)
        return;
    p->since = now_s();
    p->before = h->peers[where].last;
    *(p->before ? &p->before->after : &h->peers[where].first) = p;
    h->peers[where].last = p;
}

/* Ends a connection; the library's notice frees it. */
static void http_peer_close(struct http *h, struct peer *p)
{
    http_peer_unlink(h, p);
    p->where = IN_CALL;
    p->leaves = true;
    h->n_peers--;
    shutdown(p->fd, SHUT_RDWR);
}

/* Ends the oldest connection without a call where nearly all places are taken. */
static void http_make_room(struct http *h)
{
    struct peer *p = h->peers[FRESH].first ? h->peers[FRESH].first : h->peers[RESTS].first;

    if (p && h->n_peers > h->c.connections - h->c.connections / SPARE)
        http_peer_close(h, p);
}

/* libmicrohttpd's notice that a connection has begun or ended. */
static void http_on_connection(void *ctx, struct MHD_Connection *conn, void **at,
                               enum MHD_ConnectionNotificationCode what)
{
    struct http *h = ctx;
    struct peer *p = *at;

    pthread_mutex_lock(&h->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *at = p = xcalloc(1, sizeof *p);
        p->fd = http_fd_of(conn);
        h->n_peers++;
        http_make_room(h);
        http_peer_put(h, p, FRESH);
    } else if (p) {
        http_peer_unlink(h, p);
        h->n_peers -= !p->leaves;
        free(p);
        *at = NULL;
    }
    pthread_mutex_unlock(&h->lock);
}

static struct peer *http_peer_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *i = mhd.MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return i ? i->socket_context : NULL;
}

/* A connection awaits headers from now on, or no more. Under the lock. */
static void http_set_in_call(struct http *h, struct MHD_Connection *conn, bool in_call)
{
    struct peer *p = http_peer_of(conn);

    if (!p || p->leaves)
        return;
    http_peer_unlink(h, p);
    http_peer_put(h, p, in_call ? IN_CALL : RESTS);
}

/* True if the client has closed the connection. */
static bool http_has_left(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Wakes a parked call whose client has left; it ends without an answer. */
static void http_look_at_call(struct http_call *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->suspended && !c->hung_up && http_has_left(c->fd)) {
        c->hung_up = true;
        c->suspended = false;
        mhd.MHD_resume_connection(c->conn);
    }
    pthread_mutex_unlock(&c->lock);
}

/* The thread that ends calls whose clients are gone or too slow. */
static void *http_watch(void *arg)
{
    struct http *h = arg;

    while (!__atomic_load_n(&h->stopping, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&h->lock);
        for (struct http_call *c = h->calls; c; c = c->after)
            http_look_at_call(c);
        for (int i = 0; i < WHERE_N; i++)
            while (h->peers[i].first && now_s() > h->peers[i].first->since + h->c.head_s)
                http_peer_close(h, h->peers[i].first);
        pthread_mutex_unlock(&h->lock);
        for (int i = 0; i < 10 && !__atomic_load_n(&h->stopping, __ATOMIC_ACQUIRE); i++)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return NULL;
}

/* ---- a call's way ---- */

/* A call of this connection, linked into h. The library's end of request frees it. */
static struct http_call *http_call_new(struct http *h, struct MHD_Connection *conn, const char *url)
{
    struct http_call *c = xcalloc(1, sizeof *c);

    c->h = h;
    c->began = now_s();
    c->conn = conn;
    c->fd = http_fd_of(conn);
    snprintf(c->url, sizeof c->url, "%s", url);
    buf_init(&c->body, h->c.body_max);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_lock(&h->lock);
    c->after = h->calls;
    if (h->calls)
        h->calls->before = c;
    h->calls = c;
    h->n_calls++;
    http_set_in_call(h, conn, true);
    pthread_mutex_unlock(&h->lock);
    return c;
}

/* Under the lock. */
static void http_drop_body(struct http_call *c)
{
    c->h->bodies -= c->body.n;
    if (c->owner)
        c->owner->bodies -= c->body.n;
    buf_free(&c->body);
    buf_init(&c->body, c->body.max);
}

/* libmicrohttpd's notice that a request is over: unlinks the call and frees what it holds. */
static void http_call_ended(void *ctx, struct MHD_Connection *conn, void **at, enum MHD_RequestTerminationCode why)
{
    struct http *h = ctx;
    struct http_call *c = *at;

    if (!c)
        return;
    pthread_mutex_lock(&h->lock);
    *(c->before ? &c->before->after : &h->calls) = c->after;
    if (c->after)
        c->after->before = c->before;
    h->n_calls--;
    http_set_in_call(h, conn, false);
    http_drop_body(c);
    if (c->owner)
        c->owner->calls--;
    pthread_mutex_unlock(&h->lock);
    if (c->gone && c->slot)
        c->gone(c->slot);
    for (int i = 0; i < c->n_headers; i++)
        free(c->headers[i].value);
    pthread_mutex_destroy(&c->lock);
    buf_free(&c->body);
    free(c->part);
    free(c);
    *at = NULL;
}

/* Does a path fit a route's? *ret_part: what stands for the braces, owned, or NULL. */
static bool http_path_fits(const char *path, const char *pattern, char **ret_part)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    size_t before = open ? (size_t)(open - pattern) : strlen(pattern), n;

    *ret_part = NULL;
    if (!open)
        return !strcmp(path, pattern);
    if (strncmp(path, pattern, before))
        return false;
    n = close[-1] == '+' ? strlen(path + before) : strcspn(path + before, "/"); /* {id+}: names with slashes, too */
    if (n == 0 || strcmp(path + before + n, close + 1))
        return false;
    *ret_part = xstrndup(path + before, n);
    return true;
}

/* The route of a call in one table; NULL: none. *other: one with another method. */
static const struct http_route *http_find_in(struct http_call *c, const struct http_route *r, const char *method,
                                             bool *other)
{
    for (; r && r->method; r++) {
        char *part;
        if (!http_path_fits(c->url, r->path, &part))
            continue;
        if (!strcmp(r->method, method)) {
            c->part = part;
            return r;
        }
        free(part);
        *other = true;
    }
    return NULL;
}

/* NULL with an answer set: 404, 405. */
static const struct http_route *http_find_route(struct http_call *c, const char *method)
{
    bool other_method = false;
    const struct http_route *r = http_find_in(c, c->h->c.routes, method, &other_method);

    c->ctx = c->h->c.ctx;
    if (r)
        return r;
    c->ctx = c->h->c.more_ctx;
    if ((r = http_find_in(c, c->h->c.more, method, &other_method)))
        return r;
    if (other_method)
        http_refuse(c, 405, "method_not_allowed", "'%s' does not take %s", c->url, method);
    else
        http_refuse(c, 404, "not_found", "there is nothing at '%s'", c->url);
    return NULL;
}

/* The token of the Authorization header; NULL: none. */
static const char *http_bearer(const struct http_call *c)
{
    const char *h = http_header(c, "Authorization");

    return h && !strncasecmp(h, "Bearer ", 7) ? h + 7 : NULL;
}

struct framing { /* what a message says of its length */
    int lengths, encodings;
    bool odd;
};

/* A callback for each header: notes lengths and codings that disagree. */
static enum MHD_Result http_see_header(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct framing *f = ctx;

    if (!strcasecmp(key, "Content-Length")) {
        f->lengths++;
        f->odd |= !value || !*value || value[strspn(value, "0123456789")];
    } else if (!strcasecmp(key, "Transfer-Encoding")) {
        f->encodings++;
        f->odd |= !value || strcasecmp(value, "chunked");
    }
    f->odd |= !*key || key[strcspn(key, " \t\v\f")]; /* "Content-Length : 5" is another header to the next server */
    return MHD_YES;
}

/* Could a proxy and this server see different messages in the same bytes? */
static bool http_ambiguous(struct http_call *c)
{
    struct framing f = {0};

    mhd.MHD_get_connection_values(c->conn, MHD_HEADER_KIND, http_see_header, &f);
    return f.odd || f.lengths + f.encodings > 1;
}

/* Under the lock. */
static struct http_tenant *http_owner_of(struct http *h, const char *name)
{
    struct http_tenant *o = h->owners;

    while (o && strcmp(o->name, name))
        o = o->after;
    if (!o) {
        o = xcalloc(1, sizeof *o);
        *o = (struct http_tenant){.name = name, .after = h->owners};
        h->owners = o;
    }
    return o;
}

/* The call is its owner's from now on. false: that one has as many open calls as it may: others need some too. */
static bool http_own(struct http_call *c, const char *name)
{
    struct http *h = c->h;
    bool may = true;

    if (!name)
        return true;
    pthread_mutex_lock(&h->lock);
    c->owner = http_owner_of(h, name);
    may = ++c->owner->calls <= h->c.owner_calls || !h->c.owner_calls;
    pthread_mutex_unlock(&h->lock);
    return may;
}

/* Who is nobody has no body to send. */
static size_t http_body_max(const struct http_call *c)
{
    return c->owner ? c->h->c.body_max : 0;
}

/* Does a page of another site ask? Where tokens are needed it has none; where none are, a visited page could ask
 * for work. */
static bool http_cross_site(const struct http_call *c)
{
    const char *origin = http_header(c, "Origin"), *host = http_header(c, "Host");
    const char *site = origin ? strstr(origin, "://") : NULL;

    return origin && !http_bearer(c) && (!site || !host || strcasecmp(site + 3, host));
}

/* "[::1]:80" -> "::1", "here:80" -> "here"; owned. */
static char *http_host_name(const char *host)
{
    bool address = *host == '[';

    host += address;
    return xstrndup(host, strcspn(host, address ? "]" : ":"));
}

/* True if the comma-separated list has the host's name, in any case. */
static bool http_host_is_listed(const char *name, const char *list)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == strlen(name) && !strncasecmp(list, name, n))
            return true;
    }
    return false;
}

/* A page's own name may be made to lead to this machine, after which the page is of no other site; an address and
 * localhost may not. */
static bool http_foreign_name(const struct http_call *c)
{
    const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST};
    const char *host = http_header(c, "Host");
    struct addrinfo *found = NULL;
    char *name;
    bool known;

    if (!c->h->c.hosts || !host) /* no browser leaves it out */
        return false;
    name = http_host_name(host);
    known = !strcasecmp(name, "localhost") || http_host_is_listed(name, c->h->c.hosts) ||
            getaddrinfo(name, NULL, &numeric, &found) == 0;
    if (found)
        freeaddrinfo(found);
    free(name);
    return !known;
}

/* Before the body is read: who, where, how large. Sets an answer to refuse. */
static void http_admit(struct http_call *c, const char *method)
{
    const char *length = http_header(c, "Content-Length");
    bool may;

    if (http_ambiguous(c)) {
        http_header_add(c, "Connection", "close");
        http_refuse(c, 400, "bad_request", "the headers do not say the body's length in one way");
        return;
    }
    if (!(c->route = http_find_route(c, method)))
        return;
    may = http_own(c, c->h->c.who(http_bearer(c), c->h->c.ctx));
    if (!c->owner && !c->route->open) {
        http_header_add(c, "WWW-Authenticate", "Bearer");
        http_refuse(c, 401, "unauthorized", "a known token is needed: 'Authorization: Bearer TOKEN'");
    } else if (http_foreign_name(c)) {
        http_refuse(c, 403, "foreign_host", "'%.200s' is no name of this server; call it by its address, or start it "
                    "with --host NAME", http_header(c, "Host"));
    } else if (http_cross_site(c)) {
        http_refuse(c, 403, "cross_site", "a page of another site asks; give the server tokens, or ask without "
                    "'Origin'");
    } else if (length && strtoull(length, NULL, 10) > http_body_max(c)) {
        http_refuse(c, 413, "too_large", "the body may have %zu bytes", http_body_max(c));
    } else if (!may) {
        http_header_add(c, "Retry-After", "5");
        http_refuse(c, 429, "busy", "you have as many open calls as you may; try again when some have ended");
    }
}

/* Queues the reply that http_set_response set, and frees it. */
static enum MHD_Result http_send_answer(struct http_call *c)
{
    enum MHD_Result rc = mhd.MHD_queue_response(c->conn, (unsigned)c->status, c->response);

    mhd.MHD_destroy_response(c->response);
    c->response = NULL;
    return rc;
}

/* Is there room for n bytes more, of this owner's and of all? Under the lock. */
static bool http_room_for_body(const struct http_call *c, size_t n)
{
    const struct http_config *k = &c->h->c;

    return c->h->bodies + n <= k->bodies_max &&
           (!k->owner_bodies || !c->owner || c->owner->bodies + n <= k->owner_bodies);
}

/* Takes a piece of the body; what exceeds the limits is counted and dropped. MHD_NO ends the connection. */
static enum MHD_Result http_take_body(struct http_call *c, const char *data, size_t *n)
{
    if (now_s() > c->began + BODY_S) /* a byte now and then keeps the idle clock from ending it */
        return MHD_NO;
    if (!http_body_max(c)) /* a body without a length, on a call that may have none */
        return MHD_NO;
    pthread_mutex_lock(&c->h->lock);
    c->too_large |= c->body.n + *n > http_body_max(c);
    c->too_many |= !http_room_for_body(c, *n);
    if (c->too_many || c->too_large) {
        http_drop_body(c);
    } else {
        buf_add(&c->body, data, *n);
        c->h->bodies += *n;
        if (c->owner)
            c->owner->bodies += *n;
    }
    pthread_mutex_unlock(&c->h->lock);
    *n = 0;
    return MHD_YES;
}

/* Refuses a body that was too large, or hands the call to its route. */
static void http_handle(struct http_call *c)
{
    if (c->too_large) {
        http_refuse(c, 413, "too_large", "the body may have %zu bytes", http_body_max(c));
    } else if (c->too_many) {
        http_header_add(c, "Retry-After", "5");
        http_refuse(c, 503, "busy", "too much is being sent to this server; try again in a few seconds");
    } else {
        c->route->handle(c, c->ctx);
    }
}

/* Runs the handler until it has answered or sleeps. */
static enum MHD_Result http_serve_call(struct http_call *c)
{
    for (;;) {
        c->park = false;
        if (http_hung_up(c))
            return MHD_NO;
        http_handle(c);
        pthread_mutex_lock(&c->h->lock);
        http_drop_body(c); /* it is in the queue, or was refused */
        pthread_mutex_unlock(&c->h->lock);
        if (!c->park)
            break;
        if (http_fell_asleep(c))
            return MHD_YES;
    }
    if (!c->response)
        http_refuse(c, 500, "internal", "no answer was made");
    return http_send_answer(c);
}

/* libmicrohttpd's callback for a call: its head first, then pieces of its body, then its end. */
static enum MHD_Result http_on_call(void *ctx, struct MHD_Connection *conn, const char *url, const char *method,
                                    const char *version, const char *data, size_t *n, void **at)
{
    struct http_call *c = *at;

    if (!c)
        *at = c = http_call_new(ctx, conn, url);
    if (!c->first_seen) {
        c->first_seen = true;
        http_admit(c, method);
        return c->response ? http_send_answer(c) : MHD_YES;
    }
    return *n ? http_take_body(c, data, n) : http_serve_call(c);
}

/* ---- the server ---- */

/* The address to listen on. ERR_INPUT: it is not numeric. */
static int http_address_of(const struct http_config *c, struct sockaddr_storage *ret, struct err *e)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found;
    char port[16];

    snprintf(port, sizeof port, "%d", c->port);
    if (getaddrinfo(c->address, port, &hints, &found) != 0)
        return err_set(e, ERR_INPUT, "'%s' is not an address; say 127.0.0.1, 0.0.0.0 or ::", c->address);
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

/* Raises the process's soft limit of open files as far as that is needed and allowed. Returns how many of the asked
 * connections fit then, and warns where that is fewer. */
static int http_room_for(int connections)
{
    struct rlimit files;
    rlim_t most;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return connections;
    if (files.rlim_cur < files.rlim_max && files.rlim_cur < (rlim_t)connections + FILES_OF_OURS) {
        most = (rlim_t)connections + FILES_OF_OURS;
        files.rlim_cur = most < files.rlim_max ? most : files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    most = files.rlim_cur > 2 * FILES_OF_OURS ? files.rlim_cur - FILES_OF_OURS : files.rlim_cur / 2;
    if (most >= (rlim_t)connections)
        return connections;
    log_warn("%d connections at once: the limit of open files is %llu (ulimit -n)", (int)most,
             (unsigned long long)files.rlim_cur);
    return (int)most;
}

static void http_no_log(void *ctx, const char *fmt, va_list ap) {}

/* Starts to listen; *ret is stopped by http_stop. ERR_ENV: the address is taken. */
int http_start(const struct http_config *c, struct http **ret, struct err *e)
{
    struct sockaddr_storage at = {0};
    struct http *h;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    if (mhd_load(e) < 0 || http_address_of(c, &at, e) < 0)
        return -1;
    if (at.ss_family == AF_INET6)
        flags |= MHD_USE_DUAL_STACK;
    h = xcalloc(1, sizeof *h);
    h->c = *c;
    h->c.connections = http_room_for(c->connections);
    pthread_mutex_init(&h->lock, NULL);
    h->daemon = mhd.MHD_start_daemon(
        flags, (uint16_t)c->port, NULL, NULL, http_on_call, h, MHD_OPTION_EXTERNAL_LOGGER, http_no_log, NULL,
        MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)c->threads,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->c.connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)c->idle_s, MHD_OPTION_NOTIFY_COMPLETED, http_call_ended, h, MHD_OPTION_NOTIFY_CONNECTION,
        http_on_connection, h, MHD_OPTION_END);
    if (!h->daemon) {
        free(h);
        return err_set(e, ERR_ENV, "cannot listen on %s port %d: in use, or not allowed; name another --port",
                       c->address, c->port);
    }
    if (pthread_create(&h->watch, NULL, http_watch, h) != 0) {
        mhd.MHD_stop_daemon(h->daemon);
        free(h);
        return err_set(e, ERR_ENV, "cannot start a thread");
    }
    *ret = h;
    return 0;
}

int http_port(const struct http *h)
{
    const union MHD_DaemonInfo *i = mhd.MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);

    return i ? i->port : h->c.port;
}

/* Wakes all suspended calls; how many there are. */
static int http_wake_all(struct http *h)
{
    int n;

    pthread_mutex_lock(&h->lock);
    for (struct http_call *c = h->calls; c; c = c->after)
        http_wake(c);
    n = h->n_calls;
    pthread_mutex_unlock(&h->lock);
    return n;
}

void http_stop(struct http *h)
{
    double until = now_s() + STOP_WAIT_S;
    int fd;

    if (!h)
        return;
    __atomic_store_n(&h->stopping, true, __ATOMIC_RELEASE);
    pthread_join(h->watch, NULL);
    fd = mhd.MHD_quiesce_daemon(h->daemon);
    while (http_wake_all(h) > 0 && now_s() < until)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    mhd.MHD_stop_daemon(h->daemon);
    if (fd >= 0)
        close(fd);
    pthread_mutex_destroy(&h->lock);
    for (struct http_tenant *o = h->owners, *after; o; o = after) {
        after = o->after;
        free(o);
    }
    free(h);
}
