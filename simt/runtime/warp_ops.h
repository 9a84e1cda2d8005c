/* warp_ops.h - warp operations under way: warp.c's lanes meet in them, a thread that returns may complete one. */
#ifndef SIMT_WARP_OPS_H
#define SIMT_WARP_OPS_H

#include "runtime.h"

enum warp_kind { OP_SYNC, OP_SHFL, OP_VOTE, OP_MATCH, OP_REDUCE, OP_MATRIX };
extern const char *const warp_kind_names[];
extern struct warp_op *warp_free_ops;

struct warp_op *warp_op_new(struct warp *w, mask_t mask, int kind, const void *pc);
void warp_op_complete(struct warp *w, struct warp_op *o);

static inline bool warp_op_ready(const struct warp *w, const struct warp_op *o)
{
    return o->arrived && (o->mask & w->alive & ~o->arrived) == 0;
}

static inline void warp_op_leave(struct warp_op *o)
{
    if (--o->readers == 0) {
        o->next = warp_free_ops;
        warp_free_ops = o;
    }
}

#endif
