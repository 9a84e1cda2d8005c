/* reference.c - see reference.h. */
#include "eval/reference/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/reference/reference_child.h"
#include "eval/reference/streamed.h"
#include "eval/schedule/schedule.h"
#include "store/limit.h"
#include "store/seal.h"
#include "store/store.h"

#define REGIMES 6 /* of a streamed draw, at most: those of runner/reference.py, and the task's own */
#define REFERENCE_MAX_FILE ((size_t)2 << 30)

/* ---- a frame becomes a reference ---- */

/* Finds the sections of further sets of parameters. */
static int parse_sets(struct reference *r, struct err *e)
{
    const json_t *others = json_object_get(r->f.head, "other_states");

    r->n_sets = 1;
    for (size_t i = 0; i < json_array_size(others) && r->n_sets < REF_SETS; i++)
        if (ref_section_parse(&r->f, json_array_get(others, i), &r->other_states[r->n_sets++ - 1], e) < 0)
            return -1;
    for (size_t i = 0; i < r->n_draws; i++)
        if (r->draws[i].parameters < 0 || r->draws[i].parameters >= r->n_sets)
            return err_set(e, ERR_BUG, "the reference side sent a draw with parameters that it did not send");
    return 0;
}

/* All but the draws. */
static int reference_parse_rest(struct reference *r, struct err *e)
{
    const json_t *h = r->f.head, *second = json_object_get(h, "second");

    r->state = json_object_get(h, "state");
    r->defects = json_object_get(h, "defects");
    r->copies = json_flag(h, "copies", false);
    r->counts = json_flag(h, "counts", false);
    r->keeps = json_flag(h, "keeps", false);
    r->numbers = json_flag(h, "numbers", false);
    r->changed = json_str(h, "changed", NULL);
    r->alters = json_flag(h, "alters", false);
    r->folds = json_i64(h, "tables", 0) < 0;
    r->tables = r->folds ? 0 : (uint64_t)json_i64(h, "tables", 0);
    r->dtype = json_string_value(json_object_get(h, "dtype"));
    r->tf32 = json_object_get(h, "tf32");
    r->mode = json_str(h, "mode", "train");
    r->init_seed = json_i64(h, "init_seed", 0);
    if (ref_section_parse(&r->f, json_object_get(h, "init"), &r->init, e) < 0)
        return -1;
    r->has_second = json_is_object(second);
    r->second_seed = json_i64(second, "seed", 0);
    if (r->has_second && ref_section_parse(&r->f, json_object_get(second, "init"), &r->second, e) < 0)
        return -1;
    if (ref_section_parse(&r->f, json_object_get(h, "state_values"), &r->state_values, e) < 0)
        return -1;
    if (json_is_object(json_object_get(h, "built")) &&
        ref_section_parse(&r->f, json_object_get(h, "built"), &r->built, e) < 0)
        return -1;
    return parse_sets(r, e);
}

/* Finds the draws in the frame; all borrow from it. */
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
    return reference_parse_rest(r, e);
}

static void reference_free(struct reference *r)
{
    streamed_close(r->streamed);
    for (size_t i = 0; r->streamed && i < r->n_draws; i++)
        json_decref(r->draws[i].head);
    frame_free(&r->f);
    frame_free(&r->end);
    free(r->draws);
    free(r);
}

/* ---- on disk ---- */

/* The payload is the head's length, the head, the blob. */
static int reference_frame_of(const char *p, size_t n, const char *path, struct frame *ret)
{
    uint64_t n_head;

    if (n < 8)
        return -1;
    memcpy(&n_head, p, 8);
    if (n_head > n - 8 || !(ret->head = json_parse(p + 8, n_head, path, NULL)))
        return -1;
    ret->n_blob = n - 8 - n_head;
    ret->blob = xmalloc(ret->n_blob + 1);
    memcpy(ret->blob, p + 8 + n_head, ret->n_blob);
    return 0;
}

/* *ret is the frame of a cached reference. -1: none, or it is damaged. */
static int reference_file_load(const char *path, struct frame *ret)
{
    struct buf b;
    int rc = -1;

    if (!file_exists(path))
        return -1;
    buf_init(&b, REFERENCE_MAX_FILE);
    cache_touch(path);
    if (seal_read(path, &b))
        rc = reference_frame_of(b.p + SEAL_HEAD, b.n - SEAL_HEAD, path, ret);
    buf_free(&b);
    return rc;
}

