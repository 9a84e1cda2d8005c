/* check.c - looks at every memory access of a kernel: bounds, races, uninitialised shared memory.
 *
 * Candidates compiled with -fsanitize=thread (and linked without it) call __tsan_read4(address) and friends before
 * each access; here those names are ours. Time is counted in intervals: a new one begins at every block and at every
 * block barrier, over all launches of the process, so an interval number alone tells whether two accesses belong to
 * the same launch, the same block and the same stretch between barriers.
 *
 * A race: two accesses to the same bytes by different threads of one launch, at least one a write, not both atomic,
 * and either in different blocks (unless one published with a fence and an atomic and the other acquired with an
 * atomic), or in the same interval (unless a __syncwarp of their warp lies between). A write that does not change the
 * value is no race: all threads storing the same result is a usual and harmless idiom. A shuffle or vote of a whole
 * warp orders no memory, but what its lanes read before it has been read: a later write of the warp is too late for
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "reads.h"

/* ---- shadow memory: one cell per four bytes ---- */

/* An access, packed: interval 32 bits, thread 10, warp epoch 12, bytes of the word 4, flags. 0 means none. */
#define MULTI ((access_t)1 << 0)        /* several threads of one interval read it */
#define MULTI_BLOCK ((access_t)1 << 1)  /* several blocks read it */
#define ATOMIC_ACCESS ((access_t)1 << 2)
#define MULTI_WARP ((access_t)1 << 29)  /* several threads, of more than one warp */
#define BYTES_AT 3
#define EPOCH_AT 7
#define THREAD_AT 19
#define INTERVAL_AT 32
#define EPOCH_MASK 0xfffu

static uint32_t interval;     /* of now */
static uint32_t launch_first, block_first; /* first intervals of the launch and of the block */
static uint32_t *block_starts; /* first interval of each block run so far in this launch */
static size_t n_blocks, cap_blocks;
static uint64_t *block_ids;    /* its linear index */
static uint8_t *released;      /* it published with a fence and an atomic */
static int32_t *slot_before;   /* slot of the same block before it was parked, or -1 */
static bool parked;            /* in this launch a block has several slots */
static bool fenced, acquired;  /* of the running block */

#define SHARED_WORDS ((SHARED_OPTIN + SHARED_STATIC_ROOM) / 4)
static struct cell *shared_cells[2]; /* dynamic, static */
static uint8_t *shared_init[2];      /* written bytes of each word in this block, 4 bits */
static size_t shared_words[2];

static struct reads shared_reads[2];

static struct range module_data;     /* variables of the candidate's .so: __device__, __constant__ */

/* A write that conflicts is only reported once it is seen to change the value. */
bool check_pending;
static struct pending {
    const void *addr;
    size_t bytes;
    uint8_t before[16];
    const void *pc;
    char message[400];
    struct memory_described described;
    struct simt_dim3u block;
    int thread;
} pending;

/* A plain read that conflicts with an atomic write may be the first half of a compare-and-swap loop, which reads
 * without care and then lets the atomic decide. Whether the code at its address is that shows only when some thread
 * goes on to the atomic, so such reports wait for the end of the launch. */
#define MAX_READS 64
static struct waiting_read {
    const void *pc;
    char message[400];
    struct simt_dim3u block;
    int thread;
} waiting_reads[MAX_READS];
static int n_waiting_reads;
static struct { const void *pc; uintptr_t addr; int thread; } last_read;
static const void *loop_reads[MAX_READS]; /* places known to be such loops */
static int n_loop_reads;

static access_t pack(int thread, uint32_t epoch, unsigned bytes, access_t flags)
{
    return (access_t)interval << INTERVAL_AT | (access_t)thread << THREAD_AT |
           (access_t)(epoch & EPOCH_MASK) << EPOCH_AT | (access_t)bytes << BYTES_AT | flags;
}

static uint32_t interval_of(access_t a)
{
    return (uint32_t)(a >> INTERVAL_AT);
}

static int thread_of(access_t a)
{
    return (int)(a >> THREAD_AT & 0x3ff);
}

static unsigned bytes_of(access_t a)
{
    return (unsigned)(a >> BYTES_AT & 15);
}

static uint32_t epoch_of(access_t a)
{
    return (uint32_t)(a >> EPOCH_AT) & EPOCH_MASK;
}

