/* stage_perf.c - performance: the last call of a candidate's log, the one that was judged, is
 * played again and again by the executor, behind a pad, on a cold L2 and on fresh data; eager is timed in turn in the
 * baseline's process, behind a pad as well (docs/internals/timing.md). Outputs of calls that nobody could foresee are
 * compared with what is expected; of a streamed task (streamed.h), whose inputs lie in one area for both sides, random
 * places of each output (spots.h). Reading order: stage_perf_run at the end, then stage_perf_time_alone, then block. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/candidate/recording.h"
#include "eval/perf/baseline.h"
#include "eval/perf/measure.h"
#include "eval/reference/streamed.h"
#include "eval/schedule/schedule.h"
#include "eval/stage/spots.h"
#include "eval/verdict/record.h"

#define MOST_DRAWS 8  /* whose inputs the timed calls are made of */
#define EMPTY_CALLS 5 /* of a round, at most */
/* NVML's clock event reasons that mean a device in trouble: hardware slowdown, software thermal, hardware thermal,
 * power brake. A power cap is no trouble: it is how a device runs at full load. */
#define TROUBLE (0x8u | 0x20u | 0x40u | 0x80u)

/* ---- the device ---- */

/* Opens the device that times, once a server; 0, or -1 with e. */
static int stage_perf_open_device(struct judge_server *sv, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&sv->kept->lock);
    if (!sv->kept->timer)
        rc = device_open(sv->backend->clock, 0, &sv->kept->timer, e);
    pthread_mutex_unlock(&sv->kept->lock);
    return rc;
}

/* The device's peaks for that dtype, in TFLOPS and bytes a second. */
static struct perf_device stage_perf_limits_of(const struct device_info *d, const char *dtype, bool tf32)
{
    double own = d->fp32_tflops, any = fmax(d->tf32_tflops, d->fp32_tflops);

    if (!strcmp(dtype, "float16") || !strcmp(dtype, "bfloat16"))
        own = any = d->bf16_tflops;
    else if (!strcmp(dtype, "float64"))
        own = any = d->fp64_tflops;
    else if (tf32)
        own = d->tf32_tflops;
    return (struct perf_device){d->memory_gbs * 1e9, own * 1e12, any * 1e12, (double)d->l2};
}

static json_t *stage_perf_health_json(const struct device_health *h)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:s}", "sm_mhz", json_num(h->sm_mhz), "memory_mhz", json_num(h->mem_mhz),
                     "temperature_c", json_num(h->temperature_c), "power_w", json_num(h->power_w), "reasons",
                     h->reasons_text);
}

/* Why there are no times although there should be: not the candidate's fault, and no reward for speed. */
static json_t *stage_perf_untimed(const struct err *why)
{
    return json_pack("{s:b,s:[s],s:o}", "trusted", 0, "reasons", "not_measured", "error",
                     json_utf8(why->msg, strlen(why->msg)));
}

/* ---- the candidate's side of the measurement ---- */

struct perf {
    struct job *j;
    struct baseline *base;
    struct baseline_place place;
    struct device_lock device_lock;
    struct measure_side eager, mine;
    struct measure_fault fault;
    struct device_health before, after;
    const struct ref_draw *draws[MOST_DRAWS]; /* the first: whose inputs all data are like */
    size_t n_draws;
    struct rng rng;
    struct spots spots; /* streamed */
    uint64_t seed;      /* streamed: of what lies in the area */
    size_t next;     /* of draws: whose own inputs the next call that is looked at takes, each draw once */
    double call_ms;  /* the latest; 0: none yet */
    int left;        /* measured calls that are to come, each of which may be looked at; 0: the block is a lap before */
    int checked, wrong, usual;
    bool compiles;
    bool first; /* of a block: that call finds the pad, and counts nowhere */
    bool whole; /* lives were played for each call: the state before the last one was too large to be kept */
    json_t *worst;
    double since, preparing_s, calls_s, others_s;
};

/* Seconds since the last lap. */
static double stage_perf_lap(struct perf *p)
{
    double now = now_s(), took = now - p->since;

    p->since = now;
    return took;
}

/* All calls have inputs that no call had before: what a kernel remembers is of no use to it. A few, which it cannot
 * tell from the others, have a draw's own, and are looked at. */
