/* life.c - see life.h. Reading order: life_live, then life_replay, then replay(). */
#include "eval/life/life.h"

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
#include "eval/life/life_place.h"
#include "eval/life/life_streamed.h"
#include "eval/process/job.h"
#include "eval/verdict/record.h"

#define MAX_IMAGE ((size_t)128 << 20)
#define MAX_OUTPUT ((uint64_t)1 << 30)
#define MOST_NOTES 256 /* of a life */
#define NOTE_TEXT 400  /* bytes of each text */

struct life_lay {
    uint64_t address, bytes;
    enum dtype dtype;
    uint8_t *real, *made_up; /* owned; in the candidate's layout and type */
    bool buffer, changed;    /* a call left other values there: it is laid again before the next one */
    char name[64];           /* of a parameter; "": it is none */
    size_t row;              /* of the reference's state */
    bool packed;             /* its elements lie one after the other */
};

/* ---- tensors that lie on the executor ---- */

/* Walks the elements in C order; to: strided gets packed's values, else the other way round. */
static void permute(const struct place *p, uint8_t *strided, uint8_t *packed, bool to)
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

int life_image(struct life *l, const char *path, struct err *e)
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

static int image_of_build(void *life, const char *path, struct err *e)
{
    return life_image(life, path, e);
}

static int attach(struct job *j, const int fds[2], struct err *e)
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
static uint32_t number_of_calls(const struct job *j)
{
    struct rng r;

    rng_seed(&r, (uint64_t)reference_seed(j->ev, j->opt->seed), 78);
    return LIFE_CALLS_LEAST + (uint32_t)rng_below(&r, LIFE_CALLS - LIFE_CALLS_LEAST + 1);
}

int life_open(struct job *j, struct err *e)
{
    struct executor_options o = {.backend = j->server->backend->name, .timeout_s = j->opt->timeout_s};
    struct life *l = xcalloc(1, sizeof *l);
    uint64_t memory;
    int fds[2], rc;

    life_close(j->life);
    j->life = l;
    l->notes = json_array();
    l->n_calls = number_of_calls(j);
    record_set(j->rec, "schema", json_string(RECORD_SCHEMA_REPLAY));
    l->home = &j->server->executors;
    l->harmed = j->ref->streamed != NULL; /* what its front held would stay mapped, and the area too */
    if (life_streamed_memory(j, &memory, e) < 0 || executors_take(l->home, &o, memory, &l->x, fds, e) < 0)
        return -1;
    if (j->opt->capsule)
        capsule_init(l->capsule = xcalloc(1, sizeof *l->capsule), o.backend, j->task->name, executor_info(l->x)->name,
                     executor_info(l->x)->memory);
    rc = attach(j, fds, e);
    close(fds[0]);
    close(fds[1]);
    j->session->on_image = image_of_build;
    j->session->image_ctx = l;
    return rc;
}

static void lays_free(struct life *l)
{
    for (size_t i = 0; i < l->n_lays; i++) {
        free(l->lays[i].real);
        free(l->lays[i].made_up);
    }
    free(l->lays);
    l->lays = NULL;
    l->n_lays = 0;
}

void life_close(struct life *l)
{
    if (!l)
        return;
    executors_give(l->home, l->x, !l->harmed);
    if (l->capsule)
        capsule_free(l->capsule);
    free(l->capsule);
    json_decref(l->notes);
    json_decref(l->refused_launch);
    for (int i = 0; i < LIFE_CALLS; i++)
        json_decref(l->outputs[i]);
    lays_free(l);
    free(l->inputs);
    free(l);
}

