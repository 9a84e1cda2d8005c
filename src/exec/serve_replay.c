/* serve_replay.c - the log played again: on memory that was filled anew, with the judge's values at each binding. Also
 * logs from elsewhere: each entry is checked as if a client had asked for it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/ctl.h"
#include "exec/exec_server.h"

/* Puts the device back to the log's beginning. */
static int serve_replay_begin_again(struct exec_server *s, struct err *e)
{
    struct replaying *r = &s->replay;

    if (player_fresh(&s->player, e) < 0)
        return -1;
    if (r->pool.room)
        pool_clear(&r->pool);
    else
        pool_init(&r->pool, WIRE_BASE, s->info.reserved, 0);
    r->pool.limit = s->context.pool.limit;
    saved_drop(s);
    r->at = 0;
    return 0;
}

int replay_begin(struct exec_server *s, const struct ctl_request *q, uint64_t *ret_moved, struct err *e)
{
    struct replaying *r = &s->replay;

    if (s->context.log.full)
        return err_set(e, ERR_INPUT, "the log is not whole: %s", s->context.why);
    player_poison(&s->player, (uint8_t)q->a);
    s->player.no_launches = q->b != 0;
    s->player.poisons = !(q->d == 1 && q->c);
    s->player.drains = q->d == 1 && q->c;
    r->blocks_vary = q->d & 4;
    if ((r->shuffled = q->d & 2))
        shuffle_init(&r->shuffle);
    r->played_from = q->tag;
    alike_clear(&r->alike);
    *ret_moved = q->c == 2 && saved_follow(s);
    if ((q->c ? saved_restore(s, e) : serve_replay_begin_again(s, e)) < 0)
        return -1;
    r->on = true;
    r->times = q->d == 1;
    r->call = 0;
    r->last = exec_log_last_call(&s->context.log);
    return 0;
}

bool replay_holds(const struct exec_server *s, uint64_t addr, uint64_t n)
{
    return pool_find(&s->replay.pool, addr, n) || context_is_symbol(&s->context, addr, n);
}

/* The pool as it is at this point; what the live run gave out is free again here, or the log is not the recording's. */
static bool serve_replay_follow(struct replaying *r, const struct log_entry *en)
{
    const struct wire_alloc *a = en->body;
    const struct wire_free *f = en->body;
    const struct log_give *g = en->body;

    switch (en->head.op) {
    case WIRE_ALLOC:
        return !en->head.result || pool_take_at(&r->pool, en->head.result, a->bytes, POOL_CLIENT, a->kind);
    case WIRE_FREE: return pool_give(&r->pool, f->addr, POOL_CLIENT);
    case LOG_GIVE: return pool_take_at(&r->pool, g->addr, g->n, POOL_JUDGE, 0);
    default: return true;
    }
}

/* True where the judge must act at this entry; *out tells what it is. */
static bool serve_replay_stops(struct replaying *r, const struct log_entry *en, struct ctl_reply *out)
{
    const struct log_binding *binding = en->body;
    const struct log_call *call = en->body;

    if (en->head.op != LOG_BIND && en->head.op != LOG_CALL_BEGIN && en->head.op != LOG_CALL_END)
        return false;
    out->stop = en->head.op;
    if (en->head.op == LOG_BIND) {
        out->v[0] = binding->addr, out->v[1] = binding->n, out->v[2] = binding->tag,
            out->v[3] = binding->call ? binding->call : r->call;
        return true;
    }
    out->v[0] = call->index;
    r->call = en->head.op == LOG_CALL_BEGIN ? call->index : 0;
    return true;
}

/* The last call of a whole recording, which is to be timed: from here on as where the state before it is kept. Memory
 * that it allocates is there already. */
static void serve_replay_time_from_here(struct exec_server *s)
{
    if (!s->player.error)
        s->player.error = s->ops->map(s->b, s->player.high);
    s->player.poisons = false;
    s->player.drains = true;
    s->replay.saved.at = s->replay.at;
    if (!s->player.no_launches)
        saved_clean(s);
}

static void serve_replay_play_entry(void *server, const struct log_entry *en)
{
    player_play(&((struct exec_server *)server)->player, en);
}

/* Bytes of the block that the entry frees; 0: it frees none. */
static uint64_t serve_replay_freed_bytes(const struct replaying *r, const struct log_entry *en)
{
    const struct wire_free *m = en->body;
    const struct pool_block *b = en->head.op == WIRE_FREE ? pool_find(&r->pool, m->addr, 1) : NULL;

    return b ? b->bytes : 0;
}