static const struct ref_draw *stage_perf_draw(void *ctx, uint64_t *ret_turn, double *ret_scale)
{
    struct perf *p = ctx;
    size_t draws = p->n_draws - p->next;
    bool counts = p->left > 0 && !p->first;

    p->first = false;
    if (counts && rng_f64(&p->rng) * p->left-- < (double)draws) {
        *ret_turn = 0;
        return p->draws[p->next++];
    }
    *ret_turn = 1 + rng_u64(&p->rng) / 2;
    *ret_scale = 0.75 + 0.25 * rng_f64(&p->rng);
    return p->draws[rng_below(&p->rng, p->n_draws)];
}

/* A callback of the measurement: compares a timed call's outputs. */
static int stage_perf_look(void *ctx, const struct ref_draw *d, const struct frame *got, struct err *e)
{
    struct perf *p = ctx;
    double abs = 0, rel = 0;
    json_t *worst = NULL;
    int ok = correct_compare(p->j, d, got, &worst, &abs, &rel, e);

    p->checked += ok >= 0;
    p->wrong += ok == 0;
    if (ok == 0 && !p->worst)
        p->worst = json_incref(worst);
    json_decref(worst);
    return ok < 0 ? -1 : 0;
}

/* ---- the same where inputs lie in one area ---- */

/* What fresh inputs are like. Once: the published code draws on the host, which takes seconds for gigabytes. */
static int stage_perf_bind_base(struct perf *p, struct err *e)
{
    return streamed_bind(p->j->held.ref->streamed, p->draws[0], false, e);
}

/* A callback of the measurement: makes new inputs on the device. */
static int stage_perf_fresh(void *ctx, struct err *e)
{
    struct perf *p = ctx;

    p->seed = rng_u64(&p->rng);
    return streamed_fresh(p->j->held.ref->streamed, p->seed, e);
}

/* A callback of the replay: keeps some elements of an output, to be compared after timing. */
static int stage_perf_keep_spots(void *ctx, const json_t *output, struct err *e)
{
    struct perf *p = ctx;

    return spots_take(&p->spots, p->j, p->seed, output, e);
}

/* Adds a block of timed calls. */
static void stage_perf_append(struct timed_calls *to, const struct timing_block *b, const double *ms,
                              const double *span)
{
    to->v = xrealloc(to->v, (size_t)(to->n + b->n) * sizeof *to->v);
    to->capacity = to->n + b->n;
    for (int i = 0; i < b->n; i++)
        to->v[to->n++] = (struct timed_call){.mode = b->mode, .round = b->round,
                                             .event_ms = ms[i], .span_ms = span[i]};
}

/* A block of the candidate's calls; empty ones leave its launches out. */
static int stage_perf_block(void *ctx, const struct timing_block *b, struct timed_calls *calls, struct err *e)
{
    struct perf *p = ctx;
    struct timing_block mine = *b;
    double *ms = xcalloc((size_t)b->n * 2, sizeof *ms);
    struct recording_timing t = {.ret_ms = ms, .ret_span_ms = ms + b->n, .empty = b->mode == TIMING_NULL,
                                 .draw = stage_perf_draw,
                                 .look = stage_perf_look, .base = p->draws[0],
                                 .long_calls = p->call_ms > MEASURE_SLOW_S * 1e3,
                                 .whole = p->whole, .ctx = p};
    int rc;

    if (p->j->held.ref->streamed)
        t.fresh = stage_perf_fresh, t.ended = stage_perf_keep_spots;

    if (t.empty && mine.n > EMPTY_CALLS)
        mine.n = EMPTY_CALLS;
    t.n = (uint32_t)mine.n;
    p->left = b->left;
    p->first = !t.long_calls; /* such blocks have no call that is not counted */
    rc = recording_time(p->j, &t, e);
    p->whole |= t.whole;
    if (rc == 0)
        stage_perf_append(calls, &mine, ms, ms + b->n);
    if (rc == 0 && !t.empty)
        p->call_ms = ms[mine.n - 1];
    free(ms);
    return rc;
}

