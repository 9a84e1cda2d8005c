/* serve_saved.c - the device's state before the last call, kept and put back: so one replay of a whole recording serves
 * many replays of its last call. Nothing that a play left may be there in the next one, or a kernel could keep answers
 * for inputs that come again: blocks and variables get what they had, memory that the call allocates is filled. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/exec_server.h"

#define SAVED_MOST ((uint64_t)4 << 30) /* more is played again from the start */

void saved_drop(struct exec_server *s)
{
    struct saved *v = &s->replay.saved;

    free(v->bytes);
    free(v->variables);
    free(v->events);
    pool_free(&v->pool);
    *v = (struct saved){0};
}

/* Can nothing that the call does before it gives the block back read it? Such a one (the output of the call before) is
 * filled like memory that no block holds. */
static bool serve_saved_given_back_first(const struct exec_server *s, uint64_t addr)
{
    size_t at = s->replay.saved.at;
    struct log_entry en;

    while (exec_log_next(&s->context.log, &at, &en) > 0)
        switch (en.head.op) {
        case WIRE_FREE:
            if (((const struct wire_free *)en.body)->addr == addr)
                return true;
            break;
        case WIRE_ALLOC:
        case LOG_CALL_BEGIN:
        case LOG_BIND: break;
        default: return false;
        }
    return false;
}

/* True for a client's block that a replay must find as it was. */
static bool serve_saved_is_kept(const struct exec_server *s, const struct pool_block *b)
{
    return b->owner == POOL_CLIENT && !serve_saved_given_back_first(s, b->addr);
}

/* Bytes that must be saved: the pool's kept blocks and the variables. */
static uint64_t serve_saved_bytes_of(const struct exec_server *s, const struct pool *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += serve_saved_is_kept(s, &p->blocks[i]) ? p->blocks[i].bytes : 0;
    for (size_t i = 0; i < s->replay.saved.n_variables; i++)
        n += s->replay.saved.variables[i].bytes;
    return n;
}

/* f for each range that is kept: blocks of the client, then variables. The judge binds its own again. */
static void serve_saved_each(struct exec_server *s, const struct pool *p, uint8_t *bytes,
                             void (*f)(struct exec_server *s, uint64_t addr, uint8_t *bytes, uint64_t n))
{
    for (size_t i = 0; i < p->n; i++)
        if (serve_saved_is_kept(s, &p->blocks[i])) {
            f(s, p->blocks[i].addr, bytes, p->blocks[i].bytes);
            bytes += p->blocks[i].bytes;
        }
    for (size_t i = 0; i < s->replay.saved.n_variables; i++) {
        const struct context_symbol *v = &s->replay.saved.variables[i];

        f(s, v->addr, bytes, v->bytes);
        bytes += v->bytes;
    }
}

/* ---- variables, where they lie in this replay ---- */

struct finding_variables {
    struct exec_server *s;
    uint32_t module;
};

/* Adds a global variable, once. */
static void serve_saved_add_variable(struct saved *v, uint64_t addr, uint64_t bytes)
{
    for (size_t i = 0; i < v->n_variables; i++)
        if (v->variables[i].addr == addr)
            return;
    if (v->n_variables == v->cap_variables)
        v->variables = xrealloc(v->variables, (v->cap_variables = v->cap_variables ? v->cap_variables * 2 : 64) *
                                                  sizeof *v->variables);
    v->variables[v->n_variables++] = (struct context_symbol){addr, bytes};
}

/* A callback for a module's symbols: adds those that are variables. */
static void serve_saved_find_variable(void *ctx, const char *name)
{
    struct finding_variables *f = ctx;
    uint64_t addr = 0, bytes = 0;

    if (player_symbol(&f->s->player, f->module, name, strlen(name), &addr, &bytes) == WIRE_OK && addr && bytes)
        serve_saved_add_variable(&f->s->replay.saved, addr, bytes);
}

