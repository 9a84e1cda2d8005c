/* exec_log.h - what a client asked for: checked requests in order, append-only, hashed. Pure but for memory.
 *
 * An entry is a log_head, the op's struct as the executor checked it, its tail. Entries of the judge (marks and
 * bindings) and corrections (an upload that is an echo) have numbers of their own. The log holds no value that the
 * judge bound. */
#ifndef MC_EXEC_EXEC_LOG_H
#define MC_EXEC_EXEC_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/wire.h"

/* Ops of the executor's own, behind the client's. */
enum log_op {
    LOG_BIND = 256, /* log_binding: the judge wrote here */
    LOG_CALL_BEGIN, /* log_call */
    LOG_CALL_END,
    LOG_ECHO,       /* wire_copy: an upload that equals a range that came down */
    LOG_GIVE        /* log_give: an allocation of the judge's own */
};
struct log_binding {
    uint64_t addr, n;
    uint32_t tag, call;
};
struct log_call {
    uint32_t index, zero;
};
struct log_give {
    uint64_t addr, n;
};

struct log_head {
    uint32_t bytes; /* of the entry, head and padding included */
    uint32_t tail;  /* bytes of the tail, without padding */
    uint16_t op, flags;
    uint32_t zero;
    uint64_t result; /* address, module, function, stream or event that the request got */
};
enum { LOG_IN_CALL = 1 };

struct log_counts {
    uint64_t launches, kernels; /* kernels: different functions launched */
    uint64_t bytes_up;          /* constants: uploads that are no echo, by content once each */
    uint64_t bytes_down, reads; /* within calls */
    uint64_t echoes;
};

struct exec_log {
    uint8_t *p;
    size_t n, cap, max; /* bytes */
    bool full;          /* something did not fit or was dropped: it cannot be replayed */
    struct log_counts counts;
};

#define LOG_MAX ((size_t)1 << 30)

int exec_log_init(struct exec_log *l, size_t max); /* reserves addresses; entries never move. 0, or -1 with errno */
void exec_log_free(struct exec_log *l);
void exec_log_clear(struct exec_log *l);
/* Is there room for an entry whose struct and tail have n and n_tail bytes? */
bool exec_log_has_room(const struct exec_log *l, size_t n, size_t n_tail);
/* Forgets the entries, which were played, and keeps the counts: what is added later is played but never replayed. */
void exec_log_drop(struct exec_log *l);
/* Two parts are written one after the other (struct, tail). False: it does not fit. *ret_at: the entry's offset. */
bool exec_log_add(struct exec_log *l, unsigned op, unsigned flags, uint64_t result, const void *body, size_t n,
                  const void *tail, size_t n_tail, size_t *ret_at);

/* One entry, taken apart. */
struct log_entry {
    struct log_head head;
    const void *body;    /* by head.op: a struct of wire.h or above; 8-byte aligned */
    const uint8_t *tail;
    size_t n_tail;
};
/* Takes the entry at *at and moves on. 1, 0 at the end, -1 where the bytes are no log (a capsule's may be anything). */
int exec_log_next(const struct exec_log *l, size_t *at, struct log_entry *ret);
uint32_t exec_log_last_call(const struct exec_log *l); /* its index; 0 if there is none */
const char *exec_log_op_name(unsigned op);

#endif
