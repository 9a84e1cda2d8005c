/* session.c - see session.h. */
#include "eval/candidate/session.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "eval/server/judge_server.h"
#include "eval/server/options.h"
#include "eval/verdict/place.h"
#include "proc/run_clock.h"

#define MAX_REPLY_HEAD ((size_t)16 << 20)
#define MAX_REPLY_BLOB ((size_t)1 << 30)

/* Waits for a slot for a short while; 0: it has one. */
static int session_wait_slice(sem_t *slots)
{
    struct timespec t = stop_look_again();

    return sem_clockwait(slots, CLOCK_MONOTONIC, &t);
}

/* False on Ctrl-C: there is no slot then, and none to give back. What the session is asked next says so. */
static bool session_slot_take(struct session *s, sem_t *slots)
{
    double t0 = now_s();
    bool got;

    while (!(got = session_wait_slice(slots) == 0) && !stop_requested())
        ;
    s->wait_s += now_s() - t0;
    trace_span(t0, "wait", "slot");
    return got;
}

/* Counts seconds in which the session only waited. */
static void session_waited_for_device(struct session *s, double seconds)
{
    s->wait_s += seconds;
    s->wait_device_s += seconds;
}

/* True on a timed backend, whose device others use too, unless the job is alone there. */
static bool session_shares_device(const struct session *s)
{
    return s->server->backend->timed && !s->alone;
}

/* Timing wants the device alone: nobody submits meanwhile. Without the lock (a folder that cannot be written) timing
 * says so. */
static void session_share_device(struct session *s)
{
    struct err e = ERR_INIT;
    double t0 = now_s();

    if (s->server->backend->timed && device_lock_take(&s->server->schedule, s->alone, &s->device_lock, &e) < 0)
        log_debug("the device's lock: %s", e.msg);
    trace_span(t0, "wait", "device");
    session_waited_for_device(s, now_s() - t0);
}

/* Takes or gives back a slot for running, and with it the share of the device. */
static void session_run_slot(struct session *s, bool take)
{
    if (take == s->slot)
        return;
    if (take) {
        s->slot = session_slot_take(s, &s->server->run_slots);
        if (s->slot)
            session_share_device(s);
        return;
    }
    s->slot = false;
    device_lock_drop(&s->device_lock);
    sem_post(&s->server->run_slots);
}

void session_rest(struct session *s)
{
    session_run_slot(s, false);
}

void session_wake(struct session *s)
{
    session_run_slot(s, true);
}

void session_give_way(struct session *s)
{
    if (!s->device_lock.s || s->alone || !device_lock_wanted(&s->server->schedule))
        return;
    device_lock_drop(&s->device_lock);
    session_share_device(s);
}

int session_open(struct judge_server *sv, const struct eval_options *o, bool alone,
                 struct session **ret, struct err *e)
{
    struct server_child spec = {.role = sv->backend->candidate, .client = true,
                                .jail = {.no_exec = true, .memory_bytes = sv->backend->memory_bytes}};
    struct session *s = xcalloc(1, sizeof *s);
    int rc;

