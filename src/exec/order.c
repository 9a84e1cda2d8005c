/* order.c - see order.h: vector clocks. clock[s][t] is how many pieces of work of stream t come before what stream s
 * does next; row HOST is the host's own knowledge, which all that it queues later inherits. A stream that takes the
 * number of one that was destroyed has a row of its own: its events say nothing about the other one's work. */
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
    uint32_t row[CONTEXT_STREAMS]; /* of each stream's number */
    bool apart[CONTEXT_STREAMS]; /* does not wait for the legacy stream, nor it for this one */
    bool used[CONTEXT_STREAMS];
    uint64_t work[CONTEXT_STREAMS]; /* of the call: launches, copies, fills, whatever a stream does later */
    uint32_t call, running;
    const struct log_binding **inputs; /* of the call: where they lie */
    size_t n_inputs, cap_inputs;
    uint64_t given;  /* so many pieces of work of the legacy stream come before the inputs are there */
    uint32_t hasty;  /* a stream whose work names inputs before that; 0: none */
};

/* 'to' has seen all that 'from' has seen. */
static void order_join(struct clock *to, const struct clock *from)
{
    for (uint32_t i = 0; i < CONTEXT_STREAMS; i++)
        if (from->of[i] > to->of[i])
            to->of[i] = from->of[i];
}

static uint32_t order_row_of(const struct order *o, uint32_t s)
{
    return s == WIRE_STREAM_LEGACY || s >= CONTEXT_STREAMS ? 0 : o->row[s];
}

/* Where all rows are taken the old one serves again. */
static void order_create(struct order *o, uint32_t s, bool apart)
{
    uint32_t *r = &o->row[s % CONTEXT_STREAMS], spare = CONTEXT_STREAMS - 1;

    while (spare > CONTEXT_FIRST_STREAM && o->used[spare])
        spare--;
    *r = o->used[*r] && !o->used[spare] ? spare : *r;
    o->used[*r] = true;
    o->apart[*r] = apart;
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

/* Counts a piece of work on stream s. */
static void order_work(struct order *o, uint32_t s)
{
    order_come(o, s);
    o->at[s].of[s]++;
}

/* The host has seen the work of all streams. */
static void order_host_joins_all(struct order *o)
{
    for (uint32_t s = 0; s < CONTEXT_STREAMS; s++)
        if (o->used[s])
            order_join(&o->at[HOST], &o->at[s]);
}

/* Follows an event's record, wait or end: whoever waits knows what the recording stream knew. */
static void order_on_event(struct order *o, const struct log_entry *en)
{
    const struct wire_event *m = en->body;
    struct clock **v = &o->events[m->event % CONTEXT_EVENTS];
    uint32_t s = order_row_of(o, m->stream);

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

/* The host has waited for the stream. */
static void order_on_sync(struct order *o, uint32_t stream)
{
    uint32_t s = order_row_of(o, stream);

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

/* ---- inputs: the caller's work on the legacy stream has made them ---- */

/* A call begins: its inputs are given from now on. */
static void order_begin(struct order *o, uint32_t call)
{
    o->running = call;
    o->n_inputs = 0;
    memset(o->work, 0, sizeof o->work);
    order_work(o, 0);
    o->given = o->at[0].of[0];
}

/* Notes where an input of the running call lies. */
static void order_note_input(struct order *o, const struct log_binding *m)
{
    if (!o->running)
        return;
    if (o->n_inputs == o->cap_inputs) {
        o->cap_inputs = o->cap_inputs ? 2 * o->cap_inputs : 16;
        o->inputs = xrealloc(o->inputs, o->cap_inputs * sizeof *o->inputs);
    }
    o->inputs[o->n_inputs++] = m;
}

/* True where the address lies in an input. */
static bool order_is_input(const struct order *o, uint64_t addr)
{
    for (size_t i = 0; i < o->n_inputs; i++)
        if (addr - o->inputs[i]->addr < o->inputs[i]->n)
            return true;
    return false;
}

/* Is an address among what it says, a kernel's arguments included? Data that goes up is none. */
static bool order_names_inputs(const struct order *o, const struct log_entry *en)
{
    const uint8_t *p = en->body;
    uint64_t addr;

    for (size_t i = 0; en->head.op != WIRE_UP && i + sizeof addr <= en->head.bytes - sizeof en->head; i += 4) {
        memcpy(&addr, p + i, sizeof addr);
        if (order_is_input(o, addr))
            return true;
    }
    return false;
}

/* Follows entries that are no stream's work: inputs, creations, waits of the host, frees. */
static void order_on_other(struct order *o, const struct log_entry *en)
{
    const struct wire_stream_create *create = en->body;
    const struct wire_stream *sync = en->body;
    const struct wire_down *down = en->body;
    const struct wire_free *gone = en->body;

    switch (en->head.op) {
    case LOG_BIND: order_note_input(o, en->body); break;
    case WIRE_STREAM_CREATE: order_create(o, (uint32_t)en->head.result, create->flags & 1); break;
    case WIRE_STREAM_SYNC: order_on_sync(o, sync->stream); break;
    case WIRE_STREAM_DESTROY: break; /* the executor waits before it destroys, a device does not */
    case WIRE_DOWN: order_on_sync(o, down->stream); break;
    case WIRE_DEVICE_SYNC: order_host_joins_all(o); break;
    case WIRE_FREE:
        if (gone->kind == WIRE_ALLOC_RAW)
            order_host_joins_all(o);
        break;
    default: order_on_event(o, en);
    }
}

/* Follows one entry of the log, and notes a stream that reads inputs before it waits for them. */
static void order_take(struct order *o, const struct log_entry *en)
{
    uint32_t s = order_work_stream(en);

    if (s == NONE) {
        order_on_other(o, en);
        return;
    }
    s = order_row_of(o, s);
    order_work(o, s);
    if (!o->running || (o->call && o->running != o->call))
        return;
    o->work[s]++;
    if (!o->hasty && o->at[s].of[0] < o->given && order_names_inputs(o, en))
        o->hasty = s;
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
    if (o->hasty) {
        ret->ordered = false;
        ret->stream = o->hasty;
        ret->work = o->work[o->hasty];
        snprintf(ret->why, sizeof ret->why, "a stream of the program's own reads inputs that the current stream may "
                 "still write; let it wait for an event recorded on the current stream when forward begins");
    }
}

void order_check(const struct exec_log *log, uint32_t call, struct order_finding *ret)
{
    struct order o = {.call = call};
    struct log_entry en;

    o.at = xcalloc(CONTEXT_STREAMS + 1, sizeof *o.at);
    o.events = xcalloc(CONTEXT_EVENTS, sizeof *o.events);
    *ret = (struct order_finding){.ordered = true};
    for (uint32_t s = 0; s < CONTEXT_STREAMS; s++)
        o.row[s] = s;
    for (size_t at = 0; ret->ordered && exec_log_next(log, &at, &en) > 0;) {
        const struct log_call *mark = en.body;

        if (en.head.op == LOG_CALL_BEGIN) {
            order_begin(&o, mark->index);
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
    free(o.inputs);
    free(o.at);
}
