/* shuffle.c - see shuffle.h. Each node needs that others have been played; the ones it needs were asked for before
 * it, so one of the queues' heads can always be played. */
#include "exec/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Empties the graph of work for the next call. */
static void shuffle_forget(struct shuffle *s)
{
    s->n_nodes = s->n_needs = s->n_users = s->n_freed = 0;
    memset(s->handles, 0, SHUFFLE_HANDLES * sizeof *s->handles);
    memset(s->tail, 0, sizeof s->tail);
}

void shuffle_init(struct shuffle *s)
{
    if (!s->handles)
        s->handles = xcalloc(SHUFFLE_HANDLES, sizeof *s->handles);
    shuffle_forget(s);
    memset(s->asked, 0, sizeof s->asked);
    memset(s->played, 0, sizeof s->played);
    memset(s->head, 0, sizeof s->head);
    memset(s->apart, 0, sizeof s->apart);
}

void shuffle_free(struct shuffle *s)
{
    free(s->nodes);
    free(s->needs);
    free(s->handles);
    free(s->users);
    free(s->freed);
    *s = (struct shuffle){0};
}

/* Room for one more element of that size; p may move. */
static void *shuffle_more(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? *cap * 2 : 64;
    return xrealloc(p, *cap * size);
}

/* ---- what the next node needs ---- */

/* The node being added waits for the first 'count' nodes of a queue. */
static void shuffle_do_need(struct shuffle *s, uint32_t queue, uint32_t count)
{
    if (!count || s->played[queue] >= count)
        return;
    s->needs = shuffle_more(s->needs, s->n_needs, &s->cap_needs, sizeof *s->needs);
    s->needs[s->n_needs++] = (struct shuffle_need){queue, count};
}

/* What is added next needs all work before it. */
static void shuffle_need_all(struct shuffle *s)
{
    for (uint32_t i = 0; i < CONTEXT_STREAMS; i++)
        shuffle_do_need(s, i, s->asked[i]);
}

/* ---- handles: around the node's adding ---- */

/* The node waits for whoever changed the handle; if it changes it, for its users too. */
static void shuffle_need_handle(struct shuffle *s, uint32_t handle, bool changes)
{
    const struct shuffle_handle *h = &s->handles[handle];

    shuffle_do_need(s, h->changed.queue, h->changed.count);
    for (uint32_t i = changes ? h->first_user : 0; i; i = s->users[i - 1].next)
        shuffle_do_need(s, s->users[i - 1].at.queue, s->users[i - 1].at.count);
}

/* Notes that a queue changes or uses a handle, so that a permutation keeps their order. */
static void shuffle_note_handle(struct shuffle *s, uint32_t handle, bool changes, uint32_t queue)
{
    const struct shuffle_need now = {queue, s->asked[queue]};
    struct shuffle_handle *h = &s->handles[handle];

    if (changes) {
        *h = (struct shuffle_handle){.changed = now, .attr = h->attr, .value = h->value};
        return;
    }
    for (uint32_t i = h->first_user; i; i = s->users[i - 1].next)
        if (s->users[i - 1].at.queue == queue) {
            s->users[i - 1].at = now;
            return;
        }
    s->users = shuffle_more(s->users, s->n_users, &s->cap_users, sizeof *s->users);
    s->users[s->n_users++] = (struct shuffle_user){now, h->first_user};
    h->first_user = (uint32_t)s->n_users;
}

/* ---- waits that no handle stands for ---- */

/* The legacy stream and those that are not apart from it wait for each other. */
static void shuffle_need_legacy_order(struct shuffle *s, uint32_t stream)
{
    if (stream && !s->apart[stream])
        shuffle_do_need(s, 0, s->asked[0]);
    for (uint32_t t = 1; stream == 0 && t < CONTEXT_STREAMS; t++)
        if (!s->apart[t])
            shuffle_do_need(s, t, s->asked[t]);
}

/* A block that lies where another one was comes after that one's release. */
static void shuffle_need_freed(struct shuffle *s, uint64_t addr, uint64_t bytes)
{
    for (size_t i = 0; i < s->n_freed; i++)
        if (s->freed[i].addr < addr + bytes && addr < s->freed[i].addr + s->freed[i].bytes)
            shuffle_do_need(s, SHUFFLE_FREES, s->freed[i].count);
}

/* ---- adding ---- */