/* Draws like the one that eager's data are made from: other values each, and all of them expected. */
static void stage_perf_choose_draws(struct perf *p)
{
    const struct reference *r = p->j->held.ref;
    const struct ref_draw *base = baseline_base(r);

    if (r->streamed)
        p->draws[p->n_draws++] = base;
    for (size_t i = 0; !r->streamed && i < r->n_draws && p->n_draws < MOST_DRAWS; i++)
        if (!strcmp(r->draws[i].regime, base->regime))
            p->draws[p->n_draws++] = &r->draws[i];
}

/* ---- what is done alone ---- */

/* The reference's answers need room that the baseline's may have. */
static int stage_perf_look_at_spots(struct perf *p, struct err *e)
{
    int rc;

    baseline_rest(p->base);
    rc = spots_check(&p->spots, p->j, p->draws[0], e);
    p->checked = p->spots.checked;
    p->wrong = p->spots.wrong;
    p->worst = json_incref(p->spots.worst);
    return rc;
}

/* Times candidate and eager in turns; the caller has the device alone. */
static int stage_perf_time_alone(struct perf *p, struct err *e)
{
    const struct eval_options *o = p->j->opt;
    struct measure_plan plan = MEASURE_PLAN_DEFAULT;
    int rc;

    plan.calls = o->calls;
    plan.published = p->j->protocol->published;
    p->usual = measure_usual(&plan);
    plan.input_bytes = p->j->held.ref->streamed ? p->j->held.ref->streamed->area.size : p->draws[0]->inputs.n;
    device_health(p->j->server->kept->timer, &p->before, NULL);
    p->eager = (struct measure_side){.fd = p->base->child->fd, .which = "eager", .timeout_s = 60};
    p->mine = (struct measure_side){.fd = -1, .which = "candidate", .replay = stage_perf_block, .ctx = p,
                                    .timeout_s = p->j->opt->timeout_s, .known_s = p->j->call_s};
    rc = p->j->held.ref->streamed && stage_perf_bind_base(p, e) < 0 ? -1 : measure_pair(&p->eager, &p->mine, &plan,
                                                                                   &p->fault, e);
    p->calls_s += stage_perf_lap(p);
    device_health(p->j->server->kept->timer, &p->after, NULL);
    if (rc == 0 && p->j->held.ref->streamed)
        rc = stage_perf_look_at_spots(p, e);
    if (rc == 0)
        baseline_time_library(p->base, &plan);
    if (rc == 0 && o->compile_baseline && p->base->child)
        baseline_time_compiled(p->base, o->compile_mode, &plan);
    p->others_s += stage_perf_lap(p);
    if (rc == 0 && stop_requested()) /* what was not measured for that reason is no fact about the task */
        rc = err_set(e, ERR_STOP, "interrupted");
    if (rc < 0 && p->fault.side == &p->eager)
        baseline_give_up(p->base);
    return rc;
}

/* ---- the section ---- */

/* Marks the section as not trusted, with a reason. */
static void stage_perf_distrust(json_t *section, const char *reason)
{
    json_object_set_new(section, "trusted", json_false());
    json_array_append_new(json_object_get(section, "reasons"), json_string(reason));
}

enum { MINE, MINE_EMPTY, EAGER, KINDS };

/* The facts of both sides that perf_section needs. They point into c, the calls by kind, which the caller frees after
 * them (measure_calls_free). */
static struct perf_facts stage_perf_facts_of(struct perf *p, struct measure_calls c[KINDS])
{
    struct perf_facts f = {.compile_of_eager = {NAN, NAN, NAN}, .library_of_eager = {NAN, NAN, NAN},
                           .work = p->base->work, .checked = p->checked, .output_wrong = p->wrong > 0};

    measure_calls(&p->mine.calls, TIMING_COLD, &c[MINE]);
    measure_calls(&p->mine.calls, TIMING_NULL, &c[MINE_EMPTY]);
    measure_calls(&p->eager.calls, TIMING_COLD, &c[EAGER]);
    f.cold = c[MINE].c, f.empty = c[MINE_EMPTY].c, f.eager_cold = c[EAGER].c;
    f.inputs_repeat = p->j->held.ref->streamed && json_array_size(p->base->fresh) == 0;
    f.device = stage_perf_limits_of(device_info(p->j->server->kept->timer),
                                    json_str(p->base->facts, "dtype", "float32"),
                                    p->place.tf32);
    f.throttled = (p->before.reasons | p->after.reasons) & TROUBLE;
    f.device_busy = p->after.processes > p->before.processes;
    f.seed = hash64(p->base->key, strlen(p->base->key), 1);
    if (p->base->compile_known && p->j->opt->compile_baseline) {
        f.compile_of_eager = p->base->compile_of_eager;
        f.compile_error = p->base->compile_error;
    }
    if (p->base->library_known) {
        f.library_of_eager = p->base->library_of_eager;
        f.library_call = p->base->library_call;
    }
    return f;
}

