/* reference.c - see reference.h. */
#include "eval/reference.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "eval/hold.h"
#include "eval/job.h"
#include "eval/reference_child.h"
#include "eval/room.h"
#include "eval/streamed.h"
#include "store/limit.h"

#define MAGIC "MCREF1\n"
#define REGIMES 5 /* at most, of a draw: runner/reference.py */
#define REFERENCE_MAX_FILE ((size_t)2 << 30)

/* ---- a frame becomes a reference ---- */

int ref_section_parse(const struct frame *f, const json_t *s, struct section *ret, struct err *e)
{
    int64_t at = json_i64(s, "at", -1), n = json_i64(s, "nbytes", -1);

    if (at < 0 || n < 0 || (uint64_t)at > f->n_blob || (uint64_t)n > f->n_blob - (uint64_t)at || !json_object_get(s, "tree"))
        return err_set(e, ERR_BUG, "the reference side sent a broken section");
    *ret = (struct section){json_object_get(s, "tree"), f->blob + at, (size_t)n, NULL, 0};
    return 0;
}

/* As ref_section_parse, of a section on the desk: inside a draw of 'size' bytes at mem. */
static int desk_section(const json_t *s, const struct device_buf *mem, size_t size, struct section *ret, struct err *e)
{
    int64_t at = json_i64(s, "at", -1), n = json_i64(s, "nbytes", -1);

    if (at < 0 || n < 0 || (uint64_t)at > size || (uint64_t)n > size - (uint64_t)at || !json_object_get(s, "tree"))
        return err_set(e, ERR_BUG, "the reference side sent a broken section");
    *ret = (struct section){json_object_get(s, "tree"), NULL, (size_t)n, mem, (size_t)at};
    return 0;
}

static void draw_facts(const json_t *d, struct ref_draw *ret)
{
    ret->regime = json_str(d, "regime", "?");
    ret->trial = (int)json_i64(d, "trial", 0);
    ret->noise = json_object_get(d, "noise");
    ret->mutates = json_object_get(d, "mutates");
    ret->aliases = json_object_get(d, "aliases");
}

int ref_draw_place(const json_t *d, const struct device_buf *mem, size_t size, struct ref_draw *ret, struct err *e)
{
    *ret = (struct ref_draw){.size = size};
    draw_facts(d, ret);
    if (desk_section(json_object_get(d, "inputs"), mem, size, &ret->inputs, e) < 0 ||
        desk_section(json_object_get(d, "eager"), mem, size, &ret->eager, e) < 0)
        return -1;
    return desk_section(json_object_get(d, "oracle"), mem, size, &ret->oracle, e);
}

/* d: {"draw","size"} of runner/reference.py; ret owns what it needs of it. */
static int desk_draw(json_t *d, struct ref_draw *ret, struct err *e)
{
    struct device_buf *mem = xcalloc(1, sizeof *mem);
    int rc = ref_draw_place(json_object_get(d, "draw"), mem, (size_t)json_i64(d, "size", 0), ret, e);

    ret->head = json_incref(d);
    ret->mem = mem;
    return rc;
}

int ref_draw_parse(const struct frame *f, const json_t *d, struct ref_draw *ret, struct err *e)
{
    *ret = (struct ref_draw){.regime = NULL};
    draw_facts(d, ret);
    if (ref_section_parse(f, json_object_get(d, "inputs"), &ret->inputs, e) < 0 ||
        ref_section_parse(f, json_object_get(d, "eager"), &ret->eager, e) < 0)
        return -1;
    return ref_section_parse(f, json_object_get(d, "oracle"), &ret->oracle, e);
}

struct tolerance ref_tolerance(const struct ref_draw *d, size_t tensor, const char *protocol, const json_t *own)
{
    const json_t *row = json_array_get(d->noise, tensor);
    struct noise n = {json_num_value(json_object_get(row, "n1")), json_num_value(json_object_get(row, "n2")),
                      json_num_value(json_object_get(row, "max_abs")), json_num_value(json_object_get(row, "fan_in"))};
    enum dtype low = DT_F32, out;

    dt_parse(json_str(row, "dtype", "float32"), &low);
    out = low;
    dt_parse(json_str(row, "out", ""), &out);
    if (strcmp(protocol, "strict"))
        return tolerance_kernelbench(low);
    if (own && dt_is_float(out))
        return tolerance_own(json_f64(own, "abs", 0), json_f64(own, "rel", 0), &n);
    return tolerance_strict(out, low, &n);
}

bool ref_decides(const struct ref_draw *d, const char *protocol, const json_t *own)
{
    size_t n = json_array_size(d->noise);
    bool any = n == 0; /* numbers alone: compared exactly */

    for (size_t i = 0; i < n && !any; i++)
        any = ref_tolerance(d, i, protocol, own).decides;
    return any;
}

