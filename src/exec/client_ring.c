/* client_ring.c - see client_ring.h. Producers take turns under a spin lock that is held for one memcpy; a waiting
 * thread looks for spin_ns and then sleeps on a futex. */
#include "exec/client_ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct client *attached;

#if defined __x86_64__
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif
#define LOAD(p, order) __atomic_load_n(p, __ATOMIC_##order)
#define STORE(p, v, order) __atomic_store_n(p, v, __ATOMIC_##order)

static uint64_t client_ring_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps while the word has that value, 50 ms at most. */
static void client_ring_sleep_on(uint32_t *word, uint32_t while_is)
{
    const struct timespec t = {0, 50 * 1000 * 1000};

    syscall(SYS_futex, word, FUTEX_WAIT, while_is, &t, NULL, 0);
}

/* True once the executor has closed the area. */
static bool client_ring_gone(const struct client *c)
{
    return LOAD(&c->area->version, ACQUIRE) != WIRE_VERSION;
}

/* ---- the writing end ---- */

/* Takes the client's lock by spinning; it is held for microseconds. */
static void client_ring_lock(struct client *c)
{
    for (unsigned i = 0; __atomic_exchange_n(&c->lock, 1, __ATOMIC_ACQUIRE); i++) {
        if (i % 64 == 63)
            sched_yield();
        PAUSE();
    }
}

static void client_ring_unlock(struct client *c)
{
    STORE(&c->lock, 0, RELEASE);
}

static bool client_ring_has_room(const struct client *c, size_t n)
{
    return c->head + n - LOAD(&c->area->tail, ACQUIRE) <= WIRE_RING;
}

/* Under the lock: whoever comes later has to wait as well. */
static int client_ring_wait_for_room(struct client *c, size_t n)
{
    uint64_t start = 0;

    for (unsigned i = 0; !client_ring_has_room(c, n); i++) {
        uint32_t *low = (uint32_t *)(void *)&c->area->tail, seen;

        if (i % 64 != 63) {
            PAUSE();
            continue;
        }
        if (!start)
            start = client_ring_now_ns();
        if (client_ring_now_ns() - start < c->area->spin_ns)
            continue;
        STORE(&c->area->blocked, 1, SEQ_CST);
        seen = LOAD(low, SEQ_CST);
        if (!client_ring_has_room(c, n))
            client_ring_sleep_on(low, seen);
        if (client_ring_gone(c))
            return WIRE_GONE;
    }
    return WIRE_OK;
}

/* Copies n bytes into the ring, around its end. */
static void client_ring_put(struct client *c, const void *p, size_t n)
{
    size_t at = c->head % WIRE_RING, first = n < WIRE_RING - at ? n : WIRE_RING - at;

    memcpy(c->ring + at, p, first);
    if (first < n)
        memcpy(c->ring, (const char *)p + first, n - first);
    c->head += n;
}

/* Wakes the executor, if it sleeps. */
static void client_ring_bell(struct client *c)
{
    const uint64_t one = 1;

    if (LOAD(&c->area->asleep, SEQ_CST) && __atomic_exchange_n(&c->area->asleep, 0, __ATOMIC_SEQ_CST))
        if (write(c->bell, &one, sizeof one) < 0)
            return; /* a full counter: it is awake */
}

/* Writes a request with its parts into the ring, and waits for room. WIRE_OK, or the code of an executor that has
 * ended. */
static int client_ring_post(struct client *c, const struct wire_head *h, const void *body, struct client_part a,
                            struct client_part b)
{
    static const uint8_t zero[8];
    uint64_t start;
    int code;

    client_ring_lock(c);
    if (!client_ring_has_room(c, h->bytes) && (code = client_ring_wait_for_room(c, h->bytes)) != WIRE_OK)
        return client_ring_unlock(c), code;
    start = c->head;
    client_ring_put(c, h, sizeof *h);
    client_ring_put(c, body, wire_size(h->op));
    if (a.n)
        client_ring_put(c, a.p, a.n);
    if (b.n)
        client_ring_put(c, b.p, b.n);
    client_ring_put(c, zero, h->bytes - (size_t)(c->head - start));
    STORE(&c->area->head, c->head, SEQ_CST);
    client_ring_unlock(c);
    client_ring_bell(c);
    return WIRE_OK;
}

static struct wire_head client_ring_head_of(unsigned op, size_t tail, uint16_t slot, uint32_t ticket)
{
    return (struct wire_head){(uint32_t)wire_message(op, tail), (uint16_t)op, slot, ticket, (uint32_t)tail};
}

int client_post(struct client *c, unsigned op, const void *body, struct client_part a, struct client_part b)
{
    struct wire_head h = client_ring_head_of(op, a.n + b.n, WIRE_NO_REPLY, 0);
    client_recorder *record = LOAD(&c->record, ACQUIRE);
    int code = WIRE_OK;

    if (record && record(op, body, wire_size(op), a.p, a.n, &code))
        return code;
    code = client_ring_post(c, &h, body, a, b);
    return code ? code : LOAD(&c->area->error, RELAXED);
}

