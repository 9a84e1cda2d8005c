/* player.c - see player.h. A row per op; the device's part is the backend's. player_play_NAME plays the entry NAME:
 * WIRE_OK, or the code of wire.h with which it failed. */
#include "exec/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const struct image *images_find(const struct images *all, const uint8_t sha256[32])
{
    for (size_t i = 0; i < all->n; i++)
        if (!memcmp(all->v[i].sha256, sha256, 32))
            return &all->v[i];
    return NULL;
}

void images_clear(struct images *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->v[i].p);
    all->n = 0;
}

/* Prepares the handles of a client. A code of WIRE. */
int player_init(struct player *p, const struct backend_ops *ops, struct exec_backend *b, const struct images *images)
{
    memset(p, 0, sizeof *p);
    p->ops = ops, p->b = b, p->images = images;
    p->events = xcalloc(CONTEXT_EVENTS, sizeof *p->events);
    p->poison = 0xff;
    p->shared_from = UINT64_MAX;
    p->poisons = true;
    return 0;
}

void player_poison(struct player *p, uint8_t byte)
{
    p->poison = byte;
    if (p->ops->poison)
        p->ops->poison(p->b, byte);
}

int player_fresh(struct player *p, struct err *e)
{
    for (uint32_t i = 0; i < CONTEXT_STREAMS; i++)
        if (p->streams[i])
            p->ops->stream_end(p->b, p->streams[i]);
    for (uint32_t i = 0; i < CONTEXT_EVENTS; i++)
        if (p->events[i])
            p->ops->event_end(p->b, p->events[i]);
    memset(p->modules, 0, sizeof p->modules);
    memset(p->functions, 0, sizeof p->functions);
    memset(p->streams, 0, sizeof p->streams);
    memset(p->events, 0, CONTEXT_EVENTS * sizeof *p->events);
    p->n_streams = 0;
    p->error = WIRE_OK;
    p->why[0] = 0;
    return p->ops->fresh(p->b, e);
}

backend_handle player_stream(const struct player *p, uint32_t s)
{
    return s == 0 || s == WIRE_STREAM_LEGACY       ? BACKEND_STREAM_LEGACY
           : s == WIRE_STREAM_PER_THREAD           ? BACKEND_STREAM_PER_THREAD
           : s < CONTEXT_STREAMS                      ? p->streams[s]
                                                   : NULL;
}

int player_sync(struct player *p)
{
    int code = p->error ? p->error : p->ops->sync(p->b);

    if (code && !p->error) {
        p->error = code;
        snprintf(p->why, sizeof p->why, "%s", p->ops->why(p->b));
    }
    return code;
}

/* ---- memory ---- */

/* Notes that the host waited; returns the code. */
static int player_waits(struct player *p, int code)
{
    p->waited = true;
    return code;
}

/* Maps a new block and poisons it. A code of WIRE. */
static int player_play_block(struct player *p, uint64_t addr, uint64_t bytes, uint32_t stream)
{
    struct wire_memset m = {.addr = addr, .count = bytes, .width = 1, .stream = stream};
    uint64_t end = addr < p->shared_from ? addr + bytes + POOL_ZONE - WIRE_BASE : 0;
    int code = end ? p->ops->map(p->b, end) : WIRE_OK;

    p->high = end > p->high ? end : p->high;
    if (code)
        return code;
    if (p->poisons && addr < p->shared_from) {
        /* other streams may still use what was here before */
        if (p->n_streams && (code = player_waits(p, p->ops->sync(p->b))))
            return code;
        m.value[0] = p->poison;
        code = p->ops->set(p->b, &m, player_stream(p, stream));
    }
    p->ops->block(p->b, addr, bytes, true); /* from here on it counts who writes there */
    return code;
}

/* Plays a logged allocation. So do the next ones with their entries; a code of WIRE. */
static int player_play_alloc(struct player *p, const struct log_entry *en)
{
    const struct wire_alloc *m = en->body;

    if (!en->head.result)
        return WIRE_OK;
    if (p->drains && m->kind == WIRE_ALLOC_RAW)
        player_waits(p, p->ops->sync(p->b));
    return player_play_block(p, en->head.result, m->bytes, m->stream);
}

/* Plays a free, after the device where the log did so. */
static int player_play_free(struct player *p, const struct log_entry *en)
{
    const struct wire_free *m = en->body;

    if (p->drains ? m->kind == WIRE_ALLOC_RAW : p->n_streams != 0)
        player_waits(p, p->ops->sync(p->b));
    p->ops->block(p->b, m->addr, 0, false);
    return WIRE_OK;
}

/* Plays an allocation of the log. */
static int player_play_give(struct player *p, const struct log_entry *en)
{
    const struct log_give *m = en->body;

    return player_play_block(p, m->addr, m->n, 0);
}

