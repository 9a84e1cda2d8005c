/* exec_serve.c - the client's requests: copied, taken apart, checked, logged, played, answered. exec_serve_ask_NAME
 * answers the request NAME: WIRE_OK or a code of wire.h. */
#include <string.h>
#include <time.h>

#include "exec/exec_server.h"

#define GRID_NS 1000000u /* replies that depend on the device's progress leave on this grid within a call */

struct reply {
    uint64_t v[4];
    size_t n; /* bytes in s->down */
};

/* ---- questions that the device answers; drained before ---- */

/* Reads bytes for the client; they follow the reply. The functions below answer their requests the same way. */
static int exec_serve_ask_down(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_down *m = &r->body.DOWN;
    int code = s->player.error ? s->player.error : s->ops->read(s->b, s->down, m->addr, m->n);

    if (code)
        return code;
    out->n = m->n;
    context_came_down(&s->context, m->addr, s->down, m->n);
    return WIRE_OK;
}

/* v[0]: whether two views are equal. */
static int exec_serve_ask_equal(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    bool same = false;
    int code = s->player.error ? s->player.error : s->ops->equal(s->b, &r->body.EQUAL, &same);

    out->v[0] = same;
    return code;
}

/* Loads an image that a compile worker wrote; WIRE_NOT_FOUND for others. The handle is in out. */
static int exec_serve_ask_module(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    const uint8_t *hash = r->body.MODULE.sha256;
    int known = context_find_module(&s->context, hash), code;

    if (known >= 0)
        return out->v[0] = (uint64_t)known, WIRE_OK;
    if (!images_find(&s->images, hash))
        return context_refuse(&s->context, WIRE_NOT_FOUND, "MODULE: no compile worker wrote this image");
    if ((code = player_module(&s->player, s->context.n_modules, hash)))
        return context_refuse(&s->context, code, "MODULE: %s", s->ops->why(s->b));
    out->v[0] = context_add_module(&s->context, hash);
    context_count_image(&s->context, image_constants(images_find(&s->images, hash)));
    return WIRE_OK;
}

/* The function's number and facts. */
static int exec_serve_ask_function(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    struct wire_function_info info;
    uint32_t module = r->body.FUNCTION.module;
    int code = player_function(&s->player, s->context.n_functions, module, (const char *)r->tail, r->head.tail, &info);

    if (code)
        return code;
    out->v[0] = context_add_function(&s->context, module, &info);
    memcpy(s->down, &info, out->n = sizeof info);
    return WIRE_OK;
}

/* v[0], v[1]: a global variable's address and bytes. */
static int exec_serve_ask_symbol(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    int code = player_symbol(&s->player, r->body.SYMBOL.module, (const char *)r->tail, r->head.tail, &out->v[0],
                             &out->v[1]);

    if (!code)
        context_add_symbol(&s->context, out->v[0], out->v[1]);
    return code;
}

/* v[0]: blocks of the function on a multiprocessor. */
static int exec_serve_ask_occupancy(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_occupancy *m = &r->body.OCCUPANCY;
    int blocks = 0, code = s->ops->occupancy(s->b, s->player.functions[m->function], m->threads, m->shared, &blocks);

    out->v[0] = (uint64_t)blocks;
    return code;
}

static int exec_serve_ask_tensor_map(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    return s->ops->tensor_map(s->b, &r->body.TENSOR_MAP, memset(s->down, 0, out->n = 128));
}

static int exec_serve_ask_stream_query(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    (void)out;
    return s->ops->query_stream(s->b, player_stream(&s->player, r->body.STREAM_QUERY.stream));
}

static int exec_serve_ask_event_query(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    (void)out;
    return s->ops->query_event(s->b, s->player.events[r->body.EVENT_QUERY.event]);
}

