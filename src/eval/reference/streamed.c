/* streamed.c - see streamed.h. */
#include "eval/reference/streamed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/check/compare_device.h"

/* ---- its process ---- */

/* Notes how much of the device is in use, if it is the most yet. */
static void streamed_note_use(struct streamed *s)
{
    size_t used, total;

    device_context_lock(s->device_context);
    if (device_usage(s->device_context->dev, &used, &total, NULL) == 0 && used > s->peak)
        s->peak = used;
    device_context_unlock(s->device_context);
}

/* Sends a request with its descriptors and waits for the answer. After a lost answer, s is broken and its child
 * killed. Takes req. */
static int streamed_ask(struct streamed *s, json_t *req, const int *fds, int n_fds, struct frame *ret, struct err *e)
{
    double t0 = now_s();
    bool lost = false;
    int rc;

    if (s->broken) {
        json_decref(req);
        return err_set(e, ERR_ENV, "%s: the reference's process has ended", s->w.title);
    }
    rc = reference_ask(s->child, &s->w, req, fds, n_fds, t0 + REFERENCE_TIMEOUT_S, ret, &lost, e);
    s->spent_s += now_s() - t0;
    if (lost) { /* an answer that comes later would be taken for the next request's */
        s->broken = true;
        child_kill(s->child);
    }
    return rc;
}

/* A request whose answer says nothing else. */
static int streamed_tell(struct streamed *s, json_t *req, struct err *e)
{
    struct frame f;

    if (streamed_ask(s, req, NULL, 0, &f, e) < 0)
        return -1;
    frame_free(&f);
    return 0;
}

int streamed_learn(struct streamed *s, struct err *e)
{
    struct frame f;

    if (streamed_ask(s, json_pack("{s:s}", "op", "inputs"), NULL, 0, &f, e) < 0)
        return -1;
    s->inputs = json_incref(json_object_get(f.head, "inputs"));
    frame_free(&f);
    return s->inputs ? 0 : err_set(e, ERR_BUG, "the reference side sent no inputs");
}

/* Shares the areas of inputs and expected values with the reference's process. */
static int streamed_give_areas(struct streamed *s, struct err *e)
{
    struct frame f;
    int fds[2] = {-1, -1}, rc = -1;

    if (device_export(&s->area, &fds[0], e) == 0 && device_export(&s->truth, &fds[1], e) == 0)
        rc = streamed_ask(s, json_pack("{s:s,s:o,s:o}", "op", "areas", "inputs", device_context_spec(&s->area), "tile",
                                       device_context_spec(&s->truth)), fds, 2, &f, e);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (rc == 0)
        frame_free(&f);
    return rc;
}

int streamed_areas(struct streamed *s, struct err *e)
{
    size_t n = (size_t)json_i64(s->inputs, "nbytes", 0);

    if (device_context_alloc(s->device_context, n, DEVICE_SHARED, &s->area, e) < 0 ||
        device_context_alloc(s->device_context, PLAN_TILE, DEVICE_SHARED, &s->truth, e) < 0 ||
        device_context_alloc(s->device_context, PLAN_TILE, DEVICE_SHARED, &s->mine, e) < 0)
        return -1;
    return streamed_give_areas(s, e);
}

/* It outlives the job that asks for it. */
static int streamed_copy_want(struct streamed *s, const struct reference_want *w, struct err *e)
{
    s->w = *w;
    s->options = *w->o;
    s->w.o = &s->options;
    s->w.reservation = NULL;
    s->w.used = NULL;
    if (task_make(w->t->name, w->t->code, w->t->n, &s->task, e) < 0 ||
        (w->t->sidecar && task_attach(&s->task, w->t->sidecar, w->t->name, e) < 0))
        return -1;
    s->w.t = &s->task;
    return 0;
}

