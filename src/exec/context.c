/* context.c - see context.h: tables, counters, the log. The checks of each op are in context_check.c. */
#include "exec/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/mem.h"

static void context_handles_clear(struct context_handles *h)
{
    memset(h->live, 0, h->top);
    h->top = 0;
}

/* A new client's context. memory: bytes that it may allocate. */
void context_init(struct client_context *l, const struct wire_info *info, uint64_t memory)
{
    memset(l, 0, sizeof *l);
    l->info = info;
    pool_init(&l->pool, WIRE_BASE, info->reserved, memory);
    if (exec_log_init(&l->log, LOG_MAX) < 0)
        l->log.full = true;
    l->streams = (struct context_handles){xcalloc(CONTEXT_STREAMS, 1), CONTEXT_STREAMS, 0};
    l->events = (struct context_handles){xcalloc(CONTEXT_EVENTS, 1), CONTEXT_EVENTS, 0};
}

void context_free(struct client_context *l)
{
    pool_free(&l->pool);
    exec_log_free(&l->log);
    free(l->built);
    types_free(&l->types);
    free(l->streams.live);
    free(l->events.live);
}

/* Forgets all of a client: handles, modules, log and counts. */
void context_clear(struct client_context *l)
{
    pool_clear(&l->pool);
    exec_log_clear(&l->log);
    context_handles_clear(&l->streams);
    context_handles_clear(&l->events);
    l->n_modules = l->n_functions = l->n_symbols = l->n_downs = l->n_up_seen = 0;
    l->n_built = 0;
    l->aside = false;
    types_clear(&l->types);
    l->casts = l->reinterpreted = 0;
    l->lacks = 0;
    l->call = l->calls = 0;
    l->refused = 0;
    l->why[0] = 0;
}

int context_refuse(struct client_context *l, int code, const char *fmt, ...)
{
    va_list ap;

    if (l->refused++ == 0) {
        va_start(ap, fmt);
        vsnprintf(l->why, sizeof l->why, fmt, ap);
        va_end(ap);
    }
    return code;
}

uint32_t context_add_module(struct client_context *l, const uint8_t sha256[32])
{
    memcpy(l->modules[l->n_modules], sha256, 32);
    return l->n_modules++;
}

uint32_t context_add_function(struct client_context *l, uint32_t module, const struct wire_function_info *info)
{
    l->functions[l->n_functions] =
        (struct context_function){module, info->max_threads, info->max_dynamic, info->args_bytes, false};
    return l->n_functions++;
}

/* Adds a module's global variable to what may be read and written. */
void context_add_symbol(struct client_context *l, uint64_t addr, uint64_t bytes)
{
    for (uint32_t i = 0; i < l->n_symbols; i++)
        if (l->symbols[i].addr == addr && l->symbols[i].bytes == bytes)
            return;
    if (l->n_symbols < CONTEXT_SYMBOLS)
        l->symbols[l->n_symbols++] = (struct context_symbol){addr, bytes};
}

int context_find_module(const struct client_context *l, const uint8_t sha256[32])
{
    for (uint32_t i = 0; i < l->n_modules; i++)
        if (!memcmp(l->modules[i], sha256, 32))
            return (int)i;
    return -1;
}

bool context_is_symbol(const struct client_context *l, uint64_t addr, uint64_t n)
{
    for (uint32_t i = 0; i < l->n_symbols; i++)
        if (n <= l->symbols[i].bytes && addr - l->symbols[i].addr <= l->symbols[i].bytes - n)
            return true;
    return false;
}

bool context_holds(const struct client_context *l, uint64_t addr, uint64_t n)
{
    return pool_find(&l->pool, addr, n) || context_is_symbol(l, addr, n);
}

/* ---- the log ---- */

/* Constants count by content: a list that every call uploads again is one. */
static void context_count_up(struct client_context *l, const void *data, uint64_t n)
{
    char hash[65];

    sha256_hex(data, n, hash);
    for (uint32_t i = 0; i < l->n_up_seen; i++)
        if (!memcmp(l->up_seen[i], hash, sizeof l->up_seen[i]))
            return;
    if (l->n_up_seen < sizeof l->up_seen / sizeof l->up_seen[0])
        memcpy(l->up_seen[l->n_up_seen++], hash, sizeof l->up_seen[0]);
    l->log.counts.bytes_up += n;
}

/* Not ordered with the legacy stream, for all that the tables tell. */
static bool context_is_aside(uint32_t stream)
{
    return stream > WIRE_STREAM_LEGACY;
}

/* Before the first call each upload counts, whatever it holds: two of the same bytes may go to a parameter, which the
 * judge binds over, and to a table. What other streams may read is not forgiven. */
