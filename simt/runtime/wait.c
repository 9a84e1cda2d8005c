/* wait.c - waiting without a barrier: threads that spin, and grid.sync(). */
#include "sched.h"

enum {
    PATIENCE = 3,     /* looks at an unchanged word before a thread lets others run */
    IDLE_LOOKS = 4,   /* looks of all fibers together, each, before the block lets other blocks run */
    ALONE = 1u << 20  /* looks after which a block that has no others to wait for is stuck */
};

/* ---- spinning ---- */

static __attribute__((noinline)) void explain_spin(const struct fiber *f)
{
    struct source_line l = line_of((const char *)f->spin.pc - 1);

    finding("divergence", f->spin.pc, true, "deadlock: all threads that are left wait, this one at line %d for a "
            "value that no thread changes", l.line);
}

static void spin_yield(struct fiber *me, const void *pc)
{
    struct block *b = &run.block;
    unsigned live = (unsigned)(b->next - b->exited);

    check_suspend();
    me->spin.pc = pc;
    if (++b->idle > IDLE_LOOKS * live + 64 && b->next == b->n) {
        if (wait_release_active()) {
            b->idle = 0;
        } else if (run.blocks > 1) {
            b->idle = 0;
            list_add(&b->ready, me);
            leave_to_host(me, LAUNCH_SPINS);
            return;
        } else if (b->idle > ALONE) {
            explain_spin(me);
            leave_to_host(me, LAUNCH_ABORTED);
        }
    }
    list_add(&b->ready, me);
    if (b->next < b->n)
        leave_for_new(me);
    else
        leave(me);
}

void wait_look(const void *addr, uint64_t value, const void *pc)
{
    struct fiber *me = run.current;
    uintptr_t read = me ? check_last_read(me->thread) : 0;

    if (!me || me->thread < 0 || !in_my_kernel())
        return;
    if (me->spin.pc != pc || me->spin.addr != addr || me->spin.value != value || me->spin.read != read) {
        if (me->spin.times > PATIENCE)
            wait_note_progress();
        me->spin = (struct spin){pc, addr, value, read, 0};
    } else if (++me->spin.times > PATIENCE) {
        spin_yield(me, pc);
    }
}

/* Shared memory is the block's own: nobody waits for it. */
void wait_behind_atomic(const void *addr)
{
    struct fiber *me = run.current;
    struct block *b = &run.block;

    if (!run.give_way || b->gave_way || !me || me->thread < 0 || !in_my_kernel() || !memory_find((uintptr_t)addr))
        return;
    run.give_way--;
    b->gave_way = true;
    check_suspend();
    list_add(&b->ready, me);
    leave_to_host(me, LAUNCH_GIVES_WAY);
}

void wait_pause(const void *pc)
{
    struct fiber *me = run.current;

    if (me && me->thread >= 0 && in_my_kernel())
        spin_yield(me, pc);
}

/* ---- __launch_bounds__ ---- */

void simt_bounds(unsigned most);

void simt_bounds(unsigned most)
{
    if (!run.in_kernel)
        return;
    finding("launch_error", __builtin_return_address(0), true, "a block of %u threads, where __launch_bounds__ of this "
            "kernel allows %u", (unsigned)run.block.n, most);
    abort_kernel();
}

/* ---- grid.sync() ---- */

void simt_grid_sync(void);
int simt_grid_valid(void);

int simt_grid_valid(void)
{
    return run.in_kernel && run.launch->cooperative;
}

void simt_grid_sync(void)
{
    const void *pc = __builtin_return_address(0);

    if (!run.in_kernel)
        return;
    if (!run.launch->cooperative) {
        finding("launch_error", pc, true, "grid.sync() in a launch that is not cooperative; use "
                "cudaLaunchCooperativeKernel");
        abort_kernel();
    }
    run.block.n_at_grid++;
    run.block.grid_pc = pc;
    suspend_in(&run.block.at_grid);
}
