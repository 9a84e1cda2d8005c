/* measure.c - see measure.h. */
#include "eval/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define WARM_UP 3
#define REPLY_MAX ((size_t)2 << 30)

int measure_ask(int fd, json_t *req, const void *blob, size_t n_blob, double deadline, struct frame *ret,
                enum frame_fault *ret_fault, struct err *e)
{
    int rc = frame_send(fd, req, blob, n_blob, deadline, ret_fault, e);

    json_decref(req);
    return rc < 0 ? -1 : frame_recv(fd, (size_t)16 << 20, REPLY_MAX, deadline, ret, ret_fault, e);
}

static int failed(struct measure_fault *fault, const struct measure_side *s, enum frame_fault frame,
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

static void take_claims(struct measure_side *s, json_t *head)
{
    const json_t *found = json_object_get(head, "findings");

    s->host_us = fmax(s->host_us, json_f64(head, "host_us", 0));
    s->first = s->first ? s->first : json_incref(head);
    json_decref(s->last);
    s->last = json_incref(head);
    s->findings = s->findings ? s->findings : json_array();
    for (size_t i = 0; i < json_array_size(found) && json_array_size(s->findings) < MEASURE_FINDINGS; i++)
        json_array_append(s->findings, json_array_get(found, i));
}

/* One block of a side into 'calls': all of it, or it has failed. */
static int block(struct measure_side *s, struct timing_block b, struct timed_calls *calls, struct measure_fault *fault,
                 struct err *e)
{
    enum frame_fault frame = FRAME_OK;
    struct frame reply;

    b.which = s->which;
    if (s->replay)
        return s->replay(s->ctx, &b, calls, e) < 0 ? failed(fault, s, FRAME_BROKEN, NULL, e) : 0;
    if (timing_block(s->fd, &b, now_s() + s->timeout_s, calls, &reply, &frame, e) < 0)
        return failed(fault, s, frame, NULL, e);
    if (strcmp(json_str(reply.head, "op", ""), "timed"))
        return failed(fault, s, FRAME_OK, &reply, e);
    take_claims(s, reply.head);
    frame_free(&reply);
    return 0;
}

void measure_side_free(struct measure_side *s)
{
    timed_calls_free(&s->calls);
    json_decref(s->first);
    json_decref(s->last);
    json_decref(s->findings);
    *s = (struct measure_side){0};
}

static int arm(struct measure_side *s, int slots, struct measure_fault *fault, struct err *e)
{
    enum frame_fault frame = FRAME_OK;
    struct frame reply;

    if (s->replay)
        return 0;
    if (measure_ask(s->fd, json_pack("{s:s,s:i}", "op", "arm", "slots", slots), NULL, 0, now_s() + s->timeout_s, &reply,
                    &frame, e) < 0)
        return failed(fault, s, frame, NULL, e);
    if (strcmp(json_str(reply.head, "op", ""), "ok"))
        return failed(fault, s, FRAME_OK, &reply, e);
    frame_free(&reply);
    return 0;
}

int measure_forget(struct measure_side *s, struct measure_fault *fault, struct err *e)
{
    return arm(s, 0, fault, e);
}

/* cold calls that nobody counts, then a warm one, unless the side is known to crawl, and does. The span of the last, or of the
 * last cold one if that is less, in seconds; more where what lies around the calls takes more than MEASURE_WALL times as
 * long. */
static int lap(struct measure_side *s, int cold, double *ret_s, struct measure_fault *fault, struct err *e)
{
    struct timed_calls calls = {0};
    struct timing_block b = {.mode = TIMING_COLD, .n = cold, .slot = -1, .pad_us = MEASURE_PAD_MIN_US};
    double wall, t0 = now_s();
    int rc = block(s, b, &calls, fault, e);

    wall = (now_s() - t0) / cold;
    b.mode = TIMING_WARM, b.n = 1;
    if (rc == 0 && fmin(s->known_s, calls.v[cold - 1].span_ms / 1e3) <= MEASURE_CRAWL_S) {
        t0 = now_s();
        rc = block(s, b, &calls, fault, e);
        wall = fmin(wall, now_s() - t0);
    }
    if (rc == 0)
        *ret_s = fmax(fmin(calls.v[cold - 1].span_ms, calls.v[calls.n - 1].span_ms) / 1e3, wall / MEASURE_WALL);
    timed_calls_free(&calls);
    return rc;
}

/* Allocations, autotuning and lazy loading happen here. Who is slow in both calls of a first lap runs no other one: the
 * whole device waits. A slow first call alone says nothing. */
static int warm_up(struct measure_side *s, double *ret_s, struct measure_fault *fault, struct err *e)
{
    int rc = lap(s, 1, ret_s, fault, e);

    return rc < 0 || *ret_s > MEASURE_SLOW_S ? rc : lap(s, WARM_UP - 1, ret_s, fault, e);
}

int measure_pad_us(double host_us_a, double host_us_b)
{
    return (int)fmin(fmax(1.2 * fmax(host_us_a, host_us_b), MEASURE_PAD_MIN_US), MEASURE_PAD_MAX_US);
}

static int clamp(double x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : (int)x;
}

int measure_rounds(const struct measure_plan *p)
{
    double kept = p->output_bytes ? (double)p->keep_bytes / (double)p->output_bytes : INFINITY;

    return clamp(fmin(kept / 2, MEASURE_ROUNDS), MEASURE_ROUNDS_LEAST, MEASURE_ROUNDS);
}

int measure_empty(const struct measure_plan *p)
{
    double bytes = (double)p->input_bytes + (double)p->output_bytes;

    return clamp((double)MEASURE_EMPTY_BYTES / fmax(bytes, 1), MEASURE_EMPTY_LEAST, MEASURE_EMPTY);
}

/* Cold calls of one side in one round. */
static int how_many(const struct measure_plan *p, double call_s)
{
    int rounds = measure_rounds(p), n = p->calls     ? p->calls
                                      : p->published ? MEASURE_PUBLISHED
                                                     : clamp(p->seconds / call_s, MEASURE_LEAST, MEASURE_MOST);

    n = clamp(fmin(n, MEASURE_MAX_S / call_s), rounds, n);
    n = (n + rounds - 1) / rounds;
    if (p->output_bytes) /* warm calls are kept too */
        n = clamp(fmin(n, (double)p->keep_bytes / (double)p->output_bytes * 0.75 / rounds), 1, n);
    return n;
}

int measure_usual(const struct measure_plan *p)
{
    return p->calls ? p->calls : p->published ? MEASURE_PUBLISHED : MEASURE_LEAST;
}

/* No more of them where a call takes so long. */
static int rounds_for(const struct measure_plan *p, double call_s)
{
    int most = call_s > MEASURE_CRAWL_S ? MEASURE_CRAWL_ROUNDS : call_s > MEASURE_SLOW_S ? MEASURE_SLOW_ROUNDS : MEASURE_ROUNDS;

    return measure_rounds(p) < most ? measure_rounds(p) : most;
}

int measure_cold_calls(const struct measure_plan *p, double call_s)
{
    return how_many(p, call_s) * rounds_for(p, call_s);
}

static int warm_calls(const struct measure_plan *p, int cold)
{
    return p->published || p->cold_alone ? 0 : (cold + 2) / 3;
}

static int prepare(struct measure_side *s, const struct measure_plan *p, int *ret_n, int *ret_rounds,
                   struct measure_fault *fault, struct err *e)
{
    double call_s = 0;

    if (arm(s, 0, fault, e) < 0 || warm_up(s, &call_s, fault, e) < 0)
        return -1;
    *ret_n = how_many(p, call_s);
    *ret_rounds = rounds_for(p, call_s);
    if (arm(s, measure_rounds(p) * (*ret_n + warm_calls(p, *ret_n)), fault, e) < 0)
        return -1;
    if (call_s > MEASURE_SLOW_S)
        return 0;
    s->host_us = 0; /* not what was loaded and allocated before */
    return lap(s, WARM_UP, &call_s, fault, e);
}

static int one_block(struct measure_side *s, enum timing_mode mode, int n, int round, struct measure_fault *fault,
                     struct err *e)
{
    struct timing_block b = {.mode = mode, .n = n, .round = round, .pad_us = s->pad_us};

    b.slot = mode == TIMING_NULL ? -1 : s->kept;
    s->kept += mode == TIMING_NULL ? 0 : n;
    return block(s, b, &s->calls, fault, e);
}

/* After the cold ones, which it has just made: none if those took so long that caches are nothing to them.
 * By these, because what it was like before it could choose. */
static int warm_block(struct measure_side *s, const struct measure_plan *p, int cold, int round,
                      struct measure_fault *fault, struct err *e)
{
    bool crawls = true;

    if (p->published || p->cold_alone)
        return 0;
    for (int i = s->calls.n - cold; i < s->calls.n; i++)
        crawls = crawls && s->calls.v[i].span_ms > MEASURE_CRAWL_S * 1e3;
    return crawls ? 0 : one_block(s, TIMING_WARM, warm_calls(p, cold), round, fault, e);
}

int measure_pair(struct measure_side *a, struct measure_side *b, const struct measure_plan *p,
                 struct measure_fault *fault, struct err *e)
{
    int n_a, n_b, n_empty = measure_empty(p), rounds_a, rounds, rc = 0;

    *fault = (struct measure_fault){0};
    if (prepare(a, p, &n_a, &rounds_a, fault, e) < 0 || prepare(b, p, &n_b, &rounds, fault, e) < 0)
        return -1;
    rounds = rounds_a < rounds ? rounds_a : rounds;
    a->pad_us = b->pad_us = measure_pad_us(a->host_us, b->host_us);
    for (int r = 0; r < rounds && rc == 0; r++) {
        if ((rc = one_block(a, TIMING_COLD, n_a, r, fault, e)) == 0)
            rc = one_block(b, TIMING_COLD, n_b, r, fault, e);
        if (rc == 0 && (rc = warm_block(a, p, n_a, r, fault, e)) == 0)
            rc = warm_block(b, p, n_b, r, fault, e);
        if (rc == 0 && (rc = one_block(a, TIMING_NULL, n_empty, r, fault, e)) == 0)
            rc = one_block(b, TIMING_NULL, n_empty, r, fault, e);
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

double measure_cold_ms(const struct timed_calls *c)
{
    struct measure_calls cold;
    double ms;

    measure_calls(c, TIMING_COLD, &cold);
    ms = perf_median(cold.c.event_ms, cold.c.n);
    measure_calls_free(&cold);
    return ms;
}

static bool comes_next(const struct timed_call *c, bool warm, double cold_ms)
{
    return warm ? c->mode == TIMING_WARM : c->mode == TIMING_COLD && c->event_ms <= cold_ms;
}

static void swap(int *a, int *b)
{
    int t = *a;

    *a = *b;
    *b = t;
}

int *measure_order(const struct timed_calls *c, struct rng *rng, int *ret_n)
{
    int *at = xcalloc((size_t)c->n + 1, sizeof *at), n = 0;
    double cold_ms = measure_cold_ms(c);

    for (int i = 0; i < c->n; i++)
        if (c->v[i].slot != TIMING_NO_SLOT)
            at[n++] = i;
    for (int i = 0; i < n; i++)
        swap(&at[i], &at[i + (int)rng_below(rng, (uint64_t)(n - i))]);
    for (int i = 0; i < n; i++)
        for (int k = i; k < n; k++)
            if (comes_next(&c->v[at[k]], i % 2 == 0, cold_ms)) {
                swap(&at[i], &at[k]);
                break;
            }
    *ret_n = n;
    return at;
}
