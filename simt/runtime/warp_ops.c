/* warp_ops.c - the pool of warp operations under way, and their completion. Nothing here waits: warp.c does. */
#include "warp_ops.h"

#include <string.h>

const char *const warp_kind_names[] = {"__syncwarp", "a shuffle", "a vote", "a match", "a reduction",
                                         "a matrix instruction"};

static struct warp_op ops[MAX_THREADS];
struct warp_op *warp_free_ops;

/* Before a launch: operations of a launch that was given up are taken back. */
void warp_reset(void)
{
    for (int i = 0; i < MAX_THREADS; i++) {
        ops[i].next = i + 1 < MAX_THREADS ? &ops[i + 1] : NULL;
        ops[i].place = i;
        ops[i].readers = 0;
    }
    warp_free_ops = ops;
}

/* Operations that somebody waits in, or has yet to read: they keep their places, as stacks hold their addresses. */
size_t warp_save(void *to)
{
    size_t n = 0;

    for (int i = 0; i < MAX_THREADS; i++)
        if (ops[i].readers > 0) {
            if (to)
                memcpy((char *)to + n, &ops[i], sizeof ops[i]);
            n += sizeof ops[i];
        }
    return n;
}

void warp_restore(const void *from, size_t bytes)
{
    const struct warp_op *all = from;
    size_t n = bytes / sizeof *all, k = 0;

    warp_free_ops = NULL;
    for (int i = 0; i < MAX_THREADS; i++)
        if (k < n && all[k].place == i) {
            memcpy(&ops[i], &all[k++], sizeof ops[i]);
        } else {
            ops[i].readers = 0;
            ops[i].next = warp_free_ops;
            warp_free_ops = &ops[i];
        }
}

struct warp_op *warp_op_new(struct warp *w, mask_t mask, int kind, const void *pc)
{
    struct warp_op *o = warp_free_ops;

    warp_free_ops = o->next;
    o->mask = mask;
    o->arrived = o->ballot = 0;
    o->kind = kind;
    o->pc = pc;
    o->finish = NULL;
    o->waiting = (struct list){NULL, NULL};
    o->readers = 0;
    o->complete = false;
    o->next = w->ops;
    w->ops = o;
    return o;
}

void warp_op_complete(struct warp *w, struct warp_op *o)
{
    struct warp_op **p = &w->ops;

    while (*p != o)
        p = &(*p)->next;
    *p = o->next;
    if (o->finish)
        o->finish(o);
    o->complete = true;
    run.block.idle = 0;
    wait_note_progress();
    if (o->kind == OP_SYNC)
        w->epoch++;
    if (o->kind == OP_SYNC || (w->alive & ~o->arrived) == 0)
        w->step++;
    read_moment_next();
    wake_all(&o->waiting);
}

void warp_lane_exited(struct warp *w)
{
    struct warp_op *next;

    for (struct warp_op *o = w->ops; o; o = next) {
        next = o->next;
        if (warp_op_ready(w, o))
            warp_op_complete(w, o);
    }
}

bool warp_explain_deadlock(void)
{
    for (int i = 0; i < (run.block.n + WARP - 1) / WARP; i++) {
        const struct warp_op *o = run.block.warp[i].ops;
        int waiting = 0;

        if (!o)
            continue;
        for (int k = 0; k < WARP; k++)
            waiting += (o->arrived & LANE_BIT(k)) != 0;
        finding("divergence", o->pc, true,
            "deadlock: %d lanes of warp %d wait in %s for lanes that their mask names and "
                "that never come; %d threads of the block wait at a barrier", waiting, i, warp_kind_names[o->kind],
                run.block.arrived);
        return true;
    }
    return false;
}