/* All but the draws. */
static int parse_rest(struct reference *r, struct err *e)
{
    const json_t *h = r->f.head;

    r->state = json_object_get(h, "state");
    r->defects = json_object_get(h, "defects");
    r->dtype = json_string_value(json_object_get(h, "dtype"));
    r->tf32 = json_object_get(h, "tf32");
    r->mode = json_str(h, "mode", "train");
    r->init_seed = json_i64(h, "init_seed", 0);
    if (ref_section_parse(&r->f, json_object_get(h, "init"), &r->init, e) < 0)
        return -1;
    if (r->state_mem.dev)
        return desk_section(json_object_get(h, "state_values"), &r->state_mem, r->state_mem.size, &r->state_values, e);
    return ref_section_parse(&r->f, json_object_get(h, "state_values"), &r->state_values, e);
}

static int reference_parse(struct reference *r, struct err *e)
{
    const json_t *draws = json_object_get(r->f.head, "draws");

    r->n_draws = json_array_size(draws);
    if (r->n_draws == 0)
        return err_set(e, ERR_BUG, "the reference side sent no draws");
    r->draws = xcalloc(r->n_draws, sizeof *r->draws);
    for (size_t i = 0; i < r->n_draws; i++)
        if (ref_draw_parse(&r->f, json_array_get(draws, i), &r->draws[i], e) < 0)
            return -1;
    r->skipped = json_object_get(r->f.head, "skipped");
    return parse_rest(r, e);
}

/* The process that makes draws, if it is still there. Under r->lock, or with the last user gone. */
static void end_child(struct reference *r)
{
    struct child_end end = {0};

    if (!r->child)
        return;
    child_kill(r->child);
    if (child_wait(r->child, now_s() + 5, &end, NULL) == 0) {
        r->host_peak = end.peak > r->host_peak ? end.peak : r->host_peak;
        if (r->failed && end.output.n)
            log_debug("reference side printed: %.2000s", end.output.p);
        buf_free(&end.output);
    }
    child_free(r->child);
    r->child = NULL;
    desk_free(r->desk, &r->area);
}

static void reference_free(struct reference *r)
{
    end_child(r);
    streamed_close(r->streamed);
    for (size_t i = 0; r->streamed && i < r->n_draws; i++)
        json_decref(r->draws[i].head);
    for (size_t i = 0; r->desk && i < r->n_draws; i++) {
        desk_free(r->desk, r->draws[i].mem);
        free(r->draws[i].mem);
        json_decref(r->draws[i].head);
    }
    if (r->desk)
        desk_free(r->desk, &r->state_mem);
    frame_free(&r->f);
    frame_free(&r->end);
    free(r->draws);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- on disk ---- */

static int file_load(const char *path, struct frame *ret)
{
    struct err e = ERR_INIT;
    struct buf b;
    uint64_t n_head;
    int rc = -1;

    if (!file_exists(path))
        return -1;
    buf_init(&b, REFERENCE_MAX_FILE);
    cache_touch(path);
    if (file_read(path, &b, &e) == 0 && b.n >= 16 && !memcmp(b.p, MAGIC, 8)) {
        memcpy(&n_head, b.p + 8, 8);
        if (n_head <= b.n - 16 && (ret->head = json_parse(b.p + 16, n_head, path, &e))) {
            ret->n_blob = b.n - 16 - n_head;
            ret->blob = xmalloc(ret->n_blob + 1);
            memcpy(ret->blob, b.p + 16 + n_head, ret->n_blob);
            rc = 0;
        }
    }
    buf_free(&b);
    return rc;
}

/* Losing the cache only costs time: problems are said once in the log and are no error. */
static void file_save(const char *path, const struct frame *f)
{
    struct err e = ERR_INIT;
    struct buf b;
    char *head = json_text(f->head);
    uint64_t n = strlen(head);

    buf_init(&b, REFERENCE_MAX_FILE);
    buf_add(&b, MAGIC, 8);
    buf_add(&b, &n, 8);
    buf_add(&b, head, n);
    buf_add(&b, f->blob, f->n_blob);
    if (!b.cut && file_write(path, b.p, b.n, &e) < 0)
        log_debug("reference cache: %s", e.msg);
    buf_free(&b);
    free(head);
}

/* ---- made by the reference side ---- */

/* 53 bits, so that JSON of any reader keeps them. */
int64_t reference_seed(const struct eval *ev, int64_t seed)
{
    char hex[65], word[15];
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, ev->secret);
    sha256_add(&h, &seed, sizeof seed);
    sha256_end(&h, hex);
    snprintf(word, sizeof word, "%.13s", hex);
    return (int64_t)strtoull(word, NULL, 16);
}

static int reference_make(const struct reference_want *w, struct frame *ret, struct err *e)
{
    struct child *c;
    struct child_end end = {0};
    int rc;

    if (reference_start(w, w->sv->backend->reference, &c, e) < 0)
        return -1;
    rc = reference_ask(c, w, reference_request(w), NULL, 0, now_s() + REFERENCE_TIMEOUT_S, ret, e);
    child_kill(c);
    if (child_wait(c, now_s() + 5, &end, NULL) == 0) {
        if (rc < 0 && end.output.n)
            log_debug("reference side of %s printed: %.2000s", w->title, end.output.p);
        buf_free(&end.output);
    }
    child_free(c);
    return rc;
}

