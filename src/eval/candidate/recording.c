/* recording.c - see recording.h. Reading order: recording_direct, then recording_replay, then recording_do_replay(). */
#include "eval/candidate/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/element.h"
#include "eval/candidate/recording_place.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/candidate/arrange.h"
#include "eval/candidate/job.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"

#define MAX_IMAGE ((size_t)128 << 20)
#define MAX_OUTPUT ((uint64_t)1 << 30)
#define MOST_NOTES 256 /* of a life */
#define NOTE_TEXT 400  /* bytes of each text */

struct recording_binding {
    uint64_t address, bytes;
    enum dtype dtype;
    uint8_t *real[REF_SETS]; /* owned; of each set of parameters, in the candidate's layout and type; or NULL */
    uint8_t *made_up;        /* owned; as real */
    bool buffer, changed;    /* a call left other values there: it is laid again before the next one */
    char name[64];           /* of a parameter; "": it is none */
    size_t row;              /* of the reference's state */
    bool packed;             /* its elements lie one after the other */
};

/* ---- tensors that lie on the executor ---- */

/* Walks the elements in C order; to: strided gets packed's values, else the other way round. */
static void recording_permute(const struct recording_place *p, uint8_t *strided, uint8_t *packed, bool to)
{
    int64_t at[TENSOR_MAX_DIMS] = {0}, offset = 0;

    if (place_is_packed(p)) {
        memcpy(to ? strided : packed, to ? packed : strided, (size_t)p->t.n * p->item);
        return;
    }
    for (int64_t i = 0; i < p->t.n; i++) {
        uint8_t *s = strided + (size_t)offset * p->item, *c = packed + (size_t)i * p->item;

        memcpy(to ? s : c, to ? c : s, p->item);
        for (int d = p->t.ndim - 1; d >= 0; d--) {
            offset += p->stride[d];
            if (++at[d] < p->t.shape[d])
                break;
            offset -= p->stride[d] * p->t.shape[d];
            at[d] = 0;
        }
    }
}

/* ---- opening ---- */

int recording_image(struct recording *l, const char *path, struct err *e)
{
    char sha[65];
    struct buf b;
    int rc;

    buf_init(&b, MAX_IMAGE);
    rc = file_read(path, &b, e) < 0 ? -1 : executor_image(l->x, b.p, b.n, sha, e);
    l->harmed |= rc < 0 || !executors_harmless(b.p, b.n);
    if (rc == 0 && l->capsule)
        capsule_add_image(l->capsule, b.p, b.n);
    buf_free(&b);
    return rc;
}

static int recording_image_of_build(void *recording, const char *path, struct err *e)
{
    return recording_image(recording, path, e);
}

static int recording_attach(struct job *j, const int fds[2], struct err *e)
{
    json_t *req = json_pack("{s:s,s:f}", "op", "attach", "timeout_s", j->opt->timeout_s);
    struct frame f;
    enum call_fault fault = session_give(j->session, req, fds, 2, &f, e);
    int rc = 0;

    json_decref(req);
    if (fault != CALL_OK)
        return e->kind == ERR_NONE ? err_set(e, ERR_ENV, "the candidate's process ended before it began") : -1;
    if (strcmp(json_str(f.head, "op", ""), "ok"))
        rc = err_set(e, ERR_ENV, "the candidate's process has no executor: %.200s", json_str(f.head, "message", ""));
    frame_free(&f);
    return rc;
}

/* A program that goes on rightly until it thinks that nobody looks any more does not know when that is. */
static uint32_t recording_number_of_calls(const struct job *j)
{
    struct rng r;

    rng_seed(&r, (uint64_t)j->seed, 78);
    return RECORDING_CALLS_LEAST + (uint32_t)rng_below(&r, RECORDING_CALLS - RECORDING_CALLS_LEAST + 1);
}

int recording_open(struct job *j, struct err *e)
{
    struct executor_options o = {.backend = j->server->backend->name, .timeout_s = j->opt->timeout_s};
    struct recording *l = xcalloc(1, sizeof *l);
    uint64_t memory;
    int fds[2], rc;

    recording_close(j->recording);
    j->recording = l;
    l->notes = json_array();
    l->n_calls = recording_number_of_calls(j);
    record_set(j->rec, "schema", json_string(RECORD_SCHEMA_REPLAY));
    l->home = &j->server->executors;
    l->harmed = j->held.ref->streamed != NULL; /* what its front held would stay mapped, and the area too */
    if (recording_streamed_memory(j, &memory, e) < 0 || executors_take(l->home, &o, memory, &l->x, fds, e) < 0)
        return -1;
    if (j->opt->capsule)
        capsule_init(l->capsule = xcalloc(1, sizeof *l->capsule), o.backend, j->task->name, executor_info(l->x)->name,
                     executor_info(l->x)->memory);
    rc = recording_attach(j, fds, e);
    close(fds[0]);
    close(fds[1]);
    j->session->on_image = recording_image_of_build;
    j->session->image_ctx = l;
    return rc;
}

static void recording_bindings_free(struct recording *l)
{
    for (size_t i = 0; i < l->n_bindings; i++) {
        for (int k = 0; k < REF_SETS; k++)
            free(l->bindings[i].real[k]);
        free(l->bindings[i].made_up);
    }
    free(l->bindings);
    l->bindings = NULL;
    l->n_bindings = 0;
}

void recording_close(struct recording *l)
{
    if (!l)
        return;
    executors_give(l->home, l->x, !l->harmed);
    if (l->capsule)
        capsule_free(l->capsule);
    free(l->capsule);
    json_decref(l->notes);
    json_decref(l->refused_launch);
    for (int i = 0; i < RECORDING_CALLS; i++)
        json_decref(l->outputs[i]);
    recording_bindings_free(l);
    free(l->inputs);
    free(l);
}

static json_t *recording_launch_finding(const json_t *note)
{
    json_t *f = json_pack("{s:s,s:s,s:s}", "kind", "launch_error", "kernel", json_str(note, "name", "?"), "message",
                          json_str(note, "message", "a launch was refused"));

    if (json_i64(note, "line", 0) > 0) {
        json_object_set_new(f, "file", json_string(json_str(note, "file", "")));
        json_object_set_new(f, "line", json_integer(json_i64(note, "line", 0)));
    }
    return f;
}