/* The record's "performance" of a finished measurement. New. */
static json_t *stage_perf_section(struct perf *p)
{
    const struct device_info *d = device_info(p->j->server->kept->timer);
    struct measure_calls c[KINDS];
    struct perf_facts f = stage_perf_facts_of(p, c);
    json_t *s = perf_section(&f);

    json_object_set_new(s, "device", json_pack("{s:s,s:s,s:o,s:o}", "name", d->name, "driver", d->driver_version,
                                               "before", stage_perf_health_json(&p->before), "after",
                                               stage_perf_health_json(&p->after)));
    if (f.cold.n && f.cold.n < p->usual)
        json_object_set_new(json_object_get(s, "calls"), "fewer_than", json_integer(p->usual));
    json_object_set_new(s, "by", json_string("replay"));
    if (p->whole)
        json_object_set_new(json_object_get(s, "calls"), "whole_lives", json_true());
    json_object_set_new(s, "log_sha256", json_string(p->j->recording->log_sha256));
    json_object_set_new(s, "tf32", json_boolean(p->place.tf32));
    json_object_set_new(s, "took_ms", json_pack("{s:o,s:o,s:o}", "preparing", json_num(round(p->preparing_s * 1e3)),
                                                "calls", json_num(round(p->calls_s * 1e3)), "others",
                                                json_num(round(p->others_s * 1e3))));
    if (p->j->slow && f.cold.n && perf_median(f.cold.event_ms, f.cold.n) < SLOW_S * 1e3 / 2)
        stage_perf_distrust(s, "slow_before");
    for (int i = 0; i < KINDS; i++)
        measure_calls_free(&c[i]);
    return s;
}

/* ---- the stage ---- */

/* Starts the baseline's process and its compiling. */
static int stage_perf_prepare(struct perf *p, struct err *e)
{
    if (baseline_start(p->base, &p->j->held, &p->place, e) < 0)
        return -1;
    baseline_library(p->base);
    p->compiles = p->j->opt->compile_baseline && baseline_begin_compile(p->base, p->j->opt->compile_mode);
    return p->base->child ? 0 : err_set(e, ERR_ENV, "the baseline's process ended");
}

/* The device and the locked baseline (baseline.h): nobody has the device who waits for somebody that compiles. */
static int stage_perf_take_base(struct perf *p, bool alone, struct err *e)
{
    for (;;) {
        if (baseline_wait(p->base, e) < 0 || device_lock_take(&p->j->server->schedule, alone, &p->device_lock, e) < 0)
            return -1;
        baseline_lock(p->base);
        if (!p->base->compiling)
            return 0;
        baseline_unlock(p->base);
        device_lock_drop(&p->device_lock);
    }
}

/* Runs f while the baseline is ours. */
static int stage_perf_with_base(struct perf *p, bool alone, int (*f)(struct perf *p, struct err *e), struct err *e)
{
    int rc;

    if (stage_perf_take_base(p, alone, e) < 0)
        return -1;
    p->preparing_s += stage_perf_lap(p);
    rc = f != stage_perf_prepare && !p->base->child ? err_set(e, ERR_ENV, "the baseline's process ended") : f(p, e);
    baseline_unlock(p->base);
    device_lock_drop(&p->device_lock);
    return rc;
}

/* Makes the baseline ready, once for all who use it. */
static int stage_perf_prepare_base(struct perf *p, struct err *e)
{
    if (baseline_wait(p->base, e) < 0)
        return -1;
    baseline_check(p->base, &p->j->held);
    if (baseline_ready(p->base, p->j->opt->compile_baseline))
        return 0;
    if (stage_perf_with_base(p, false, stage_perf_prepare, e) < 0)
        return -1;
    return p->compiles ? baseline_compile(p->base, p->j->opt->compile_mode, &p->j->server->schedule, e) : 0;
}

