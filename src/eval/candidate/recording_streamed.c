/* recording_streamed.c - see recording_streamed.h. */
#include "eval/candidate/recording_streamed.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "eval/candidate/recording_place.h"
#include "eval/candidate/job.h"

/* ---- memory ---- */

int recording_streamed_memory(const struct job *j, uint64_t *ret, struct err *e)
{
    const struct streamed *s = j->held.ref->streamed;
    struct memory_plan p;
    struct buf text;

    *ret = 0;
    if (!s || !j->server->backend->timed)
        return 0;
    streamed_plan(s, device_info(s->device_context->dev)->memory, &p);
    *ret = p.recording;
    if (p.fits)
        return 0;
    buf_init(&text, 1000);
    plan_text(&p, &text);
    err_set(e, ERR_INPUT, "task '%.60s' is too large for this device: %.*s; see 'musacoder shrink'", j->task->name,
            (int)text.n, text.p);
    buf_free(&text);
    return -1;
}

/* Maps the judge's buffer into the executor; *ret is its address there. */
static int streamed_run_share(struct job *j, struct device_buf *b, uint64_t inputs, uint64_t *ret, struct err *e)
{
    int fd = -1, rc;

    device_context_lock(j->held.ref->streamed->device_context);
    rc = device_export(b, &fd, e);
    device_context_unlock(j->held.ref->streamed->device_context);
    if (rc < 0)
        return -1;
    rc = executor_share(j->recording->x, fd, b->capacity, inputs, ret, e);
    close(fd);
    return rc;
}

/* A callback of tree_each: gives each input tensor its address in the shared area, and the executor its type. */
static int streamed_run_place_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct job *j = ctx;
    struct recording *l = j->recording;
    struct recording_place p;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    l->inputs = xrealloc(l->inputs, (l->n_inputs + 1) * sizeof *l->inputs);
    l->inputs[l->n_inputs] = p.span ? l->area + (uint64_t)json_i64(leaf, "offset", 0) : 0;
    return p.span ? executor_typed(l->x, l->inputs[l->n_inputs++], p.span, p.t.dtype, e) : (l->n_inputs++, 0);
}

int recording_streamed_open(struct job *j, struct err *e)
{
    struct streamed *s = j->held.ref->streamed;

    if (streamed_run_share(j, &s->area, s->area.size, &j->recording->area, e) < 0 ||
        streamed_run_share(j, &s->mine, 0, &j->recording->tile, e) < 0)
        return -1;
    return tree_each(json_object_get(s->inputs, "tree"), streamed_run_place_leaf, j, e);
}

struct telling {
    struct recording *l;
    size_t i;
};

/* A callback of tree_each: tells the executor that an input's values lie there. */
static int streamed_run_tell_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct telling *t = ctx;
    uint64_t n = (uint64_t)json_i64(leaf, "nbytes", 0);
    size_t i = t->i;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    t->i++;
    return n ? executor_bound(t->l->x, t->l->inputs[i], n, TAG_INPUTS + (uint32_t)i, e) : 0;
}

int recording_streamed_bind(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct telling t = {j->recording, 0};

    if (streamed_bind(j->held.ref->streamed, d, false, e) < 0)
        return -1;
    return tree_each(json_object_get(j->held.ref->streamed->inputs, "tree"), streamed_run_tell_leaf, &t, e);
}

/* ---- outputs ---- */

/* A copy of 'count' steps of dimension k, and all of those behind it, from element 'at' (in memory) of p to 'to'. */
static int streamed_run_copy_block(struct recording *l, const struct recording_place *p, int k, int64_t count,
                                   uint64_t at, uint64_t to, struct err *e)
{
    struct wire_strided m = {.to = to, .from = p->address + at * p->item, .to_dtype = p->t.dtype,
                             .from_dtype = p->t.dtype};
    int64_t packed = 1;
    bool whole = true;

    for (int d = k; d < p->t.ndim; d++, m.dims++) {
        m.size[m.dims] = d == k ? count : p->t.shape[d];
        m.from_stride[m.dims] = p->stride[d];
    }
    for (int d = (int)m.dims - 1; d >= 0; d--) {
        m.to_stride[d] = packed;
        whole = whole && (m.from_stride[d] == packed || m.size[d] == 1);
        packed *= m.size[d];
    }
    if (whole) {
        m.dims = 1;
        m.size[0] = packed;
        m.to_stride[0] = m.from_stride[0] = 1;
    }
    return executor_tile(l->x, &m, p->span - at * p->item, e);
}

