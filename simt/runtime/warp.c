/* warp.c - shuffles, votes, matches and reductions of a warp.
 *
 * The lanes of one operation meet in a warp_op that is found by its mask, so halves of a warp can work apart. Each
 * lane leaves its value, waits until the mask's living lanes are there, and reads what it wants: one suspension per
 * lane. A lane that does not take part (returned, outside the mask, never existed) reads as all ones: NaN for
 * floating types. */
#include <stdlib.h>
#include <string.h>

#include "sched.h"
#include "warp_ops.h"

static __attribute__((noinline)) void complain_mask(int lane, int kind, const void *pc)
{
    finding("divergence", pc, true, "lane %d calls %s with a mask that does not name it", lane, warp_kind_names[kind]);
}

static __attribute__((noinline)) void complain(const struct warp_op *o, int kind, const void *pc)
{
    struct source_line l = line_of((const char *)o->pc - 1);

    finding("divergence", pc, true, "lanes of one warp meet in different operations: %s here, %s at line %d",
            warp_kind_names[kind], warp_kind_names[o->kind], l.line);
}

/* Leaves value and predicate for the other lanes of the mask and returns when all are there. The caller reads the
 * operation and then leaves it. */
HOT struct warp_op *op_meet(mask_t mask, int kind, uint64_t value, bool predicate, const void *pc,
                            void (*finish)(const struct warp_op *))
{
    int t = this_thread(), lane = t % WARP;
    struct warp *w = &run.block.warp[t / WARP];
    struct warp_op *o;

    if (!(mask & LANE_BIT(lane))) {
        complain_mask(lane, kind, pc);
        mask |= LANE_BIT(lane);
    }
    for (o = w->ops; o && o->mask != mask; o = o->next)
        ;
    if (!o)
        o = warp_op_new(w, mask, kind, pc);
    else if (o->kind != kind)
        complain(o, kind, pc);
    o->arrived |= LANE_BIT(lane);
    o->value[lane] = value;
    o->finish = finish;
    if (predicate)
        o->ballot |= LANE_BIT(lane);
    o->readers++;
    if (warp_op_ready(w, o))
        warp_op_complete(w, o);
    else
        suspend_in(&o->waiting);
    return o;
}

HOT struct warp_op *op_join(mask_t mask, int kind, uint64_t value, bool predicate, const void *pc)
{
    return op_meet(mask, kind, value, predicate, pc, NULL);
}

static __attribute__((noinline)) uint64_t absent(const struct warp_op *o, int lane, const void *pc)
{
    int t = this_thread(), first = t / WARP * WARP;
    const char *why = !(o->mask & LANE_BIT(lane)) ? "which the mask does not name"
                      : first + lane >= run.block.n ? "which the block does not have" : "which has returned";

    finding("divergence", pc, true, "lane %d shuffles from lane %d, %s: the value is undefined", t % WARP, lane, why);
    return ~(uint64_t)0;
}

HOT uint64_t op_value(const struct warp_op *o, int lane, const void *pc)
{
    return o->arrived & LANE_BIT(lane) ? o->value[lane] : absent(o, lane, pc);
}

static __attribute__((noinline)) bool complain_outside(const char *what, const void *pc)
{
    finding("crash", pc, true, "%s is called by host code", what);
    return true;
}

HOT bool outside(const char *what, const void *pc)
{
    return !run.in_kernel && complain_outside(what, pc);
}

void warp_together(const void *mine, void (*finish)(const struct warp_op *), const char *what, const void *pc)
{
    struct warp_op *o;

    if (outside(what, pc))
        return;
    o = op_meet(~(mask_t)0, OP_MATRIX, (uint64_t)(uintptr_t)mine, false, pc, finish);
    if ((uint32_t)o->arrived != 0xffffffffu)
        finding("divergence", pc, true,
            "%s needs all lanes of a warp; some have returned or the block does not have them",
                what);
    warp_op_leave(o);
}

