/* client.c - the client's functions, each one message. See client.h. */
#include "exec/client.h"

#include <string.h>

#include "exec/client_ring.h"

static const struct client_part none = {NULL, 0};

static int client_do_post(struct client *c, unsigned op, const void *body)
{
    return client_post(c, op, body, none, none);
}

static int client_do_ask(struct client *c, unsigned op, const void *body, struct wire_slot *ret)
{
    return client_ask(c, op, body, none, ret, NULL, 0);
}

/* ---- recording ---- */

uint32_t *client_stream_of(unsigned op, void *body)
{
#define AT(name, type) [WIRE_##name] = offsetof(struct type, stream) + 1
    static const size_t at[WIRE_OP_COUNT] = {
        AT(FREE, wire_free), AT(MEMSET, wire_memset), AT(UP, wire_up), AT(COPY, wire_copy), AT(FILL, wire_fill),
        AT(STRIDED, wire_strided), AT(ARANGE, wire_arange), AT(RANDOM, wire_random), AT(LAUNCH, wire_launch),
        AT(STREAM_SYNC, wire_stream), AT(EVENT_RECORD, wire_event), AT(EVENT_WAIT, wire_event)};

    return op < WIRE_OP_COUNT && at[op] ? (uint32_t *)(void *)((char *)body + at[op] - 1) : NULL;
}

/* ---- memory ---- */

int client_alloc(struct client *c, uint64_t bytes, uint32_t kind, uint32_t stream, uint64_t *ret_addr)
{
    const struct wire_alloc m = {bytes, kind, stream};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_ALLOC, &m, &s);

    if (!code)
        *ret_addr = s.v[0];
    return code;
}

int client_free(struct client *c, uint64_t addr, uint32_t kind, uint32_t stream)
{
    const struct wire_free m = {addr, kind, stream};

    return addr ? client_do_post(c, WIRE_FREE, &m) : WIRE_OK;
}

int client_memset(struct client *c, uint64_t addr, const void *value, uint32_t width, uint64_t count, uint32_t stream)
{
    struct wire_memset m = {.addr = addr, .count = count, .width = width, .stream = stream};

    if (!width || width > 16 || (width & (width - 1)))
        return WIRE_INVALID;
    memcpy(m.value, value, width);
    return count ? client_do_post(c, WIRE_MEMSET, &m) : WIRE_OK;
}

int client_up(struct client *c, uint64_t to, const void *from, uint64_t n, uint32_t stream)
{
    int code = WIRE_OK;

    for (uint64_t i = 0; i < n && !code; i += WIRE_CHUNK) {
        const struct wire_up m = {to + i, stream, 0};
        const struct client_part data = {(const char *)from + i, n - i < WIRE_CHUNK ? n - i : WIRE_CHUNK};

        code = client_post(c, WIRE_UP, &m, data, none);
    }
    return code;
}

int client_down(struct client *c, void *to, uint64_t from, uint64_t n, uint32_t stream)
{
    int code = WIRE_OK;

    for (uint64_t i = 0; i < n && !code; i += WIRE_CHUNK) {
        const struct wire_down m = {from + i, n - i < WIRE_CHUNK ? n - i : WIRE_CHUNK, stream, 0};
        struct wire_slot s;

        code = client_ask(c, WIRE_DOWN, &m, none, &s, (char *)to + i, m.n);
    }
    return code;
}

int client_copy(struct client *c, uint64_t to, uint64_t from, uint64_t n, uint32_t stream)
{
    const struct wire_copy m = {to, from, n, stream, 0};

    return n ? client_do_post(c, WIRE_COPY, &m) : WIRE_OK;
}

int client_mem_info(struct client *c, uint64_t *ret_free, uint64_t *ret_total)
{
    const struct wire_nothing m = {0};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_MEM_INFO, &m, &s);

    if (!code)
        *ret_free = s.v[0], *ret_total = s.v[1];
    return code;
}

/* ---- data movement ---- */

static void client_dims_copy(int64_t *to, const int64_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = from[i];
}

int client_fill(struct client *c, const struct client_view *v, const void *value, uint32_t stream)
{
    static const uint8_t width[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16}; /* by dtype, of a whole element */
    struct wire_fill m = {.addr = v->addr, .dtype = v->dtype, .dims = v->dims, .stream = stream};

    if (v->dims > WIRE_DIMS || v->dtype >= sizeof width)
        return WIRE_UNSUPPORTED;
    memcpy(m.value, value, width[v->dtype]);
    client_dims_copy(m.size, v->size, v->dims);
    client_dims_copy(m.stride, v->stride, v->dims);
    return client_do_post(c, WIRE_FILL, &m);
}