/* Finds all global variables of the client's modules. */
static void serve_saved_find_variables(struct exec_server *s)
{
    for (uint32_t i = 0; i < s->context.n_symbols; i++)
        serve_saved_add_variable(&s->replay.saved, s->context.symbols[i].addr, s->context.symbols[i].bytes);
    for (uint32_t m = 0; m < s->context.n_modules; m++) {
        const struct image *im = images_find(&s->images, s->context.modules[m]);

        if (im && s->player.modules[m])
            image_variables(im, serve_saved_find_variable, &(struct finding_variables){s, m});
    }
}

static void serve_saved_keep(struct exec_server *s, uint64_t addr, uint8_t *bytes, uint64_t n)
{
    if (!s->player.error)
        s->player.error = s->ops->read(s->b, bytes, addr, n);
}

static void serve_saved_put_back(struct exec_server *s, uint64_t addr, uint8_t *bytes, uint64_t n)
{
    if (!s->player.error)
        s->player.error = s->ops->write(s->b, addr, bytes, n, BACKEND_STREAM_LEGACY);
}

/* Makes 'to' a copy of 'from'. */
static void serve_saved_pool_copy(struct pool *to, const struct pool *from)
{
    struct pool_block *blocks = to->blocks;

    blocks = xrealloc(blocks, (from->n ? from->n : 1) * sizeof *blocks);
    if (from->n)
        memcpy(blocks, from->blocks, from->n * sizeof *blocks);
    *to = *from;
    to->blocks = blocks;
    to->cap = from->n ? from->n : 1;
}

void saved_take(struct exec_server *s)
{
    struct replaying *r = &s->replay;
    struct saved *v = &r->saved;

    saved_drop(s);
    serve_saved_find_variables(s);
    v->at = r->at;
    v->n = serve_saved_bytes_of(s, &r->pool);
    if (s->player.error || v->n > SAVED_MOST || !(v->bytes = malloc(v->n ? v->n : 1)))
        return;
    serve_saved_pool_copy(&v->pool, &r->pool);
    v->events = xcalloc(CONTEXT_EVENTS, 1);
    for (uint32_t i = 0; i < CONTEXT_STREAMS; i++)
        v->streams[i] = s->player.streams[i] != NULL;
    for (uint32_t i = 0; i < CONTEXT_EVENTS; i++)
        v->events[i] = s->player.events[i] != NULL;
    serve_saved_each(s, &r->pool, v->bytes, serve_saved_keep);
    v->valid = !s->player.error;
}

/* Copies what is on the device now over 'bytes'. True: it had changed. */
static bool serve_saved_follow_range(struct exec_server *s, uint64_t addr, uint8_t *bytes, uint64_t n)
{
    uint8_t *now = malloc(n ? n : 1);
    bool moved;

    if (!now || s->player.error)
        return free(now), false;
    s->player.error = s->ops->read(s->b, now, addr, n);
    moved = !s->player.error && memcmp(now, bytes, n);
    if (moved)
        memcpy(bytes, now, n);
    free(now);
    return moved;
}

/* A block that the call gave back, or took anew with another size, keeps what it had. */
static bool serve_saved_outlives(const struct exec_server *s, const struct pool_block *was)
{
    const struct pool_block *b = pool_find(&s->replay.pool, was->addr, was->bytes);

    return b && b->addr == was->addr && b->bytes == was->bytes && b->owner == POOL_CLIENT;
}

bool saved_follow(struct exec_server *s)
{
    struct saved *v = &s->replay.saved;
    uint8_t *bytes = v->bytes;
    bool moved = false;

    if (!s->replay.on || !v->valid || player_sync(&s->player))
        return false;
    for (size_t i = 0; i < v->pool.n; i++)
        if (serve_saved_is_kept(s, &v->pool.blocks[i])) {
            if (serve_saved_outlives(s, &v->pool.blocks[i]))
                moved |= serve_saved_follow_range(s, v->pool.blocks[i].addr, bytes, v->pool.blocks[i].bytes);
            bytes += v->pool.blocks[i].bytes;
        }
    for (size_t i = 0; i < v->n_variables; i++) {
        moved |= serve_saved_follow_range(s, v->variables[i].addr, bytes, v->variables[i].bytes);
        bytes += v->variables[i].bytes;
    }
    return moved;
}