static json_t *launch_finding(const json_t *note)
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
static json_t *note_of(const json_t *said)
{
    static const char *const texts[] = {"kind", "name", "message", "file"};
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

static bool refused_in_forward(const json_t *note)
{
    return !strcmp(json_str(note, "kind", ""), "launch_error") && json_flag(note, "forward", false);
}

void life_take_report(struct job *j, const json_t *head)
{
    const json_t *notes = json_object_get(head, "notes"), *n;
    struct life *l = j->life;
    size_t i;

    json_array_foreach((json_t *)notes, i, n) {
        json_t *note = note_of(n);

        if (!l->refused_launch && refused_in_forward(note)) /* also where so many others came before it */
            l->refused_launch = launch_finding(note);
        if (json_array_size(l->notes) < MOST_NOTES)
            json_array_append(l->notes, note);
        json_decref(note);
    }
}

bool life_blame_launch(struct job *j)
{
    if (!j->life->refused_launch)
        return false;
    json_array_append(j->findings, j->life->refused_launch);
    return true;
}

/* ---- parameters ---- */

static bool ascends(const struct tensor *t, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (tensor_at(t, i) < tensor_at(t, i - 1))
            return false;
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Whole numbers: each is one of the real ones, so a kernel that takes them for places stays where it was. What ascends
 * goes on ascending (the starts of rows). */
static void make_up_whole(const struct tensor *t, uint8_t *out, int64_t n, struct rng *r)
{
    double *v = xmalloc((size_t)n * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = tensor_at(t, (int64_t)rng_below(r, (uint64_t)n));
    if (ascends(t, n))
        qsort(v, (size_t)n, sizeof *v, by_value);
    for (int64_t i = 0; i < n; i++)
        tensor_put(t->dtype, out, i, v[i]);
    free(v);
}

#define MADE_UP ((int64_t)1 << 20) /* elements of a parameter that are drawn; a larger one repeats them */

/* Values of another draw of the same kind: the front may look at these. Positive ones stay positive (variances). */
static void make_up(const struct place *p, const uint8_t *real, uint8_t *out, struct rng *r)
{
    struct tensor t = p->t;
    double sum = 0, square = 0, least = INFINITY, v;
    int64_t n = t.n * dt_components(t.dtype), all = n;
    size_t item = dt_size(t.dtype);

    t.data = real;
    if (!dt_is_float(t.dtype)) {
        memcpy(out, real, (size_t)t.n * p->item);
        make_up_whole(&t, out, n, r);
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
static uint8_t *converted(const struct tensor *from, enum dtype to, size_t item)
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

static uint8_t *laid_out(const struct place *p, uint8_t *packed)
{
    uint8_t *out = xcalloc(1, p->span + 1);

    permute(p, out, packed, true);
    return out;
}

/* A buffer that state_dict leaves out belongs to the construction: it may hold something else than the task's. Where it
 * holds the very same values they are laid as well, so that they count as no constant of the program's own. */
static bool holds_already(struct life *l, const struct place *p, const uint8_t *packed)
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

/* ERR_INPUT: what the front said of this row is no tensor, or none in one allocation that it holds. Nothing is made of
 * its size before that is known. */
static int add_lay(struct job *j, size_t at, const json_t *row, struct rng *r, struct err *e)
{
    struct life *l = j->life;
    const json_t *node = json_array_get(json_object_get(j->ref->state_values.tree, "v"), at);
    const struct section *s = &j->ref->state_values;
    bool constant = !strcmp(json_str(row, "kind", ""), "constant");
    struct place p;
    struct tensor from;
    uint8_t *packed, *other;

    if (tensor_parse(node, (const uint8_t *)s->bytes, s->n, &from, e) < 0)
        return err_set(e, ERR_BUG, "the reference side sent broken parameters");
    if (place_tensor(row, &p, e) < 0)
        return -1;
    if (!p.address || from.n != p.t.n || dt_components(from.dtype) != dt_components(p.t.dtype) || !p.t.n)
        return 0;
    if (executor_typed(l->x, p.address, p.span, p.t.dtype, e) < 0)
        return -1;
    packed = converted(&from, p.t.dtype, p.item);
    if (constant && !holds_already(l, &p, packed)) {
        free(packed);
        return 0;
    }
    other = xmalloc((size_t)p.t.n * p.item + 1);
    if (constant)
        memcpy(other, packed, (size_t)p.t.n * p.item);
    else
        make_up(&p, packed, other, r);
    l->lays = xrealloc(l->lays, (l->n_lays + 1) * sizeof *l->lays);
    l->lays[l->n_lays++] = (struct life_lay){p.address, p.span, p.t.dtype, laid_out(&p, packed), laid_out(&p, other),
                                             !strcmp(json_str(row, "kind", ""), "buffer"), false, "", at,
                                             place_is_packed(&p)};
    if (!strcmp(json_str(row, "kind", ""), "param"))
        snprintf(l->lays[l->n_lays - 1].name, sizeof l->lays->name, "%s", json_str(row, "name", "?"));
    free(packed);
    free(other);
    return 0;
}

int life_params(struct job *j, const json_t *const *pairs, struct err *e)
{
    struct rng r;
    int rc = 0;

    lays_free(j->life);
    rng_seed(&r, (uint64_t)reference_seed(j->ev, j->opt->seed), 77);
    for (size_t i = 0; i < json_array_size(j->ref->state) && rc == 0; i++)
        if (pairs[i])
            rc = add_lay(j, i, pairs[i], &r, e);
    return rc;
}

/* ---- inputs ---- */

struct inputs {
    struct job *j;
    const struct ref_draw *d;
    size_t i;
};

/* The bytes of one input as they lie in memory; NULL with *e. */
static uint8_t *input_bytes(const struct ref_draw *d, const json_t *leaf, struct place *p, struct err *e)
{
    struct tensor t;

    if (tensor_parse(leaf, (const uint8_t *)d->inputs.bytes, d->inputs.n, &t, e) < 0 || place_tensor(leaf, p, e) < 0)
        return NULL;
    return laid_out(p, (uint8_t *)(uintptr_t)t.data);
}

/* Two places for each input, by turns: what keeps an address from its last call finds other values there. */
static int allocate_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct inputs *in = ctx;
    struct life *l = in->j->life;
    struct place p;
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
static uint64_t input_at(const struct job *j, size_t i, uint32_t call)
{
    const struct life *l = j->life;

    return j->ref->streamed ? l->inputs[i] : l->inputs[2 * i + call % 2];
}

static int lay_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct inputs *in = ctx;
    struct life *l = in->j->life;
    struct place p;
    uint8_t *bytes;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (!(bytes = input_bytes(in->d, leaf, &p, e)))
        return -1;
    if (p.span)
        rc = executor_lay(l->x, input_at(in->j, in->i, l->calls), bytes, p.span, TAG_INPUTS + (uint32_t)in->i, e);
    in->i++;
    free(bytes);
    return rc;
}

/* An address in place of an offset. */
static json_t *placed_leaf(const json_t *leaf, void *ctx)
{
    struct inputs *in = ctx;
    json_t *copy = json_deep_copy(leaf);
    struct place p;

    place_tensor(leaf, &p, NULL);
    json_object_set_new(copy, "address", json_integer((json_int_t)input_at(in->j, in->i++, in->j->life->calls)));
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

static json_t *fetch_leaf(const json_t *node, void *ctx)
{
    struct outputs *o = ctx;
    json_t *copy = json_deep_copy(node);
    struct place p;
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
    if (p.span && executor_peek(o->j->life->x, p.address, strided, p.span, o->e) < 0) {
        o->astray |= o->e->kind == ERR_INPUT;
        o->failed |= o->e->kind != ERR_INPUT;
        *o->e = o->failed ? *o->e : (struct err)ERR_INIT;
    }
    permute(&p, strided, packed, false);
    json_object_set_new(copy, "offset", json_integer((json_int_t)o->bytes.n));
    json_object_set_new(copy, "nbytes", json_integer((json_int_t)n));
    buf_add(&o->bytes, (char *)packed, (n + 63) / 64 * 64);
    free(strided);
    free(packed);
    return copy;
}

/* Nothing is fetched of outputs that are other ones than expected: what they would be is the candidate's choice. */
struct kinds {
    const json_t *leaf[256];
    size_t n;
};

static int note_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct kinds *k = ctx;

    (void)path, (void)e;
    if (k->n < sizeof k->leaf / sizeof *k->leaf)
        k->leaf[k->n] = leaf;
    k->n++;
    return 0;
}

static bool same_kind(const json_t *a, const json_t *b)
{
    if (!tree_is_tensor(a) || !tree_is_tensor(b))
        return tree_is_tensor(a) == tree_is_tensor(b);
    return !strcmp(json_str(a, "dtype", ""), json_str(b, "dtype", "?")) &&
           json_equal(json_object_get(a, "shape"), json_object_get(b, "shape"));
}

static bool as_expected(const struct ref_draw *d, const json_t *output)
{
    struct kinds want = {.n = 0}, got = {.n = 0};

    tree_each(d->eager.tree, note_leaf, &want, NULL);
    tree_each(output, note_leaf, &got, NULL);
    if (want.n != got.n)
        return false;
    for (size_t i = 0; i < want.n && i < sizeof want.leaf / sizeof *want.leaf; i++)
        if (!same_kind(want.leaf[i], got.leaf[i]))
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
static bool counts(const struct job *j, const char *what)
{
    const json_t *list = j->protocol->sidecar ? task_setting(j->task, j->variant, "effects") : NULL, *v;
    size_t i;

    json_array_foreach((json_t *)list, i, v)
        if (!strcmp(json_string_value(v), what))
            return true;
    return false;
}

static double slack(enum dtype d);

static bool same_value(double a, double b, double slack, double top)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= slack * (top + fabs(b));
}

/* n values of an input after the call, packed, as the reference leaves them? Ten times as far off as a replay elsewhere
 * may be: no oracle says more. */
static bool as_left(const struct tensor *want, const uint8_t *got)
{
    struct tensor mine = *want;
    int64_t n = want->n * dt_components(want->dtype);
    double top = 0, wide = 10 * slack(want->dtype);

    mine.data = got;
    for (int64_t i = 0; i < n; i++)
        top = isfinite(tensor_at(want, i)) ? fmax(top, fabs(tensor_at(want, i))) : top;
    for (int64_t i = 0; i < n; i++)
        if (!same_value(tensor_at(&mine, i), tensor_at(want, i), wide, top))
            return false;
    return true;
}

/* Input i, which the reference changes as its k-th one, holds these bytes. Nothing is known: they may be right. */
static bool left_right(const struct ref_draw *d, size_t i, const struct place *p, uint8_t *now)
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
            permute(p, now, packed, false);
            ok = as_left(&want, packed);
            free(packed);
        }
    return ok;
}

static int changed_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct changes *c = ctx;
    struct life *l = c->in.j->life;
    struct place p;
    uint8_t *was, *now;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (!(was = input_bytes(c->in.d, leaf, &p, e)))
        return -1;
    now = xcalloc(1, p.span + 1);
    if (p.span)
        rc = executor_peek(l->x, input_at(c->in.j, c->in.i, c->call), now, p.span, e);
    if (rc == 0 && memcmp(was, now, p.span)) {
        json_array_append_new(c->changed, json_integer((json_int_t)c->in.i));
        if (!left_right(c->in.d, c->in.i, &p, now))
            json_array_append_new(c->garbled, json_integer((json_int_t)c->in.i));
    } else if (rc == 0 && counts(c->in.j, "inputs") && !left_right(c->in.d, c->in.i, &p, now)) {
        json_array_append_new(c->missed, json_integer((json_int_t)c->in.i));
    }
    c->in.i++;
    free(was);
    free(now);
    return rc;
}

static const struct life_lay *lay_of_row(const struct life *l, size_t row)
{
    for (size_t i = 0; i < l->n_lays; i++)
        if (l->lays[i].row == row)
            return &l->lays[i];
    return NULL;
}

/* Does the program's buffer hold what the reference leaves there? 1, 0, or -1. What lies apart is not looked at. */
static int buffer_left(struct life *l, const struct life_lay *b, const struct tensor *want, struct err *e)
{
    uint8_t *now;
    int rc;

    if (!b || !b->buffer)
        return 0;
    if (!b->packed || b->dtype != want->dtype)
        return 1;
    now = xmalloc(b->bytes + 1);
    rc = executor_peek(l->x, b->address, now, b->bytes, e);
    rc = rc < 0 ? -1 : as_left(want, now);
    free(now);
    return rc;
}

/* The names of buffers in which forward leaves other values than the reference, where that counts; NULL: infra. */
static json_t *buffers_missed(struct job *j, const struct ref_draw *d, struct err *e)
{
    json_t *out = json_array();
    struct tensor want;

    for (size_t k = 0; d->left.bytes && k < json_array_size(d->left_rows); k++) {
        size_t row = (size_t)json_integer_value(json_array_get(d->left_rows, k));
        const json_t *node = json_array_get(json_object_get(d->left.tree, "v"), k);
        int ok = tensor_parse(node, (const uint8_t *)d->left.bytes, d->left.n, &want, e);

        ok = ok < 0 ? -1 : buffer_left(j->life, lay_of_row(j->life, row), &want, e);
        if (ok < 0) {
            json_decref(out);
            return NULL;
        }
        if (!ok)
            json_array_append(out, json_object_get(json_array_get(j->ref->state, row), "name"));
    }
    return out;
}

/* What a call left: a result as a candidate's process would send it. */
static int fetch(struct job *j, const struct ref_draw *d, uint32_t call, const json_t *output, struct frame *ret,
                 struct err *e)
{
    struct outputs o = {.j = j, .on_host = json_array(), .e = e};
    struct changes c = {{.j = j, .d = d}, call, NULL, NULL, NULL};
    json_t *tree, *buffers = NULL;

    if (j->ref->streamed && as_expected(d, output)) {
        json_decref(o.on_host);
        return life_streamed_fetch(j, output, ret, e);
    }
    c.changed = json_array();
    if (!as_expected(d, output)) { /* the comparison says how */
        ret->head = json_pack("{s:s,s:O,s:o,s:o}", "op", "result", "output", output, "changed", c.changed, "on_host",
                              o.on_host);
        ret->n_blob = 0;
        ret->blob = calloc(1, 64);
        return 0;
    }
    buf_init(&o.bytes, MAX_OUTPUT);
    c.garbled = json_array();
    c.missed = json_array();
    tree = tree_map(output, fetch_leaf, &o);
    if (!o.failed && tree_each(d->inputs.tree, changed_leaf, &c, e) < 0)
        o.failed = true;
    if (!o.failed && !(buffers = buffers_missed(j, d, e)))
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

/* Two kinds are no faults: what kernels printed, the program's own words, and reads of memory that nothing wrote, which
 * may be of values that nothing uses. Both stand in the record; a wrong value is explained by the second. */
static void take_notes(struct job *j, json_t *found)
{
    for (size_t i = json_array_size(found); i-- > 0;) {
        json_t *f = json_array_get(found, i), *seen = json_object_get(j->rec, "unwritten");
        const char *kind = json_str(f, "kind", "");

        if (!strcmp(kind, "printed") && !json_object_get(j->rec, "printed"))
            json_object_set(j->rec, "printed", json_object_get(f, "message"));
        else if (!strcmp(kind, "uninitialised_global") && !seen)
            record_set(j->rec, "unwritten", json_incref(f));
        if (!strcmp(kind, "printed") || !strcmp(kind, "uninitialised_global"))
            json_array_remove(found, i);
    }
}

static void take_findings(struct job *j)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    json_t *found;

    if (executor_findings(j->life->x, &text, &e) < 0)
        return;
    found = json_parse(text, strlen(text), "findings", &e);
    take_notes(j, found);
    if (json_is_array(found) && json_array_size(j->findings) < 64)
        json_array_extend(j->findings, found);
    json_decref(found);
    free(text);
}

/* A fault of the device that no finding explains becomes one. */
static void device_fault(struct job *j, int code, const char *why)
{
    static const struct {
        int code;
        const char *kind;
    } kinds[] = {{WIRE_ILLEGAL_ADDRESS, "illegal_access"}, {WIRE_LAUNCH_FAILED, "crash"},
                 {WIRE_BAD_CONFIG, "launch_error"},
                 {WIRE_OUT_OF_MEMORY, "out_of_memory"}}; /* within the front's limit: retry.h asks whose fault it is */
    const char *kind = "device_error";
    char text[400];

    j->life->harmed |= code != 0;
    take_findings(j);
    if (!code || json_array_size(j->findings))
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            kind = kinds[i].kind;
    snprintf(text, sizeof text, "%s", *why ? why : "the device reports an error");
    json_array_append_new(j->findings, json_pack("{s:s,s:s}", "kind", kind, "message", text));
}

/* ---- living ---- */

static const uint8_t *laid_now(const struct life *l, size_t i)
{
    return l->live ? l->lays[i].real : l->lays[i].made_up;
}

static int lay_param(struct life *l, size_t i, struct err *e)
{
    return executor_lay(l->x, l->lays[i].address, laid_now(l, i), l->lays[i].bytes, (uint32_t)i, e);
}

static int lay_params(struct job *j, struct err *e)
{
    for (size_t i = 0; i < j->life->n_lays; i++)
        if (lay_param(j->life, i, e) < 0)
            return -1;
    return 0;
}

/* The reference starts each draw from the same buffers, so each call does. */
static int lay_changed(struct life *l, struct err *e)
{
    for (size_t i = 0; i < l->n_lays; i++)
        if (l->lays[i].changed && lay_param(l, i, e) < 0)
            return -1;
    return 0;
}

/* A buffer that the program has given back is one no longer. */
static int note_changed(struct life *l, size_t i, struct err *e)
{
    struct life_lay *p = &l->lays[i];
    uint8_t *now = xmalloc(p->bytes + 1);
    int rc = executor_peek(l->x, p->address, now, p->bytes, e);

    if (rc < 0 && e->kind == ERR_INPUT) {
        p->buffer = p->changed = false;
        *e = (struct err)ERR_INIT;
        rc = 0;
    } else if (rc == 0) {
        p->changed = p->changed || memcmp(now, laid_now(l, i), p->bytes) != 0;
    }
    free(now);
    return rc;
}

static int look_at_buffers(struct life *l, struct err *e)
{
    for (size_t i = 0; i < l->n_lays && !l->last.error; i++)
        if (l->lays[i].buffer && note_changed(l, i, e) < 0)
            return -1;
    return 0;
}

/* The weights are the model's after a forward, too: what packs them packs a copy. */
static int look_at_params(struct job *j, struct err *e)
{
    struct life *l = j->life;

    for (size_t i = 0; i < l->n_lays && !j->ref->alters && !*l->altered; i++) {
        if (*l->lays[i].name && note_changed(l, i, e) < 0)
            return -1;
        if (*l->lays[i].name && l->lays[i].changed)
            snprintf(l->altered, sizeof l->altered, "%s", l->lays[i].name);
    }
    return 0;
}

static int type_params(struct life *l, struct err *e)
{
    for (size_t i = 0; i < l->n_lays; i++)
        if (executor_typed(l->x, l->lays[i].address, l->lays[i].bytes, l->lays[i].dtype, e) < 0)
            return -1;
    return 0;
}

/* Memory for inputs, and parameters: once in a life. From here on the front is heard within calls only. */
static int prepare(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct inputs in = {.j = j, .d = d};

    if (j->life->calls)
        return 0;
    if (executor_pause(j->life->x, e) < 0)
        return -1;
    if (j->ref->streamed ? life_streamed_open(j, e) < 0 : tree_each(d->inputs.tree, allocate_leaf, &in, e) < 0)
        return -1;
    return lay_params(j, e) < 0 || type_params(j->life, e) < 0 ? -1 : 0;
}

static uint64_t largest_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count_reads(struct life *l)
{
    struct rules_reads *m = &l->most;

    m->bytes = largest_of(m->bytes, l->last.bytes_down);
    m->compared = largest_of(m->compared, l->last.compared);
    m->up = largest_of(m->up, l->last.bytes_up);
    m->given = largest_of(m->given, l->last.given);
    m->replies = (uint32_t)largest_of(m->replies, l->last.reads);
}

bool life_reads(const struct life *l)
{
    return l->most.bytes > 0;
}

/* An executor that does not answer for as long as a candidate may take runs a kernel that does not end. */
static enum call_fault late_or_lost(struct job *j, struct err *e)
{
    j->life->harmed = true;
    if (e->kind != ERR_STOP && executor_timed_out(j->life->x)) {
        *e = (struct err)ERR_INIT;
        j->session->used_s = j->opt->timeout_s;
        return CALL_TIMEOUT;
    }
    return CALL_INFRA;
}

static void raised(struct frame *ret, const char *type, const char *message)
{
    ret->head = json_pack("{s:s,s:s,s:s}", "op", "error", "type", type, "message", message);
    ret->blob = calloc(1, 64);
    ret->n_blob = 0;
}

/* Parameters whose memory is gone are the program's error: CALL_OK with *ret, as if forward had raised it. */
static enum call_fault unprepared(struct job *j, struct frame *ret, struct err *e)
{
    if (e->kind != ERR_INPUT)
        return late_or_lost(j, e);
    raised(ret, "RuntimeError", "a parameter does not lie in memory that the program holds");
    *e = (struct err)ERR_INIT;
    return CALL_OK;
}

/* Of the executor itself, not of a kernel: nobody is blamed. */
static bool own_failure(const struct executor_call *c)
{
    return c->error == WIRE_UNKNOWN || c->error == WIRE_GONE || !strncmp(c->why, "MODULE: cannot", 14);
}

static json_t **output_at(struct life *l, uint32_t call)
{
    return &l->outputs[l->live ? 0 : call - 1];
}

static void keep_output(struct life *l, json_t *tree)
{
    json_t **at = output_at(l, l->calls);

    json_decref(*at);
    *at = json_incref(tree);
}

/* The next call of forward. CALL_OK with an error's frame where forward raises. */
static enum call_fault live_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    struct inputs in = {.j = j, .d = d}, at = in;
    enum call_fault fault;
    json_t *req;

    if (executor_call_begin(j->life->x, ++j->life->calls, e) < 0)
        return late_or_lost(j, e);
    if (lay_changed(j->life, e) < 0)
        return late_or_lost(j, e);
    if (j->ref->streamed ? life_streamed_lay(j, d, e) < 0 : tree_each(d->inputs.tree, lay_leaf, &in, e) < 0)
        return late_or_lost(j, e);
    req = json_pack("{s:s,s:o}", "op", "call", "inputs", tree_map(d->inputs.tree, placed_leaf, &at));
    fault = session_call(j->session, req, NULL, 0, ret, e);
    json_decref(req);
    if (fault != CALL_OK)
        return fault;
    life_take_report(j, ret->head);
    if (executor_call_end(j->life->x, &j->life->last, e) < 0) {
        frame_free(ret);
        return late_or_lost(j, e);
    }
    if (own_failure(&j->life->last)) {
        j->life->harmed = true;
        frame_free(ret);
        err_set(e, ERR_ENV, "the executor failed: %.200s", j->life->last.why);
        return CALL_INFRA;
    }
    count_reads(j->life);
    j->life->launches += j->life->last.launches;
    keep_output(j->life, json_object_get(ret->head, "output"));
    if (!j->life->last.error && !j->life->last.launches && life_blame_launch(j))
        j->life->last.error = WIRE_BAD_CONFIG;
    device_fault(j, j->life->last.error, j->life->last.why);
    if (look_at_buffers(j->life, e) < 0) {
        frame_free(ret);
        return late_or_lost(j, e);
    }
    return CALL_OK;
}