/* ---- shuffles ---- */

enum shuffle { SHFL_IDX, SHFL_UP, SHFL_DOWN, SHFL_XOR };

/* The lane to read, by the CUDA C++ Programming Guide, "Warp Shuffle Functions": a lane outside the segment of 'width'
 * lanes means one's own value. */
HOT int source_lane(enum shuffle how, int lane, int arg, int width)
{
    int base = lane & ~(width - 1), end = base + width, src;

    switch (how) {
    case SHFL_IDX: return base + (arg & (width - 1));
    case SHFL_UP: return lane - arg < base ? lane : lane - arg;
    case SHFL_DOWN: return (unsigned)arg >= WARP || lane + arg >= end ? lane : lane + arg;
    case SHFL_XOR: break;
    }
    src = lane ^ arg;
    return src >= end ? lane : src & (WARP - 1);
}

static __attribute__((noinline)) int complain_width(int width, const void *pc)
{
    finding("divergence", pc, true, "shuffle of width %d; the width is a power of two up to %d", width, WARP);
    return WARP;
}

HOT uint64_t shuffle(mask_t mask, uint64_t v, enum shuffle how, int arg, int width, const void *pc)
{
    struct warp_op *o;
    int lane;

    if (outside("a shuffle", pc))
        return v;
    if (width <= 0 || width > WARP || (width & (width - 1)))
        width = complain_width(width, pc);
    lane = this_thread() % WARP;
    if (how == SHFL_UP && (unsigned)arg >= WARP)
        arg = WARP;
    o = op_join(mask, OP_SHFL, v, false, pc);
    v = op_value(o, source_lane(how, lane, arg, width), pc);
    warp_op_leave(o);
    return v;
}

#define SHUFFLE(NAME, HOW, ARG, S, T, BITS)                                                                           \
    T simt_shfl##NAME##_##S(mask_t mask, T v, ARG arg, int width);                                                    \
    RETURNS_ANYWHERE T simt_shfl##NAME##_##S(mask_t mask, T v, ARG arg, int width)                                    \
    {                                                                                                                 \
        union { T v; BITS b; } u = {v};                                                                               \
        u.b = (BITS)shuffle(mask, u.b, HOW, (int)arg, width, __builtin_return_address(0));                            \
        return u.v;                                                                                                   \
    }
#define SHUFFLES(S, T, BITS)                                                                                          \
    SHUFFLE(, SHFL_IDX, int, S, T, BITS)                                                                              \
    SHUFFLE(_up, SHFL_UP, unsigned, S, T, BITS)                                                                       \
    SHUFFLE(_down, SHFL_DOWN, unsigned, S, T, BITS)                                                                   \
    SHUFFLE(_xor, SHFL_XOR, int, S, T, BITS)
SHUFFLES(i32, int32_t, uint32_t)
SHUFFLES(i64, int64_t, uint64_t)
SHUFFLES(f32, float, uint32_t)
SHUFFLES(f64, double, uint64_t)

/* ---- votes ---- */

void simt_syncwarp(mask_t mask);
mask_t simt_activemask(void), simt_ballot(mask_t mask, int predicate);
int simt_any(mask_t mask, int predicate), simt_all(mask_t mask, int predicate);

RETURNS_ANYWHERE void simt_syncwarp(mask_t mask)
{
    if (!outside("__syncwarp", __builtin_return_address(0)))
        warp_op_leave(op_join(mask, OP_SYNC, 0, false, __builtin_return_address(0)));
}

/* The lanes that come here together: the answer waits until all others of the block have returned or wait elsewhere,
 * which is the most that hardware could name. */
mask_t simt_activemask(void)
{
    if (outside("__activemask", __builtin_return_address(0)))
        return 1;
    return (mask_t)wait_active(__builtin_return_address(0));
}