/* A note as litetorch/front/front.h writes it: what else its sender put there stays out of the record. */
static json_t *recording_note_of(const json_t *said)
{
    static const char *const texts[] = {"kind", "name", "message", "file", "handling"};
    json_t *note = json_object();

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *s = json_str(said, texts[i], "");

        if (i < 3 || *s)
            json_object_set_new(note, texts[i], json_utf8(s, strnlen(s, NOTE_TEXT)));
    }
    if (json_i64(said, "line", 0) > 0)
        json_object_set_new(note, "line", json_integer(json_i64(said, "line", 0)));
    json_object_set_new(note, "forward", json_boolean(json_flag(said, "forward", false)));
    json_object_set_new(note, "count", json_integer(json_i64(said, "count", 1)));
    return note;
}

static bool recording_refused_in_forward(const json_t *note)
{
    return !strcmp(json_str(note, "kind", ""), "launch_error") && json_flag(note, "forward", false);
}

void recording_take_report(struct job *j, const json_t *head)
{
    const json_t *notes = json_object_get(head, "notes"), *n;
    struct recording *l = j->recording;
    size_t i;

    json_array_foreach((json_t *)notes, i, n) {
        json_t *note = recording_note_of(n);

        if (!l->refused_launch && recording_refused_in_forward(note)) /* also where so many others came before it */
            l->refused_launch = recording_launch_finding(note);
        if (json_array_size(l->notes) < MOST_NOTES)
            json_array_append(l->notes, note);
        json_decref(note);
    }
}

bool recording_blame_launch(struct job *j)
{
    if (!j->recording->refused_launch)
        return false;
    json_array_append(j->findings, j->recording->refused_launch);
    return true;
}

/* ---- parameters ---- */

static bool recording_ascends(const struct tensor *t, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (tensor_at(t, i) < tensor_at(t, i - 1))
            return false;
    return true;
}

static int recording_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Whole numbers: each is one of the real ones, so a kernel that takes them for places stays where it was. What ascends
 * goes on ascending (the starts of rows). */
