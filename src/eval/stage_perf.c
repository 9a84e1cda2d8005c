/* stage_perf.c - performance: the candidate and its baselines timed in turn, on a device that nobody else uses.
 *
 * Every output of a timed call is committed to while the judge's clock runs (timing.h); a few, chosen afterwards, are
 * looked at. A backend without a clock of its own (sim) has no such section: null, and the reward no speed term. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "device/device.h"
#include "eval/hold.h"
#include "eval/job.h"
#include "eval/legality.h"
#include "eval/measure.h"
#include "eval/record.h"
#include "eval/stage_perf.h"

#define CHECKED 4                        /* outputs of timed calls that are looked at, at least */
#define CHECKED_BYTES ((size_t)64 << 20) /* more of them, up to CHECKED_MOST, while they fit into this */
#define CHECKED_MOST 16
#define STARTS 3                         /* of a baseline's process for one candidate */
#define TAKES 2                          /* measurements at most, while the clocks disagree */
#define SAME_TIMES 1.25                  /* two of them must agree this far, or something changed between them */

size_t perf_keeps_much = (size_t)1 << 30;

/* Where the stage's time goes: performance.took_ms. From 'putting' to 'others' nobody else has the device. */
enum part { PREPARING, WAITING, PUTTING, CALLS, OTHERS, OUTPUTS, PARTS };
static const char *const part_names[PARTS] = {"preparing", "waiting", "putting", "calls", "others", "outputs"};

struct perf {
    struct job *j;
    struct baseline *base;
    struct baseline_place place;
    struct hold hold;
    struct measure_side eager, mine;
    struct measure_fault fault;
    struct device_health before, after;
    int checked, wrong, takes, starts, usual; /* usual: cold calls that nothing limits */
    bool tampered, gone, changed, compiles;
    bool looked; /* at outputs, while the device was held alone */
    double since, took_s[PARTS];
};

static void part_ends(struct perf *p, enum part part)
{
    double now = now_s();

    p->took_s[part] += now - p->since;
    trace_span(p->since, "perf", "%s", part_names[part]);
    p->since = now;
}

static json_t *took_json(const struct perf *p)
{
    json_t *o = json_object();

    for (int i = 0; i < PARTS; i++)
        json_object_set_new(o, part_names[i], json_num(round(p->took_s[i] * 1e5) / 100));
    return o;
}

/* ---- what is done alone ---- */

/* What became of a question to the candidate outside of blocks. Blames and returns -1 when there is no answer. */
static int told(struct perf *p, enum call_fault fault, struct frame *f, struct err *e)
{
    struct job *j = p->j;

    if (fault != CALL_OK)
        return job_blame_call(j, fault, "performance", "when it was to be timed", e), -1;
    if (strcmp(json_str(f->head, "op", ""), "error"))
        return 0;
    job_take_evidence(j, f->head, false);
    job_blame_error(j, f->head, "performance");
    frame_free(f);
    return -1;
}

static int put_candidate(struct perf *p, struct err *e)
{
    struct job *j = p->j;
    struct ref_draw d;
    struct frame f;
    json_t *req;
    int rc;

    if (baseline_hold_base(p->base, j->ref, &d, e) < 0)
        return -1;
    req = json_pack("{s:s,s:O,s:O}", "op", "put", "inputs", d.inputs.tree, "fresh", p->base->fresh);
    rc = told(p, exec_put(j, &d, req, &f, e), &f, e);
    baseline_let_go_base(p->base, j->ref);
    if (rc == 0)
        frame_free(&f);
    return rc;
}

/* Who failed: the candidate is blamed, a baseline is given up. One whose process is not there any more may have been
 * killed for others' sake, or with its fork server: another is made. */
static int blame_measure(struct perf *p, struct err *e)
{
    struct job *j = p->j;
    enum call_fault fault;

    if (p->fault.side != &p->mine) {
        baseline_give_up(p->base);
        p->gone = p->fault.frame == FRAME_CLOSED || p->fault.frame == FRAME_BROKEN;
        return -1;
    }
    if (p->fault.error) {
        job_take_evidence(j, p->fault.error, false);
        job_blame_error(j, p->fault.error, "performance");
        return -1;
    }
    fault = session_fault(j->session, p->fault.frame, e);
    job_blame_call(j, fault, "performance", "in a timed call", e);
    return -1;
}

