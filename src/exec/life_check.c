/* life_check.c - each request against the life's tables: a row per op, a function per kind. */
#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "exec/life.h"

struct check {
    struct life *l;
    const struct wire_request *r;
    uint64_t result;
};

static const char *op_name(const struct check *c)
{
    return wire_name(c->r->head.op);
}

static int bad(struct check *c, int code, const char *what)
{
    return life_refuse(c->l, code, "%s: %s", op_name(c), what);
}

/* ---- handles ---- */

static uint32_t handle_take(struct life_handles *h, uint32_t first)
{
    for (uint32_t i = first; i < h->max; i++)
        if (!h->live[i]) {
            h->live[i] = 1;
            h->top = i + 1 > h->top ? i + 1 : h->top;
            return i;
        }
    return 0;
}

static bool stream_lives(const struct life *l, uint32_t s)
{
    return s < LIFE_FIRST_STREAM || (s < l->streams.max && l->streams.live[s]);
}

static bool event_lives(const struct life *l, uint32_t v)
{
    return v && v < l->events.max && l->events.live[v];
}

static int need_stream(struct check *c, uint32_t s)
{
    return stream_lives(c->l, s) ? WIRE_OK : bad(c, WIRE_BAD_HANDLE, "there is no such stream");
}

/* ---- memory ---- */

static int need_range(struct check *c, uint64_t addr, uint64_t n, uint32_t stream)
{
    if (!life_holds(c->l, addr, n))
        return life_refuse(c->l, WIRE_INVALID, "%s of %" PRIu64 " bytes at 0x%" PRIx64
                           ", which is not within one allocation", op_name(c), n, addr);
    return need_stream(c, stream);
}

static int take_alloc(struct check *c)
{
    const struct wire_alloc *m = &c->r->body.ALLOC;

    if (m->kind > WIRE_ALLOC_ASYNC)
        return bad(c, WIRE_INVALID, "unknown kind of memory");
    if (!stream_lives(c->l, m->stream))
        return need_stream(c, m->stream);
    c->result = m->bytes ? pool_take(&c->l->pool, m->bytes, POOL_FRONT, m->kind) : 0;
    return m->bytes && !c->result ? WIRE_OUT_OF_MEMORY : WIRE_OK; /* an answer, not a refusal */
}

static int take_free(struct check *c)
{
    const struct wire_free *m = &c->r->body.FREE;
    const struct pool_block *b;

    if (m->kind > WIRE_ALLOC_ASYNC || !stream_lives(c->l, m->stream))
        return bad(c, WIRE_INVALID, "unknown kind of memory or stream");
    if ((b = pool_find(&c->l->pool, m->addr, 1)))
        types_drop(&c->l->types, b->addr, b->bytes);
    return pool_give(&c->l->pool, m->addr, POOL_FRONT)
               ? WIRE_OK : bad(c, WIRE_INVALID, "this is not the start of an allocation");
}

static int take_memset(struct check *c)
{
    const struct wire_memset *m = &c->r->body.MEMSET;
    uint64_t n;

    if (!m->width || m->width > 16 || (m->width & (m->width - 1)) || m->addr % m->width ||
        __builtin_mul_overflow(m->count, (uint64_t)m->width, &n))
        return bad(c, WIRE_INVALID, "bad width or count");
    return need_range(c, m->addr, n, m->stream);
}

static int take_up(struct check *c)
{
    if (!c->r->head.tail)
        return bad(c, WIRE_INVALID, "no bytes");
    return need_range(c, c->r->body.UP.addr, c->r->head.tail, c->r->body.UP.stream);
}

static int take_down(struct check *c)
{
    const struct wire_down *m = &c->r->body.DOWN;

    if (!m->n || m->n > WIRE_CHUNK)
        return bad(c, WIRE_INVALID, "bad number of bytes");
    return need_range(c, m->addr, m->n, m->stream);
}

static int take_copy(struct check *c)
{
    const struct wire_copy *m = &c->r->body.COPY;
    int code = need_range(c, m->to, m->n, m->stream);

    if (code)
        return code;
    if (m->to < m->from + m->n && m->from < m->to + m->n && m->to != m->from)
        return bad(c, WIRE_INVALID, "source and destination overlap");
    return need_range(c, m->from, m->n, m->stream);
}