/* ---- replies ---- */

/* A free slot for an answer; waits until there is one. */
static unsigned client_ring_slot_take(struct client *c)
{
    static __thread unsigned hint;

    for (unsigned i = 0;; i++) {
        unsigned k = (hint + i) % WIRE_SLOTS;

        if (!LOAD(&c->busy[k], RELAXED) && !__atomic_exchange_n(&c->busy[k], 1, __ATOMIC_ACQUIRE))
            return hint = k;
        if (i % WIRE_SLOTS == WIRE_SLOTS - 1)
            sched_yield();
    }
}

/* Waits until the executor answers the ticket: it spins first, then sleeps. */
static int client_ring_slot_wait(struct client *c, struct wire_slot *s, uint32_t ticket)
{
    uint64_t start = 0;

    for (unsigned i = 0; LOAD(&s->done, ACQUIRE) != ticket; i++) {
        uint32_t seen;

        if (i % 64 != 63) {
            PAUSE();
            continue;
        }
        if (!start)
            start = client_ring_now_ns();
        if (client_ring_now_ns() - start < c->area->spin_ns)
            continue;
        STORE(&s->waiting, 1, SEQ_CST);
        seen = LOAD(&s->done, SEQ_CST);
        if (seen != ticket)
            client_ring_sleep_on(&s->done, seen);
        if (client_ring_gone(c))
            return WIRE_GONE;
    }
    STORE(&s->waiting, 0, RELAXED);
    return WIRE_OK;
}

int client_ask(struct client *c, unsigned op, const void *body, struct client_part tail, struct wire_slot *ret,
               void *down, size_t n_down)
{
    unsigned k = client_ring_slot_take(c);
    uint32_t ticket;
    struct wire_head h;
    int code;

    do
        ticket = __atomic_add_fetch(&c->ticket, 1, __ATOMIC_RELAXED);
    while (!ticket);
    h = client_ring_head_of(op, tail.n, (uint16_t)k, ticket);
    if (!(code = client_ring_post(c, &h, body, tail, (struct client_part){NULL, 0})) &&
        !(code = client_ring_slot_wait(c, &c->slots[k], ticket))) {
        *ret = c->slots[k];
        code = ret->code;
        if (n_down && code == WIRE_OK)
            memcpy(down, c->down + (size_t)k * WIRE_CHUNK, ret->down < n_down ? ret->down : n_down);
    }
    STORE(&c->busy[k], 0, RELEASE);
    return code;
}

/* ---- attaching ---- */

/* The device's addresses, so that nothing else of this process lies there. */
static int client_ring_close_addresses(uint64_t n)
{
    void *p = mmap((void *)WIRE_BASE, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                   -1, 0);

    if (p == (void *)WIRE_BASE)
        return 0;
    if (p != MAP_FAILED)
        munmap(p, n);
    errno = EEXIST;
    return -1;
}

static bool client_ring_usable(const struct wire_area *a)
{
    return a->magic == WIRE_MAGIC && a->version == WIRE_VERSION && a->bytes == WIRE_AREA;
}

struct client *client_attach(int area_fd, int bell_fd)
{
    struct client *c = calloc(1, sizeof *c);
    uint8_t *p = mmap(NULL, WIRE_AREA, PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);

    if (!c || p == MAP_FAILED || !client_ring_usable((struct wire_area *)(void *)p) || (c->bell = dup(bell_fd)) < 0 ||
        client_ring_close_addresses(((struct wire_area *)(void *)p)->info.reserved) < 0) {
        int why = errno;

        if (p != MAP_FAILED)
            munmap(p, WIRE_AREA);
        if (c && c->bell > 0)
            close(c->bell);
        free(c);
        errno = why ? why : EPROTO;
        return NULL;
    }
    c->area = (struct wire_area *)(void *)p;
    c->slots = (struct wire_slot *)(void *)(p + WIRE_SLOTS_AT);
    c->down = p + WIRE_DOWN_AT;
    c->ring = p + WIRE_RING_AT;
    c->head = c->area->head;
    c->info = c->area->info;
    c->ticket = c->slots[0].done;
    return attached = c;
}

void client_record(struct client *c, client_recorder *record)
{
    STORE(&c->record, record, RELEASE);
}

int client_repeat(struct client *c, unsigned op, const void *body, const void *tail, size_t n_tail)
{
    struct wire_head h = client_ring_head_of(op, n_tail, WIRE_NO_REPLY, 0);
    int code = client_ring_post(c, &h, body, (struct client_part){tail, n_tail}, (struct client_part){NULL, 0});

    return code ? code : LOAD(&c->area->error, RELAXED);
}

const struct wire_info *client_info(const struct client *c)
{
    return &c->info;
}

int client_error(const struct client *c)
{
    return LOAD(&c->area->error, ACQUIRE);
}