/* By kind: the candidate's cold, warm and empty calls, the reference's. */
enum { MINE_COLD, MINE_WARM, MINE_EMPTY, EAGER_COLD, EAGER_WARM, EAGER_EMPTY, KINDS };

static void sort_calls(const struct perf *p, struct measure_calls c[KINDS])
{
    static const enum timing_mode modes[] = {TIMING_COLD, TIMING_WARM, TIMING_NULL};

    for (int i = 0; i < KINDS; i++)
        measure_calls(i < EAGER_COLD ? &p->mine.calls : &p->eager.calls, modes[i % 3], &c[i]);
}

static void free_calls(struct measure_calls c[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        measure_calls_free(&c[i]);
}

static bool clocks_agree(const struct perf *p)
{
    struct measure_calls c[KINDS];
    bool agree;

    sort_calls(p, c);
    agree = perf_clocks(&c[MINE_COLD].c, &c[MINE_EMPTY].c, &c[EAGER_COLD].c, &c[EAGER_EMPTY].c).agree;
    free_calls(c);
    return agree;
}

/* Host work elsewhere on the machine can part the clocks of an honest candidate for a while; hidden work does so every
 * time. So a measurement whose clocks disagree is made again, unless the calls are so long that it cannot be that. */
static int measure_until_clocks_agree(struct perf *p, const struct measure_plan *plan, struct err *e)
{
    double before = NAN, now;
    int rc;

    do {
        json_t *first = p->mine.first, *findings = p->mine.findings; /* of both takes: judge_timed */

        before = p->takes ? measure_cold_ms(&p->mine.calls) : NAN;
        p->mine.first = p->mine.findings = NULL;
        measure_side_free(&p->eager);
        measure_side_free(&p->mine);
        p->eager = (struct measure_side){.fd = p->base->child->fd, .which = "eager", .timeout_s = 60};
        p->mine = (struct measure_side){.fd = p->j->session->child->fd, .which = "candidate", .timeout_s = p->j->opt->timeout_s,
                                        .known_s = p->j->call_s, .first = first, .findings = findings};
        rc = measure_pair(&p->eager, &p->mine, plan, &p->fault, e);
    } while (rc == 0 && ++p->takes < (plan->published ? 1 : TAKES) &&
             p->mine.calls.v[0].span_ms < MEASURE_SLOW_S * 1e3 && !clocks_agree(p));
    now = measure_cold_ms(&p->mine.calls);
    p->changed = rc == 0 && !isnan(before) && fmax(before, now) > SAME_TIMES * fmin(before, now);
    return rc;
}

/* What runner/timing.py does with torch's operators where its kernels are not built, and legality.h does not allow. */
static bool is_harness(const char *op)
{
    static const char *const names[] = {"aten::mul", "aten::mul_", "aten::sum", "aten::bitwise_xor_",
                                        "aten::bitwise_and_", "aten::bitwise_right_shift"};
    size_t n = strcspn(op, ".");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !strncmp(names[i], op, n))
            return true;
    return false;
}

/* Operators that the candidate's process counted more of when the last block was over than after the first. */
static json_t *operators_timed(const struct perf *p)
{
    const json_t *before = json_object_get(p->mine.first, "trace"), *after = json_object_get(p->mine.last, "trace");
    bool kernels = json_flag(p->eager.last, "kernels", false); /* both sides have them, or neither */
    json_t *all = json_object(), *count;
    const char *op;

    json_object_foreach((json_t *)after, op, count) {
        int64_t more = json_integer_value(count) - json_i64(before, op, 0);

        if (more > 0 && (kernels || !is_harness(op)))
            json_object_set_new(all, op, json_integer(more));
    }
    return all;
}

static const json_t *forbidden_finding(const struct perf *p)
{
    const json_t *f;
    size_t i;

    json_array_foreach(p->mine.findings, i, f)
        if (job_forbidden(f))
            return f;
    return NULL;
}

/* Legality saw other calls. A program that counts its own could use its kernels there, and operators of torch or a
 * vendor's library here. */
