/* stage_load.c - starts the candidate's process, imports the program and constructs ModelNew. Builds happen in here too:
 * the program's load_inline calls block until the compile stage has answered. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/job.h"
#include "eval/place.h"
#include "eval/record.h"

static void tampered(struct job *j, const char *what)
{
    if (json_array_size(j->replaced) < 16)
        json_array_append_new(j->replaced, json_string(what));
}

/* Counts in replies run from the process's start: what is new belongs to this phase, and none can become smaller. */
static void take_trace(struct job *j, json_t *into, const json_t *trace)
{
    json_t **seen = &j->session->trace_seen, *count;
    const char *op;

    json_object_foreach(*seen, op, count)
        if (json_i64(trace, op, 0) < json_integer_value(count)) {
            tampered(j, "the record of operators");
            break;
        }
    json_object_foreach((json_t *)trace, op, count) {
        int64_t more = json_integer_value(count) - json_i64(*seen, op, 0);

        if (more > 0)
            json_object_set_new(into, op, json_integer(json_i64(into, op, 0) + more));
    }
    json_decref(*seen);
    *seen = json_deep_copy(trace);
}

/* The emulator counts its findings for good, so that one which did not arrive was taken away. */
static void count_findings(struct job *j, const json_t *findings, int64_t found)
{
    const json_t *f;
    size_t i;

    json_array_foreach(findings, i, f)
        if (json_object_get(f, "block"))
            j->session->findings_seen += json_i64(f, "alike", 1);
    if (found > j->session->findings_seen)
        tampered(j, "the emulator's findings");
}

/* Every reply of the harness carries all of it. */
static bool complete(const json_t *head)
{
    static const char *const numbers[] = {"to_host", "to_device", "found"};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!json_is_integer(json_object_get(head, numbers[i])))
            return false;
    return json_is_object(json_object_get(head, "trace")) && json_is_object(json_object_get(head, "launches")) &&
           json_is_array(json_object_get(head, "findings")) && json_is_array(json_object_get(head, "replaced"));
}

void job_take_evidence(struct job *j, const json_t *head, bool init)
{
    const json_t *launches = json_object_get(head, "launches"), *findings = json_object_get(head, "findings");

    if (j->life) {
        life_take_report(j, head);
        return;
    }
    if (!complete(head))
        tampered(j, "the harness's replies");

    take_trace(j, init ? j->trace_init : j->trace_forward, json_object_get(head, "trace"));
    count_findings(j, findings, json_i64(head, "found", 0));
    if (json_is_object(launches)) {
        json_decref(j->launches);
        j->launches = json_deep_copy(launches);
    }
    if (!init) {
        j->copies_to_host += json_i64(head, "to_host", 0);
        j->copies_to_device += json_i64(head, "to_device", 0);
    }
    j->device_short |= json_flag(head, "device_short", false);
    j->captured += json_i64(head, "captured", 0);
    j->side_launches = json_i64(head, "side_launches", j->side_launches);
    if (json_array_size(json_object_get(head, "replaced")) && !json_array_size(j->replaced))
        json_array_extend(j->replaced, json_object_get(head, "replaced"));
    if (json_is_array(findings) && json_array_size(j->findings) < 64)
        json_array_extend(j->findings, (json_t *)findings);
}

int64_t job_launches(const struct job *j)
{
    const char *kernel;
    json_t *n;
    int64_t all = 0;

    json_object_foreach(j->launches, kernel, n)
        all += json_integer_value(n);
    return all;
}

bool job_forbidden(const json_t *finding)
{
    const char *kind = json_str(finding, "kind", "");

    return !strcmp(kind, "library_call") || !strcmp(kind, "forbidden_symbol");
}

static const json_t *first_finding(const struct job *j)
{
    const json_t *f;
    size_t i;

    json_array_foreach(j->findings, i, f)
        if (!job_forbidden(f) && strcmp(json_str(f, "severity", ""), "warning"))
            return f;
    return NULL;
}

static void set_line(struct job *j, json_t *r, int64_t line)
{
    char text[200];

    if (line < 1 || !place_line(j->code, line, text, sizeof text))
        return;
    json_object_set_new(r, "line", json_integer(line));
    json_object_set_new(r, "text", json_utf8(text, strlen(text)));
}