static bool is_result(const struct frame *f)
{
    return !strcmp(json_str(f->head, "op", ""), "result");
}

static int take_log(struct life *l, struct err *e)
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

int life_finish(struct job *j, struct err *e)
{
    j->life->lived = true;
    j->life->n_calls = j->life->calls;
    return take_log(j->life, e);
}

static void end_front(struct job *j)
{
    session_output(j->session);
}

enum call_fault life_live(struct job *j, const struct ref_draw *d, struct frame *ret, bool *ret_ended, struct err *e)
{
    struct life *l = j->life;
    enum call_fault fault = CALL_OK;
    struct frame f;

    *ret_ended = false;
    if (prepare(j, d, e) < 0) {
        *ret_ended = true;
        return unprepared(j, ret, e);
    }
    for (uint32_t k = 0; k < l->n_calls; k++) {
        if ((fault = live_call(j, d, &f, e)) != CALL_OK)
            return fault;
        if (!is_result(&f) || l->last.error) {
            *ret = f;
            *ret_ended = true;
            return CALL_OK;
        }
        frame_free(&f);
    }
    if (look_at_params(j, e) < 0)
        return late_or_lost(j, e);
    end_front(j);
    l->lived = true;
    return take_log(l, e) < 0 ? late_or_lost(j, e) : CALL_OK;
}

