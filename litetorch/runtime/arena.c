/* arena.c - memory of the simulated device; see arena.h. A bump allocator over a sparse shared mapping: a block is
 * one or more pages and a guard page, and its pages go back to the kernel some time after it is freed. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"

enum { PAGE = 4096, ALIGN = 64, RED = 0xFB, QUARANTINE = 256, KEEP = 256 << 10, FRONT = 256 };

struct arena_block {
    char *host;            /* first byte, host mapping */
    size_t n;              /* bytes asked for */
    char *pages;           /* first page, host mapping */
    size_t span;           /* bytes of pages, guard page excluded */
    struct arena_block *prev, *next;
};

static struct {
    pthread_mutex_t lock;
    char *host, *device;
    struct arena_block **at; /* by page number of the block's first byte; sparse */
    size_t bytes, used;    /* used: bump pointer */
    size_t live, peak;
    int open;              /* nesting of arena_open */
    struct arena_block head; /* ring of live blocks */
    struct { char *pages; size_t span; } gone[QUARANTINE];
    unsigned n_gone;
    int (*reg_add)(const void *, size_t, const char *);
    int (*reg_drop)(const void *);
} A = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool arena_ready(void)
{
    return A.host != NULL;
}

/* mremap with an old size of 0 maps the same shared pages a second time: no file, no descriptor, no file size limit. */
int arena_init(size_t bytes)
{
    void *h, *d;

    if (A.host)
        return 0;
    h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (h == MAP_FAILED)
        return -1;
    d = mremap(h, 0, bytes, MREMAP_MAYMOVE);
    if (d == MAP_FAILED || mprotect(d, bytes, PROT_NONE) < 0) {
        munmap(h, bytes);
        return -1;
    }
    madvise(h, bytes, MADV_DONTDUMP);
    madvise(d, bytes, MADV_DONTDUMP);
    A.at = mmap(NULL, bytes / PAGE * sizeof *A.at, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (A.at == MAP_FAILED)
        return -1;
    A.head.prev = A.head.next = &A.head;
    A.host = h, A.device = d, A.bytes = bytes;
    return 0;
}

bool arena_has_host(const void *p)
{
    return A.host && (uintptr_t)p - (uintptr_t)A.host < A.bytes;
}

bool arena_has_device(const void *p)
{
    return A.device && (uintptr_t)p - (uintptr_t)A.device < A.bytes;
}

void *arena_to_device(const void *host)
{
    return host ? A.device + ((const char *)host - A.host) : NULL;
}

void *arena_to_host(const void *device)
{
    return device ? A.host + ((const char *)device - A.device) : NULL;
}

struct arena_block *arena_find(const void *host)
{
    return arena_has_host(host) ? A.at[((const char *)host - A.host) / PAGE] : NULL;
}

void *arena_block_host(struct arena_block *b)
{
    return b->host;
}

static void block_protect(const struct arena_block *b, int prot)
{
    mprotect(arena_to_device(b->pages), b->span, prot);
}

static size_t front_of(const struct arena_block *b)
{
    size_t n = (size_t)(b->host - b->pages);

    return n < FRONT ? n : FRONT;
}

static size_t tail_of(const struct arena_block *b)
{
    return (size_t)(b->pages + b->span - (b->host + b->n));
}

struct arena_block *arena_alloc(size_t n)
{
    struct arena_block *b;
    size_t span;

    if (!A.host || n > A.bytes / 2 || !(b = malloc(sizeof *b)))
        return NULL;
    span = (n + PAGE - 1) / PAGE * PAGE;
    pthread_mutex_lock(&A.lock);
    if (A.used + span + 2 * PAGE > A.bytes) {
        pthread_mutex_unlock(&A.lock);
        free(b);
        return NULL;
    }
    b->pages = A.host + PAGE + A.used;
    b->span = span;
    b->n = n;
    b->host = b->pages + span - (n + ALIGN - 1) / ALIGN * ALIGN;
    A.used += span + PAGE;
    A.at[(b->host - A.host) / PAGE] = b;
    b->prev = A.head.prev, b->next = &A.head;
    b->prev->next = b->next->prev = b;
    A.live += span;
    if (A.live > A.peak)
        A.peak = A.live;
    memset(b->host, 0xFF, n);
    memset(b->host - front_of(b), RED, front_of(b));
    memset(b->host + n, RED, tail_of(b));
    if (A.open)
        block_protect(b, PROT_READ | PROT_WRITE);
    if (A.reg_add)
        A.reg_add(arena_to_device(b->host), n, "tensor");
    pthread_mutex_unlock(&A.lock);
    return b;
}

/* Freed pages stay poisoned for a while, then their memory is returned. */
static void retire(struct arena_block *b)
{
    unsigned i = A.n_gone++ % QUARANTINE;

    if (A.gone[i].pages)
        madvise(A.gone[i].pages, A.gone[i].span, MADV_REMOVE);
    A.gone[i].pages = b->span <= KEEP ? b->pages : NULL; // the ring holds 64 MiB at most
    A.gone[i].span = b->span;
    if (b->span > KEEP)
        madvise(b->pages, b->span, MADV_REMOVE);
}

void arena_free(struct arena_block *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&A.lock);
    if (A.reg_drop)
        A.reg_drop(arena_to_device(b->host));
    if (A.open)
        block_protect(b, PROT_NONE);
    if (b->span <= KEEP)
        memset(b->pages, 0xFF, b->span);
    A.at[(b->host - A.host) / PAGE] = NULL;
    b->prev->next = b->next, b->next->prev = b->prev;
    A.live -= b->span;
    retire(b);
    pthread_mutex_unlock(&A.lock);
    free(b);
}