/* ---- plumbing ---- */

static int need_view(struct check *c, uint64_t addr, uint32_t dtype, uint32_t dims, const int64_t *size,
                     const int64_t *stride, bool written)
{
    uint64_t n;

    if (!wire_view_span(dtype, dims, size, stride, &n))
        return bad(c, WIRE_INVALID, "sizes, strides or dtype make no view");
    if (n && addr % dt_size((enum dtype)dtype))
        return bad(c, WIRE_INVALID, "a misaligned address");
    if (written && !wire_view_injective(dims, size, stride))
        return bad(c, WIRE_REFUSED, "the destination overlaps itself");
    return n ? need_range(c, addr, n, 0) : WIRE_OK;
}

static int take_fill(struct check *c)
{
    const struct wire_fill *m = &c->r->body.FILL;
    int code = need_view(c, m->addr, m->dtype, m->dims, m->size, m->stride, true);

    return code ? code : need_stream(c, m->stream);
}

static bool is_whole(uint32_t d)
{
    return d >= DT_U8 && d <= DT_I64;
}

/* What drops no part of a value, and what rounds between floating types: within the complex and within the other
 * floating types, from bool, from whole numbers to floating types and to others. A whole number that its new type
 * cannot hold becomes a mark (px_cast), never what is left of it. Truncation and != 0 are arithmetic, whatever data a
 * life has. Inexact whole numbers are counted; that rule is rules.c's. */
static bool castable(uint32_t to, uint32_t from)
{
    bool to_complex = to == DT_C64 || to == DT_C128, from_complex = from == DT_C64 || from == DT_C128;

    if (to == from)
        return true;
    if (to_complex != from_complex || to == DT_BOOL)
        return false;
    return from == DT_BOOL || is_whole(from) || !is_whole(to);
}

static bool apart(const struct wire_strided *m)
{
    uint64_t to, from;

    wire_view_span(m->to_dtype, m->dims, m->size, m->to_stride, &to);
    wire_view_span(m->from_dtype, m->dims, m->size, m->from_stride, &from);
    return m->to + to <= m->from || m->from + from <= m->to;
}

static int take_strided(struct check *c)
{
    const struct wire_strided *m = &c->r->body.STRIDED;
    int code = need_view(c, m->to, m->to_dtype, m->dims, m->size, m->to_stride, true);

    if (!code)
        code = need_view(c, m->from, m->from_dtype, m->dims, m->size, m->from_stride, false);
    if (code)
        return code;
    if (!castable(m->to_dtype, m->from_dtype))
        return bad(c, WIRE_REFUSED, "this cast drops what its type cannot hold, which is arithmetic");
    return apart(m) ? need_stream(c, m->stream) : bad(c, WIRE_REFUSED, "source and destination overlap");
}

static int need_flat(struct check *c, uint64_t addr, uint32_t dtype, uint64_t count, uint32_t stream)
{
    const int64_t size[1] = {(int64_t)count}, stride[1] = {1};
    int code;

    if (count > (uint64_t)INT64_MAX || dtype == DT_C64 || dtype == DT_C128)
        return bad(c, WIRE_INVALID, "bad count or type");
    code = need_view(c, addr, dtype, 1, size, stride, true);
    return code ? code : need_stream(c, stream);
}

static int take_arange(struct check *c)
{
    const struct wire_arange *m = &c->r->body.ARANGE;

    return need_flat(c, m->addr, m->dtype, m->count, m->stream);
}

static int take_random(struct check *c)
{
    const struct wire_random *m = &c->r->body.RANDOM;

    if (m->kind >= WIRE_RANDOM_KINDS || (m->kind == WIRE_INTEGERS && m->lo >= m->hi))
        return bad(c, WIRE_INVALID, "bad kind or bounds");
    return need_flat(c, m->addr, m->dtype, m->count, m->stream);
}

