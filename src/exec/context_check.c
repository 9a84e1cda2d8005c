/* context_check.c - each request against the recording's tables: a row per op, a function per kind.
 * context_check_take_NAME checks the request NAME: WIRE_OK, or a code of wire.h, and words in the context. */
#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "exec/context.h"

struct check {
    struct client_context *l;
    const struct wire_request *r;
    uint64_t result;
};

static const char *context_check_op_name(const struct check *c)
{
    return wire_name(c->r->head.op);
}

/* Refuses the request with this code, naming the operation. Returns the code. */
static int context_check_bad(struct check *c, int code, const char *what)
{
    return context_refuse(c->l, code, "%s: %s", context_check_op_name(c), what);
}

/* ---- handles ---- */

/* A free handle from 'first' on; 0: none is left. */
static uint32_t context_check_handle_take(struct context_handles *h, uint32_t first)
{
    for (uint32_t i = first; i < h->max; i++)
        if (!h->live[i]) {
            h->live[i] = 1;
            h->top = i + 1 > h->top ? i + 1 : h->top;
            return i;
        }
    return 0;
}

static bool context_check_stream_lives(const struct client_context *l, uint32_t s)
{
    return s < CONTEXT_FIRST_STREAM || (s < l->streams.max && l->streams.live[s]);
}

static bool context_check_event_lives(const struct client_context *l, uint32_t v)
{
    return v && v < l->events.max && l->events.live[v];
}

static int context_check_need_stream(struct check *c, uint32_t s)
{
    return context_check_stream_lives(c->l, s) ? WIRE_OK : context_check_bad(c, WIRE_BAD_HANDLE,
                                                                             "there is no such stream");
}

/* ---- memory ---- */

/* WIRE_OK where the range lies in one allocation and the stream lives. */
static int context_check_need_range(struct check *c, uint64_t addr, uint64_t n, uint32_t stream)
{
    if (!context_holds(c->l, addr, n))
        return context_refuse(c->l, WIRE_INVALID, "%s of %" PRIu64 " bytes at 0x%" PRIx64
                              ", which is not within one allocation", context_check_op_name(c), n, addr);
    return context_check_need_stream(c, stream);
}

/* Checks an allocation and takes it from the pool. So do the next ones with their requests: WIRE_OK or a code. */
static int context_check_take_alloc(struct check *c)
{
    const struct wire_alloc *m = &c->r->body.ALLOC;

    if (m->kind > WIRE_ALLOC_ASYNC)
        return context_check_bad(c, WIRE_INVALID, "unknown kind of memory");
    if (!context_check_stream_lives(c->l, m->stream))
        return context_check_need_stream(c, m->stream);
    c->result = m->bytes ? pool_take(&c->l->pool, m->bytes, POOL_CLIENT, m->kind) : 0;
    return m->bytes && !c->result ? WIRE_OUT_OF_MEMORY : WIRE_OK; /* an answer, not a refusal */
}

/* Checks a free and gives the block back to the pool. */
static int context_check_take_free(struct check *c)
{
    const struct wire_free *m = &c->r->body.FREE;
    const struct pool_block *b;

    if (m->kind > WIRE_ALLOC_ASYNC || !context_check_stream_lives(c->l, m->stream))
        return context_check_bad(c, WIRE_INVALID, "unknown kind of memory or stream");
    if ((b = pool_find(&c->l->pool, m->addr, 1)))
        types_drop(&c->l->types, b->addr, b->bytes);
    return pool_give(&c->l->pool, m->addr, POOL_CLIENT)
               ? WIRE_OK : context_check_bad(c, WIRE_INVALID, "this is not the start of an allocation");
}

/* Checks a memset: width, alignment, range. */
static int context_check_take_memset(struct check *c)
{
    const struct wire_memset *m = &c->r->body.MEMSET;
    uint64_t n;

    if (!m->width || m->width > 16 || (m->width & (m->width - 1)) || m->addr % m->width ||
        __builtin_mul_overflow(m->count, (uint64_t)m->width, &n))
        return context_check_bad(c, WIRE_INVALID, "bad width or count");
    return context_check_need_range(c, m->addr, n, m->stream);
}