static void recording_make_up_whole(const struct tensor *t, uint8_t *out, int64_t n, struct rng *r)
{
    double *v = xmalloc((size_t)n * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = tensor_at(t, (int64_t)rng_below(r, (uint64_t)n));
    if (recording_ascends(t, n))
        qsort(v, (size_t)n, sizeof *v, recording_by_value);
    for (int64_t i = 0; i < n; i++)
        tensor_put(t->dtype, out, i, v[i]);
    free(v);
}

#define MADE_UP ((int64_t)1 << 20) /* elements of a parameter that are drawn; a larger one repeats them */

/* Values of another draw of the same kind: the front may look at these. Positive ones stay positive (variances). */
static void recording_make_up(const struct recording_place *p, const uint8_t *real, uint8_t *out, struct rng *r)
{
    struct tensor t = p->t;
    double sum = 0, square = 0, least = INFINITY, v;
    int64_t n = t.n * dt_components(t.dtype), all = n;
    size_t item = dt_size(t.dtype);

    t.data = real;
    if (!dt_is_float(t.dtype)) {
        memcpy(out, real, (size_t)t.n * p->item);
        recording_make_up_whole(&t, out, n, r);
        return;
    }
    n = n < MADE_UP ? n : MADE_UP;
    if (n == 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        v = tensor_at(&t, i);
        sum += v;
        square += v * v;
        least = fmin(least, v);
    }
    sum /= (double)n;
    square = sqrt(fmax(square / (double)n - sum * sum, 1e-4 * (sum * sum + 1e-4)));
    for (int64_t i = 0; i < n; i++) {
        v = sum + square * rng_normal(r);
        tensor_put(t.dtype, out, i, least > 0 ? fabs(v) + least * 0.5 : v);
    }
    for (int64_t i = n; i < all; i += n)
        memcpy(out + (size_t)i * item, out, (size_t)(all - i < n ? all - i : n) * item);
}

/* The reference's value of one row, in the candidate's type: n elements in C order. */
static uint8_t *recording_converted(const struct tensor *from, enum dtype to, size_t item)
{
    uint8_t *out = xmalloc((size_t)from->n * item + 1);
    int64_t n = from->n * dt_components(from->dtype);

    if (from->dtype == to) {
        memcpy(out, from->data, (size_t)from->n * item);
        return out;
    }
    for (int64_t i = 0; i < n; i++)
        tensor_put(to, out, i, tensor_at(from, i));
    return out;
}

static uint8_t *recording_laid_out(const struct recording_place *p, uint8_t *packed)
{
    uint8_t *out = xcalloc(1, p->span + 1);

    recording_permute(p, out, packed, true);
    return out;
}

/* A buffer that state_dict leaves out belongs to the construction: it may hold something else than the task's. Where it
 * holds the very same values they are laid as well, so that they count as no constant of the program's own. */
static bool recording_holds_already(struct recording *l, const struct recording_place *p, const uint8_t *packed)
{
    uint8_t *now;
    bool same;

    if (!place_is_packed(p) || p->span > MAX_OUTPUT)
        return false;
    now = xmalloc(p->span + 1);
    same = executor_peek(l->x, p->address, now, p->span, NULL) == 0 && !memcmp(now, packed, p->span);
    free(now);
    return same;
}

/* The values of row 'at' in a set of the reference's parameters. */
static int row_of_set(const struct reference *ref, int set, size_t at, struct tensor *ret, struct err *e)
{
    const struct section *s = set ? &ref->other_states[set - 1] : &ref->state_values;
    const json_t *node = json_array_get(json_object_get(s->tree, "v"), at);

    if (tensor_parse(node, (const uint8_t *)s->bytes, s->n, ret, e) < 0)
        return err_set(e, ERR_BUG, "the reference side sent broken parameters");
    return 0;
}

static int add_other_sets(const struct reference *ref, struct recording_binding *binding,
                          const struct recording_place *p, struct err *e)
{
    struct tensor from;
    uint8_t *packed;

    for (int k = 1; k < ref->n_sets; k++) {
        if (row_of_set(ref, k, binding->row, &from, e) < 0)
            return -1;
        if (from.n != p->t.n)
            return err_set(e, ERR_BUG, "the reference side sent broken parameters");
        packed = recording_converted(&from, p->t.dtype, p->item);
        binding->real[k] = recording_laid_out(p, packed);
        free(packed);
    }
    return 0;
}

/* ERR_INPUT: what the front said of this row is no tensor, or none in one allocation that it holds. Nothing is made of
 * its size before that is known. */
static int recording_add_binding(struct job *j, size_t at, const json_t *row, struct rng *r, struct err *e)
{
    struct recording *l = j->recording;
    bool constant = !strcmp(json_str(row, "kind", ""), "constant");
    struct recording_place p;
    struct tensor from;
    uint8_t *packed, *other;

    if (row_of_set(j->held.ref, 0, at, &from, e) < 0)
        return -1;
    if (place_tensor(row, &p, e) < 0)
        return -1;
    if (!p.address || from.n != p.t.n || dt_components(from.dtype) != dt_components(p.t.dtype) || !p.t.n)
        return 0;
    if (executor_typed(l->x, p.address, p.span, p.t.dtype, e) < 0)
        return -1;
    packed = recording_converted(&from, p.t.dtype, p.item);
    if (constant && !recording_holds_already(l, &p, packed)) {
        free(packed);
        return 0;
    }
    other = xmalloc((size_t)p.t.n * p.item + 1);
    if (constant)
        memcpy(other, packed, (size_t)p.t.n * p.item);
    else
        recording_make_up(&p, packed, other, r);
    l->bindings = xrealloc(l->bindings, (l->n_bindings + 1) * sizeof *l->bindings);
    l->bindings[l->n_bindings++] = (struct recording_binding){
        p.address, p.span, p.t.dtype, {recording_laid_out(&p, packed)}, recording_laid_out(&p, other),
                                                              !strcmp(json_str(row, "kind", ""), "buffer"), false,
                                                                  "", at,
                                                              place_is_packed(&p)};
    if (!strcmp(json_str(row, "kind", ""), "param"))
        snprintf(l->bindings[l->n_bindings - 1].name, sizeof l->bindings->name, "%s", json_str(row, "name", "?"));
    free(packed);
    free(other);
    return add_other_sets(j->held.ref, &l->bindings[l->n_bindings - 1], &p, e);
}

int recording_params(struct job *j, const json_t *const *pairs, struct err *e)
{
    struct rng r;
    int rc = 0;

    recording_bindings_free(j->recording);
    rng_seed(&r, (uint64_t)j->seed, 77);
    for (size_t i = 0; i < json_array_size(j->held.ref->state) && rc == 0; i++)
        if (pairs[i])
            rc = recording_add_binding(j, i, pairs[i], &r, e);
    return rc;
}

/* ---- weights that the construction arranged anew ---- */

/* The tensors of a section of the reference's state; owned array. NULL: it is broken. */
static struct tensor *rows_of(const struct section *s, size_t n)
{
    const json_t *list = json_object_get(s->tree, "v");
    struct tensor *rows = xcalloc(n + 1, sizeof *rows);

    for (size_t i = 0; i < n; i++)
        if (tensor_parse(json_array_get(list, i), (const uint8_t *)s->bytes, s->n, &rows[i], NULL) < 0) {
            free(rows);
            return NULL;
        }
    return rows;
}

int64_t *life_read(struct job *j, const json_t *row)
{
    size_t n = json_array_size(j->held.ref->state);
    struct tensor *rows, packed;
    uint8_t *strided, *dense;
    int64_t *of = NULL;
    struct recording_place p;

    if (!j->held.ref->built.tree || place_tensor(row, &p, NULL) < 0 || !p.address || !p.t.n || p.span > MAX_OUTPUT ||
        !(rows = rows_of(&j->held.ref->built, n)))
        return NULL;
    strided = xmalloc(p.span + 1);
    dense = xmalloc((size_t)p.t.n * p.item + 1);
    if (executor_peek(j->recording->x, p.address, strided, p.span, NULL) == 0) {
        recording_permute(&p, strided, dense, false);
        packed = p.t;
        packed.data = dense;
        of = arrange_read(rows, n, &packed);
    }
    free(strided);
    free(dense);
    free(rows);
    return of;
}

static uint8_t *gathered(const struct section *s, size_t n, const struct recording_place *p, const int64_t *of)
{
    struct tensor *rows = rows_of(s, n);
    uint8_t *out = xcalloc((size_t)p->t.n + 1, p->item);

    for (int64_t i = 0; rows && i < p->t.n; i++)
        tensor_put(p->t.dtype, out, i, arrange_value(rows, n, of[i]));
    free(rows);
    return out;
}

int life_packed(struct job *j, const json_t *row, const int64_t *of, struct err *e)
{
    size_t n = json_array_size(j->held.ref->state);
    struct recording *l = j->recording;
    struct recording_binding binding = {.row = SIZE_MAX};
    struct recording_place p;
    struct rng r;

    if (place_tensor(row, &p, e) < 0 || executor_typed(l->x, p.address, p.span, p.t.dtype, e) < 0)
        return -1;
    binding.address = p.address, binding.bytes = p.span, binding.dtype = p.t.dtype,
        binding.packed = place_is_packed(&p);
    for (int k = 0; k < j->held.ref->n_sets; k++) {
        uint8_t *dense = gathered(k ? &j->held.ref->other_states[k - 1] : &j->held.ref->state_values, n, &p, of);

        binding.real[k] = recording_laid_out(&p, dense);
        if (!k) {
            uint8_t *other = xcalloc((size_t)p.t.n + 1, p.item);

            rng_seed(&r, (uint64_t)j->seed, 81 + l->n_bindings);
            recording_make_up(&p, dense, other, &r);
            binding.made_up = recording_laid_out(&p, other);
            free(other);
        }
        free(dense);
    }
    if (!strcmp(json_str(row, "kind", ""), "param"))
        snprintf(binding.name, sizeof binding.name, "%s", json_str(row, "name", "?"));
    l->bindings = xrealloc(l->bindings, (l->n_bindings + 1) * sizeof *l->bindings);
    l->bindings[l->n_bindings++] = binding;
    return 0;
}

/* ---- inputs ---- */

struct inputs {
    struct job *j;
    const struct ref_draw *d;
    size_t i;
};

/* The bytes of one input as they lie in memory; NULL with *e. */
static uint8_t *recording_input_bytes(const struct ref_draw *d, const json_t *leaf, struct recording_place *p,
                                      struct err *e)
{
    struct tensor t;

    if (tensor_parse(leaf, (const uint8_t *)d->inputs.bytes, d->inputs.n, &t, e) < 0 || place_tensor(leaf, p, e) < 0)
        return NULL;
    return recording_laid_out(p, (uint8_t *)(uintptr_t)t.data);
}

/* Two places for each input, by turns: what keeps an address from its last call finds other values there. */
static int recording_allocate_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct inputs *in = ctx;
    struct recording *l = in->j->recording;
    struct recording_place p;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    l->inputs = xrealloc(l->inputs, (l->n_inputs + 2) * sizeof *l->inputs);
    for (int k = 0; k < 2 && rc == 0; k++) {
        uint64_t *at = &l->inputs[l->n_inputs++];

        *at = 0;
        if (p.span && (rc = executor_alloc(l->x, p.span, at, e)) == 0)
            rc = executor_typed(l->x, *at, p.span, p.t.dtype, e);
    }
    return rc;
}