static int player_play_memset(struct player *p, const struct log_entry *en)
{
    const struct wire_memset *m = en->body;

    return p->ops->set(p->b, m, player_stream(p, m->stream));
}

static int player_play_up(struct player *p, const struct log_entry *en)
{
    const struct wire_up *m = en->body;

    return p->ops->write(p->b, m->addr, en->tail, en->n_tail, player_stream(p, m->stream));
}

/* Plays a read of the client: it waited for the stream. */
static int player_play_down(struct player *p, const struct log_entry *en)
{
    const struct wire_down *m = en->body;

    return p->drains ? p->ops->sync_stream(p->b, player_stream(p, m->stream)) : WIRE_OK;
}

static int player_play_copy(struct player *p, const struct log_entry *en)
{
    const struct wire_copy *m = en->body;

    return p->ops->copy(p->b, m->to, m->from, m->n, player_stream(p, m->stream));
}

/* ---- data movement ---- */

#define MOVEMENT(op, type)                                                                                             \
    static int play_##op(struct player *p, const struct log_entry *en)                                                 \
    {                                                                                                                  \
        const struct type *m = en->body;                                                                               \
                                                                                                                       \
        return p->ops->op(p->b, m, player_stream(p, m->stream));                                                       \
    }
MOVEMENT(fill, wire_fill)
MOVEMENT(strided, wire_strided)
MOVEMENT(arange, wire_arange)
MOVEMENT(random, wire_random)
#undef MOVEMENT

/* ---- code ---- */

int player_module(struct player *p, uint32_t id, const uint8_t sha256[32])
{
    const struct image *im = images_find(p->images, sha256);

    if (!im || id >= CONTEXT_MODULES)
        return WIRE_NOT_FOUND;
    return p->modules[id] ? WIRE_OK : p->ops->module(p->b, im->p, im->n, &p->modules[id]);
}

static char *player_name_of(const void *p, size_t n)
{
    return xstrndup(p, n);
}

int player_function(struct player *p, uint32_t id, uint32_t module, const char *name, size_t n,
                    struct wire_function_info *info)
{
    char *s = player_name_of(name, n);
    int code = WIRE_NOT_FOUND;

    if (id < CONTEXT_FUNCTIONS)
        code = p->ops->function(p->b, p->modules[module % CONTEXT_MODULES], s, &p->functions[id], info);
    free(s);
    return code;
}

int player_symbol(struct player *p, uint32_t module, const char *name, size_t n, uint64_t *ret_addr,
                  uint64_t *ret_bytes)
{
    char *s = player_name_of(name, n);
    int code = p->ops->symbol(p->b, p->modules[module % CONTEXT_MODULES], s, ret_addr, ret_bytes);

    free(s);
    return code;
}

static int player_play_module(struct player *p, const struct log_entry *en)
{
    const struct wire_module *m = en->body;

    return player_module(p, (uint32_t)en->head.result, m->sha256);
}

/* Plays a question for a function, so that its handle is there. */
static int player_play_function(struct player *p, const struct log_entry *en)
{
    const struct wire_function *m = en->body;
    struct wire_function_info info;

    return player_function(p, (uint32_t)en->head.result, m->module, (const char *)en->tail, en->n_tail, &info);
}

/* The address may be in arguments and in memory: a replay is only one if it is the same again. */
static int player_play_symbol(struct player *p, const struct log_entry *en)
{
    const struct wire_symbol *m = en->body;
    uint64_t addr = 0, bytes = 0;
    int code = player_symbol(p, m->module, (const char *)en->tail, en->n_tail, &addr, &bytes);

    if (!code && addr != en->head.result) {
        snprintf(p->why, sizeof p->why, "a variable of the program lies at another address in the replay");
        return WIRE_REFUSED;
    }
    return code;
}

static int player_play_func_attr(struct player *p, const struct log_entry *en)
{
    const struct wire_func_attr *m = en->body;

    return p->ops->func_attr(p->b, p->functions[m->function % CONTEXT_FUNCTIONS], m->attr, m->value);
}

/* Plays a launch. */
static int player_play_launch(struct player *p, const struct log_entry *en)
{
    const struct wire_launch *m = en->body;
    const struct backend_launch l = {p->functions[m->function % CONTEXT_FUNCTIONS], player_stream(p, m->stream), m,
                                     en->tail, en->n_tail};

    return p->no_launches ? WIRE_OK : p->ops->launch(p->b, &l);
}

/* ---- order ---- */

/* Plays a stream's creation. */
static int player_play_stream_create(struct player *p, const struct log_entry *en)
{
    const struct wire_stream_create *m = en->body;
    backend_handle *s = &p->streams[en->head.result % CONTEXT_STREAMS];

    if (*s)
        p->ops->stream_end(p->b, *s);
    *s = NULL;
    p->n_streams++;
    return p->ops->stream(p->b, m->flags, m->priority, s);
}

