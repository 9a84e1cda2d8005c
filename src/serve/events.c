/* events.c - see events.h. A listener that is slower than the ring is long loses the oldest messages, and is told so.
 */
#include "serve/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define RING 1024

struct listener {
    struct events *v;
    struct http_call *call;
    const char *owner; /* whose messages it hears; NULL: all */
    uint64_t next; /* number of the next message */
    size_t at;     /* bytes of it that were sent */
    struct listener *before, *after;
};

struct events {
    pthread_mutex_t lock;
    struct message {
        char *owner, *line; /* owner NULL: everybody's */
    } ring[RING];
    uint64_t said;
    struct listener *first;
};

struct events *events_new(void)
{
    struct events *v = xcalloc(1, sizeof *v);

    pthread_mutex_init(&v->lock, NULL);
    return v;
}

void events_free(struct events *v)
{
    if (!v)
        return;
    for (int i = 0; i < RING; i++) {
        free(v->ring[i].line);
        free(v->ring[i].owner);
    }
    pthread_mutex_destroy(&v->lock);
    free(v);
}

/* True if the message is for everybody, or for this listener's owner. */
static bool events_hears(const struct listener *l, const struct message *m)
{
    return !l->owner || !m->owner || !strcmp(l->owner, m->owner);
}

void events_say(struct events *v, const char *owner, const char *kind, const json_t *data)
{
    char *text = json_text(data);
    struct message m = {owner ? xstrdup(owner) : NULL, xasprintf("event: %s\ndata: %s\n\n", kind, text)}, *at;

    pthread_mutex_lock(&v->lock);
    at = &v->ring[v->said++ % RING];
    free(at->line);
    free(at->owner);
    *at = m;
    for (struct listener *l = v->first; l; l = l->after)
        if (events_hears(l, &m))
            http_wake(l->call);
        else if (l->next == v->said - 1 && l->at == 0)
            l->next++; /* nothing was missed */
    pthread_mutex_unlock(&v->lock);
    free(text);
}

/* A callback of http: copies the listener's next events to buf. 0: none yet. */
static long events_take(struct listener *l, char *buf, size_t max)
{
    struct events *v = l->v;
    const char *line;
    size_t n;

    if (v->said - l->next > RING) {
        bool amid = l->at > 0;
        l->next = v->said - RING;
        l->at = 0;
        return snprintf(buf, max, "%sevent: lost\ndata: {}\n\n", amid ? "\n\n" : "");
    }
    while (l->next < v->said && !events_hears(l, &v->ring[l->next % RING]))
        l->next++;
    if (l->next == v->said)
        return 0;
    line = v->ring[l->next % RING].line + l->at;
    n = strlen(line) < max ? strlen(line) : max;
    memcpy(buf, line, n);
    l->at += n;
    if (!line[n]) {
        l->next++;
        l->at = 0;
    }
    return (long)n;
}

/* A callback of the HTTP reply: fills buf with the next events of this listener; as events_take. */
static long events_next(void *slot, char *buf, size_t max)
{
    struct listener *l = slot;
    long n;

    pthread_mutex_lock(&l->v->lock);
    n = events_take(l, buf, max);
    pthread_mutex_unlock(&l->v->lock);
    return n;
}

/* A callback of http: the listener's client is gone. */
static void events_gone(void *slot)
{
    struct listener *l = slot;
    struct events *v = l->v;

    pthread_mutex_lock(&v->lock);
    *(l->before ? &l->before->after : &v->first) = l->after;
    if (l->after)
        l->after->before = l->before;
    pthread_mutex_unlock(&v->lock);
    free(l);
}

void events_stream(struct events *v, const char *owner, struct http_call *c)
{
    struct listener *l = xcalloc(1, sizeof *l);

    pthread_mutex_lock(&v->lock);
    *l = (struct listener){.v = v, .call = c, .owner = owner, .next = v->said, .after = v->first};
    if (v->first)
        v->first->before = l;
    v->first = l;
    pthread_mutex_unlock(&v->lock);
    http_stream(c, "text/event-stream", events_next, l, events_gone);
}