static void protect_all(int prot)
{
    for (struct arena_block *b = A.head.next; b != &A.head; b = b->next)
        block_protect(b, prot);
}

void arena_open(void)
{
    if (!A.host)
        return;
    pthread_mutex_lock(&A.lock);
    if (A.open++ == 0)
        protect_all(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&A.lock);
}

void arena_close(void)
{
    if (!A.host)
        return;
    pthread_mutex_lock(&A.lock);
    if (A.open > 0 && --A.open == 0)
        protect_all(PROT_NONE);
    pthread_mutex_unlock(&A.lock);
}

void arena_set_registry(int (*add)(const void *, size_t, const char *), int (*drop)(const void *))
{
    pthread_mutex_lock(&A.lock);
    A.reg_add = add, A.reg_drop = drop;
    for (struct arena_block *b = A.host ? A.head.next : &A.head; add && b != &A.head; b = b->next)
        add(arena_to_device(b->host), b->n, "tensor");
    pthread_mutex_unlock(&A.lock);
}

/* Offset of the first overwritten byte relative to the block; false if the zones are whole. */
static bool red_broken(const struct arena_block *b, long *ret)
{
    size_t f = front_of(b), t = tail_of(b);

    for (size_t i = 0; i < t; i++)
        if ((unsigned char)b->host[b->n + i] != RED)
            return *ret = (long)(b->n + i), true;
    for (size_t i = 1; i <= f; i++)
        if ((unsigned char)b->host[-(long)i] != RED)
            return *ret = -(long)i, true;
    return false;
}

int arena_check(void (*f)(void *, size_t, long, void *), void *ctx)
{
    int n = 0;
    long at;

    if (!A.host)
        return 0;
    pthread_mutex_lock(&A.lock);
    for (struct arena_block *b = A.head.next; b != &A.head; b = b->next) {
        if (!red_broken(b, &at))
            continue;
        n++;
        f(arena_to_device(b->host), b->n, at, ctx);
        memset(b->host - front_of(b), RED, front_of(b));
        memset(b->host + b->n, RED, tail_of(b));
    }
    pthread_mutex_unlock(&A.lock);
    return n;
}

void *arena_device_base(void)
{
    return A.device;
}

size_t arena_bytes(void)
{
    return A.bytes;
}

size_t arena_in_use(void)
{
    return A.live;
}

size_t arena_peak(void)
{
    return A.peak;
}
