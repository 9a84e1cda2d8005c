/* stage_legality.c - was the arithmetic done by the candidate's own kernels? Dispatch traces and the emulator's findings
 * may convict; acquittal needs the ablation run: with all launches removed the answer must become wrong. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "eval/job.h"
#include "eval/legality.h"
#include "eval/record.h"

static int64_t total(const json_t *launches)
{
    const char *k;
    json_t *v;
    int64_t n = 0;

    json_object_foreach((json_t *)launches, k, v)
        n += json_integer_value(v);
    return n;
}

/* What the built libraries refer to, found without running them (build.h). */
static void built_references(const struct job *j, json_t *violations)
{
    const json_t *f;
    size_t i;

    json_array_foreach(j->session->findings, i, f) {
        bool library = !strcmp(json_str(f, "kind", ""), "library_call");
        json_t *v = json_pack("{s:s,s:s}", "rule", json_str(f, "kind", "?"), "op", json_str(f, "name", "?"));

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

/* The draw whose expected values are farthest from trivial: the first one whose outputs are not all zero. */
static const struct ref_draw *telling_draw(const struct reference *r)
{
    for (size_t i = 0; i < r->n_draws; i++)
        for (size_t k = 0; k < json_array_size(r->draws[i].noise); k++)
            if (json_num_value(json_object_get(json_array_get(r->draws[i].noise, k), "max_abs")) > 0)
                return &r->draws[i];
    return &r->draws[0];
}

/* 1: the answer is still right without any launch. 0: it is not (or the run broke, which is as good). -1: infra. */
static int run_ablated(struct job *j, struct err *e)
{
    const struct ref_draw *d = telling_draw(j->ref);
    struct exec_call call = {.draw = d, .ablation = true};
    double abs_err = 0, rel_err = 0;
    enum call_fault fault;
    json_t *worst = NULL;
    struct frame f;
    int same = 0;

    if (reference_hold(j->ref, d, e) < 0)
        return -1;
    fault = exec_run(j, &call, &f, e);
    if (fault == CALL_OK) {
        if (!strcmp(json_str(f.head, "op", ""), "result"))
            same = correct_compare(j, d, &f, &worst, &abs_err, &rel_err, e);
        json_decref(worst);
        frame_free(&f);
    }
    reference_let_go(j->ref, d);
    return fault == CALL_INFRA ? -1 : same;
}

/* The same in a new process whose launches never ran at all: a graph that was recorded before replays what it holds
 * whatever the switch says, one that is recorded there holds no kernel of the candidate. */
static int run_ablated_from_start(struct job *j, struct err *e)
{
    struct job again = *j;
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
    if (session_open(j->ev, j->server, j->opt, j->alone, &again.session, e) < 0 || job_construct(&again, j->code, e) < 0 ||
        (again.ready && correct_parameters(&again, e) < 0))
        still = -1;
    else if (again.ready && !job_blamed(&again))
        still = run_ablated(&again, e);
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
    int still = run_ablated(j, e);

    return still == 1 && j->captured > 0 ? run_ablated_from_start(j, e) : still;
}

static void violation(json_t *list, const char *rule, const char *message)
{
    json_array_append_new(list, json_pack("{s:s,s:s}", "rule", rule, "message", message));
}

static int legality_run(struct job *j, struct err *e)
{
    json_t *violations, *first;
    int64_t launches;
    int still = 0;
    bool ablated = false;

    if (!j->session)
        return 0;
    violations = json_array();
    launches = total(j->launches) - j->launches_before;
    legality_judge(j->trace_init, "init", j->code, violations);
    legality_judge(j->trace_forward, "forward", j->code, violations);
    library_calls(j, violations);
    built_references(j, violations);
    replaced_names(j, violations);
    host_arithmetic(j, violations);
    if (j->ran && launches == 0)
        violation(violations, "no_kernel", "forward launches no kernel of its own");
    else if (j->all_passed && json_array_size(violations) == 0) {
        ablated = true;
        if ((still = ablate(j, e)) == 1)
            violation(violations, "decoy_kernels", "the answer stays right when all kernel launches are removed");
    }
    if (still < 0) {
        json_decref(violations);
        return -1;
    }
    record_set(j->rec, "legality",
               json_pack("{s:b,s:O,s:{s:s,s:s,s:s,s:s},s:I,s:O,s:o}", "ok", json_array_size(violations) == 0, "violations",
                         violations, "lists", "published", LEGALITY_PUBLISHED, "plumbing", LEGALITY_PLUMBING, "init",
                         LEGALITY_INIT, "foreign", LEGALITY_FOREIGN, "launches", (json_int_t)launches, "kernels", j->launches, "ablation",
                         ablated ? json_string(still ? "still right" : "wrong, as it must be")
                                                   : json_null()));
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
