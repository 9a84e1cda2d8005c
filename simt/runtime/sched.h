/* sched.h - waiting and switching, inline. A suspended thread's callers return through predictions that other threads
 * have spoilt, one miss per frame, and each frame costs cache: so from the function that a kernel calls down to the
 * switch there is one frame. Measured on shared-memory reductions and tiled products: three times as fast. */
#ifndef SIMT_SCHED_H
#define SIMT_SCHED_H

#include "runtime.h"

#define HOT static inline __attribute__((always_inline))

HOT void list_add(struct list *l, struct fiber *f)
{
    f->next = NULL;
    if (l->tail)
        l->tail->next = f;
    else
        l->head = f;
    l->tail = f;
}

HOT struct fiber *list_take(struct list *l)
{
    struct fiber *f = l->head;

    if (f && !(l->head = f->next))
        l->tail = NULL;
    return f;
}

/* Nobody is ready: starts the next thread, or ends the block. */
void leave_for_new(struct fiber *me);
/* Gives control to the host, which may come back: me is in a list. */
void leave_to_host(struct fiber *me, enum launch_end end);
void to_host(void **save, enum launch_end end);

HOT void go_on(struct fiber *f, void **save)
{
    run.current = f;
    read_turn_next();
    if (f->thread >= 0)
        threadIdx = thread_index[f->thread];
    fiber_switch(save, f->sp);
}

/* Leaves the running fiber (already put into a list) for whoever can go on. */
HOT void leave(struct fiber *me)
{
    struct block *b = &run.block;
    struct fiber *f = list_take(&b->ready);

    if (f == me)
        run.current = me;
    else if (f)
        go_on(f, &me->sp);
    else
        leave_for_new(me);
}

HOT void suspend_in(struct list *l)
{
    struct fiber *me = run.current;

    check_suspend();
    list_add(l, me);
    leave(me);
}

#endif
