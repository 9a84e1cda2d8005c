/* reference.c - see reference.h. */
#include "eval/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/hold.h"
#include "eval/job.h"
#include "store/limit.h"

#define MAGIC "MCREF1\n"
#define REFERENCE_TIMEOUT_S 120.0
#define REFERENCE_MAX_FILE ((size_t)2 << 30)

/* ---- a frame becomes a reference ---- */

int ref_section_parse(const struct frame *f, const json_t *s, struct section *ret, struct err *e)
{
    int64_t at = json_i64(s, "at", -1), n = json_i64(s, "nbytes", -1);

    if (at < 0 || n < 0 || (uint64_t)at > f->n_blob || (uint64_t)n > f->n_blob - (uint64_t)at || !json_object_get(s, "tree"))
        return err_set(e, ERR_BUG, "the reference side sent a broken section");
    *ret = (struct section){json_object_get(s, "tree"), f->blob + at, (size_t)n};
    return 0;
}

int ref_draw_parse(const struct frame *f, const json_t *d, struct ref_draw *ret, struct err *e)
{
    ret->regime = json_str(d, "regime", "?");
    ret->trial = (int)json_i64(d, "trial", 0);
    ret->noise = json_object_get(d, "noise");
    ret->mutates = json_object_get(d, "mutates");
    ret->aliases = json_object_get(d, "aliases");
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
    enum dtype dtype = DT_F32;

    dt_parse(json_str(row, "dtype", "float32"), &dtype);
    if (strcmp(protocol, "strict"))
        return tolerance_kernelbench(dtype);
    if (own && dt_is_float(dtype))
        return (struct tolerance){.abs = json_f64(own, "abs", 0), .rel = json_f64(own, "rel", 0), .usable = true};
    return tolerance_strict(dtype, &n);
}

static int reference_parse(struct reference *r, struct err *e)
{
    const json_t *h = r->f.head, *draws = json_object_get(h, "draws");

    r->state = json_object_get(h, "state");
    r->skipped = json_object_get(h, "skipped");
    r->defects = json_object_get(h, "defects");
    r->dtype = json_string_value(json_object_get(h, "dtype"));
    r->tf32 = json_object_get(h, "tf32");
    r->mode = json_str(h, "mode", "train");
    r->init_seed = json_i64(h, "init_seed", 0);
    r->n_draws = json_array_size(draws);
    r->draws = xcalloc(r->n_draws + 1, sizeof *r->draws);
    if (r->n_draws == 0)
        return err_set(e, ERR_BUG, "the reference side sent no draws");
    for (size_t i = 0; i < r->n_draws; i++)
        if (ref_draw_parse(&r->f, json_array_get(draws, i), &r->draws[i], e) < 0)
            return -1;
    if (ref_section_parse(&r->f, json_object_get(h, "init"), &r->init, e) < 0)
        return -1;
    return ref_section_parse(&r->f, json_object_get(h, "state_values"), &r->state_values, e);
}

static void reference_free(struct reference *r)
{
    frame_free(&r->f);
    free(r->draws);
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

/* What is asked for: the way to make the values. */
struct want {
    struct server *sv;
    const struct task *t;
    const struct eval_options *o;
    const char *params;
    int variant;
    int64_t seed;    /* of the draws: reference_seed */
    char title[160]; /* "task 'x'", "task 'x', variant 'odd'": for messages */
};

static int task_error(const struct want *w, const json_t *head, struct err *e)
{
    int64_t line = json_i64(head, "line", -1);

    if (!strcmp(json_str(head, "type", ""), "refused"))
        return err_set(e, ERR_INPUT, "%s: %.700s", w->title, json_str(head, "message", ""));
    if (line > 0)
        return err_set(e, ERR_INPUT, "%s raises %s: %.500s (line %lld: %.120s)", w->title, json_str(head, "type", ""),
                       json_str(head, "message", ""), (long long)line, json_str(head, "text", ""));
    return err_set(e, ERR_INPUT, "%s raises %s: %.600s", w->title, json_str(head, "type", ""), json_str(head, "message", ""));
}

static json_t *reference_request(const struct want *w)
{
    const struct eval_options *o = w->o;
    const json_t *variant = task_variant(w->t, w->variant);
    json_t *req = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:I,s:I}", "op", "task", "source", w->t->code, "name", w->t->name,
                            "protocol", o->protocol, "params", w->params, "trials", o->trials, "seed", (json_int_t)w->seed,
                            "max_elements", (json_int_t)o->max_elements);

    if (req && variant)
        json_object_set_new(req, "variant", json_deep_copy(variant));
    if (req && task_setting(w->t, w->variant, "regimes") && !strcmp(o->protocol, "strict"))
        json_object_set_new(req, "regimes", json_deep_copy(task_setting(w->t, w->variant, "regimes")));
    return req;
}

