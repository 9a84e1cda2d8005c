/* sched.c - the threads of a block: who starts, who goes on, and the block's barrier.
 *
 * One fiber runs thread 0, 1, 2, ... in a plain loop; only when a thread has to wait does its fiber stay behind and
 * another one take over the loop. A kernel without barriers therefore never switches. */
#include "sched.h"

#include <string.h>

int order_of_threads[MAX_THREADS];
static struct list idle; /* fibers that finished their loop and can start it again */
static int n_fibers;     /* fibers armed so far */

static void thread_loop(void);

struct fiber *spare_fiber(void)
{
    struct fiber *f = list_take(&idle);

    if (!f && n_fibers < MAX_THREADS && (f = fiber_get(n_fibers))) {
        fiber_arm(f, thread_loop);
        n_fibers++;
    }
    return f;
}

/* Nobody can go on, and no thread is left to start. */
static enum launch_end quiet_end(const struct block *b)
{
    if (b->exited == b->n)
        return LAUNCH_DONE;
    return b->n_at_grid && b->n_at_grid == b->n - b->exited ? LAUNCH_GRID : LAUNCH_DEADLOCK;
}

void leave_for_new(struct fiber *me)
{
    struct block *b = &run.block;
    struct fiber *f = b->next < b->n ? spare_fiber() : NULL;

    if (!f && b->next == b->n && wait_release_active()) {
        leave(me);
    } else if (f) {
        go_on(f, &me->sp);
    } else if (b->next < b->n) {
        finding("crash", NULL, false, "out of memory for the stacks of a block of %d threads", b->n);
        to_host(&me->sp, LAUNCH_ABORTED);
    } else {
        to_host(&me->sp, quiet_end(b));
    }
}

int fibers_armed(void)
{
    return n_fibers;
}

bool fibers_restart(int n)
{
    idle = (struct list){NULL, NULL};
    for (n_fibers = 0; n_fibers < n; n_fibers++) {
        struct fiber *f = fiber_get(n_fibers);

        if (!f)
            return false;
        fiber_arm(f, thread_loop);
    }
    return true;
}

void fiber_is_idle(struct fiber *f)
{
    list_add(&idle, f);
}

/* ---- the block barrier ---- */

static __attribute__((noinline)) void barrier_release(void)
{
    struct block *b = &run.block;
    unsigned next = ++b->generation & 1;

    b->arrived = 0;
    b->idle = 0;
    wait_note_progress();
    b->vote[next].count = b->vote[next].any = 0;
    b->vote[next].all = 1;
    check_barrier();
    wake_all(&b->at_barrier);
}

/* Compilers clone a __syncthreads, so threads that arrive together have several addresses of one line. Looking up lines
 * costs microseconds; pairs that were compared in this launch are not compared again. */
enum { PAIRS = 64 };
static struct { const void *a, *b; } compared[PAIRS];

static bool compared_before(const void *a, const void *b)
{
    size_t i = (((uintptr_t)a ^ ((uintptr_t)b << 1)) * 0x9e3779b97f4a7c15u) >> 58;

    if (compared[i].a == a && compared[i].b == b)
        return true;
    compared[i].a = a, compared[i].b = b;
    return false;
}

void barrier_forget(void)
{
    memset(compared, 0, sizeof compared);
}

static __attribute__((noinline)) void compare_places(const void *pc)
{
    struct source_line a, c;

    if (compared_before(run.block.barrier_pc, pc))
        return;
    a = line_of((const char *)run.block.barrier_pc - 1);
    c = line_of((const char *)pc - 1);
    if (a.exact && c.exact && a.line != c.line)
        finding("divergence", pc, true, "threads of one block wait at different barriers: line %d and line %d; "
                "__syncthreads must be reached by all threads together", a.line, c.line);
}