/* ---- replaying ---- */

struct replaying {
    struct job *j;
    const struct ref_draw *const *draws; /* of the last n calls; those before get other values, and are not judged */
    int n, done;
    life_judge judge;
    void *ctx;
    uint32_t ended; /* calls of this replay that have ended */
    uint32_t laid;  /* streamed: the call whose inputs lie in the area */
    bool recorded, goes_on;
    const struct turn *turn; /* of a timed call that no other one is like; NULL: the draw's own values */
};

/* Whose inputs call k gets, from 1; *ret_own: as they are. */
static const struct ref_draw *draw_of(const struct replaying *r, uint32_t call, bool *ret_own)
{
    int at = (int)call - 1 - ((int)r->j->life->n_calls - r->n);

    *ret_own = at >= 0;
    return r->draws[at >= 0 && at < r->n ? at : 0];
}

struct find_leaf {
    size_t want, i;
    const json_t *leaf;
};

static int find_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct find_leaf *f = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && f->i++ == f->want)
        f->leaf = leaf;
    return 0;
}

static int copy_part(const uint8_t *from, uint64_t bytes, uint64_t part, void *data, uint64_t n, struct err *e)
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
static void make_other(uint8_t *bytes, enum dtype d, uint64_t span)
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
struct turn {
    uint64_t by;  /* elements */
    double scale; /* in [0.75, 1) */
};

