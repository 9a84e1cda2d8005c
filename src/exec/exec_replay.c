/* exec_replay.c - the judge's side of replays and of timing: what is bound where the log says that values were bound.
 * */
#include <stdio.h>

#include "exec/exec_ask.h"

typedef int bind_fn(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e);

typedef int bound_fn(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e);

static bool exec_replay_is_shared(const struct executor *x, uint64_t addr)
{
    return addr >= WIRE_BASE + executor_info(x)->reserved / 2;
}

/* At a stop for inputs: has the caller give their values, through 'binding' or in shared memory through 'bound'. */
static int exec_replay_bind_again(struct executor *x, bind_fn *binding, bound_fn *bound, void *ctx,
                                  const struct ctl_reply *stop, struct err *e)
{
    uint64_t addr = stop->v[0], n = stop->v[1];
    uint32_t tag = (uint32_t)stop->v[2];

    if (exec_replay_is_shared(x, addr))
        return bound ? bound(ctx, tag, addr, n, e) < 0 ? -1 : executor_bound(x, addr, n, tag, e)
                    : err_set(e, ERR_INPUT, "the log's inputs lie in memory that is not there any more");
    for (uint64_t at = 0; at < n; at += CTL_BULK) {
        uint64_t part = n - at < CTL_BULK ? n - at : CTL_BULK;
        const struct ctl_request q = {.op = CTL_BIND, .tag = tag, .a = addr, .b = part, .c = at, .d = n};
        struct ctl_reply r;

        if (binding(ctx, tag, addr, at, exec_bulk(x), part, e) < 0 || exec_ask(x, &q, -1, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* Lets the replay go on until its next event. */
static int exec_replay_next(struct executor *x, struct ctl_reply *r, struct err *e)
{
    const struct ctl_request q = {.op = CTL_NEXT};

    return exec_ask(x, &q, -1, r, e);
}

/* Takes the error and its words over from the reply. */
static void exec_replay_note(const struct ctl_reply *r, int32_t *error, char why[256])
{
    *error = r->error;
    snprintf(why, 256, "%s", r->error ? r->why : "");
}

int executor_replay(struct executor *x, struct executor_replay *p, struct err *e)
{
    const struct ctl_request q = {.op = CTL_REPLAY, .a = p->poison, .b = p->movement_only, .tag = p->played_from,
                                  .c = p->last_call + (p->last_call && p->goes_on),
                                  .d = (p->shuffled ? 2 : 0) | (p->blocks_vary ? 4 : 0)};
    struct ctl_reply r;
    int rc = exec_ask(x, &q, -1, &r, e);

    p->ret_moved = rc == 0 && r.v[0];
    while (rc == 0 && (p->ret_moved || !p->goes_on)) {
        if ((rc = exec_replay_next(x, &r, e)) < 0)
            break;
        exec_replay_note(&r, &p->ret_error, p->ret_why);
        if (!r.stop || r.error)
            break;
        if (r.stop == LOG_BIND)
            rc = exec_replay_bind_again(x, p->binding, p->bound, p->ctx, &r, e);
        else if (r.stop == LOG_CALL_END && p->call_end)
            rc = p->call_end(p->ctx, (uint32_t)r.v[0], e);
    }
    return rc;
}

/* ---- timing ---- */

/* Begins a replay from the log's start. */
static int exec_replay_begin(struct executor *x, struct executor_timing *t, struct err *e)
{
    struct ctl_request q = {.op = CTL_REPLAY, .a = 0xff, .b = t->movement_only, .c = !t->whole, .d = 1};
    struct ctl_reply r;
    int rc = exec_ask(x, &q, -1, &r, e);

    if (rc == 0 || t->whole || e->kind != ERR_INPUT)
        return rc;
    *e = (struct err)ERR_INIT;
    t->whole = true;
    q.c = 0;
    return exec_ask(x, &q, -1, &r, e);
}

/* Replays up to the last call and stops in front of it; the calls before run untimed. */
static int exec_replay_to_the_call(struct executor *x, struct executor_timing *t, struct err *e)
{
    struct ctl_reply r;
    int rc = exec_replay_begin(x, t, e);
    bool last = false;

    if (t->before)
        t->before(t->ctx, 0, false);
    while (rc == 0 && (rc = exec_replay_next(x, &r, e)) == 0) {
        exec_replay_note(&r, &t->ret_error, t->ret_why);
        if (r.error)
            return 0;
        if (!r.stop)
            return err_set(e, ERR_INPUT, "the log has no last call");
        last = r.stop == LOG_CALL_BEGIN && r.v[0] == r.v[1];
        if (r.stop == LOG_CALL_BEGIN && t->before)
            t->before(t->ctx, (uint32_t)r.v[0], last);
        if (last)
            return 0;
        if (r.stop == LOG_BIND)
            rc = exec_replay_bind_again(x, t->binding, t->bound, t->ctx, &r, e);
    }
    return -1;
}

/* The pad of a round covers what the host needed in the round before, and a quarter more. */
static int exec_replay_one_round(struct executor *x, struct executor_timing *t, uint64_t *pad_ns, double *ret_ms,
                                 double *ret_clock, struct err *e)
{
    const struct ctl_request q = {.op = CTL_TIME, .a = *pad_ns};
    struct ctl_reply r;

    if (exec_replay_to_the_call(x, t, e) < 0 || t->ret_error || exec_ask(x, &q, -1, &r, e) < 0)
        return t->ret_error ? 0 : -1;
    while (r.stop == LOG_BIND)
        if (exec_replay_bind_again(x, t->binding, t->bound, t->ctx, &r, e) < 0 || exec_ask(x, &q, -1, &r, e) < 0)
            return -1;
    exec_replay_note(&r, &t->ret_error, t->ret_why);
    *ret_ms = r.ms;
    *ret_clock = r.clock_ms - (double)*pad_ns * 1e-6;
    *pad_ns = r.v[0] + r.v[0] / 4 + 20000;
    if (*pad_ns > 5000000)
        *pad_ns = 5000000; /* a call that waits for the device needs none */
    return 0;
}

int executor_time(struct executor *x, struct executor_timing *t, struct err *e)
{
    uint64_t pad_ns = 200000;
    double warm, clock;

    t->ret_sum_ms = t->ret_clock_ms = 0;
    if (!t->long_calls && exec_replay_one_round(x, t, &pad_ns, &warm, &clock, e) < 0) /* uncounted: finds the pad */
        return -1;
    for (uint32_t i = 0; i < t->n && !t->ret_error; i++) {
        if (exec_replay_one_round(x, t, &pad_ns, &t->ret_ms[i], &clock, e) < 0)
            return -1;
        t->ret_sum_ms += t->ret_ms[i];
        t->ret_clock_ms += clock;
        if (t->ret_span_ms)
            t->ret_span_ms[i] = clock;
        if (!t->ret_error && t->call_end && t->call_end(t->ctx, i, e) < 0)
            return -1;
    }
    return 0;
}