/* Where input i lies in a call, from 1. A streamed task's area is one place. */
static uint64_t recording_input_at(const struct job *j, size_t i, uint32_t call)
{
    const struct recording *l = j->recording;

    return j->held.ref->streamed ? l->inputs[i] : l->inputs[2 * i + call % 2];
}

static int recording_bind_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct inputs *in = ctx;
    struct recording *l = in->j->recording;
    struct recording_place p;
    uint8_t *bytes;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (!(bytes = recording_input_bytes(in->d, leaf, &p, e)))
        return -1;
    if (p.span)
        rc = executor_bind(l->x, recording_input_at(in->j, in->i, l->calls), bytes, p.span,
                           TAG_INPUTS + (uint32_t)in->i, e);
    in->i++;
    free(bytes);
    return rc;
}

/* An address in place of an offset. */
static json_t *recording_placed_leaf(const json_t *leaf, void *ctx)
{
    struct inputs *in = ctx;
    json_t *copy = json_deep_copy(leaf);
    struct recording_place p;

    place_tensor(leaf, &p, NULL);
    json_object_set_new(copy, "address",
                        json_integer((json_int_t)recording_input_at(in->j, in->i++, in->j->recording->calls)));
    json_object_set_new(copy, "bytes", json_integer((json_int_t)p.span));
    return copy;
}

/* ---- outputs ---- */

struct outputs {
    struct job *j;
    struct buf bytes;
    json_t *on_host;
    size_t n; /* tensors so far */
    struct err *e;
    bool failed, astray; /* the machine's fault; an output does not lie in memory that the program holds */
};

static json_t *recording_fetch_leaf(const json_t *node, void *ctx)
{
    struct outputs *o = ctx;
    json_t *copy = json_deep_copy(node);
    struct recording_place p;
    uint8_t *strided, *packed;
    size_t n, i = o->n++;

    if (json_is_null(json_object_get(node, "address"))) {
        json_array_append_new(o->on_host, json_integer((json_int_t)i));
        return copy;
    }
    if (place_tensor(node, &p, o->e) < 0 || p.span > MAX_OUTPUT) {
        o->astray = true;
        *o->e = (struct err)ERR_INIT;
        return copy;
    }
    n = (size_t)p.t.n * p.item;
    strided = xcalloc(1, p.span + 1);
    packed = xcalloc(1, n + 64);
    if (p.span && executor_peek(o->j->recording->x, p.address, strided, p.span, o->e) < 0) {
        o->astray |= o->e->kind == ERR_INPUT;
        o->failed |= o->e->kind != ERR_INPUT;
        *o->e = o->failed ? *o->e : (struct err)ERR_INIT;
    }
    recording_permute(&p, strided, packed, false);
    json_object_set_new(copy, "offset", json_integer((json_int_t)o->bytes.n));
    json_object_set_new(copy, "nbytes", json_integer((json_int_t)n));
    buf_add(&o->bytes, (char *)packed, (n + 63) / 64 * 64);
    free(strided);
    free(packed);
    return copy;
}

/* Nothing is fetched of outputs that are other ones than expected: what they would be is the candidate's choice. */
struct recording_kinds {
    const json_t *leaf[256];
    size_t n;
};

static int recording_note_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_kinds *k = ctx;

    (void)path, (void)e;
    if (k->n < sizeof k->leaf / sizeof *k->leaf)
        k->leaf[k->n] = leaf;
    k->n++;
    return 0;
}

static bool recording_same_kind(const json_t *a, const json_t *b)
{
    if (!tree_is_tensor(a) || !tree_is_tensor(b))
        return tree_is_tensor(a) == tree_is_tensor(b);
    return !strcmp(json_str(a, "dtype", ""), json_str(b, "dtype", "?")) &&
           json_equal(json_object_get(a, "shape"), json_object_get(b, "shape"));
}

static bool recording_as_expected(const struct ref_draw *d, const json_t *output)
{
    struct recording_kinds want = {.n = 0}, got = {.n = 0};

    tree_each(d->eager.tree, recording_note_leaf, &want, NULL);
    tree_each(output, recording_note_leaf, &got, NULL);
    if (want.n != got.n)
        return false;
    for (size_t i = 0; i < want.n && i < sizeof want.leaf / sizeof *want.leaf; i++)
        if (!recording_same_kind(want.leaf[i], got.leaf[i]))
            return false;
    return true;
}

struct changes {
    struct inputs in;
    uint32_t call;
    json_t *changed, *garbled; /* garbled: the reference changes it too, and leaves other values there */
    json_t *missed;            /* or, where changes count: it was left as it was */
};

/* Does the task's sidecar say that what forward leaves there counts ("inputs", "buffers")? */
static bool recording_counts(const struct job *j, const char *what)
{
    const json_t *list = j->protocol->sidecar ? task_setting(j->task, j->variant, "effects") : NULL, *v;
    size_t i;

    json_array_foreach((json_t *)list, i, v)
        if (!strcmp(json_string_value(v), what))
            return true;
    return false;
}

static double recording_slack(enum dtype d);

static bool recording_same_value(double a, double b, double slack, double top)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= slack * (top + fabs(b));
}

/* n values of an input after the call, packed, as the reference leaves them? Ten times as far off as a replay elsewhere
 * may be: no oracle says more. */
static bool recording_as_left(const struct tensor *want, const uint8_t *got)
{
    struct tensor mine = *want;
    int64_t n = want->n * dt_components(want->dtype);
    double top = 0, wide = 10 * recording_slack(want->dtype);

    mine.data = got;
    for (int64_t i = 0; i < n; i++)
        top = isfinite(tensor_at(want, i)) ? fmax(top, fabs(tensor_at(want, i))) : top;
    for (int64_t i = 0; i < n; i++)
        if (!recording_same_value(tensor_at(&mine, i), tensor_at(want, i), wide, top))
            return false;
    return true;
}

