/* context.h - one recording's tables, and the checks of each request against them. No device and no shared memory here:
 * a request in, a code and a result out. */
#ifndef MC_EXEC_CONTEXT_H
#define MC_EXEC_CONTEXT_H

#include "exec/exec_log.h"
#include "exec/pool.h"
#include "exec/types.h"
#include "exec/wire.h"

#define CONTEXT_MODULES 64u
#define CONTEXT_FUNCTIONS 4096u
#define CONTEXT_SYMBOLS 1024u
#define CONTEXT_STREAMS 256u
#define CONTEXT_EVENTS 65536u
#define CONTEXT_DOWNS 256u /* ranges that came down and may come back as an echo */
#define CONTEXT_FREE_ARGS 256u /* bytes of a launch's arguments that count as no constant */
#define CONTEXT_FIRST_STREAM 3u /* 0 to 2 are the default streams */

struct context_function {
    uint32_t module, max_threads, max_dynamic, args_bytes;
    bool launched;
};
struct context_symbol {
    uint64_t addr, bytes;
};
struct context_range {
    uint64_t addr, n;
};
struct context_handles { /* a set of small numbers, the lowest free one first */
    uint8_t *live;
    uint32_t max, top; /* top: behind the highest one ever used */
};
struct context_down {
    uint64_t addr, n, hash;
};

struct client_context {
    const struct wire_info *info;
    struct pool pool;
    struct exec_log log;
    uint8_t modules[CONTEXT_MODULES][32]; /* hashes of images that are loaded */
    uint32_t n_modules;
    struct context_function functions[CONTEXT_FUNCTIONS];
    uint32_t n_functions;
    struct context_symbol symbols[CONTEXT_SYMBOLS];
    uint32_t n_symbols;
    struct context_handles streams, events;
    struct context_down downs[CONTEXT_DOWNS];
    uint32_t n_downs;
    uint32_t call;       /* the running call's number; 0 outside */
    uint32_t calls;      /* begun so far */
    uint64_t call_start; /* ns, CLOCK_MONOTONIC */
    uint8_t up_seen[1024][32]; /* of constants that count already: half of their SHA-256, in hex */
    uint32_t n_up_seen;
    struct context_range *built; /* uploads of the construction, each counted */
    size_t n_built, cap_built;
    bool aside;               /* the construction gave work to other streams than the legacy one */
    uint64_t call_launches, call_up, call_down, call_compared;
    uint64_t call_given;
    uint32_t call_reads;
    struct types types;     /* of the values that the judge bound, and of what became of them */
    uint64_t casts;         /* within calls: what changes the dtype of values that it moves */
    uint64_t reinterpreted; /* of these: those that read values as another type than theirs */
    uint32_t lacks;         /* bits: enum wire_lack */
    uint32_t refused;
    char why[256]; /* of the first refusal; "" */
};

void context_init(struct client_context *l, const struct wire_info *info, uint64_t memory);
void context_free(struct client_context *l);
void context_clear(struct client_context *l);

/* Checks the request and, where that is all it takes, carries it out on the tables. WIRE_OK, or why not (also in
 * l->why). *ret_result: the address or handle that it got. MODULE, FUNCTION and SYMBOL are only checked: the device
 * has to be asked first (life_add_...). */
int context_take(struct client_context *l, const struct wire_request *r, uint64_t *ret_result);
int context_refuse(struct client_context *l, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void context_count_image(struct client_context *l, uint64_t bytes);
uint32_t context_add_module(struct client_context *l, const uint8_t sha256[32]);
uint32_t context_add_function(struct client_context *l, uint32_t module, const struct wire_function_info *info);
void context_add_symbol(struct client_context *l, uint64_t addr, uint64_t bytes);
int context_find_module(const struct client_context *l, const uint8_t sha256[32]); /* -1 */

/* [addr, addr + n) is memory of this recording: one block, or one symbol. */
bool context_holds(const struct client_context *l, uint64_t addr, uint64_t n);
bool context_is_symbol(const struct client_context *l, uint64_t addr, uint64_t n);

/* Writes the request into the log (an upload that is an echo as LOG_ECHO) and counts. False: it does not fit. */
bool context_log(struct client_context *l, const struct wire_request *r, uint64_t result,
                 const struct context_down *echo);
/* What came down, for echoes; and a range with the same bytes, if there is one: the caller then looks whether the
 * device still holds them. */
void context_came_down(struct client_context *l, uint64_t addr, const void *data, uint64_t n);
const struct context_down *context_echo(const struct client_context *l, const void *data, uint64_t n);
/* The device was waited for, for a request that is no read: what comes after it tells when. Counts as one reply. */
void context_waited(struct client_context *l);

/* The values there are of this type, says the judge. */
void context_typed(struct client_context *l, uint64_t addr, uint64_t n, uint32_t dtype);

/* The judge bound values over this range: what the construction uploaded there was no constant. */
void context_bound(struct client_context *l, uint64_t addr, uint64_t n);

void context_call_begin(struct client_context *l, uint32_t index, uint64_t now);
void context_call_end(struct client_context *l);

#endif