int client_strided(struct client *c, const struct client_view *to, const struct client_view *from, uint32_t stream)
{
    struct wire_strided m = {.to = to->addr, .from = from->addr, .to_dtype = to->dtype, .from_dtype = from->dtype,
                             .dims = to->dims, .stream = stream};

    if (to->dims > WIRE_DIMS || from->dims != to->dims)
        return WIRE_UNSUPPORTED;
    client_dims_copy(m.size, to->size, to->dims);
    client_dims_copy(m.to_stride, to->stride, to->dims);
    client_dims_copy(m.from_stride, from->stride, to->dims);
    return client_do_post(c, WIRE_STRIDED, &m);
}

int client_arange(struct client *c, uint64_t addr, uint64_t count, uint32_t dtype, double start, double step,
                  int64_t start_i, int64_t step_i, uint32_t stream)
{
    const struct wire_arange m = {addr, count, start, step, start_i, step_i, dtype, stream};

    return count ? client_do_post(c, WIRE_ARANGE, &m) : WIRE_OK;
}

int client_random(struct client *c, const struct wire_random *r)
{
    return r->count ? client_do_post(c, WIRE_RANDOM, r) : WIRE_OK;
}

int client_close_to(struct client *c, const struct client_view *a, const struct client_view *b, double rtol,
                    double atol, int equal_nan, int *ret_equal)
{
    struct wire_equal m = {.a = a->addr, .b = b->addr, .a_dtype = a->dtype, .b_dtype = b->dtype, .dims = a->dims,
                           .equal_nan = equal_nan != 0, .rtol = rtol, .atol = atol};
    struct wire_slot s;
    int code;

    if (a->dims > WIRE_DIMS || b->dims != a->dims)
        return WIRE_UNSUPPORTED;
    client_dims_copy(m.size, a->size, a->dims);
    client_dims_copy(m.a_stride, a->stride, a->dims);
    client_dims_copy(m.b_stride, b->stride, a->dims);
    if (!(code = client_do_ask(c, WIRE_EQUAL, &m, &s)))
        *ret_equal = s.v[0] != 0;
    return code;
}

/* ---- code ---- */

int client_module(struct client *c, const uint8_t sha256[32], uint32_t *ret_module)
{
    struct wire_module m;
    struct wire_slot s;
    int code;

    memcpy(m.sha256, sha256, sizeof m.sha256);
    if (!(code = client_do_ask(c, WIRE_MODULE, &m, &s)))
        *ret_module = (uint32_t)s.v[0];
    return code;
}

int client_function(struct client *c, uint32_t module, const char *name, uint32_t n, uint32_t *ret_function,
                    struct wire_function_info *ret_info)
{
    const struct wire_function m = {module, 0};
    struct wire_slot s;
    int code;

    if (n > WIRE_NAME)
        return WIRE_INVALID;
    if (!(code = client_ask(c, WIRE_FUNCTION, &m, (struct client_part){name, n}, &s, ret_info, sizeof *ret_info)))
        *ret_function = (uint32_t)s.v[0];
    return code;
}

int client_symbol(struct client *c, uint32_t module, const char *name, uint64_t *ret_addr, uint64_t *ret_bytes)
{
    const struct wire_symbol m = {module, 0};
    size_t n = strlen(name);
    struct wire_slot s;
    int code;

    if (n > WIRE_NAME)
        return WIRE_INVALID;
    if (!(code = client_ask(c, WIRE_SYMBOL, &m, (struct client_part){name, n}, &s, NULL, 0)))
        *ret_addr = s.v[0], *ret_bytes = s.v[1];
    return code;
}

int client_func_attr(struct client *c, uint32_t function, int32_t attr, int32_t value)
{
    const struct wire_func_attr m = {function, attr, value, 0};

    return client_do_post(c, WIRE_FUNC_ATTR, &m);
}

int client_occupancy(struct client *c, uint32_t function, uint32_t threads, uint64_t shared, int *ret_blocks)
{
    const struct wire_occupancy m = {function, threads, shared};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_OCCUPANCY, &m, &s);

    if (!code)
        *ret_blocks = (int)s.v[0];
    return code;
}

/* A launch against the device's limits: WIRE_OK or the code that a driver would return. */
static int client_launch_check(const struct wire_info *d, const struct client_launch *l)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

    for (int i = 0; i < 3; i++)
        if (!l->grid[i] || !l->block[i] || l->grid[i] > (uint32_t)d->grid[i] || l->block[i] > (uint32_t)d->dim[i])
            return WIRE_BAD_CONFIG;
    if (threads > (uint64_t)d->threads_block)
        return WIRE_BAD_CONFIG;
    if (!l->info)
        return WIRE_OK;
    if (l->info->max_threads && threads > l->info->max_threads)
        return WIRE_TOO_MANY_RESOURCES;
    return l->shared > l->info->max_dynamic ? WIRE_INVALID : WIRE_OK;
}

/* Fills m from a launch that fits the limits; else returns why not. */
static int client_launch_message(const struct client *c, const struct client_launch *l, struct wire_launch *m)
{
    int code = client_launch_check(&c->info, l);

    if (code || l->attrs > WIRE_ATTRS)
        return code ? code : WIRE_INVALID;
    memset(m, 0, sizeof *m);
    m->function = l->function, m->stream = l->stream;
    memcpy(m->grid, l->grid, sizeof m->grid);
    memcpy(m->block, l->block, sizeof m->block);
    m->shared = l->shared, m->attrs = l->attrs;
    for (uint32_t i = 0; i < l->attrs; i++)
        m->attr[i] = l->attr[i];
    return WIRE_OK;
}