static void turn_values(const struct turn *t, uint8_t *bytes, const struct place *p)
{
    size_t n = p->span / p->item, k = n ? (size_t)(t->by % n) * p->item : 0;
    struct tensor values = p->t;
    uint8_t *copy;

    values.data = bytes;
    if (!dt_is_float(p->t.dtype) && place_is_packed(p) && p->t.dtype != DT_BOOL && ascends(&values, p->t.n))
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

/* The real parameters, the draw's inputs. */
static int lay_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    struct replaying *r = ctx;
    struct life *l = r->j->life;
    struct find_leaf f = {.want = tag - TAG_INPUTS};
    const struct ref_draw *d;
    struct place p;
    uint8_t *bytes;
    bool own;
    int rc;

    (void)addr;
    if (tag < l->n_lays)
        return copy_part(l->lays[tag].real, l->lays[tag].bytes, part, data, n, e);
    d = draw_of(r, r->ended + 1, &own);
    if (tag < TAG_INPUTS || tree_each(d->inputs.tree, find_leaf, &f, e) < 0 || !f.leaf)
        return err_set(e, ERR_BUG, "the log lays something unknown (%u)", tag);
    if (!(bytes = input_bytes(d, f.leaf, &p, e)))
        return -1;
    if (!own)
        make_other(bytes, p.t.dtype, p.span);
    if (r->turn)
        turn_values(r->turn, bytes, &p);
    rc = copy_part(bytes, p.span, part, data, n, e);
    free(bytes);
    return rc;
}

