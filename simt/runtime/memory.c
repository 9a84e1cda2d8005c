/* memory.c - which addresses are device memory: the registry, the hooks that open it, cudaMalloc and copies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

/* The registry changes while kernels run: another thread of the process may make and drop tensors. Kernels look up
 * often and changes are rare, so readers take no lock but look again, with the lock, if it was changed meanwhile. Until
 * then they may see any mixture of old and new, so nothing that they can reach is ever given back to malloc. */
static struct range **ranges; /* sorted by lo, disjoint */
static size_t n_ranges, cap_ranges;
static struct range *spare;   /* ranges to be used again */
static unsigned changes;      /* odd: being changed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
THREAD_LOCAL bool holding;     /* the lock, by this thread, which must not wait for itself when it faults */
#define GET(WHAT) __atomic_load_n(&(WHAT), __ATOMIC_RELAXED)
#define PUT(WHAT, V) __atomic_store_n(&(WHAT), V, __ATOMIC_RELAXED)

static uintptr_t arena_lo, arena_hi;
static void (*hook_enter)(void), (*hook_leave)(void);
THREAD_LOCAL int open_here;
static int open_count; /* of all threads */
THREAD_LOCAL const void *moving; /* who asked for the copy whose bytes are being moved: a return address */
static void *(*user_alloc)(size_t);
static int (*user_release)(void *);
const struct simt_watch *watcher;

static void lock_take(void)
{
    pthread_mutex_lock(&lock);
    holding = true;
}

static void lock_give(void)
{
    holding = false;
    pthread_mutex_unlock(&lock);
}