/* needs from first on are the node's. */
static void shuffle_do_add(struct shuffle *s, const struct log_entry *en, uint32_t queue, size_t first)
{
    uint32_t at;

    if (queue != SHUFFLE_HOST)
        shuffle_do_need(s, SHUFFLE_HOST, s->asked[SHUFFLE_HOST]);
    s->nodes = shuffle_more(s->nodes, s->n_nodes, &s->cap_nodes, sizeof *s->nodes);
    s->nodes[s->n_nodes++] = (struct shuffle_node){*en, queue, 0, (uint32_t)first, (uint32_t)(s->n_needs - first)};
    at = (uint32_t)s->n_nodes;
    if (s->tail[queue])
        s->nodes[s->tail[queue] - 1].next = at;
    else
        s->head[queue] = at;
    s->tail[queue] = at;
    s->asked[queue]++;
}

static uint32_t shuffle_stream_of(uint32_t s)
{
    return s == WIRE_STREAM_LEGACY || s >= CONTEXT_STREAMS ? 0 : s;
}

/* Adds a kernel or a copy of a stream. */
static void shuffle_add_work(struct shuffle *s, const struct log_entry *en, uint32_t stream, size_t first)
{
    shuffle_need_legacy_order(s, stream);
    shuffle_do_add(s, en, stream, first);
    shuffle_note_handle(s, SHUFFLE_STREAM + stream, false, stream);
}

/* On a stream, or of the host itself. */
static void shuffle_add_with(struct shuffle *s, const struct log_entry *en, uint32_t queue, uint32_t handle,
                             bool changes, size_t first)
{
    shuffle_need_handle(s, handle, changes);
    if (queue < CONTEXT_STREAMS)
        shuffle_add_work(s, en, queue, first);
    else
        shuffle_do_add(s, en, queue, first);
    shuffle_note_handle(s, handle, changes, queue);
}

/* Adds a launch to its stream. The next ones add other entries. */
static void shuffle_add_launch(struct shuffle *s, const struct log_entry *en, size_t first)
{
    const struct wire_launch *m = en->body;

    shuffle_add_with(s, en, shuffle_stream_of(m->stream), SHUFFLE_FUNCTION + m->function % CONTEXT_FUNCTIONS, false,
                     first);
}

/* Adds an event's record, wait or query. */
static void shuffle_add_event(struct shuffle *s, const struct log_entry *en, size_t first)
{
    const struct wire_event *m = en->body;
    unsigned op = en->head.op;
    bool on_stream = op == WIRE_EVENT_RECORD || op == WIRE_EVENT_WAIT;
    uint32_t queue = on_stream ? shuffle_stream_of(m->stream) : op == WIRE_EVENT_DESTROY ? SHUFFLE_CHANGES
        : SHUFFLE_HOST;

    shuffle_add_with(s, en, queue, SHUFFLE_EVENT + m->event % CONTEXT_EVENTS,
                     op == WIRE_EVENT_RECORD || op == WIRE_EVENT_DESTROY, first);
}

/* Adds a wait of the host for a stream. */
static void shuffle_add_sync(struct shuffle *s, const struct log_entry *en, uint32_t stream, size_t first)
{
    shuffle_need_legacy_order(s, stream);
    shuffle_do_need(s, stream, s->asked[stream]);
    shuffle_do_add(s, en, SHUFFLE_HOST, first);
}

/* Adds a free, which waits for everything. */
static void shuffle_add_free(struct shuffle *s, const struct log_entry *en, uint64_t bytes, size_t first)
{
    const struct wire_free *m = en->body;

    shuffle_need_all(s);
    if (m->kind == WIRE_ALLOC_RAW) { /* it waits for the device */
        shuffle_do_add(s, en, SHUFFLE_HOST, first);
        return;
    }
    shuffle_do_add(s, en, SHUFFLE_FREES, first);
    s->freed = shuffle_more(s->freed, s->n_freed, &s->cap_freed, sizeof *s->freed);
    s->freed[s->n_freed++] = (struct shuffle_freed){m->addr, bytes, s->asked[SHUFFLE_FREES]};
}

/* Adds work of the host. */
static void shuffle_add_host(struct shuffle *s, const struct log_entry *en, size_t first)
{
    const struct wire_alloc *alloc = en->body;

    if (en->head.op == WIRE_ALLOC)
        shuffle_need_freed(s, en->head.result, alloc->bytes);
    else if (en->head.op == WIRE_DEVICE_SYNC)
        shuffle_need_all(s);
    shuffle_do_add(s, en, SHUFFLE_HOST, first);
}

/* A limit is often set before each launch, to what it is. */
static bool shuffle_sets_anew(struct shuffle_handle *h, const struct wire_func_attr *m)
{
    bool anew = h->attr != m->attr || h->value != m->value;

    h->attr = m->attr, h->value = m->value;
    return anew;
}