/* The device says that an assert failed, and its words on the process's output say which. */
static void find_assert(struct job *j, json_t *r, json_t *finding)
{
    struct place_assert a;
    char *text;

    if (strcmp(json_str(finding, "kind", ""), "assertion") || json_i64(finding, "line", 0) > 0 ||
        !place_assert(session_output(j->session), &a))
        return;
    text = xasprintf("an assert() in a kernel failed: %s", a.what);
    json_object_set_new(r, "message", json_utf8(text, strlen(text)));
    free(text);
    json_object_set_new(finding, "file", json_utf8(a.file, strlen(a.file)));
    json_object_set_new(finding, "line", json_integer(a.line));
    json_object_set_new(finding, "kernel", json_utf8(a.kernel, strlen(a.kernel)));
}

static void set_finding(struct job *j, json_t *r, const json_t *f)
{
    json_t *copy = json_deep_copy(f);
    char text[200];

    find_assert(j, r, copy);
    if (session_source_line(j->session, json_str(copy, "file", ""), json_i64(copy, "line", 0), text, sizeof text))
        json_object_set_new(copy, "text", json_utf8(text, strlen(text)));
    json_object_set_new(r, "finding", copy);
}

/* An exception, or a fault that the emulator found: runtime_error with everything that helps to find it. */
void job_blame_error(struct job *j, const json_t *head, const char *stage)
{
    const json_t *f = first_finding(j);
    const char *category;
    json_t *r;

    if (!f && !head)
        return;
    category = f && !strcmp(json_str(f, "kind", ""), "unsupported") ? "unsupported" : "runtime_error";
    r = f ? record_blame(j->rec, category, stage, "%.1500s", json_str(f, "message", ""))
          : record_blame(j->rec, "runtime_error", stage, "%.80s: %.3000s", json_str(head, "type", ""),
                         json_str(head, "message", ""));
    if (f)
        set_finding(j, r, f);
    if (head && json_i64(head, "line", -1) > 0) {
        json_object_set_new(r, "line", json_integer(json_i64(head, "line", 0)));
        json_object_set_new(r, "text", json_string(json_str(head, "text", "")));
    }
}

/* What the emulator's handler found last before the process died; NULL if it wrote nothing. */
static json_t *last_words(const struct job *j)
{
    struct err e = ERR_INIT;
    size_t n = 0;
    const char *text = place_findings(session_output(j->session), &n);
    json_t *list = text ? json_parse(text, n, "last words", &e) : NULL, *f;

    f = list ? json_incref(json_array_get(list, json_array_size(list) - 1)) : NULL;
    json_decref(list);
    if (json_is_object(f))
        return f;
    json_decref(f);
    return NULL;
}

static size_t may_have(const struct job *j)
{
    return j->server->backend->memory_bytes ? j->server->backend->memory_bytes : JAIL_MEMORY;
}

bool job_was_large(const struct job *j)
{
    return j->session && j->session->ended && j->session->end.peak >= may_have(j) / 2;
}

/* Who was killed is told why, as far as the kernel says. */
static void blame_kill(struct job *j, const char *stage, const char *during)
{
    const struct child_end *end = &j->session->end;
    const double gib = 1 << 30;
    json_t *r;

    if (end->outside)
        r = record_blame(j->rec, "runtime_error", stage, "the process was killed from outside %s: the machine had no "
                         "memory left, it seems; the process had %.1f GiB of it, and may have %.1f GiB", during,
                         (double)end->peak / gib, (double)may_have(j) / gib);
    else
        r = record_blame(j->rec, "runtime_error", stage, "the process was killed %s: signal 9 (Killed), and not for "
                         "memory; did it do that itself?", during);
    set_line(j, r, place_python(session_output(j->session), NULL));
}

static void blame_signal(struct job *j, const char *stage, const char *during)
{
    int sig = j->session->end.signal;
    json_t *f = last_words(j), *r;

    r = record_blame(j->rec, "runtime_error", stage, "the process crashed %s: signal %d (%s)%s%.1500s", during, sig,
                     strsignal(sig), f ? ": " : "", f ? json_str(f, "message", "") : "");
    if (f)
        set_finding(j, r, f);
    set_line(j, r, place_python(session_output(j->session), NULL));
    json_decref(f);
}

static void blame_death(struct job *j, const char *stage, const char *during)
{
    const struct child_end *end = &j->session->end;
    json_t *r;

    if (end->why == PROC_SIGNALED) {
        (end->signal == SIGKILL ? blame_kill : blame_signal)(j, stage, during);
        return;
    }
    if (end->why == PROC_MEMORY)
        r = record_blame(j->rec, "runtime_error", stage, "out of memory %s: the process exceeded its memory limit",
                         during);
    else
        r = record_blame(j->rec, "runtime_error", stage, "the process ended itself %s (exit code %d)", during,
                         end->code);
    set_line(j, r, place_python(session_output(j->session), NULL));
}

