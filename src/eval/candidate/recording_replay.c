/* recording_replay.c - the log played again on other draws, once more for other ends, and into a capsule. See
 * recording.h. */
#include "eval/candidate/recording_parts.h"

#include <math.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/element.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/candidate/job.h"

/* ---- replaying ---- */

/* Whose inputs call k gets, from 1; *ret_own: as they are. */
static const struct ref_draw *recording_draw_of(const struct recording_replaying *r, uint32_t call, bool *ret_own)
{
    int at = (int)call - 1 - ((int)r->j->recording->n_calls - r->n);

    *ret_own = at >= 0;
    return r->draws[at >= 0 && at < r->n ? at : 0];
}

struct find_leaf {
    size_t want, i;
    const json_t *leaf;
};

/* A callback of tree_each: finds the wanted tensor by its number. */
static int recording_find_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct find_leaf *f = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && f->i++ == f->want)
        f->leaf = leaf;
    return 0;
}

/* Copies n bytes from 'part' on. ERR_BUG: the log asks for more than there is. */
static int recording_copy_part(const uint8_t *from, uint64_t bytes, uint64_t part, void *data, uint64_t n,
                               struct err *e)
{
    if (part > bytes || n > bytes - part)
        return err_set(e, ERR_BUG, "the log lays %llu bytes at %llu of %llu", (unsigned long long)n,
                       (unsigned long long)part, (unsigned long long)bytes);
    memcpy(data, from + part, n);
    return 0;
}

/* Inputs of the calls before the last: other values at the same addresses, or an answer that was kept from the first
 * call would be right in the last one. The draw's own, backwards, and halved where they are
 * float32 or float64, so that they stay in the task's domain. Integers stay: they may be indices. */
static void recording_make_other(uint8_t *bytes, enum dtype d, uint64_t span)
{
    size_t size = dt_size(d), n = size ? span / size : 0;
    uint8_t t[16];

    if (!dt_is_float(d) || dt_components(d) != 1 || size > sizeof t)
        return;
    for (size_t i = 0; i < n / 2; i++) {
        memcpy(t, bytes + i * size, size);
        memcpy(bytes + i * size, bytes + (n - 1 - i) * size, size);
        memcpy(bytes + (n - 1 - i) * size, t, size);
    }
    for (size_t i = 0; i < n && d == DT_F32; i++)
        ((float *)bytes)[i] *= 0.5f;
    for (size_t i = 0; i < n && d == DT_F64; i++)
        ((double *)bytes)[i] *= 0.5;
}

/* Rotates a tensor's values by t->by places. Ascending integers stay, as they may be offsets. */
static void recording_turn_values(const struct recording_turn *t, uint8_t *bytes, const struct recording_place *p)
{
    size_t n = p->span / p->item, k = n ? (size_t)(t->by % n) * p->item : 0;
    struct tensor values = p->t;
    uint8_t *copy;

    values.data = bytes;
    if (!dt_is_float(p->t.dtype) && place_is_packed(p) && p->t.dtype != DT_BOOL && recording_ascends(&values, p->t.n))
        return;
    copy = xmalloc(p->span + 1);
    memcpy(copy, bytes + k, p->span - k);
    memcpy(copy + p->span - k, bytes, k);
    memcpy(bytes, copy, p->span);
    free(copy);
    for (size_t i = 0; i < n && p->t.dtype == DT_F32; i++)
        ((float *)bytes)[i] *= (float)t->scale;
    for (size_t i = 0; i < n && p->t.dtype == DT_F64; i++)
        ((double *)bytes)[i] *= t->scale;
}

int recording_bind_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
                         struct err *e)
{
    struct recording_replaying *r = ctx;
    struct recording *l = r->j->recording;
    struct find_leaf f = {.want = tag - TAG_INPUTS};
    const struct ref_draw *d;
    struct recording_place p;
    uint8_t *bytes;
    bool own;
    int rc;