static int lay_and_keep(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    struct replaying *r = ctx;

    if (lay_again(ctx, tag, addr, part, data, n, e) < 0)
        return -1;
    if (r->recorded)
        capsule_add_value(r->j->life->capsule, data, n);
    return 0;
}

/* Streamed inputs: all of a call's at once, where its first one is asked for. */
static int laid_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    struct replaying *r = ctx;
    const struct ref_draw *d;
    bool own;

    (void)tag, (void)addr, (void)n;
    if (r->laid == r->ended + 1)
        return 0;
    d = draw_of(r, r->laid = r->ended + 1, &own);
    return streamed_lay(r->j->ref->streamed, d, !own, e);
}

/* Equal programs on equal inputs have equal ones, whatever the machine does beside. */
static void note_outputs(struct life *l, const struct frame *f)
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, l->outputs_sha256);
    sha256_add(&h, f->blob, f->n_blob);
    sha256_end(&h, l->outputs_sha256);
}

static int call_ended(void *ctx, uint32_t call, struct err *e)
{
    struct replaying *r = ctx;
    const struct ref_draw *d;
    struct frame f;
    bool own;

    if (call > r->j->life->n_calls)
        return err_set(e, ERR_BUG, "the log has a call %u", call);
    d = draw_of(r, call, &own);
    r->ended = call;
    if (!own)
        return 0;
    if (fetch(r->j, d, call, *output_at(r->j->life, call), &f, e) < 0)
        return -1;
    r->done++;
    note_outputs(r->j->life, &f);
    return r->judge(r->ctx, d, &f, e);
}

