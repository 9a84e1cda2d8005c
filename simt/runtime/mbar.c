/* mbar.c - barriers of inline PTX: in shared memory (mbarrier), and named ones (bar.sync). */
#include <string.h>

#include "sched.h"

/* ---- mbarrier: 16 bits of arrivals, 16 bits still to come, 31 bits of bytes still to come, the phase ---- */

void simt_mbar_init(void *bar, unsigned count);
unsigned long long simt_mbar_arrive(void *bar, unsigned count, unsigned tx);
void simt_mbar_tx(void *bar, unsigned expected, unsigned done);
int simt_mbar_test(void *bar, unsigned long long state, int parity);

struct mbar {
    uint16_t count, left;
    int32_t tx : 31;
    uint32_t phase : 1;
};

static void mbar_complete(struct mbar *m)
{
    if (m->left || m->tx)
        return;
    m->left = m->count;
    m->phase ^= 1;
    run.block.idle = 0;
    wait_note_progress();
    check_barrier();
}

static struct mbar *mbar_of(void *bar, const void *pc)
{
    if (simt_to_shared(bar) == 0) {
        finding("illegal_access", pc, true, "a barrier that is not in shared memory");
        abort_kernel();
    }
    check_aligned(bar, 8, pc);
    return bar;
}

void simt_mbar_init(void *bar, unsigned count)
{
    struct mbar *m = mbar_of(bar, __builtin_return_address(0));

    *m = (struct mbar){(uint16_t)count, (uint16_t)count, 0, 0};
}

unsigned long long simt_mbar_arrive(void *bar, unsigned count, unsigned tx)
{
    struct mbar *m = mbar_of(bar, __builtin_return_address(0));
    unsigned long long state = m->phase;

    if (count > m->left) {
        finding("divergence", __builtin_return_address(0), true, "more arrivals at a barrier than it was made for (%u)",
                m->count);
        abort_kernel();
    }
    m->tx += (int32_t)tx;
    m->left = (uint16_t)(m->left - count);
    mbar_complete(m);
    return state;
}

void simt_mbar_tx(void *bar, unsigned expected, unsigned done)
{
    struct mbar *m = mbar_of(bar, __builtin_return_address(0));

    m->tx += (int32_t)expected - (int32_t)done;
    mbar_complete(m);
}

int simt_mbar_test(void *bar, unsigned long long state, int parity)
{
    struct mbar *m = mbar_of(bar, __builtin_return_address(0));
    uint64_t word;

    (void)parity; /* a state is the phase that it was taken in, which is what a parity says too */
    if (m->phase != (state & 1))
        return 1;
    memcpy(&word, m, sizeof word);
    wait_look(bar, word, __builtin_return_address(0));
    return m->phase != (state & 1);
}

/* ---- named barriers: bar.sync id, threads ---- */

void simt_bar(int id, int threads, int wait);

void simt_bar(int id, int threads, int wait)
{
    const void *pc = __builtin_return_address(0);
    struct block *b = &run.block;
    struct named *m;

    if (!in_my_kernel())
        return;
    if (id < 0 || id >= NAMED_BARRIERS || threads < 0 || threads % WARP || threads > MAX_THREADS) {
        finding("divergence", pc, true, "barrier %d of %d threads; there are %d barriers, of whole warps", id, threads,
                NAMED_BARRIERS);
        abort_kernel();
    }
    if (id == 0 && wait && (threads == 0 || threads == (b->n + WARP - 1) / WARP * WARP)) {
        barrier_at(pc);
        return;
    }
    m = &b->named[id];
    if (++m->arrived < (threads ? threads : b->n)) {
        if (wait)
            suspend_in(&m->waiting);
        return;
    }
    m->arrived = 0;
    b->idle = 0;
    wait_note_progress();
    check_barrier();
    wake_all(&m->waiting);
}
