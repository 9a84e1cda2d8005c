/* recording_outputs.c - a call's outputs: where they lie, and what they hold. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "base/json.h"
#include "base/mem.h"
#include "device/element.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/candidate/job.h"

double recording_slack(enum dtype d)
{
    switch (d) {
    case DT_F64:
    case DT_C128: return 1e-9;
    case DT_F16: return 1e-2;
    case DT_BF16: return 2e-2;
    case DT_F8E4: return 0.13;
    case DT_F8E5: return 0.26;
    default: return dt_is_float(d) ? 1e-4 : 0;
    }
}

struct outputs {
    struct job *j;
    struct buf bytes;
    json_t *on_host;
    size_t n; /* tensors so far */
    struct err *e;
    bool failed, astray; /* the machine's fault; an output does not lie in memory that the program holds */
};

/* A callback of tree_map: the output tensor's values are copied from the device, packed, into the frame. Sets astray
 * where its place is impossible. */
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

/* A callback of tree_each: collects leaves; n counts those that do not fit too. */
static int recording_note_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_kinds *k = ctx;

    (void)path, (void)e;
    if (k->n < sizeof k->leaf / sizeof *k->leaf)
        k->leaf[k->n] = leaf;
    k->n++;
    return 0;
}

/* True for two tensors of equal dtype and shape, or two things that are none. */
static bool recording_same_kind(const json_t *a, const json_t *b)
{
    if (!tree_is_tensor(a) || !tree_is_tensor(b))
        return tree_is_tensor(a) == tree_is_tensor(b);
    return !strcmp(json_str(a, "dtype", ""), json_str(b, "dtype", "?")) &&
           json_equal(json_object_get(a, "shape"), json_object_get(b, "shape"));
}

/* True where the output has the kinds and shapes that the reference's has. */
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
    struct recording_inputs in;
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

/* True for equal values within a slack relative to the value and to the largest one. */
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

/* A callback of tree_each: notes an input tensor whose bytes the candidate changed during a call. */
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

/* The binding of a parameter's row; NULL: it is not bound. */
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

int recording_fetch(struct job *j, const struct ref_draw *d, uint32_t call, const json_t *output,
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
