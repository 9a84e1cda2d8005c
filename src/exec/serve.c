/* serve.c - the front's requests: copied, taken apart, checked, logged, played, answered. */
#include <string.h>
#include <time.h>

#include "exec/server.h"

#define GRID_NS 1000000u /* replies that depend on the device's progress leave on this grid within a call */

struct reply {
    uint64_t v[4];
    size_t n; /* bytes in s->down */
};

/* ---- questions that the device answers; drained before ---- */

static int ask_down(struct server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_down *m = &r->body.DOWN;
    int code = s->player.error ? s->player.error : s->ops->read(s->b, s->down, m->addr, m->n);

    if (code)
        return code;
    out->n = m->n;
    life_came_down(&s->life, m->addr, s->down, m->n);
    return WIRE_OK;
}

static int ask_equal(struct server *s, const struct wire_request *r, struct reply *out)
{
    bool same = false;
    int code = s->player.error ? s->player.error : s->ops->equal(s->b, &r->body.EQUAL, &same);

    out->v[0] = same;
    return code;
}

static int ask_module(struct server *s, const struct wire_request *r, struct reply *out)
{
    const uint8_t *hash = r->body.MODULE.sha256;
    int known = life_find_module(&s->life, hash), code;

    if (known >= 0)
        return out->v[0] = (uint64_t)known, WIRE_OK;
    if (!images_find(&s->images, hash))
        return life_refuse(&s->life, WIRE_NOT_FOUND, "MODULE: no compile worker wrote this image");
    if ((code = player_module(&s->player, s->life.n_modules, hash)))
        return life_refuse(&s->life, code, "MODULE: %s", s->ops->why(s->b));
    out->v[0] = life_add_module(&s->life, hash);
    life_count_image(&s->life, image_constants(images_find(&s->images, hash)));
    return WIRE_OK;
}

static int ask_function(struct server *s, const struct wire_request *r, struct reply *out)
{
    struct wire_function_info info;
    uint32_t module = r->body.FUNCTION.module;
    int code = player_function(&s->player, s->life.n_functions, module, (const char *)r->tail, r->head.tail, &info);

    if (code)
        return code;
    out->v[0] = life_add_function(&s->life, module, &info);
    memcpy(s->down, &info, out->n = sizeof info);
    return WIRE_OK;
}

static int ask_symbol(struct server *s, const struct wire_request *r, struct reply *out)
{
    int code = player_symbol(&s->player, r->body.SYMBOL.module, (const char *)r->tail, r->head.tail, &out->v[0],
                             &out->v[1]);

    if (!code)
        life_add_symbol(&s->life, out->v[0], out->v[1]);
    return code;
}

static int ask_occupancy(struct server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_occupancy *m = &r->body.OCCUPANCY;
    int blocks = 0, code = s->ops->occupancy(s->b, s->player.functions[m->function], m->threads, m->shared, &blocks);

    out->v[0] = (uint64_t)blocks;
    return code;
}

static int ask_tensor_map(struct server *s, const struct wire_request *r, struct reply *out)
{
    return s->ops->tensor_map(s->b, &r->body.TENSOR_MAP, memset(s->down, 0, out->n = 128));
}

static int ask_stream_query(struct server *s, const struct wire_request *r, struct reply *out)
{
    (void)out;
    return s->ops->query_stream(s->b, player_stream(&s->player, r->body.STREAM_QUERY.stream));
}

static int ask_event_query(struct server *s, const struct wire_request *r, struct reply *out)
{
    (void)out;
    return s->ops->query_event(s->b, s->player.events[r->body.EVENT_QUERY.event]);
}

static int ask_elapsed(struct server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_elapsed *m = &r->body.ELAPSED;
    float ms = 0;
    int code = s->ops->elapsed(s->b, s->player.events[m->from], s->player.events[m->to], &ms);

    memcpy(&out->v[0], &ms, sizeof ms);
    return code;
}

static int ask_mem_info(struct server *s, const struct wire_request *r, struct reply *out)
{
    (void)r;
    out->v[0] = s->life.pool.limit - s->life.pool.used;
    out->v[1] = s->life.pool.limit;
    return WIRE_OK;
}

static int ask_fence(struct server *s, const struct wire_request *r, struct reply *out)
{
    (void)s, (void)r, (void)out;
    return WIRE_OK;
}