/* Checks an upload's range. */
static int context_check_take_up(struct check *c)
{
    if (!c->r->head.tail)
        return context_check_bad(c, WIRE_INVALID, "no bytes");
    return context_check_need_range(c, c->r->body.UP.addr, c->r->head.tail, c->r->body.UP.stream);
}

/* Checks a read of the host. */
static int context_check_take_down(struct check *c)
{
    const struct wire_down *m = &c->r->body.DOWN;

    if (!m->n || m->n > WIRE_CHUNK)
        return context_check_bad(c, WIRE_INVALID, "bad number of bytes");
    return context_check_need_range(c, m->addr, m->n, m->stream);
}

/* Checks a copy; both ranges may not overlap. */
static int context_check_take_copy(struct check *c)
{
    const struct wire_copy *m = &c->r->body.COPY;
    int code = context_check_need_range(c, m->to, m->n, m->stream);

    if (code)
        return code;
    if (m->to < m->from + m->n && m->from < m->to + m->n && m->to != m->from)
        return context_check_bad(c, WIRE_INVALID, "source and destination overlap");
    return context_check_need_range(c, m->from, m->n, m->stream);
}

/* ---- data movement ---- */

/* WIRE_OK where the strided view lies in one allocation. written: its elements may not overlap. */
static int context_check_need_view(struct check *c, uint64_t addr, uint32_t dtype, uint32_t dims, const int64_t *size,
                                   const int64_t *stride, bool written)
{
    uint64_t n;

    if (!wire_view_span(dtype, dims, size, stride, &n))
        return context_check_bad(c, WIRE_INVALID, "sizes, strides or dtype make no view");
    if (n && addr % dt_size((enum dtype)dtype))
        return context_check_bad(c, WIRE_INVALID, "a misaligned address");
    if (written && !wire_view_injective(dims, size, stride))
        return context_check_bad(c, WIRE_REFUSED, "the destination overlaps itself");
    return n ? context_check_need_range(c, addr, n, 0) : WIRE_OK;
}

/* Checks a fill of a view. */
static int context_check_take_fill(struct check *c)
{
    const struct wire_fill *m = &c->r->body.FILL;
    int code = context_check_need_view(c, m->addr, m->dtype, m->dims, m->size, m->stride, true);

    return code ? code : context_check_need_stream(c, m->stream);
}

static bool context_check_is_whole(uint32_t d)
{
    return d >= DT_U8 && d <= DT_I64;
}

/* What drops no part of a value, and what rounds between floating types: within the complex and within the other
 * floating types, from bool, from whole numbers to floating types and to others. A whole number that its new type
 * cannot hold becomes a mark (px_cast), never what is left of it. Truncation and != 0 are arithmetic, whatever data a
 * life has. Inexact whole numbers are counted; that rule is rules.c's. */
static bool context_check_castable(uint32_t to, uint32_t from)
{
    bool to_complex = to == DT_C64 || to == DT_C128, from_complex = from == DT_C64 || from == DT_C128;

    if (to == from)
        return true;
    if (to_complex != from_complex || to == DT_BOOL)
        return false;
    return from == DT_BOOL || context_check_is_whole(from) || !context_check_is_whole(to);
}

/* True where the two views of a copy do not overlap. */
static bool context_check_apart(const struct wire_strided *m)
{
    uint64_t to, from;

    wire_view_span(m->to_dtype, m->dims, m->size, m->to_stride, &to);
    wire_view_span(m->from_dtype, m->dims, m->size, m->from_stride, &from);
    return m->to + to <= m->from || m->from + from <= m->to;
}

/* Checks a strided copy or cast. */
static int context_check_take_strided(struct check *c)
{
    const struct wire_strided *m = &c->r->body.STRIDED;
    int code = context_check_need_view(c, m->to, m->to_dtype, m->dims, m->size, m->to_stride, true);

    if (!code)
        code = context_check_need_view(c, m->from, m->from_dtype, m->dims, m->size, m->from_stride, false);
    if (code)
        return code;
    if (!context_check_castable(m->to_dtype, m->from_dtype))
        return context_check_bad(c, WIRE_REFUSED, "this cast drops what its type cannot hold, which is arithmetic");
    return context_check_apart(m) ? context_check_need_stream(c, m->stream)
           : context_check_bad(c, WIRE_REFUSED, "source and destination overlap");
}