    s->alone = alone;
    s->server = sv;
    s->findings = json_array();
    s->dropped = json_array();
    s->opt = o;
    s->diagnostics = json_array();
    session_run_slot(s, true);
    rc = s->slot ? server_spawn(sv, &spec, &s->child, e) : err_set(e, ERR_STOP, "interrupted");
    if (rc < 0) {
        session_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* True where a finding says that the program calls a library. */
static bool session_calls_library(const json_t *findings)
{
    const json_t *f;
    size_t i;

    json_array_foreach(findings, i, f)
        if (!strcmp(json_str(f, "kind", ""), "library_call"))
            return true;
    return false;
}

/* Notes flags that a build left out, each once. */
static void session_note_dropped(struct session *s, const json_t *flags)
{
    const json_t *flag, *had;
    size_t i, k;

    json_array_foreach((json_t *)flags, i, flag) {
        json_array_foreach(s->dropped, k, had)
            if (json_equal(had, flag))
                break;
        if (k == json_array_size(s->dropped) && k < 32)
            json_array_append(s->dropped, (json_t *)flag);
    }
}

/* Adds a build's time, findings and diagnostics to the session's record. The first error is kept. */
static void session_note_build(struct session *s, const struct build_result *r)
{
    s->compile_ms += r->ms;
    s->builds_cached += r->cached;
    json_array_extend(s->findings, r->findings);
    session_note_dropped(s, r->dropped);
    if (r->ok) {
        free(s->built);
        s->built = xstrdup(r->so);
        return;
    }
    s->builds_failed++;
    s->builds_refused += session_calls_library(r->findings);
    s->build_timed_out |= r->timed_out;
    json_array_extend(s->diagnostics, r->diagnostics);
    if (!s->error)
        s->error = json_utf8(r->log && *r->log ? r->log : r->error, strlen(r->log && *r->log ? r->log : r->error));
}

/* Under the names that the compile stage gives them. */
static void session_keep_source(struct session *s, const json_t *names, const char *kind, const json_t *list, size_t i)
{
    const char *given = json_string_value(json_array_get(names, i));
    char label[40];

    snprintf(label, sizeof label, json_array_size(list) == 1 ? "%s" : "%ss[%zu]", kind, i);
    json_object_set(s->sources, given ? given : label, json_array_get(list, i));
}

/* Remembers the texts under the names that the compiler and findings will use. A second extension's sources get names
 * of their own (build.h takes them from "cuda_names"): 'cuda_source_2'. Returns the request to build, new reference. */
static json_t *session_keep_sources(struct session *s, const json_t *request)
{
    static const char *const kinds[] = {"cuda", "cpp"};
    json_t *named = json_copy((json_t *)request), *names;
    char key[40], label[64];
    const json_t *list;

    if (!s->sources)
        s->sources = json_object();
    for (int k = 0; k < 2; k++) {
        snprintf(key, sizeof key, "%s_sources", kinds[k]);
        list = json_object_get(named, key);
        snprintf(key, sizeof key, "%s_names", kinds[k]);
        if (s->builds > 1 && !json_object_get(named, key)) {
            json_object_set_new(named, key, names = json_array());
            for (size_t i = 0; i < json_array_size(list); i++) {
                snprintf(label, sizeof label, i ? "%s_source_%d_%zu" : "%s_source_%d", kinds[k], s->builds, i + 1);
                json_array_append_new(names, json_string(label));
            }
        }
        snprintf(label, sizeof label, "%s_source", kinds[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            session_keep_source(s, json_object_get(named, key), label, list, i);
    }
    return named;
}

bool session_source_line(const struct session *s, const char *file, int64_t line, char *ret, size_t n)
{
    return place_line(json_string_value(json_object_get(s->sources, file)), line, ret, n);
}

/* A request that nobody could build (too large, malformed) is the candidate's failure, not the judge's: *why is no
 * error of ours any more. */
static json_t *session_build_refused(struct session *s, struct err *why)
{
    json_t *text = json_utf8(why->msg, strlen(why->msg));

    s->builds_failed++;
    if (!s->error)
        s->error = json_incref(text);
    *why = (struct err)ERR_INIT;
    return json_pack("{s:b,s:o}", "ok", 0, "error", text);
}

/* One build request: the compile pool works, our run slot is free meanwhile. */
static json_t *session_build_answer(struct session *s, const json_t *request, struct err *e)
{
    double t0, left = s->opt->build_timeout_s - s->build_s;
    struct build_opts o = {.target = s->server->backend->name, .arch = s->server->arch,
                           .timeout_s = left > 1 ? left : 1, .no_jail = s->server->all->config.no_jail,
                           .no_cache = s->server->all->config.no_jail}; /* what it includes is not known */
    struct build_result r = {0};
    json_t *reply = NULL, *named;
    int rc;

    if (++s->builds > SESSION_MAX_BUILDS)
        return json_pack("{s:b,s:s}", "ok", 0, "error", "too many build requests");
    named = session_keep_sources(s, request);
    session_run_slot(s, false);
    if (!session_slot_take(s, &s->server->all->build_slots)) {
        json_decref(named);
        err_set(e, ERR_STOP, "interrupted");
        return NULL;
    }
    t0 = now_s();
    rc = build_run(named, &o, &r, e);
    trace_span(t0, "call", "build");
    json_decref(named);
    s->build_s += now_s() - t0;
    sem_post(&s->server->all->build_slots);
    if (rc == 0) {
        session_note_build(s, &r);
        if (!r.image || !s->on_image || s->on_image(s->image_ctx, r.image, e) == 0)
            reply = build_reply(&r);
        build_result_free(&r);
    }
    if (!reply && e && e->kind == ERR_INPUT)
        reply = session_build_refused(s, e);
    session_run_slot(s, true);
    return reply;
}

/* What a broken frame means; fills end after a death. */
static enum call_fault session_fault_of(struct session *s, enum frame_fault f, struct err *e)
{
    switch (f) {
    case FRAME_OK: return CALL_OK;
    case FRAME_LATE: return CALL_TIMEOUT;
    case FRAME_BAD: return CALL_FORGED;
    case FRAME_CLOSED:
    case FRAME_BROKEN: break;
    case FRAME_STOPPED: return CALL_INFRA;
    }
    if (!s->ended && child_wait(s->child, now_s() + 10, &s->end, e) < 0) {
        if (stop_requested() || !forkserver_alive(s->child->fs))
            return CALL_INFRA; /* it went down with the server: nobody knows how it would have ended */
        return CALL_FORGED; /* it closed the channel but lives on */
    }
    s->ended = true;
    return CALL_DIED;
}

/* Sends a request; the time counts for the limit. */
static enum call_fault session_send_timed(struct session *s, const json_t *head, const char *blob, size_t n,
                                          struct err *e)
{
    double t0 = now_s();
    enum frame_fault f = FRAME_OK;
    int rc = frame_send(s->child->fd, head, blob, n, t0 + s->opt->timeout_s - s->used_s, &f, e);

    s->used_s += now_s() - t0;
    return rc < 0 ? session_fault_of(s, f, e) : CALL_OK;
}

/* Until something comes, or the budget is used up: however many share the device, after SHARE_MOST times as long as
 * alone. */
static void session_wait_shared(struct session *s, struct schedule *c, double v0)
{
    double left, start = now_s(), wall = start + SHARE_MOST * (s->opt->timeout_s - s->used_s);
    bool lasts = s->device_lock.lasts;

    while ((left = s->opt->timeout_s - s->used_s - (share_time(c, now_s(), 0) - v0)) > 0 && now_s() < wall &&
           !stop_requested()) {
        struct pollfd p = {.fd = s->child->fd, .events = POLLIN};
        double wait = fmin(share_lasts(c, left), 1.0), t0 = now_s(), stopped;

        if (poll(&p, 1, (int)(wait * 1e3) + 1) > 0)
            break;
        stopped = run_clock_stopped(wait, now_s() - t0);
        s->used_s -= stopped, wall += stopped;
        if (now_s() - start > SCHEDULE_LASTS_S)
            device_lock_lasts(&s->device_lock, true);
    }
    device_lock_lasts(&s->device_lock, lasts);
}

/* Receives the answer within 'left' seconds on a shared device, whose time in which others ran is not counted. */
static enum call_fault session_recv_shared(struct session *s, double left, struct frame *ret, struct err *e)
{
    struct schedule *c = &s->server->schedule;
    double v0 = share_time(c, now_s(), 1);
    enum frame_fault f = FRAME_OK;
    int rc;

    session_wait_shared(s, c, v0);
    left = s->opt->timeout_s - s->used_s - (share_time(c, now_s(), 0) - v0);
    rc = frame_recv(s->child->fd, MAX_REPLY_HEAD, MAX_REPLY_BLOB,
                    now_s() + fmin(share_lasts(c, left), SHARE_MOST * left), ret, &f, e);
    s->used_s += share_time(c, now_s(), -1) - v0;
    return rc < 0 ? session_fault_of(s, f, e) : CALL_OK;
}

#define FRAME_S 10.0 /* for the rest of an answer whose first byte is there */

/* Receives the answer within 'left' seconds of run time of the process and of the device's one. CALL_INFRA: on this
 * machine they do not get so much. */
static enum call_fault session_recv_run(struct session *s, double left, struct frame *ret, struct err *e)
{
    const pid_t pids[2] = {s->child->pid, s->device_pid};
    enum frame_fault f = FRAME_OK;
    struct run_clock c = {0};
    double ran, wall;
    int there = run_clock_poll(&c, pids, s->child->fd, left, &ran), rc;

    wall = c.wall_s;
    run_clock_end(&c);
    s->used_s += ran;
    if (!there && ran < left && !stop_requested()) {
        err_set(e, ERR_ENV, RUN_CLOCK_STARVED, "the program", ran, wall);
        return CALL_INFRA;
    }
    rc = frame_recv(s->child->fd, MAX_REPLY_HEAD, MAX_REPLY_BLOB, now_s() + (there ? FRAME_S : 0), ret, &f, e);
    return rc < 0 ? session_fault_of(s, f, e) : CALL_OK;
}

/* Waits for the child's answer within what is left of its time limit. */
static enum call_fault session_recv_timed(struct session *s, struct frame *ret, struct err *e)
{
    double left = s->opt->timeout_s - s->used_s;

    return (session_shares_device(s) ? session_recv_shared : session_recv_run)(s, left, ret, e);
}

/* Serves builds that the process asks for until the reply to what was sent is there. */
static enum call_fault session_await_reply(struct session *s, struct frame *ret, struct err *e)
{
    enum call_fault fault = CALL_OK;
    struct frame f = {0};
    json_t *reply;

    while (fault == CALL_OK && (fault = session_recv_timed(s, &f, e)) == CALL_OK) {
        if (strcmp(json_str(f.head, "op", ""), "build")) {
            *ret = f;
            return CALL_OK;
        }
        reply = session_build_answer(s, json_object_get(f.head, "request"), e);
        frame_free(&f);
        if (!reply)
            return CALL_INFRA;
        fault = session_send_timed(s, reply, NULL, 0, e);
        json_decref(reply);
    }
    return fault;
}

enum call_fault session_call(struct session *s, const json_t *head, const char *blob, size_t n_blob, struct frame *ret,
                             struct err *e)
{
    json_t *told = json_copy((json_t *)head);
    double t0 = now_s();
    enum call_fault fault;

    json_object_set_new(told, "left_s", json_real(s->opt->timeout_s - s->used_s)); /* runner/clock.py */
    if ((fault = session_send_timed(s, told, blob, n_blob, e)) == CALL_OK)
        fault = session_await_reply(s, ret, e);
    json_decref(told);
    trace_span(t0, "call", "%s", json_str(head, "op", "?"));
    return fault;
}

enum call_fault session_give(struct session *s, const json_t *head, const int *fds, int n, struct frame *ret,
                             struct err *e)
{
    if (frame_send_fds(s->child->fd, head, fds, n, now_s() + s->opt->timeout_s - s->used_s, e) < 0)
        return session_fault_of(s, stop_requested() ? FRAME_STOPPED : FRAME_CLOSED, e);
    return session_await_reply(s, ret, e);
}

/* Ends the child and keeps how it ended. */
static void session_end_process(struct session *s)
{
    if (s->ended)
        return;
    child_kill(s->child);
    s->ended = child_wait(s->child, now_s() + 10, &s->end, NULL) == 0;
}

const char *session_output(struct session *s)
{
    session_end_process(s);
    return s->ended && s->end.output.p ? s->end.output.p : "";
}

void session_close(struct session *s)
{
    struct child_end end = {0};

    if (!s)
        return;
    if (s->child && !s->ended) {
        child_kill(s->child);
        if (child_wait(s->child, now_s() + 10, &end, NULL) == 0)
            buf_free(&end.output);
    } else if (s->ended) {
        buf_free(&s->end.output);
    }
    child_free(s->child);
    session_run_slot(s, false);
    json_decref(s->diagnostics);
    json_decref(s->sources);
    json_decref(s->findings);
    json_decref(s->dropped);
    json_decref(s->error);
    free(s->built);
    free(s);
}