/* By turns of calls, as one order may hide what the other one shows: who reads what a block before it has left, or
 * takes a number and trusts that those who took lower ones are done. */
static void serve_replay_order_blocks(struct exec_server *s)
{
    enum backend_blocks how = s->replay.call % 2 ? BACKEND_BLOCKS_GIVE_WAY : BACKEND_BLOCKS_LAST_FIRST;

    if (s->ops->blocks)
        s->ops->blocks(s->b, s->replay.blocks_vary ? how : BACKEND_BLOCKS_IN_ORDER);
}

/* Where a call begins: is it like one that was played, and none that must be? Then what it asks for is left out. */
static void serve_replay_look_ahead(struct exec_server *s, const struct log_entry *en)
{
    const struct log_call *call = en->body;
    struct replaying *r = &s->replay;

    if (en->head.op == LOG_CALL_BEGIN)
        r->passes_over = call->index < r->played_from && !alike_add(&r->alike, &s->context.log, r->at);
    else if (en->head.op == LOG_CALL_END)
        r->passes_over = false;
}

void replay_next(struct exec_server *s, struct ctl_reply *out)
{
    struct replaying *r = &s->replay;
    struct log_entry en;
    uint64_t freed;

    serve_replay_order_blocks(s);
    while (!s->player.error && exec_log_next(&s->context.log, &r->at, &en) > 0) {
        serve_replay_look_ahead(s, &en);
        if (r->passes_over && alike_is_left_out(&en))
            continue;
        if (serve_replay_stops(r, &en, out))
            break;
        freed = serve_replay_freed_bytes(r, &en);
        if (!serve_replay_follow(r, &en)) {
            s->player.error = WIRE_REFUSED;
            snprintf(s->player.why, sizeof s->player.why, "the log does not follow from itself");
        }
        if (r->shuffled)
            shuffle_add(&r->shuffle, &en, freed);
        else
            player_play(&s->player, &en);
    }
    if (r->shuffled)
        shuffle_play(&r->shuffle, serve_replay_play_entry, s);
    if (out->stop != LOG_BIND) {
        out->v[1] = r->last;
        player_sync(&s->player);
    }
    if (out->stop == LOG_CALL_BEGIN && r->times && !s->player.drains && out->v[0] == r->last)
        serve_replay_time_from_here(s);
    if (s->ops->profile && out->stop != LOG_BIND && out->v[0] == r->last)
        s->ops->profile(s->b, out->stop == LOG_CALL_BEGIN);
    if (out->stop == LOG_CALL_END && out->v[0] + 1 == r->last && !r->times)
        saved_take(s);
}

/* ---- timing ---- */

/* Plays the last call's entries; its bindings came before. */
static void serve_replay_play_call(struct exec_server *s)
{
    struct replaying *r = &s->replay;
    struct log_entry en;

    while (!s->player.error && exec_log_next(&s->context.log, &r->at, &en) > 0 && en.head.op != LOG_CALL_END) {
        serve_replay_follow(r, &en);
        player_play(&s->player, &en);
    }
    r->call = 0;
}

/* Values that are bound after the call's mark and before anything else of it. */
static bool serve_replay_binds_first(struct exec_server *s, struct ctl_reply *out)
{
    size_t at = s->replay.at;
    struct log_entry en;

    if (exec_log_next(&s->context.log, &at, &en) <= 0 || en.head.op != LOG_BIND)
        return false;
    s->replay.at = at;
    return serve_replay_stops(&s->replay, &en, out);
}

int replay_time(struct exec_server *s, uint64_t pad_ns, struct ctl_reply *out, struct err *e)
{
    struct replaying *r = &s->replay;
    uint64_t start, queued;
    float ms = 0;

    if (!s->ops->cold)
        return err_set(e, ERR_INPUT, "this executor has no clock of a device: its calls are replayed, not timed");
    if (!r->on || r->call != r->last)
        return err_set(e, ERR_INPUT, "only the last call of a log is timed, once its replay stands before it");
    if (serve_replay_binds_first(s, out))
        return 0;
    for (int i = 0; i < 2 && !s->player.error; i++)
        if (!r->timer[i])
            s->player.error = s->ops->event(s->b, 0, &r->timer[i]);
    s->ops->cold(s->b);
    player_sync(&s->player);
    start = clock_now_ns();
    s->ops->pad(s->b, pad_ns);
    s->ops->record(s->b, r->timer[0], BACKEND_STREAM_LEGACY);
    serve_replay_play_call(s);
    s->ops->record(s->b, r->timer[1], BACKEND_STREAM_LEGACY);
    queued = clock_now_ns();
    player_sync(&s->player);
    out->clock_ms = (double)(clock_now_ns() - start) * 1e-6;
    out->v[0] = queued - start;
    if (!s->player.error)
        s->player.error = s->ops->elapsed(s->b, r->timer[0], r->timer[1], &ms);
    out->ms = ms;
    return 0;
}

