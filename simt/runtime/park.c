/* park.c - blocks that wait for blocks.
 *
 * All blocks of a grid share one set of stacks and one shared memory. A block that cannot go on before another block
 * has run is parked: stacks in use, shared memory and bookkeeping are copied away, and back to the same addresses
 * later. So any number of blocks is resident, and a kernel that never waits so pays nothing. */
#include <stdlib.h>
#include <string.h>

#include "sched.h"

struct stack_image {
    int fiber;
    struct fiber f;
    size_t at, n; /* in bytes[] */
};

struct parked {
    struct parked *next;
    uint64_t index;
    struct block block;
    struct check_saved check;
    int n_fibers, n_images;
    struct stack_image *images;
    size_t dynamic, fixed, ops; /* sizes; they lie in this order at the start of bytes[] */
    char *bytes;
};

void wait_drop(struct parked *p)
{
    if (!p)
        return;
    free(p->check.init[0]);
    free(p->check.init[1]);
    free(p->images);
    free(p->bytes);
    free(p);
}

static size_t note_stacks(struct parked *p, size_t at)
{
    for (int i = 0; i < p->n_fibers; i++) {
        const struct fiber *f = fiber_get(i);

        if (f->thread < 0)
            continue;
        p->images[p->n_images++] = (struct stack_image){i, *f, at, (size_t)(fiber_top(f) - (char *)f->sp)};
        at += p->images[p->n_images - 1].n;
    }
    return at;
}

static void copy_out(struct parked *p)
{
    memcpy(p->bytes, simt_dynamic_shared, p->dynamic);
    if (p->fixed)
        memcpy(p->bytes + p->dynamic, run.shared_lo, p->fixed);
    warp_save(p->bytes + p->dynamic + p->fixed);
    for (int i = 0; i < p->n_images; i++)
        memcpy(p->bytes + p->images[i].at, p->images[i].f.sp, p->images[i].n);
}

struct parked *wait_park(void)
{
    struct parked *p = calloc(1, sizeof *p);
    size_t total;

    if (!p)
        return NULL;
    async_finish_all();
    p->index = run.block_index;
    p->block = run.block;
    p->n_fibers = fibers_armed();
    p->dynamic = run.launch->shared;
    p->fixed = run.shared_lo ? (size_t)(run.shared_hi - run.shared_lo) : 0;
    p->ops = warp_save(NULL);
    if (!(p->images = calloc((size_t)p->n_fibers + 1, sizeof *p->images)))
        return wait_drop(p), NULL;
    total = note_stacks(p, p->dynamic + p->fixed + p->ops);
    if (!(p->bytes = malloc(total + 1)))
        return wait_drop(p), NULL;
    copy_out(p);
    check_park(&p->check);
    warp_reset();
    fibers_restart(0);
    return p;
}

static bool arm_all(const struct parked *p)
{
    int k = 0;

    if (!fibers_restart(p->n_fibers) && p->n_fibers)
        return false;
    for (int i = 0; i < p->n_fibers; i++) {
        struct fiber *f = fiber_get(i);

        if (k < p->n_images && p->images[k].fiber == i)
            *f = p->images[k++].f;
        else
            fiber_is_idle(f);
    }
    return true;
}

void wait_unpark(struct parked *p)
{
    run.block_index = p->index;
    run.block = p->block;
    arm_all(p);
    memcpy(simt_dynamic_shared, p->bytes, p->dynamic);
    if (p->fixed)
        memcpy(run.shared_lo, p->bytes + p->dynamic, p->fixed);
    warp_restore(p->bytes + p->dynamic + p->fixed, p->ops);
    for (int i = 0; i < p->n_images; i++)
        memcpy(p->images[i].f.sp, p->bytes + p->images[i].at, p->images[i].n);
    check_unpark(&p->check);
    wait_drop(p);
}

void wait_wake_grid(struct parked *p)
{
    struct block *b = &p->block;

    /* The lists link fibers, whose images hold the links: what is woken is appended when the block is back. */
    b->n_at_grid = 0;
    b->idle = 0;
    b->ready = b->at_grid; /* nobody else was ready: that is why the block was parked */
    b->at_grid = (struct list){NULL, NULL};
}

void wait_push(struct parked_queue *q, struct parked *p)
{
    p->next = NULL;
    if (q->tail)
        q->tail->next = p;
    else
        q->head = p;
    q->tail = p;
    q->n++;
}

void wait_push_front(struct parked_queue *q, struct parked *p)
{
    p->next = q->head;
    q->head = p;
    q->tail = q->tail ? q->tail : p;
    q->n++;
}

struct parked *wait_pop(struct parked_queue *q)
{
    struct parked *p = q->head;

    if (!p)
        return NULL;
    if (!(q->head = p->next))
        q->tail = NULL;
    q->n--;
    return p;
}
