/* stage_legality.c - was the arithmetic done by the candidate's own kernels? Dispatch traces and the emulator's findings
 * may convict; acquittal needs the ablation run: with all launches removed the answer must become wrong. Before it,
 * calls
 * are watched: what the host hands the device may depend on shapes and weights, not on the input's values
 * (hostflow.h). */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "eval/job.h"
#include "eval/hostflow.h"
#include "eval/legality.h"
#include "eval/record.h"

/* What the built libraries refer to, found without running them (build.h). */
static void built_references(const struct job *j, json_t *violations)
{
    const json_t *f;
    size_t i;

    json_array_foreach(j->session->findings, i, f) {
        bool library = !strcmp(json_str(f, "kind", ""), "library_call");
        json_t *v;

        if (!strcmp(json_str(f, "kind", ""), "lacking"))
            continue;
        v = json_pack("{s:s,s:s}", "rule", json_str(f, "kind", "?"), "op", json_str(f, "name", "?"));

        json_object_set_new(v, "message", json_string(library ? "the extension calls a vendor's library"
                                                              : "the extension refers to a function that no kernel needs"));
        json_array_append_new(violations, v);
    }
}

/* What the running program called: litetorch's stubs of libraries, names that it looked up. */
static void library_calls(const struct job *j, json_t *violations)
{
    const json_t *f;
    size_t i;

    json_array_foreach(j->findings, i, f) {
        json_t *v;

        if (!job_forbidden(f))
            continue;
        v = json_pack("{s:s,s:s}", "rule", json_str(f, "kind", "?"), "op",
                      json_str(f, "name", json_str(f, "message", "?")));
        json_object_set_new(v, "line", json_deep_copy(json_object_get(f, "line")));
        json_object_set_new(v, "message", json_string(json_str(f, "message", "")));
        json_array_append_new(violations, v);
    }
}

/* Nobody needs another clock, comparison or harness to compute a result. */
static void replaced_names(const struct job *j, json_t *violations)
{
    const json_t *name;
    size_t i;

    json_array_foreach(j->replaced, i, name) {
        struct buf b;

        buf_init(&b, 512);
        buf_addf(&b, "the program replaces %.200s", json_is_string(name) ? json_string_value(name) : "?");
        json_array_append_new(violations, json_pack("{s:s,s:O,s:o}", "rule", "harness_replaced", "name", name, "message",
                                                    json_utf8(b.p, b.n)));
        buf_free(&b);
    }
}

/* Numbers that leave the device and come back were computed on the host. Evidence of both directions is needed: reading
 * a result, or uploading a table, is nobody's arithmetic. */
static void host_arithmetic(const struct job *j, json_t *violations)
{
    int64_t out = json_i64(j->trace_forward, "copy::to_host", 0) + j->copies_to_host;
    int64_t in = json_i64(j->trace_forward, "copy::to_device", 0) + j->copies_to_device;

    if (out > 0 && in > 0)
        json_array_append_new(violations, json_pack("{s:s,s:s}", "rule", "host_arithmetic", "message",
                                                    "forward copies tensors to the host and back; the arithmetic must be "
                                                    "done by kernels"));
}

/* The first draw that tells a right answer from zeros. */
static const struct ref_draw *telling_draw(const struct job *j)
{
    const struct reference *r = j->ref;

    for (size_t i = 0; i < r->n_draws; i++)
        if (ref_decides(&r->draws[i], j->opt->protocol, task_setting(j->task, j->variant, "tolerance")))
            return &r->draws[i];
    return &r->draws[0];
}

/* 1: the answer is still right without any launch. 0: it is not (or the run broke, which is as good). -1: infra.
 * Broken is
 * also a loop that waits for what kernels write and so never ends: it gets as long as everything before, and 5 s. */
static int run_ablated(struct job *j, bool *ret_broken, struct err *e)
{
    const struct ref_draw *d = telling_draw(j);
    struct exec_call call = {.draw = d, .ablation = true};
    double abs_err = 0, rel_err = 0, used = j->session->used_s, spare = j->opt->timeout_s - 2 * used - 5;
    enum call_fault fault;
    json_t *worst = NULL;
    struct frame f;
    int same = 0;

    if (reference_hold(j->ref, d, e) < 0)
        return -1;
    j->session->used_s += spare > 0 ? spare : 0;
    fault = exec_run(j, &call, &f, e);
    j->session->used_s = used;
    if (fault == CALL_OK) {
        if (!strcmp(json_str(f.head, "op", ""), "result"))
            same = correct_compare(j, d, &f, &worst, &abs_err, &rel_err, e);
        json_decref(worst);
        frame_free(&f);
    }
    reference_let_go(j->ref, d);
    *ret_broken = fault != CALL_OK && fault != CALL_INFRA;
    return fault == CALL_INFRA ? -1 : same;
}