/* Input i, which the reference changes as its k-th one, holds these bytes. Nothing is known: they may be right. */
static bool recording_left_right(const struct ref_draw *d, size_t i, const struct recording_place *p, uint8_t *now)
{
    const json_t *list = json_object_get(d->after.tree, "v"), *m;
    struct tensor want;
    uint8_t *packed;
    bool ok = true;
    size_t k;

    json_array_foreach(d->mutates, k, m)
        if (d->after.bytes && json_integer_value(m) == (json_int_t)i &&
            tensor_parse(json_array_get(list, k), (const uint8_t *)d->after.bytes, d->after.n, &want, NULL) == 0 &&
            want.n == p->t.n && want.dtype == p->t.dtype) {
            packed = xmalloc((size_t)p->t.n * p->item + 1);
            recording_permute(p, now, packed, false);
            ok = recording_as_left(&want, packed);
            free(packed);
        }
    return ok;
}

static int recording_changed_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct changes *c = ctx;
    struct recording *l = c->in.j->recording;
    struct recording_place p;
    uint8_t *was, *now;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (!(was = recording_input_bytes(c->in.d, leaf, &p, e)))
        return -1;
    now = xcalloc(1, p.span + 1);
    if (p.span)
        rc = executor_peek(l->x, recording_input_at(c->in.j, c->in.i, c->call), now, p.span, e);
    if (rc == 0 && memcmp(was, now, p.span)) {
        json_array_append_new(c->changed, json_integer((json_int_t)c->in.i));
        if (!recording_left_right(c->in.d, c->in.i, &p, now))
            json_array_append_new(c->garbled, json_integer((json_int_t)c->in.i));
    } else if (rc == 0 && recording_counts(c->in.j, "inputs") && !recording_left_right(c->in.d, c->in.i, &p, now)) {
        json_array_append_new(c->missed, json_integer((json_int_t)c->in.i));
    }
    c->in.i++;
    free(was);
    free(now);
    return rc;
}

static const struct recording_binding *recording_binding_of_row(const struct recording *l, size_t row)
{
    for (size_t i = 0; i < l->n_bindings; i++)
        if (l->bindings[i].row == row)
            return &l->bindings[i];
    return NULL;
}

/* Does the program's buffer hold what the reference leaves there? 1, 0, or -1. What lies apart is not looked at. */
static int recording_buffer_left(struct recording *l, const struct recording_binding *b, const struct tensor *want,
                                 struct err *e)
{
    uint8_t *now;
    int rc;

    if (!b || !b->buffer)
        return 0;
    if (!b->packed || b->dtype != want->dtype)
        return 1;
    now = xmalloc(b->bytes + 1);
    rc = executor_peek(l->x, b->address, now, b->bytes, e);
    rc = rc < 0 ? -1 : recording_as_left(want, now);
    free(now);
    return rc;
}

/* The names of buffers in which forward leaves other values than the reference, where that counts; NULL: infra. */
static json_t *recording_buffers_missed(struct job *j, const struct ref_draw *d, struct err *e)
{
    json_t *out = json_array();
    struct tensor want;

    for (size_t k = 0; d->left.bytes && k < json_array_size(d->left_rows); k++) {
        size_t row = (size_t)json_integer_value(json_array_get(d->left_rows, k));
        const json_t *node = json_array_get(json_object_get(d->left.tree, "v"), k);
        int ok = tensor_parse(node, (const uint8_t *)d->left.bytes, d->left.n, &want, e);

        ok = ok < 0 ? -1 : recording_buffer_left(j->recording, recording_binding_of_row(j->recording, row), &want, e);
        if (ok < 0) {
            json_decref(out);
            return NULL;
        }
        if (!ok)
            json_array_append(out, json_object_get(json_array_get(j->held.ref->state, row), "name"));
    }
    return out;
}

/* What a call left: a result as a candidate's process would send it. */
static int recording_fetch(struct job *j, const struct ref_draw *d, uint32_t call, const json_t *output,
                           struct frame *ret, struct err *e)
{
    struct outputs o = {.j = j, .on_host = json_array(), .e = e};
    struct changes c = {{.j = j, .d = d}, call, NULL, NULL, NULL};
    json_t *tree, *buffers = NULL;

    if (j->held.ref->streamed && recording_as_expected(d, output)) {
        json_decref(o.on_host);
        return recording_streamed_fetch(j, output, ret, e);
    }
    c.changed = json_array();
    if (!recording_as_expected(d, output)) { /* the comparison says how */
        ret->head = json_pack("{s:s,s:O,s:o,s:o}", "op", "result", "output", output, "changed", c.changed, "on_host",
                              o.on_host);
        ret->n_blob = 0;
        ret->blob = calloc(1, 64);
        return 0;
    }
    buf_init(&o.bytes, MAX_OUTPUT);
    c.garbled = json_array();
    c.missed = json_array();
    tree = tree_map(output, recording_fetch_leaf, &o);
    if (!o.failed && tree_each(d->inputs.tree, recording_changed_leaf, &c, e) < 0)
        o.failed = true;
    if (!o.failed && !(buffers = recording_buffers_missed(j, d, e)))
        o.failed = true;
    if (o.failed) {
        json_decref(tree);
        json_decref(o.on_host);
        json_decref(c.changed);
        json_decref(c.garbled);
        json_decref(c.missed);
        buf_free(&o.bytes);
        return -1;
    }
    ret->head = o.astray ? json_pack("{s:s,s:s,s:s,s:o,s:o,s:o}", "op", "error", "type", "RuntimeError", "message",
                                     "an output does not lie in memory that the program holds", "output", tree,
                                     "changed", c.changed, "on_host", o.on_host)
                         : json_pack("{s:s,s:o,s:o,s:o}", "op", "result", "output", tree, "changed", c.changed,
                                     "on_host", o.on_host);
    json_object_set_new(ret->head, "garbled", c.garbled);
    json_object_set_new(ret->head, "missed", c.missed);
    json_object_set_new(ret->head, "buffers_missed", buffers);
    ret->n_blob = o.bytes.n;
    ret->blob = aligned_alloc(64, (o.bytes.n + 64) / 64 * 64);
    memcpy(ret->blob, o.bytes.p, o.bytes.n);
    buf_free(&o.bytes);
    return 0;
}

