/* measure.c - see measure.h. */
#include "eval/perf/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define WARM_UP 3

/* Notes which side failed and how. Always -1. */
static int measure_failed(struct measure_fault *fault, const struct measure_side *s, enum frame_fault frame,
                          struct frame *reply, struct err *e)
{
    fault->side = s;
    fault->frame = frame;
    if (!reply)
        return -1;
    fault->error = json_incref(reply->head);
    frame_free(reply);
    err_set(e, ERR_ENV, "a timed call raised %s: %.300s", json_str(fault->error, "type", "?"),
            json_str(fault->error, "message", ""));
    return err_lack(e, json_flag(fault->error, "memory", false) ? LACK_DEVICE : LACK_NONE);
}

/* One block of a side into 'calls': all of it, or it has failed. */
static int measure_block(struct measure_side *s, struct timing_block b, struct timed_calls *calls,
                         struct measure_fault *fault, struct err *e)
{
    enum frame_fault frame = FRAME_OK;
    struct frame reply;

    b.which = s->which;
    if (s->replay)
        return s->replay(s->ctx, &b, calls, e) < 0 ? measure_failed(fault, s, FRAME_BROKEN, NULL, e) : 0;
    if (timing_block(s->fd, &b, now_s() + s->timeout_s, calls, &reply, &frame, e) < 0)
        return measure_failed(fault, s, frame, NULL, e);
    if (strcmp(json_str(reply.head, "op", ""), "timed"))
        return measure_failed(fault, s, FRAME_OK, &reply, e);
    s->host_us = fmax(s->host_us, json_f64(reply.head, "host_us", 0));
    frame_free(&reply);
    return 0;
}

void measure_side_free(struct measure_side *s)
{
    timed_calls_free(&s->calls);
    *s = (struct measure_side){0};
}

/* Tells the process to keep its next calls for timing. Nothing for a side that is replayed. */
static int measure_arm(struct measure_side *s, struct measure_fault *fault, struct err *e)
{
    enum frame_fault frame = FRAME_OK;
    struct rpc r = {.fd = s->fd, .deadline = now_s() + s->timeout_s};
    struct frame reply;

    if (s->replay)
        return 0;
    if (rpc(&r, json_pack("{s:s}", "op", "arm"), &reply, &frame, e) < 0)
        return measure_failed(fault, s, frame, NULL, e);
    if (strcmp(json_str(reply.head, "op", ""), "ok"))
        return measure_failed(fault, s, FRAME_OK, &reply, e);
    frame_free(&reply);
    return 0;
}

/* n calls that nobody counts, then one more, unless the side is known to crawl, and does. The smaller span of the
 * last two, in seconds; more where what lies around the calls takes more than MEASURE_WALL times as long. */
static int measure_lap(struct measure_side *s, int n, double *ret_s, struct measure_fault *fault, struct err *e)
{
    struct timed_calls calls = {0};
    struct timing_block b = {.mode = TIMING_COLD, .n = n, .pad_us = MEASURE_PAD_MIN_US};
    double wall, t0 = now_s();
    int rc = measure_block(s, b, &calls, fault, e);

    wall = (now_s() - t0) / n;
    b.n = 1;
    if (rc == 0 && fmin(s->known_s, calls.v[n - 1].span_ms / 1e3) <= MEASURE_CRAWL_S) {
        t0 = now_s();
        rc = measure_block(s, b, &calls, fault, e);
        wall = fmin(wall, now_s() - t0);
    }
    if (rc == 0)
        *ret_s = fmax(fmin(calls.v[n - 1].span_ms, calls.v[calls.n - 1].span_ms) / 1e3, wall / MEASURE_WALL);
    timed_calls_free(&calls);
    return rc;
}

/* Allocations, autotuning and lazy loading happen here. Who is slow in both calls of a first lap runs no other one: the
 * whole device waits. A slow first call alone says nothing. */
static int measure_warm_up(struct measure_side *s, double *ret_s, struct measure_fault *fault, struct err *e)
{
    int rc = measure_lap(s, 1, ret_s, fault, e);

    return rc < 0 || *ret_s > MEASURE_SLOW_S ? rc : measure_lap(s, WARM_UP - 1, ret_s, fault, e);
}

int measure_pad_us(double host_us_a, double host_us_b)
{
    return (int)fmin(fmax(1.2 * fmax(host_us_a, host_us_b), MEASURE_PAD_MIN_US), MEASURE_PAD_MAX_US);
}

static int measure_clamp(double x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : (int)x;
}