/* ---- a log from elsewhere ---- */

/* The entry as the request that it was. False: it was none. */
static bool serve_replay_as_request(const struct log_entry *en, struct wire_request *r)
{
    if (en->head.op == LOG_ECHO) { /* a copy on the device, as far as checks go */
        r->head.op = WIRE_COPY;
        memcpy(&r->body.COPY, en->body, sizeof r->body.COPY);
        return true;
    }
    if (en->head.op >= WIRE_OP_COUNT || en->n_tail > WIRE_CHUNK)
        return false;
    r->head = (struct wire_head){.op = en->head.op, .tail = (uint32_t)en->n_tail};
    memcpy(&r->body, en->body, wire_size(en->head.op));
    r->tail = en->tail;
    return true;
}

/* What only the device can tell is taken as it stands: the device says the same again, or the replay fails. */
static void serve_replay_take_result(struct client_context *l, const struct log_entry *en, const struct wire_request *r)
{
    struct wire_function_info any = {.max_dynamic = (uint32_t)l->info->shared_optin};

    if (en->head.op == WIRE_MODULE && context_find_module(l, r->body.MODULE.sha256) < 0)
        context_add_module(l, r->body.MODULE.sha256);
    else if (en->head.op == WIRE_FUNCTION)
        context_add_function(l, r->body.FUNCTION.module, &any);
    else if (en->head.op == WIRE_SYMBOL && en->head.result - WIRE_BASE >= l->info->reserved)
        context_add_symbol(l, en->head.result, (uint64_t)1 << 20);
}

/* Carries out an entry of the judge's own in a context. False: it cannot be. */
static bool serve_replay_take_own(struct client_context *l, const struct log_entry *en)
{
    const struct log_give *g = en->body;
    const struct log_binding *binding = en->body;

    switch (en->head.op) {
    case LOG_GIVE: return pool_take_at(&l->pool, g->addr, g->n, POOL_JUDGE, 0);
    case LOG_BIND: return context_holds(l, binding->addr, binding->n);
    default: return en->head.op == LOG_CALL_BEGIN || en->head.op == LOG_CALL_END;
    }
}

/* True where the entry could have been logged in this context. */
static bool serve_replay_acceptable(struct client_context *l, const struct log_entry *en)
{
    struct wire_request r;
    uint64_t result = 0;

    if (en->head.op >= LOG_BIND && en->head.op != LOG_ECHO)
        return serve_replay_take_own(l, en);
    if (!serve_replay_as_request(en, &r) || context_take(l, &r, &result) != WIRE_OK)
        return false;
    if (en->head.op == WIRE_ALLOC || en->head.op == WIRE_STREAM_CREATE || en->head.op == WIRE_EVENT_CREATE)
        return result == en->head.result;
    serve_replay_take_result(l, en, &r);
    return en->head.op != WIRE_FUNCTION || en->head.result == l->n_functions - 1;
}

/* ERR_INPUT where the log holds what no client may do. */
static int serve_replay_check_log(struct client_context *l, struct err *e)
{
    struct log_entry en;
    size_t at = 0;
    int more;

    while ((more = exec_log_next(&l->log, &at, &en)) > 0)
        if (!serve_replay_acceptable(l, &en))
            return err_set(e, ERR_INPUT, "byte %zu of the log: %s cannot follow from what comes before%s%s", at,
                           exec_log_op_name(en.head.op), l->why[0] ? ": " : "", l->why);
    return more < 0 ? err_set(e, ERR_INPUT, "byte %zu of the log is no entry", at) : 0;
}

int context_adopt(struct exec_server *s, int fd, uint64_t n, struct err *e)
{
    struct exec_log *l = &s->context.log;

    play_queue_drain(&s->queue);
    ring_close(&s->ring);
    context_clear(&s->context);
    play_queue_reset(&s->queue);
    s->replay.on = false;
    if (n > l->max || pread(fd, l->p, n, 0) != (ssize_t)n)
        return err_set(e, ERR_INPUT, "the log cannot be read");
    l->n = n;
    if (serve_replay_check_log(&s->context, e) < 0) {
        context_clear(&s->context);
        return -1;
    }
    play_queue_skip(&s->queue);
    return 0;
}