static int share_device(const struct reference_want *w, struct hold *share, struct err *e)
{
    return w->sv->backend->timed ? hold_take(w->sv->uuid, false, share, e) : 0;
}

static int reference_find(const char *key, const struct reference_want *w, struct frame *ret, struct err *e)
{
    char *folder = path_cache("reference"), *path = artefact_path(folder, key, ".ref");
    int rc = file_load(path, ret), lock;
    struct hold share = {0}; /* taken before the lock: who has the lock never waits for somebody who is alone */

    if (rc < 0 && share_device(w, &share, e) < 0) {
        free(folder);
        free(path);
        return -1;
    }
    if (rc < 0 && (lock = artefact_lock(folder, key, REFERENCE_TIMEOUT_S, e)) >= 0) {
        rc = file_load(path, ret);
        if (rc < 0 && (rc = reference_make(w, ret, e)) == 0)
            file_save(path, ret);
        artefact_unlock(lock);
    }
    hold_drop(&share);
    free(folder);
    free(path);
    return rc;
}

/* ---- in memory ---- */

static void reference_key(const struct reference_want *w, bool on_desk, char ret[65])
{
    const struct eval_options *o = w->o;
    struct sha256 h;
    char numbers[128];

    snprintf(numbers, sizeof numbers, "%d %lld %lld %d", o->trials, (long long)w->seed,
             (long long)eval_max_elements(o), w->variant);
    sha256_start(&h);
    sha256_adds(&h, w->t->sha256);
    sha256_adds(&h, o->protocol);
    sha256_adds(&h, w->params);
    sha256_adds(&h, numbers);
    sha256_adds(&h, w->sv->runner_sha);
    sha256_adds(&h, w->sv->device);
    sha256_adds(&h, on_desk ? "desk" : "frames");
    sha256_end(&h, ret);
}

/* Under the lock: moves to the front; NULL if absent. */
static struct reference *list_find(struct reference_list *l, const char *key)
{
    struct reference *r;

    for (int i = 0; i < REFERENCE_LIST && l->items[i]; i++)
        if (!strcmp(l->items[i]->key, key)) {
            r = l->items[i];
            memmove(&l->items[1], &l->items[0], (size_t)i * sizeof *l->items);
            l->items[0] = r;
            r->users++;
            return r;
        }
    return NULL;
}

/* Under the lock: r joins the list. What falls out at the end is returned if nobody uses it: the caller frees it. */
static struct reference *list_add(struct reference_list *l, struct reference *r)
{
    struct reference *last = l->items[REFERENCE_LIST - 1];

    memmove(&l->items[1], &l->items[0], (REFERENCE_LIST - 1) * sizeof *l->items);
    l->items[0] = r;
    r->listed = true;
    if (last)
        last->listed = false;
    return last && last->users == 0 ? last : NULL;
}

/* Under the lock: r leaves the list. */
static void list_drop(struct reference_list *l, struct reference *r)
{
    int i = 0;

    while (i < REFERENCE_LIST && l->items[i] != r)
        i++;
    if (i == REFERENCE_LIST)
        return;
    memmove(&l->items[i], &l->items[i + 1], (size_t)(REFERENCE_LIST - 1 - i) * sizeof *l->items);
    l->items[REFERENCE_LIST - 1] = NULL;
    r->listed = false;
}

/* ---- on the desk ---- */

static bool on_device_of(const struct reference *r, const struct desk *k)
{
    return r->desk && r->desk->common == k->common;
}

/* Gives up the reference on this desk's device that nobody has used for longest. False: there is none. */
static bool give_up_one(struct eval *ev, const struct desk *k)
{
    struct reference *r = NULL;

    pthread_mutex_lock(&ev->lock);
    for (int i = REFERENCE_LIST - 1; i >= 0 && !r; i--)
        if (ev->refs.items[i] && on_device_of(ev->refs.items[i], k) && ev->refs.items[i]->users == 0)
            r = ev->refs.items[i];
    if (r)
        list_drop(&ev->refs, r);
    pthread_mutex_unlock(&ev->lock);
    if (r)
        reference_free(r);
    return r != NULL;
}

/* Room for one more master copy; false: over the budget, or the device is full. */
static bool room_for(struct eval *ev, struct desk *k, size_t n, struct device_buf *ret)
{
    while (k->common->held + n > k->common->budget)
        if (!give_up_one(ev, k))
            return false;
    while (desk_alloc(k, n, DEVICE_PLAIN, ret, NULL) < 0)
        if (!give_up_one(ev, k))
            return false;
    return true;
}