int measure_empty(const struct measure_plan *p)
{
    return measure_clamp((double)MEASURE_EMPTY_BYTES / fmax((double)p->input_bytes, 1), MEASURE_EMPTY_LEAST,
                         MEASURE_EMPTY);
}

/* Cold calls of one side in one round. */
static int measure_how_many(const struct measure_plan *p, double call_s)
{
    int n = p->calls ? p->calls : p->published ? MEASURE_PUBLISHED : measure_clamp(p->seconds / call_s, MEASURE_LEAST,
                                                                                   MEASURE_MOST);

    n = measure_clamp(fmin(n, MEASURE_MAX_S / call_s), MEASURE_ROUNDS, n);
    return (n + MEASURE_ROUNDS - 1) / MEASURE_ROUNDS;
}

int measure_usual(const struct measure_plan *p)
{
    return p->calls ? p->calls : p->published ? MEASURE_PUBLISHED : MEASURE_LEAST;
}

/* Fewer of them where a call takes so long. */
static int measure_rounds_for(double call_s)
{
    return call_s > MEASURE_CRAWL_S ? MEASURE_CRAWL_ROUNDS : call_s > MEASURE_SLOW_S ? MEASURE_SLOW_ROUNDS
           : MEASURE_ROUNDS;
}

int measure_cold_calls(const struct measure_plan *p, double call_s)
{
    return measure_how_many(p, call_s) * measure_rounds_for(call_s);
}

/* Warms a side up and settles calls in a round and rounds. */
static int measure_prepare(struct measure_side *s, const struct measure_plan *p, int *ret_n, int *ret_rounds,
                           struct measure_fault *fault, struct err *e)
{
    double call_s = 0;

    if (measure_arm(s, fault, e) < 0 || measure_warm_up(s, &call_s, fault, e) < 0)
        return -1;
    *ret_n = measure_how_many(p, call_s);
    *ret_rounds = measure_rounds_for(call_s);
    if (call_s > MEASURE_SLOW_S)
        return 0;
    s->host_us = 0; /* not what was loaded and allocated before */
    return measure_lap(s, WARM_UP, &call_s, fault, e);
}

/* Of n calls; rounds: how many such blocks are to come, this one among them. */
static int measure_one_block(struct measure_side *s, enum timing_mode mode, int n, int round, int rounds,
                             struct measure_fault *fault, struct err *e)
{
    struct timing_block b = {.mode = mode, .n = n, .round = round, .pad_us = s->pad_us,
                             .left = mode == TIMING_COLD ? n * rounds : 0};

    return measure_block(s, b, &s->calls, fault, e);
}

int measure_pair(struct measure_side *a, struct measure_side *b, const struct measure_plan *p,
                 struct measure_fault *fault, struct err *e)
{
    int n_a, n_b, n_empty = measure_empty(p), rounds_a, rounds, rc = 0;

    *fault = (struct measure_fault){0};
    if (measure_prepare(a, p, &n_a, &rounds_a, fault, e) < 0 || measure_prepare(b, p, &n_b, &rounds, fault, e) < 0)
        return -1;
    rounds = rounds_a < rounds ? rounds_a : rounds;
    a->pad_us = b->pad_us = measure_pad_us(a->host_us, b->host_us);
    for (int r = 0; r < rounds && rc == 0; r++) {
        if ((rc = measure_one_block(a, TIMING_COLD, n_a, r, rounds - r, fault, e)) == 0)
            rc = measure_one_block(b, TIMING_COLD, n_b, r, rounds - r, fault, e);
        if (rc == 0 && (rc = measure_one_block(a, TIMING_NULL, n_empty, r, rounds - r, fault, e)) == 0)
            rc = measure_one_block(b, TIMING_NULL, n_empty, r, rounds - r, fault, e);
    }
    return rc;
}

void measure_calls(const struct timed_calls *from, enum timing_mode mode, struct measure_calls *ret)
{
    int n = 0;

    ret->numbers = xcalloc((size_t)from->n * 2 + 1, sizeof(double));
    ret->rounds = xcalloc((size_t)from->n + 1, sizeof(int));
    for (int i = 0; i < from->n; i++) {
        if (from->v[i].mode != mode)
            continue;
        ret->numbers[n] = from->v[i].event_ms;
        ret->numbers[from->n + n] = from->v[i].span_ms;
        ret->rounds[n++] = from->v[i].round;
    }
    ret->c = (struct perf_calls){ret->numbers, ret->numbers + from->n, ret->rounds, n};
}

void measure_calls_free(struct measure_calls *m)
{
    free(m->numbers);
    free(m->rounds);
}
