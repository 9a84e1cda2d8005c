/* exec_log.c - see exec_log.h. The memory is reserved once, so that a player may read entries while others are
 * added. */
#include "exec/exec_log.h"

#include <string.h>
#include <sys/mman.h>

static const struct exec_log_own {
    const char *name;
    size_t size;
} own[] = {
    {"LAY", sizeof(struct log_binding)},       {"CALL_BEGIN", sizeof(struct log_call)},
    {"CALL_END", sizeof(struct log_call)}, {"ECHO", sizeof(struct wire_copy)},
    {"GIVE", sizeof(struct log_give)},
};

static const struct exec_log_own *exec_log_own_of(unsigned op)
{
    return op >= LOG_BIND && op < LOG_BIND + sizeof own / sizeof own[0] ? &own[op - LOG_BIND] : NULL;
}

static size_t exec_log_body_size(unsigned op)
{
    return exec_log_own_of(op) ? exec_log_own_of(op)->size : wire_size(op);
}

uint32_t exec_log_last_call(const struct exec_log *l)
{
    struct log_entry en;
    uint32_t last = 0;

    for (size_t at = 0; exec_log_next(l, &at, &en) > 0;)
        if (en.head.op == LOG_CALL_BEGIN)
            last = ((const struct log_call *)en.body)->index;
    return last;
}

const char *exec_log_op_name(unsigned op)
{
    return exec_log_own_of(op) ? exec_log_own_of(op)->name : wire_name(op);
}

int exec_log_init(struct exec_log *l, size_t max)
{
    void *p = mmap(NULL, max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return -1;
    *l = (struct exec_log){.p = p, .max = max};
    return 0;
}

void exec_log_free(struct exec_log *l)
{
    if (l->p)
        munmap(l->p, l->max);
    *l = (struct exec_log){0};
}

void exec_log_drop(struct exec_log *l)
{
    if (l->n)
        madvise(l->p, l->n, MADV_DONTNEED);
    l->n = 0;
    l->full = true;
}

void exec_log_clear(struct exec_log *l)
{
    exec_log_drop(l);
    l->full = false;
    l->counts = (struct log_counts){0};
}

/* Bytes of an entry in the log. */
static size_t exec_log_entry_bytes(size_t n, size_t n_tail)
{
    return sizeof(struct log_head) + n + (n_tail + 7) / 8 * 8;
}

bool exec_log_has_room(const struct exec_log *l, size_t n, size_t n_tail)
{
    return exec_log_entry_bytes(n, n_tail) + 8 <= l->max - l->n;
}

bool exec_log_add(struct exec_log *l, unsigned op, unsigned flags, uint64_t result, const void *body, size_t n,
                  const void *tail, size_t n_tail, size_t *ret_at)
{
    size_t bytes = exec_log_entry_bytes(n, n_tail);
    struct log_head h = {(uint32_t)bytes, (uint32_t)n_tail, (uint16_t)op, (uint16_t)flags, 0, result};
    uint8_t *p = l->p + l->n;

    if (!exec_log_has_room(l, n, n_tail)) {
        l->full = true;
        return false;
    }
    memset(p + bytes - 8, 0, 8); /* the padding */
    memcpy(p, &h, sizeof h);
    memcpy(p + sizeof h, body, n);
    if (n_tail)
        memcpy(p + sizeof h + n, tail, n_tail);
    if (ret_at)
        *ret_at = l->n;
    __atomic_store_n(&l->n, l->n + bytes, __ATOMIC_RELEASE);
    return true;
}

int exec_log_next(const struct exec_log *l, size_t *at, struct log_entry *ret)
{
    size_t left = l->n - *at, body;

    if (*at == l->n)
        return 0;
    if (*at > l->n || left < sizeof ret->head)
        return -1;
    memcpy(&ret->head, l->p + *at, sizeof ret->head);
    body = exec_log_body_size(ret->head.op);
    if (!body || ret->head.bytes > left ||
        ret->head.bytes != sizeof ret->head + body + ((size_t)ret->head.tail + 7) / 8 * 8)
        return -1;
    ret->body = l->p + *at + sizeof ret->head;
    ret->tail = l->p + *at + sizeof ret->head + body;
    ret->n_tail = ret->head.tail;
    *at += ret->head.bytes;
    return 1;
}
