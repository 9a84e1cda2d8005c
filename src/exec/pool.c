/* pool.c - see pool.h. First fit over a sorted array: programs have tens to thousands of live blocks. */
#include "exec/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void pool_init(struct pool *p, uint64_t base, uint64_t room, uint64_t limit)
{
    *p = (struct pool){.base = base, .room = room, .limit = limit};
}

void pool_free(struct pool *p)
{
    free(p->blocks);
    p->blocks = NULL;
    p->n = p->cap = 0;
}

void pool_clear(struct pool *p)
{
    p->n = 0;
    p->used = p->high = 0;
}

/* What a block takes of the range: its bytes up to the alignment, and the red zone. */
static uint64_t pool_span(uint64_t bytes)
{
    return (bytes + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN + POOL_ZONE;
}

/* Blocks that start at or below addr. */
static size_t pool_upper(const struct pool *p, uint64_t addr)
{
    size_t lo = 0, hi = p->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (p->blocks[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static uint64_t pool_end_of(const struct pool *p, size_t i)
{
    return i ? p->blocks[i - 1].addr + pool_span(p->blocks[i - 1].bytes) : p->base;
}

static uint64_t pool_start_of(const struct pool *p, size_t i)
{
    return i < p->n ? p->blocks[i].addr : p->base + p->room;
}

/* Inserts block b at place i of the sorted list. */
static void pool_insert(struct pool *p, size_t i, struct pool_block b)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 256;
        p->blocks = xrealloc(p->blocks, p->cap * sizeof *p->blocks);
    }
    memmove(p->blocks + i + 1, p->blocks + i, (p->n - i) * sizeof *p->blocks);
    p->blocks[i] = b;
    p->n++;
    p->used += b.owner == POOL_CLIENT ? b.bytes : 0;
    if (b.addr + pool_span(b.bytes) - p->base > p->high)
        p->high = b.addr + pool_span(b.bytes) - p->base;
}

/* False beyond the limit of what the client may have, or beyond the pool. */
static bool pool_fits(const struct pool *p, uint64_t bytes, enum pool_owner owner)
{
    bool limited = owner == POOL_CLIENT && (bytes > p->limit || p->used > p->limit - bytes);

    return bytes && !limited && bytes < p->room && p->n < POOL_BLOCKS;
}

uint64_t pool_take(struct pool *p, uint64_t bytes, enum pool_owner owner, uint32_t kind)
{
    if (!pool_fits(p, bytes, owner))
        return 0;
    for (size_t i = 0; i <= p->n; i++)
        if (pool_start_of(p, i) - pool_end_of(p, i) >= pool_span(bytes)) {
            uint64_t addr = pool_end_of(p, i);

            pool_insert(p, i, (struct pool_block){addr, bytes, owner, kind});
            return addr;
        }
    return 0;
}

bool pool_take_at(struct pool *p, uint64_t addr, uint64_t bytes, enum pool_owner owner, uint32_t kind)
{
    size_t i = pool_upper(p, addr);

    if (!pool_fits(p, bytes, owner) || addr % POOL_ALIGN || addr < pool_end_of(p, i) || addr > pool_start_of(p, i) ||
        pool_start_of(p, i) - addr < pool_span(bytes))
        return false;
    pool_insert(p, i, (struct pool_block){addr, bytes, owner, kind});
    return true;
}

bool pool_give(struct pool *p, uint64_t addr, enum pool_owner owner)
{
    size_t i = pool_upper(p, addr);

    if (!i || p->blocks[i - 1].addr != addr || p->blocks[i - 1].owner != owner)
        return false;
    p->used -= owner == POOL_CLIENT ? p->blocks[i - 1].bytes : 0;
    memmove(p->blocks + i - 1, p->blocks + i, (p->n - i) * sizeof *p->blocks);
    p->n--;
    return true;
}

const struct pool_block *pool_find(const struct pool *p, uint64_t addr, uint64_t n)
{
    size_t i = pool_upper(p, addr);
    const struct pool_block *b = i ? &p->blocks[i - 1] : NULL;

    return b && n <= b->bytes && addr - b->addr <= b->bytes - n ? b : NULL;
}