static int judge_timed(struct perf *p, struct err *e)
{
    struct job *j = p->j;
    json_t *all = operators_timed(p), *violations = json_array(), *r = NULL;
    const json_t *found = forbidden_finding(p);

    legality_judge(all, "forward", j->code ? j->code : "", violations);
    if (json_array_size(violations)) {
        r = record_blame(j->rec, "cheating", "performance", "%s does the arithmetic in timed calls",
                         json_str(json_array_get(violations, 0), "op", "?"));
        json_object_set_new(r, "rule", json_string("forbidden_op"));
        json_object_set(r, "timed", violations);
    } else if (found) {
        r = record_blame(j->rec, "cheating", "performance", "in timed calls: %.300s", json_str(found, "message", "?"));
        json_object_set_new(r, "rule", json_string(json_str(found, "kind", "?")));
    }
    json_decref(violations);
    json_decref(all);
    p->tampered = p->tampered || r;
    return r ? err_set(e, ERR_ENV, "not the program's own arithmetic is timed") : 0;
}

static int time_alone(struct perf *p, struct err *e)
{
    const struct eval_options *o = p->j->opt;
    struct measure_plan plan = MEASURE_PLAN_DEFAULT;
    int rc;

    plan.calls = o->calls;
    plan.published = strcmp(o->protocol, "strict") != 0;
    p->usual = measure_usual(&plan);
    plan.output_bytes = p->base->output_bytes;
    plan.input_bytes = baseline_base(p->j->ref)->inputs.n;
    plan.keep_bytes = device_info(p->j->ev->timer)->memory / 64;
    device_health(p->j->ev->timer, &p->before, NULL);
    rc = measure_until_clocks_agree(p, &plan, e);
    part_ends(p, CALLS);
    device_health(p->j->ev->timer, &p->after, NULL);
    if (rc == 0)
        baseline_time_library(p->base, &plan);
    if (rc == 0 && o->compile_baseline && p->base->child)
        baseline_time_compiled(p->base, o->compile_mode, &plan);
    part_ends(p, OTHERS);
    return rc < 0 ? blame_measure(p, e) : judge_timed(p, e);
}

/* ---- what was timed, looked at ---- */

/* The same by the host, from the bytes themselves: a second witness, before anybody is accused. */
static bool as_committed_here(struct job *j, const json_t *tree, size_t n, uint64_t commitment)
{
    char *copy = xmalloc(n + 1);
    uint64_t h = 0;
    bool same = desk_fetch(j->desk, &j->room.copy, 0, copy, n, NULL) < 0 ||
                timing_commitment(tree, copy, n, &h, NULL) < 0 || h == commitment;

    free(copy);
    return same;
}

static int count_tensor(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    (void)path, (void)e;
    *(size_t *)ctx += tree_is_tensor(leaf);
    return 0;
}

static size_t tensors_of(const json_t *tree)
{
    size_t n = 0;

    return tree_each(tree, count_tensor, &n, NULL) < 0 ? SIZE_MAX : n;
}

/* Is it the output that was there when the call ended? What does not fit where the expected one does is wrong
 * anyway: the comparison says how. */
static bool as_committed(struct job *j, const struct ref_draw *want, const struct frame *got, uint64_t commitment)
{
    const json_t *tree = json_object_get(got->head, "output");
    struct err e = ERR_INIT;
    uint64_t h = 0;
    int rc;

    if (tensors_of(tree) != tensors_of(want->eager.tree)) /* each takes a look at the device: not at 100 000 of them */
        return true;
    if (!want->eager.mem)
        return timing_commitment(tree, got->blob, got->n_blob, &h, NULL) == 0 && h == commitment;
    desk_lock(j->desk);
    rc = timing_commitment_on(tree, &j->room.copy, want->eager.n, &h, &e);
    desk_unlock(j->desk);
    if (rc < 0 ? e.kind == ERR_INPUT : h == commitment)
        return true;
    log_debug("%s: the device has another sum of a timed call's output", j->task->name);
    return as_committed_here(j, tree, want->eager.n, commitment);
}

/* Is it the right answer for other data: those that lay there before this call's were drawn? Then it was computed
 * before the judge's clock ran. 0 if that cannot be said. */