/* The values of the draw that the process has just made come into 'to', through the shared area. */
static int fill(struct reference *r, const struct reference_want *w, struct device_buf *to, size_t n, double deadline, struct err *e)
{
    struct frame f;
    int fd = -1, rc;

    if (desk_area(r->desk, n, &r->area, &fd, e) < 0)
        return -1;
    rc = reference_ask(r->child, w, json_pack("{s:s,s:o}", "op", "fill", "area", fd >= 0 ? desk_spec(&r->area) : json_null()),
             &fd, fd >= 0, deadline, &f, e);
    if (fd >= 0)
        close(fd);
    if (rc < 0)
        return -1;
    frame_free(&f);
    return desk_copy(r->desk, to, &r->area, 0, n, e);
}

static int add_draw(struct eval *ev, struct reference *r, const struct reference_want *w, struct frame *f, double deadline, struct err *e)
{
    size_t n = r->n_draws;
    struct ref_draw *d = &r->draws[n];

    if (n == r->n_most)
        return err_set(e, ERR_BUG, "the reference side sent more than %zu draws", n);
    if (desk_draw(f->head, d, e) == 0) {
        d->kept = room_for(ev, r->desk, d->size, d->mem);
        if (!d->kept || fill(r, w, d->mem, d->size, deadline, e) == 0) {
            r->n_draws = n + 1;
            return 0;
        }
    }
    desk_free(r->desk, d->mem);
    free(d->mem);
    json_decref(d->head);
    return -1;
}

/* Is no draw to be made again? */
static bool all_kept(const struct reference *r)
{
    for (size_t i = 0; i < r->n_draws; i++)
        if (!r->draws[i].kept)
            return false;
    return true;
}

/* Before its process makes one. */
static int draw_begins(const struct reference *r, struct room_lane *l, struct err *e)
{
    if (!r->child)
        return err_set(e, ERR_ENV, "the reference's process is gone");
    return room_needs_lane(r->peak, r->budget) && r->device ? room_lane_take(r->device, l, e) : 0;
}

/* One more draw, or the end. */
static int ask_next(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    double t0 = now_s(), deadline = t0 + REFERENCE_TIMEOUT_S - r->spent_s;
    struct frame f;
    int rc = 0;

    if (reference_ask(r->child, w, json_pack("{s:s}", "op", "next"), NULL, 0, deadline, &f, e) < 0)
        return -1;
    if (json_flag(f.head, "end", false)) {
        r->end = f;
        r->skipped = json_object_get(f.head, "skipped");
        r->ended = true;
        if (all_kept(r)) /* nothing will have to be made again */
            end_child(r);
    } else {
        rc = add_draw(ev, r, w, &f, deadline, e);
        frame_free(&f);
    }
    r->spent_s += now_s() - t0;
    return rc;
}

static int next_draw(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    struct room_lane lane = {0};
    int rc;

    if (draw_begins(r, &lane, e) < 0)
        return -1;
    rc = ask_next(ev, r, w, e);
    room_lane_drop(&lane);
    return rc;
}

#define STATE_IN_BYTES ((size_t)64 << 20) /* at most */

/* Everything but the draws. The state's values come onto the desk if there is room, else in bytes; those of gigabytes,
 * which no frame holds, onto the desk all the same. */
static int take_facts(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    double deadline = now_s() + REFERENCE_TIMEOUT_S;
    size_t n;

    if (reference_ask(r->child, w, json_pack("{s:s,s:b}", "op", "facts", "bytes", 0), NULL, 0, deadline, &r->f, e) < 0)
        return -1;
    n = (size_t)json_i64(json_object_get(r->f.head, "state_values"), "nbytes", 0);
    if (n && room_for(ev, r->desk, n, &r->state_mem))
        return fill(r, w, &r->state_mem, n, deadline, e);
    if (n > STATE_IN_BYTES)
        return desk_alloc(r->desk, n, DEVICE_PLAIN, &r->state_mem, e) < 0 ? -1 : fill(r, w, &r->state_mem, n, deadline, e);
    frame_free(&r->f);
    return reference_ask(r->child, w, json_pack("{s:s,s:b}", "op", "facts", "bytes", 1), NULL, 0, deadline, &r->f, e);
}

/* The claim becomes as large as what is known by now, and no larger. */
static int claim_known(const struct reference_want *w, struct err *e)
{
    struct room_need known = {0};

    if (!w->claim || !room_recall(w->t->sha256, w->o->protocol, &known))
        return 0;
    if (room_grow(w->claim, &known)) {
        room_shrink(w->claim, &known);
        return 0;
    }
    if (!w->yields)
        return 0;
    err_set(e, ERR_ENV, "%s: it needs %.1f GiB of the device and its reference %.1f GiB; others have them", w->title,
            (double)known.own / 0x1p30, (double)known.shared / 0x1p30);
    return err_lack(e, LACK_DEVICE);
}

/* told: how large the model is, and one draw's inputs, before anything is on the device. An estimate that misses the
 * inputs is worth something where it is more than what is claimed blindly. */