static void *map_zero(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Larger tensors are checked for bounds only: their shadow would be six times as large. */
#define MAX_TRACKED ((size_t)256 << 20)

static struct cell *range_cell(struct range *r, uintptr_t word)
{
    if (!r->shadow) {
        if (r->hi - r->lo > MAX_TRACKED || !(r->shadow = map_zero(shadow_bytes(r))))
            return NULL;
    }
    return &r->shadow[(word - (r->lo & ~(uintptr_t)3)) / 4];
}

/* ---- reports ---- */

static size_t block_slot(uint32_t iv)
{
    size_t lo = 0, hi = n_blocks;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (block_starts[mid] <= iv)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

/* Was the earlier interval the running block's, before it was parked? */
static bool own_past(uint32_t iv)
{
    return parked && block_ids[block_slot(iv)] == run.block_index;
}

/* Byte 'at' of static shared memory: in which variable it lies. */
static void place_shared(size_t at, char *out, size_t n)
{
    struct shared_array a;

    if (shared_array_at((const void *)run.launch->body, NULL, at, &a) && at < a.begin + a.bytes)
        snprintf(out, n, "at byte %zu of shared '%s' (%zu bytes)", at - a.begin, a.name, a.bytes);
    else
        snprintf(out, n, "of static shared memory, byte %zu", at);
}

/* "of shared memory, byte 4", or "at byte 4 of 'x' (64 bytes)", which memory_describe keeps. */
static void place_name(uintptr_t addr, char *out, size_t n)
{
    if (addr - (uintptr_t)simt_dynamic_shared < sizeof(char[SHARED_OPTIN]))
        snprintf(out, n, "of dynamic shared memory, byte %zu", (size_t)(addr - (uintptr_t)simt_dynamic_shared));
    else if (run.shared_lo && addr - (uintptr_t)run.shared_lo < (uintptr_t)(run.shared_hi - run.shared_lo))
        place_shared((size_t)(addr - (uintptr_t)run.shared_lo), out, n);
    else if (memory_find(addr))
        memory_describe(addr, 1, out, n);
    else
        snprintf(out, n, "of a device variable");
}

static void describe_other(access_t a, int32_t pc, const char *verb, char *out, size_t n)
{
    struct source_line l = line_of((const char *)run.launch->body + pc - 1);
    uint32_t iv = interval_of(a);
    bool same_block = iv >= block_first;
    int t = thread_of(a);
    struct simt_dim3u ti = thread_index[t];
    char block[48] = ""; /* named only when it is another one */

    if (!same_block)
        snprintf(block, sizeof block, " of block %llu", (unsigned long long)block_ids[block_slot(iv)]);
    snprintf(out, n, "the %s at line %d by thread (%u,%u,%u)%s", verb, l.line, ti.x, ti.y, ti.z, block);
}

/* What orders an earlier access and this thread's: what a program that is told so may do without a deadlock. */
static const char *remedy(access_t other)
{
    if (interval_of(other) < block_first)
        return "blocks run in any order: use atomics or separate outputs";
    if (run.current && thread_of(other) / WARP == run.current->thread / WARP && !(other & MULTI_WARP))
        return (unsigned long long)blockDim.x * blockDim.y * blockDim.z <= WARP
               ? "threads of one warp do not run in step: a __syncwarp() is missing between them"
               : "lanes of a warp do not run in step: __syncwarp() is missing, or __syncthreads() for all warps";
    return "a __syncthreads is missing between them";
}

static void race_message(uintptr_t addr, const char *verb, access_t other, int32_t other_pc, const char *other_verb,
                         char *out, size_t n)
{
    char place[160], who[128];

    place_name(addr, place, sizeof place);
    describe_other(other, other_pc, other_verb, who, sizeof who);
    snprintf(out, n, "%s %s conflicts with %s; %s", verb, place, who, remedy(other));
}

static void decide_pending(void)
{
    check_pending = false;
    if (!memcmp(pending.addr, pending.before, pending.bytes))
        return;
    described = pending.described;
    finding_by(pending.block, pending.thread, "race", pending.pc, pending.message);
}

void check_decide(void)
{
    decide_pending();
}

static void defer(uintptr_t addr, size_t bytes, const void *pc, const char *message)
{
    check_pending = true;
    pending.addr = (const void *)addr;
    pending.bytes = bytes > sizeof pending.before ? sizeof pending.before : bytes;
    memcpy(pending.before, pending.addr, pending.bytes);
    pending.pc = pc;
    pending.described = described;
    pending.block = blockIdx;
    pending.thread = run.current->thread;
    snprintf(pending.message, sizeof pending.message, "%s", message);
}

static bool is_loop_read(const void *pc)
{
    for (int i = 0; i < n_loop_reads; i++)
        if (loop_reads[i] == pc)
            return true;
    return false;
}

/* The latest read, where a run has it. */
static void fetch_last_read(void)
{
    if (!read_latest)
        return;
    last_read.pc = read_latest->pc;
    last_read.addr = read_latest_addr();
    last_read.thread = read_latest->thread;
    read_latest = NULL;
}

static void keep_last_read(const void *pc, uintptr_t addr, int thread)
{
    read_latest = NULL;
    last_read.pc = pc;
    last_read.addr = addr;
    last_read.thread = thread;
}

static void note_atomic_after(uintptr_t addr)
{
    fetch_last_read();
    if (last_read.pc && last_read.addr == addr && last_read.thread == run.current->thread &&
        n_loop_reads < MAX_READS && !is_loop_read(last_read.pc))
        loop_reads[n_loop_reads++] = last_read.pc;
}

static void wait_for_atomic(const void *pc, const char *message)
{
    struct waiting_read *w = &waiting_reads[n_waiting_reads];

    for (int i = 0; i < n_waiting_reads; i++)
        if (waiting_reads[i].pc == pc)
            return;
    if (n_waiting_reads == MAX_READS || is_loop_read(pc))
        return;
    w->pc = pc;
    w->block = blockIdx;
    w->thread = run.current->thread;
    snprintf(w->message, sizeof w->message, "%s", message);
    n_waiting_reads++;
}

static void decide_waiting_reads(void)
{
    for (int i = 0; i < n_waiting_reads; i++)
        if (!is_loop_read(waiting_reads[i].pc))
            finding_by(waiting_reads[i].block, waiting_reads[i].thread, "race", waiting_reads[i].pc,
                       waiting_reads[i].message);
    n_waiting_reads = n_loop_reads = 0;
    last_read.pc = NULL;
    read_latest = NULL;
}

/* ---- the race rule ---- */

/* Is the earlier access 'a' of another thread unordered with one that this thread makes now? Accesses from before the
 * interval 'first' are of no interest: of another launch, or of the block that used the shared memory before.
 * epoch: of my warp now, its step if 'a' is a read. */
static bool unordered(access_t a, uint32_t first, int me, unsigned bytes, bool multi, uint32_t epoch)
{
    uint32_t iv = interval_of(a);
    int t = thread_of(a);

    if (!a || iv < first || !(bytes_of(a) & bytes))
        return false;
    if (iv < block_first)
        return !(acquired && released[block_slot(iv)]) && !own_past(iv);
    if (iv < interval || (t == me && !multi))
        return false;
    return t / WARP != me / WARP || (a & MULTI_WARP) || epoch_of(a) == (epoch & EPOCH_MASK);
}

static access_t with_bytes(access_t a, unsigned bytes)
{
    return (a & ~((access_t)15 << BYTES_AT)) | (access_t)bytes << BYTES_AT;
}

/* A read joins the one on record. Where two readers share only some bytes, only those are kept: a record must never
 * claim that a thread read what it did not. */
static access_t joined(access_t r, access_t now, int me, bool *keep)
{
    unsigned overlap = bytes_of(r) & bytes_of(now);
    bool one_warp = thread_of(r) / WARP == me / WARP && !(r & MULTI_WARP);

    *keep = false;
    if (interval_of(r) < block_first && !(r & MULTI_BLOCK) && own_past(interval_of(r)))
        return now;
    if (interval_of(r) < interval)
        return overlap && (interval_of(r) < block_first || (r & MULTI_BLOCK)) ? with_bytes(now, overlap) | MULTI_BLOCK
            : now;
    if ((r & MULTI_BLOCK) && overlap)
        now = with_bytes(now, overlap) | MULTI_BLOCK;
    if (one_warp && epoch_of(r) != epoch_of(now)) /* a __syncwarp lies between */
        return now;
    if (r & MULTI) {
        *keep = true;
        return overlap && !one_warp ? r | MULTI_WARP : r;
    }
    if (thread_of(r) == me)
        return now & MULTI_BLOCK ? now : with_bytes(now, bytes_of(r) | bytes_of(now));
    return overlap ? with_bytes(now, overlap) | MULTI | (one_warp ? 0 : MULTI_WARP) : now;
}

static void note_read(struct cell *c, uint32_t first, access_t now, int32_t pc, int me)
{
    bool keep = false;

    if (c->read && interval_of(c->read) >= first)
        now = joined(c->read, now, me, &keep);
    c->read = now;
    if (!keep)
        c->read_pc = pc;
}

struct access {
    uintptr_t addr;
    size_t bytes;
    bool write, read, atomic;
    bool loose;  /* volatile access of shared memory: no race with an atomic */
    bool margin; /* may be unwritten */
    const void *pc; /* return address in the candidate */
};

uintptr_t check_last_read(int thread)
{
    fetch_last_read();
    return last_read.thread == thread ? last_read.addr : 0;
}

static int32_t relative(const void *pc)
{
    return (int32_t)((const char *)pc - (const char *)(const void *)run.launch->body);
}

/* A plain write of the same thread since the last barrier: its own atomic there orders it for nobody else. */
static bool is_own_plain(access_t w, int me, unsigned bytes)
{
    return w && !(w & ATOMIC_ACCESS) && interval_of(w) == interval && thread_of(w) == me && (bytes_of(w) & bytes);
}

/* One word of an access. */
static void track(struct cell *c, uint32_t first, const struct access *a, unsigned bytes)
{
    int me = run.current->thread;
    const struct warp *w = &run.block.warp[me / WARP];
    access_t now = pack(me, w->epoch, bytes, a->atomic ? ATOMIC_ACCESS : 0);
    char message[400];

    if (unordered(c->write, first, me, bytes, false, w->epoch) &&
        !((a->atomic || a->loose) && (c->write & ATOMIC_ACCESS))) {
        race_message(a->addr, a->write ? "write" : "read", c->write, c->write_pc, "write", message, sizeof message);
        if (!a->write && (c->write & ATOMIC_ACCESS))
            wait_for_atomic(a->pc, message);
        else if (a->write && !a->atomic)
            defer(a->addr, a->bytes, a->pc, message);
        else
            finding("race", a->pc, true, "%s", message);
    } else if (a->write && !a->atomic &&
               (unordered(c->read, first, me, bytes, (c->read & MULTI) != 0, w->step) ||
                ((c->read & MULTI_BLOCK) && interval_of(c->read) >= first && (bytes_of(c->read) & bytes)
                    && !acquired))) {
        race_message(a->addr, "write", c->read, c->read_pc, "read", message, sizeof message);
        defer(a->addr, a->bytes, a->pc, message);
    }
    if (a->read && !a->atomic) {
        keep_last_read(a->pc, a->addr, me);
        note_read(c, first, pack(me, w->step, bytes, 0), relative(a->pc), me);
    }
    if (a->write && !(a->atomic && is_own_plain(c->write, me, bytes))) {
        c->write = now;
        c->write_pc = relative(a->pc);
    }
}

static void release_slots(int32_t slot)
{
    for (; slot >= 0 && !released[slot]; slot = slot_before[slot])
        released[slot] = 1;
}

static unsigned bytes_in_word(uintptr_t word, const struct access *a)
{
    unsigned first = a->addr > word ? (unsigned)(a->addr - word) : 0;
    unsigned last = a->addr + a->bytes < word + 4 ? (unsigned)(a->addr + a->bytes - word) : 4;

    return (15u >> (4 - (last - first))) << first;
}

/* ---- the spaces ---- */

static void stop_here(int code)
{
    device_error_sticky(code);
    abort_kernel();
}

static uint8_t *written; /* simt_set_written */
static uintptr_t written_base;
static size_t written_bytes;

void simt_set_written(uint8_t *bits, const void *base, size_t bytes)
{
    written = bits;
    written_base = (uintptr_t)base;
    written_bytes = bytes;
}

/* Marks the bytes of an access, which is at most 16 wide but for copies. False: it reads one that nothing wrote. */
static bool mark_written(const struct access *a)
{
    bool all = true;

    for (size_t i = a->addr - written_base, end = i + a->bytes; i < end; i++) {
        uint8_t bit = (uint8_t)(1u << (i & 7));

        all = all && (written[i / 8] & bit);
        written[i / 8] |= bit; /* each byte is reported once */
    }
    return all || !a->read || a->margin;
}

/* Whole bytes of the map where they suffice: most accesses are aligned words. */
static bool known_written(const struct access *a)
{
    size_t i = a->addr - written_base;
    unsigned mask = (1u << (a->bytes & 7)) - 1;

    if (a->bytes >= 8)
        return a->bytes == 8 ? !(i & 7) && written[i / 8] == 0xff
                             : a->bytes == 16 && !(i & 7) && written[i / 8] == 0xff && written[i / 8 + 1] == 0xff;
    return (i & 7) + a->bytes <= 8 && (written[i / 8] >> (i & 7) & mask) == mask;
}

static void look_written(const struct access *a)
{
    char where[160];

    if (!written || a->addr - written_base >= written_bytes || known_written(a) || mark_written(a))
        return;
    memory_describe(a->addr, a->bytes, where, sizeof where);
    finding("uninitialised_global", a->pc, true, "read of %zu bytes %s, which nothing has written", a->bytes, where);
}

static void access_range(struct range *r, const struct access *a)
{
    char where[160];

    if (a->addr + a->bytes > r->hi) {
        memory_describe(a->addr, a->bytes, where, sizeof where);
        finding("out_of_bounds", a->pc, true, "%s of %zu bytes %s", a->write ? "write" : "read", a->bytes, where);
        stop_here(CUDA_ILLEGAL_ADDRESS);
    }
    reads_closed(&r->reads, launch_first);
    look_written(a);
    for (uintptr_t w = a->addr & ~(uintptr_t)3; w < a->addr + a->bytes; w += 4) {
        struct cell *c = range_cell(r, w);

        if (!c)
            return;
        track(c, launch_first, a, bytes_in_word(w, a));
    }
}

static void grow_shared(int which, size_t words)
{
    if (words <= shared_words[which])
        return;
    if (!shared_cells[which]) {
        shared_cells[which] = map_zero((size_t)SHARED_WORDS * sizeof(struct cell));
        shared_init[which] = map_zero(SHARED_WORDS);
    }
    shared_words[which] = words < SHARED_WORDS ? words : SHARED_WORDS;
}

static void access_shared(int which, uintptr_t base, size_t size, const struct access *a)
{
    bool uninitialised = false;

    if (a->addr + a->bytes > base + size) {
        finding("out_of_bounds", a->pc, true, "%s of %zu bytes at byte %zu of %s shared memory, which has %zu bytes",
                a->write ? "write" : "read", a->bytes, (size_t)(a->addr - base), which ? "static" : "dynamic", size);
        stop_here(CUDA_ILLEGAL_ADDRESS);
    }
    reads_closed(&shared_reads[which], interval);
    for (uintptr_t w = a->addr & ~(uintptr_t)3; w < a->addr + a->bytes; w += 4) {
        size_t i = (w - base) / 4;
        unsigned bytes = bytes_in_word(w, a);

        if (i >= shared_words[which])
            return;
        if (a->read && (shared_init[which][i] & bytes) != bytes)
            uninitialised = true;
        if (a->write || uninitialised) /* each word is reported once */
            shared_init[which][i] |= (uint8_t)bytes;
        track(&shared_cells[which][i], block_first, a, bytes);
    }
    if (uninitialised && !a->margin && !(which && a->bytes == 1 && shared_guard_at((const void *)run.launch->body,
        a->addr - base)))
        finding("uninitialised_shared", a->pc, true,
            "read of byte %zu of %s shared memory, which no thread of the block "
                "has written", (size_t)(a->addr - base), which ? "static" : "dynamic");
}

/* Beside static shared memory: behind which variable, where one is known. */
static void shared_nowhere(const struct access *a)
{
    uintptr_t lo = (uintptr_t)run.shared_lo;
    struct shared_array s;
    char where[160] = "";

    if (a->addr >= lo && shared_array_at((const void *)run.launch->body, run.launch->kernel, a->addr - lo, &s))
        snprintf(where, sizeof where, ": at byte %zu of '%s' (%zu bytes)", (size_t)(a->addr - lo - s.begin), s.name,
                 s.bytes);
    finding("out_of_bounds", a->pc, true, "%s of %zu bytes outside of static shared memory%s",
            a->write ? "write" : "read", a->bytes, where);
}

static void access_nowhere(const struct access *a)
{
    const struct range *r = memory_nearest(a->addr);
    uintptr_t dynamic = (uintptr_t)simt_dynamic_shared;
    char where[160];

    memory_describe(a->addr, a->bytes, where, sizeof where);
    if (a->addr - dynamic < SHARED_OPTIN)
        finding("out_of_bounds", a->pc, true,
            "%s of %zu bytes at byte %zu of dynamic shared memory, of which the launch "
                "asked for %zu bytes", a->write ? "write" : "read", a->bytes, (size_t)(a->addr - dynamic),
                run.launch->shared);
    else if (run.shared_lo && a->addr + 65536 > (uintptr_t)run.shared_lo && a->addr < (uintptr_t)run.shared_hi + 65536)
        shared_nowhere(a);
    else if (a->addr < 65536)
        finding("illegal_access", a->pc, true, "the kernel follows a null pointer (address 0x%lx)",
            (unsigned long)a->addr);
    else if (r && a->addr + (1u << 20) > r->lo && a->addr < r->hi + (1u << 20))
        finding("out_of_bounds", a->pc, true, "%s of %zu bytes %s", a->write ? "write" : "read", a->bytes, where);
    else
        finding("illegal_access", a->pc, true, "%s of %zu bytes at 0x%lx, which is not device memory (a host pointer?)",
                a->write ? "write" : "read", a->bytes, (unsigned long)a->addr);
    stop_here(CUDA_ILLEGAL_ADDRESS);
}

/* Kernels walk two or three tensors at once: keep the last two at hand. */
static struct range *find_range(uintptr_t addr)
{
    struct range *r = shadow_older;

    if (!r || addr - r->lo >= r->hi - r->lo)
        r = memory_find(addr);
    if (r) {
        shadow_older = shadow_last;
        shadow_last = r;
    }
    return r;
}

/* threadIdx and the like; gcc leaves constants alone, clang asks about them too. */
static bool is_builtin_variable(uintptr_t addr)
{
    return addr - (uintptr_t)&threadIdx < sizeof threadIdx || addr - (uintptr_t)&blockIdx < sizeof blockIdx ||
           addr - (uintptr_t)&blockDim < sizeof blockDim || addr - (uintptr_t)&gridDim < sizeof gridDim ||
           addr - (uintptr_t)&warpSize < sizeof warpSize;
}

static void access_memory(const struct access *a)
{
    uintptr_t shared = (uintptr_t)simt_dynamic_shared, fixed = (uintptr_t)run.shared_lo;
    struct range *r = shadow_last;

    if (check_pending)
        decide_pending();
    if (r && a->addr - r->lo < r->hi - r->lo)
        access_range(r, a);
    else if (a->addr - shared < run.launch->shared)
        access_shared(0, shared, run.launch->shared, a);
    else if (fixed && a->addr - fixed < (uintptr_t)(run.shared_hi - run.shared_lo))
        access_shared(1, fixed, (size_t)(run.shared_hi - run.shared_lo), a);
    else if ((r = find_range(a->addr)))
        access_range(r, a);
    else if (a->addr - module_data.lo < module_data.hi - module_data.lo)
        access_range(&module_data, a);
    else if (a->addr - (uintptr_t)run.launch->ctx >= run.launch->ctx_bytes &&
             a->addr - (uintptr_t)run.current->stack >= FIBER_STACK && !is_builtin_variable(a->addr))
        access_nowhere(a);
}

static void misaligned(const void *p, size_t bytes, const void *pc)
{
    char where[160] = "";

    if (find_range((uintptr_t)p))
        memory_describe((uintptr_t)p, bytes, where, sizeof where);
    finding("misaligned", pc, true, "access of %zu bytes %s%sat address ...%03lx; it must be a multiple of %zu", bytes,
            where, *where ? ", " : "", (unsigned long)p & 0xfff, bytes);
    stop_here(CUDA_MISALIGNED);
}

/* Nothing to decide and nothing to record: the word was read before in this interval, by this thread or by several,
 * and last written at or before interval 'settled'. */
static inline bool seen(const struct cell *c, uint32_t settled, int me)
{
    access_t r = c->read;

    return interval_of(r) == interval && bytes_of(r) == 15 && interval_of(c->write) <= settled &&
           ((r & MULTI_WARP) || (((r & MULTI) || thread_of(r) == me) && thread_of(r) / WARP == me / WARP &&
                                 epoch_of(r) == (run.block.warp[me / WARP].step & EPOCH_MASK)));
}

static inline bool seen_shared(int which, size_t offset, int me)
{
    return offset / 4 < shared_words[which] && shared_init[which][offset / 4] == 15 &&
           seen(&shared_cells[which][offset / 4], interval - 1, me);
}

static inline bool seen_range(const struct range *r, uintptr_t addr, int me)
{
    return r && r->shadow && addr >= r->lo && addr + 4 <= r->hi &&
           seen(&r->shadow[(addr - (r->lo & ~(uintptr_t)3)) / 4], launch_first - 1, me);
}

/* The common case of four aligned bytes read again, decided without the rest of the machinery. */
static bool known_read(uintptr_t addr, int me)
{
    size_t dynamic = addr - (uintptr_t)simt_dynamic_shared, fixed = addr - (uintptr_t)run.shared_lo;

    if (dynamic < run.launch->shared)
        return seen_shared(0, dynamic, me);
    if (run.shared_lo && fixed < (size_t)(run.shared_hi - run.shared_lo))
        return seen_shared(1, fixed, me);
    return seen_range(shadow_last, addr, me) || seen_range(shadow_older, addr, me);
}

/* Can this access of thread 'me' neither race with 'a' nor join it as a reader? 'a' is of before 'first', behind a
 * barrier of the block, or of this thread alone. What is not settled is for track() to decide. */
static inline bool settled(access_t a, uint32_t first, int me)
{
    uint32_t iv = interval_of(a);

    if (iv < first)
        return true;
    return !(a & MULTI_BLOCK) && iv >= block_first &&
           (iv < interval || (iv == interval && thread_of(a) == me && !(a & MULTI)));
}

/* Did other blocks of the launch read this whole word, and none of this interval? Then a read only joins them. */
static inline bool read_by_blocks(access_t r, uint32_t first)
{
    uint32_t iv = interval_of(r);

    return !parked && bytes_of(r) == 15 && iv >= first && iv < interval && (iv < block_first || (r & MULTI_BLOCK));
}

/* As track() for a whole word where nothing is to be found out. False: nothing was done. */
static inline bool plain_word(struct cell *c, uint32_t first, bool write, int me, const void *pc)
{
    const struct warp *w = &run.block.warp[me / WARP];
    bool alone = settled(c->read, first, me);

    if (!settled(c->write, first, me) || !(alone || (!write && read_by_blocks(c->read, first))))
        return false;
    if (write) {
        c->write = pack(me, w->epoch, 15, 0);
        c->write_pc = relative(pc);
    } else {
        c->read = pack(me, w->step, 15, alone ? 0 : MULTI_BLOCK);
        c->read_pc = relative(pc);
    }
    return true;
}

static inline bool plain_shared(int which, size_t offset, size_t size, bool write, int me, const void *pc)
{
    size_t i = offset / 4;

    reads_closed(&shared_reads[which], interval);
    if (offset + 4 > size || i >= shared_words[which] || (!write && shared_init[which][i] != 15) ||
        !plain_word(&shared_cells[which][i], block_first, write, me, pc))
        return false;
    shared_init[which][i] = 15;
    return true;
}

/* May this word be read, as far as what was written is followed? Writes are noted. */
static inline bool plain_written(uintptr_t addr, bool write)
{
    size_t i = addr - written_base;
    uint8_t mask;

    if (!written || i >= written_bytes)
        return true;
    if (i & 3)
        return false;
    mask = (uint8_t)(15u << (i & 7));
    if (write)
        written[i / 8] |= mask;
    return (written[i / 8] & mask) == mask;
}

static inline bool plain_range(struct range *r, uintptr_t addr, bool write, int me, const void *pc)
{
    reads_closed(&r->reads, launch_first);
    return r->shadow && addr + 4 <= r->hi && plain_written(addr, write) &&
           plain_word(&r->shadow[(addr - (r->lo & ~(uintptr_t)3)) / 4], launch_first, write, me, pc);
}

/* The common case of an aligned word that no other thread has to do with. False: nothing is decided. */
static bool plain_access(uintptr_t addr, bool write, int me, const void *pc)
{
    size_t dynamic = addr - (uintptr_t)simt_dynamic_shared, fixed = addr - (uintptr_t)run.shared_lo;
    size_t room = (size_t)(run.shared_hi - run.shared_lo);
    bool done = false;

    if (shadow_last && addr - shadow_last->lo < shadow_last->hi - shadow_last->lo)
        done = plain_range(shadow_last, addr, write, me, pc);
    else if (dynamic < run.launch->shared)
        done = plain_shared(0, dynamic, run.launch->shared, write, me, pc);
    else if (run.shared_lo && fixed < room)
        done = plain_shared(1, fixed, room, write, me, pc);
    else if (shadow_older && addr - shadow_older->lo < shadow_older->hi - shadow_older->lo)
        done = plain_range(shadow_older, addr, write, me, pc);
    if (done && !write)
        keep_last_read(pc, addr, me);
    return done;
}

/* ---- reads as runs (reads.h) ---- */

static bool initialised(const struct read_space *in, uintptr_t addr, size_t bytes)
{
    const struct access a = {.addr = addr, .bytes = bytes};

    for (uintptr_t w = addr & ~(uintptr_t)3; w < addr + bytes; w += 4) {
        unsigned part = bytes_in_word(w, &a);

        if ((w - in->lo) / 4 >= shared_words[in->which] ||
            (shared_init[in->which][(w - in->lo) / 4] & part) != part)
            return false;
    }
    return true;
}

/* The same for aligned words of shared memory. */
static uint32_t initialised_words(const struct read_space *in, uintptr_t addr, intptr_t stride, uint32_t n)
{
    const uint8_t *init = shared_init[in->which];
    uintptr_t at = addr - in->lo;
    uint32_t k = 0;

    for (; k < n && at / 4 < shared_words[in->which] && init[at / 4] == 15; k++)
        at += (uintptr_t)stride;
    return k;
}

static uint32_t may_read(const struct read_space *in, uintptr_t addr, intptr_t stride, size_t bytes, uint32_t n)
{
    uint32_t k = 0;

    if (!in->range && bytes == 4 && !(addr & 3) && !(stride & 3))
        return initialised_words(in, addr, stride, n);
    if (in->range && (!written || addr - written_base >= written_bytes))
        return n;
    for (; k < n; k++, addr += (uintptr_t)stride) {
        const struct access a = {.addr = addr, .bytes = bytes};

        if (!(in->range ? known_written(&a) : initialised(in, addr, bytes)))
            break;
    }
    return k;
}

static bool may_read_all(const struct read_space *in)
{
    size_t n = in->hi - in->lo;

    if (!in->range) {
        for (size_t i = 0; i < (n + 3) / 4; i++)
            if (i >= shared_words[in->which] || shared_init[in->which][i] != 15)
                return false;
        return true;
    }
    if (!written || in->lo - written_base >= written_bytes)
        return true;
    if ((in->lo - written_base) % 8 || n % 8)
        return false;
    for (size_t i = (in->lo - written_base) / 8, end = i + n / 8; i < end; i++)
        if (written[i] != 0xff)
            return false;
    return true;
}

static void record_read(const struct read_run *r, uintptr_t addr, int thread)
{
    const struct access a = {.addr = addr, .bytes = r->bytes};
    uint32_t now = interval, first = block_first;

    interval = r->interval;
    if (interval < block_first)
        block_first = block_starts[block_slot(interval)];
    for (uintptr_t w = addr & ~(uintptr_t)3; w < addr + a.bytes; w += 4) {
        uintptr_t base = r->which ? (uintptr_t)run.shared_lo : (uintptr_t)simt_dynamic_shared;
        struct cell *c = r->range ? range_cell(r->range, w) : &shared_cells[r->which][(w - base) / 4];

        if (c)
            note_read(c, r->range ? launch_first : block_first, pack(thread, r->step, bytes_in_word(w, &a), 0),
                      relative(r->pc), thread);
    }
    interval = now, block_first = first;
}

static const struct read_cells cells = {may_read, may_read_all, record_read};

/* The memory that holds addr. */
static bool space_of(uintptr_t addr, struct read_space *in)
{
    size_t dynamic = addr - (uintptr_t)simt_dynamic_shared, fixed = addr - (uintptr_t)run.shared_lo;
    struct range *r = shadow_last && addr - shadow_last->lo < shadow_last->hi - shadow_last->lo ? shadow_last : NULL;

    if (!r && dynamic < run.launch->shared)
        *in = (struct read_space){&shared_reads[0], NULL, 0, (uintptr_t)simt_dynamic_shared,
                                  (uintptr_t)simt_dynamic_shared + run.launch->shared, interval, interval};
    else if (!r && run.shared_lo && fixed < (size_t)(run.shared_hi - run.shared_lo))
        *in = (struct read_space){&shared_reads[1], NULL, 1, (uintptr_t)run.shared_lo, (uintptr_t)run.shared_hi,
                                  interval, interval};
    else if (r || (r = find_range(addr)) ||
             (addr - module_data.lo < module_data.hi - module_data.lo && (r = &module_data)))
        *in = (struct read_space){&r->reads, r, 0, r->lo, r->hi, launch_first, interval};
    else
        return false;
    return true;
}

/* False: the read is for cells, which come to words for what is wrong with it. */
static bool take_read(uintptr_t addr, size_t bytes, bool aligned, const void *pc, int me)
{
    struct read_space in;

    if (parked || bytes > 16 || (aligned && (addr & (bytes - 1))) || run.owner != this_host_thread())
        return false;
    if (check_pending)
        decide_pending();
    return space_of(addr, &in) && reads_take(&in, addr, bytes, pc, me, run.block.warp[me / WARP].step);
}

static __attribute__((noinline)) void look_closely(const void *p, size_t bytes, bool write, bool aligned,
                                                   const void *pc)
{
    struct access a = {(uintptr_t)p, bytes, write, !write, false, false, false, pc};

    if (run.owner != this_host_thread()) /* host code of another thread is none of the kernel's */
        return;
    if (aligned && bytes <= 16 && ((uintptr_t)p & (bytes - 1)))
        misaligned(p, bytes, pc);
    if (bytes == 4 && ((uintptr_t)p & 3) == 0 && !check_pending &&
        plain_access((uintptr_t)p, write, run.current->thread, pc))
        return;
    access_memory(&a);
}

/* Is this memory's part of the launch over in which reads are kept as runs? As far as that is seen at once. */
static inline bool left_to_cells(uintptr_t addr)
{
    const struct range *r = shadow_last;

    if (!r || addr - r->lo >= r->hi - r->lo)
        r = shadow_older;
    if (r && addr - r->lo < r->hi - r->lo)
        return r->reads.closed && r->reads.stamp == launch_first;
    if (addr - (uintptr_t)simt_dynamic_shared < run.launch->shared)
        return shared_reads[0].closed && shared_reads[0].stamp == interval;
    return run.shared_lo && addr - (uintptr_t)run.shared_lo < (size_t)(run.shared_hi - run.shared_lo) &&
           shared_reads[1].closed && shared_reads[1].stamp == interval;
}

/* What needs no closer look stays small: most accesses end here. */
static __attribute__((noinline)) void look(const void *p, size_t bytes, bool write, bool aligned, const void *pc)
{
    const struct fiber *f = run.current;

    if (!f || (uintptr_t)p - (uintptr_t)run.launch->ctx < run.launch->ctx_bytes ||
        (!write && read_in_turn(p, pc, f->thread)))
        return;
    if (!write && !left_to_cells((uintptr_t)p) && take_read((uintptr_t)p, bytes, aligned, pc, f->thread))
        return;
    if (!write && bytes == 4 && ((uintptr_t)p & 3) == 0 && !check_pending && known_read((uintptr_t)p, f->thread))
        return;
    look_closely(p, bytes, write, aligned, pc);
}

/* Stacks of the running thread are its own: most such accesses are spilled locals. */
static inline bool uninteresting(const void *p)
{
    return __builtin_expect(!check_now, 1) ||
           (run.current && (uintptr_t)p - (uintptr_t)run.current->stack < FIBER_STACK);
}

void check_atomic(const void *p, size_t bytes, const void *pc, bool after_read)
{
    struct access a = {(uintptr_t)p, bytes, true, after_read, true, false, false, pc};

    if (uninteresting(p) || !run.current || !in_my_kernel())
        return;
    if ((uintptr_t)p & (bytes - 1))
        misaligned(p, bytes, pc);
    note_atomic_after((uintptr_t)p);
    access_memory(&a);
    if ((uintptr_t)p - (uintptr_t)simt_dynamic_shared < SHARED_OPTIN || n_blocks == 0)
        return;
    acquired = true;
    if (fenced)
        release_slots((int32_t)n_blocks - 1);
}

/* A volatile access: relaxed, and a thread that repeats it waits for somebody. In shared memory threads of one warp
 * that talk so rely on running in step, which no hardware since Volta promises: those stay races. */
void check_volatile(const void *p, size_t bytes, bool write, const void *pc)
{
    struct access a = {(uintptr_t)p, bytes, write, !write, true, false, false, pc};
    uintptr_t dynamic = (uintptr_t)p - (uintptr_t)simt_dynamic_shared, fixed = (uintptr_t)p - (uintptr_t)run.shared_lo;
    bool shared = dynamic < SHARED_OPTIN ||
                  (run.shared_lo && fixed < (uintptr_t)(run.shared_hi - run.shared_lo));

    if (!run.current || !in_my_kernel())
        return;
    if ((uintptr_t)p & (bytes - 1))
        misaligned(p, bytes, pc);
    a.atomic = !shared;
    a.loose = shared;
    access_memory(&a);
    if (shared || n_blocks == 0)
        return;
    if (!write)
        acquired = true;
    else if (fenced)
        release_slots((int32_t)n_blocks - 1);
}

/* The cell of a word that this launch has written, where it shares bytes with the access; else NULL. */
static const struct cell *written_now(struct range *r, const struct access *a)
{
    for (uintptr_t w = a->addr & ~(uintptr_t)3; r->shadow && w < a->addr + a->bytes && w < r->hi; w += 4) {
        const struct cell *c = range_cell(r, w);

        if (c->write && interval_of(c->write) >= launch_first && (bytes_of(c->write) & bytes_in_word(w, a)))
            return c;
    }
    return NULL;
}

/* Such loads may find what a cache kept from before the write: CUDA allows them for what nobody writes in a launch. */
void simt_read_only(const void *p, unsigned long bytes);

void simt_read_only(const void *p, unsigned long bytes)
{
    const struct access a = {.addr = (uintptr_t)p, .bytes = bytes, .read = true, .pc = __builtin_return_address(0)};
    struct range *r = uninteresting(p) || !run.current ? NULL : find_range(a.addr);
    const struct cell *c = r && r->reads.closed && r->reads.stamp == launch_first ? written_now(r, &a) : NULL;
    char place[160], who[128];

    if (!c)
        return;
    place_name(a.addr, place, sizeof place);
    describe_other(c->write, c->write_pc, "write", who, sizeof who);
    finding("race", a.pc, true, "read-only load (__ldg, ld.global.nc) %s conflicts with %s of the same launch, "
            "whatever lies between: its cache may hold what was there before; load it plainly", place, who);
}

void check_access(const void *p, size_t bytes, bool write, bool aligned, const void *pc)
{
    if (!uninteresting(p))
        look(p, bytes, write, aligned, pc);
}

void check_matrix_row(const void *p, bool write, const void *pc)
{
    struct access a = {(uintptr_t)p, 16, write, !write, false, false, true, pc};

    if (uninteresting(p) || !run.current || run.owner != this_host_thread())
        return;
    if ((uintptr_t)p & 15)
        misaligned(p, 16, pc);
    access_memory(&a);
}

static struct cell *shared_cell(uintptr_t addr)
{
    uintptr_t dynamic = addr - (uintptr_t)simt_dynamic_shared, fixed = addr - (uintptr_t)run.shared_lo;

    if (dynamic / 4 < shared_words[0] && dynamic < run.launch->shared)
        return &shared_cells[0][dynamic / 4];
    return run.shared_lo && fixed / 4 < shared_words[1] ? &shared_cells[1][fixed / 4] : NULL;
}

void check_copy_begins(const void *to, size_t bytes, const void *pc)
{
    int me = run.current ? run.current->thread : -1;
    char message[400];

    if (me < 0 || uninteresting(to))
        return;
    for (int i = 0; i < 2; i++)
        reads_closed(&shared_reads[i], interval);
    for (uintptr_t w = (uintptr_t)to & ~(uintptr_t)3; w < (uintptr_t)to + bytes; w += 4) {
        const struct cell *c = shared_cell(w);

        if (c && unordered(c->read, block_first, me, 15, (c->read & MULTI) != 0, run.block.warp[me / WARP].step)) {
            race_message(w, "copy in the background", c->read, c->read_pc, "read", message, sizeof message);
            finding("race", pc, true, "%s", message);
            return;
        }
    }
}

void check_aligned(const void *p, size_t bytes, const void *pc)
{
    if (run.current && ((uintptr_t)p & (bytes - 1)))
        misaligned(p, bytes, pc);
}

void check_fence(void)
{
    fenced = true;
}

/* ---- time ---- */

void simt_set_check(int on)
{
    check_wanted = on;
}

static void find_module_data(void)
{
    uintptr_t lo, hi;

    if (image_of((const void *)run.launch->body, &lo, &hi) && (lo != module_data.lo || hi != module_data.hi)) {
        shadow_free(&module_data);
        module_data.lo = lo;
        module_data.hi = hi;
    }
}

void check_launch_start(void)
{
    check_now = check_build && check_wanted;
    if (!check_now)
        return;
    find_module_data();
    shadow_last = shadow_older = NULL;
    launch_first = ++interval;
    reads_begin(&cells);
    n_blocks = 0;
    parked = false;
    grow_shared(0, (run.launch->shared + 3) / 4);
    if (run.shared_lo)
        grow_shared(1, (size_t)(run.shared_hi - run.shared_lo + 3) / 4);
}

void check_launch_end(void)
{
    if (check_pending)
        decide_pending();
    check_pending = false;
    if (check_now)
        decide_waiting_reads();
    check_now = false;
    reads_begin(NULL);
}

static bool grow_blocks(void)
{
    size_t cap = cap_blocks ? cap_blocks * 2 : 1024;
    uint32_t *starts;
    uint64_t *ids;
    uint8_t *flags;
    int32_t *befores;

    if (n_blocks < cap_blocks)
        return true;
    starts = realloc(block_starts, cap * sizeof *starts);
    block_starts = starts ? starts : block_starts;
    ids = realloc(block_ids, cap * sizeof *ids);
    block_ids = ids ? ids : block_ids;
    flags = realloc(released, cap);
    released = flags ? flags : released;
    befores = realloc(slot_before, cap * sizeof *befores);
    slot_before = befores ? befores : slot_before;
    if (!starts || !ids || !flags || !befores)
        return false;
    cap_blocks = cap;
    return true;
}

static bool new_slot(int32_t before)
{
    if (!grow_blocks()) {
        reads_begin(NULL);
        return check_now = false;
    }
    block_first = ++interval;
    reads_interval();
    block_starts[n_blocks] = block_first;
    block_ids[n_blocks] = run.block_index;
    slot_before[n_blocks] = before;
    released[n_blocks++] = 0;
    return true;
}

static size_t init_bytes(int which)
{
    return which ? shared_words[1] : (run.launch->shared + 3) / 4;
}

void check_park(struct check_saved *to)
{
    memset(to, 0, sizeof *to);
    if (!check_now)
        return;
    if (check_pending)
        decide_pending();
    reads_close_all();
    parked = true;
    to->fenced = fenced, to->acquired = acquired;
    to->slot = (int32_t)n_blocks - 1;
    for (int i = 0; i < 2; i++)
        if (shared_init[i] && (to->init[i] = malloc(init_bytes(i) + 1)))
            memcpy(to->init[i], shared_init[i], init_bytes(i));
}

void check_unpark(struct check_saved *from)
{
    if (!check_now || !new_slot(from->slot))
        return;
    fenced = from->fenced, acquired = from->acquired;
    for (int i = 0; i < 2; i++) {
        if (shared_init[i] && from->init[i])
            memcpy(shared_init[i], from->init[i], init_bytes(i));
        else if (shared_init[i])
            memset(shared_init[i], 15, init_bytes(i));
        free(from->init[i]);
        from->init[i] = NULL;
    }
}

void check_grid_barrier(void)
{
    if (!check_now)
        return;
    launch_first = ++interval;
    reads_begin(&cells);
}

void check_block_start(void)
{
    if (!check_now || !new_slot(-1))
        return;
    fenced = acquired = false;
    for (int i = 0; i < 2; i++)
        if (shared_init[i])
            memset(shared_init[i], 0, init_bytes(i));
}

void check_barrier(void)
{
    if (!check_now)
        return;
    interval++;
    reads_interval();
}

/* ---- what instrumented code calls ---- */

#define RET __builtin_return_address(0)
#define ENTRY(NAME, BYTES, WRITE, ALIGNED)                                                                            \
    void NAME(void *p);                                                                                               \
    void NAME(void *p)                                                                                                \
    {                                                                                                                 \
        if (!uninteresting(p))                                                                                        \
            look(p, BYTES, WRITE, ALIGNED, RET);                                                                      \
    }
#define READ(NAME, BYTES, ALIGNED)                                                                                    \
    void NAME(void *p);                                                                                               \
    void NAME(void *p)                                                                                                \
    {                                                                                                                 \
        if (!read_goes_on(p, RET) && !uninteresting(p))                                                               \
            look(p, BYTES, false, ALIGNED, RET);                                                                      \
    }
#define ENTRIES(N)                                                                                                    \
    READ(__tsan_read##N, N, true)                                                                                     \
    ENTRY(__tsan_write##N, N, true, true)                                                                             \
    READ(__tsan_unaligned_read##N, N, false)                                                                          \
    ENTRY(__tsan_unaligned_write##N, N, true, false)                                                                  \
    ENTRY(__tsan_unaligned_volatile_read##N, N, false, false)                                                         \
    ENTRY(__tsan_unaligned_volatile_write##N, N, true, false)
ENTRIES(1)
ENTRIES(2)
ENTRIES(4)
ENTRIES(8)
ENTRIES(16)

#define COMPOUND(N)                                                                                                   \
    void __tsan_read_write##N(void *p), __tsan_unaligned_read_write##N(void *p);                                      \
    void __tsan_read_write##N(void *p)                                                                                \
    {                                                                                                                 \
        if (!uninteresting(p))                                                                                        \
            look(p, N, false, true, RET), look(p, N, true, true, RET);                                                \
    }                                                                                                                 \
    void __tsan_unaligned_read_write##N(void *p)                                                                      \
    {                                                                                                                 \
        if (!uninteresting(p))                                                                                        \
            look(p, N, false, false, RET), look(p, N, true, false, RET);                                              \
    }
COMPOUND(1)
COMPOUND(2)
COMPOUND(4)
COMPOUND(8)
COMPOUND(16)

void __tsan_init(void), __tsan_func_entry(void *pc), __tsan_func_exit(void), __tsan_vptr_update(void **p, void *v);
void __tsan_vptr_read(void **p), __tsan_read_range(void *p, size_t n), __tsan_write_range(void *p, size_t n);

void __tsan_init(void)
{
    check_build = true;
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_vptr_update(void **p, void *v)
{
    (void)p, (void)v;
}

void __tsan_vptr_read(void **p)
{
    (void)p;
}

void __tsan_read_range(void *p, size_t n)
{
    if (n && !uninteresting(p))
        look(p, n, false, false, RET);
}

void __tsan_write_range(void *p, size_t n)
{
    if (n && !uninteresting(p))
        look(p, n, true, false, RET);
}

/* -fsanitize=alignment asks before a type is accessed, also where the compiler then splits the access. */
struct type_mismatch { /* the compiler's: what it knows of the place and the type */
    const void *file;
    uint32_t line, column;
    const void *type;
    uint8_t log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(struct type_mismatch *m, uintptr_t addr);
void __ubsan_handle_type_mismatch_v1_abort(struct type_mismatch *m, uintptr_t addr);

void __ubsan_handle_type_mismatch_v1(struct type_mismatch *m, uintptr_t addr)
{
    size_t bytes = (size_t)1 << m->log_alignment;

    if (run.current && addr && (addr & (bytes - 1)) && check_wanted && in_my_kernel())
        misaligned((const void *)addr, bytes, RET);
}

void __ubsan_handle_type_mismatch_v1_abort(struct type_mismatch *m, uintptr_t addr)
{
    __ubsan_handle_type_mismatch_v1(m, addr);
}

/* memcpy and friends of candidates, by any name that compilers give them. */
#define BLOCK_COPY(NAME, HOW)                                                                                         \
    void *NAME(void *to, const void *from, size_t n);                                                                 \
    void *NAME(void *to, const void *from, size_t n)                                                                  \
    {                                                                                                                 \
        if (n && !uninteresting(from))                                                                                \
            look(from, n, false, false, RET);                                                                         \
        if (n && !uninteresting(to))                                                                                  \
            look(to, n, true, false, RET);                                                                            \
        return HOW(to, from, n);                                                                                      \
    }
#define BLOCK_SET(NAME)                                                                                               \
    void *NAME(void *p, int c, size_t n);                                                                             \
    void *NAME(void *p, int c, size_t n)                                                                              \
    {                                                                                                                 \
        if (n && !uninteresting(p))                                                                                   \
            look(p, n, true, false, RET);                                                                             \
        return memset(p, c, n);                                                                                       \
    }
BLOCK_COPY(simt_memcpy, memcpy)
BLOCK_COPY(simt_memmove, memmove)
BLOCK_COPY(__tsan_memcpy, memcpy)
BLOCK_COPY(__tsan_memmove, memmove)
BLOCK_SET(simt_memset)
BLOCK_SET(__tsan_memset)