/* Plays a stream's end. */
static int player_play_stream_destroy(struct player *p, const struct log_entry *en)
{
    const struct wire_stream *m = en->body;
    backend_handle *s = &p->streams[m->stream % CONTEXT_STREAMS];

    if (m->stream >= CONTEXT_FIRST_STREAM && *s) {
        player_waits(p, p->ops->sync_stream(p->b, *s));
        p->ops->stream_end(p->b, *s);
        *s = NULL;
    }
    return WIRE_OK;
}

/* With the default streams alone a synchronisation orders nothing that is not ordered already. */
static int player_play_stream_sync(struct player *p, const struct log_entry *en)
{
    const struct wire_stream *m = en->body;

    return p->drains || p->n_streams ? player_waits(p, p->ops->sync_stream(p->b, player_stream(p, m->stream)))
           : WIRE_OK;
}

static int player_play_device_sync(struct player *p, const struct log_entry *en)
{
    (void)en;
    return p->drains || p->n_streams ? player_waits(p, p->ops->sync(p->b)) : WIRE_OK;
}

/* Plays an event's creation. */
static int player_play_event_create(struct player *p, const struct log_entry *en)
{
    const struct wire_event_create *m = en->body;
    backend_handle *v = &p->events[en->head.result % CONTEXT_EVENTS];

    if (*v)
        p->ops->event_end(p->b, *v);
    *v = NULL;
    return p->ops->event(p->b, m->flags, v);
}

/* Plays an event's end. */
static int player_play_event_destroy(struct player *p, const struct log_entry *en)
{
    const struct wire_event *m = en->body;
    backend_handle *v = &p->events[m->event % CONTEXT_EVENTS];

    if (*v)
        p->ops->event_end(p->b, *v);
    *v = NULL;
    return WIRE_OK;
}

static int player_play_event_record(struct player *p, const struct log_entry *en)
{
    const struct wire_event *m = en->body;

    return p->ops->record(p->b, p->events[m->event % CONTEXT_EVENTS], player_stream(p, m->stream));
}

static int player_play_event_wait(struct player *p, const struct log_entry *en)
{
    const struct wire_event *m = en->body;

    return p->ops->wait(p->b, player_stream(p, m->stream), p->events[m->event % CONTEXT_EVENTS]);
}

/* Plays the host's wait for an event, where order can depend on it. */
static int player_play_event_sync(struct player *p, const struct log_entry *en)
{
    const struct wire_event *m = en->body;

    return p->drains || p->n_streams ? player_waits(p, p->ops->sync_event(p->b, p->events[m->event % CONTEXT_EVENTS]))
                                     : WIRE_OK;
}

static int (*const rows[])(struct player *p, const struct log_entry *en) = {
    [WIRE_ALLOC] = player_play_alloc, [WIRE_FREE] = player_play_free, [WIRE_MEMSET] = player_play_memset,
    [WIRE_UP] = player_play_up,
    [WIRE_DOWN] = player_play_down, [WIRE_COPY] = player_play_copy, [WIRE_FILL] = play_fill,
    [WIRE_STRIDED] = play_strided,
    [WIRE_ARANGE] = play_arange, [WIRE_RANDOM] = play_random, [WIRE_MODULE] = player_play_module,
    [WIRE_FUNCTION] = player_play_function, [WIRE_SYMBOL] = player_play_symbol,
    [WIRE_FUNC_ATTR] = player_play_func_attr,
    [WIRE_LAUNCH] = player_play_launch, [WIRE_STREAM_CREATE] = player_play_stream_create,
    [WIRE_STREAM_DESTROY] = player_play_stream_destroy, [WIRE_STREAM_SYNC] = player_play_stream_sync,
    [WIRE_EVENT_CREATE] = player_play_event_create, [WIRE_EVENT_DESTROY] = player_play_event_destroy,
    [WIRE_EVENT_RECORD] = player_play_event_record, [WIRE_EVENT_WAIT] = player_play_event_wait,
    [WIRE_EVENT_SYNC] = player_play_event_sync,
    [WIRE_DEVICE_SYNC] = player_play_device_sync, [LOG_ECHO] = player_play_copy, [LOG_GIVE] = player_play_give,
};

int player_play(struct player *p, const struct log_entry *en)
{
    unsigned op = en->head.op;
    int code;

    if (p->error || op >= sizeof rows / sizeof rows[0] || !rows[op])
        return p->error;
    code = rows[op](p, en);
    if (code) {
        p->error = code;
        if (!p->why[0])
            snprintf(p->why, sizeof p->why, "%s: %s", exec_log_op_name(op), p->ops->why(p->b));
    }
    return code;
}
