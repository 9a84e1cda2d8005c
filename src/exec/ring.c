/* ring.c - see ring.h. */
#include "exec/ring.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

static struct wire_area *ring_area_of(const struct ring *r)
{
    return (struct wire_area *)(void *)r->area;
}

static void ring_do_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 64, NULL, NULL, 0);
}

/* How long a side looks before it sleeps, in nanoseconds. */
static uint32_t ring_spin_ns(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 100000 : 2000; /* with two processors the other side needs this one */
}

/* Makes the shared area and its bell. On failure ring_close cleans up. */
int ring_open(struct ring *r, const struct wire_info *info, struct err *e)
{
    struct wire_area *a;

    r->tail = 0;
    r->area = MAP_FAILED;
    r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->area_fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->bell >= 0 && r->area_fd >= 0 && ftruncate(r->area_fd, WIRE_AREA) == 0)
        r->area = mmap(NULL, WIRE_AREA, PROT_READ | PROT_WRITE, MAP_SHARED, r->area_fd, 0);
    if (r->area == MAP_FAILED) {
        r->area = NULL;
        return err_sys(e, "cannot make the area shared with a candidate");
    }
    a = ring_area_of(r);
    a->magic = WIRE_MAGIC, a->version = WIRE_VERSION, a->bytes = WIRE_AREA;
    a->spin_ns = ring_spin_ns();
    a->info = *info;
    return 0;
}

void ring_close(struct ring *r)
{
    if (!r->area)
        return;
    STORE(&ring_area_of(r)->version, 0);
    munmap(r->area, WIRE_AREA);
    close(r->area_fd);
    close(r->bell);
    r->area = NULL;
}

/* ---- messages ---- */

/* Copies n bytes from the ring, around its end. */
static void ring_copy_out(const struct ring *r, uint64_t from, uint8_t *to, size_t n)
{
    const uint8_t *ring = r->area + WIRE_RING_AT;
    size_t at = from % WIRE_RING, first = n < WIRE_RING - at ? n : WIRE_RING - at;

    memcpy(to, ring + at, first);
    memcpy(to + first, ring, n - first);
}

int ring_take(struct ring *r, void *msg, size_t *ret_n)
{
    uint64_t have = __atomic_load_n(&ring_area_of(r)->head, __ATOMIC_ACQUIRE) - r->tail;
    struct wire_head h;

    if (have == 0)
        return 0;
    if (have < sizeof h || have > WIRE_RING)
        return -1;
    ring_copy_out(r, r->tail, (uint8_t *)&h, sizeof h);
    if (h.bytes < sizeof h || h.bytes > RING_MESSAGE || h.bytes > have || h.bytes % 8)
        return -1;
    memcpy(msg, &h, sizeof h); /* once: the ring may change under our eyes */
    ring_copy_out(r, r->tail + sizeof h, (uint8_t *)msg + sizeof h, h.bytes - sizeof h);
    *ret_n = h.bytes;
    r->tail += h.bytes;
    STORE(&ring_area_of(r)->tail, r->tail);
    if (LOAD(&ring_area_of(r)->blocked)) {
        STORE(&ring_area_of(r)->blocked, 0);
        ring_do_wake((uint32_t *)(void *)&ring_area_of(r)->tail);
    }
    return 1;
}

void ring_reply(struct ring *r, const struct wire_head *h, int code, const uint64_t v[4], const void *down, size_t n)
{
    struct wire_slot *s = (struct wire_slot *)(void *)(r->area + WIRE_SLOTS_AT) + h->slot;

    if (n)
        memcpy(r->area + WIRE_DOWN_AT + (size_t)h->slot * WIRE_CHUNK, down, n);
    s->code = code;
    s->down = (uint32_t)n;
    memcpy(s->v, v, sizeof s->v);
    STORE(&s->done, h->ticket);
    if (LOAD(&s->waiting)) {
        STORE(&s->waiting, 0);
        ring_do_wake(&s->done);
    }
}

void ring_error(struct ring *r, int code)
{
    if (r->area)
        STORE(&ring_area_of(r)->error, code);
}

bool ring_sleep(struct ring *r)
{
    STORE(&ring_area_of(r)->asleep, 1);
    if (LOAD(&ring_area_of(r)->head) == r->tail)
        return true;
    STORE(&ring_area_of(r)->asleep, 0);
    return false;
}

void ring_wake(struct ring *r)
{
    uint64_t n;

    STORE(&ring_area_of(r)->asleep, 0);
    if (read(r->bell, &n, sizeof n) < 0)
        return; /* nobody rang */
}
