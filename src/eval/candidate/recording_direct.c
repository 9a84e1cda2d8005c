/* recording_direct.c - the direct run: the candidate's own process calls forward. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "device/element.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/candidate/job.h"

/* The bytes of parameter i that are bound: real ones in a live run, else made up. */
static const uint8_t *recording_bound_now(const struct recording *l, size_t i)
{
    return l->live ? l->bindings[i].real[0] : l->bindings[i].made_up;
}

/* Writes parameter i at its address on the device. */
static int recording_bind_param(struct recording *l, size_t i, struct err *e)
{
    return executor_bind(l->x, l->bindings[i].address, recording_bound_now(l, i), l->bindings[i].bytes, (uint32_t)i, e);
}

/* Binds each parameter of the candidate at its place; fails as recording_bind_param does. */
static int recording_bind_params(struct job *j, struct err *e)
{
    for (size_t i = 0; i < j->recording->n_bindings; i++)
        if (recording_bind_param(j->recording, i, e) < 0)
            return -1;
    return 0;
}

/* The reference starts each draw from the same buffers, so each call does. */
static int recording_bind_changed(struct recording *l, struct err *e)
{
    for (size_t i = 0; i < l->n_bindings; i++)
        if (l->bindings[i].changed && recording_bind_param(l, i, e) < 0)
            return -1;
    return 0;
}

/* A buffer that the program has given back is one no longer. */
static int recording_note_changed(struct recording *l, size_t i, struct err *e)
{
    struct recording_binding *p = &l->bindings[i];
    uint8_t *now = xmalloc(p->bytes + 1);
    int rc = executor_peek(l->x, p->address, now, p->bytes, e);

    if (rc < 0 && e->kind == ERR_INPUT) {
        p->buffer = p->changed = false;
        *e = (struct err)ERR_INIT;
        rc = 0;
    } else if (rc == 0) {
        p->changed = p->changed || memcmp(now, recording_bound_now(l, i), p->bytes) != 0;
    }
    free(now);
    return rc;
}

/* Notes which of the candidate's buffers the last call changed. */
static int recording_look_at_buffers(struct recording *l, struct err *e)
{
    for (size_t i = 0; i < l->n_bindings && !l->last.error; i++)
        if (l->bindings[i].buffer && recording_note_changed(l, i, e) < 0)
            return -1;
    return 0;
}

/* The weights are the model's after a forward, too: what packs them packs a copy. */
static int recording_look_at_params(struct job *j, struct err *e)
{
    struct recording *l = j->recording;

    for (size_t i = 0; i < l->n_bindings && !j->held.ref->alters && !*l->altered; i++) {
        if (*l->bindings[i].name && recording_note_changed(l, i, e) < 0)
            return -1;
        if (*l->bindings[i].name && l->bindings[i].changed)
            snprintf(l->altered, sizeof l->altered, "%s", l->bindings[i].name);
    }
    return 0;
}

/* Tells the executor each parameter's dtype. */
static int recording_type_params(struct recording *l, struct err *e)
{
    for (size_t i = 0; i < l->n_bindings; i++)
        if (executor_typed(l->x, l->bindings[i].address, l->bindings[i].bytes, l->bindings[i].dtype, e) < 0)
            return -1;
    return 0;
}

int recording_prepare(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct recording_inputs in = {.j = j, .d = d};

    if (j->recording->calls)
        return 0;
    if (executor_pause(j->recording->x, e) < 0)
        return -1;
    if (j->held.ref->streamed ? recording_streamed_open(j, e) < 0
                              : tree_each(d->inputs.tree, recording_allocate_leaf, &in, e) < 0)
        return -1;
    if (recording_bind_params(j, e) < 0 || recording_type_params(j->recording, e) < 0)
        return -1;
    return j->recording->dry ? executor_dry(j->recording->x, e) : 0;
}

static uint64_t recording_largest_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Keeps the largest counts of bytes that a call moved. */
static void recording_count_reads(struct recording *l)
{
    struct rules_reads *m = &l->most;

    m->bytes = recording_largest_of(m->bytes, l->last.bytes_down);
    m->compared = recording_largest_of(m->compared, l->last.compared);
    m->up = recording_largest_of(m->up, l->last.bytes_up);
    m->given = recording_largest_of(m->given, l->last.given);
    m->replies = (uint32_t)recording_largest_of(m->replies, l->last.reads);
}

bool recording_reads(const struct recording *l)
{
    return l->most.bytes > 0;
}

bool recording_changes_buffers(const struct recording *l)
{
    for (size_t i = 0; i < l->n_bindings; i++)
        if (l->bindings[i].changed)
            return true;
    return false;
}

enum call_fault recording_late_or_lost(struct job *j, struct err *e)
{
    j->recording->harmed = true;
    if (e->kind != ERR_STOP && executor_timed_out(j->recording->x)) {
        *e = (struct err)ERR_INIT;
        j->session->used_s = j->opt->timeout_s;
        return CALL_TIMEOUT;
    }
    return CALL_INFRA;
}

void recording_raised(struct frame *ret, const char *type, const char *message)
{
    ret->head = json_pack("{s:s,s:s,s:s}", "op", "error", "type", type, "message", message);
    ret->blob = calloc(1, 64);
    ret->n_blob = 0;
}

enum call_fault recording_unprepared(struct job *j, struct frame *ret, struct err *e)
{
    if (e->kind != ERR_INPUT)
        return recording_late_or_lost(j, e);
    recording_raised(ret, "RuntimeError", "a parameter does not lie in memory that the program holds");
    *e = (struct err)ERR_INIT;
    return CALL_OK;
}