/* ---- what went wrong ---- */

static bool recording_is_unwritten(const char *kind)
{
    return !strcmp(kind, "uninitialised_global") || !strcmp(kind, "uninitialised_shared");
}

/* The finding, and its line's text, by which the line is found in the user's file. */
static json_t *recording_with_text(const struct job *j, json_t *f)
{
    char text[200];

    if (session_source_line(j->session, json_str(f, "file", ""), json_i64(f, "line", 0), text, sizeof text))
        json_object_set_new(f, "text", json_utf8(text, strlen(text)));
    return json_incref(f);
}

/* Two kinds are no faults: what kernels printed, the program's own words, and reads of memory that nothing wrote, which
 * may be of values that nothing uses. Both stand in the record; a wrong value is explained by the second. */
static void recording_take_notes(struct job *j, json_t *found)
{
    for (size_t i = json_array_size(found); i-- > 0;) {
        json_t *f = json_array_get(found, i), *seen = json_object_get(j->rec, "unwritten");
        const char *kind = json_str(f, "kind", "");

        if (!strcmp(kind, "printed") && !json_object_get(j->rec, "printed"))
            json_object_set(j->rec, "printed", json_object_get(f, "message"));
        else if (recording_is_unwritten(kind) && !seen)
            record_set(j->rec, "unwritten", recording_with_text(j, f));
        if (!strcmp(kind, "printed") || recording_is_unwritten(kind))
            json_array_remove(found, i);
    }
}

/* ---- which tensor a finding is about ---- */

/* {"tensor","role","shape","dtype"} of what the judge has laid there; new, NULL: it is the program's own memory. */
static json_t *recording_tensor_of_row(const json_t *row, const char *name, const char *role)
{
    return json_pack("{s:s,s:s,s:O?,s:O?}", "tensor", name, "role", role, "shape", json_object_get(row, "shape"),
                     "dtype", json_object_get(row, "dtype"));
}

struct recording_nth {
    size_t want, n;
    const json_t *leaf;
};

static int recording_nth_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_nth *x = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && x->n++ == x->want)
        x->leaf = leaf;
    return 0;
}

static json_t *recording_tensor_of_input(const struct job *j, size_t i)
{
    struct recording_nth x = {.want = i};
    char name[80], role[32];

    tree_each(j->held.ref->draws[0].inputs.tree, recording_nth_leaf, &x, NULL);
    snprintf(role, sizeof role, "input %zu", i);
    if (!place_argument(j->code, (int)i, name, sizeof name))
        snprintf(name, sizeof name, "%s", role);
    return x.leaf ? recording_tensor_of_row(x.leaf, name, role) : NULL;
}

static json_t *recording_tensor_at(const struct job *j, uint64_t base, uint64_t bytes)
{
    const struct recording *l = j->recording;
    size_t each = j->held.ref && j->held.ref->streamed ? 1 : 2;

    for (size_t i = 0; j->held.ref && i < l->n_inputs; i++)
        if (l->inputs[i] && l->inputs[i] == base)
            return recording_tensor_of_input(j, i / each);
    for (size_t i = 0; i < l->n_bindings; i++) {
        const struct recording_binding *b = &l->bindings[i];
        const json_t *row = json_array_get(j->held.ref->state, b->row);

        if (b->address == base && b->bytes <= bytes)
            return recording_tensor_of_row(row, json_str(row, "name", "?"), b->buffer ? "buffer" : "parameter");
    }
    return NULL;
}

/* Memory of the program's own, by the kernel's parameter that leads there; new, NULL: that is not known. */
static json_t *recording_tensor_of_parameter(const struct job *j, const json_t *finding, const json_t *m)
{
    const char *kernel = json_str(finding, "kernel", "");
    const char *source = json_string_value(json_object_get(j->session->sources, json_str(finding, "file", "")));
    struct place_parameter p = {.bytes = 0};
    int64_t bytes = json_i64(m, "bytes", 0);
    char role[160];
    json_t *t;

    if (!place_pointer(source, kernel, (int)json_i64(m, "pointer", 0), (int)json_i64(m, "pointers", 0), &p))
        return NULL;
    snprintf(role, sizeof role, "argument %d of %.96s", p.index, kernel);
    t = json_pack("{s:s,s:s}", "tensor", p.name, "role", role);
    if (p.bytes && bytes % p.bytes == 0)
        json_object_update_new(t, json_pack("{s:[I],s:s}", "shape", (json_int_t)(bytes / p.bytes), "dtype", p.dtype));
    return t;
}

/* A finding about memory: its tensor's name, shape and element in place of an address. */
static void recording_name_memory(const struct job *j, json_t *finding)
{
    json_t *m = json_object_get(finding, "memory");
    json_t *t = m ? recording_tensor_at(j, (uint64_t)json_i64(m, "base", 0), (uint64_t)json_i64(m, "bytes", 0)) : NULL;
    struct buf words;

    t = t || !m ? t : recording_tensor_of_parameter(j, finding, m);
    json_object_del(m, "base");
    json_object_del(m, "pointer");
    json_object_del(m, "pointers");
    if (!t)
        return;
    json_object_update(m, t);
    buf_init(&words, 1000);
    memory_words(json_str(finding, "message", ""), m, &words);
    json_object_set_new(finding, "message", json_utf8(words.p, words.n));
    buf_free(&words);
    json_decref(t);
}

/* The same kind at the same place: a kernel that runs again finds it again. */
static bool recording_knows(const json_t *list, const json_t *finding)
{
    const json_t *f;
    size_t i;

    json_array_foreach(list, i, f)
        if (!strcmp(json_str(f, "kind", ""), json_str(finding, "kind", "")) &&
            json_equal(json_object_get(f, "line"), json_object_get(finding, "line")) &&
            json_equal(json_object_get(f, "file"), json_object_get(finding, "file")) &&
            json_i64(f, "line", 0) > 0)
            return true;
    return false;
}