/* Streams and events that the call destroyed are there again. */
static void serve_saved_revive(struct exec_server *s)
{
    const struct saved *v = &s->replay.saved;

    for (uint32_t i = 0; i < CONTEXT_STREAMS && !s->player.error; i++)
        if (v->streams[i] && !s->player.streams[i])
            s->player.error = s->ops->stream(s->b, 1, 0, &s->player.streams[i]);
    for (uint32_t i = 0; i < CONTEXT_EVENTS && !s->player.error; i++)
        if (v->events[i] && !s->player.events[i])
            s->player.error = s->ops->event(s->b, 0, &s->player.events[i]);
}

/* What the call allocates holds nothing of the play before. Where a block lived at the call's start,
 * serve_saved_put_back follows. */
static void serve_saved_fill_allocations(struct exec_server *s)
{
    const struct pool *p = &s->replay.pool;
    size_t at = s->replay.saved.at;
    struct log_entry en;

    for (size_t i = 0; i < p->n && !s->player.error; i++) {
        const struct wire_memset m = {.addr = p->blocks[i].addr, .count = p->blocks[i].bytes, .value = {0xff},
                                      .width = 1};

        if (p->blocks[i].owner == POOL_CLIENT && !serve_saved_is_kept(s, &p->blocks[i]))
            s->player.error = s->ops->set(s->b, &m, BACKEND_STREAM_LEGACY);
    }
    while (!s->player.error && exec_log_next(&s->context.log, &at, &en) > 0) {
        const struct wire_alloc *a = en.body;
        const struct wire_memset m = {.addr = en.head.result, .count = en.head.op == WIRE_ALLOC ? a->bytes : 0,
                                      .value = {0xff}, .width = 1};

        if (en.head.op == WIRE_ALLOC && m.addr && m.count)
            s->player.error = s->ops->set(s->b, &m, BACKEND_STREAM_LEGACY);
    }
}

/* Fills mapped addresses from 'from' to 'to' with zeros. */
static void serve_saved_fill(struct exec_server *s, uint64_t from, uint64_t to)
{
    uint64_t end = WIRE_BASE + s->ops->mapped(s->b);
    struct wire_memset m = {.addr = from, .width = 1};

    to = to < end ? to : end;
    m.count = to > from ? to - from : 0;
    m.value[0] = s->player.poison;
    if (m.count && !s->player.error)
        s->player.error = s->ops->set(s->b, &m, BACKEND_STREAM_LEGACY);
}

/* Nothing of the call before is left there. The blocks are sorted. */
void saved_clean(struct exec_server *s)
{
    const struct pool *p = &s->replay.pool;
    uint64_t at = WIRE_BASE;

    for (size_t i = 0; i < p->n; i++) {
        if (p->blocks[i].owner == POOL_CLIENT && !serve_saved_is_kept(s, &p->blocks[i]))
            continue;
        serve_saved_fill(s, at, p->blocks[i].addr);
        at = p->blocks[i].addr + p->blocks[i].bytes;
    }
    serve_saved_fill(s, at, UINT64_MAX);
}

int saved_restore(struct exec_server *s, struct err *e)
{
    struct replaying *r = &s->replay;

    if (!r->on || !r->saved.valid)
        return err_set(e, ERR_INPUT, "no state before the last call is kept");
    if (player_sync(&s->player))
        return 0; /* it stays failed, and says so */
    for (size_t i = 0; i < r->pool.n; i++)
        s->ops->block(s->b, r->pool.blocks[i].addr, 0, false);
    serve_saved_pool_copy(&r->pool, &r->saved.pool);
    for (size_t i = 0; i < r->pool.n; i++)
        s->ops->block(s->b, r->pool.blocks[i].addr, r->pool.blocks[i].bytes, true);
    serve_saved_revive(s);
    if (!s->ops->mapped || !s->player.drains)
        serve_saved_fill_allocations(s);
    else if (!s->player.no_launches)
        saved_clean(s);
    serve_saved_each(s, &r->pool, r->saved.bytes, serve_saved_put_back);
    r->at = r->saved.at;
    return 0;
}
