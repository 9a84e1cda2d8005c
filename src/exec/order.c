/* order.c - see order.h: vector clocks. clock[s][t] is how many pieces of work of stream t come before what stream s
 * does next; row HOST is the host's own knowledge, which all that it queues later inherits. */
#include "exec/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/context.h"

#define HOST CONTEXT_STREAMS
#define NONE UINT32_MAX

struct clock {
    uint64_t of[CONTEXT_STREAMS];
};

struct order {
    struct clock *at;      /* CONTEXT_STREAMS + 1 rows */
    struct clock **events; /* CONTEXT_EVENTS; NULL: never recorded */
    bool apart[CONTEXT_STREAMS]; /* does not wait for the legacy stream, nor it for this one */
    bool used[CONTEXT_STREAMS];
    uint64_t work[CONTEXT_STREAMS]; /* of the call: launches, copies, fills, whatever a stream does later */
    uint32_t call, running;
};

static void order_join(struct clock *to, const struct clock *from)
{
    for (uint32_t i = 0; i < CONTEXT_STREAMS; i++)
        if (from->of[i] > to->of[i])
            to->of[i] = from->of[i];
}

static uint32_t order_stream_of(uint32_t s)
{
    return s == WIRE_STREAM_LEGACY || s >= CONTEXT_STREAMS ? 0 : s;
}

/* What stream s waits for before its next work. */
static void order_come(struct order *o, uint32_t s)
{
    order_join(&o->at[s], &o->at[HOST]);
    o->used[s] = true;
    if (s != 0 && !o->apart[s])
        order_join(&o->at[s], &o->at[0]);
    for (uint32_t t = 1; s == 0 && t < CONTEXT_STREAMS; t++)
        if (o->used[t] && !o->apart[t])
            order_join(&o->at[0], &o->at[t]);
}

static void order_work(struct order *o, uint32_t s)
{
    order_come(o, s);
    o->at[s].of[s]++;
}

static void order_host_joins_all(struct order *o)
{
    for (uint32_t s = 0; s < CONTEXT_STREAMS; s++)
        if (o->used[s])
            order_join(&o->at[HOST], &o->at[s]);
}

static void order_on_event(struct order *o, const struct log_entry *en)
{
    const struct wire_event *m = en->body;
    struct clock **v = &o->events[m->event % CONTEXT_EVENTS];
    uint32_t s = order_stream_of(m->stream);

    switch (en->head.op) {
    case WIRE_EVENT_RECORD:
        order_come(o, s);
        if (!*v)
            *v = xmalloc(sizeof **v);
        **v = o->at[s];
        break;
    case WIRE_EVENT_WAIT:
        o->used[s] = true;
        if (*v)
            order_join(&o->at[s], *v);
        break;
    case WIRE_EVENT_SYNC:
        if (*v)
            order_join(&o->at[HOST], *v);
        break;
    case WIRE_EVENT_CREATE:
        v = &o->events[en->head.result % CONTEXT_EVENTS];
        free(*v);
        *v = NULL;
    }
}

static void order_on_sync(struct order *o, uint32_t stream)
{
    uint32_t s = order_stream_of(stream);

    order_come(o, s);
    order_join(&o->at[HOST], &o->at[s]);
}

/* The stream that an entry's work goes to; NONE: it is no work. */
static uint32_t order_work_stream(const struct log_entry *en)
{
    switch (en->head.op) {
    case WIRE_LAUNCH: return ((const struct wire_launch *)en->body)->stream;
    case WIRE_MEMSET: return ((const struct wire_memset *)en->body)->stream;
    case WIRE_UP: return ((const struct wire_up *)en->body)->stream;
    case WIRE_COPY:
    case LOG_ECHO: return ((const struct wire_copy *)en->body)->stream;
    case WIRE_FILL: return ((const struct wire_fill *)en->body)->stream;
    case WIRE_STRIDED: return ((const struct wire_strided *)en->body)->stream;
    case WIRE_ARANGE: return ((const struct wire_arange *)en->body)->stream;
    case WIRE_RANDOM: return ((const struct wire_random *)en->body)->stream;
    default: return NONE;
    }
}

static void order_on_other(struct order *o, const struct log_entry *en)
{
    const struct wire_stream_create *create = en->body;
    const struct wire_stream *sync = en->body;
    const struct wire_down *down = en->body;
    const struct wire_free *gone = en->body;

    switch (en->head.op) {
    case WIRE_STREAM_CREATE: o->apart[en->head.result % CONTEXT_STREAMS] = create->flags & 1; break;
    case WIRE_STREAM_SYNC:
    case WIRE_STREAM_DESTROY: order_on_sync(o, sync->stream); break; /* the executor waits before it destroys */
    case WIRE_DOWN: order_on_sync(o, down->stream); break;
    case WIRE_DEVICE_SYNC: order_host_joins_all(o); break;
    case WIRE_FREE:
        if (gone->kind == WIRE_ALLOC_RAW)
            order_host_joins_all(o);
        break;
    default: order_on_event(o, en);
    }
}

static void order_take(struct order *o, const struct log_entry *en)
{
    uint32_t s = order_work_stream(en);

    if (s == NONE) {
        order_on_other(o, en);
        return;
    }
    order_work(o, order_stream_of(s));
    if (o->running && (!o->call || o->running == o->call))
        o->work[order_stream_of(s)]++;
}

/* Stands where the call has returned: the caller's next work is on the legacy stream. */
static void order_look(struct order *o, struct order_finding *ret)
{
    order_come(o, 0);
    for (uint32_t s = 1; s < CONTEXT_STREAMS; s++)
        if (o->work[s] && o->at[s].of[s] > o->at[0].of[s]) {
            ret->ordered = false;
            ret->stream = s;
            ret->work = o->work[s];
            snprintf(ret->why, sizeof ret->why,
                     "work on a stream of the program's own (launches, copies, fills: %llu) is not waited "
                     "for when forward returns; let the current stream wait for an event recorded there",
                     (unsigned long long)o->work[s]);
            return;
        }
}

void order_check(const struct exec_log *log, uint32_t call, struct order_finding *ret)
{
    struct order o = {.call = call};
    struct log_entry en;

    o.at = xcalloc(CONTEXT_STREAMS + 1, sizeof *o.at);
    o.events = xcalloc(CONTEXT_EVENTS, sizeof *o.events);
    *ret = (struct order_finding){.ordered = true};
    for (size_t at = 0; ret->ordered && exec_log_next(log, &at, &en) > 0;) {
        const struct log_call *mark = en.body;

        if (en.head.op == LOG_CALL_BEGIN) {
            o.running = mark->index;
            memset(o.work, 0, sizeof o.work);
        } else if (en.head.op == LOG_CALL_END) {
            o.running = 0;
            if (!o.call || mark->index == o.call)
                order_look(&o, ret);
            if (mark->index == o.call)
                break;
        } else {
            order_take(&o, &en);
        }
    }
    for (uint32_t s = 1; s < CONTEXT_STREAMS; s++)
        ret->streams |= o.used[s];
    for (uint32_t i = 0; i < CONTEXT_EVENTS; i++)
        free(o.events[i]);
    free(o.events);
    free(o.at);
}
