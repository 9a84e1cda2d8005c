/* launch.c - runs a grid: blocks one after the other, their threads as sched.c has them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "sched.h"

static struct simt_dim3u index_table[MAX_THREADS], index_shape;
static uint64_t schedule;
static int ablation, poison = 0xff, how_blocks;

/* ---- blocks ---- */

/* An unwritten word reads as NaN in some replays and as a finite number in others, so that a program to which it
 * matters is wrong in some: fmaxf drops a NaN. */
static void poison_shared(void)
{
    memset(simt_dynamic_shared, poison, run.launch->shared);
    if (run.shared_lo)
        memset(run.shared_lo, poison, (size_t)(run.shared_hi - run.shared_lo));
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
    b->gave_way = false;
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

static bool park_into(struct parked_queue *q, void (*push)(struct parked_queue *q, struct parked *p))
{
    struct parked *p = wait_park();

    if (p)
        push(q, p);
    else
        finding("crash", NULL, false, "out of memory for blocks that wait for other blocks");
    return p != NULL;
}

/* What the block's end means. False: the launch is over. */
static bool block_ended(void)
{
    switch (run.end) {
    case LAUNCH_DONE: wait_note_progress(); return true;
    case LAUNCH_SPINS: return park_into(&spinning, wait_push);
    case LAUNCH_GIVES_WAY: wait_note_progress(); return park_into(&spinning, wait_push_front);
    case LAUNCH_GRID: wait_note_progress(); return park_into(&at_grid, wait_push);
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

enum { GIVE_WAY_MOST = 64 }; /* blocks of a launch: each costs memory until it goes on */
enum { ROUNDS = 64 }; /* through all waiting blocks without a change before they are stuck */

/* why: "", or what the finding says besides. */
static bool stuck(int *rounds, const char *why)
{
    *rounds = wait_progress() ? 0 : *rounds + 1;
    if (*rounds < ROUNDS)
        return false;
    finding("divergence", NULL, false, "deadlock: %zu blocks wait for values that no thread changes%s", spinning.n,
            why);
    run.end = LAUNCH_DEADLOCK;
    return true;
}

/* Each block that spins goes on once. False: the launch is over. */
static bool resume_spinning(void)
{
    for (size_t n = spinning.n; n > 0; n--)
        if (!resume_block(wait_pop(&spinning)))
            return false;
    return true;
}

static void run_waiting(uint64_t blocks)
{
    int rounds = 0;

    while (spinning.n || at_grid.n) {
        if (!spinning.n && !release_grid(blocks))
            return;
        if (!resume_spinning() || (spinning.n && stuck(&rounds, "")))
            return;
    }
    run.end = LAUNCH_DONE;
}

/* Blocks that wait keep their places on the device, so a further one begins only where less than 'room' wait.
 * False: that never happens, or the launch is over. */
static bool wait_for_room(size_t room)
{
    int rounds = 0;

    while (spinning.n >= room)
        if (!resume_spinning() || (spinning.n >= room && stuck(&rounds, "; the device holds no more at once, so the "
                                                               "others of the grid never begin")))
            return false;
    return true;
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
        order_of_threads[i] = schedule == 1 ? n - 1 - i : i;
    for (int i = n - 1; schedule > 1 && i > 0; i--) {
        int k = (int)(mix(schedule + (uint64_t)i) % (uint64_t)(i + 1)), t = order_of_threads[i];

        order_of_threads[i] = order_of_threads[k];
        order_of_threads[k] = t;
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

static size_t resident_blocks(const struct simt_launch *l, int threads)
{
    return device_resident(threads, l->shared + static_shared_of(l->fn ? l->fn : (const void *)l->body, l->kernel));
}

/* NULL, or what is wrong with the configuration. */
static const char *refuse(const struct simt_launch *l, char *text, size_t n, int *code)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    size_t limit = max_dynamic_shared(l->kernel, l->fn), fixed, room;

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
        snprintf(text, n, "%zu bytes of static shared memory; at most %u are possible, more only as dynamic shared "
                          "memory",
                 fixed, device_shared_default);
    else if (l->shared > limit || l->shared + fixed > (limit > device_shared_default ? device_shared_optin : limit)) {
        *code = CUDA_INVALID_VALUE; /* the attribute bounds the dynamic part alone */
        snprintf(text, n, "%zu bytes of shared memory (%zu static, %zu dynamic); the limit is %zu%s", l->shared + fixed,
                 fixed, l->shared, limit, limit < device_shared_optin ? " unless cudaFuncSetAttribute raises it" : "");
    } else if (l->cooperative &&
               (uint64_t)l->grid.x * l->grid.y * l->grid.z > (room = resident_blocks(l, (int)threads))) {
        *code = CUDA_COOPERATIVE_LAUNCH_TOO_LARGE;
        snprintf(text, n, "a cooperative launch of %llu blocks; the device holds at most %zu of them at once",
                 (unsigned long long)l->grid.x * l->grid.y * l->grid.z, room);
    } else
        return NULL;
    return text;
}

static void run_grid(uint64_t blocks, int threads)
{
    uint64_t stride = schedule > 1 && blocks > 1 ? block_stride(blocks) : 1, at = 0;
    bool last_first = schedule == 1 || how_blocks == SIMT_BLOCKS_LAST_FIRST;
    size_t room = schedule || last_first ? SIZE_MAX : resident_blocks(run.launch, threads); /* cards begin in order */

    run.give_way = how_blocks == SIMT_BLOCKS_GIVE_WAY && blocks > 1 ? GIVE_WAY_MOST : 0;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t index = last_first ? blocks - 1 - i : at;

        if (!wait_for_room(room) || !run_block(index, threads))
            return;
        at = (at + stride) % blocks;
    }
    run.give_way = 0;
    run_waiting(blocks);
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
    if (launch_torn)
        warp_reset();
    barrier_forget(); /* libraries may have come and gone since the last launch */
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
    launch_torn = run.end != LAUNCH_DONE;
    if (launch_torn)
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

void simt_configure(struct simt_launch *l, const struct simt_site *s, const unsigned *grid, const unsigned *block,
                    size_t shared, void *stream)
{
    *l = (struct simt_launch){.kernel = s->kernel, .file = s->file, .line = s->line,
                              .grid = {grid[0], grid[1], grid[2]}, .block = {block[0], block[1], block[2]},
                              .shared = shared, .stream = stream};
}

/* Bytes of a launch's block, and how many arguments it holds. */
static size_t block_bytes(const struct simt_spot *s, int *ret_args)
{
    size_t at = sizeof(void *);

    for (*ret_args = 0; s->size; s++, ++*ret_args)
        at = (at + s->align - 1) / s->align * s->align + s->size;
    return at;
}

void simt_run_args(struct simt_launch *l, void (*run_it)(const struct simt_launch *), void (*body)(void *),
                   const struct simt_spot *spots, ...)
{
    int n;
    size_t bytes = block_bytes(spots, &n), at = sizeof(void *), room = (bytes + 63) / 64 * 64;
    char *block = aligned_alloc(64, room + (size_t)n * (sizeof(void *) + sizeof(size_t)));
    const void **args = (const void **)(block + room);
    size_t *sizes = (size_t *)(args + n);
    va_list ap;

    if (!block) {
        device_error(CUDA_OUT_OF_MEMORY);
        return;
    }
    memset(block, 0, room);
    memcpy(block, &l->fn, sizeof l->fn);
    va_start(ap, spots);
    for (int i = 0; i < n; i++) {
        at = (at + spots[i].align - 1) / spots[i].align * spots[i].align;
        args[i] = va_arg(ap, const void *), sizes[i] = spots[i].size;
        memcpy(block + at, args[i], sizes[i]);
        at += sizes[i];
    }
    va_end(ap);
    l->body = body, l->ctx = block, l->ctx_bytes = bytes, l->args = args, l->sizes = sizes, l->n_args = n;
    run_it(l);
    free(block);
}

void simt_set_ablation(int on)
{
    ablation = on;
}

void simt_set_poison(int byte)
{
    poison = byte;
}

void simt_set_blocks(int how)
{
    how_blocks = how;
}

void simt_set_schedule(uint64_t order)
{
    schedule = order;
}