HOT mask_t vote(mask_t mask, int predicate, mask_t *arrived, const void *pc)
{
    struct warp_op *o;
    mask_t ballot;

    if (outside("a vote", pc))
        return *arrived = 1;
    o = op_join(mask, OP_VOTE, 0, predicate != 0, pc);
    ballot = o->ballot;
    *arrived = o->arrived;
    warp_op_leave(o);
    return ballot;
}

mask_t simt_ballot(mask_t mask, int predicate)
{
    mask_t arrived;

    return vote(mask, predicate, &arrived, __builtin_return_address(0));
}

int simt_any(mask_t mask, int predicate)
{
    mask_t arrived;

    return vote(mask, predicate, &arrived, __builtin_return_address(0)) != 0;
}

int simt_all(mask_t mask, int predicate)
{
    mask_t arrived, ballot = vote(mask, predicate, &arrived, __builtin_return_address(0));

    return ballot == arrived;
}

/* ---- matches ---- */

HOT mask_t match(mask_t mask, uint64_t v, mask_t *arrived, const void *pc)
{
    struct warp_op *o;
    mask_t same = 0;

    if (outside("a match", pc))
        return *arrived = 1;
    o = op_join(mask, OP_MATCH, v, false, pc);
    for (int i = 0; i < WARP; i++)
        if ((o->arrived & LANE_BIT(i)) && o->value[i] == v)
            same |= LANE_BIT(i);
    *arrived = o->arrived;
    warp_op_leave(o);
    return same;
}

#define MATCH(S, T, BITS)                                                                                             \
    mask_t simt_match_any_##S(mask_t mask, T v);                                                                      \
    mask_t simt_match_any_##S(mask_t mask, T v)                                                                       \
    {                                                                                                                 \
        union { T v; BITS b; } u = {v};                                                                               \
        mask_t arrived;                                                                                               \
        return match(mask, u.b, &arrived, __builtin_return_address(0));                                               \
    }                                                                                                                 \
    mask_t simt_match_all_##S(mask_t mask, T v, int *all);                                                            \
    mask_t simt_match_all_##S(mask_t mask, T v, int *all)                                                             \
    {                                                                                                                 \
        union { T v; BITS b; } u = {v};                                                                               \
        mask_t arrived, same = match(mask, u.b, &arrived, __builtin_return_address(0));                               \
        *all = same == arrived;                                                                                       \
        return *all ? same : 0;                                                                                       \
    }
MATCH(i32, int32_t, uint32_t)
MATCH(i64, int64_t, uint64_t)
MATCH(f32, float, uint32_t)
MATCH(f64, double, uint64_t)

/* ---- reductions ---- */

#define REDUCE(NAME, T, EXPR)                                                                                         \
    T simt_reduce_##NAME(mask_t mask, T v);                                                                           \
    T simt_reduce_##NAME(mask_t mask, T v)                                                                            \
    {                                                                                                                 \
        struct warp_op *o;                                                                                            \
        bool first = true;                                                                                            \
        if (outside("a reduction", __builtin_return_address(0)))                                                      \
            return v;                                                                                                 \
        o = op_join(mask, OP_REDUCE, (uint32_t)v, false, __builtin_return_address(0));                                \
        for (int i = 0; i < WARP; i++)                                                                                \
            if (o->arrived & LANE_BIT(i)) {                                                                           \
                T a = v, b = (T)o->value[i];                                                                          \
                v = first ? b : (T)(EXPR);                                                                            \
                first = false;                                                                                        \
            }                                                                                                         \
        warp_op_leave(o);                                                                                             \
        return v;                                                                                                     \
    }
REDUCE(add, uint32_t, a + b)
REDUCE(and, uint32_t, a & b)
REDUCE(or, uint32_t, a | b)
REDUCE(xor, uint32_t, a ^ b)
REDUCE(min_u32, uint32_t, a < b ? a : b)
REDUCE(max_u32, uint32_t, a > b ? a : b)
REDUCE(min_i32, int32_t, a < b ? a : b)
REDUCE(max_i32, int32_t, a > b ? a : b)
