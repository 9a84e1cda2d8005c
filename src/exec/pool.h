/* pool.h - which device addresses are in use: a sorted list of blocks over one range. Pure bookkeeping.
 * Between two blocks lies a red zone of at least POOL_ZONE bytes. Addresses are a function of the requests before. */
#ifndef MC_EXEC_POOL_H
#define MC_EXEC_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_ALIGN 512u
#define POOL_ZONE 512u
#define POOL_BLOCKS (1u << 20) /* most live blocks */

enum pool_owner { POOL_CLIENT, POOL_JUDGE };

struct pool_block {
    uint64_t addr, bytes; /* bytes: as asked for */
    uint32_t owner, kind; /* kind: enum wire_alloc_kind */
};

struct pool {
    uint64_t base, room;  /* the range */
    uint64_t limit, used; /* of the client's: bytes that may live, that do. The judge's own are not counted */
    uint64_t high;        /* offset behind the highest byte ever given out, its red zone included */
    struct pool_block *blocks;
    size_t n, cap;
};

void pool_init(struct pool *p, uint64_t base, uint64_t room, uint64_t limit);
void pool_free(struct pool *p);
void pool_clear(struct pool *p);
/* The lowest place that fits. 0 where there is none or the limit is reached. bytes > 0. */
uint64_t pool_take(struct pool *p, uint64_t bytes, enum pool_owner owner, uint32_t kind);
/* At a given address, for replays. False if that is not free. */
bool pool_take_at(struct pool *p, uint64_t addr, uint64_t bytes, enum pool_owner owner, uint32_t kind);
bool pool_give(struct pool *p, uint64_t addr, enum pool_owner owner); /* false: no such block of that owner */
/* The block that holds all of [addr, addr + n), or NULL. */
const struct pool_block *pool_find(const struct pool *p, uint64_t addr, uint64_t n);

#endif