struct ask {
    int (*f)(struct server *s, const struct wire_request *r, struct reply *out);
    bool undrained; /* the device is not asked */
};
static const struct ask asks[WIRE_OP_COUNT] = {
    [WIRE_DOWN] = {ask_down, false}, [WIRE_EQUAL] = {ask_equal, false}, [WIRE_MODULE] = {ask_module, false},
    [WIRE_FUNCTION] = {ask_function, false}, [WIRE_SYMBOL] = {ask_symbol, false},
    [WIRE_OCCUPANCY] = {ask_occupancy, true}, [WIRE_TENSOR_MAP] = {ask_tensor_map, true},
    [WIRE_STREAM_QUERY] = {ask_stream_query, false}, [WIRE_EVENT_QUERY] = {ask_event_query, false},
    [WIRE_ELAPSED] = {ask_elapsed, false}, [WIRE_MEM_INFO] = {ask_mem_info, true}, [WIRE_FENCE] = {ask_fence, true},
};

/* ---- one request ---- */

static void wait_for_grid(const struct server *s)
{
    uint64_t passed = now_ns() - s->life.call_start, left = GRID_NS - passed % GRID_NS;
    const struct timespec t = {0, (long)left};

    nanosleep(&t, NULL);
}

/* An upload that equals what came down, if the device still holds those bytes. To look, the device is waited for: in a
 * call that is a read, and all that is answered later is answered on the grid. */
static const struct life_down *echo_of(struct server *s, const struct wire_request *r)
{
    const struct life_down *d = r->head.op == WIRE_UP ? life_echo(&s->life, r->tail, r->head.tail) : NULL;
    bool same;

    if (!d || (d->addr < r->body.UP.addr + d->n && r->body.UP.addr < d->addr + d->n))
        return NULL;
    play_queue_drain(&s->queue);
    same = !s->player.error && !s->ops->read(s->b, s->down, d->addr, d->n) && !memcmp(s->down, r->tail, d->n);
    life_waited(&s->life);
    if (s->life.call)
        wait_for_grid(s);
    return same ? d : NULL;
}

/* Where entries are played as they come, one that waits for the device (an allocation beside streams of the program's
 * own) would be a clock: it counts as a read, and goes on on the grid. */
static void count_wait(struct server *s)
{
    if (s->life.call && s->player.waited) {
        life_waited(&s->life);
        wait_for_grid(s);
    }
    s->player.waited = false;
}

static int carry_out(struct server *s, const struct wire_request *r, struct reply *out)
{
    const struct ask *a = &asks[r->head.op];
    int code;

    if (!a->f) {
        if (!life_log(&s->life, r, out->v[0], echo_of(s, r)))
            return WIRE_REFUSED;
        play_queue_go(&s->queue);
        if (!s->queue.has_thread) /* else the thread waits, and this answer does not */
            count_wait(s);
        return WIRE_OK;
    }
    if (!a->undrained)
        play_queue_drain(&s->queue);
    code = a->f(s, r, out);
    if (code == WIRE_OK || !(wire_kind(r->head.op) & WIRE_LOGGED)) /* those only count */
        life_log(&s->life, r, out->v[0], NULL);
    if (!a->undrained)
        play_queue_skip(&s->queue);
    return code;
}

static void serve(struct server *s, const struct wire_request *r)
{
    struct reply out = {{0}, 0};
    int code = life_take(&s->life, r, &out.v[0]);

    if (code == WIRE_OK)
        code = carry_out(s, r, &out);
    if (!(wire_kind(r->head.op) & WIRE_REPLIES)) {
        if (code)
            ring_error(&s->ring, code);
        return;
    }
    if (s->life.call && (wire_kind(r->head.op) & WIRE_READS))
        wait_for_grid(s);
    ring_reply(&s->ring, &r->head, code, out.v, s->down, code ? 0 : out.n);
}

static void broken(struct server *s, const char *what)
{
    life_refuse(&s->life, WIRE_REFUSED, "%s", what);
    ring_error(&s->ring, WIRE_REFUSED);
    ring_close(&s->ring);
}

int serve_some(struct server *s, int most)
{
    struct wire_request r;
    int done = 0;
    size_t n;

    while (s->ring.area && !s->paused && done < most) {
        int got = ring_take(&s->ring, s->msg, &n);

        if (got == 0)
            break;
        if (got < 0 || !wire_parse(s->msg, n, &r))
            broken(s, "a request that is none: the ring was written to by something else");
        else
            serve(s, &r);
        done++;
    }
    return done;
}

void serve_settle(struct server *s)
{
    while (serve_some(s, 1 << 20) > 0)
        ;
    play_queue_drain(&s->queue);
}

bool serve_log_own(struct server *s, unsigned op, const void *body, size_t n)
{
    return exec_log_add(&s->life.log, op, s->life.call ? LOG_IN_CALL : 0, 0, body, n, NULL, 0, NULL);
}

bool serve_holds(const struct server *s, uint64_t addr, uint64_t n)
{
    return s->replay.on ? replay_holds(s, addr, n) : life_holds(&s->life, addr, n);
}