int client_launch(struct client *c, const struct client_launch *l)
{
    struct wire_launch m;
    int code = client_launch_message(c, l, &m);

    if (code || l->args_bytes > WIRE_ARGS)
        return code ? code : WIRE_INVALID;
    return client_post(c, WIRE_LAUNCH, &m, (struct client_part){l->args, l->args_bytes}, none);
}

int client_launch_args(struct client *c, const struct client_launch *l, void *const *args)
{
    uint8_t blob[32764]; /* CUDA's own limit */
    const struct wire_function_info *f = l->info;
    struct wire_launch m;
    int code = f ? client_launch_message(c, l, &m) : WIRE_INVALID;

    if (code || f->args_bytes > sizeof blob || f->params > WIRE_PARAMS)
        return code ? code : WIRE_UNSUPPORTED;
    memset(blob, 0, f->args_bytes);
    for (uint32_t i = 0; i < f->params; i++)
        if (f->param[i].offset + f->param[i].bytes <= sizeof blob)
            memcpy(blob + f->param[i].offset, args[i], f->param[i].bytes);
    return client_post(c, WIRE_LAUNCH, &m, (struct client_part){blob, f->args_bytes}, none);
}

int client_tensor_map(struct client *c, const struct wire_tensor_map *m, uint8_t ret[128])
{
    struct wire_slot s;

    return client_ask(c, WIRE_TENSOR_MAP, m, none, &s, ret, 128);
}

/* ---- order ---- */

int client_stream_create(struct client *c, uint32_t flags, int32_t priority, uint32_t *ret_stream)
{
    const struct wire_stream_create m = {flags, priority};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_STREAM_CREATE, &m, &s);

    if (!code)
        *ret_stream = (uint32_t)s.v[0];
    return code;
}

static int client_post_stream(struct client *c, unsigned op, uint32_t stream)
{
    const struct wire_stream m = {stream, 0};

    return client_do_post(c, op, &m);
}

int client_stream_destroy(struct client *c, uint32_t stream)
{
    return client_post_stream(c, WIRE_STREAM_DESTROY, stream);
}

int client_stream_sync(struct client *c, uint32_t stream)
{
    return client_post_stream(c, WIRE_STREAM_SYNC, stream);
}

int client_stream_query(struct client *c, uint32_t stream)
{
    const struct wire_stream m = {stream, 0};
    struct wire_slot s;

    return client_do_ask(c, WIRE_STREAM_QUERY, &m, &s);
}

int client_event_create(struct client *c, uint32_t flags, uint32_t *ret_event)
{
    const struct wire_event_create m = {flags, 0};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_EVENT_CREATE, &m, &s);

    if (!code)
        *ret_event = (uint32_t)s.v[0];
    return code;
}

static int client_post_event(struct client *c, unsigned op, uint32_t event, uint32_t stream)
{
    const struct wire_event m = {event, stream};

    return client_do_post(c, op, &m);
}

int client_event_destroy(struct client *c, uint32_t event)
{
    return client_post_event(c, WIRE_EVENT_DESTROY, event, 0);
}

int client_event_record(struct client *c, uint32_t event, uint32_t stream)
{
    return client_post_event(c, WIRE_EVENT_RECORD, event, stream);
}

int client_event_wait(struct client *c, uint32_t stream, uint32_t event)
{
    return client_post_event(c, WIRE_EVENT_WAIT, event, stream);
}

int client_event_sync(struct client *c, uint32_t event)
{
    return client_post_event(c, WIRE_EVENT_SYNC, event, 0);
}

int client_event_query(struct client *c, uint32_t event)
{
    const struct wire_event m = {event, 0};
    struct wire_slot s;

    return client_do_ask(c, WIRE_EVENT_QUERY, &m, &s);
}

int client_event_elapsed(struct client *c, uint32_t from, uint32_t to, float *ms)
{
    const struct wire_elapsed m = {from, to};
    struct wire_slot s;
    int code = client_do_ask(c, WIRE_ELAPSED, &m, &s);

    if (!code)
        memcpy(ms, &s.v[0], sizeof *ms); /* the low half: little endian */
    return code;
}

int client_device_sync(struct client *c)
{
    const struct wire_nothing m = {0};

    return client_do_post(c, WIRE_DEVICE_SYNC, &m);
}

int client_fence(struct client *c)
{
    const struct wire_nothing m = {0};
    struct wire_slot s;

    return client_do_ask(c, WIRE_FENCE, &m, &s);
}

int client_lack(struct client *c, enum wire_lack lack)
{
    const struct wire_note m = {lack, 0};

    return client_do_post(c, WIRE_NOTE, &m);
}