static bool is_answer_of(struct perf *p, const struct frame *got, uint64_t seed)
{
    struct err e = ERR_INIT;
    struct frame want;
    struct ref_draw d;
    double abs = 0, rel = 0;
    json_t *worst = NULL;
    bool same;

    if (baseline_expect(p->base, seed, !strcmp(p->j->opt->protocol, "strict"), &d, &want, &e) < 0)
        return false;
    same = correct_compare(p->j, &d, got, &worst, &abs, &rel, &e) == 1;
    json_decref(worst);
    frame_free(&want);
    return same;
}

/* The output of call i is wrong. */
static void blame_output(struct perf *p, int i, const struct frame *got, json_t *worst)
{
    const struct timed_calls *c = &p->mine.calls;
    struct job *j = p->j;
    json_t *r;

    if (p->wrong > 1)
        return;
    if (i > 0 && is_answer_of(p, got, c->v[i - 1].seed)) {
        r = record_blame(j->rec, "cheating", "performance", "the output of a timed call is the answer to the call before it: it "
                         "was computed before the call's own data were there (kernels on a stream that the current stream does "
                         "not wait for), or kept from then");
        json_object_set_new(r, "rule", json_string("stale_output"));
        p->tampered = true;
    } else {
        r = record_blame(j->rec, "correctness_error", "performance", "the output of a timed call is wrong");
    }
    json_object_set(r, "worst", worst);
    json_object_set(json_object_get(j->rec, "correctness"), "worst", worst);
}

/* One output: as committed, and right? Blames for a broken commitment. -1: no answer. */
static int check_output(struct perf *p, int i, struct err *e)
{
    const struct timed_call *c = &p->mine.calls.v[i];
    struct job *j = p->j;
    struct frame got, want;
    struct ref_draw d;
    double abs = 0, rel = 0;
    json_t *worst = NULL, *r;
    int ok;

    if (baseline_expect(p->base, c->seed, !strcmp(j->opt->protocol, "strict"), &d, &want, e) < 0)
        return -1;
    if (told(p, exec_reveal(j, &d, c->slot, &got, e), &got, e) < 0) {
        frame_free(&want);
        return -1;
    }
    if (!as_committed(j, &d, &got, c->commitment)) {
        r = record_blame(j->rec, "cheating", "performance", "the output of a timed call is not the one that was there when the "
                         "call ended");
        json_object_set_new(r, "rule", json_string("late_output"));
        p->tampered = true;
        frame_free(&got);
        frame_free(&want);
        return -1;
    }
    ok = correct_compare(j, &d, &got, &worst, &abs, &rel, e);
    frame_free(&want);
    p->checked += ok >= 0;
    p->wrong += ok == 0;
    if (ok == 0)
        blame_output(p, i, &got, worst);
    json_decref(worst);
    frame_free(&got);
    return ok < 0 ? -1 : 0;
}

static int how_many(const struct perf *p, int kept)
{
    size_t bytes = p->base->output_bytes ? p->base->output_bytes : 1;
    int n = CHECKED_BYTES / bytes > CHECKED_MOST ? CHECKED_MOST : (int)(CHECKED_BYTES / bytes);

    n = n < CHECKED ? CHECKED : n;
    return n < kept ? n : kept;
}

/* Calls are picked after the last one ended, with the system's randomness: nobody could have known. */
static int check_outputs(struct perf *p, struct err *e)
{
    struct rng rng;
    uint64_t seed = 0;
    int rc = 0, n, *at;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return err_set(e, ERR_ENV, "no random numbers from the system");
    rng_seed(&rng, seed, 0);
    at = measure_order(&p->mine.calls, &rng, &n);
    n = how_many(p, n);
    for (int i = 0; i < n && rc == 0; i++)
        rc = check_output(p, at[i], e);
    free(at);
    baseline_rest(p->base);
    part_ends(p, OUTPUTS);
    return rc;
}

/* ---- the section ---- */

static void distrust(json_t *section, const char *reason)
{
    json_object_set_new(section, "trusted", json_false());
    json_array_append_new(json_object_get(section, "reasons"), json_string(reason));
}