/* Something becomes another thing. */
static void shuffle_add_change(struct shuffle *s, const struct log_entry *en, size_t first)
{
    const struct wire_stream_create *create = en->body;
    const struct wire_func_attr *limit = en->body;
    const struct wire_stream *gone = en->body;
    bool creates = en->head.op == WIRE_STREAM_CREATE || en->head.op == WIRE_EVENT_CREATE, changes = true;
    uint32_t made = (uint32_t)en->head.result, handle = 0;

    switch (en->head.op) {
    case WIRE_STREAM_CREATE:
        s->apart[made % CONTEXT_STREAMS] = create->flags & 1;
        handle = SHUFFLE_STREAM + made % CONTEXT_STREAMS;
        break;
    case WIRE_STREAM_DESTROY: handle = SHUFFLE_STREAM + shuffle_stream_of(gone->stream); break;
    case WIRE_EVENT_CREATE: handle = SHUFFLE_EVENT + made % CONTEXT_EVENTS; break;
    case WIRE_FUNC_ATTR:
        handle = SHUFFLE_FUNCTION + limit->function % CONTEXT_FUNCTIONS;
        changes = shuffle_sets_anew(&s->handles[handle], limit);
        break;
    }
    shuffle_add_with(s, en, creates ? SHUFFLE_HOST : SHUFFLE_CHANGES, handle, changes, first);
}

void shuffle_add(struct shuffle *s, const struct log_entry *en, uint64_t bytes)
{
    size_t first = s->n_needs;

#define WORK(name, type)                                                                                               \
    case name: shuffle_add_work(s, en, shuffle_stream_of(((const struct type *)en->body)->stream), first); break;
    switch (en->head.op) {
        WORK(WIRE_MEMSET, wire_memset)
        WORK(WIRE_UP, wire_up)
        WORK(WIRE_COPY, wire_copy)
        WORK(LOG_ECHO, wire_copy)
        WORK(WIRE_FILL, wire_fill)
        WORK(WIRE_STRIDED, wire_strided)
        WORK(WIRE_ARANGE, wire_arange)
        WORK(WIRE_RANDOM, wire_random)
    case WIRE_LAUNCH: shuffle_add_launch(s, en, first); break;
    case WIRE_STREAM_CREATE:
    case WIRE_STREAM_DESTROY:
    case WIRE_EVENT_CREATE:
    case WIRE_FUNC_ATTR: shuffle_add_change(s, en, first); break;
    case WIRE_EVENT_DESTROY:
    case WIRE_EVENT_RECORD:
    case WIRE_EVENT_WAIT:
    case WIRE_EVENT_SYNC: shuffle_add_event(s, en, first); break;
    case WIRE_STREAM_SYNC: shuffle_add_sync(s, en, shuffle_stream_of(((const struct wire_stream *)en->body)->stream),
                                            first); break;
    case WIRE_DOWN: shuffle_add_sync(s, en, shuffle_stream_of(((const struct wire_down *)en->body)->stream), first);
    break;
    case WIRE_FREE: shuffle_add_free(s, en, bytes, first); break;
    default: shuffle_add_host(s, en, first);
    }
#undef WORK
}

/* ---- playing ---- */

/* True where all that the node waits for was played. */
static bool shuffle_ready(const struct shuffle *s, uint32_t node)
{
    const struct shuffle_node *n = &s->nodes[node - 1];

    for (uint32_t i = 0; i < n->n_needs; i++) {
        const struct shuffle_need *v = &s->needs[n->first_need + i];

        if (s->played[v->queue] < v->count)
            return false;
    }
    return true;
}

/* The one that was asked for last among the heads that are ready; 0: all are played. */
static uint32_t shuffle_latest(const struct shuffle *s, const uint32_t *used, uint32_t n_used)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < n_used; i++) {
        uint32_t node = s->head[used[i]];

        if (node > best && shuffle_ready(s, node))
            best = node;
    }
    return best;
}

void shuffle_play(struct shuffle *s, void (*play)(void *ctx, const struct log_entry *en), void *ctx)
{
    uint32_t used[SHUFFLE_QUEUES], n = 0, node;

    for (uint32_t i = 0; i < SHUFFLE_QUEUES; i++)
        if (s->head[i])
            used[n++] = i;
    while ((node = shuffle_latest(s, used, n))) {
        const struct shuffle_node *v = &s->nodes[node - 1];

        s->head[v->queue] = v->next;
        s->played[v->queue]++;
        play(ctx, &v->en);
    }
    shuffle_forget(s);
}