static void recording_take_findings(struct job *j)
{
    json_t *one;
    size_t i;
    struct err e = ERR_INIT;
    char *text = NULL;
    json_t *found;

    if (executor_findings(j->recording->x, &text, &e) < 0)
        return;
    found = json_parse(text, strlen(text), "findings", &e);
    json_array_foreach(found, i, one)
        recording_name_memory(j, one);
    recording_take_notes(j, found);
    json_array_foreach(found, i, one)
        if (json_array_size(j->findings) < 64 && !recording_knows(j->findings, one))
            json_array_append(j->findings, one);
    json_decref(found);
    free(text);
}

json_t *recording_stand(struct job *j)
{
    char *text = j->recording ? executor_stand(j->recording->x) : NULL;
    json_t *found = text ? json_parse(text, strlen(text), "findings", NULL) : NULL, *one, *stand = NULL;
    size_t i;

    json_array_foreach(found, i, one)
        if (!strcmp(json_str(one, "kind", ""), "still_running"))
            stand = one;
    json_incref(stand);
    json_decref(found);
    free(text);
    return stand;
}

/* A fault of the device that no finding explains becomes one. */
static void recording_device_fault(struct job *j, int code, const char *why)
{
    static const struct {
        int code;
        const char *kind;
    } kinds[] = {{WIRE_ILLEGAL_ADDRESS, "illegal_access"}, {WIRE_LAUNCH_FAILED, "crash"},
                 {WIRE_BAD_CONFIG, "launch_error"},
                 {WIRE_OUT_OF_MEMORY, "out_of_memory"}}; /* within the front's limit: retry.h asks whose fault it is */
    const char *kind = "device_error";
    char text[400];

    j->recording->harmed |= code != 0;
    recording_take_findings(j);
    if (!code || json_array_size(j->findings))
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            kind = kinds[i].kind;
    snprintf(text, sizeof text, "%s", *why ? why : "the device reports an error");
    json_array_append_new(j->findings, json_pack("{s:s,s:s}", "kind", kind, "message", text));
}

/* ---- living ---- */

static const uint8_t *recording_bound_now(const struct recording *l, size_t i)
{
    return l->live ? l->bindings[i].real[0] : l->bindings[i].made_up;
}

static int recording_bind_param(struct recording *l, size_t i, struct err *e)
{
    return executor_bind(l->x, l->bindings[i].address, recording_bound_now(l, i), l->bindings[i].bytes, (uint32_t)i, e);
}

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

static int recording_type_params(struct recording *l, struct err *e)
{
    for (size_t i = 0; i < l->n_bindings; i++)
        if (executor_typed(l->x, l->bindings[i].address, l->bindings[i].bytes, l->bindings[i].dtype, e) < 0)
            return -1;
    return 0;
}

/* Memory for inputs, and parameters: once in a life. From here on the front is heard within calls only. */
static int recording_prepare(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct inputs in = {.j = j, .d = d};

    if (j->recording->calls)
        return 0;
    if (executor_pause(j->recording->x, e) < 0)
        return -1;
    if (j->held.ref->streamed ? recording_streamed_open(j, e) < 0
                              : tree_each(d->inputs.tree, recording_allocate_leaf, &in, e) < 0)
        return -1;
    return recording_bind_params(j, e) < 0 || recording_type_params(j->recording, e) < 0 ? -1 : 0;
}

static uint64_t recording_largest_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

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

/* An executor that does not answer for as long as a candidate may take runs a kernel that does not end. */
static enum call_fault recording_late_or_lost(struct job *j, struct err *e)
{
    j->recording->harmed = true;
    if (e->kind != ERR_STOP && executor_timed_out(j->recording->x)) {
        *e = (struct err)ERR_INIT;
        j->session->used_s = j->opt->timeout_s;
        return CALL_TIMEOUT;
    }
    return CALL_INFRA;
}

static void recording_raised(struct frame *ret, const char *type, const char *message)
{
    ret->head = json_pack("{s:s,s:s,s:s}", "op", "error", "type", type, "message", message);
    ret->blob = calloc(1, 64);
    ret->n_blob = 0;
}

/* Parameters whose memory is gone are the program's error: CALL_OK with *ret, as if forward had raised it. */
static enum call_fault recording_unprepared(struct job *j, struct frame *ret, struct err *e)
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

static json_t **recording_output_at(struct recording *l, uint32_t call)
{
    return &l->outputs[l->live ? 0 : call - 1];
}

static void recording_keep_output(struct recording *l, json_t *tree)
{
    json_t **at = recording_output_at(l, l->calls);

    json_decref(*at);
    *at = json_incref(tree);
}

/* The next call of forward. CALL_OK with an error's frame where forward raises. */
static enum call_fault recording_live_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    struct inputs in = {.j = j, .d = d}, at = in;
    enum call_fault fault;
    json_t *req;

    if (executor_call_begin(j->recording->x, ++j->recording->calls, e) < 0)
        return recording_late_or_lost(j, e);
    if (recording_bind_changed(j->recording, e) < 0)
        return recording_late_or_lost(j, e);
    if (j->held.ref->streamed ? recording_streamed_bind(j, d, e) < 0
                              : tree_each(d->inputs.tree, recording_bind_leaf, &in, e) < 0)
        return recording_late_or_lost(j, e);
    req = json_pack("{s:s,s:o}", "op", "call", "inputs", tree_map(d->inputs.tree, recording_placed_leaf, &at));
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

static bool recording_is_result(const struct frame *f)
{
    return !strcmp(json_str(f->head, "op", ""), "result");
}

static int recording_take_log(struct recording *l, struct err *e)
{
    struct exec_log log = {0};

    if (executor_log(l->x, &log, e) < 0)
        return -1;
    l->counts = log.counts;
    l->log_full = log.full;
    sha256_hex(log.p, log.n, l->log_sha256);
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

static void recording_end_client(struct job *j)
{
    session_output(j->session);
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
        if (!recording_is_result(&f) || l->last.error) {
            *ret = f;
            *ret_ended = true;
            return CALL_OK;
        }
        frame_free(&f);
    }
    if (recording_look_at_params(j, e) < 0)
        return recording_late_or_lost(j, e);
    recording_end_client(j);
    l->recorded_run = true;
    return recording_take_log(l, e) < 0 ? recording_late_or_lost(j, e) : CALL_OK;
}

/* ---- replaying ---- */

struct recording_replaying {
    struct job *j;
    const struct ref_draw *const *draws; /* of the last n calls; those before get other values, and are not judged */
    int n, done;
    recording_judge judge;
    void *ctx;
    uint32_t ended; /* calls of this replay that have ended */
    uint32_t bound; /* streamed: the call whose inputs lie in the area */
    bool recorded, goes_on;
    const struct recording_turn *turn; /* of a timed call that no other one is like; NULL: the draw's own values */
};

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

