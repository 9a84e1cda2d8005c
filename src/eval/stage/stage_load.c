/* stage_load.c - starts the candidate's process, imports the program and constructs ModelNew. Builds happen in here
 * too: the program's load_inline calls block until the compile stage has answered. */
#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "eval/build/build.h"
#include "eval/candidate/recording.h"
#include "eval/stage/stage.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"
#include "task/bundle.h"

/* The first finding that is no warning; NULL: none. */
static const json_t *stage_load_first_finding(const struct job *j)
{
    const json_t *f;
    size_t i;

    json_array_foreach(j->findings, i, f)
        if (strcmp(json_str(f, "severity", ""), "warning"))
            return f;
    return NULL;
}

/* Adds the line's number and text to a reason. */
static void stage_load_set_line(struct job *j, json_t *r, int64_t line)
{
    char text[200];

    if (line < 1 || bundle_is_loaded(j->code) || !place_line(j->code, line, text, sizeof text))
        return;
    json_object_set_new(r, "line", json_integer(line));
    json_object_set_new(r, "text", json_utf8(text, strlen(text)));
}

/* A copy with the source line's text; new. */
static json_t *stage_load_with_text(struct job *j, const json_t *f)
{
    json_t *copy = json_deep_copy(f);
    char text[200];

    if (session_source_line(j->session, json_str(copy, "file", ""), json_i64(copy, "line", 0), text, sizeof text))
        json_object_set_new(copy, "text", json_utf8(text, strlen(text)));
    return copy;
}

static void stage_load_set_finding(struct job *j, json_t *r, const json_t *f)
{
    json_object_set_new(r, "finding", stage_load_with_text(j, f));
}

#define MORE_FINDINGS 4 /* beside the first */

/* What else the emulator found: other faults of the same run, which a second look would find. */
static void stage_load_set_more(struct job *j, json_t *r, const json_t *first)
{
    json_t *more = json_array();
    const json_t *f;
    size_t i;

    json_array_foreach(j->findings, i, f)
        if (f != first && strcmp(json_str(f, "severity", ""), "warning") && json_array_size(more) < MORE_FINDINGS)
            json_array_append_new(more, stage_load_with_text(j, f));
    if (json_array_size(more))
        json_object_set(r, "more", more);
    json_decref(more);
}

/* An exception, or a fault that the emulator found: runtime_error with everything that helps to find it. */
void job_blame_error(struct job *j, const json_t *head, const char *stage)
{
    const json_t *f = stage_load_first_finding(j);
    const char *category;
    json_t *r;

    if (!f && !head)
        return;
    category = f && !strcmp(json_str(f, "kind", ""), "unsupported") ? "unsupported" : "runtime_error";
    r = f ? record_blame(j->rec, category, stage, "%.1500s", json_str(f, "message", ""))
          : record_blame(j->rec, "runtime_error", stage, "%.80s: %.3000s", json_str(head, "type", ""),
                         json_str(head, "message", ""));
    if (f) {
        stage_load_set_finding(j, r, f);
        stage_load_set_more(j, r, f);
    }
    if (head && json_i64(head, "line", -1) > 0 && !bundle_is_loaded(j->code)) {
        json_object_set_new(r, "line", json_integer(json_i64(head, "line", 0)));
        json_object_set_new(r, "text", json_string(json_str(head, "text", "")));
    }
}

/* The memory that the candidate's process may use, in bytes. */
static size_t stage_load_may_have(const struct job *j)
{
    return j->server->backend->memory_bytes ? j->server->backend->memory_bytes : JAIL_MEMORY;
}

bool job_was_large(const struct job *j)
{
    return j->session && j->session->ended && j->session->end.peak >= stage_load_may_have(j) / 2;
}

/* Who was killed is told why, as far as the kernel says. */
static void stage_load_blame_kill(struct job *j, const char *stage, const char *during)
{
    const struct child_end *end = &j->session->end;
    const double gib = 1 << 30;
    json_t *r;

    if (end->outside)
        r = record_blame(j->rec, "runtime_error", stage, "the process was killed from outside %s: the machine had no "
                         "memory left, it seems; the process had %.1f GiB of it, and may have %.1f GiB", during,
                         (double)end->peak / gib, (double)stage_load_may_have(j) / gib);
    else
        r = record_blame(j->rec, "runtime_error", stage, "the process was killed %s: signal 9 (Killed), and not for "
                         "memory; did it do that itself?", during);
    stage_load_set_line(j, r, place_python(session_output(j->session)));
}

/* Blames a crash, with the line that Python was in. */
static void stage_load_blame_signal(struct job *j, const char *stage, const char *during)
{
    int sig = j->session->end.signal;
    json_t *r = record_blame(j->rec, "runtime_error", stage, "the process crashed %s: signal %d (%s)", during, sig,
                             strsignal(sig));

    stage_load_set_line(j, r, place_python(session_output(j->session)));
}

/* Blames the candidate for its process's end: signal, memory limit or exit. during: what it was doing. */
static void stage_load_blame_death(struct job *j, const char *stage, const char *during)
{
    const struct child_end *end = &j->session->end;
    json_t *r;

    if (end->why == PROC_SIGNALED) {
        (end->signal == SIGKILL ? stage_load_blame_kill : stage_load_blame_signal)(j, stage, during);
        return;
    }
    if (end->why == PROC_MEMORY)
        r = record_blame(j->rec, "runtime_error", stage, "out of memory %s: the process exceeded its memory limit",
                         during);
    else
        r = record_blame(j->rec, "runtime_error", stage, "the process ended itself %s (exit code %d)", during,
                         end->code);
    stage_load_set_line(j, r, place_python(session_output(j->session)));
}