HOT int barrier(int predicate, const void *pc, int which)
{
    struct block *b = &run.block;
    unsigned parity = b->generation & 1;

    if (!run.in_kernel)
        return 0;
    b->vote[parity].count += predicate != 0;
    b->vote[parity].all &= predicate != 0;
    b->vote[parity].any |= predicate != 0;
    if (b->arrived++ == 0)
        b->barrier_pc = pc;
    else if (b->barrier_pc != pc)
        compare_places(pc);
    if (b->arrived == b->n - b->exited) {
        struct fiber *me = run.current;

        check_suspend();
        list_add(&b->at_barrier, me);
        barrier_release();
        leave(me);
    } else {
        suspend_in(&b->at_barrier);
    }
    return which == 0 ? b->vote[parity].count : which == 1 ? b->vote[parity].all : b->vote[parity].any;
}

void barrier_at(const void *pc)
{
    barrier(0, pc, 0);
}

void simt_syncthreads(void);
int simt_syncthreads_count(int predicate), simt_syncthreads_and(int predicate), simt_syncthreads_or(int predicate);

void simt_syncthreads(void)
{
    barrier(0, __builtin_return_address(0), 0);
}

int simt_syncthreads_count(int predicate)
{
    return barrier(predicate, __builtin_return_address(0), 0);
}

int simt_syncthreads_and(int predicate)
{
    return barrier(predicate, __builtin_return_address(0), 1);
}

int simt_syncthreads_or(int predicate)
{
    return barrier(predicate, __builtin_return_address(0), 2);
}

/* ---- threads ---- */

HOT void thread_exited(int t)
{
    struct block *b = &run.block;
    struct warp *w = &b->warp[t / WARP];

    check_suspend();
    b->exited++;
    b->idle = 0;
    w->alive &= ~LANE_BIT(t % WARP);
    if (w->ops)
        warp_lane_exited(w);
    if (b->arrived > 0 && b->arrived == b->n - b->exited) /* as on hardware: returned threads are not waited for */
        barrier_release();
}

static void thread_loop(void)
{
    struct fiber *me = run.current;
    struct block *b = &run.block;

    for (;;) {
        void (*const body)(void *) = run.launch->body;
        void *const ctx = run.launch->ctx;

        while (b->next < b->n) {
            int t = order_of_threads[b->next++];

            me->thread = t;
            me->spin.pc = NULL;
            threadIdx = thread_index[t];
            read_turn_next();
            body(ctx);
            thread_exited(t);
        }
        me->thread = -1;
        list_add(&idle, me);
        leave(me);
    }
}

/* exit: the frames of the thread are given up, and its fiber starts the next one. */
void simt_exit_thread(void);
void simt_exit_thread(void)
{
    struct fiber *me = run.current;
    void *gone;

    if (!in_my_kernel())
        return;
    thread_exited(me->thread);
    fiber_arm(me, thread_loop);
    run.current = me;
    fiber_switch(&gone, me->sp);
}

void fibers_forget(void)
{
    idle = (struct list){NULL, NULL};
    n_fibers = 0;
    run.current = NULL;
}

/* ---- __activemask: answered when nobody else can go on, with the lanes that ask at the same place ---- */

unsigned __int128 wait_active(const void *pc)
{
    struct fiber *me = run.current;

    me->wait_pc = pc;
    suspend_in(&run.block.at_active);
    return me->active;
}

bool wait_release_active(void)
{
    struct block *b = &run.block;
    struct list waiting = b->at_active, go = {NULL, NULL};
    struct { const void *pc; unsigned __int128 lanes; } warps[MAX_WARPS];
    struct fiber *f;

    if (!waiting.head)
        return false;
    memset(warps, 0, sizeof warps);
    for (f = waiting.head; f; f = f->next) {
        int w = f->thread / WARP;

        if (!warps[w].pc)
            warps[w].pc = f->wait_pc;
        if (warps[w].pc == f->wait_pc)
            warps[w].lanes |= (unsigned __int128)1 << f->thread % WARP;
    }
    b->at_active = (struct list){NULL, NULL};
    while ((f = list_take(&waiting))) {
        bool mine = warps[f->thread / WARP].pc == f->wait_pc;

        f->active = warps[f->thread / WARP].lanes;
        list_add(mine ? &go : &b->at_active, f);
    }
    wake_all(&go);
    return true;
}