/* WIRE_OK where 'count' elements of a real dtype lie in one allocation. */
static int context_check_need_flat(struct check *c, uint64_t addr, uint32_t dtype, uint64_t count, uint32_t stream)
{
    const int64_t size[1] = {(int64_t)count}, stride[1] = {1};
    int code;

    if (count > (uint64_t)INT64_MAX || dtype == DT_C64 || dtype == DT_C128)
        return context_check_bad(c, WIRE_INVALID, "bad count or type");
    code = context_check_need_view(c, addr, dtype, 1, size, stride, true);
    return code ? code : context_check_need_stream(c, stream);
}

/* Checks the range that is filled with numbers. */
static int context_check_take_arange(struct check *c)
{
    const struct wire_arange *m = &c->r->body.ARANGE;

    return context_check_need_flat(c, m->addr, m->dtype, m->count, m->stream);
}

/* Checks a draw of random numbers. */
static int context_check_take_random(struct check *c)
{
    const struct wire_random *m = &c->r->body.RANDOM;

    if (m->kind >= WIRE_RANDOM_KINDS || (m->kind == WIRE_INTEGERS && m->lo >= m->hi))
        return context_check_bad(c, WIRE_INVALID, "bad kind or bounds");
    return context_check_need_flat(c, m->addr, m->dtype, m->count, m->stream);
}

static bool context_check_is_complex(uint32_t dtype)
{
    return dtype == DT_C64 || dtype == DT_C128;
}

/* Checks a comparison of two views. */
static int context_check_take_equal(struct check *c)
{
    const struct wire_equal *m = &c->r->body.EQUAL;
    int code = context_check_need_view(c, m->a, m->a_dtype, m->dims, m->size, m->a_stride, false);

    /* elements are read by a's parts */
    if (!code && context_check_is_complex(m->a_dtype) != context_check_is_complex(m->b_dtype))
        return context_check_bad(c, WIRE_INVALID, "a complex array is compared with a real one");
    return code ? code : context_check_need_view(c, m->b, m->b_dtype, m->dims, m->size, m->b_stride, false);
}

/* ---- code ---- */

/* Checks that there is room for the module. */
static int context_check_take_module(struct check *c)
{
    return c->l->n_modules < CONTEXT_MODULES || context_find_module(c->l, c->r->body.MODULE.sha256) >= 0
               ? WIRE_OK : context_check_bad(c, WIRE_REFUSED, "too many modules");
}

/* Checks a question for a function or symbol by name. */
static int context_check_take_name(struct check *c) /* FUNCTION, SYMBOL: the same layout */
{
    if (c->r->body.FUNCTION.module >= c->l->n_modules)
        return context_check_bad(c, WIRE_BAD_HANDLE, "there is no such module");
    if (!c->r->head.tail || memchr(c->r->tail, 0, c->r->head.tail))
        return context_check_bad(c, WIRE_INVALID, "bad name");
    if (c->l->n_functions >= CONTEXT_FUNCTIONS || c->l->n_symbols >= CONTEXT_SYMBOLS)
        return context_check_bad(c, WIRE_REFUSED, "too many functions or symbols");
    return WIRE_OK;
}

static int context_check_need_function(struct check *c, uint32_t f)
{
    return f < c->l->n_functions ? WIRE_OK : context_check_bad(c, WIRE_BAD_HANDLE, "there is no such function");
}

/* Checks the setting of a function's attribute; only dynamic shared memory is known. */
static int context_check_take_func_attr(struct check *c)
{
    const struct wire_func_attr *m = &c->r->body.FUNC_ATTR;
    int code = context_check_need_function(c, m->function);

    if (code || m->attr != 8) /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; the others are hints */
        return code;
    if (m->value < 0 || (uint64_t)m->value > c->l->info->shared_optin)
        return context_check_bad(c, WIRE_INVALID, "more shared memory than a block can have");
    c->l->functions[m->function].max_dynamic = (uint32_t)m->value;
    return WIRE_OK;
}