static bool is_complex(uint32_t dtype)
{
    return dtype == DT_C64 || dtype == DT_C128;
}

static int take_equal(struct check *c)
{
    const struct wire_equal *m = &c->r->body.EQUAL;
    int code = need_view(c, m->a, m->a_dtype, m->dims, m->size, m->a_stride, false);

    if (!code && is_complex(m->a_dtype) != is_complex(m->b_dtype)) /* elements are read by a's parts */
        return bad(c, WIRE_INVALID, "a complex array is compared with a real one");
    return code ? code : need_view(c, m->b, m->b_dtype, m->dims, m->size, m->b_stride, false);
}

/* ---- code ---- */

static int take_module(struct check *c)
{
    return c->l->n_modules < LIFE_MODULES || life_find_module(c->l, c->r->body.MODULE.sha256) >= 0
               ? WIRE_OK : bad(c, WIRE_REFUSED, "too many modules");
}

static int take_name(struct check *c) /* FUNCTION, SYMBOL: the same layout */
{
    if (c->r->body.FUNCTION.module >= c->l->n_modules)
        return bad(c, WIRE_BAD_HANDLE, "there is no such module");
    if (!c->r->head.tail || memchr(c->r->tail, 0, c->r->head.tail))
        return bad(c, WIRE_INVALID, "bad name");
    if (c->l->n_functions >= LIFE_FUNCTIONS || c->l->n_symbols >= LIFE_SYMBOLS)
        return bad(c, WIRE_REFUSED, "too many functions or symbols");
    return WIRE_OK;
}

static int need_function(struct check *c, uint32_t f)
{
    return f < c->l->n_functions ? WIRE_OK : bad(c, WIRE_BAD_HANDLE, "there is no such function");
}

static int take_func_attr(struct check *c)
{
    const struct wire_func_attr *m = &c->r->body.FUNC_ATTR;
    int code = need_function(c, m->function);

    if (code || m->attr != 8) /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; the others are hints */
        return code;
    if (m->value < 0 || (uint64_t)m->value > c->l->info->shared_optin)
        return bad(c, WIRE_INVALID, "more shared memory than a block can have");
    c->l->functions[m->function].max_dynamic = (uint32_t)m->value;
    return WIRE_OK;
}

static int take_occupancy(struct check *c)
{
    const struct wire_occupancy *m = &c->r->body.OCCUPANCY;

    if (!m->threads || m->threads > 1024 || m->shared > c->l->info->shared_optin)
        return WIRE_INVALID;
    return need_function(c, m->function);
}

static bool shape_fits(const struct wire_info *d, const struct wire_launch *m)
{
    uint64_t threads = (uint64_t)m->block[0] * m->block[1] * m->block[2];

    for (int i = 0; i < 3; i++)
        if (!m->grid[i] || !m->block[i] || m->grid[i] > (uint32_t)d->grid[i] || m->block[i] > (uint32_t)d->dim[i])
            return false;
    return threads <= (uint64_t)d->threads_block;
}

static bool attrs_known(const struct wire_launch *m)
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

static int take_launch(struct check *c)
{
    const struct wire_launch *m = &c->r->body.LAUNCH;
    const struct life_function *f = &c->l->functions[m->function % LIFE_FUNCTIONS];
    int code = need_function(c, m->function);

    if (code || (code = need_stream(c, m->stream)))
        return code;
    if (!shape_fits(c->l->info, m))
        return bad(c, WIRE_BAD_CONFIG, "a grid or block of impossible size");
    if (f->max_threads && (uint64_t)m->block[0] * m->block[1] * m->block[2] > f->max_threads)
        return bad(c, WIRE_TOO_MANY_RESOURCES, "more threads than the kernel's registers allow");
    if (m->shared > f->max_dynamic)
        return bad(c, WIRE_INVALID, "more dynamic shared memory than the kernel may use");
    if (!attrs_known(m))
        return bad(c, WIRE_UNSUPPORTED, "an attribute that is not known here");
    return c->r->head.tail < f->args_bytes ? bad(c, WIRE_INVALID, "arguments are missing") : WIRE_OK;
}