static int claim_estimated(struct reference *r, const struct reference_want *w, const json_t *told, struct err *e)
{
    int64_t state = json_i64(told, "state_bytes", -1), inputs = json_i64(told, "input_bytes", -1);
    struct room_need need;

    if (!w->claim || state < 0)
        return 0;
    r->budget = w->claim->budget;
    need = room_estimate((size_t)state, inputs, !strcmp(w->o->protocol, "strict"), r->budget, &r->peak);
    if (!w->claim->fd)
        return 0;
    if (inputs >= 0 || !room_covers(&w->claim->need, &need))
        room_note_estimate(w->t->sha256, w->o->protocol, &need);
    return claim_known(w, e);
}

/* Its process gets the task, and there is room for what comes. ret_yielded: there is not; nothing is wrong with r. */
static int begin(struct reference *r, const struct reference_want *w, bool *ret_yielded, struct err *e)
{
    double t0 = now_s();
    json_t *req = reference_request(w);
    struct frame f;
    int rc;

    if (req)
        json_object_set_new(req, "area", json_true());
    if (reference_ask(r->child, w, req, NULL, 0, t0 + REFERENCE_TIMEOUT_S, &f, e) < 0)
        return -1;
    rc = claim_estimated(r, w, f.head, e);
    *ret_yielded = rc < 0;
    frame_free(&f);
    r->spent_s = now_s() - t0;
    return rc;
}

/* The first draw, and everything else there is to know. */
static int make_first(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    r->n_most = (size_t)w->o->trials * REGIMES;
    r->draws = xcalloc(r->n_most, sizeof *r->draws);
    if (next_draw(ev, r, w, e) < 0)
        return -1;
    if (r->n_draws == 0)
        return err_set(e, ERR_BUG, "the reference side sent no draws");
    return take_facts(ev, r, w, e) < 0 ? -1 : parse_rest(r, e);
}

static void name_task(struct reference_want *w)
{
    snprintf(w->title, sizeof w->title, w->variant ? "task '%.60s', variant '%s'" : "task '%.60s'", w->t->name,
             task_variant_name(w->t, w->variant));
}

/* ---- streamed ---- */

static int more_draws(struct reference *r, size_t i, struct err *e)
{
    json_t *head;
    int rc = 1;

    while (rc == 1 && i >= r->n_draws && !r->ended) {
        struct ref_draw d;

        if ((rc = streamed_next(r->streamed, &d, &head, e)) < 0)
            break;
        if (rc == 0) {
            r->end.head = head;
            r->skipped = json_object_get(head, "skipped");
            r->ended = true;
        } else if (r->n_draws == r->n_most) {
            json_decref(head);
            return err_set(e, ERR_BUG, "the reference side sent more than %zu draws", r->n_most);
        } else {
            d.head = head;
            r->draws[r->n_draws++] = d;
        }
    }
    return rc < 0 ? -1 : 0;
}

static int streamed_draw(struct job *j, size_t i, const struct ref_draw **ret, struct err *e)
{
    struct reference *r = j->ref;
    double t0 = now_s();
    int rc;

    rc = more_draws(r, i, e);
    if (rc < 0 && e->kind == ERR_INPUT && r->n_draws) /* it has been fine before */
        e->kind = ERR_ENV;
    if (rc == 0 && i < r->n_draws)
        *ret = &r->draws[i];
    rc = rc < 0 ? -1 : i < r->n_draws;
    j->reference_s += now_s() - t0;
    return rc;
}

static int make_streamed(struct reference *r, const struct reference_want *w, struct err *e)
{
    r->n_most = (size_t)w->o->trials * REGIMES;
    r->draws = xcalloc(r->n_most, sizeof *r->draws);
    if (more_draws(r, 0, e) < 0)
        return -1;
    if (r->n_draws == 0)
        return err_set(e, ERR_BUG, "the reference side sent no draws");
    if (json_array_size(r->draws[0].mutates)) /* what a candidate writes there would be what is expected to be read */
        return 1;
    return streamed_facts(r->streamed, &r->f, e) < 0 ? -1 : parse_rest(r, e);
}

/* One at a time: it may need all of the device. */
static pthread_mutex_t one_streamed = PTHREAD_MUTEX_INITIALIZER;

/* out: -1 is not known; as large as the inputs then. */
static int claim_streamed(const struct reference_want *w, int64_t state, int64_t in, int64_t out, struct err *e)
{
    struct room_need need = room_estimate_streamed((size_t)state, (size_t)in, (size_t)(out < 0 ? in : out));

    if (!w->claim || !w->claim->fd)
        return 0;
    room_note_estimate(w->t->sha256, w->o->protocol, &need);
    return claim_known(w, e);
}

/* 0; 1: the task is small, and its values are better cached; -1. */
static int start_streamed(struct reference *r, struct desk *k, const struct reference_want *w, bool always, struct err *e)
{
    const json_t *told;
    int64_t state, in;

    if (desk_open_streamed(k, w->sv->backend, e) < 0 || streamed_start(w, k, &r->streamed, &told, e) < 0)
        return -1;
    state = json_i64(told, "state_bytes", 0);
    in = json_i64(told, "input_bytes", 0);
    if (claim_streamed(w, state, in, -1, e) < 0 || streamed_learn(r->streamed, e) < 0)
        return -1;
    if (!always && !streamed_worth(r->streamed))
        return 1;
    told = r->streamed->inputs; /* more than before the inputs were made */
    in = json_i64(told, "nbytes", 0);
    if (claim_streamed(w, state, in, json_i64(told, "output_bytes", -1), e) < 0 || streamed_areas(r->streamed, e) < 0)
        return -1;
    return make_streamed(r, w, e);
}

