/* launch.c - runs a grid: blocks one after the other, the threads of a block as lazy fibers.
 *
 * One fiber runs thread 0, 1, 2, ... in a plain loop; only when a thread has to wait does its fiber stay behind and
 * another one take over the loop. A kernel without barriers therefore never switches. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sched.h"

struct run run;
__thread char thread_mark;
struct simt_dim3u threadIdx, blockIdx, blockDim, gridDim;
const int warpSize = WARP;
const struct simt_dim3u *thread_index;
/* Behind the largest possible block's memory comes a page that nobody may touch. */
#define SHARED_ROOM ((SHARED_OPTIN + 4095) / 4096 * 4096)
char simt_dynamic_shared[SHARED_ROOM + 4096] __attribute__((aligned(4096)));

/* What looks for leaks at the end of a process reads all static memory. */
static void open_shared(void)
{
    mprotect(simt_dynamic_shared + SHARED_ROOM, 4096, PROT_READ | PROT_WRITE);
}

static __attribute__((constructor)) void guard_shared(void)
{
    mprotect(simt_dynamic_shared + SHARED_ROOM, 4096, PROT_NONE);
    atexit(open_shared);
}

static struct simt_dim3u index_table[MAX_THREADS], index_shape;
static int order_table[MAX_THREADS];
static uint64_t schedule;
static int ablation;
static struct list idle; /* fibers that finished their loop and can start it again */
static int n_fibers;     /* fibers armed so far */
static bool torn = true; /* the last launch ended in the middle */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
THREAD_LOCAL bool my_turn;

void wake_all(struct list *l)
{
    struct list *r = &run.block.ready;

    if (!l->head)
        return;
    if (r->tail)
        r->tail->next = l->head;
    else
        r->head = l->head;
    r->tail = l->tail;
    l->head = l->tail = NULL;
}

/* ---- switching ---- */

static void thread_loop(void);

static void to_host(void **save, enum launch_end end)
{
    run.end = end;
    run.current = NULL;
    fiber_switch(save, run.host_sp);
}

static struct fiber *spare_fiber(void)
{
    struct fiber *f = list_take(&idle);

    if (!f && n_fibers < MAX_THREADS && (f = fiber_get(n_fibers))) {
        fiber_arm(f, thread_loop);
        n_fibers++;
    }
    return f;
}