/* The state before the last call, of the whole recording on one of the draws: what each timed call starts from. */
static int stage_perf_set_out(struct perf *p, struct err *e)
{
    struct frame f;
    int rc;

    stage_perf_choose_draws(p);
    rc = recording_again(p->j, p->draws[0], &f, e);
    if (rc == 1)
        frame_free(&f);
    return rc == 0 ? err_set(e, ERR_ENV, "the life cannot be replayed once more") : rc < 0 ? -1 : 0;
}

/* Prepares both sides, takes the device alone and times them. ERR_ENV: the program or machine cannot be timed. */
static int stage_perf_measure_job(struct perf *p, struct err *e)
{
    struct job *j = p->j;
    const struct device_info *d;
    const char *test = getenv("MUSACODER_TEST_TIMED");
    uint64_t seed = 0;
    char machine[256];
    int rc;

    if (j->recording->live)
        return err_set(e, ERR_ENV, "its host reads the device's values: such a program is not timed yet");
    if (stage_perf_open_device(j->server, e) < 0)
        return -1;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return err_set(e, ERR_ENV, "no random numbers from the system");
    rng_seed(&p->rng, seed, 0);
    rng_seed(&p->spots.rng, seed, 1);
    p->whole = test && !strcmp(test, "whole");
    d = device_info(j->server->kept->timer);
    snprintf(machine, sizeof machine, "%s %s torch %s", d->name, d->driver_version,
             json_str(j->server->info, "torch", "?"));
    p->place = (struct baseline_place){.role = j->server->backend->baseline, .device = j->server->backend->place,
                                       .machine = machine, .tf32 = j->protocol->published};
    if (reference_all(&j->held, e) < 0)
        return -1;
    session_rest(j->session);
    p->base = baseline_get(&j->held, &p->place);
    rc = stage_perf_prepare_base(p, e) < 0 || stage_perf_set_out(p, e) < 0 ? -1 : 0;
    p->preparing_s += stage_perf_lap(p);
    if (rc == 0)
        rc = stage_perf_with_base(p, true, stage_perf_time_alone, e);
    session_wake(j->session);
    return rc;
}

/* Blames a timed call whose output is wrong. */
static void stage_perf_blame_output(struct perf *p)
{
    json_t *r = record_blame(p->j->rec, "correctness_error", "performance", "the output of a timed call is wrong");

    json_object_set(r, "worst", p->worst);
    json_object_set(json_object_get(p->j->rec, "correctness"), "worst", p->worst);
}

/* Measures and records "performance", with the error where it failed. -1 only where the judge was stopped or is
 * broken. */
static int stage_perf_measure_and_record(struct job *j, struct err *e)
{
    struct perf p = {.j = j, .since = now_s()};
    struct err why = ERR_INIT;
    int rc = stage_perf_measure_job(&p, &why);

    if (p.base)
        baseline_lock(p.base);
    if (rc == 0)
        record_set(j->rec, "performance", stage_perf_section(&p));
    else if (why.kind != ERR_STOP)
        record_set(j->rec, "performance", stage_perf_untimed(&why));
    if (p.base)
        baseline_unlock(p.base);
    if (p.wrong)
        stage_perf_blame_output(&p);
    spots_free(&p.spots);
    baseline_release(j->server->kept, p.base);
    measure_side_free(&p.eager);
    measure_side_free(&p.mine);
    json_decref(p.fault.error);
    json_decref(p.worst);
    if (why.kind == ERR_STOP)
        return err_set(e, ERR_STOP, "interrupted");
    if (rc < 0 && !j->alone && !j->held.ref->streamed && why.lack != LACK_NONE) { /* others hold what timing needs */
        *e = why;
        return -1;
    }
    return 0;
}

/* Does a replay do the program's work? Where torch's operators may stay they may have done it, on the host. */
static bool replays(const struct job *j)
{
    return !(j->protocol->operators && j->recording && j->recording->live && j->recording->live_right);
}

/* Null where the backend has no clock. */
static int stage_perf_run(struct job *j, struct err *e)
{
    record_set(j->rec, "performance", json_null());
    record_set(j->rec, "stage", json_string("performance"));
    return j->opt->perf && j->server->backend->timed && replays(j) ? stage_perf_measure_and_record(j, e) : 0;
}

const struct stage stage_perf = {"performance", stage_perf_run, false};