/* v[0]: ms between two events, as a float's bits. */
static int exec_serve_ask_elapsed(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    const struct wire_elapsed *m = &r->body.ELAPSED;
    float ms = 0;
    int code = s->ops->elapsed(s->b, s->player.events[m->from], s->player.events[m->to], &ms);

    memcpy(&out->v[0], &ms, sizeof ms);
    return code;
}

/* v[0], v[1]: bytes that are free, and all of the client's. */
static int exec_serve_ask_mem_info(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    (void)r;
    out->v[0] = s->context.pool.limit - s->context.pool.used;
    out->v[1] = s->context.pool.limit;
    return WIRE_OK;
}

static int exec_serve_ask_fence(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    (void)s, (void)r, (void)out;
    return WIRE_OK;
}

struct exec_serve_ask {
    int (*f)(struct exec_server *s, const struct wire_request *r, struct reply *out);
    bool undrained; /* the device is not asked */
};
static const struct exec_serve_ask asks[WIRE_OP_COUNT] = {
    [WIRE_DOWN] = {exec_serve_ask_down, false}, [WIRE_EQUAL] = {exec_serve_ask_equal, false},
    [WIRE_MODULE] = {exec_serve_ask_module, false},
    [WIRE_FUNCTION] = {exec_serve_ask_function, false}, [WIRE_SYMBOL] = {exec_serve_ask_symbol, false},
    [WIRE_OCCUPANCY] = {exec_serve_ask_occupancy, true}, [WIRE_TENSOR_MAP] = {exec_serve_ask_tensor_map, true},
    [WIRE_STREAM_QUERY] = {exec_serve_ask_stream_query, false},
    [WIRE_EVENT_QUERY] = {exec_serve_ask_event_query, false},
    [WIRE_ELAPSED] = {exec_serve_ask_elapsed, false}, [WIRE_MEM_INFO] = {exec_serve_ask_mem_info, true},
    [WIRE_FENCE] = {exec_serve_ask_fence, true},
};

/* ---- one request ---- */

/* Waits until a multiple of GRID_NS since the call began, so that reading tells little about time. */
static void exec_serve_wait_for_grid(const struct exec_server *s)
{
    uint64_t passed = clock_now_ns() - s->context.call_start, left = GRID_NS - passed % GRID_NS;
    const struct timespec t = {0, (long)left};

    nanosleep(&t, NULL);
}

/* An upload that equals what came down, if the device still holds those bytes. To look, the device is waited for: in a
 * call that is a read, and all that is answered later is answered on the grid. */
static const struct context_down *exec_serve_echo_of(struct exec_server *s, const struct wire_request *r)
{
    const struct context_down *d = r->head.op == WIRE_UP ? context_echo(&s->context, r->tail, r->head.tail) : NULL;
    bool same;

    if (!d || (d->addr < r->body.UP.addr + d->n && r->body.UP.addr < d->addr + d->n))
        return NULL;
    play_queue_drain(&s->queue);
    s->unanswered += s->dry; /* whether the bytes are still there is the launches' doing */
    same = !s->player.error && !s->ops->read(s->b, s->down, d->addr, d->n) && !memcmp(s->down, r->tail, d->n);
    context_waited(&s->context);
    if (s->context.call)
        exec_serve_wait_for_grid(s);
    return same ? d : NULL;
}

/* Where entries are played as they come, one that waits for the device (an allocation beside streams of the program's
 * own) would be a clock: it counts as a read, and goes on on the grid. */
static void exec_serve_count_wait(struct exec_server *s)
{
    if (s->context.call && s->player.waited) {
        context_waited(&s->context);
        exec_serve_wait_for_grid(s);
    }
    s->player.waited = false;
}

/* Has the client asked for what launches that were left out would have made? */
static bool exec_serve_is_unanswerable(const struct exec_server *s, unsigned op)
{
    return s->dry && (op == WIRE_DOWN || op == WIRE_EQUAL || op == WIRE_ELAPSED);
}

/* Makes room in the log for an entry whose struct and tail have n and n_tail bytes. Where none is left, all entries are
 * played and dropped: the client goes on, and its recording cannot be replayed. */
