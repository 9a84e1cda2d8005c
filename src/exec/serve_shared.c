/* serve_shared.c - memory of the judge's that this recording maps too: inputs that nobody copies, and tiles of outputs
 * on their way to the judge's own context. It lies in the upper half of the addresses, where no allocation comes. */
#include <string.h>

#include "base/dtype.h"
#include "exec/ctl.h"
#include "exec/exec_server.h"

#define UNIT ((uint64_t)2 << 20)

/* The shared memory that holds the range; NULL: none. */
static struct shared *serve_shared_find(struct exec_server *s, uint64_t addr, uint64_t n)
{
    for (int i = 0; i < SERVER_SHARES; i++) {
        struct shared *m = &s->shared[i];

        if (m->addr && addr >= m->addr && n <= m->bytes && addr - m->addr <= m->bytes - n)
            return m;
    }
    return NULL;
}

void shared_clear(struct exec_server *s)
{
    if (s->ops->unshare)
        s->ops->unshare(s->b);
    memset(s->shared, 0, sizeof s->shared);
}

/* Behind what is there already; 0: there is no more room. */
static uint64_t serve_shared_place(const struct exec_server *s, uint64_t bytes, int *ret_i)
{
    uint64_t at = WIRE_BASE + s->info.reserved / 2;
    int i = 0;

    while (i < SERVER_SHARES && s->shared[i].addr) {
        at = s->shared[i].addr + (s->shared[i].bytes + UNIT - 1) / UNIT * UNIT + UNIT;
        i++;
    }
    *ret_i = i;
    return i < SERVER_SHARES && bytes <= s->info.reserved / 4 &&
           at + bytes <= WIRE_BASE + s->info.reserved ? at : 0;
}

int shared_add(struct exec_server *s, const struct ctl_request *q, int fd, struct ctl_reply *out, struct err *e)
{
    struct shared m = {.bytes = q->a, .inputs = q->b};
    struct log_give g = {0, q->b};
    int i;

    if (!s->ops->share || fd < 0 || !m.bytes || m.inputs > m.bytes || !(m.addr = serve_shared_place(s, m.bytes, &i)))
        return err_set(e, ERR_INPUT, "memory that cannot be shared");
    if (s->ops->share(s->b, fd, m.addr, m.bytes, e) < 0)
        return -1;
    s->shared[i] = m;
    out->v[0] = g.addr = m.addr;
    if (!m.inputs)
        return 0;
    if (!pool_take_at(&s->context.pool, m.addr, m.inputs, POOL_JUDGE, 0)) {
        err_set(e, ERR_ENV, "no %llu bytes of device memory are left", (unsigned long long)m.inputs);
        return err_lack(e, LACK_DEVICE);
    }
    serve_log_own(s, LOG_GIVE, &g, sizeof g);
    play_queue_go(&s->queue);
    return 0;
}

int shared_bound(struct exec_server *s, const struct ctl_request *q, struct err *e)
{
    const struct log_binding m = {q->a, q->d, q->tag, s->context.call};

    if (!s->replay.on)
        serve_settle(s);
    if (!serve_shared_find(s, q->a, q->d) || !serve_holds(s, q->a, q->d))
        return err_set(e, ERR_INPUT, "values do not lie within shared memory");
    if (!s->replay.on) {
        serve_log_own(s, LOG_BIND, &m, sizeof m);
        play_queue_go(&s->queue);
        play_queue_drain(&s->queue);
    }
    if (s->ops->push && !s->player.error)
        s->player.error = s->ops->push(s->b, q->a, q->d);
    return 0;
}

static int serve_shared_failed(const struct exec_server *s, struct err *e)
{
    return err_set(e, ERR_INPUT, "the device has failed: %s", s->player.why);
}

int shared_pull(struct exec_server *s, const struct ctl_request *q, struct err *e)
{
    if (!s->replay.on)
        serve_settle(s);
    if (!serve_shared_find(s, q->a, q->b))
        return err_set(e, ERR_INPUT, "this is no shared memory");
    if (player_sync(&s->player) || (s->ops->pull && s->ops->pull(s->b, q->a, q->b)))
        return serve_shared_failed(s, e);
    return 0;
}

/* Bytes of an element; 0: the copy would be a cast, or of no type. */
static uint64_t serve_shared_item_of(const struct wire_strided *m)
{
    if (m->to_dtype >= DT_COUNT || m->to_dtype != m->from_dtype)
        return 0;
    return dt_size((enum dtype)m->to_dtype) * (uint64_t)dt_components((enum dtype)m->to_dtype);
}

/* Bytes of the tile; 0: its shape is impossible. */
static uint64_t serve_shared_bytes_of(const struct wire_strided *m)
{
    uint64_t n = m->dims <= WIRE_DIMS ? serve_shared_item_of(m) : 0;

    for (uint32_t i = 0; i < m->dims && n; i++)
        n = m->size[i] > 0 && n <= ((uint64_t)1 << 40) / (uint64_t)m->size[i] ? n * (uint64_t)m->size[i] : 0;
    return n;
}

/* True where the tile's source lies within 'span' bytes. */
static bool serve_shared_within(const struct wire_strided *m, uint64_t span, uint64_t item)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < m->dims; i++) {
        uint64_t steps = (uint64_t)(m->size[i] - 1), stride = (uint64_t)m->from_stride[i];

        if (m->from_stride[i] < 0 || (stride && steps > span / stride))
            return false;
        last += steps * stride;
    }
    return last < span && (last + 1) * item <= span;
}

int shared_tile(struct exec_server *s, const struct wire_strided *m, uint64_t span, struct err *e)
{
    uint64_t n = serve_shared_bytes_of(m);
    const struct shared *to = serve_shared_find(s, m->to, n);

    if (!s->replay.on)
        serve_settle(s);
    if (!n || !to || to->inputs || !serve_holds(s, m->from, span) ||
        !serve_shared_within(m, span, serve_shared_item_of(m)))
        return err_set(e, ERR_INPUT, "what should be looked at does not lie within one allocation");
    if (player_sync(&s->player))
        return serve_shared_failed(s, e);
    if (m->dims == 1 && m->from_stride[0] == 1)
        s->player.error = s->ops->copy(s->b, m->to, m->from, n, BACKEND_STREAM_LEGACY);
    else
        s->player.error = s->ops->strided(s->b, m, BACKEND_STREAM_LEGACY);
    if (player_sync(&s->player) || (s->ops->pull && s->ops->pull(s->b, m->to, n)))
        return serve_shared_failed(s, e);
    return 0;
}