static int start_sharing(struct reference *r, struct desk *k, const struct reference_want *w, bool always, struct err *e)
{
    struct hold share = {0};
    int rc = share_device(w, &share, e) < 0 ? -1 : start_streamed(r, k, w, always, e);

    hold_drop(&share);
    return rc;
}

static struct reference *streamed_known(struct eval *ev, const char *key)
{
    struct reference *r;

    pthread_mutex_lock(&ev->lock);
    r = list_find(&ev->refs, key);
    pthread_mutex_unlock(&ev->lock);
    return r;
}

/* 0, 1: not streamed, -1. */
static int get_streamed(struct job *j, const struct reference_want *w, bool always, struct reference **ret, struct err *e)
{
    struct eval *ev = j->ev;
    struct desk *k = desk_of(&ev->desks[backend_index(w->sv->backend)], w->t->sha256);
    struct reference *r, *old = NULL;
    char key[65];
    int rc = 0;

    reference_key(w, true, key);
    pthread_mutex_lock(&one_streamed);
    if (claim_known(w, e) < 0) { /* somebody may have learned it since the job came in */
        pthread_mutex_unlock(&one_streamed);
        return -1;
    }
    if (!(r = streamed_known(ev, key))) {
        reference_list_keep(ev, 0); /* those that nobody uses give their memory back */
        r = xcalloc(1, sizeof *r);
        pthread_mutex_init(&r->lock, NULL);
        r->users = 1;
        memcpy(r->key, key, sizeof key);
        if ((rc = start_sharing(r, k, w, always, e)) == 0) {
            pthread_mutex_lock(&ev->lock);
            old = list_add(&ev->refs, r);
            pthread_mutex_unlock(&ev->lock);
        } else {
            reference_free(r);
        }
    }
    pthread_mutex_unlock(&one_streamed);
    if (old)
        reference_free(old);
    if (rc == 0)
        *ret = r;
    return rc;
}

int reference_draw(struct job *j, size_t i, const struct ref_draw **ret, struct err *e)
{
    struct reference *r = j->ref;
    struct reference_want w = {.sv = j->server, .t = j->task, .o = j->opt, .variant = j->variant};
    double t0 = now_s();
    int rc = 0;

    if (r->streamed)
        return streamed_draw(j, i, ret, e);
    if (i >= r->n_draws && r->desk) {
        name_task(&w);
        pthread_mutex_lock(&r->lock);
        while (rc == 0 && i >= r->n_draws && !r->ended) {
            if (r->failed)
                rc = -1;
            else if ((rc = next_draw(j->ev, r, &w, &r->why)) < 0) {
                r->failed = true;
                if (r->why.kind == ERR_INPUT) /* the first draw was fine: others have the device, or it died */
                    r->why.kind = ERR_ENV;
            }
        }
        if (rc < 0 && e)
            *e = r->why;
        pthread_mutex_unlock(&r->lock);
        j->reference_s += now_s() - t0;
    }
    if (rc < 0 || i >= r->n_draws)
        return rc;
    *ret = &r->draws[i];
    return 1;
}

int reference_all(struct job *j, struct err *e)
{
    const struct ref_draw *d;
    size_t i = j->ref->n_draws;
    int rc;

    while ((rc = reference_draw(j, i, &d, e)) == 1)
        i++;
    return rc;
}

static int ask_again(struct reference *r, const struct reference_want *w, struct ref_draw *d, struct err *e)
{
    double deadline = now_s() + REFERENCE_TIMEOUT_S;
    struct frame f;
    int rc;

    if (reference_ask(r->child, w, json_pack("{s:s,s:s,s:i}", "op", "again", "regime", d->regime, "trial", d->trial), NULL, 0, deadline, &f, e) < 0)
        return -1;
    rc = (size_t)json_i64(f.head, "size", -1) == d->size ? 0 : err_set(e, ERR_ENV, "the reference's draw is another one now");
    frame_free(&f);
    if (rc < 0 || desk_alloc(r->desk, d->size, DEVICE_PLAIN, d->mem, e) < 0)
        return -1;
    if (fill(r, w, d->mem, d->size, deadline, e) == 0)
        return 0;
    desk_free(r->desk, d->mem);
    return -1;
}

static int again(struct reference *r, struct ref_draw *d, struct err *e)
{
    struct reference_want w = {.title = "the task"};
    struct room_lane lane = {0};
    int rc;

    if (draw_begins(r, &lane, e) < 0)
        return -1;
    rc = ask_again(r, &w, d, e);
    room_lane_drop(&lane);
    return rc;
}