static int recording_find_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct find_leaf *f = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && f->i++ == f->want)
        f->leaf = leaf;
    return 0;
}

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

/* Values that no other call had: a draw's, from another place on, and float32 and float64 ones smaller. What ascends
 * (the starts of rows) stays. A kernel that keeps a book of answers finds none in it. */
struct recording_turn {
    uint64_t by;  /* elements */
    double scale; /* in [0.75, 1) */
};

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

/* The real parameters, of the set that the replay's draws have in common; the draw's inputs. */
static int recording_bind_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
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

/* Of a replay's time so much was the reference's: it is no candidate's. */
static double recording_reference_time(const struct job *j)
{
    return j->held.ref->streamed ? j->held.ref->streamed->spent_s : 0;
}

/* What memory holds before it is written: NaN in every second replay. In the others a byte that nobody knows before,
 * or a kernel could see by it that it is judged; as a float it is between 3e-3 and 4e3, so that a sum shows it. */
static uint8_t recording_poison_of(const struct job *j, int replay)
{
    struct rng r;

    rng_seed(&r, (uint64_t)j->seed, 79 + (uint64_t)replay);
    return replay % 2 ? (uint8_t)(0x3b + rng_below(&r, 11)) : 0xff;
}

/* 0, the device's error, or -1. */
static int recording_do_replay(struct recording_replaying *ctx, bool movement, struct err *e)
{
    struct job *j = ctx->j;
    struct executor_replay r = {.movement_only = movement, .shuffled = j->recording->shuffled,
                                .last_call = ctx->goes_on, .goes_on = ctx->goes_on,
                                .poison = recording_poison_of(j, j->recording->replays++),
                                .binding = recording_bind_and_keep, .bound = recording_bound_again,
                                .call_end = recording_call_ended,
                                .ctx = ctx};
    double t0 = now_s(), reference = recording_reference_time(j);
    int rc;

    ctx->recorded = j->recording->recording;
    rc = executor_replay(j->recording->x, &r, e);
    if (!movement)
        j->session->used_s += now_s() - t0 - (recording_reference_time(j) - reference);
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

/* One draw as it is lived: the front has the inputs' addresses, and reads what it likes. */
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
    j->recording->shuffled = j->recording->replays % 2 && j->recording->order.streams;
    rc = recording_do_replay(&r, false, e);
    j->recording->shuffled = false;
    if (rc < 0)
        return e->kind == ERR_NONE ? CALL_OK : recording_late_or_lost(j, e);
    if (rc == 0 || r.done >= n)
        return CALL_OK;
    recording_raised(&f, "RuntimeError", "the device reports an error");
    return judge(ctx, draws[r.done], &f, e) < 0 && e->kind != ERR_NONE ? CALL_INFRA : CALL_OK;
}

enum call_fault life_goes_on(struct job *j, const struct ref_draw *d, recording_judge judge, void *ctx, bool *ret_moved,
                             struct err *e)
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

static int recording_keep_frame(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e)
{
    (void)d, (void)e;
    *(struct frame *)ctx = *f;
    return 0;
}

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

/* ---- timing ---- */

struct recording_timed {
    struct recording_replaying r;
    const struct recording_timing *t;
    const struct ref_draw *now;
    struct recording_turn turn;
    bool bound; /* streamed: this call's inputs */
};

/* Calls before the last one have other values than a draw's. */
static void recording_next_draw(void *ctx, uint32_t call, bool last)
{
    struct recording_timed *c = ctx;

    (void)call;
    c->bound = false;
    c->r.ended = last ? c->r.j->recording->n_calls - 1 : 0;
    c->now = c->t->base;
    if (last && !c->t->fresh)
        c->now = c->t->draw(c->t->ctx, &c->turn.by, &c->turn.scale);
    c->r.turn = last && c->turn.by ? &c->turn : NULL;
}

static int recording_bound_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    struct recording_timed *c = ctx;

    (void)tag, (void)addr, (void)n;
    if (c->bound || c->t->empty)
        return 0;
    c->bound = true;
    return c->t->fresh(c->t->ctx, e);
}

static int recording_bind_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
                                struct err *e)
{
    return recording_bind_again(&((struct recording_timed *)ctx)->r, tag, addr, part, data, n, e);
}

static int recording_call_timed(void *ctx, uint32_t round, struct err *e)
{
    struct recording_timed *c = ctx;
    struct job *j = c->r.j;
    struct frame got;
    int rc;

    (void)round;
    if (c->t->empty || c->r.turn)
        return 0;
    if (c->t->ended)
        return c->t->ended(c->t->ctx, *recording_output_at(j->recording, j->recording->n_calls), e);
    if (recording_fetch(j, c->now, j->recording->n_calls, *recording_output_at(j->recording, j->recording->n_calls),
                        &got, e) < 0)
        return -1;
    rc = c->t->look(c->t->ctx, c->now, &got, e);
    frame_free(&got);
    return rc;
}

int recording_time(struct job *j, struct recording_timing *t, struct err *e)
{
    struct recording_timed c = {.r = {.j = j, .draws = &c.now, .n = 1}, .t = t, .now = t->base};
    struct executor_timing x = {.n = t->n, .movement_only = t->empty, .long_calls = t->long_calls, .whole = t->whole,
                                .ret_ms = t->ret_ms, .ret_span_ms = t->ret_span_ms, .before = recording_next_draw,
                                .binding = recording_bind_timed, .bound = recording_bound_timed,
                                .call_end = recording_call_timed, .ctx = &c};

    if (executor_time(j->recording->x, &x, e) < 0)
        return -1;
    t->whole = x.whole;
    j->recording->harmed |= x.ret_error != 0;
    return x.ret_error ? err_set(e, ERR_ENV, "a timed call fails: %.200s", x.ret_why) : 0;
}

/* ---- capsules ---- */

/* What a replay elsewhere may differ by: the order of atomic sums. The values themselves were judged here. */
static double recording_slack(enum dtype d)
{
    return d == DT_F64 || d == DT_C128 ? 1e-9 : d == DT_F16 ? 1e-2 : d == DT_BF16 ? 2e-2 : dt_is_float(d) ? 1e-4 : 0;
}

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