/* Of a replay's time so much was the reference's: it is no candidate's. */
static double reference_time(const struct job *j)
{
    return j->ref->streamed ? j->ref->streamed->spent_s : 0;
}

/* What memory holds before it is written: NaN in every second replay. In the others a byte that nobody knows before,
 * or a kernel could see by it that it is judged; as a float it is between 3e-3 and 4e3, so that a sum shows it. */
static uint8_t poison_of(const struct job *j, int replay)
{
    struct rng r;

    rng_seed(&r, (uint64_t)reference_seed(j->ev, j->opt->seed), 79 + (uint64_t)replay);
    return replay % 2 ? (uint8_t)(0x3b + rng_below(&r, 11)) : 0xff;
}

/* 0, the device's error, or -1. */
static int replay(struct replaying *ctx, bool plumbing, struct err *e)
{
    struct job *j = ctx->j;
    struct executor_replay r = {.plumbing_only = plumbing, .shuffled = j->life->shuffled,
                                .last_call = ctx->goes_on, .goes_on = ctx->goes_on,
                                .poison = poison_of(j, j->life->replays++),
                                .lay = lay_and_keep, .laid = laid_again, .call_end = call_ended,
                                .ctx = ctx};
    double t0 = now_s(), reference = reference_time(j);
    int rc;

    ctx->recorded = j->life->recording;
    rc = executor_replay(j->life->x, &r, e);
    if (!plumbing)
        j->session->used_s += now_s() - t0 - (reference_time(j) - reference);
    ctx->goes_on = ctx->goes_on && r.ret_moved;
    if (rc == 0 && r.last_call && !r.ret_moved)
        return 0;
    if (rc == 0 && (r.ret_error || ctx->done < ctx->n)) {
        if (r.ret_error == WIRE_REFUSED) {
            j->life->refused = true;
            snprintf(j->life->why, sizeof j->life->why, "%s", r.ret_why);
        }
        device_fault(j, r.ret_error ? r.ret_error : WIRE_UNKNOWN, r.ret_why);
        return 1;
    }
    if (rc == 0 && !plumbing)
        take_findings(j);
    return rc < 0 ? -1 : 0;
}

/* One draw as it is lived: the front has the inputs' addresses, and reads what it likes. */
enum call_fault life_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    enum call_fault fault;

    if (prepare(j, d, e) < 0)
        return unprepared(j, ret, e);
    fault = live_call(j, d, ret, e);
    if (fault != CALL_OK || !is_result(ret) || j->life->last.error)
        return fault;
    frame_free(ret);
    return fetch(j, d, j->life->calls, j->life->outputs[0], ret, e) < 0 ? late_or_lost(j, e) : CALL_OK;
}

enum call_fault life_replay(struct job *j, const struct ref_draw *const *draws, int n, life_judge judge, void *ctx,
                            struct err *e)
{
    struct replaying r = {.j = j, .draws = draws, .n = n, .judge = judge, .ctx = ctx};
    struct frame f;
    int rc;

    if (j->session->used_s > j->opt->timeout_s)
        return CALL_TIMEOUT;
    j->life->shuffled = j->life->replays % 2 && j->life->order.streams;
    rc = replay(&r, false, e);
    j->life->shuffled = false;
    if (rc < 0)
        return e->kind == ERR_NONE ? CALL_OK : late_or_lost(j, e);
    if (rc == 0 || r.done >= n)
        return CALL_OK;
    raised(&f, "RuntimeError", "the device reports an error");
    return judge(ctx, draws[r.done], &f, e) < 0 && e->kind != ERR_NONE ? CALL_INFRA : CALL_OK;
}

int life_goes_on(struct job *j, const struct ref_draw *d, life_judge judge, void *ctx, bool *ret_moved, struct err *e)
{
    struct replaying r = {.j = j, .draws = &d, .n = 1, .judge = judge, .ctx = ctx, .ended = j->life->n_calls - 1,
                          .goes_on = true};
    double used = j->session->used_s;
    int rc = replay(&r, false, e);

    j->session->used_s = used; /* no call that the program asked for */
    *ret_moved = r.goes_on;
    if (rc < 0 && e->kind == ERR_INPUT) { /* no state is kept: one call alone, or too much memory */
        *e = (struct err)ERR_INIT;
        return 0;
    }
    return rc < 0 ? -1 : 0;
}

/* ---- one draw, for other ends than the verdict ---- */

static int keep_frame(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e)
{
    (void)d, (void)e;
    *(struct frame *)ctx = *f;
    return 0;
}

static int once_more(struct job *j, const struct ref_draw *d, bool plumbing, struct frame *ret, struct err *e)
{
    struct replaying r = {.j = j, .draws = &d, .n = 1, .judge = keep_frame, .ctx = ret};
    int rc = replay(&r, plumbing, e);

    if (rc > 0 && r.done)
        frame_free(ret);
    return rc < 0 ? -1 : rc == 0;
}

int life_plumbing(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    return once_more(j, d, true, ret, e);
}