static void exec_serve_make_room(struct exec_server *s, size_t n, size_t n_tail)
{
    if (exec_log_has_room(&s->context.log, n, n_tail))
        return;
    play_queue_drain(&s->queue);
    if (!s->player.error)
        s->ops->sync(s->b); /* uploads read the log's own memory */
    exec_log_drop(&s->context.log);
    play_queue_reset(&s->queue);
}

/* Logs a checked request and carries it out, at once or by the thread of the queue. */
static int exec_serve_carry_out(struct exec_server *s, const struct wire_request *r, struct reply *out)
{
    const struct exec_serve_ask *a = &asks[r->head.op];
    int code;

    if (exec_serve_is_unanswerable(s, r->head.op)) {
        s->unanswered++;
        return context_refuse(&s->context, WIRE_REFUSED, "values are asked for, and nothing was computed");
    }
    if (wire_kind(r->head.op) & WIRE_LOGGED)
        exec_serve_make_room(s, wire_size(r->head.op), r->head.tail);
    if (!a->f) {
        if (!context_log(&s->context, r, out->v[0], exec_serve_echo_of(s, r)))
            return WIRE_REFUSED;
        play_queue_go(&s->queue);
        if (!s->queue.has_thread) /* else the thread waits, and this answer does not */
            exec_serve_count_wait(s);
        return WIRE_OK;
    }
    if (!a->undrained)
        play_queue_drain(&s->queue);
    code = a->f(s, r, out);
    if (code == WIRE_OK || !(wire_kind(r->head.op) & WIRE_LOGGED)) /* those only count */
        context_log(&s->context, r, out->v[0], NULL);
    if (!a->undrained)
        play_queue_skip(&s->queue);
    return code;
}

/* Serves one request of the ring: check, carry out, reply. */
static void exec_serve_serve(struct exec_server *s, const struct wire_request *r)
{
    struct reply out = {{0}, 0};
    int code = context_take(&s->context, r, &out.v[0]);

    if (code == WIRE_OK)
        code = exec_serve_carry_out(s, r, &out);
    if (!(wire_kind(r->head.op) & WIRE_REPLIES)) {
        if (code)
            ring_error(&s->ring, code);
        return;
    }
    if (s->context.call && (wire_kind(r->head.op) & WIRE_READS))
        exec_serve_wait_for_grid(s);
    ring_reply(&s->ring, &r->head, code, out.v, s->down, code ? 0 : out.n);
}

/* Ends the client's ring after a request that cannot be read. */
static void exec_serve_broken(struct exec_server *s, const char *what)
{
    context_refuse(&s->context, WIRE_REFUSED, "%s", what);
    ring_error(&s->ring, WIRE_REFUSED);
    ring_close(&s->ring);
}

int serve_some(struct exec_server *s, int most)
{
    struct wire_request r;
    int done = 0;
    size_t n;

    while (s->ring.area && !s->paused && done < most) {
        int got = ring_take(&s->ring, s->msg, &n);

        if (got == 0)
            break;
        if (got < 0 || !wire_parse(s->msg, n, &r))
            exec_serve_broken(s, "a request that is none: the ring was written to by something else");
        else
            exec_serve_serve(s, &r);
        done++;
    }
    return done;
}

void serve_settle(struct exec_server *s)
{
    while (serve_some(s, 1 << 20) > 0)
        ;
    play_queue_drain(&s->queue);
}

bool serve_log_own(struct exec_server *s, unsigned op, const void *body, size_t n)
{
    exec_serve_make_room(s, n, 0);
    return exec_log_add(&s->context.log, op, s->context.call ? LOG_IN_CALL : 0, 0, body, n, NULL, 0, NULL);
}

bool serve_holds(const struct exec_server *s, uint64_t addr, uint64_t n)
{
    return s->replay.on ? replay_holds(s, addr, n) : context_holds(&s->context, addr, n);
}
