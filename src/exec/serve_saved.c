/* serve_saved.c - the device's state before the last call, kept and laid back: so one replay of a whole life serves
 * many replays of its last call. Variables of programs count as far as a front has asked for their address. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/server.h"

#define SAVED_MOST ((uint64_t)4 << 30) /* more is played again from the start */

void saved_drop(struct server *s)
{
    struct saved *v = &s->replay.saved;

    free(v->bytes);
    free(v->events);
    pool_free(&v->pool);
    *v = (struct saved){0};
}

static uint64_t bytes_of(const struct server *s, const struct pool *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->blocks[i].owner == POOL_FRONT ? p->blocks[i].bytes : 0;
    for (uint32_t i = 0; i < s->life.n_symbols; i++)
        n += s->life.symbols[i].bytes;
    return n;
}

/* f for each range that is kept: blocks of the front, then variables. The judge lays its own again. */
static void each(struct server *s, const struct pool *p, uint8_t *bytes,
                 void (*f)(struct server *s, uint64_t addr, uint8_t *bytes, uint64_t n))
{
    for (size_t i = 0; i < p->n; i++)
        if (p->blocks[i].owner == POOL_FRONT) {
            f(s, p->blocks[i].addr, bytes, p->blocks[i].bytes);
            bytes += p->blocks[i].bytes;
        }
    for (uint32_t i = 0; i < s->life.n_symbols; i++) {
        f(s, s->life.symbols[i].addr, bytes, s->life.symbols[i].bytes);
        bytes += s->life.symbols[i].bytes;
    }
}

static void keep(struct server *s, uint64_t addr, uint8_t *bytes, uint64_t n)
{
    if (!s->player.error)
        s->player.error = s->ops->read(s->b, bytes, addr, n);
}

static void put_back(struct server *s, uint64_t addr, uint8_t *bytes, uint64_t n)
{
    if (!s->player.error)
        s->player.error = s->ops->write(s->b, addr, bytes, n, BACKEND_STREAM_LEGACY);
}

static void pool_copy(struct pool *to, const struct pool *from)
{
    struct pool_block *blocks = to->blocks;

    blocks = xrealloc(blocks, (from->n ? from->n : 1) * sizeof *blocks);
    if (from->n)
        memcpy(blocks, from->blocks, from->n * sizeof *blocks);
    *to = *from;
    to->blocks = blocks;
    to->cap = from->n ? from->n : 1;
}

void saved_take(struct server *s)
{
    struct replaying *r = &s->replay;
    struct saved *v = &r->saved;

    saved_drop(s);
    v->n = bytes_of(s, &r->pool);
    if (s->player.error || v->n > SAVED_MOST || !(v->bytes = malloc(v->n ? v->n : 1)))
        return;
    pool_copy(&v->pool, &r->pool);
    v->at = r->at;
    v->events = xcalloc(LIFE_EVENTS, 1);
    for (uint32_t i = 0; i < LIFE_STREAMS; i++)
        v->streams[i] = s->player.streams[i] != NULL;
    for (uint32_t i = 0; i < LIFE_EVENTS; i++)
        v->events[i] = s->player.events[i] != NULL;
    each(s, &r->pool, v->bytes, keep);
    v->valid = !s->player.error;
}

/* Streams and events that the call destroyed are there again. */
static void revive(struct server *s)
{
    const struct saved *v = &s->replay.saved;

    for (uint32_t i = 0; i < LIFE_STREAMS && !s->player.error; i++)
        if (v->streams[i] && !s->player.streams[i])
            s->player.error = s->ops->stream(s->b, 1, 0, &s->player.streams[i]);
    for (uint32_t i = 0; i < LIFE_EVENTS && !s->player.error; i++)
        if (v->events[i] && !s->player.events[i])
            s->player.error = s->ops->event(s->b, 0, &s->player.events[i]);
}

int saved_restore(struct server *s, struct err *e)
{
    struct replaying *r = &s->replay;

    if (!r->on || !r->saved.valid)
        return err_set(e, ERR_INPUT, "no state before the last call is kept");
    if (player_sync(&s->player))
        return 0; /* it stays failed, and says so */
    for (size_t i = 0; i < r->pool.n; i++)
        s->ops->block(s->b, r->pool.blocks[i].addr, 0, false);
    pool_copy(&r->pool, &r->saved.pool);
    for (size_t i = 0; i < r->pool.n; i++)
        s->ops->block(s->b, r->pool.blocks[i].addr, r->pool.blocks[i].bytes, true);
    revive(s);
    each(s, &r->pool, r->saved.bytes, put_back);
    r->at = r->saved.at;
    return 0;
}
