/* life.h - one life's tables, and the checks of each request against them. No device and no shared memory here: a
 * request in, a code and a result out. */
#ifndef MC_EXEC_LIFE_H
#define MC_EXEC_LIFE_H

#include "exec/log.h"
#include "exec/pool.h"
#include "exec/types.h"
#include "exec/wire.h"

#define LIFE_MODULES 64u
#define LIFE_FUNCTIONS 4096u
#define LIFE_SYMBOLS 1024u
#define LIFE_STREAMS 256u
#define LIFE_EVENTS 65536u
#define LIFE_DOWNS 256u /* ranges that came down and may come back as an echo */
#define LIFE_FREE_ARGS 256u /* bytes of a launch's arguments that count as no constant */
#define LIFE_FIRST_STREAM 3u /* 0 to 2 are the default streams */

struct life_function {
    uint32_t module, max_threads, max_dynamic, args_bytes;
    bool launched;
};
struct life_symbol {
    uint64_t addr, bytes;
};
struct life_range {
    uint64_t addr, n;
};
struct life_handles { /* a set of small numbers, the lowest free one first */
    uint8_t *live;
    uint32_t max, top; /* top: behind the highest one ever used */
};
struct life_down {
    uint64_t addr, n, hash;
};

struct life {
    const struct wire_info *info;
    struct pool pool;
    struct exec_log log;
    uint8_t modules[LIFE_MODULES][32]; /* hashes of images that are loaded */
    uint32_t n_modules;
    struct life_function functions[LIFE_FUNCTIONS];
    uint32_t n_functions;
    struct life_symbol symbols[LIFE_SYMBOLS];
    uint32_t n_symbols;
    struct life_handles streams, events;
    struct life_down downs[LIFE_DOWNS];
    uint32_t n_downs;
    uint32_t call;       /* the running call's number; 0 outside */
    uint32_t calls;      /* begun so far */
    uint64_t call_start; /* ns, CLOCK_MONOTONIC */
    uint8_t up_seen[1024][32]; /* of constants that count already: half of their SHA-256, in hex */
    uint32_t n_up_seen;
    struct life_range *built; /* uploads of the construction, each counted */
    size_t n_built, cap_built;
    bool aside;               /* the construction gave work to other streams than the legacy one */
    uint64_t call_launches, call_up, call_down, call_compared;
    uint64_t call_given;
    uint32_t call_reads;
    struct types types;     /* of the values that the judge laid, and of what became of them */
    uint64_t reinterpreted; /* casts within calls that read values as another type than theirs */
    uint32_t lacks;         /* bits: enum wire_lack */
    uint32_t refused;
    char why[256]; /* of the first refusal; "" */
};

void life_init(struct life *l, const struct wire_info *info, uint64_t memory);
void life_free(struct life *l);
void life_clear(struct life *l);

/* Checks the request and, where that is all it takes, carries it out on the tables. WIRE_OK, or why not (also in
 * l->why). *ret_result: the address or handle that it got. MODULE, FUNCTION and SYMBOL are only checked: the device
 * has to be asked first (life_add_...). */
int life_take(struct life *l, const struct wire_request *r, uint64_t *ret_result);
int life_refuse(struct life *l, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void life_count_image(struct life *l, uint64_t bytes);
uint32_t life_add_module(struct life *l, const uint8_t sha256[32]);
uint32_t life_add_function(struct life *l, uint32_t module, const struct wire_function_info *info);
void life_add_symbol(struct life *l, uint64_t addr, uint64_t bytes);
int life_find_module(const struct life *l, const uint8_t sha256[32]); /* -1 */

/* [addr, addr + n) is memory of this life: one block, or one symbol. */
bool life_holds(const struct life *l, uint64_t addr, uint64_t n);
bool life_is_symbol(const struct life *l, uint64_t addr, uint64_t n);

/* Writes the request into the log (an upload that is an echo as LOG_ECHO) and counts. False: the log is full. */
bool life_log(struct life *l, const struct wire_request *r, uint64_t result, const struct life_down *echo);
/* What came down, for echoes; and a range with the same bytes, if there is one: the caller then looks whether the
 * device still holds them. */
void life_came_down(struct life *l, uint64_t addr, const void *data, uint64_t n);
const struct life_down *life_echo(const struct life *l, const void *data, uint64_t n);
/* The device was waited for, for a request that is no read: what comes after it tells when. Counts as one reply. */
void life_waited(struct life *l);

/* The values there are of this type, says the judge. */
void life_typed(struct life *l, uint64_t addr, uint64_t n, uint32_t dtype);

/* The judge laid values over this range: what the construction uploaded there was no constant. */
void life_laid(struct life *l, uint64_t addr, uint64_t n);

void life_call_begin(struct life *l, uint32_t index, uint64_t now);
void life_call_end(struct life *l);

#endif