/* Blames the time limit, with where the program stood. */
static void stage_load_blame_timeout(struct job *j, const char *stage, const char *during)
{
    json_t *r = record_blame(j->rec, "timeout", stage, "still running after %g s of all its calls "
                             "together (--timeout) %s",
                             j->opt->timeout_s, during);
    json_t *stand = recording_stand(j);

    if (stand)
        stage_load_set_finding(j, r, stand);
    else
        stage_load_set_line(j, r, place_python(session_output(j->session)));
    json_decref(stand);
}

int job_blame_call(struct job *j, enum call_fault fault, const char *stage, const char *during, struct err *e)
{
    json_t *r;

    switch (fault) {
    case CALL_OK: return 0;
    case CALL_TIMEOUT: stage_load_blame_timeout(j, stage, during); return 0;
    case CALL_DIED: stage_load_blame_death(j, stage, during); return 0;
    case CALL_FORGED:
        r = record_blame(j->rec, "cheating", stage, "the program wrote to the judge's channel %s", during);
        json_object_set_new(r, "rule", json_string("forged_channel"));
        return 0;
    case CALL_INFRA: break;
    }
    return e->kind == ERR_NONE ? err_set(e, ERR_ENV, "the judge lost the candidate's process %s", during) : -1;
}

bool job_unfit(const struct job *j, const json_t *head, struct err *e)
{
    if (!json_flag(head, "infra", false) || !j->session->built || build_loads(j->session->built))
        return false;
    err_set(e, ERR_ENV, "%.400s", json_str(head, "message", "the candidate's process is unfit"));
    return true;
}

/* Blames the candidate for a Python exception, by the phase and type that head names. */
static void stage_load_blame_error(struct job *j, const json_t *head)
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

    reference_release(&j->held);
    if (awake) /* while a reference is made nobody waits for it with a share of the device */
        session_rest(j->session);
    j->held.want.params = params;
    j->held.want.variant = j->variant;
    rc = reference_get(&j->held, e);
    j->held.seconds += now_s() - t0;
    if (awake)
        session_wake(j->session);
    j->held.want.yields = j->held.want.yields && rc < 0;
    return rc;
}

int job_own_reference(struct job *j, struct err *e)
{
    double t0 = now_s();
    int rc;

    if (!j->held.ref->streamed || j->held.owns)
        return 0;
    session_rest(j->session);
    rc = reference_own(&j->held, e);
    j->held.seconds += now_s() - t0;
    session_wake(j->session);
    return rc;
}

bool job_recordings(const struct job *j, const struct ref_draw *d)
{
    return !j->held.ref->has_second || j->second == !strcmp(d->regime, REGIME_SECRET);
}

/* Asks for ModelNew. code: NULL: of the program that is imported already, beside the one that was asked for last. */
static enum call_fault stage_load_ask(struct job *j, const char *code, int64_t seed, struct frame *ret, struct err *e)
{
    const struct section *init = j->second ? &j->held.ref->second : &j->held.ref->init;
    json_t *req = json_pack("{s:s,s:o,s:O,s:I,s:s,s:s?,s:i,s:b}", "op", "load", "source",
                            code ? json_utf8(code, strlen(code)) : json_null(), "init", init->tree, "seed",
                            (json_int_t)seed, "mode", j->held.ref->mode, "dtype", j->held.ref->dtype, "operators",
                            j->protocol->operators ? 1 : 2, "beside", !code);
    enum call_fault fault = session_call(j->session, req, init->bytes, init->n, ret, e);

    json_decref(req);
    return fault;
}

static bool stage_load_is_ready(const struct frame *f)
{
    return !strcmp(json_str(f->head, "op", ""), "ready");
}

/* Takes the state that the constructed model has. */
static void stage_load_take(struct job *j, const struct frame *f)
{
    j->ready = true;
    json_decref(j->state);
    j->state = json_incref(json_object_get(f->head, "state"));
}

int job_construct(struct job *j, struct err *e)
{
    int64_t seed = j->second ? j->held.ref->second_seed : j->held.ref->init_seed;
    struct frame f;
    enum call_fault fault = stage_load_ask(j, j->code, seed, &f, e);
    int rc = 0;

    j->ready = false;
    if (fault != CALL_OK)
        return job_blame_call(j, fault, "load", "while the program was imported and constructed", e);
    recording_take_report(j, f.head);
    if (stage_load_is_ready(&f))
        stage_load_take(j, &f);
    else if (job_unfit(j, f.head, e))
        rc = -1;
    else
        stage_load_blame_error(j, f.head);
    frame_free(&f);
    return rc;
}

int job_construct_beside(struct job *j, struct err *e)
{
    const char *const codes[] = {j->code, NULL};
    enum call_fault fault;
    struct frame f;

    j->ready = false;
    for (int i = 0; i < 2; i++) {
        if ((fault = stage_load_ask(j, codes[i], j->held.ref->init_seed + 1 - i, &f, e)) != CALL_OK)
            return fault == CALL_INFRA ? -1 : 0;
        if (i && stage_load_is_ready(&f))
            stage_load_take(j, &f);
        frame_free(&f);
    }
    return 0;
}

/* The stage: gets the reference, starts the candidate's process and constructs ModelNew. */
static int stage_load_run(struct job *j, struct err *e)
{
    if (j->opt->perf)
        server_expect_baseline(j->server);
    if (job_reference(j, j->protocol->binds_params ? "random" : "seed", e) < 0 ||
        session_open(j->server, j->opt, j->alone, &j->session, e) < 0 || recording_open(j, e) < 0)
        return -1;
    return job_construct(j, e);
}

const struct stage stage_load = {"load", stage_load_run, false};