/* Another process of the same program, for what is still to come: the first one hangs, or is gone. */
static int replace_session(struct job *j, struct err *e)
{
    exec_free(j);
    j->room = (struct exec_room){.copy = {.dev = NULL}};
    j->desk = NULL;
    session_close(j->session);
    j->session = NULL;
    if (session_open(j->ev, j->server, j->opt, j->code, j->alone, &j->session, e) < 0 || job_construct(j, j->code, e) < 0)
        return -1;
    return j->ready && !job_blamed(j) ? correct_parameters(j, e) : 0;
}

/* The same in a new process: a graph that was recorded before replays what it holds whatever the switch says, one that
 * is recorded there holds no kernel of the candidate, from the start. What __init__ computes outside of graphs it
 * computes there too, because it does in the process where forward's launches alone are taken away. */
static int run_ablated_from_start(struct job *j, struct err *e)
{
    struct job again = *j;
    bool broken;
    int still = 0;

    again.rec = record_new("", "", "", "", "", "");
    again.session = NULL;
    again.room = (struct exec_room){.copy = {.dev = NULL}};
    again.desk = NULL;
    again.state = again.launches = NULL;
    again.trace_init = json_object();
    again.trace_forward = json_object();
    again.findings = json_array();
    again.replaced = json_array();
    again.ablated = true;
    session_rest(j->session); // a process waits for a slot while its twin runs
    if (session_open(j->ev, j->server, j->opt, j->code, j->alone, &again.session, e) < 0 || job_construct(&again, j->code, e) < 0 ||
        (again.ready && correct_parameters(&again, e) < 0))
        still = -1;
    else if (again.ready && !job_blamed(&again))
        still = run_ablated(&again, &broken, e);
    exec_free(&again);
    session_close(again.session);
    j->ref = again.ref;
    session_wake(j->session);
    json_t *owned[] = {again.rec, again.state, again.launches, again.trace_init, again.trace_forward, again.findings,
                       again.replaced};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    return still;
}

static int ablate(struct job *j, struct err *e)
{
    bool broken = false;
    int still = run_ablated(j, &broken, e);

    if (broken && j->server->backend->timed && replace_session(j, e) < 0)
        return -1;
    return still == 1 && j->captured > 0 ? run_ablated_from_start(j, e) : still;
}

/* ---- watched calls ---- */

/* A draw whose values have little to do with d's: of another regime, else far from it, because every second one is the
 * one before with a few elements changed. Layouts are the same. NULL: there is none. */
static const struct ref_draw *other_draw(const struct reference *r, const struct ref_draw *d)
{
    const struct ref_draw *best = NULL;

    for (size_t i = 0; i < r->n_draws; i++) {
        const struct ref_draw *o = &r->draws[i];

        if (strcmp(o->regime, d->regime))
            return o;
        if (o != d && (!best || labs((long)(o - d)) > labs((long)(best - d))))
            best = o;
    }
    return best;
}

struct watched {
    json_t *seen;    /* {"records","read","streams","unjoined"}, or NULL */
    int64_t outputs; /* bytes */
};

/* What a watched call came back with. Returns as watch_call. */
static int watched_reply(struct job *j, const struct ref_draw *d, const struct frame *f, struct watched *ret,
                         struct err *e)
{
    bool result = !strcmp(json_str(f->head, "op", ""), "result");
    double abs_err = 0, rel_err = 0;
    json_t *worst = NULL;
    int ok = 0;

    job_take_evidence(j, f->head, false);
    job_blame_error(j, result ? NULL : f->head, "legality");
    if (!job_blamed(j) && (ok = correct_compare(j, d, f, &worst, &abs_err, &rel_err, e)) == 0)
        record_blame(j->rec, "correctness_error", "legality", "forward was right before and is wrong now");
    if (ok == 1) {
        json_decref(ret->seen);
        ret->seen = json_incref(json_object_get(f->head, "watched"));
        ret->outputs = (int64_t)d->eager.n;
    }
    json_decref(worst);
    return ok;
}