/* Elements [from, from + n) in C order, in as few blocks as they are made of. */
int recording_streamed_part(struct job *j, const struct recording_place *p, int64_t from, int64_t n, uint64_t tile_at,
                            struct err *e)
{
    int64_t behind[TENSOR_MAX_DIMS + 1]; /* elements of one step of each dimension */
    struct recording *l = j->recording;
    uint64_t to = l->tile + tile_at;

    behind[p->t.ndim] = 1;
    for (int d = p->t.ndim - 1; d >= 0; d--)
        behind[d] = behind[d + 1] * p->t.shape[d];
    while (n > 0) {
        int64_t rest = from, count = 1;
        uint64_t at = 0;
        int k = 0;

        while (k < p->t.ndim && (from % behind[k + 1] || n < behind[k + 1]))
            k++;
        for (int d = 0; d < p->t.ndim; d++) {
            at += (uint64_t)(rest / behind[d + 1] * p->stride[d]);
            rest %= behind[d + 1];
        }
        if (k < p->t.ndim) {
            count = p->t.shape[k] - from / behind[k + 1] % p->t.shape[k];
            count = count < n / behind[k + 1] ? count : n / behind[k + 1];
        }
        if (streamed_run_copy_block(l, p, k, count, at, to, e) < 0)
            return -1;
        count *= k < p->t.ndim ? behind[k + 1] : 1;
        from += count;
        n -= count;
        to += (uint64_t)count * p->item;
    }
    return 0;
}

struct looking {
    struct job *j;
    json_t *on_host;
    size_t i;
    bool astray;
};

/* On the device, and within memory that the program holds? */
static int streamed_run_look_at(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct looking *k = ctx;
    struct recording *l = k->j->recording;
    struct recording_place p;
    struct wire_strided m;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    k->i++;
    if (json_is_null(json_object_get(leaf, "address"))) {
        json_array_append_new(k->on_host, json_integer((json_int_t)k->i - 1));
        return 0;
    }
    if (place_tensor(leaf, &p, NULL) < 0) {
        k->astray = true;
        return 0;
    }
    m = (struct wire_strided){.to = l->tile, .from = p.address, .to_dtype = p.t.dtype, .from_dtype = p.t.dtype,
                              .dims = 1, .size = {1}, .to_stride = {1}, .from_stride = {1}};
    if (!p.span || executor_tile(l->x, &m, p.span, e) == 0)
        return 0;
    if (e->kind != ERR_INPUT)
        return -1;
    *e = (struct err)ERR_INIT;
    k->astray = true;
    return 0;
}

/* The numbers of the inputs that the call changed, new; NULL with e. */
static json_t *streamed_run_changed_inputs(struct job *j, struct err *e)
{
    struct streamed *s = j->held.ref->streamed;
    bool changed[STREAMED_INPUTS];
    json_t *list;

    if (executor_pull(j->recording->x, j->recording->area, s->area.size, e) < 0 || streamed_changed(s, changed, e) < 0)
        return NULL;
    list = json_array();
    for (size_t i = 0; i < s->n_inputs; i++)
        if (changed[i])
            json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

int recording_streamed_fetch(struct job *j, const json_t *output, struct frame *ret, struct err *e)
{
    struct looking k = {.j = j, .on_host = json_array()};
    json_t *changed = streamed_run_changed_inputs(j, e);

    if (!changed || tree_each(output, streamed_run_look_at, &k, e) < 0) {
        json_decref(changed);
        json_decref(k.on_host);
        return -1;
    }
    ret->head = json_pack("{s:s,s:O,s:o,s:o}", "op", k.astray ? "error" : "result", "output", output, "changed",
                          changed, "on_host", k.on_host);
    if (k.astray) {
        json_object_set_new(ret->head, "type", json_string("RuntimeError"));
        json_object_set_new(ret->head, "message", json_string("an output does not lie in memory that the "
                                                                   "program holds"));
    }
    ret->blob = calloc(1, 64);
    ret->n_blob = 0;
    return 0;
}

struct streamed_run_part {
    struct job *j;
    const struct recording_place *p;
};

/* A callback of the reference: writes elements of one input to the device. */
static int streamed_run_put_part(void *ctx, int64_t from, int64_t n, struct err *e)
{
    const struct streamed_run_part *p = ctx;

    return recording_streamed_part(p->j, p->p, from, n, 0, e);
}

int recording_streamed_compare(struct job *j, size_t leaf, const json_t *node, const struct tensor *expected,
                               const struct tolerance *tol, struct comparison *ret, struct err *e)
{
    struct recording_place p;
    struct streamed_run_part part = {j, &p};

    if (place_tensor(node, &p, e) < 0)
        return -1;
    return streamed_compare(j->held.ref->streamed, leaf, expected, tol, streamed_run_put_part, &part, ret, e);
}
