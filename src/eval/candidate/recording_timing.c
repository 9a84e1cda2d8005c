/* recording_timing.c - the last call timed. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "eval/candidate/job.h"

struct recording_timed {
    struct recording_replaying r;
    const struct recording_timing *t;
    const struct ref_draw *now;
    struct recording_turn turn;
    bool bound; /* streamed: this call's inputs */
};

/* Calls before the last one have other values than a draw's. */
static void recording_next_draw(void *ctx, uint32_t call, bool last)
{
    struct recording_timed *c = ctx;

    (void)call;
    c->bound = false;
    c->r.ended = last ? c->r.j->recording->n_calls - 1 : 0;
    c->now = c->t->base;
    if (last && !c->t->fresh)
        c->now = c->t->draw(c->t->ctx, &c->turn.by, &c->turn.scale);
    c->r.turn = last && c->turn.by ? &c->turn : NULL;
}

/* A callback of the replay: fresh values for the inputs of a timed call. */
static int recording_bound_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    struct recording_timed *c = ctx;

    (void)tag, (void)addr, (void)n;
    if (c->bound || c->t->empty)
        return 0;
    c->bound = true;
    return c->t->fresh(c->t->ctx, e);
}

static int recording_bind_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
                                struct err *e)
{
    return recording_bind_again(&((struct recording_timed *)ctx)->r, tag, addr, part, data, n, e);
}

/* A callback of the replay after a timed call: hands its outputs to the measurement's own check. */
static int recording_call_timed(void *ctx, uint32_t round, struct err *e)
{
    struct recording_timed *c = ctx;
    struct job *j = c->r.j;
    struct frame got;
    int rc;

    (void)round;
    if (c->t->empty || c->r.turn)
        return 0;
    if (c->t->ended)
        return c->t->ended(c->t->ctx, *recording_output_at(j->recording, j->recording->n_calls), e);
    if (recording_fetch(j, c->now, j->recording->n_calls, *recording_output_at(j->recording, j->recording->n_calls),
                        &got, e) < 0)
        return -1;
    rc = c->t->look(c->t->ctx, c->now, &got, e);
    frame_free(&got);
    return rc;
}

int recording_time(struct job *j, struct recording_timing *t, struct err *e)
{
    struct recording_timed c = {.r = {.j = j, .draws = &c.now, .n = 1}, .t = t, .now = t->base};
    struct executor_timing x = {.n = t->n, .movement_only = t->empty, .long_calls = t->long_calls, .whole = t->whole,
                                .ret_ms = t->ret_ms, .ret_span_ms = t->ret_span_ms, .before = recording_next_draw,
                                .binding = recording_bind_timed, .bound = recording_bound_timed,
                                .call_end = recording_call_timed, .ctx = &c};

    if (executor_time(j->recording->x, &x, e) < 0)
        return -1;
    t->whole = x.whole;
    j->recording->harmed |= x.ret_error != 0;
    return x.ret_error ? err_set(e, ERR_ENV, "a timed call fails: %.200s", x.ret_why) : 0;
}