/* One watched call on draw d, in the memory of the last one's inputs. Returns 1, 0 if it ended in a blame, -1:
 * infra. */
static int watch_call(struct job *j, const struct ref_draw *d, const char *mode, struct watched *ret, struct err *e)
{
    struct exec_call call = {.draw = d, .same_memory = true, .watch = mode};
    enum call_fault fault;
    struct frame f;
    int ok = -1;

    if (reference_hold(j->ref, d, e) < 0)
        return -1;
    fault = exec_run(j, &call, &f, e);
    if (fault == CALL_OK) {
        ok = watched_reply(j, d, &f, ret, e);
        frame_free(&f);
    }
    reference_let_go(j->ref, d);
    return fault == CALL_OK ? ok : job_blame_call(j, fault, "legality", "in forward (watched)", e) < 0 ? -1 : 0;
}

/* The verdict over the calls so far; before may be NULL. */
static bool flows(const struct ref_draw *d, const struct watched *before, const struct watched *again,
                  const struct watched *now, struct hostflow *flow, char *text, size_t n)
{
    hostflow_novelty(before ? json_object_get(before->seen, "records") : NULL, json_object_get(again->seen, "records"),
                     json_object_get(now->seen, "records"), flow);
    return hostflow_convicts(flow, json_i64(now->seen, "read", 0), (int64_t)d->inputs.n, now->outputs, text, n);
}

/* Two calls on different values, each seen from the other: a host that only ever corrects negative numbers does
 * nothing on positive ones. Only if what it handed over differs too much, three more: two on equal values say what
 * changes from call to call anyway. Returns as watch_call. */
static int watch_values(struct job *j, struct watched w[3], struct hostflow *flow, json_t *violations, struct err *e)
{
    const struct ref_draw *a = telling_draw(j), *b = other_draw(j->ref, a), *now;
    char text[512];
    int ok;

    if (!b)
        return 1;
    if ((ok = watch_call(j, a, "record", &w[1], e)) != 1 || (ok = watch_call(j, b, "record", &w[2], e)) != 1)
        return ok;
    if (flows(b, NULL, &w[1], &w[2], flow, text, sizeof text))
        now = b;
    else if (flows(a, NULL, &w[2], &w[1], flow, text, sizeof text))
        now = a;
    else
        return 1;
    for (int i = 0; i < 3; i++)
        if ((ok = watch_call(j, i == 2 ? now : now == a ? b : a, "record", &w[i], e)) != 1)
            return ok;
    if (flows(now, &w[0], &w[1], &w[2], flow, text, sizeof text))
        json_array_append_new(violations, json_pack("{s:s,s:o}", "rule", "host_computes", "message",
                                                    json_utf8(text, strlen(text))));
    return 1;
}

static void unjoined(const json_t *seen, json_t *violations)
{
    const char *kernel = json_str(seen, "unjoined", NULL);
    struct buf b;

    if (!kernel)
        return;
    buf_init(&b, 512);
    buf_addf(&b, "kernel %.300s runs on another stream, which the current stream does not wait for", kernel);
    json_array_append_new(violations, json_pack("{s:s,s:o}", "rule", "side_stream", "message", json_utf8(b.p, b.n)));
    buf_free(&b);
}

/* Kernels on another stream that the call's own stream does not wait for may still run when the clock stops. */
static int watch_streams(struct job *j, struct watched *w, json_t *violations, struct err *e)
{
    int ok;

    if (json_i64(w->seen, "streams", 0) == 0)
        return 1;
    if ((ok = watch_call(j, telling_draw(j), "gate", w, e)) == 1)
        unjoined(w->seen, violations);
    return ok;
}

/* The same where answers were wrong, which such kernels make them at times: the category does not hang on who came
 * first.
 * 0, or -1: infra. */
static int watch_wrong(struct job *j, json_t *violations, struct err *e)
{
    struct exec_call call = {.draw = telling_draw(j), .same_memory = true, .watch = "gate"};
    enum call_fault fault;
    struct frame f;

    if (j->side_launches == 0 || strcmp(json_str(record_reason(j->rec), "category", ""), "correctness_error"))
        return 0;
    if (reference_hold(j->ref, call.draw, e) < 0)
        return -1;
    fault = exec_run(j, &call, &f, e);
    if (fault == CALL_OK) {
        unjoined(json_object_get(f.head, "watched"), violations);
        frame_free(&f);
    }
    reference_let_go(j->ref, call.draw);
    return fault == CALL_INFRA ? -1 : 0;
}