void leave_to_host(struct fiber *me, enum launch_end end)
{
    to_host(&me->sp, end);
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

void abort_kernel(void)
{
    void *gone;

    to_host(&gone, LAUNCH_ABORTED);
    __builtin_unreachable();
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
            int t = order_table[b->next++];

            me->thread = t;
            me->spin.pc = NULL;
            threadIdx = thread_index[t];
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

/* ---- blocks ---- */

/* An unwritten word reads as NaN, and as a number that no correct program expects. */
static void poison_shared(void)
{
    memset(simt_dynamic_shared, 0xff, run.launch->shared);
    if (run.shared_lo)
        memset(run.shared_lo, 0xff, (size_t)(run.shared_hi - run.shared_lo));
}

static void block_reset(struct block *b, int n)
{
    int warps = (n + WARP - 1) / WARP;

    b->n = n;
    b->next = b->exited = b->arrived = 0;
    b->vote[0].count = b->vote[0].any = b->vote[1].count = b->vote[1].any = 0;
    b->vote[0].all = b->vote[1].all = 1;
    b->generation = 0;
    b->at_barrier = b->ready = b->at_active = b->at_grid = (struct list){NULL, NULL};
    b->n_at_grid = 0;
    b->idle = 0;
    memset(b->named, 0, sizeof b->named);
    for (int w = 0; w < warps; w++) {
        int lanes = n - w * WARP < WARP ? n - w * WARP : WARP;

        b->warp[w].alive = lanes == WARP ? ~(mask_t)0 : LANE_BIT(lanes) - 1;
        b->warp[w].ops = NULL;
        b->warp[w].epoch = b->warp[w].step = 0;
    }
}

static void explain_deadlock(void)
{
    const struct block *b = &run.block;
    struct source_line l;

    if (warp_explain_deadlock())
        return;
    l = line_of((const char *)b->barrier_pc - 1);
    finding("divergence", b->barrier_pc, true,
        "deadlock: %d of %d threads wait at the barrier of line %d, %d returned, the "
            "others wait elsewhere", b->arrived, b->n, l.line, b->exited);
}

static void set_block_index(uint64_t index)
{
    const struct simt_launch *l = run.launch;

    run.block_index = index;
    blockIdx.x = (unsigned)(index % l->grid.x);
    blockIdx.y = (unsigned)(index / l->grid.x % l->grid.y);
    blockIdx.z = (unsigned)(index / l->grid.x / l->grid.y);
}

/* Blocks of the launch that wait for other blocks. */
static struct parked_queue spinning, at_grid;

static bool park_into(struct parked_queue *q)
{
    struct parked *p = wait_park();

    if (p)
        wait_push(q, p);
    else
        finding("crash", NULL, false, "out of memory for blocks that wait for other blocks");
    return p != NULL;
}

/* What the block's end means. False: the launch is over. */
static bool block_ended(void)
{
    switch (run.end) {
    case LAUNCH_DONE: wait_note_progress(); return true;
    case LAUNCH_SPINS: return park_into(&spinning);
    case LAUNCH_GRID: wait_note_progress(); return park_into(&at_grid);
    case LAUNCH_DEADLOCK: explain_deadlock(); return false;
    case LAUNCH_ABORTED: break;
    }
    return false;
}

static bool run_block(uint64_t index, int threads)
{
    struct fiber *f;

    set_block_index(index);
    block_reset(&run.block, threads);
    poison_shared();
    async_reset();
    check_block_start();
    if (!(f = spare_fiber())) {
        finding("crash", NULL, false, "out of memory for stacks");
        return false;
    }
    go_on(f, &run.host_sp);
    return block_ended();
}

static bool resume_block(struct parked *p)
{
    struct fiber *f;

    wait_unpark(p);
    set_block_index(run.block_index);
    f = list_take(&run.block.ready);
    go_on(f, &run.host_sp);
    return block_ended();
}

/* All blocks are at grid.sync(): everybody leaves it. False if some have returned, or spin for ever. */
static bool release_grid(uint64_t blocks)
{
    struct parked *p;

    if (at_grid.n < blocks) {
        finding("divergence", NULL, false, "deadlock: %zu of %llu blocks wait in grid.sync(), the others have returned",
                at_grid.n, (unsigned long long)blocks);
        run.end = LAUNCH_DEADLOCK;
        return false;
    }
    check_grid_barrier();
    while ((p = wait_pop(&at_grid))) {
        wait_wake_grid(p);
        wait_push(&spinning, p);
    }
    return true;
}

enum { ROUNDS = 64 }; /* through all waiting blocks without a change before they are stuck */

static bool stuck(int *rounds)
{
    *rounds = wait_progress() ? 0 : *rounds + 1;
    if (*rounds < ROUNDS)
        return false;
    finding("divergence", NULL, false, "deadlock: %zu blocks wait for values that no thread changes", spinning.n);
    run.end = LAUNCH_DEADLOCK;
    return true;
}

static void run_waiting(uint64_t blocks)
{
    int rounds = 0;

    while (spinning.n || at_grid.n) {
        if (!spinning.n && !release_grid(blocks))
            return;
        for (size_t n = spinning.n; n > 0; n--)
            if (!resume_block(wait_pop(&spinning)))
                return;
        if (spinning.n && stuck(&rounds))
            return;
    }
    run.end = LAUNCH_DONE;
}

static void drop_waiting(void)
{
    struct parked *p;

    while ((p = wait_pop(&spinning)) || (p = wait_pop(&at_grid)))
        wait_drop(p);
}

/* ---- orders ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void make_order(int n)
{
    for (int i = 0; i < n; i++)
        order_table[i] = schedule == 1 ? n - 1 - i : i;
    for (int i = n - 1; schedule > 1 && i > 0; i--) {
        int k = (int)(mix(schedule + (uint64_t)i) % (uint64_t)(i + 1)), t = order_table[i];

        order_table[i] = order_table[k];
        order_table[k] = t;
    }
}

/* Random orders walk the blocks with a stride that is coprime to their number. */
static uint64_t block_stride(uint64_t n)
{
    uint64_t s = mix(schedule) % n | 1;

    for (;; s++) {
        uint64_t a = n, b = s;

        while (b) {
            uint64_t r = a % b;
            a = b, b = r;
        }
        if (a == 1)
            return s % n ? s % n : 1;
    }
}

static void make_index_table(struct simt_dim shape, int n)
{
    thread_index = index_table;
    if (index_shape.x == shape.x && index_shape.y == shape.y && index_shape.z >= shape.z)
        return;
    for (int t = 0; t < n; t++) {
        index_table[t].x = (unsigned)t % shape.x;
        index_table[t].y = (unsigned)t / shape.x % shape.y;
        index_table[t].z = (unsigned)t / shape.x / shape.y;
    }
    index_shape.x = shape.x, index_shape.y = shape.y, index_shape.z = shape.z;
}

/* ---- launches ---- */

/* NULL, or what is wrong with the configuration. */
static const char *refuse(const struct simt_launch *l, char *text, size_t n, int *code)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    size_t limit = max_dynamic_shared(l->kernel, l->fn), fixed;

    *code = CUDA_INVALID_CONFIGURATION;
    if (!threads || !l->grid.x || !l->grid.y || !l->grid.z)
        snprintf(text, n, "grid (%u,%u,%u) of blocks (%u,%u,%u) is empty; skip the launch when there is no work",
                 l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z);
    else if (l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64 || threads > MAX_THREADS)
        snprintf(text, n, "block (%u,%u,%u) has %llu threads; at most 1024 (and 64 in z) are possible", l->block.x,
                 l->block.y, l->block.z, (unsigned long long)threads);
    else if (l->grid.x > 0x7fffffff || l->grid.y > device_grid_yz || l->grid.z > device_grid_yz)
        snprintf(text, n, "grid (%u,%u,%u) is too large; at most (2147483647,%u,%u) blocks are possible",
                 l->grid.x, l->grid.y, l->grid.z, device_grid_yz, device_grid_yz);
    else if ((fixed = static_shared_of(l->fn ? l->fn : (const void *)l->body, l->kernel)) > device_shared_default)
        snprintf(text, n, "%zu bytes of static shared memory; at most %u are possible, more only as dynamic shared memory",
                 fixed, device_shared_default);
    else if (l->shared > limit || l->shared + fixed > (limit > device_shared_default ? device_shared_optin : limit)) {
        *code = CUDA_INVALID_VALUE; /* the attribute bounds the dynamic part alone */
        snprintf(text, n, "%zu bytes of shared memory (%zu static, %zu dynamic); the limit is %zu%s", l->shared + fixed,
                 fixed, l->shared, limit, limit < device_shared_optin ? " unless cudaFuncSetAttribute raises it" : "");
    } else
        return NULL;
    return text;
}

static void run_grid(uint64_t blocks, int threads)
{
    uint64_t stride = schedule > 1 && blocks > 1 ? block_stride(blocks) : 1, at = 0;

    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t index = schedule == 1 ? blocks - 1 - i : at;

        if (!run_block(index, threads))
            return;
        at = (at + stride) % blocks;
    }
    run_waiting(blocks);
}