    (void)addr;
    if (tag < l->n_bindings)
        return recording_copy_part(l->bindings[tag].real[r->draws[0]->parameters], l->bindings[tag].bytes, part, data,
                                   n, e);
    d = recording_draw_of(r, r->ended + 1, &own);
    if (tag < TAG_INPUTS || tree_each(d->inputs.tree, recording_find_leaf, &f, e) < 0 || !f.leaf)
        return err_set(e, ERR_BUG, "the log lays something unknown (%u)", tag);
    if (!(bytes = recording_input_bytes(d, f.leaf, &p, e)))
        return -1;
    if (!own)
        recording_make_other(bytes, p.t.dtype, p.span);
    if (r->turn)
        recording_turn_values(r->turn, bytes, &p);
    rc = recording_copy_part(bytes, p.span, part, data, n, e);
    free(bytes);
    return rc;
}

/* As recording_bind_again; the capsule keeps the values too. */
static int recording_bind_and_keep(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
                                   struct err *e)
{
    struct recording_replaying *r = ctx;

    if (recording_bind_again(ctx, tag, addr, part, data, n, e) < 0)
        return -1;
    if (r->recorded)
        capsule_add_value(r->j->recording->capsule, data, n);
    return 0;
}

/* Streamed inputs: all of a call's at once, where its first one is asked for. */
static int recording_bound_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    struct recording_replaying *r = ctx;
    const struct ref_draw *d;
    bool own;

    (void)tag, (void)addr, (void)n;
    if (r->bound == r->ended + 1)
        return 0;
    d = recording_draw_of(r, r->bound = r->ended + 1, &own);
    return streamed_bind(r->j->held.ref->streamed, d, !own, e);
}

/* Equal programs on equal inputs have equal ones, whatever the machine does beside. */
static void recording_note_outputs(struct recording *l, const struct frame *f)
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, l->outputs_sha256);
    sha256_add(&h, f->blob, f->n_blob);
    sha256_end(&h, l->outputs_sha256);
}

/* A callback of the replay after a call: fetches its outputs and has them judged. Calls without own draw are left
 * out. */
static int recording_call_ended(void *ctx, uint32_t call, struct err *e)
{
    struct recording_replaying *r = ctx;
    const struct ref_draw *d;
    struct frame f;
    bool own;

    if (call > r->j->recording->n_calls)
        return err_set(e, ERR_BUG, "the log has a call %u", call);
    d = recording_draw_of(r, call, &own);
    r->ended = call;
    if (!own)
        return 0;
    if (recording_fetch(r->j, d, call, *recording_output_at(r->j->recording, call), &f, e) < 0)
        return -1;
    r->done++;
    recording_note_outputs(r->j->recording, &f);
    return r->judge(r->ctx, d, &f, e);
}

/* What memory holds before it is written: NaN in every second replay. In the others a byte that nobody knows before,
 * or a kernel could see by it that it is judged; as a float it is between 3e-3 and 4e3, so that a sum shows it. */
static uint8_t recording_poison_of(const struct job *j, int replay)
{
    struct rng r;

    rng_seed(&r, (uint64_t)j->seed, 79 + (uint64_t)replay);
    return replay % 2 ? (uint8_t)(0x3b + rng_below(&r, 11)) : 0xff;
}

/* Of a replay's time so much was the reference's: it is no candidate's. */
static double recording_reference_time(const struct job *j)
{
    return j->held.ref->streamed ? j->held.ref->streamed->spent_s : 0;
}