int reference_hold(struct reference *r, const struct ref_draw *given, struct err *e)
{
    struct ref_draw *d = &r->draws[given - r->draws];
    int rc = 0;

    if (!r->desk || d->kept)
        return 0;
    pthread_mutex_lock(&r->lock);
    if (!d->mem->dev && (rc = again(r, d, &r->why)) < 0) {
        r->failed = true;
        if (r->why.kind == ERR_INPUT) /* it has been made before: no longer the task's fault */
            r->why.kind = ERR_ENV;
        if (e)
            *e = r->why;
    }
    d->holders += rc == 0;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void reference_let_go(struct reference *r, const struct ref_draw *given)
{
    struct ref_draw *d = &r->draws[given - r->draws];

    if (!r->desk || d->kept)
        return;
    pthread_mutex_lock(&r->lock);
    if (--d->holders == 0)
        desk_free(r->desk, d->mem);
    pthread_mutex_unlock(&r->lock);
}

/* What this task was seen to need on the device, for room.h: runner/reference.py measured what torch held there. */
static void note_need(struct reference *r, const struct reference_want *w)
{
    const json_t *memory = json_object_get(r->f.head, "memory");
    size_t kept = (size_t)json_i64(memory, "kept", 0), eager = (size_t)json_i64(memory, "eager", 0);
    const struct ref_draw *d = &r->draws[0]; /* the others are about as large */
    struct room_need need = {0};

    if (!json_is_object(memory))
        return;
    r->peak = (size_t)json_i64(memory, "peak", 0);
    need.shared = room_shared(kept, r->peak, r->budget) + d->size; /* the area; master copies have a budget of their own: desk.h */
    need.own = ROOM_CONTEXT_BYTES + d->inputs.n + 2 * d->eager.n; /* areas, snapshot; */
    need.own += eager / 4 * 5;                                    /* a workspace as eager's and more */
    room_note(w->t->sha256, w->o->protocol, &need);
}

size_t reference_host_bytes(struct reference *r)
{
    size_t n;

    if (r->desk && r->host_draws != r->n_draws && pthread_mutex_trylock(&r->lock) == 0) {
        n = r->child ? child_peak(r->child) : 0;
        r->host_peak = n > r->host_peak ? n : r->host_peak;
        r->host_draws = r->n_draws;
        pthread_mutex_unlock(&r->lock);
    }
    return r->host_peak;
}

static int start(struct reference *r, const struct reference_want *w, struct err *e)
{
    struct hold share = {0};
    int rc = share_device(w, &share, e) < 0 || reference_start(w, w->sv->backend->reference, &r->child, e) < 0 ? -1 : 0;

    hold_drop(&share);
    return rc;
}

static int make_on_device(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    struct hold share = {0};
    int rc = share_device(w, &share, e) < 0 || make_first(ev, r, w, e) < 0 ? -1 : 0;

    hold_drop(&share);
    return rc;
}

/* Under r->lock: makes it, unless somebody has, or has failed to. Who has no room for it leaves it to the next one. To
 * construct a model of gigabytes takes many seconds, on the host (begin): without a share of the device. */
static int make_once(struct eval *ev, struct reference *r, const struct reference_want *w, struct err *e)
{
    struct err why = ERR_INIT;
    bool yielded = false;

    if (!r->failed && claim_known(w, e) < 0)
        return -1;
    if (!r->made && !r->failed) {
        r->device = w->sv->uuid;
        if (start(r, w, &why) == 0 && begin(r, w, &yielded, &why) == 0 && make_on_device(ev, r, w, &why) == 0) {
            r->made = true;
            note_need(r, w);
            claim_known(w, NULL); /* if there is room: what is made is kept */
        } else {
            r->why = why;
            r->failed = !yielded;
            end_child(r);
        }
    }
    if ((r->failed || yielded) && e)
        *e = r->why;
    return r->failed || yielded ? -1 : 0;
}

/* Its process is gone and draws were lost with it. One that is busy is not: whoever has its lock is making draws. */
static bool is_lost(struct reference *r)
{
    bool lost;

    if (pthread_mutex_trylock(&r->lock) != 0)
        return false;
    lost = r->failed && r->made && r->why.kind != ERR_INPUT;
    pthread_mutex_unlock(&r->lock);
    return lost;
}

static struct reference *join_or_add(struct eval *ev, struct desk *k, const char *key, struct reference **ret_old)
{
    struct reference *r;

    *ret_old = NULL;
    pthread_mutex_lock(&ev->lock);
    r = list_find(&ev->refs, key);
    if (r && is_lost(r)) {
        list_drop(&ev->refs, r);
        r->users--;
        *ret_old = r->users == 0 ? r : NULL;
        r = NULL;
    }
    if (!r) {
        struct reference *last;

        r = xcalloc(1, sizeof *r);
        pthread_mutex_init(&r->lock, NULL);
        r->desk = k;
        r->users = 1;
        memcpy(r->key, key, sizeof r->key);
        last = list_add(&ev->refs, r);
        *ret_old = *ret_old ? *ret_old : last;
    }
    pthread_mutex_unlock(&ev->lock);
    return r;
}

/* While r is made who has r->lock waits for shares of the device, and who waits for r->lock has none: it would keep out
 * whoever wants to be alone, and thereby all who want a share. Once r is made nobody waits for one under r->lock. */
static int get_on_desk(struct eval *ev, struct desk *k, const struct reference_want *w, struct reference **ret, struct err *e)
{
    struct reference *r = NULL, *old = NULL;
    struct hold share = {0};
    char key[65];
    bool failed;
    int rc;

    if (share_device(w, &share, e) < 0)
        return -1;
    if ((rc = desk_open(k, w->sv->backend, e)) > 0) {
        reference_key(w, true, key);
        r = join_or_add(ev, k, key, &old);
        if (old)
            reference_free(old);
    }
    hold_drop(&share);
    if (rc <= 0)
        return rc < 0 ? -1 : 1;
    pthread_mutex_lock(&r->lock);
    rc = make_once(ev, r, w, e);
    failed = r->failed;
    pthread_mutex_unlock(&r->lock);
    if (rc < 0) {
        pthread_mutex_lock(&ev->lock);
        if (failed)
            list_drop(&ev->refs, r);
        pthread_mutex_unlock(&ev->lock);
        reference_release(ev, r);
        return -1;
    }
    *ret = r;
    return 0;
}

/* ---- in frames ---- */

static int get_in_frames(struct eval *ev, const struct reference_want *w, struct reference **ret, struct err *e)
{
    struct reference *r, *other, *old = NULL;
    char key[65];

    reference_key(w, false, key);
    pthread_mutex_lock(&ev->lock);
    r = list_find(&ev->refs, key);
    pthread_mutex_unlock(&ev->lock);
    if (r) {
        *ret = r;
        return 0;
    }
    r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->users = 1;
    memcpy(r->key, key, sizeof key);
    if (reference_find(key, w, &r->f, e) < 0 || reference_parse(r, e) < 0) {
        reference_free(r);
        return -1;
    }
    pthread_mutex_lock(&ev->lock);
    if ((other = list_find(&ev->refs, key)))
        old = r, r = other;
    else
        old = list_add(&ev->refs, r);
    pthread_mutex_unlock(&ev->lock);
    if (old)
        reference_free(old);
    *ret = r;
    return 0;
}

/* May the task be streamed? always: however small it is (tests). What has been cached as bytes stays that. */
static bool streams(const struct reference_want *w, bool *ret_always)
{
    const char *wish = getenv("MUSACODER_VALUES");
    char key[65], *folder, *path;
    bool cached;

    *ret_always = wish && !strcmp(wish, "streamed");
    if (*ret_always || !w->sv->backend->timed || wish)
        return *ret_always;
    reference_key(w, false, key);
    folder = path_cache("reference");
    path = artefact_path(folder, key, ".ref");
    cached = file_exists(path);
    free(folder);
    free(path);
    return !cached;
}

int reference_get(struct job *j, const char *params, struct reference **ret, struct err *e)
{
    struct reference_want w = {.sv = j->server, .t = j->task, .o = j->opt, .params = params, .variant = j->variant,
                     .seed = reference_seed(j->ev, j->opt->seed), .claim = j->claim, .yields = j->yields};
    int at = backend_index(j->server->backend), rc = 1;
    bool always;

    name_task(&w);
    if (w.sv->backend->front) {
        if (streams(&w, &always) && (rc = get_streamed(j, &w, always, ret, e)) == 0)
            pthread_mutex_lock(&(*ret)->streamed->lock); /* the caller has no run slot: whoever has it may wait for one */
    } else if (at >= 0) {
        rc = get_on_desk(j->ev, desk_of(&j->ev->desks[at], j->task->sha256), &w, ret, e);
    }
    return rc == 1 ? get_in_frames(j->ev, &w, ret, e) : rc;
}

void reference_release(struct eval *ev, struct reference *r)
{
    bool last;

    if (!r)
        return;
    if (r->streamed)
        pthread_mutex_unlock(&r->streamed->lock);
    pthread_mutex_lock(&ev->lock);
    last = --r->users == 0 && !r->listed;
    pthread_mutex_unlock(&ev->lock);
    if (last)
        reference_free(r);
}

void reference_list_keep(struct eval *ev, int idle)
{
    struct reference *r;

    do {
        int n = 0;

        r = NULL;
        pthread_mutex_lock(&ev->lock);
        for (int i = 0; i < REFERENCE_LIST; i++)
            if (ev->refs.items[i] && ev->refs.items[i]->users == 0 && ++n > idle)
                r = ev->refs.items[i];
        if (r)
            list_drop(&ev->refs, r);
        pthread_mutex_unlock(&ev->lock);
        if (r)
            reference_free(r);
    } while (r);
}

void reference_list_free(struct eval *ev)
{
    for (int i = 0; i < REFERENCE_LIST; i++)
        if (ev->refs.items[i])
            reference_free(ev->refs.items[i]);
    memset(ev->refs.items, 0, sizeof ev->refs.items);
}