/* Of the executor itself, not of a kernel: nobody is blamed. */
static bool recording_own_failure(const struct executor_call *c)
{
    return c->error == WIRE_UNKNOWN || c->error == WIRE_GONE || !strncmp(c->why, "MODULE: cannot", 14);
}

json_t **recording_output_at(struct recording *l, uint32_t call)
{
    return &l->outputs[l->live ? 0 : call - 1];
}

/* Keeps the tree of the last call's output. */
static void recording_keep_output(struct recording *l, json_t *tree)
{
    json_t **at = recording_output_at(l, l->calls);

    json_decref(*at);
    *at = json_incref(tree);
}

bool recording_is_others(const struct recording *l, uint32_t call)
{
    return l->other && (call == 1 || call == l->earlier);
}

enum call_fault recording_live_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    struct recording_inputs in = {.j = j, .d = d}, at = in;
    enum call_fault fault;
    json_t *req;

    if (executor_call_begin(j->recording->x, ++j->recording->calls, e) < 0)
        return recording_late_or_lost(j, e);
    if (recording_bind_changed(j->recording, e) < 0)
        return recording_late_or_lost(j, e);
    if (j->held.ref->streamed ? recording_streamed_bind(j, d, e) < 0
                              : tree_each(d->inputs.tree, recording_bind_leaf, &in, e) < 0)
        return recording_late_or_lost(j, e);
    req = json_pack("{s:s,s:o,s:b,s:b}", "op", "call", "inputs", tree_map(d->inputs.tree, recording_placed_leaf, &at),
                    "other", recording_is_others(j->recording, j->recording->calls), "hold",
                    j->recording->holds && j->recording->calls <= RECORDING_HELD);
    fault = session_call(j->session, req, NULL, 0, ret, e);
    json_decref(req);
    if (fault != CALL_OK)
        return fault;
    recording_take_report(j, ret->head);
    if (executor_call_end(j->recording->x, &j->recording->last, e) < 0) {
        frame_free(ret);
        return recording_late_or_lost(j, e);
    }
    if (recording_own_failure(&j->recording->last)) {
        j->recording->harmed = true;
        frame_free(ret);
        err_set(e, ERR_ENV, "the executor failed: %.200s", j->recording->last.why);
        return CALL_INFRA;
    }
    recording_count_reads(j->recording);
    j->recording->launches += j->recording->last.launches;
    recording_keep_output(j->recording, json_object_get(ret->head, "output"));
    if (!j->recording->last.error && !j->recording->last.launches && recording_blame_launch(j))
        j->recording->last.error = WIRE_BAD_CONFIG;
    recording_device_fault(j, j->recording->last.error, j->recording->last.why);
    if (recording_look_at_buffers(j->recording, e) < 0) {
        frame_free(ret);
        return recording_late_or_lost(j, e);
    }
    return CALL_OK;
}

bool recording_is_result(const struct frame *f)
{
    return !strcmp(json_str(f->head, "op", ""), "result");
}

/* Takes the executor's log of the recording: its counts, its hash and the order of its work. */
static int recording_take_log(struct recording *l, struct err *e)
{
    struct exec_log log = {0};

    if (executor_log(l->x, &log, e) < 0)
        return -1;
    l->counts = log.counts;
    l->log_full = log.full;
    sha256_hex(log.p, log.n, l->log_sha256);
    l->order = (struct order_finding){.ordered = true};
    if (!log.full)
        order_check(&log, 0, &l->order);
    if (l->capsule)
        capsule_add_log(l->capsule, &log);
    exec_log_free(&log);
    return 0;
}

int recording_finish(struct job *j, struct err *e)
{
    j->recording->recorded_run = true;
    j->recording->n_calls = j->recording->calls;
    return recording_take_log(j->recording, e);
}

/* Reads what the candidate's process wrote until its end. */
static void recording_end_client(struct job *j)
{
    session_output(j->session);
}

/* Has the last call looked at values, or made the device change some? Then launches must be played. */
static bool recording_looks(const struct executor_call *c)
{
    return c->bytes_down || c->compared || c->casts || c->unanswered;
}

/* Later calls on the same inputs show the log alone: what they compute is computed by each replay. -1 with e. */
static int recording_spare_launches(struct recording *l, struct err *e)
{
    if (!l->thrifty || l->dry || recording_looks(&l->last) || recording_changes_buffers(l))
        return 0;
    l->dry = true;
    return executor_dry(l->x, e);
}

enum call_fault recording_direct(struct job *j, const struct ref_draw *d, struct frame *ret, bool *ret_ended,
                                 struct err *e)
{
    struct recording *l = j->recording;
    enum call_fault fault = CALL_OK;
    struct frame f;

    *ret_ended = false;
    if (recording_prepare(j, d, e) < 0) {
        *ret_ended = true;
        return recording_unprepared(j, ret, e);
    }
    for (uint32_t k = 0; k < l->n_calls; k++) {
        if ((fault = recording_live_call(j, d, &f, e)) != CALL_OK)
            return fault;
        if (!recording_is_result(&f) || l->last.error || (l->thrifty && l->dry && recording_looks(&l->last))) {
            *ret = f;
            *ret_ended = true;
            return CALL_OK;
        }
        frame_free(&f);
        if (k == 0 && recording_spare_launches(l, e) < 0)
            return recording_late_or_lost(j, e);
    }
    if (recording_look_at_params(j, e) < 0)
        return recording_late_or_lost(j, e);
    recording_end_client(j);
    l->recorded_run = true;
    return recording_take_log(l, e) < 0 ? recording_late_or_lost(j, e) : CALL_OK;
}
