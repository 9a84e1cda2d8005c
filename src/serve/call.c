/* call.c - what every route needs of a call: the queue, a refusal that is counted, whose job it is. */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_private.h"

static void call_close_queue(void *q)
{
    queue_close(q);
}

static pthread_key_t queue_key;
static pthread_once_t queue_once = PTHREAD_ONCE_INIT;

/* Makes the key under which each thread has its own queue. */
static void call_make_key(void)
{
    pthread_key_create(&queue_key, call_close_queue);
}

struct queue *serve_queue(struct serve *s, struct err *e)
{
    struct queue *q;

    pthread_once(&queue_once, call_make_key);
    if (!(q = pthread_getspecific(queue_key)) && queue_open(s->c.queue, &q, e) == 0)
        pthread_setspecific(queue_key, q);
    return q;
}

void serve_refuse(struct serve *s, struct http_call *c, int status, const char *code, const char *fmt, ...)
{
    char msg[1100];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    metrics_refused(s->metrics, status);
    http_refuse(c, status, code, "%s", msg);
}

bool serve_operates(const struct serve *s, const struct http_call *c)
{
    return !s->tokens || (http_owner(c) && tokens_operates(s->tokens, http_owner(c)));
}

int serve_may_see(struct serve *s, struct http_call *c, struct queue *q, int64_t id, struct err *e)
{
    char *owner = serve_operates(s, c) ? NULL : queue_owner(q, id, e);
    int rc = serve_operates(s, c) || (owner && !strcmp(owner, http_owner(c))) ? 1
             : !owner && e->kind != ERR_INPUT                                ? -1
                                                                             : 0;

    free(owner);
    return rc;
}

bool serve_owns(struct serve *s, struct http_call *c, struct queue *q, int64_t id)
{
    struct err e = ERR_INIT;
    int rc = serve_may_see(s, c, q, id, &e);

    if (rc < 0)
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    else if (rc == 0)
        serve_refuse(s, c, 404, "not_found", "there is no job %lld: results are kept for %.0f hours", (long long)id,
                     s->c.keep_s / 3600);
    return rc == 1;
}

void serve_sign(const struct serve *s, const struct http_call *c, json_t *payload)
{
    if (s->tokens)
        json_object_set_new(payload, "owner", json_string(http_owner(c)));
}