/* 0, the device's error, or -1. */
static int recording_do_replay(struct recording_replaying *ctx, bool movement, struct err *e)
{
    struct job *j = ctx->j;
    struct executor_replay r = {.movement_only = movement, .shuffled = j->recording->shuffled,
                                .blocks_vary = j->recording->blocks_vary,
                                .last_call = ctx->goes_on, .goes_on = ctx->goes_on,
                                .played_from = j->recording->earlier,
                                .poison = recording_poison_of(j, j->recording->replays++),
                                .binding = recording_bind_and_keep, .bound = recording_bound_again,
                                .call_end = recording_call_ended,
                                .ctx = ctx};
    double t0 = now_s(), reference = recording_reference_time(j), ran = executor_ran(j->recording->x);
    int rc;

    ctx->recorded = j->recording->recording;
    rc = executor_replay(j->recording->x, &r, e);
    if (!movement)
        j->session->used_s += fmin(executor_ran(j->recording->x) - ran,
                                   now_s() - t0 - (recording_reference_time(j) - reference));
    ctx->goes_on = ctx->goes_on && r.ret_moved;
    if (rc == 0 && r.last_call && !r.ret_moved)
        return 0;
    if (rc == 0 && (r.ret_error || ctx->done < ctx->n)) {
        if (r.ret_error == WIRE_REFUSED) {
            j->recording->refused = true;
            snprintf(j->recording->why, sizeof j->recording->why, "%s", r.ret_why);
        }
        recording_device_fault(j, r.ret_error ? r.ret_error : WIRE_UNKNOWN, r.ret_why);
        return 1;
    }
    if (rc == 0 && !movement)
        recording_take_findings(j);
    return rc < 0 ? -1 : 0;
}

/* One draw as it is lived: the candidate's process has the inputs' addresses, and reads what it likes. */
enum call_fault recording_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    enum call_fault fault;

    if (recording_prepare(j, d, e) < 0)
        return recording_unprepared(j, ret, e);
    fault = recording_live_call(j, d, ret, e);
    if (fault != CALL_OK || !recording_is_result(ret) || j->recording->last.error)
        return fault;
    frame_free(ret);
    return recording_fetch(j, d, j->recording->calls, j->recording->outputs[0], ret, e) < 0
           ? recording_late_or_lost(j, e) : CALL_OK;
}

enum call_fault recording_replay(struct job *j, const struct ref_draw *const *draws, int n, recording_judge judge,
                                 void *ctx, struct err *e)
{
    struct recording_replaying r = {.j = j, .draws = draws, .n = n, .judge = judge, .ctx = ctx};
    struct frame f;
    int rc;

    if (j->session->used_s > j->opt->timeout_s)
        return CALL_TIMEOUT;
    j->recording->blocks_vary = j->recording->replays % 2;
    j->recording->shuffled = j->recording->blocks_vary && j->recording->order.streams;
    rc = recording_do_replay(&r, false, e);
    j->recording->shuffled = j->recording->blocks_vary = false;
    if (rc < 0)
        return e->kind == ERR_NONE ? CALL_OK : recording_late_or_lost(j, e);
    if (rc == 0 || r.done >= n)
        return CALL_OK;
    recording_raised(&f, "RuntimeError", "the device reports an error");
    return judge(ctx, draws[r.done], &f, e) < 0 && e->kind != ERR_NONE ? CALL_INFRA : CALL_OK;
}

enum call_fault recording_goes_on(struct job *j, const struct ref_draw *d, recording_judge judge, void *ctx,
                                  bool *ret_moved, struct err *e)
{
    struct recording_replaying r = {.j = j, .draws = &d, .n = 1, .judge = judge, .ctx = ctx,
                                    .ended = j->recording->n_calls - 1,
                                    .goes_on = true};
    double used = j->session->used_s;
    int rc = recording_do_replay(&r, false, e);
    struct frame f;

    j->session->used_s = used; /* no call that the program asked for */
    *ret_moved = r.goes_on;
    if (rc < 0 && e->kind == ERR_INPUT) { /* no state is kept: one call alone, or too much memory */
        *e = (struct err)ERR_INIT;
        return CALL_OK;
    }
    if (rc < 0)
        return e->kind == ERR_NONE ? CALL_OK : recording_late_or_lost(j, e);
    if (rc == 0 || r.done)
        return CALL_OK;
    recording_raised(&f, "RuntimeError", "the device reports an error in a later call");
    return judge(ctx, d, &f, e) < 0 && e->kind != ERR_NONE ? CALL_INFRA : CALL_OK;
}