/* Losing the cache only costs time: problems are said once in the log and are no error. */
static void reference_file_save(const char *path, const struct frame *f)
{
    struct err e = ERR_INIT;
    char *head = json_text(f->head);
    uint64_t n = strlen(head);
    const struct seal_part parts[] = {{&n, 8}, {head, n}, {f->blob, f->n_blob}};

    if (n + f->n_blob < REFERENCE_MAX_FILE - SEAL_HEAD - 8 && seal_write(path, parts, 3, &e) < 0)
        log_debug("reference cache: %s", e.msg);
    free(head);
}

/* ---- made by the reference side ---- */

/* 53 bits, so that JSON of any reader keeps them. */
int64_t reference_seed(const char *secret, int64_t seed)
{
    char hex[65], word[15];
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, secret);
    sha256_add(&h, &seed, sizeof seed);
    sha256_end(&h, hex);
    snprintf(word, sizeof word, "%.13s", hex);
    return (int64_t)strtoull(word, NULL, 16);
}

/* Runs the reference in a process of its own; *ret is its frame of draws and expected values. */
static int reference_make(const struct reference_want *w, struct frame *ret, struct err *e)
{
    bool dear = w->sv->backend->timed; /* to make processes */
    json_t *req = reference_request(w);
    struct child *c;
    int rc = dear ? reference_start(w, &c, e) : reference_start_alone(w, &c, e);

    if (rc < 0)
        return json_decref(req), -1;
    if (req && dear)
        json_object_set_new(req, "op", json_string("frames"));
    rc = reference_ask(c, w, req, NULL, 0, now_s() + REFERENCE_TIMEOUT_S, ret, NULL, e);
    if (rc == 0 && dear)
        reference_end(w, c);
    else
        spares_end(c, "reference");
    return rc;
}

/* Shares the device while a reference works on it; without a timed device nothing happens. */
static int reference_share_device(const struct reference_want *w, struct device_lock *share, struct err *e)
{
    return w->sv->backend->timed ? device_lock_take(&w->sv->schedule, false, share, e) : 0;
}

/* Without a jail a task may read files that nobody knows of: its reference is good for those who use it now alone. */
static bool reference_is_kept(const struct reference_want *w)
{
    return !w->sv->all->config.no_jail;
}

/* A reference by its key, from the cache folder or made now and stored there. One process makes it, others wait. */
static int reference_find(const char *key, const struct reference_want *w, struct frame *ret, struct err *e)
{
    char *folder = path_cache("reference"), *path = artefact_path(folder, key, ".ref");
    int rc = reference_is_kept(w) ? reference_file_load(path, ret) : -1, lock;
    struct device_lock share = {0}; /* taken before the lock: who has the lock never waits for somebody who is alone */

    if (rc < 0 && reference_share_device(w, &share, e) < 0) {
        free(folder);
        free(path);
        return -1;
    }
    if (rc < 0 && (lock = artefact_lock(folder, key, REFERENCE_TIMEOUT_S, e)) >= 0) {
        rc = reference_is_kept(w) ? reference_file_load(path, ret) : -1;
        if (rc < 0 && (rc = reference_make(w, ret, e)) == 0 && reference_is_kept(w))
            reference_file_save(path, ret);
        artefact_unlock(lock);
    }
    device_lock_drop(&share);
    free(folder);
    free(path);
    return rc;
}

/* ---- in memory ---- */

/* Hex SHA-256 of all that decides a reference's values: task, seed, trials, parameters, device, runner. */
static void reference_key(const struct reference_want *w, bool streamed, char ret[65])
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
    sha256_adds(&h, streamed ? "streamed" : "frames");
    sha256_end(&h, ret);
}

/* Under the lock: moves to the list's front; NULL if absent. */
static struct reference *reference_list_find(struct reference_list *l, const char *key)
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
static struct reference *reference_list_add(struct reference_list *l, struct reference *r)
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
static void reference_list_drop(struct reference_list *l, struct reference *r)
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

/* The claim becomes as large as what is known by now. */
static int reference_reserve_known(const struct reference_want *w, struct err *e)
{
    if (!w->reservation || reservation_grow(w->reservation) || !w->yields)
        return 0;
    err_set(e, ERR_ENV, "%s: it needs more of the device than others leave", w->title);
    return err_lack(e, LACK_DEVICE);
}