int streamed_start(const struct reference_want *w, struct device_context *k, struct streamed **ret, struct err *e)
{
    static _Atomic uint64_t numbers;
    struct streamed *s = xcalloc(1, sizeof *s);

    pthread_mutex_init(&s->lock, NULL);
    s->number = ++numbers;
    s->device_context = k;
    if (streamed_copy_want(s, w, e) < 0 || reference_start(w, &s->child, e) < 0) {
        streamed_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

int streamed_construct(struct streamed *s, const json_t **told, struct err *e)
{
    int rc = streamed_ask(s, reference_request(&s->w), NULL, 0, &s->told, e);

    *told = s->told.head;
    return rc;
}

bool streamed_worth(const struct streamed *s)
{
    int64_t in = json_i64(s->inputs, "nbytes", 0), out = json_i64(s->inputs, "output_bytes", -1);

    return out < 0 || in + out > STREAMED_LEAST;
}

int streamed_open(const struct reference_want *w, struct device_context *k, struct streamed **ret, struct err *e)
{
    const json_t *told;

    if (streamed_start(w, k, ret, e) < 0)
        return -1;
    if (streamed_construct(*ret, &told, e) == 0 && streamed_learn(*ret, e) == 0 && streamed_areas(*ret, e) == 0)
        return 0;
    streamed_close(*ret);
    *ret = NULL;
    return -1;
}

void streamed_close(struct streamed *s)
{
    if (!s)
        return;
    if (s->child && s->broken)
        spares_end(s->child, "reference");
    else if (s->child)
        reference_end(&s->w, s->child);
    device_context_free(s->device_context, &s->area);
    device_context_free(s->device_context, &s->truth);
    device_context_free(s->device_context, &s->mine);
    json_decref(s->inputs);
    frame_free(&s->told);
    task_free(&s->task);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- draws ---- */

/* Notes what the reference's process says about its memory. */
static void streamed_note_peak(struct streamed *s, const json_t *head)
{
    const json_t *memory = json_object_get(head, "memory");
    size_t torch = (size_t)json_i64(memory, "peak", 0), eager = (size_t)json_i64(memory, "eager", 0);
    size_t n = torch + s->area.capacity + s->truth.capacity + s->mine.capacity;

    s->own_peak = n > s->own_peak ? n : s->own_peak;
    s->torch_peak = torch > s->torch_peak ? torch : s->torch_peak;
    s->eager_peak = eager > s->eager_peak ? eager : s->eager_peak;
}

void streamed_plan(const struct streamed *s, uint64_t device_memory, struct memory_plan *ret)
{
    int64_t out = json_i64(s->inputs, "output_bytes", -1);
    const struct plan_sizes sizes = {.inputs = s->area.capacity, .eager_peak = s->eager_peak,
                                     .state = (uint64_t)json_i64(s->told.head, "state_bytes", 0),
                                     .outputs = out < 0 ? s->area.capacity : (uint64_t)out,
                                     .reference_peak = s->torch_peak};

    memory_plan_make(&sizes, device_memory, ret);
}

size_t streamed_rests(const struct streamed *s)
{
    size_t state = (size_t)json_i64(s->told.head, "state_bytes", 0);

    /* as plan.c counts models */
    return SCHEDULE_CONTEXT + 3 * state + s->area.capacity + s->truth.capacity + s->mine.capacity;
}

int streamed_next(struct streamed *s, struct ref_draw *ret, json_t **ret_head, struct err *e)
{
    struct frame f;
    bool more;

    if (streamed_ask(s, json_pack("{s:s}", "op", "next"), NULL, 0, &f, e) < 0)
        return -1;
    more = !json_flag(f.head, "end", false);
    streamed_note_peak(s, f.head);
    if (more && ref_draw_place(json_object_get(f.head, "draw"), ret, e) < 0) {
        frame_free(&f);
        return -1;
    }
    *ret_head = json_incref(f.head);
    frame_free(&f);
    return more;
}

#define STATE_PART ((size_t)512 << 20)

/* Copies n bytes of the reference's parameters, from byte 'at' on, to 'to'. */
static int streamed_state_part(struct streamed *s, char *to, size_t at, size_t n, struct err *e)
{
    struct frame f;
    int rc = 0;

    if (streamed_ask(s, json_pack("{s:s,s:I,s:I}", "op", "state", "at", (json_int_t)at, "n", (json_int_t)n), NULL, 0,
                     &f, e) < 0)
        return -1;
    if (f.n_blob == n)
        memcpy(to, f.blob, n);
    else
        rc = err_set(e, ERR_BUG, "the reference side sent other parameters than it said");
    frame_free(&f);
    return rc;
}

int streamed_facts(struct streamed *s, struct frame *ret, struct err *e)
{
    json_t *section;
    size_t n, before;
    char *all;

    if (streamed_ask(s, json_pack("{s:s,s:b}", "op", "facts", "bytes", 1), NULL, 0, ret, e) < 0)
        return -1;
    section = json_object_get(ret->head, "state_values");
    n = (size_t)json_i64(section, "nbytes", 0);
    before = (ret->n_blob + 63) / 64 * 64;
    all = aligned_alloc(64, (before + n + 64) / 64 * 64);
    memcpy(all, ret->blob, ret->n_blob);
    free(ret->blob);
    ret->blob = all;
    ret->n_blob = before + n;
    json_object_set_new(section, "at", json_integer((json_int_t)before));
    for (size_t at = 0; at < n; at += STATE_PART)
        if (streamed_state_part(s, all + before + at, at, n - at < STATE_PART ? n - at : STATE_PART, e) < 0)
            return -1;
    return 0;
}

struct streamed_sums {
    struct streamed *s;
    uint64_t v[STREAMED_INPUTS];
    size_t n;
};

/* A callback of tree_each: adds an input's checksum. */
static int streamed_sum_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct streamed_sums *m = ctx;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (m->n == STREAMED_INPUTS)
        return err_set(e, ERR_INPUT, "a task of more than %d input tensors", STREAMED_INPUTS);
    return device_checksum(&m->s->area, (size_t)json_i64(leaf, "offset", 0), (size_t)json_i64(leaf, "nbytes", 0), 0,
                           &m->v[m->n++], e);
}

/* Checksums of all inputs, as they lie on the device. */
static int streamed_sum_inputs(struct streamed *s, struct streamed_sums *ret, struct err *e)
{
    double t0 = now_s();
    int rc;

    *ret = (struct streamed_sums){.s = s};
    device_context_lock(s->device_context);
    rc = tree_each(json_object_get(s->inputs, "tree"), streamed_sum_leaf, ret, e);
    device_context_unlock(s->device_context);
    s->spent_s += now_s() - t0;
    return rc;
}

static json_t *streamed_about(const char *op, const struct ref_draw *d)
{
    return json_pack("{s:s,s:s,s:i}", "op", op, "regime", d->regime, "trial", d->trial);
}

int streamed_bind(struct streamed *s, const struct ref_draw *d, bool other, struct err *e)
{
    json_t *req = streamed_about("lay", d);
    struct streamed_sums m;

    json_object_set_new(req, "other", json_boolean(other));
    if (streamed_tell(s, req, e) < 0 || streamed_sum_inputs(s, &m, e) < 0)
        return -1;
    memcpy(s->sums, m.v, sizeof s->sums);
    s->n_inputs = m.n;
    return 0;
}

int streamed_changed(struct streamed *s, bool ret[STREAMED_INPUTS], struct err *e)
{
    struct streamed_sums m;

    if (streamed_sum_inputs(s, &m, e) < 0)
        return -1;
    for (size_t i = 0; i < m.n; i++)
        ret[i] = m.v[i] != s->sums[i];
    return 0;
}

int streamed_fresh(struct streamed *s, uint64_t seed, struct err *e)
{
    return streamed_tell(s, json_pack("{s:s,s:I}", "op", "fresh", "seed", (json_int_t)(seed >> 2)), e);
}

/* ---- expected values ---- */

int streamed_expect(struct streamed *s, bool own, struct err *e)
{
    static const char *const names[] = {"double", "rows", "own"};
    struct frame f;

    if (streamed_ask(s, json_pack("{s:s,s:b}", "op", "expect", "own", own), NULL, 0, &f, e) < 0)
        return -1;
    s->truth_is = "?";
    for (int i = 0; i < 3; i++)
        if (!strcmp(json_str(f.head, "truth", ""), names[i]))
            s->truth_is = names[i];
    frame_free(&f);
    streamed_note_use(s);
    return 0;
}

int streamed_tile(struct streamed *s, size_t leaf, int64_t from, int64_t n, bool own, enum dtype *ret, struct err *e)
{
    struct frame f;
    int rc;

    if (streamed_ask(s, json_pack("{s:s,s:I,s:I,s:I,s:b}", "op", "tile", "leaf", (json_int_t)leaf, "from",
                                  (json_int_t)from, "n", (json_int_t)n, "own", own), NULL, 0, &f, e) < 0)
        return -1;
    rc = dt_parse(json_str(f.head, "dtype", ""), ret) < 0 ? err_set(e, ERR_BUG, "a tile of no type") : 0;
    frame_free(&f);
    return rc;
}

int streamed_drop(struct streamed *s, struct err *e)
{
    struct frame f;

    streamed_note_use(s);
    if (streamed_ask(s, json_pack("{s:s}", "op", "drop"), NULL, 0, &f, e) < 0)
        return -1;
    streamed_note_peak(s, f.head);
    frame_free(&f);
    return 0;
}

/* One tile: floats are judged by what is expected alone; of others the reference's own answer is that. */
static int streamed_compare_tile(struct streamed *s, enum dtype expected, enum dtype got, int64_t n,
                                 const struct tolerance *tol, struct comparison *ret, struct err *e)
{
    struct device_view v[2];
    double t0 = now_s();
    int rc;

    if (device_view_make(&s->truth, 0, expected, 1, &n, NULL, &v[0], e) < 0 ||
        device_view_make(&s->mine, 0, got, 1, &n, NULL, &v[1], e) < 0)
        return -1;
    device_context_lock(s->device_context);
    rc = device_compare(s->device_context->dev, expected == got ? &v[0] : &v[1], &v[0], &v[1], tol, ret, e);
    device_context_unlock(s->device_context);
    s->spent_s += now_s() - t0;
    return rc;
}

int streamed_compare(struct streamed *s, size_t leaf, const struct tensor *whole, const struct tolerance *tol,
                     streamed_part *mine, void *ctx, struct comparison *ret, struct err *e)
{
    int64_t row = whole->ndim && whole->shape[0] ? whole->n / whole->shape[0] : 1;
    struct plan_tiles t = plan_tiles_make(whole->n, row, sizeof(double));
    struct comparison all = {.kind = CMP_SAME, .first = -1, .worst = -1}, one;
    enum dtype expected;
    int64_t from;

    for (int64_t i = 0; i < plan_tiles_count(&t); i++) {
        int64_t n = plan_tile(&t, i, &from);

        if (streamed_tile(s, leaf, from, n, false, &expected, e) < 0 || mine(ctx, from, n, e) < 0 ||
            streamed_compare_tile(s, expected, whole->dtype, n, tol, &one, e) < 0)
            return -1;
        compare_add_tile(&all, whole, from, &one);
    }
    *ret = all;
    return 0;
}