/* ---- one draw, for other ends than the verdict ---- */

/* A callback: moves the frame to ctx. */
static int recording_keep_frame(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e)
{
    (void)d, (void)e;
    *(struct frame *)ctx = *f;
    return 0;
}

/* Replays one draw. 1: *ret is its outputs; 0: it failed; -1 with e. */
static int recording_once_more(struct job *j, const struct ref_draw *d, bool movement, struct frame *ret, struct err *e)
{
    struct recording_replaying r = {.j = j, .draws = &d, .n = 1, .judge = recording_keep_frame, .ctx = ret};
    int rc = recording_do_replay(&r, movement, e);

    if (rc > 0 && r.done)
        frame_free(ret);
    return rc < 0 ? -1 : rc == 0;
}

int recording_movement(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    return recording_once_more(j, d, true, ret, e);
}

int recording_again(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    return recording_once_more(j, d, false, ret, e);
}

/* ---- capsules ---- */

/* The largest finite absolute value of n elements. */
static double recording_largest(const uint8_t *p, enum dtype d, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        double v = fabs(el_value(p, (int)d, i));

        most = v > most && isfinite(v) ? v : most;
    }
    return most;
}

struct keeping {
    struct recording *l;
    const struct frame *f;
};

/* A callback of tree_each: adds an output tensor's address and expected bytes to the capsule. */
static int recording_record_output(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct keeping *k = ctx;
    const uint8_t *want = (const uint8_t *)k->f->blob + json_i64(leaf, "offset", 0);
    struct capsule_output o = {.name = path && *path ? path : "output"};
    struct recording_place p;

    if (!tree_is_tensor(leaf) || !json_is_integer(json_object_get(leaf, "address")))
        return 0;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    o.addr = p.address, o.dtype = (uint32_t)p.t.dtype, o.dims = (uint32_t)p.t.ndim;
    for (int i = 0; i < p.t.ndim && i < (int)WIRE_DIMS; i++)
        o.size[i] = p.t.shape[i], o.stride[i] = p.stride[i];
    o.rtol = recording_slack(p.t.dtype);
    o.atol = o.rtol * recording_largest(want, p.t.dtype, p.t.n * dt_components(p.t.dtype));
    if (o.dims <= WIRE_DIMS)
        capsule_add_output(k->l->capsule, &o, want);
    return 0;
}

int recording_section(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct frame f;
    struct keeping k = {j->recording, &f};
    struct recording_replaying r = {.j = j, .draws = &d, .n = 1, .judge = recording_keep_frame, .ctx = &f};
    int rc;

    j->recording->recording = true;
    rc = recording_do_replay(&r, false, e);
    j->recording->recording = false;
    if (rc < 0)
        return -1;
    if (rc > 0)
        return err_set(e, ERR_ENV, "the replay for '%s' fails: the device reports an error", j->opt->capsule);
    rc = tree_each(json_object_get(f.head, "output"), recording_record_output, &k, e);
    frame_free(&f);
    return rc < 0 ? -1 : capsule_write(j->recording->capsule, j->opt->capsule, e);
}

json_t *recording_json(const struct recording *l)
{
    if (!l->recorded_run)
        return json_null();
    return json_pack("{s:I,s:I,s:I,s:I,s:b,s:s,s:s}", "launches", (json_int_t)l->counts.launches, "kernels",
                     (json_int_t)l->counts.kernels, "bytes_up", (json_int_t)l->counts.bytes_up, "bytes_down",
                     (json_int_t)l->counts.bytes_down, "live", l->live, "log_sha256", l->log_sha256, "outputs_sha256",
                     l->outputs_sha256);
}