/* Sets the words that errors name the task by. */
static void reference_name_task(struct reference_want *w)
{
    snprintf(w->title, sizeof w->title, w->variant ? "task '%.60s', variant '%s'" : "task '%.60s'", w->t->name,
             task_variant_name(w->t, w->variant));
}

/* ---- streamed ---- */

/* Receives draws of a streamed reference until draw i is there or it has ended. */
static int reference_more_draws(struct reference *r, size_t i, struct err *e)
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

/* *ret borrows draw i of a streamed reference. 1: it is there; 0: there are not so many; -1 with e. */
static int reference_streamed_draw(struct reference_held *h, size_t i, const struct ref_draw **ret, struct err *e)
{
    struct reference *r = h->ref;
    double t0 = now_s();
    int rc;

    rc = reference_more_draws(r, i, e);
    if (rc < 0 && e->kind == ERR_INPUT && r->n_draws) /* it has been fine before */
        e->kind = ERR_ENV;
    if (rc == 0 && i < r->n_draws)
        *ret = &r->draws[i];
    rc = rc < 0 ? -1 : i < r->n_draws;
    h->seconds += now_s() - t0;
    return rc;
}

/* Receives the first draw of a streamed reference. */
static int reference_make_streamed(struct reference *r, const struct reference_want *w, struct err *e)
{
    r->n_most = (size_t)w->o->trials * REGIMES;
    r->draws = xcalloc(r->n_most, sizeof *r->draws);
    if (reference_more_draws(r, 0, e) < 0)
        return -1;
    if (r->n_draws == 0)
        return err_set(e, ERR_BUG, "the reference side sent no draws");
    if (json_array_size(r->draws[0].mutates)) /* what a candidate writes there would be what is expected to be read */
        return 1;
    return streamed_facts(r->streamed, &r->f, e) < 0 ? -1 : reference_parse_rest(r, e);
}

/* What is kept on the device and claimed by nobody leaves room for what is claimed. */
static void reference_make_room(const struct reference_want *w)
{
    struct judge_kept *k = w->sv->kept;
    size_t room = schedule_room(&w->sv->schedule);

    if (!reference_list_fit(k, room) && k->baselines_stop)
        k->baselines_stop(k, false, 0);
}

/* out: -1 is not known; as large as the inputs then. */
static int reference_reserve_streamed(const struct reference_want *w, int64_t state, int64_t in, int64_t out,
                                      struct err *e)
{
    struct need need = need_estimate((size_t)state, (size_t)in, (size_t)(out < 0 ? in : out));

    if (!w->reservation)
        return 0;
    reservation_learn(w->reservation, &need);
    if (reference_reserve_known(w, e) < 0)
        return -1;
    reference_make_room(w);
    return 0;
}

/* 0; 1: the task is small, and its values are better cached; -1. */
static int reference_lay_out(struct reference *r, const struct reference_want *w, const json_t *told, bool always,
                             struct err *e)
{
    int64_t state = json_i64(told, "state_bytes", 0), in = json_i64(told, "input_bytes", 0);

    if (reference_reserve_streamed(w, state, in, -1, e) < 0 || streamed_learn(r->streamed, e) < 0)
        return -1;
    if (!always && !streamed_worth(r->streamed))
        return 1;
    told = r->streamed->inputs; /* more than before the inputs were made */
    in = json_i64(told, "nbytes", 0);
    if (reference_reserve_streamed(w, state, in, json_i64(told, "output_bytes", -1), e) < 0 ||
        streamed_areas(r->streamed, e) < 0)
        return -1;
    return reference_make_streamed(r, w, e);
}

#define REFERENCE_RESTS 6 /* streamed references that nobody uses, while others want processes */

/* Where more rest, the one that has rested longest is given up: its process is a spare one then. */
static void reference_thin_list(struct judge_kept *k)
{
    struct reference *r = NULL;
    int n = 0;

    pthread_mutex_lock(&k->lock);
    for (int i = 0; i < REFERENCE_LIST && k->refs.items[i]; i++)
        if (k->refs.items[i]->users == 0 && k->refs.items[i]->streamed && ++n > REFERENCE_RESTS)
            r = k->refs.items[i];
    if (r)
        reference_list_drop(&k->refs, r);
    pthread_mutex_unlock(&k->lock);
    if (r)
        reference_free(r);
}

/* Starts the process of a streamed reference on the judge's device. */
static int reference_start_process(struct reference *r, struct device_context *k, const struct reference_want *w,
                                   struct err *e)
{
    struct device_lock share = {0};
    int rc = -1;