static void change_begin(void)
{
    lock_take();
    PUT(changes, changes + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void change_end(void)
{
    __atomic_store_n(&changes, changes + 1, __ATOMIC_RELEASE);
    lock_give();
}

void memory_abandon(void)
{
    if (holding && (changes & 1))
        change_end();
    else if (holding)
        lock_give();
    moving = NULL;
}

struct view {
    struct range **all;
    size_t n;
};

/* The number is read first: the array is then at least as large. */
static struct view view(void)
{
    struct view v;

    v.n = __atomic_load_n(&n_ranges, __ATOMIC_ACQUIRE);
    v.all = __atomic_load_n(&ranges, __ATOMIC_ACQUIRE);
    return v;
}

/* Number of ranges that start at or below addr. */
static size_t upper(struct view v, uintptr_t addr)
{
    size_t lo = 0, hi = v.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (GET(GET(v.all[mid])->lo) <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct range *holder(uintptr_t addr)
{
    struct view v = view();
    size_t i = upper(v, addr);
    struct range *r = i > 0 ? GET(v.all[i - 1]) : NULL;

    return r && addr < GET(r->hi) ? r : NULL;
}

static struct range *nearest(uintptr_t addr)
{
    struct view v = view();
    size_t i = upper(v, addr);
    struct range *below = i > 0 ? GET(v.all[i - 1]) : NULL, *above = i < v.n ? GET(v.all[i]) : NULL;

    if (!below || !above)
        return below ? below : above;
    if (addr < GET(below->hi))
        return below;
    return addr - GET(below->hi) <= GET(above->lo) - addr ? below : above;
}

static inline struct range *look_up(struct range *(*f)(uintptr_t), uintptr_t addr)
{
    unsigned before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
    struct range *r = f(addr);

    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if ((!(before & 1) && GET(changes) == before) || holding)
        return r;
    lock_take();
    r = f(addr);
    lock_give();
    return r;
}

struct range *memory_find(uintptr_t addr)
{
    return look_up(holder, addr);
}

struct range *memory_nearest(uintptr_t addr)
{
    return look_up(nearest, addr);
}

bool memory_is_device(uintptr_t addr)
{
    return (addr >= arena_lo && addr < arena_hi) || memory_find(addr);
}

enum { FREED = 64 };

/* Ranges that are no more, the last ones: a finding says where memory was freed too early. */
static struct {
    uintptr_t lo, hi;
} freed[FREED];
static unsigned n_freed; /* from the time on when there was no range */

static void remember_freed(const struct range *r)
{
    PUT(freed[n_freed % FREED].lo, r->lo);
    PUT(freed[n_freed % FREED].hi, r->hi);
    PUT(n_freed, n_freed + 1);
}

/* Appends what lay at an address that no range holds. */
static void describe_freed(uintptr_t addr, char *out, size_t n)
{
    unsigned last = GET(n_freed);
    size_t used = strlen(out);

    for (unsigned k = 0; k < last && k < FREED; k++) {
        uintptr_t lo = GET(freed[(last - 1 - k) % FREED].lo), hi = GET(freed[(last - 1 - k) % FREED].hi);

        if (addr < lo || addr >= hi)
            continue;
        snprintf(out + used, n - used, "; there lay memory of %zu bytes that has been freed", (size_t)(hi - lo));
        return;
    }
}

__thread struct memory_described described;

/* Keeps what was said, for the finding that says it. */
static void keep_described(const struct range *r, uintptr_t addr, const char *words)
{
    described.base = r ? r->lo : 0;
    described.bytes = r ? r->hi - r->lo : 0;
    described.at = (intptr_t)(addr - described.base);
    snprintf(described.words, sizeof described.words, "%s", words);
}

static void describe(const struct range *r, uintptr_t addr, size_t bytes, char *out, size_t n)
{
    if (!r)
        snprintf(out, n, "no device memory is known");
    else if (addr == r->hi)
        snprintf(out, n, "right behind the end of '%s' (%zu bytes)", r->name, (size_t)(r->hi - r->lo));
    else if (addr > r->hi)
        snprintf(out, n, "%zu bytes past the end of '%s' (%zu bytes)", (size_t)(addr - r->hi), r->name,
                 (size_t)(r->hi - r->lo));
    else if (addr < r->lo)
        snprintf(out, n, "%zu bytes before '%s' (%zu bytes)", (size_t)(r->lo - addr), r->name, (size_t)(r->hi - r->lo));
    else
        snprintf(out, n, "at byte %zu of '%s' (%zu bytes)%s", (size_t)(addr - r->lo), r->name, (size_t)(r->hi - r->lo),
                 addr + bytes > r->hi ? ", across its end" : "");
}

void memory_describe(uintptr_t addr, size_t bytes, char *out, size_t n)
{
    const struct range *r = memory_nearest(addr);

    describe(r, addr, bytes, out, n);
    if (!r || addr < r->lo || addr >= r->hi)
        describe_freed(addr, out, n);
    keep_described(r, addr, out);
}

/* The old array stays for those who read it: all of them together are smaller than the new one. */
static bool grow(void)
{
    size_t cap = cap_ranges ? cap_ranges * 2 : 256;
    struct range **p;

    if (n_ranges < cap_ranges)
        return true;
    if (!(p = malloc(cap * sizeof *p)))
        return false;
    if (n_ranges)
        memcpy(p, ranges, n_ranges * sizeof *p);
    __atomic_store_n(&ranges, p, __ATOMIC_RELEASE);
    cap_ranges = cap;
    return true;
}

static struct range *range_new(void)
{
    struct range *r = spare;

    if (!r)
        return calloc(1, sizeof *r);
    spare = r->next;
    return r;
}

static int insert(uintptr_t lo, uintptr_t hi, const char *name)
{
    size_t i = upper(view(), lo);
    struct range *r;

    if (hi < lo || (i > 0 && lo < ranges[i - 1]->hi) || (i > 0 && lo == ranges[i - 1]->lo) ||
        (i < n_ranges && hi > ranges[i]->lo) || !grow() || !(r = range_new()))
        return -1;
    PUT(r->lo, lo);
    PUT(r->hi, hi);
    snprintf(r->name, sizeof r->name, "%s", name ? name : "device memory");
    for (size_t k = n_ranges; k > i; k--)
        PUT(ranges[k], ranges[k - 1]);
    PUT(ranges[i], r);
    __atomic_store_n(&n_ranges, n_ranges + 1, __ATOMIC_RELEASE);
    return 0;
}

static int drop(uintptr_t lo)
{
    size_t i = upper(view(), lo);
    struct range *r = i > 0 ? ranges[i - 1] : NULL;

    if (!r || r->lo != lo)
        return -1;
    for (; i < n_ranges; i++)
        PUT(ranges[i - 1], ranges[i]);
    PUT(n_ranges, n_ranges - 1);
    remember_freed(r);
    if (n_ranges == 0)
        PUT(n_freed, 0);
    shadow_free(r);
    r->next = spare;
    spare = r;
    return 0;
}

int simt_mem_register(const void *ptr, size_t bytes, const char *name)
{
    int rc;

    change_begin();
    rc = insert((uintptr_t)ptr, (uintptr_t)ptr + bytes, name);
    change_end();
    return rc;
}

int simt_mem_unregister(const void *ptr)
{
    int rc;

    change_begin();
    rc = drop((uintptr_t)ptr);
    change_end();
    return rc;
}

void simt_set_memory_hooks(void (*enter)(void), void (*leave)(void))
{
    hook_enter = enter;
    hook_leave = leave;
}

void simt_set_watch(const struct simt_watch *w)
{
    watcher = w;
}

void simt_set_device_arena(const void *lo, size_t bytes)
{
    arena_lo = (uintptr_t)lo;
    arena_hi = arena_lo + bytes;
}

void simt_set_allocator(void *(*alloc)(size_t bytes), int (*release)(void *ptr))
{
    user_alloc = alloc;
    user_release = release;
}

/* The hooks nest, so each thread has its own count: one may copy while another one launches. */
void memory_open(void)
{
    __atomic_add_fetch(&open_count, 1, __ATOMIC_SEQ_CST);
    if (open_here++ == 0 && hook_enter)
        hook_enter();
}

void memory_close(void)
{
    if (open_here == 0)
        return;
    if (--open_here == 0 && hook_leave)
        hook_leave();
    __atomic_sub_fetch(&open_count, 1, __ATOMIC_SEQ_CST);
}

int memory_depth(void)
{
    return open_here;
}

void memory_close_to(int depth)
{
    while (open_here > depth)
        memory_close();
}

int simt_busy(void)
{
    return GET(open_count) > 0;
}

/* ---- cudaMalloc: pages of its own, the end against a guard page, filled with NaN ---- */

#define PAGE ((size_t)4096)
#define ALIGN ((size_t)256) /* as cudaMalloc promises */

struct head { /* in the page before the first data page */
    void *base;
    size_t mapped;
};

static void *guarded_alloc(size_t bytes)
{
    size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN, pages = (room + PAGE - 1) / PAGE, total = (pages + 2) * PAGE;
    char *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;

    if (base == MAP_FAILED)
        return NULL;
    mprotect(base + (pages + 1) * PAGE, PAGE, PROT_NONE);
    p = base + PAGE + pages * PAGE - room;
    *(struct head *)base = (struct head){base, total};
    memset(p, 0xff, room);
    if (simt_mem_register(p, bytes, "cudaMalloc") < 0) {
        munmap(base, total);
        return NULL;
    }
    return p;
}

static int guarded_free(void *p)
{
    struct range *r = memory_find((uintptr_t)p);
    struct head *h = (struct head *)(((uintptr_t)p & ~(PAGE - 1)) - PAGE);

    if (!r || r->lo != (uintptr_t)p || strcmp(r->name, "cudaMalloc") || simt_mem_unregister(p) < 0)
        return -1;
    if (watcher)
        watcher->host_memory(p, 0);
    munmap(h->base, h->mapped);
    return 0;
}

int simt_malloc(void **p, size_t bytes), simt_malloc_host(void **p, size_t bytes), cudaFree(void *p),
    cudaFreeHost(void *p);

int simt_malloc(void **p, size_t bytes)
{
    void *got;

    if (!p)
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    if (bytes == 0)
        return *p = NULL, CUDA_OK;
    if (bytes > (size_t)1 << 40 || !(got = user_alloc ? user_alloc(bytes) : guarded_alloc(bytes)))
        return device_error(CUDA_OUT_OF_MEMORY), CUDA_OUT_OF_MEMORY;
    *p = got;
    return CUDA_OK;
}

int cudaFree(void *p)
{
    if (!p)
        return CUDA_OK;
    if (guarded_free(p) < 0 && (!user_release || user_release(p) < 0))
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    return CUDA_OK;
}

/* Pinned and managed memory: open to both sides at any time. */
int simt_malloc_host(void **p, size_t bytes)
{
    void *got = bytes <= (size_t)1 << 40 ? guarded_alloc(bytes ? bytes : 1) : NULL;

    if (!got)
        return device_error(CUDA_OUT_OF_MEMORY), CUDA_OUT_OF_MEMORY;
    if (watcher)
        watcher->host_memory(got, bytes ? bytes : 1);
    *p = got;
    return CUDA_OK;
}

int simt_malloc_managed(void **p, size_t bytes);

int simt_malloc_managed(void **p, size_t bytes)
{
    return simt_malloc_host(p, bytes);
}

int cudaFreeHost(void *p)
{
    if (p && guarded_free(p) < 0)
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    return CUDA_OK;
}

const void *memory_mover(void)
{
    return moving;
}

void memory_move(const void *pc)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    moving = pc;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- shadows ---- */

struct range *shadow_last, *shadow_older;

void shadow_free(struct range *r)
{
    r->reads = (struct reads){.life = r->reads.life + 1};
    read_moment_next();
    if (r->shadow)
        munmap(r->shadow, shadow_bytes(r));
    r->shadow = NULL;
    if (shadow_last == r || shadow_older == r)
        shadow_last = shadow_older = NULL;
}