static void context_count_built(struct client_context *l, uint64_t addr, uint64_t n, uint32_t stream)
{
    if (l->n_built == l->cap_built) {
        l->cap_built = l->cap_built ? l->cap_built * 2 : 64;
        l->built = xrealloc(l->built, l->cap_built * sizeof *l->built);
    }
    l->built[l->n_built++] = (struct context_range){addr, l->aside || context_is_aside(stream) ? 0 : n};
    l->log.counts.bytes_up += n;
}

/* A kernel may have read all that was uploaded before it, and may have kept it elsewhere. */
static void context_built_seen(struct client_context *l)
{
    for (size_t i = 0; i < l->n_built; i++)
        l->built[i].n = 0;
}

/* What was copied lives on elsewhere: binding over it takes nothing away. */
static void context_built_read(struct client_context *l, uint64_t addr, uint64_t n)
{
    for (size_t i = 0; i < l->n_built; i++)
        if (l->built[i].addr < addr + n && addr < l->built[i].addr + l->built[i].n)
            l->built[i].n = 0;
}

/* Work beside the legacy stream may read what comes later, too. */
static void context_note_aside(struct client_context *l, uint32_t stream)
{
    if (l->calls || !context_is_aside(stream))
        return;
    l->aside = true;
    context_built_seen(l);
}

void context_bound(struct client_context *l, uint64_t addr, uint64_t n)
{
    for (size_t i = 0; i < l->n_built; i++) {
        struct context_range *b = &l->built[i];

        if (b->n && b->addr >= addr && b->n <= n && b->addr - addr <= n - b->n) {
            l->log.counts.bytes_up -= b->n;
            b->n = 0;
        }
    }
}

/* What an image brings along, once. */
void context_count_image(struct client_context *l, uint64_t bytes)
{
    l->log.counts.bytes_up += bytes;
}

/* Counts a launch, and its kernel once. */
static void context_count_launch(struct client_context *l, uint32_t function)
{
    context_built_seen(l);
    l->log.counts.launches++;
    l->log.counts.kernels += !l->functions[function].launched;
    l->functions[function].launched = true;
    if (l->call)
        l->call_launches++;
}

/* Counts bytes that the host reads during a call. */
static void context_count_read(struct client_context *l, uint64_t bytes)
{
    if (!l->call)
        return;
    l->call_down += bytes;
    l->call_reads++;
    l->log.counts.bytes_down += bytes;
    l->log.counts.reads++;
}

/* ---- types of values ---- */

void context_typed(struct client_context *l, uint64_t addr, uint64_t n, uint32_t dtype)
{
    types_set(&l->types, addr, n, dtype);
}

/* Casts of the construction turn what the judge binds over, or what the log holds: only those of calls count. */
static void context_strided(struct client_context *l, const struct wire_strided *m)
{
    uint64_t to = 0, from = 0;

    wire_view_span(m->to_dtype, m->dims, m->size, m->to_stride, &to);
    wire_view_span(m->from_dtype, m->dims, m->size, m->from_stride, &from);
    context_note_aside(l, m->stream);
    context_built_read(l, m->from, from);
    if (m->to_dtype == m->from_dtype) {
        types_spread(&l->types, m->to, to, m->from, from);
        return;
    }
    l->casts += l->call > 0;
    if (l->call && !types_read(&l->types, m->from, from, m->from_dtype))
        l->reinterpreted++;
    types_set(&l->types, m->to, to, m->to_dtype);
}

static uint64_t context_flat_bytes(uint64_t count, uint32_t dtype)
{
    return count * dt_size((enum dtype)dtype);
}

/* Follows which dtype the values have that a request moves or makes. */
static void context_follow_types(struct client_context *l, const struct wire_request *r)
{
    const union wire_body *b = &r->body;

    switch (r->head.op) {
    case WIRE_COPY:
        context_note_aside(l, b->COPY.stream);
        context_built_read(l, b->COPY.from, b->COPY.n);
        types_copy(&l->types, b->COPY.to, b->COPY.from, b->COPY.n);
        break;
    case WIRE_STRIDED: context_strided(l, &b->STRIDED); break;
    case WIRE_ARANGE:
        types_set(&l->types, b->ARANGE.addr, context_flat_bytes(b->ARANGE.count, b->ARANGE.dtype),
                  b->ARANGE.dtype);
        break;
    case WIRE_RANDOM:
        types_set(&l->types, b->RANDOM.addr, context_flat_bytes(b->RANDOM.count, b->RANDOM.dtype),
                  b->RANDOM.dtype);
        break;
    default: break;
    }
}

/* ---- counting ---- */

/* One bit of a comparison is worth all that it compared: a few of them would find a number by halves. */
static uint64_t context_compared_bytes(const struct wire_equal *m)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < m->dims; d++)
        n *= (uint64_t)m->size[d];
    return n * dt_size((enum dtype)m->a_dtype);
}

/* Counts bytes that the client got during a call of forward. */
static void context_count_given(struct client_context *l, uint64_t bytes)
{
    l->call_given += l->call ? bytes : 0;
}