/* Returns as watch_call; *ret: what was seen, for the record. The calls have a time budget of their own. */
static int watch(struct job *j, json_t *violations, json_t **ret, struct err *e)
{
    struct watched w[3] = {{0}};
    struct hostflow flow = {0};
    double used = j->session->used_s;
    int ok;

    j->session->used_s = 0;
    ok = reference_all(j, e) < 0 ? -1 : watch_values(j, w, &flow, violations, e);
    if (ok == 1)
        ok = watch_streams(j, &w[2], violations, e);
    j->session->used_s = used;
    *ret = json_pack("{s:I,s:I,s:I}", "records", (json_int_t)flow.records, "novel_bytes", (json_int_t)flow.novel,
                     "read_bytes", (json_int_t)json_i64(w[2].seen, "read", 0));
    for (int i = 0; i < 3; i++)
        json_decref(w[i].seen);
    return ok;
}

/* What needs no run of its own. */
static void evidence(const struct job *j, json_t *violations)
{
    legality_judge(j->trace_init, "init", j->code, violations);
    legality_judge(j->trace_forward, "forward", j->code, violations);
    library_calls(j, violations);
    built_references(j, violations);
    replaced_names(j, violations);
    host_arithmetic(j, violations);
}

bool legality_convicts(const struct job *j)
{
    json_t *violations;
    bool any;

    if (j->life)
        return legality_replay_convicts(j);
    violations = json_array();
    evidence(j, violations);
    any = json_array_size(violations) > 0;
    json_decref(violations);
    return any;
}

static void violation(json_t *list, const char *rule, const char *message)
{
    json_array_append_new(list, json_pack("{s:s,s:s}", "rule", rule, "message", message));
}

static int legality_run(struct job *j, struct err *e)
{
    json_t *violations, *first, *watched = NULL;
    int64_t launches;
    int still = 0;
    bool ablated = false;

    if (!j->session)
        return 0;
    if (j->life)
        return legality_replay(j, e);
    violations = json_array();
    launches = job_launches(j) - j->launches_before;
    evidence(j, violations);
    if (j->ran && launches == 0)
        violation(violations, "no_kernel", "forward launches no kernel of its own");
    else if (j->all_passed && json_array_size(violations) == 0) {
        still = watch(j, violations, &watched, e) < 0 ? -1 : 0;
        ablated = still == 0 && !job_blamed(j);
        if (ablated && (still = ablate(j, e)) == 1)
            violation(violations, "decoy_kernels", "the answer stays right when all kernel launches are removed");
    } else if (j->ran && json_array_size(violations) == 0) {
        still = watch_wrong(j, violations, e);
    }
    if (still < 0) {
        json_decref(watched);
        json_decref(violations);
        return -1;
    }
    record_set(j->rec, "legality",
               json_pack("{s:b,s:O,s:{s:s,s:s,s:s,s:s},s:I,s:O,s:o,s:o?}", "ok", json_array_size(violations) == 0,
                         "violations", violations, "lists", "published", LEGALITY_PUBLISHED, "plumbing", LEGALITY_PLUMBING,
                         "init", LEGALITY_INIT, "foreign", LEGALITY_FOREIGN, "launches", (json_int_t)launches, "kernels", j->launches, "ablation",
                         ablated ? json_string(still ? "still right" : "wrong, as it must be")
                                                   : json_null(), "host", watched));
    first = json_array_get(violations, 0);
    if (first && !strcmp(json_str(first, "rule", ""), "forbidden_symbol"))
        record_blame(j->rec, "cheating", "legality", "the extension refers to %s", json_str(first, "op", "?"));
    else if (first && json_object_get(first, "op"))
        record_blame(j->rec, "cheating", "legality", "%s does the arithmetic", json_str(first, "op", "?"));
    else if (first)
        record_blame(j->rec, "cheating", "legality", "%s", json_str(first, "message", ""));
    json_decref(violations);
    return 0;
}

const struct stage stage_legality = {"legality", legality_run, true};