static int take_tensor_map(struct check *c)
{
    const struct wire_tensor_map *m = &c->r->body.TENSOR_MAP;

    if (m->rank < 1 || m->rank > 5 || !life_holds(c->l, m->addr, 1))
        return WIRE_INVALID;
    return WIRE_OK;
}

/* ---- order ---- */

static int take_stream_create(struct check *c)
{
    c->result = handle_take(&c->l->streams, LIFE_FIRST_STREAM);
    return c->result ? WIRE_OK : bad(c, WIRE_REFUSED, "too many streams");
}

static int take_stream(struct check *c)
{
    uint32_t s = c->r->body.STREAM_SYNC.stream;
    int code = need_stream(c, s);

    if (!code && c->r->head.op == WIRE_STREAM_DESTROY && s >= LIFE_FIRST_STREAM)
        c->l->streams.live[s] = 0;
    return code;
}

static int take_event_create(struct check *c)
{
    c->result = handle_take(&c->l->events, 1);
    return c->result ? WIRE_OK : bad(c, WIRE_REFUSED, "too many events");
}

static int take_event(struct check *c)
{
    const struct wire_event *m = &c->r->body.EVENT_RECORD;

    if (!event_lives(c->l, m->event))
        return bad(c, WIRE_BAD_HANDLE, "there is no such event");
    if (c->r->head.op == WIRE_EVENT_DESTROY)
        c->l->events.live[m->event] = 0;
    return need_stream(c, m->stream);
}

static int take_elapsed(struct check *c)
{
    const struct wire_elapsed *m = &c->r->body.ELAPSED;

    return event_lives(c->l, m->from) && event_lives(c->l, m->to) ? WIRE_OK
                                                                   : bad(c, WIRE_BAD_HANDLE, "there is no such event");
}

static int take_note(struct check *c)
{
    return c->r->body.NOTE.lack < WIRE_LACK_COUNT ? WIRE_OK : bad(c, WIRE_INVALID, "an unknown number");
}

static int take_nothing(struct check *c)
{
    (void)c;
    return WIRE_OK;
}

static int (*const rows[WIRE_OP_COUNT])(struct check *c) = {
    [WIRE_ALLOC] = take_alloc, [WIRE_FREE] = take_free, [WIRE_MEMSET] = take_memset, [WIRE_UP] = take_up,
    [WIRE_DOWN] = take_down, [WIRE_COPY] = take_copy, [WIRE_FILL] = take_fill, [WIRE_STRIDED] = take_strided,
    [WIRE_ARANGE] = take_arange, [WIRE_RANDOM] = take_random, [WIRE_EQUAL] = take_equal, [WIRE_MODULE] = take_module,
    [WIRE_FUNCTION] = take_name, [WIRE_SYMBOL] = take_name, [WIRE_FUNC_ATTR] = take_func_attr,
    [WIRE_OCCUPANCY] = take_occupancy, [WIRE_LAUNCH] = take_launch, [WIRE_TENSOR_MAP] = take_tensor_map,
    [WIRE_STREAM_CREATE] = take_stream_create, [WIRE_STREAM_DESTROY] = take_stream, [WIRE_STREAM_SYNC] = take_stream,
    [WIRE_STREAM_QUERY] = take_stream, [WIRE_EVENT_CREATE] = take_event_create, [WIRE_EVENT_DESTROY] = take_event,
    [WIRE_EVENT_RECORD] = take_event, [WIRE_EVENT_WAIT] = take_event, [WIRE_EVENT_SYNC] = take_event,
    [WIRE_EVENT_QUERY] = take_event, [WIRE_ELAPSED] = take_elapsed, [WIRE_DEVICE_SYNC] = take_nothing,
    [WIRE_MEM_INFO] = take_nothing, [WIRE_FENCE] = take_nothing, [WIRE_NOTE] = take_note,
};

int life_take(struct life *l, const struct wire_request *r, uint64_t *ret_result)
{
    struct check c = {l, r, 0};
    int code = rows[r->head.op](&c);

    if (code == WIRE_OK)
        *ret_result = c.result;
    return code;
}