/* Counts a request's launches and bytes that go up, by the rules for legality. */
static void context_count(struct client_context *l, const struct wire_request *r)
{
    context_follow_types(l, r);
    switch (r->head.op) {
    case WIRE_LAUNCH:
        context_note_aside(l, r->body.LAUNCH.stream);
        context_count_launch(l, r->body.LAUNCH.function);
        if (r->head.tail > CONTEXT_FREE_ARGS)
            context_count_up(l, r->tail, r->head.tail);
        context_count_given(l, r->head.tail);
        break;
    case WIRE_MEMSET:
        context_count_up(l, r->body.MEMSET.value, sizeof r->body.MEMSET.value);
        context_count_given(l, sizeof r->body.MEMSET.value);
        break;
    case WIRE_FILL:
        context_count_up(l, r->body.FILL.value, sizeof r->body.FILL.value);
        context_count_given(l, sizeof r->body.FILL.value);
        break;
    case WIRE_UP:
        if (l->calls)
            context_count_up(l, r->tail, r->head.tail);
        else
            context_count_built(l, r->body.UP.addr, r->head.tail, r->body.UP.stream);
        l->call_up += l->call ? r->head.tail : 0;
        break;
    case WIRE_DOWN: context_count_read(l, r->body.DOWN.n); break;
    case WIRE_ELAPSED: context_count_read(l, sizeof(float)); break;
    case WIRE_NOTE: l->lacks |= 1u << r->body.NOTE.lack; break;
    case WIRE_EQUAL:
        l->call_compared += l->call ? context_compared_bytes(&r->body.EQUAL) : 0;
        context_count_read(l, 1);
        break;
    case WIRE_STREAM_QUERY:
    case WIRE_EVENT_QUERY: context_count_read(l, 1); break;
    default:
        if (wire_kind(r->head.op) & WIRE_READS)
            context_count_read(l, 0);
    }
}

/* Logs an upload of bytes that came down before as a copy on the device. False: it does not fit. */
static bool context_log_echo(struct client_context *l, const struct wire_request *r, const struct context_down *from)
{
    const struct wire_copy m = {r->body.UP.addr, from->addr, from->n, r->body.UP.stream, 0};

    l->log.counts.echoes++;
    context_note_aside(l, m.stream);
    context_built_read(l, m.from, m.n);
    types_copy(&l->types, m.to, m.from, m.n);
    return exec_log_add(&l->log, LOG_ECHO, l->call ? LOG_IN_CALL : 0, 0, &m, sizeof m, NULL, 0, NULL);
}

bool context_log(struct client_context *l, const struct wire_request *r, uint64_t result,
                 const struct context_down *echo)
{
    bool ok = true;

    if (echo)
        return context_log_echo(l, r, echo);
    context_count(l, r);
    if (wire_kind(r->head.op) & WIRE_LOGGED)
        ok = exec_log_add(&l->log, r->head.op, l->call ? LOG_IN_CALL : 0, result, &r->body, wire_size(r->head.op),
                          r->tail, r->head.tail, NULL);
    if (!ok)
        context_refuse(l, WIRE_REFUSED, "one request is larger than the log: more than %zu MiB", l->log.max >> 20);
    return ok;
}

/* ---- echoes ---- */

void context_came_down(struct client_context *l, uint64_t addr, const void *data, uint64_t n)
{
    l->downs[l->n_downs++ % CONTEXT_DOWNS] = (struct context_down){addr, n, hash64(data, n, 2)};
}

const struct context_down *context_echo(const struct client_context *l, const void *data, uint64_t n)
{
    uint32_t have = l->n_downs < CONTEXT_DOWNS ? l->n_downs : CONTEXT_DOWNS;
    uint64_t hash = have ? hash64(data, n, 2) : 0;

    for (uint32_t i = 0; i < have; i++)
        if (l->downs[i].n == n && l->downs[i].hash == hash && context_holds(l, l->downs[i].addr, n))
            return &l->downs[i];
    return NULL;
}

void context_waited(struct client_context *l)
{
    context_count_read(l, 0);
}

/* ---- calls ---- */

/* Adds an entry to the log that marks a call's begin or end. */
static void context_mark(struct client_context *l, unsigned op, uint32_t index)
{
    const struct log_call m = {index, 0};

    exec_log_add(&l->log, op, 0, 0, &m, sizeof m, NULL, 0, NULL);
}

/* A call of forward begins; now: in ns. */
void context_call_begin(struct client_context *l, uint32_t index, uint64_t now)
{
    context_mark(l, LOG_CALL_BEGIN, index);
    l->call = index;
    l->calls++;
    l->call_start = now;
    l->call_launches = l->call_given = l->call_up = l->call_down = l->call_compared = l->call_reads = 0;
}

void context_call_end(struct client_context *l)
{
    context_mark(l, LOG_CALL_END, l->call);
    l->call = 0;
}