    if (!spares_count(w->sv->kept))
        reference_thin_list(w->sv->kept);
    if (reference_share_device(w, &share, e) == 0 && device_context_open(k, w->sv->backend, e) == 0)
        rc = streamed_start(w, k, &r->streamed, e);
    device_lock_drop(&share);
    return rc;
}

/* A model is constructed without the device: whoever wants to time something would wait for that. As
 * reference_lay_out. */
static int reference_start_streamed(struct reference *r, struct device_context *k, const struct reference_want *w,
                                    bool always, struct err *e)
{
    struct device_lock share = {0};
    const json_t *told;
    int rc;

    if (reference_start_process(r, k, w, e) < 0 || streamed_construct(r->streamed, &told, e) < 0 ||
        reference_share_device(w, &share, e) < 0)
        return -1;
    rc = reference_lay_out(r, w, told, always, e);
    device_lock_drop(&share);
    return rc;
}

/* The kept reference of that key with a user more; NULL: none. */
static struct reference *reference_streamed_known(struct judge_kept *k, const char *key)
{
    struct reference *r;

    pthread_mutex_lock(&k->lock);
    r = reference_list_find(&k->refs, key);
    pthread_mutex_unlock(&k->lock);
    return r;
}

/* It joins the list, or is freed. */
static int reference_make_listed(struct device_context *k, const struct reference_want *w, bool always, const char *key,
                                 struct reference **ret, struct err *e)
{
    struct reference *r = xcalloc(1, sizeof *r), *old;
    int rc;

    r->users = 1;
    memcpy(r->key, key, sizeof r->key);
    if ((rc = reference_start_streamed(r, k, w, always, e)) != 0) {
        reference_free(r);
        return rc;
    }
    pthread_mutex_lock(&w->sv->kept->lock);
    old = reference_list_add(&w->sv->kept->refs, r);
    pthread_mutex_unlock(&w->sv->kept->lock);
    if (old)
        reference_free(old);
    *ret = r;
    return 0;
}

/* 0, 1: not streamed, -1. References of other tasks are made beside this one, as far as claims let their jobs in. */
static int reference_get_streamed(const struct reference_want *w, bool always, struct reference **ret, struct err *e)
{
    struct device_context *k = device_context_of(&w->sv->kept->contexts, w->t->sha256);
    char key[65];
    int rc = 0;

    if (reference_reserve_known(w, e) < 0) /* somebody may have learned it since the job came in */
        return -1;
    reference_key(w, true, key);
    if ((*ret = reference_streamed_known(w->sv->kept, key)))
        return 0;
    pthread_mutex_lock(&k->making);
    if (!(*ret = reference_streamed_known(w->sv->kept, key)))
        rc = reference_reserve_known(w, e) < 0 ? -1 : reference_make_listed(k, w, always, key, ret, e);
    pthread_mutex_unlock(&k->making);
    return rc;
}

int reference_draw(struct reference_held *h, size_t i, const struct ref_draw **ret, struct err *e)
{
    struct reference *r = h->ref;

    if (r->streamed)
        return reference_streamed_draw(h, i, ret, e);
    if (i >= r->n_draws)
        return 0;
    *ret = &r->draws[i];
    return 1;
}

int reference_all(struct reference_held *h, struct err *e)
{
    const struct ref_draw *d;
    size_t i = h->ref->n_draws;
    int rc;

    while ((rc = reference_draw(h, i, &d, e)) == 1)
        i++;
    return rc;
}

/* ---- in frames ---- */

/* *ret is a reference whose values are all in memory: a kept one of the same key, or a new one. It counts a user. */
static int reference_get_in_frames(const struct reference_want *w, struct reference **ret, struct err *e)
{
    struct judge_kept *k = w->sv->kept;
    struct reference *r, *other, *old = NULL;
    char key[65];

    reference_key(w, false, key);
    pthread_mutex_lock(&k->lock);
    r = reference_list_find(&k->refs, key);
    pthread_mutex_unlock(&k->lock);
    if (r) {
        *ret = r;
        return 0;
    }
    r = xcalloc(1, sizeof *r);
    r->users = 1;
    memcpy(r->key, key, sizeof key);
    if (reference_find(key, w, &r->f, e) < 0 || reference_parse(r, e) < 0) {
        reference_free(r);
        return -1;
    }
    pthread_mutex_lock(&k->lock);
    if ((other = reference_list_find(&k->refs, key)))
        old = r, r = other;
    else
        old = reference_list_add(&k->refs, r);
    pthread_mutex_unlock(&k->lock);
    if (old)
        reference_free(old);
    *ret = r;
    return 0;
}