static json_t *section(struct perf *p)
{
    const struct device_info *d = device_info(p->j->ev->timer);
    struct measure_calls c[KINDS];
    struct perf_facts f = {.compile_of_eager = {NAN, NAN, NAN}, .library_of_eager = {NAN, NAN, NAN}, .work = p->base->work, .checked = p->checked,
                           .output_wrong = p->wrong > 0 || p->tampered, .inputs_repeat = json_array_size(p->base->fresh) == 0};
    json_t *s;

    sort_calls(p, c);
    f.eager_empty = c[EAGER_EMPTY].c, f.empty = c[MINE_EMPTY].c;
    f.cold = c[MINE_COLD].c, f.warm = c[MINE_WARM].c, f.eager_cold = c[EAGER_COLD].c, f.eager_warm = c[EAGER_WARM].c;
    f.empty_ms = perf_median(f.eager_empty.event_ms, f.eager_empty.n);
    f.overhead = perf_calibrate(&f.eager_cold);
    f.device = perf_limits(d, json_str(p->base->facts, "dtype", "float32"), p->place.tf32);
    f.throttled = (p->before.reasons | p->after.reasons) & PERF_TROUBLE;
    f.device_busy = p->after.processes > p->before.processes; /* who was there before holds the device as we do, or is idle */
    f.seed = hash64(p->base->key, strlen(p->base->key), 1);
    if (p->base->compile_known && p->j->opt->compile_baseline) {
        f.compile_of_eager = p->base->compile_of_eager;
        f.compile_error = p->base->compile_error;
    }
    if (p->base->library_known) {
        f.library_of_eager = p->base->library_of_eager;
        f.library_call = p->base->library_call;
    }
    s = perf_section(&f);
    json_object_set_new(s, "device", json_pack("{s:s,s:s,s:o,s:o}", "name", d->name, "driver", d->driver_version, "before",
                                               perf_health_json(&p->before), "after", perf_health_json(&p->after)));
    if (f.cold.n && f.cold.n < p->usual) /* long calls or large outputs: the interval is wider for it */
        json_object_set_new(json_object_get(s, "calls"), "fewer_than", json_integer(p->usual));
    json_object_set_new(s, "tf32", json_boolean(p->place.tf32));
    json_object_set_new(s, "takes", json_integer(p->takes));
    json_object_set_new(s, "took_ms", took_json(p));
    json_object_set_new(s, "pad_us", json_integer(p->mine.pad_us));
    if (p->changed)
        distrust(s, "changed_between_takes");
    if (p->j->slow && f.cold.n && perf_median(f.cold.event_ms, f.cold.n) < SLOW_S * 1e3 / 2)
        distrust(s, "slow_before");
    free_calls(c);
    return s;
}

/* ---- the stage ---- */

/* As session.c names it. */
static const char *device_name(const struct job *j)
{
    return j->server->uuid ? j->server->uuid : "";
}

static int prepare(struct perf *p, struct err *e)
{
    if (baseline_start(p->base, p->j, &p->place, e) < 0)
        return -1;
    baseline_library(p->base);
    p->compiles = p->j->opt->compile_baseline && baseline_begin_compile(p->base, p->j->opt->compile_mode);
    return p->base->child ? 0 : err_set(e, ERR_ENV, "the baseline's process ended");
}

/* Outputs are looked at when others may use the device again, and are kept until then: not gigabytes by each of many that
 * are timed one after the other. */
static int look_at_once(struct perf *p, struct err *e)
{
    if (check_outputs(p, e) < 0)
        return -1;
    p->looked = true;
    p->fault = (struct measure_fault){0};
    return measure_forget(&p->mine, &p->fault, e) < 0 ? blame_measure(p, e) : 0;
}

static int measure(struct perf *p, struct err *e)
{
    int rc;

    p->j->session->used_s = 0; /* timing has the whole limit for itself */
    rc = put_candidate(p, e);
    part_ends(p, PUTTING);
    rc = rc < 0 || time_alone(p, e) < 0 ? -1 : 0;
    return rc == 0 && (size_t)p->mine.kept * p->base->output_bytes > perf_keeps_much ? look_at_once(p, e) : rc;
}

/* The device and the locked baseline: jobs of one task take turns, and queue for the device together. While one
 * compiles, nobody has the device who waits for that: not through the candidate's session either, which wakes after it. */
