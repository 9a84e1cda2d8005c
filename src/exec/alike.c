/* alike.c - see alike.h. */
#include "exec/alike.h"

#include <string.h>

#include "base/hash.h"

void alike_clear(struct alike *a)
{
    a->n = 0;
}

/* The entry without the call's number. */
static void alike_hash_entry(struct sha256 *h, const struct log_entry *en)
{
    const struct log_binding *b = en->body;

    sha256_add(h, &en->head, sizeof en->head);
    if (en->head.op == LOG_BIND) {
        sha256_add(h, b, offsetof(struct log_binding, call));
        return;
    }
    sha256_add(h, en->body, en->head.bytes - sizeof en->head);
}

/* Hashes a call up to its end. */
static void alike_hash_call(const struct exec_log *log, size_t at, char out[ALIKE_HASH])
{
    struct log_entry en;
    struct sha256 h;

    sha256_start(&h);
    while (exec_log_next(log, &at, &en) > 0 && en.head.op != LOG_CALL_END)
        alike_hash_entry(&h, &en);
    sha256_end(&h, out);
}

bool alike_add(struct alike *a, const struct exec_log *log, size_t at)
{
    char hash[ALIKE_HASH];

    alike_hash_call(log, at, hash);
    for (unsigned i = 0; i < a->n; i++)
        if (!strcmp(a->hash[i], hash))
            return false;
    if (a->n < ALIKE_MOST)
        memcpy(a->hash[a->n++], hash, sizeof hash);
    return true;
}

bool alike_is_left_out(const struct log_entry *en)
{
    switch (en->head.op) {
    case WIRE_LAUNCH:
    case WIRE_MEMSET:
    case WIRE_UP:
    case WIRE_COPY:
    case WIRE_FILL:
    case WIRE_STRIDED:
    case WIRE_ARANGE:
    case WIRE_RANDOM:
    case LOG_ECHO:
    case LOG_BIND: return true;
    default: return false;
    }
}