/* May the task be streamed? always: however small it is (tests). What has been cached as bytes stays that. */
static bool reference_streams(const struct reference_want *w, bool *ret_always)
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

/* One try to get the reference that h wants: streamed where its size asks for it, else in frames. */
static int reference_get_once(struct reference_held *h, struct err *e)
{
    bool always;
    int rc = 1;

    if (reference_streams(&h->want, &always))
        rc = reference_get_streamed(&h->want, always, &h->ref, e);
    return rc == 1 ? reference_get_in_frames(&h->want, &h->ref, e) : rc;
}

/* What fails in a process that has served others is asked again of a new one. */
int reference_get(struct reference_held *h, struct err *e)
{
    bool used = false;
    int rc;

    reference_name_task(&h->want);
    h->want.used = &used;
    rc = reference_get_once(h, e);
    if (rc < 0 && used && e->kind != ERR_STOP) {
        *e = (struct err)ERR_INIT;
        h->want.anew = true;
        rc = reference_get_once(h, e);
        h->want.anew = false;
    }
    h->want.used = NULL;
    return rc;
}

int reference_own(struct reference_held *h, struct err *e)
{
    while (h->ref->streamed && !h->owns) {
        pthread_mutex_lock(&h->ref->streamed->lock);
        h->owns = true;
        if (!h->ref->streamed->broken) /* by who had it before */
            return 0;
        reference_release(h);
        if (reference_get(h, e) < 0)
            return -1;
    }
    return 0;
}

/* What is broken leaves the list before the next one can have it. */
static void reference_disown(struct reference_held *h)
{
    struct judge_kept *k = h->want.sv->kept;

    if (h->ref->streamed->broken) {
        pthread_mutex_lock(&k->lock);
        reference_list_drop(&k->refs, h->ref);
        pthread_mutex_unlock(&k->lock);
    }
    pthread_mutex_unlock(&h->ref->streamed->lock);
    h->owns = false;
}

void reference_release(struct reference_held *h)
{
    struct reference *r = h->ref;
    bool last;

    if (!r)
        return;
    if (h->owns)
        reference_disown(h);
    h->ref = NULL;
    pthread_mutex_lock(&h->want.sv->kept->lock);
    if (r->listed && r->users == 1 && !reference_is_kept(&h->want))
        reference_list_drop(&h->want.sv->kept->refs, r);
    last = --r->users == 0 && !r->listed;
    pthread_mutex_unlock(&h->want.sv->kept->lock);
    if (last)
        reference_free(r);
}

/* The bytes that an unused reference keeps on the device. */
static size_t reference_rests(const struct reference *r)
{
    return r->users == 0 && r->streamed ? streamed_rests(r->streamed) : 0;
}

/* Under the lock: the last of those that nobody uses, from where their sum is more than 'room'; NULL: they fit, and
 * *room is what they leave of it. */
static struct reference *reference_list_too_much(const struct reference_list *l, size_t *ret_room)
{
    struct reference *r = NULL;
    size_t room = *ret_room;

    for (int i = 0; i < REFERENCE_LIST && l->items[i]; i++) {
        size_t n = reference_rests(l->items[i]);

        if (n > room)
            r = l->items[i];
        else
            room -= n;
    }
    *ret_room = r ? *ret_room : room;
    return r;
}

bool reference_list_fit(struct judge_kept *k, size_t room)
{
    struct reference *r;
    bool all = true;

    do {
        pthread_mutex_lock(&k->lock);
        if ((r = reference_list_too_much(&k->refs, &room)))
            reference_list_drop(&k->refs, r);
        pthread_mutex_unlock(&k->lock);
        if (r)
            reference_free(r);
        all = all && !r;
    } while (r);
    spares_fit(k, room / SCHEDULE_CONTEXT);
    return all;
}

void reference_list_free(struct judge_kept *k)
{
    for (int i = 0; i < REFERENCE_LIST; i++) {
        struct reference *r = k->refs.items[i];

        if (r && r->streamed)
            r->streamed->broken = true; /* its process serves nobody else */
        if (r)
            reference_free(r);
    }
    memset(k->refs.items, 0, sizeof k->refs.items);
    spares_fit(k, 0);
}