static void fibers_forget(void)
{
    idle = (struct list){NULL, NULL};
    n_fibers = 0;
    run.current = NULL;
}

/* Crashes of kernel code come back here by siglongjmp: the fibers are given up, the process goes on. */
static void run_guarded(const struct simt_launch *l, uint64_t blocks, int threads)
{
    run.end = LAUNCH_DONE;
    run.blocks = blocks;
    run.owner = this_host_thread(); /* first: a finding of another thread looks at the launch if that thread owns it */
    run.launch = l;
    if (!tls_of((const void *)l->body, &run.shared_lo, &run.shared_hi))
        run.shared_lo = run.shared_hi = NULL;
    if (torn)
        warp_reset();
    memset(compared, 0, sizeof compared); /* libraries may have come and gone since the last launch */
    check_launch_start();
    if (sigsetjmp(run.escape, 1) == 0) {
        __atomic_store_n(&run.in_kernel, true, __ATOMIC_RELEASE); /* after the owner: others look at both */
        run_grid(blocks, threads);
    } else {
        memory_abandon();
        findings_abandon();
        run.end = LAUNCH_ABORTED;
    }
    run.in_kernel = false;
    check_launch_end();
    drop_waiting();
    run.launch = NULL;
    torn = run.end != LAUNCH_DONE;
    if (torn)
        fibers_forget();
}

static void launch(const struct simt_launch *l)
{
    const uint64_t shape[] = {l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z, l->shared};
    uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    int threads = (int)(l->block.x * l->block.y * l->block.z), depth = memory_depth();

    if (watcher)
        watcher->launch(l->kernel, shape, l->n_args, l->args, l->sizes);
    blockDim.x = l->block.x, blockDim.y = l->block.y, blockDim.z = l->block.z;
    gridDim.x = l->grid.x, gridDim.y = l->grid.y, gridDim.z = l->grid.z;
    make_index_table(l->block, threads);
    make_order(threads);
    crash_install();
    memory_open();
    run_guarded(l, blocks, threads);
    memory_close_to(depth); /* a copy called by the kernel may have faulted and left it open, too */
    if (run.end != LAUNCH_DONE && !device_error_state())
        device_error_sticky(run.end == LAUNCH_DEADLOCK ? CUDA_LAUNCH_TIMEOUT : CUDA_LAUNCH_FAILURE);
}

static void turn_take(void)
{
    pthread_mutex_lock(&turn);
    my_turn = true;
}

static void turn_give(void)
{
    my_turn = false;
    pthread_mutex_unlock(&turn);
}

void launch_abandon(void)
{
    if (!my_turn)
        return;
    check_now = false;
    run.launch = NULL;
    run.in_kernel = false;
    torn = true;
    fibers_forget();
    turn_give();
}

void simt_run(const struct simt_launch *l)
{
    char text[256];
    const char *why;
    int code;

    if (in_my_kernel()) { /* dynamic parallelism */
        finding("launch_error", NULL, false, "a kernel launches '%s'; launches from device code are not emulated",
            l->kernel);
        abort_kernel();
    }
    turn_take();
    why = refuse(l, text, sizeof text, &code);
    count_launch(l->kernel, why ? 0
        : (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z,
                 why != NULL);
    if (why) {
        run.owner = this_host_thread();
        run.launch = l;
        finding("launch_error", NULL, false, "launch of '%s' refused: %s", l->kernel, why);
        run.launch = NULL;
        device_error(code);
    } else if (!ablation && !device_error_state()) {
        launch(l);
    }
    turn_give();
}

void simt_set_ablation(int on)
{
    ablation = on;
}

void simt_set_schedule(uint64_t order)
{
    schedule = order;
}