static int reference_ask(struct child *c, const struct want *w, struct frame *ret, struct err *e)
{
    json_t *req = reference_request(w);
    double deadline = now_s() + REFERENCE_TIMEOUT_S;
    enum frame_fault fault = FRAME_OK;
    int rc;

    if (!req)
        return err_set(e, ERR_INPUT, "%s is not UTF-8 text", w->title);
    rc = frame_send(c->fd, req, NULL, 0, deadline, &fault, e);
    if (rc == 0)
        rc = frame_recv(c->fd, 0, 0, deadline, ret, &fault, e);
    json_decref(req);
    if (rc == 0 && !json_flag(ret->head, "ok", false)) {
        rc = task_error(w, ret->head, e);
        frame_free(ret);
    } else if (rc < 0 && fault == FRAME_LATE) {
        err_set(e, ERR_INPUT, "%s: the reference did not finish in %.0f s; make it smaller with 'musacoder shrink'",
                w->title, REFERENCE_TIMEOUT_S);
    } else if (rc < 0 && fault == FRAME_CLOSED) {
        err_set(e, ERR_INPUT, "%s: the reference's process died; is it too large? see 'musacoder shrink'", w->title);
    }
    return rc;
}

static int reference_make(const struct want *w, struct frame *ret, struct err *e)
{
    struct server_child spec = {.role = w->sv->backend->reference, .published = !strcmp(w->o->protocol, "kernelbench"),
                                .jail = {.memory_bytes = w->sv->backend->reference_memory_bytes}};
    struct child *c;
    struct child_end end = {0};
    int rc;

    if (server_spawn(w->sv, &spec, &c, e) < 0)
        return -1;
    rc = reference_ask(c, w, ret, e);
    child_kill(c);
    if (child_wait(c, now_s() + 5, &end, NULL) == 0) {
        if (rc < 0 && end.output.n)
            log_debug("reference side of %s printed: %.2000s", w->title, end.output.p);
        buf_free(&end.output);
    }
    child_free(c);
    return rc;
}

static int reference_find(const char *key, const struct want *w, struct frame *ret, struct err *e)
{
    char *folder = path_cache("reference"), *path = artefact_path(folder, key, ".ref");
    int rc = file_load(path, ret), lock;
    struct hold share = {0}; /* taken before the lock: who has the lock never waits for somebody who is alone */

    if (rc < 0 && w->sv->backend->timed && hold_take(w->sv->uuid, false, &share, e) < 0) {
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

static void reference_key(const struct want *w, char ret[65])
{
    const struct eval_options *o = w->o;
    struct sha256 h;
    char numbers[128];

    snprintf(numbers, sizeof numbers, "%d %lld %lld %d", o->trials, (long long)w->seed, (long long)o->max_elements, w->variant);
    sha256_start(&h);
    sha256_adds(&h, w->t->sha256);
    sha256_adds(&h, o->protocol);
    sha256_adds(&h, w->params);
    sha256_adds(&h, numbers);
    sha256_adds(&h, w->sv->runner_sha);
    sha256_adds(&h, w->sv->device);
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

/* Under the lock: r joins the list; what falls out at the end is freed when nobody uses it. */
static void list_add(struct reference_list *l, struct reference *r)
{
    struct reference *last = l->items[REFERENCE_LIST - 1];

    memmove(&l->items[1], &l->items[0], (REFERENCE_LIST - 1) * sizeof *l->items);
    l->items[0] = r;
    r->listed = true;
    if (last) {
        last->listed = false;
        if (last->users == 0)
            reference_free(last);
    }
}

int reference_get(struct eval *ev, struct server *sv, const struct task *t, const struct eval_options *o,
                  const char *params, int variant, struct reference **ret, struct err *e)
{
    struct want w = {sv, t, o, params, variant, reference_seed(ev, o->seed), ""};
    struct reference *r, *other;
    char key[65];

    snprintf(w.title, sizeof w.title, variant ? "task '%.60s', variant '%s'" : "task '%.60s'", t->name,
             task_variant_name(t, variant));
    reference_key(&w, key);
    pthread_mutex_lock(&ev->lock);
    r = list_find(&ev->refs, key);
    pthread_mutex_unlock(&ev->lock);
    if (r) {
        *ret = r;
        return 0;
    }
    r = xcalloc(1, sizeof *r);
    r->users = 1;
    memcpy(r->key, key, sizeof key);
    if (reference_find(key, &w, &r->f, e) < 0) {
        free(r);
        return -1;
    }
    if (reference_parse(r, e) < 0) {
        reference_free(r);
        return -1;
    }
    pthread_mutex_lock(&ev->lock);
    if ((other = list_find(&ev->refs, key)))
        reference_free(r), r = other;
    else
        list_add(&ev->refs, r);
    pthread_mutex_unlock(&ev->lock);
    *ret = r;
    return 0;
}

void reference_release(struct eval *ev, struct reference *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&ev->lock);
    if (--r->users == 0 && !r->listed)
        reference_free(r);
    pthread_mutex_unlock(&ev->lock);
}

void reference_list_free(struct eval *ev)
{
    for (int i = 0; i < REFERENCE_LIST; i++)
        if (ev->refs.items[i])
            reference_free(ev->refs.items[i]);
    memset(ev->refs.items, 0, sizeof ev->refs.items);
}
