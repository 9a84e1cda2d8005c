/* async.c - what inline PTX does beside the thread: copies in the background, and the window of shared addresses.
 *
 * A copy happens when its thread waits for it, the last moment that hardware allows. So a kernel that forgets to wait
 * reads what was there before, and the checker sees an unwritten or a raced word. */
#include <stdlib.h>
#include <string.h>

#include "sched.h"

/* ---- the shared window: static shared memory at 1 KB, dynamic behind all that can be static ---- */

#define STATIC_AT 0x400u
#define DYNAMIC_AT 0x40000u

void *simt_from_shared(unsigned long long address);
unsigned simt_dynamic_smem(void), simt_smid(void);
void simt_unsupported(const char *what);

static uintptr_t static_base(void)
{
    return (uintptr_t)run.shared_lo & ~(uintptr_t)1023; /* so that an address keeps its alignment */
}

unsigned simt_to_shared(const void *p)
{
    uintptr_t a = (uintptr_t)p, dynamic = a - (uintptr_t)simt_dynamic_shared;

    if (dynamic <= SHARED_OPTIN)
        return DYNAMIC_AT + (unsigned)dynamic;
    if (run.shared_lo && a >= (uintptr_t)run.shared_lo && a <= (uintptr_t)run.shared_hi)
        return STATIC_AT + (unsigned)(a - static_base());
    return 0;
}

void *simt_from_shared(unsigned long long address)
{
    unsigned a = (unsigned)address;

    if (a >= DYNAMIC_AT)
        return simt_dynamic_shared + (a - DYNAMIC_AT);
    return a >= STATIC_AT && run.shared_lo ? (void *)(static_base() + (a - STATIC_AT)) : (void *)(uintptr_t)a;
}

unsigned simt_dynamic_smem(void)
{
    return run.in_kernel ? (unsigned)run.launch->shared : 0;
}

unsigned simt_smid(void)
{
    return (unsigned)(run.block_index % 132);
}

void simt_unsupported(const char *what)
{
    finding("unsupported", __builtin_return_address(0), true, "%s is not emulated", what);
    if (in_my_kernel()) {
        device_error_sticky(CUDA_NOT_SUPPORTED);
        abort_kernel();
    }
}

/* ---- cp.async ---- */

struct copy {
    char *to;
    const char *from;
    unsigned bytes, read, group;
    const void *pc;
};

static struct copies {
    struct copy *v;
    unsigned n, cap, group; /* group: of copies from now on */
} pending[MAX_THREADS];
static int threads_used; /* entries of pending that this block may have touched */

void simt_async_copy(void *to, const void *from, unsigned bytes, unsigned read);
void simt_async_commit(void), simt_async_wait(unsigned left);

void async_reset(void)
{
    for (int i = 0; i < threads_used; i++)
        pending[i].n = pending[i].group = 0;
    threads_used = 0;
}

static struct copies *mine(void)
{
    int t = this_thread();

    if (t >= threads_used)
        threads_used = t + 1;
    return &pending[t];
}

static void do_copy(const struct copy *c)
{
    check_access(c->to, c->bytes, true, true, c->pc);
    memcpy(c->to, c->from, c->read);
    memset(c->to + c->read, 0, c->bytes - c->read);
}

static void finish_older(struct copies *q, unsigned first_kept)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < q->n; i++)
        if (q->v[i].group < first_kept)
            do_copy(&q->v[i]);
        else
            q->v[kept++] = q->v[i];
    q->n = kept;
}

void async_finish_all(void)
{
    for (int i = 0; i < threads_used; i++) {
        for (unsigned k = 0; k < pending[i].n; k++) {
            const struct copy *c = &pending[i].v[k];

            memcpy(c->to, c->from, c->read);
            memset(c->to + c->read, 0, c->bytes - c->read);
        }
        pending[i].n = 0;
    }
}

void simt_async_copy(void *to, const void *from, unsigned bytes, unsigned read)
{
    const void *pc = __builtin_return_address(0);
    struct copies *q;

    if (!in_my_kernel())
        return;
    read = read < bytes ? read : bytes;
    check_aligned(to, bytes, pc);
    check_aligned(from, read ? bytes : 1, pc);
    check_copy_begins(to, bytes, pc);
    if (read)
        check_access(from, read, false, true, pc);
    q = mine();
    if (q->n == q->cap) {
        unsigned cap = q->cap ? q->cap * 2 : 16;
        struct copy *v = realloc(q->v, cap * sizeof *v);

        if (!v) {
            finding("crash", pc, true, "out of memory for copies in the background");
            abort_kernel();
        }
        q->v = v;
        q->cap = cap;
    }
    q->v[q->n++] = (struct copy){to, from, bytes, read, q->group, pc};
}

/* cp.async.bulk: at once, since its barrier says when; addresses and sizes are multiples of 16 bytes. */
void simt_bulk_copy(void *to, const void *from, unsigned bytes);

void simt_bulk_copy(void *to, const void *from, unsigned bytes)
{
    const void *pc = __builtin_return_address(0);

    if (!in_my_kernel() || !bytes)
        return;
    check_aligned(to, 16, pc);
    check_aligned(from, 16, pc);
    check_access(from, bytes, false, false, pc);
    check_access(to, bytes, true, false, pc);
    memcpy(to, from, bytes);
}

void simt_async_commit(void)
{
    if (in_my_kernel())
        mine()->group++;
}

/* All but the latest 'left' committed groups are done; with ~0 all copies that were started are. */
void simt_async_wait(unsigned left)
{
    struct copies *q;

    if (!in_my_kernel())
        return;
    q = mine();
    finish_older(q, left == ~0u ? q->group + 1 : q->group > left ? q->group - left : 0);
}