static int take_base(struct perf *p, bool alone, bool awake, struct err *e)
{
    for (;;) {
        if (baseline_wait(p->base, e) < 0)
            return -1;
        if (awake)
            session_wake(p->j->session);
        if (hold_take(device_name(p->j), alone, &p->hold, e) < 0)
            return -1;
        baseline_lock(p->base);
        if (!p->base->compiling)
            return 0;
        baseline_unlock(p->base);
        hold_drop(&p->hold);
        session_rest(p->j->session);
    }
}

/* f with both. The session rests, and wakes for check_outputs. */
static int with_base(struct perf *p, bool alone, int (*f)(struct perf *p, struct err *e), struct err *e)
{
    int rc;

    if (take_base(p, alone, f == check_outputs, e) < 0)
        return -1;
    part_ends(p, f == prepare ? PREPARING : WAITING);
    p->gone = f != prepare && !p->base->child;
    rc = p->gone ? err_set(e, ERR_ENV, "the baseline's process ended") : f(p, e);
    baseline_unlock(p->base);
    hold_drop(&p->hold);
    return rc;
}

/* The first job of a task prepares; the others need not even share the device to see that it did. */
static int prepare_base(struct perf *p, struct err *e)
{
    p->compiles = false;
    if (baseline_wait(p->base, e) < 0)
        return -1;
    if (baseline_ready(p->base, p->j->opt->compile_baseline))
        return 0;
    if (with_base(p, false, prepare, e) < 0)
        return -1;
    return p->compiles ? baseline_compile(p->base, p->j->opt->compile_mode, device_name(p->j), e) : 0;
}

static int measure_job(struct perf *p, struct err *e)
{
    struct job *j = p->j;
    const struct device_info *d;
    char machine[256];
    int rc;

    if (perf_open_device(j->ev, j->server->backend, e) < 0)
        return -1;
    d = device_info(j->ev->timer);
    snprintf(machine, sizeof machine, "%s %s torch %s", d->name, d->driver_version,
             json_str(j->server->info, "torch", "?"));
    p->place = (struct baseline_place){.role = j->server->backend->baseline, .device = j->server->backend->place,
                                       .machine = machine, .tf32 = strcmp(j->opt->protocol, "strict") != 0};
    if (reference_all(j, e) < 0)
        return -1;
    j->session->no_builds = true; /* before we hold what others wait for with a slot */
    session_rest(j->session);     /* it holds its share of the device, and we want all of it */
    p->base = baseline_get(j, &p->place);
    do { /* between the two others may have found that its process is not to be used again */
        p->gone = false;
        rc = prepare_base(p, e);
        part_ends(p, PREPARING);
        rc = rc < 0 || with_base(p, true, measure, e) < 0 ? -1 : 0;
    } while (p->gone && ++p->starts < STARTS);
    if (rc == 0 && !p->looked)
        rc = with_base(p, false, check_outputs, e);
    session_wake(j->session);
    return rc;
}

/* Others hold what timing needs, so that it is tried again without them; alone, the verdict stands without times. */
static bool crowded_out(const struct job *j, int rc, const struct err *why)
{
    return rc < 0 && !job_blamed(j) && !j->alone && why->lack != LACK_NONE;
}

static int perf_run(struct job *j, struct err *e)
{
    struct perf p = {.j = j, .since = now_s()};
    struct err why = ERR_INIT;
    int rc;

    record_set(j->rec, "performance", json_null());
    record_set(j->rec, "stage", json_string("performance"));
    if (!j->opt->perf || !j->server->backend->timed)
        return 0;
    if (j->life)
        return perf_by_replay(j, e);
    rc = measure_job(&p, &why);
    if (p.base)
        baseline_lock(p.base);
    if (p.mine.calls.n && p.base && p.base->child && (rc == 0 || job_blamed(j)))
        record_set(j->rec, "performance", section(&p));
    else if (rc < 0 && !job_blamed(j) && why.kind != ERR_STOP)
        record_set(j->rec, "performance", perf_untimed(&why));
    if (p.base)
        baseline_unlock(p.base);
    baseline_release(j->ev, p.base);
    measure_side_free(&p.eager);
    measure_side_free(&p.mine);
    json_decref(p.fault.error);
    if (why.kind == ERR_STOP)
        return err_set(e, ERR_STOP, "interrupted");
    if (!crowded_out(j, rc, &why))
        return 0;
    *e = why;
    return -1;
}

const struct stage stage_perf = {"performance", perf_run, false};