/* Checks a question for occupancy. */
static int context_check_take_occupancy(struct check *c)
{
    const struct wire_occupancy *m = &c->r->body.OCCUPANCY;

    if (!m->threads || m->threads > 1024 || m->shared > c->l->info->shared_optin)
        return WIRE_INVALID;
    return context_check_need_function(c, m->function);
}

/* True where grid, block and shared memory are within the device's limits. */
static bool context_check_shape_fits(const struct wire_info *d, const struct wire_launch *m)
{
    uint64_t threads = (uint64_t)m->block[0] * m->block[1] * m->block[2];

    for (int i = 0; i < 3; i++)
        if (!m->grid[i] || !m->block[i] || m->grid[i] > (uint32_t)d->grid[i] || m->block[i] > (uint32_t)d->dim[i])
            return false;
    return threads <= (uint64_t)d->threads_block;
}

/* True where all of the launch's attributes are ones that backends know. */
static bool context_check_attrs_known(const struct wire_launch *m)
{
    const uint64_t known = 1u << WIRE_ATTR_COOPERATIVE | 1u << WIRE_ATTR_CLUSTER | 1u << WIRE_ATTR_CLUSTER_POLICY |
                           1u << WIRE_ATTR_PDL | 1u << WIRE_ATTR_PRIORITY | 1u << WIRE_ATTR_CARVEOUT;

    if (m->attrs > WIRE_ATTRS)
        return false;
    for (uint32_t i = 0; i < m->attrs; i++)
        if (m->attr[i].kind >= 64 || !(known >> m->attr[i].kind & 1))
            return false;
    return true;
}

/* Checks a launch against handles, limits and the function's attributes; WIRE_OK or a code. */
static int context_check_take_launch(struct check *c)
{
    const struct wire_launch *m = &c->r->body.LAUNCH;
    const struct context_function *f = &c->l->functions[m->function % CONTEXT_FUNCTIONS];
    int code = context_check_need_function(c, m->function);

    if (code || (code = context_check_need_stream(c, m->stream)))
        return code;
    if (!context_check_shape_fits(c->l->info, m))
        return context_check_bad(c, WIRE_BAD_CONFIG, "a grid or block of impossible size");
    if (f->max_threads && (uint64_t)m->block[0] * m->block[1] * m->block[2] > f->max_threads)
        return context_check_bad(c, WIRE_TOO_MANY_RESOURCES, "more threads than the kernel's registers allow");
    if (m->shared > f->max_dynamic)
        return context_check_bad(c, WIRE_INVALID, "more dynamic shared memory than the kernel may use");
    if (!context_check_attrs_known(m))
        return context_check_bad(c, WIRE_UNSUPPORTED, "an attribute that is not known here");
    return c->r->head.tail < f->args_bytes ? context_check_bad(c, WIRE_INVALID, "arguments are missing") : WIRE_OK;
}

/* Checks the making of a tensor map. */
static int context_check_take_tensor_map(struct check *c)
{
    const struct wire_tensor_map *m = &c->r->body.TENSOR_MAP;

    if (m->rank < 1 || m->rank > 5 || !context_holds(c->l, m->addr, 1))
        return WIRE_INVALID;
    return WIRE_OK;
}

/* ---- order ---- */

/* Takes a stream's number; its handle is the result. */
static int context_check_take_stream_create(struct check *c)
{
    c->result = context_check_handle_take(&c->l->streams, CONTEXT_FIRST_STREAM);
    return c->result ? WIRE_OK : context_check_bad(c, WIRE_REFUSED, "too many streams");
}

/* Checks a stream's wait or end. */
static int context_check_take_stream(struct check *c)
{
    uint32_t s = c->r->body.STREAM_SYNC.stream;
    int code = context_check_need_stream(c, s);

    if (!code && c->r->head.op == WIRE_STREAM_DESTROY && s >= CONTEXT_FIRST_STREAM)
        c->l->streams.live[s] = 0;
    return code;
}