static void blame_timeout(struct job *j, const char *stage, const char *during)
{
    const char *output = session_output(j->session);
    bool waiting;
    int64_t line = place_python(output, &waiting);
    char kernels[300] = "";
    json_t *r;

    if (waiting)
        place_kernels(output, kernels, sizeof kernels);
    r = record_blame(j->rec, "timeout", stage, "still running after %g s (--timeout) %s%s%s", j->opt->timeout_s,
                     during, waiting ? ": the device has not finished what was launched" : "", kernels);

    set_line(j, r, line);
}

int job_blame_call(struct job *j, enum call_fault fault, const char *stage, const char *during, struct err *e)
{
    json_t *r;

    switch (fault) {
    case CALL_OK: return 0;
    case CALL_TIMEOUT: blame_timeout(j, stage, during); return 0;
    case CALL_DIED: blame_death(j, stage, during); return 0;
    case CALL_FORGED:
        r = record_blame(j->rec, "cheating", stage, "the program wrote to the judge's channel %s", during);
        json_object_set_new(r, "rule", json_string("forged_channel"));
        return 0;
    case CALL_INFRA: break;
    }
    return e->kind == ERR_NONE ? err_set(e, ERR_ENV, "the judge lost the candidate's process %s", during) : -1;
}

static void blame_load_error(struct job *j, const json_t *head)
{
    const char *type = json_str(head, "type", "");
    json_t *r;

    if (json_flag(head, "missing_model", false)) {
        record_blame(j->rec, "extraction_error", "load", "%.300s", json_str(head, "message", ""));
    } else if (!strcmp(json_str(head, "phase", ""), "import") &&
               (!strcmp(type, "SyntaxError") || !strcmp(type, "IndentationError") || !strcmp(type, "TabError"))) {
        r = record_blame(j->rec, "compile_error", "load", "Python %s: %.500s", type, json_str(head, "message", ""));
        json_object_set_new(r, "line", json_integer(json_i64(head, "line", 0)));
        json_object_set_new(r, "text", json_string(json_str(head, "text", "")));
    } else if (j->session->builds_failed == 0) {
        job_blame_error(j, head, "load"); /* after a failed build the exception is its echo: stage compile blames */
    }
}

int job_reference(struct job *j, const char *params, struct err *e)
{
    bool awake = j->session && j->session->slot;
    double t0 = now_s();
    int rc;

    reference_release(j->ev, j->ref);
    if (awake) /* while a reference is made nobody waits for it with a share of the device */
        session_rest(j->session);
    j->ref = NULL;
    rc = reference_get(j, params, &j->ref, e);
    j->reference_s += now_s() - t0;
    if (awake)
        session_wake(j->session);
    j->yields = j->yields && rc < 0;
    return rc;
}

int job_construct(struct job *j, const char *source, struct err *e)
{
    json_t *req = json_pack("{s:s,s:b,s:f,s:o?,s:O,s:I,s:s,s:s?}", "op", "load",
                            "ablation", j->ablated, "timeout_s", j->opt->timeout_s,
                            "source", source ? json_utf8(source, strlen(source)) : NULL, "init", j->ref->init.tree, "seed",
                            (json_int_t)j->ref->init_seed, "mode", j->ref->mode, "dtype", j->ref->dtype);
    struct frame f;
    enum call_fault fault;
    int rc;

    if (source) /* later there may be tensors already, and what works on them asks nobody */
        session_on_host(j->session, true);
    fault = session_call(j->session, req, j->ref->init.bytes, j->ref->init.n, &f, e);
    j->ready = false;
    json_decref(req);
    if (fault != CALL_OK) { /* who hangs is ended first; what follows frees memory or looks at the device */
        rc = job_blame_call(j, fault, "load", "while the program was imported and constructed", e);
        session_on_host(j->session, false);
        return rc;
    }
    session_on_host(j->session, false);
    job_take_evidence(j, f.head, true);
    if (!strcmp(json_str(f.head, "op", ""), "ready")) {
        j->ready = true;
        json_decref(j->state);
        j->state = json_incref(json_object_get(f.head, "state"));
    } else {
        blame_load_error(j, f.head);
    }
    frame_free(&f);
    return 0;
}

static int load_run(struct job *j, struct err *e)
{
    if (j->opt->perf)
        server_expect_baseline(j->ev, j->server);
    if (job_reference(j, strcmp(j->opt->protocol, "strict") ? "seed" : "random", e) < 0 ||
        session_open(j->ev, j->server, j->opt, j->code, j->alone, &j->session, e) < 0)
        return -1;
    if (j->server->backend->front && life_open(j, e) < 0)
        return -1;
    return job_construct(j, j->code, e);
}

const struct stage stage_load = {"load", load_run, false};