int life_again(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e)
{
    return once_more(j, d, false, ret, e);
}

/* ---- timing ---- */

struct life_timed {
    struct replaying r;
    const struct life_timing *t;
    const struct ref_draw *now;
    struct turn turn;
    bool laid; /* streamed: this call's inputs */
};

/* Calls before the last one have other values than a draw's. */
static void next_draw(void *ctx, uint32_t call, bool last)
{
    struct life_timed *c = ctx;

    (void)call;
    c->laid = false;
    c->r.ended = last ? c->r.j->life->n_calls - 1 : 0;
    c->now = c->t->base;
    if (last && !c->t->fresh)
        c->now = c->t->draw(c->t->ctx, &c->turn.by, &c->turn.scale);
    c->r.turn = last && c->turn.by ? &c->turn : NULL;
}

static int laid_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e)
{
    struct life_timed *c = ctx;

    (void)tag, (void)addr, (void)n;
    if (c->laid || c->t->empty)
        return 0;
    c->laid = true;
    return c->t->fresh(c->t->ctx, e);
}

static int lay_timed(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e)
{
    return lay_again(&((struct life_timed *)ctx)->r, tag, addr, part, data, n, e);
}

static int call_timed(void *ctx, uint32_t round, struct err *e)
{
    struct life_timed *c = ctx;
    struct job *j = c->r.j;
    struct frame got;
    int rc;

    (void)round;
    if (c->t->empty || c->r.turn)
        return 0;
    if (c->t->ended)
        return c->t->ended(c->t->ctx, *output_at(j->life, j->life->n_calls), e);
    if (fetch(j, c->now, j->life->n_calls, *output_at(j->life, j->life->n_calls), &got, e) < 0)
        return -1;
    rc = c->t->look(c->t->ctx, c->now, &got, e);
    frame_free(&got);
    return rc;
}

int life_time(struct job *j, struct life_timing *t, struct err *e)
{
    struct life_timed c = {.r = {.j = j, .draws = &c.now, .n = 1}, .t = t, .now = t->base};
    struct executor_timing x = {.n = t->n, .plumbing_only = t->empty, .long_calls = t->long_calls, .whole = t->whole,
                                .ret_ms = t->ret_ms, .ret_span_ms = t->ret_span_ms, .before = next_draw,
                                .lay = lay_timed, .laid = laid_timed, .call_end = call_timed, .ctx = &c};

    if (executor_time(j->life->x, &x, e) < 0)
        return -1;
    t->whole = x.whole;
    j->life->harmed |= x.ret_error != 0;
    return x.ret_error ? err_set(e, ERR_ENV, "a timed call fails: %.200s", x.ret_why) : 0;
}

/* ---- capsules ---- */

/* What a replay elsewhere may differ by: the order of atomic sums. The values themselves were judged here. */
static double slack(enum dtype d)
{
    return d == DT_F64 || d == DT_C128 ? 1e-9 : d == DT_F16 ? 1e-2 : d == DT_BF16 ? 2e-2 : dt_is_float(d) ? 1e-4 : 0;
}

static double largest(const uint8_t *p, enum dtype d, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        double v = fabs(el_value(p, (int)d, i));

        most = v > most && isfinite(v) ? v : most;
    }
    return most;
}

struct keeping {
    struct life *l;
    const struct frame *f;
};

static int record_output(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct keeping *k = ctx;
    const uint8_t *want = (const uint8_t *)k->f->blob + json_i64(leaf, "offset", 0);
    struct capsule_output o = {.name = path && *path ? path : "output"};
    struct place p;

    if (!tree_is_tensor(leaf) || !json_is_integer(json_object_get(leaf, "address")))
        return 0;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    o.addr = p.address, o.dtype = (uint32_t)p.t.dtype, o.dims = (uint32_t)p.t.ndim;
    for (int i = 0; i < p.t.ndim && i < (int)WIRE_DIMS; i++)
        o.size[i] = p.t.shape[i], o.stride[i] = p.stride[i];
    o.rtol = slack(p.t.dtype);
    o.atol = o.rtol * largest(want, p.t.dtype, p.t.n * dt_components(p.t.dtype));
    if (o.dims <= WIRE_DIMS)
        capsule_add_output(k->l->capsule, &o, want);
    return 0;
}

int life_record(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct frame f;
    struct keeping k = {j->life, &f};
    struct replaying r = {.j = j, .draws = &d, .n = 1, .judge = keep_frame, .ctx = &f};
    int rc;

    j->life->recording = true;
    rc = replay(&r, false, e);
    j->life->recording = false;
    if (rc < 0)
        return -1;
    if (rc > 0)
        return err_set(e, ERR_ENV, "the replay for '%s' fails: the device reports an error", j->opt->capsule);
    rc = tree_each(json_object_get(f.head, "output"), record_output, &k, e);
    frame_free(&f);
    return rc < 0 ? -1 : capsule_write(j->life->capsule, j->opt->capsule, e);
}

json_t *life_json(const struct life *l)
{
    if (!l->lived)
        return json_null();
    return json_pack("{s:I,s:I,s:I,s:I,s:b,s:s,s:s}", "launches", (json_int_t)l->counts.launches, "kernels",
                     (json_int_t)l->counts.kernels, "bytes_up", (json_int_t)l->counts.bytes_up, "bytes_down",
                     (json_int_t)l->counts.bytes_down, "live", l->live, "log_sha256", l->log_sha256, "outputs_sha256",
                     l->outputs_sha256);
}