/* Takes an event's number; its handle is the result. */
static int context_check_take_event_create(struct check *c)
{
    c->result = context_check_handle_take(&c->l->events, 1);
    return c->result ? WIRE_OK : context_check_bad(c, WIRE_REFUSED, "too many events");
}

/* Checks an event's record, wait or end. */
static int context_check_take_event(struct check *c)
{
    const struct wire_event *m = &c->r->body.EVENT_RECORD;

    if (!context_check_event_lives(c->l, m->event))
        return context_check_bad(c, WIRE_BAD_HANDLE, "there is no such event");
    if (c->r->head.op == WIRE_EVENT_DESTROY)
        c->l->events.live[m->event] = 0;
    return context_check_need_stream(c, m->stream);
}

/* Checks a question for the time between two events. */
static int context_check_take_elapsed(struct check *c)
{
    const struct wire_elapsed *m = &c->r->body.ELAPSED;

    return context_check_event_lives(c->l, m->from) && context_check_event_lives(c->l, m->to) ? WIRE_OK
                                                                   : context_check_bad(c, WIRE_BAD_HANDLE,
                                                                                       "there is no such event");
}

static int context_check_take_note(struct check *c)
{
    return c->r->body.NOTE.lack < WIRE_LACK_COUNT ? WIRE_OK : context_check_bad(c, WIRE_INVALID, "an unknown number");
}

static int context_check_take_nothing(struct check *c)
{
    (void)c;
    return WIRE_OK;
}

static int (*const rows[WIRE_OP_COUNT])(struct check *c) = {
    [WIRE_ALLOC] = context_check_take_alloc, [WIRE_FREE] = context_check_take_free,
    [WIRE_MEMSET] = context_check_take_memset, [WIRE_UP] = context_check_take_up,
    [WIRE_DOWN] = context_check_take_down, [WIRE_COPY] = context_check_take_copy, [WIRE_FILL] = context_check_take_fill,
    [WIRE_STRIDED] = context_check_take_strided,
    [WIRE_ARANGE] = context_check_take_arange, [WIRE_RANDOM] = context_check_take_random,
    [WIRE_EQUAL] = context_check_take_equal, [WIRE_MODULE] = context_check_take_module,
    [WIRE_FUNCTION] = context_check_take_name, [WIRE_SYMBOL] = context_check_take_name,
    [WIRE_FUNC_ATTR] = context_check_take_func_attr,
    [WIRE_OCCUPANCY] = context_check_take_occupancy, [WIRE_LAUNCH] = context_check_take_launch,
    [WIRE_TENSOR_MAP] = context_check_take_tensor_map,
    [WIRE_STREAM_CREATE] = context_check_take_stream_create, [WIRE_STREAM_DESTROY] = context_check_take_stream,
    [WIRE_STREAM_SYNC] = context_check_take_stream,
    [WIRE_STREAM_QUERY] = context_check_take_stream, [WIRE_EVENT_CREATE] = context_check_take_event_create,
    [WIRE_EVENT_DESTROY] = context_check_take_event,
    [WIRE_EVENT_RECORD] = context_check_take_event, [WIRE_EVENT_WAIT] = context_check_take_event,
    [WIRE_EVENT_SYNC] = context_check_take_event,
    [WIRE_EVENT_QUERY] = context_check_take_event, [WIRE_ELAPSED] = context_check_take_elapsed,
    [WIRE_DEVICE_SYNC] = context_check_take_nothing,
    [WIRE_MEM_INFO] = context_check_take_nothing, [WIRE_FENCE] = context_check_take_nothing,
    [WIRE_NOTE] = context_check_take_note,
};

int context_take(struct client_context *l, const struct wire_request *r, uint64_t *ret_result)
{
    struct check c = {l, r, 0};
    int code = rows[r->head.op](&c);

    if (code == WIRE_OK)
        *ret_result = c.result;
    return code;
}
