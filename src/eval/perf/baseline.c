/* baseline.c - see baseline.h. */
#include "eval/perf/baseline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "eval/reference/reference.h"
#include "eval/reference/streamed.h"
#include "eval/schedule/schedule.h"
#include "store/seal.h"
#include "store/store.h"

#define START_S 120.0
#define BLOCK_S 60.0
#define BASELINE_MAX_FILE ((size_t)1 << 20)
double baseline_compile_s = 180;

/* ---- the conversation ---- */

/* One request that must be answered "ok". -1: refused or broken (then *ret_fault is not FRAME_OK). r: what rides
 * along. */
static int baseline_ask_for(struct baseline *b, json_t *req, struct rpc r, double timeout_s, struct frame *ret,
                            enum frame_fault *ret_fault, struct err *e)
{
    struct frame f;

    r.fd = b->child->fd;
    r.who = "baseline";
    r.deadline = now_s() + timeout_s;
    if (rpc(&r, req, &f, ret_fault, e) < 0)
        return -1;
    if (strcmp(json_str(f.head, "op", ""), "ok")) {
        err_set(e, ERR_ENV, "%.80s: %.300s", json_str(f.head, "type", "?"), json_str(f.head, "message", ""));
        err_lack(e, json_flag(f.head, "memory", false) ? LACK_DEVICE : LACK_NONE);
        frame_free(&f);
        return -1;
    }
    if (ret)
        *ret = f;
    else
        frame_free(&f);
    return 0;
}

static int baseline_ask(struct baseline *b, const char *op, double timeout_s, struct frame *ret,
                        enum frame_fault *ret_fault, struct err *e)
{
    return baseline_ask_for(b, json_pack("{s:s}", "op", op), (struct rpc){.blob = NULL}, timeout_s, ret, ret_fault, e);
}

/* A request (taken) that reads the section s, whose bytes ride along. */
static int baseline_ask_bytes(struct baseline *b, json_t *req, const struct section *s, struct frame *ret,
                              struct err *e)
{
    return baseline_ask_for(b, req, (struct rpc){.blob = s->bytes, .n_blob = s->n}, START_S, ret, NULL, e);
}

/* Has the child construct the reference's model. */
static int baseline_load(struct baseline *b, const struct reference_held *h, const struct baseline_place *p,
                         struct err *e)
{
    json_t *req = json_pack("{s:s,s:s,s:O,s:I,s:s,s:s,s:b,s:s?}", "op", "load", "source", h->want.t->code, "init",
                            h->ref->init.tree, "seed", (json_int_t)h->ref->init_seed, "mode", h->ref->mode, "device",
                            p->device, "tf32", p->tf32, "dtype", h->ref->dtype);

    return baseline_ask_bytes(b, req, &h->ref->init, NULL, e);
}

/* Gives the child the reference's parameter values. */
static int baseline_params(struct baseline *b, const struct reference_held *h, struct err *e)
{
    const json_t *list = json_object_get(h->ref->state_values.tree, "v"), *row;
    json_t *rows = json_array();
    size_t i;

    json_array_foreach(h->ref->state, i, row)
        json_array_append_new(rows, json_pack("{s:s,s:O}", "name", json_str(row, "name", ""), "value",
                                              json_array_get(list, i)));
    return baseline_ask_bytes(b, json_pack("{s:s,s:o}", "op", "params", "values", rows), &h->ref->state_values,
                              NULL, e);
}

/* Draws as the task's authors made them, or the regime that is most like torch.rand. */
const struct ref_draw *baseline_base(const struct reference *r)
{
    static const char *const wish[] = {REGIME_SECRET, "task", "kernelbench", "uniform", "normal"};

    for (size_t k = r->has_second ? 0 : 1; k < sizeof wish / sizeof *wish; k++)
        for (size_t i = 0; i < r->n_draws; i++)
            if (!strcmp(r->draws[i].regime, wish[k]))
                return &r->draws[i];
    return &r->draws[0];
}

/* A streamed task's inputs: the area itself, in which a draw lies. */
static int baseline_show_area(struct baseline *b, struct reference *r, const struct ref_draw *base, struct frame *ret,
                              struct err *e)
{
    struct streamed *s = r->streamed;
    int fd = -1, rc;

    if (streamed_bind(s, base, false, e) < 0)
        return -1;
    device_context_lock(s->device_context);
    rc = device_export(&s->area, &fd, e);
    device_context_unlock(s->device_context);
    if (rc < 0)
        return -1;
    b->area_of = s->number;
    rc = baseline_ask_for(b, json_pack("{s:s,s:o,s:O,s:O,s:s}", "op", "inputs", "area", device_context_spec(&s->area),
                                       "inputs", json_object_get(s->inputs, "tree"), "kinds",
                                       json_object_get(s->inputs, "kinds"),
                                       "regime", base->regime), (struct rpc){.fds = &fd, .n_fds = 1}, START_S, ret,
                                       NULL, e);
    close(fd);
    return rc;
}

/* Hands the baseline's process the inputs of a draw. */
static int baseline_put_draw(struct baseline *b, const struct ref_draw *base, struct frame *ret, struct err *e)
{
    json_t *req = json_pack("{s:s,s:O}", "op", "put", "inputs", base->inputs.tree);

    return baseline_ask_bytes(b, req, &base->inputs, ret, e);
}

/* Gives the child the inputs, by value or in shared memory. */
static int baseline_put(struct baseline *b, struct reference *r, struct err *e)
{
    const struct ref_draw *base = baseline_base(r);
    struct frame f;

    if (r->streamed ? baseline_show_area(b, r, base, &f, e) < 0 : baseline_put_draw(b, base, &f, e) < 0)
        return -1;
    b->fresh = json_incref(json_object_get(f.head, "fresh"));
    b->facts = json_incref(json_object_get(f.head, "facts"));
    b->work = (struct perf_work){json_f64(b->facts, "bytes_read", 0), json_f64(b->facts, "bytes_written", 0),
                                 json_f64(b->facts, "flops", 0), json_flag(b->facts, "one_library_call", false)};
    frame_free(&f);
    return 0;
}

static bool baseline_cache_load(const struct baseline *b, const char *what, struct perf_estimate *ret, char **ret_text);

/* The process that may start compilers comes from a fork server that imports for seconds: only where compile's ratio to
 * eager is not known from before. */
static bool baseline_needs_compiler(struct baseline *b, const struct reference_held *h)
{
    if (h->want.o->compile_baseline && !b->compile_known)
        b->compile_known = baseline_cache_load(b, h->want.o->compile_mode, &b->compile_of_eager, &b->compile_error);
    return h->want.o->compile_baseline && !b->compile_known;
}

void baseline_check(struct baseline *b, const struct reference_held *h)
{
    uint64_t area = h->ref->streamed ? h->ref->streamed->number : 0;

    baseline_lock(b);
    if (b->child && !b->compiling && (b->area_of != area || (!b->compiles && baseline_needs_compiler(b, h))))
        baseline_give_up(b);
    baseline_unlock(b);
}

int baseline_start(struct baseline *b, const struct reference_held *h, const struct baseline_place *p, struct err *e)
{
    struct server_child spec = {.role = p->role, .compiles = baseline_needs_compiler(b, h), .published = p->tf32,
                                .jail = {.memory_bytes = (size_t)24 << 30, .tmp_bytes = (size_t)1 << 30, .pids = 256}};
    struct err why = ERR_INIT;

    if (b->child)
        return 0;
    if (server_spawn(h->want.sv, &spec, &b->child, e) < 0) {
        b->child = NULL;
        return -1;
    }
    b->compiles = spec.compiles;
    /* Where no answer of it is compared its parameters are its own: they may be of gigabytes. */
    if (baseline_load(b, h, p, &why) == 0 && (h->ref->streamed || baseline_params(b, h, &why) == 0) &&
        baseline_put(b, h->ref, &why) == 0)
        return 0;
    baseline_give_up(b);
    err_set(e, why.kind, "no baseline of task '%.100s': %.600s", h->want.t->name, why.msg);
    return err_lack(e, why.lack);
}

void baseline_give_up(struct baseline *b)
{
    struct child_end end = {0};

    if (!b->child)
        return;
    child_kill(b->child);
    if (child_wait(b->child, now_s() + 10, &end, NULL) == 0) {
        if (end.output.n)
            log_debug("baseline printed: %.2000s", end.output.p);
        buf_free(&end.output);
    }
    child_free(b->child);
    b->child = NULL;
    json_decref(b->fresh);
    json_decref(b->facts);
    b->fresh = b->facts = NULL;
    b->compile_made = b->library_made = false;
    b->area_of = 0;
}

/* ---- the list ---- */

static void baseline_free(struct baseline *b)
{
    baseline_give_up(b);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->shown.lock);
    pthread_cond_destroy(&b->shown.change);
    free(b->compile_error);
    free(b->library_call);
    free(b);
}

/* Everything that a baseline's times depend on. */
static void baseline_key(const struct reference_held *h, const struct baseline_place *p, char ret[65])
{
    struct sha256 sum;

    sha256_start(&sum);
    sha256_adds(&sum, h->ref->key); /* task, sizes, seed, protocol, our own code */
    sha256_adds(&sum, p->machine);
    sha256_adds(&sum, p->device);
    sha256_adds(&sum, p->tf32 ? "tf32" : "ieee");
    sha256_end(&sum, ret);
}

/* Under the lock: the item, moved to the list's front; made if absent. An idle one falls off the end into *ret_old. */
static struct baseline *baseline_list_take(struct baseline_list *l, const char *key, struct baseline **ret_old)
{
    struct baseline *b = NULL;
    int at = 0;

    *ret_old = NULL;
    while (at < BASELINE_LIST && l->items[at] && strcmp(l->items[at]->key, key))
        at++;
    if (at < BASELINE_LIST)
        b = l->items[at];
    for (int i = BASELINE_LIST - 1; at == BASELINE_LIST && i >= 0; i--)
        if (l->items[i]->users == 0) {
            *ret_old = l->items[i];
            at = i;
        }
    if (!b) {
        b = xcalloc(1, sizeof *b);
        snprintf(b->key, sizeof b->key, "%s", key);
        pthread_mutex_init(&b->lock, NULL);
        pthread_mutex_init(&b->shown.lock, NULL);
        pthread_cond_init(&b->shown.change, NULL);
        b->compile_of_eager.value = b->library_of_eager.value = NAN;
    }
    if (at == BASELINE_LIST) /* all in use: this one is not listed, and freed by its last user */
        return b->users++, b;
    memmove(&l->items[1], &l->items[0], (size_t)at * sizeof *l->items);
    l->items[0] = b;
    b->users++;
    return b;
}

/* Under the lock: true where the list still has this baseline. */
static bool baseline_listed(const struct baseline_list *l, const struct baseline *b)
{
    for (int i = 0; i < BASELINE_LIST; i++)
        if (l->items[i] == b)
            return true;
    return false;
}

void baseline_lock(struct baseline *b)
{
    pthread_mutex_lock(&b->lock);
}

void baseline_unlock(struct baseline *b)
{
    pthread_mutex_lock(&b->shown.lock);
    b->shown.compiling = b->compiling;
    b->shown.started = b->child && (b->library_known || b->library_made);
    b->shown.compile_settled = b->compile_known || b->compile_made;
    pthread_cond_broadcast(&b->shown.change);
    pthread_mutex_unlock(&b->shown.lock);
    pthread_mutex_unlock(&b->lock);
}

int baseline_wait(struct baseline *b, struct err *e)
{
    struct timespec until;

    pthread_mutex_lock(&b->shown.lock);
    while (b->shown.compiling && !stop_requested()) {
        until = stop_look_again();
        pthread_cond_clockwait(&b->shown.change, &b->shown.lock, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&b->shown.lock);
    return stop_requested() ? err_set(e, ERR_STOP, "interrupted") : 0;
}

bool baseline_ready(struct baseline *b, bool with_compile)
{
    bool ready;

    pthread_mutex_lock(&b->shown.lock);
    ready = b->shown.started && !b->shown.compiling && (!with_compile || b->shown.compile_settled);
    pthread_mutex_unlock(&b->shown.lock);
    return ready;
}

struct baseline *baseline_get(const struct reference_held *h, const struct baseline_place *p)
{
    struct judge_kept *k = h->want.sv->kept;
    struct baseline *b, *old;
    char key[65];

    baseline_key(h, p, key);
    pthread_mutex_lock(&k->lock);
    if (!k->baselines)
        k->baselines = xcalloc(1, sizeof *k->baselines);
    k->baselines_stop = baseline_list_stop;
    b = baseline_list_take(k->baselines, key, &old);
    pthread_mutex_unlock(&k->lock);
    if (old)
        baseline_free(old);
    return b;
}

/* Gives up a user; the last one of an unlisted baseline frees it. */
static void baseline_let_go(struct judge_kept *k, struct baseline *b)
{
    bool last;

    pthread_mutex_lock(&k->lock);
    last = --b->users == 0 && !baseline_listed(k->baselines, b);
    pthread_mutex_unlock(&k->lock);
    if (last)
        baseline_free(b);
}

/* Ends the processes of all kept baselines. */
void baseline_list_free(struct judge_kept *k)
{
    for (int i = 0; k->baselines && i < BASELINE_LIST; i++)
        if (k->baselines->items[i])
            baseline_free(k->baselines->items[i]);
    free(k->baselines);
    k->baselines = NULL;
}

/* Whoever holds one locked or has it compile sees its process die, if it does: waiting here, it might wait for us. */
void baseline_list_stop(struct judge_kept *k, bool all, int idle)
{
    struct baseline *items[BASELINE_LIST] = {NULL}, *b;
    bool ours;

    pthread_mutex_lock(&k->lock);
    for (int i = 0; k->baselines && i < BASELINE_LIST; i++)
        if ((b = k->baselines->items[i]) && (all || (b->users == 0 && b->child && idle-- <= 0)))
            items[i] = b, b->users++;
    pthread_mutex_unlock(&k->lock);
    for (int i = 0; i < BASELINE_LIST; i++) {
        if (!items[i])
            continue;
        if (pthread_mutex_trylock(&items[i]->lock) == 0) {
            pthread_mutex_lock(&k->lock);
            ours = !items[i]->compiling && (all || items[i]->users == 1);
            pthread_mutex_unlock(&k->lock);
            if (ours)
                baseline_give_up(items[i]);
            baseline_unlock(items[i]);
        }
        baseline_let_go(k, items[i]);
    }
}

void baseline_release(struct judge_kept *k, struct baseline *b)
{
    if (!b)
        return;
    baseline_let_go(k, b);
    baseline_list_stop(k, false, BASELINE_IDLE);
}

void baseline_rest(struct baseline *b)
{
    struct err e = ERR_INIT;

    if (b->child && baseline_ask(b, "rest", BLOCK_S, NULL, NULL, &e) < 0) {
        log_debug("baseline: %s", e.msg);
        baseline_give_up(b);
    }
}

/* ---- what is kept between runs ---- */

/* The cache file of this baseline's times in a mode; the caller frees. */
static char *baseline_cache_path(const struct baseline *b, const char *mode)
{
    char *folder = path_cache("baseline"), key[65], *path;
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, b->key);
    sha256_adds(&h, mode);
    sha256_end(&h, key);
    path = artefact_path(folder, key, ".json");
    free(folder);
    return path;
}

/* {"of_eager":[value,lo,hi],"text"}: a quotient, and why there is none or what was measured. */
static bool baseline_cache_load(const struct baseline *b, const char *what, struct perf_estimate *ret, char **ret_text)
{
    char *path = baseline_cache_path(b, what);
    json_t *v = NULL;
    const json_t *r;
    struct buf kept;
    bool found;

    buf_init(&kept, BASELINE_MAX_FILE);
    if (seal_read(path, &kept))
        v = json_parse(kept.p + SEAL_HEAD, kept.n - SEAL_HEAD, path, NULL);
    buf_free(&kept);
    r = json_object_get(v, "of_eager");
    found = json_array_size(r) == 3;
    if (found) {
        *ret = (struct perf_estimate){json_num_value(json_array_get(r, 0)), json_num_value(json_array_get(r, 1)),
                                      json_num_value(json_array_get(r, 2))};
        free(*ret_text);
        *ret_text = *json_str(v, "text", "") ? xstrdup(json_str(v, "text", "")) : NULL;
    }
    json_decref(v);
    free(path);
    return found;
}

/* Keeps a baseline's ratio to eager, with its interval, in the cache folder. A failure is logged alone. */
static void baseline_cache_save(const struct baseline *b, const char *what, const struct perf_estimate *x,
                                const char *text)
{
    char *path = baseline_cache_path(b, what);
    json_t *v = json_pack("{s:[o,o,o],s:s?}", "of_eager", json_num(x->value), json_num(x->lo), json_num(x->hi), "text",
                          text);
    char *said = json_text(v);
    struct err e = ERR_INIT;

    if (seal_write(path, &(struct seal_part){said, strlen(said)}, 1, &e) < 0)
        log_debug("baseline cache: %s", e.msg);
    json_decref(v);
    free(said);
    free(path);
}

/* Times 'which' against eager, in turn: their quotient. fault->error is set when a call raised. */
static int baseline_time_other(struct baseline *b, const char *which, const struct measure_plan *p,
                               struct perf_estimate *ret, struct measure_fault *fault, struct err *e)
{
    struct measure_side eager = {.fd = b->child->fd, .which = "eager", .timeout_s = BLOCK_S};
    struct measure_side other = {.fd = b->child->fd, .which = which, .timeout_s = BLOCK_S};
    struct measure_calls num, den;
    int rc = measure_pair(&eager, &other, p, fault, e);

    if (rc == 0) {
        measure_calls(&other.calls, TIMING_COLD, &num);
        measure_calls(&eager.calls, TIMING_COLD, &den);
        *ret = perf_ratio(&num.c, &den.c, hash64(b->key, strlen(b->key), 0));
        measure_calls_free(&num);
        measure_calls_free(&den);
    }
    measure_side_free(&eager);
    measure_side_free(&other);
    return rc;
}

/* ---- torch.compile ---- */

/* Notes why torch.compile cannot be timed. */
static void baseline_no_compile(struct baseline *b, const char *why)
{
    free(b->compile_error);
    b->compile_error = xstrdup(why);
    b->compile_known = true;
}

bool baseline_begin_compile(struct baseline *b, const char *mode)
{
    if (!b->child || b->compiling || b->compile_known || b->compile_made ||
        (b->compile_known = baseline_cache_load(b, mode, &b->compile_of_eager, &b->compile_error)))
        return false;
    return b->compiling = true;
}

/* What the process says next, with its answer to a request that means "lend me the device" given. 1: it has ended
 * the conversation with *ret; 0: it goes on. -1: broken, or (*ret_ours) we could not lend. Time spent waiting moves
 * *deadline. */
static int baseline_compile_step(int fd, struct schedule *device, struct device_lock *share, double *deadline,
                                 struct frame *ret, enum frame_fault *ret_fault, bool *ret_ours, struct err *e)
{
    double start;
    json_t *go;
    int rc;

    if (frame_recv(fd, (size_t)1 << 20, 1, *deadline, ret, ret_fault, e) < 0)
        return -1;
    if (!strcmp(json_str(ret->head, "op", ""), "rest")) {
        frame_free(ret);
        device_lock_drop(share);
        return 0;
    }
    if (strcmp(json_str(ret->head, "op", ""), "device"))
        return 1;
    frame_free(ret);
    start = now_s();
    if (!share->s && device_lock_take(device, false, share, e) < 0) {
        *ret_ours = true;
        return -1;
    }
    trace_span(start, "wait", "device, to compile");
    *deadline += now_s() - start;
    go = json_pack("{s:s}", "op", "go");
    rc = frame_send(fd, go, NULL, 0, *deadline, ret_fault, e);
    json_decref(go);
    return rc;
}

/* The whole conversation; *share may be held at its end. 1: *ret is "ok" or "error". -1 as baseline_compile_step. */
static int baseline_compile_talk(int fd, const char *mode, struct schedule *device, struct device_lock *share,
                                 struct frame *ret, enum frame_fault *ret_fault, bool *ret_ours, struct err *e)
{
    json_t *req = json_pack("{s:s,s:s}", "op", "compile", "mode", mode);
    double deadline = now_s() + baseline_compile_s;
    int rc = frame_send(fd, req, NULL, 0, deadline, ret_fault, e);

    json_decref(req);
    while (rc == 0)
        rc = baseline_compile_step(fd, device, share, &deadline, ret, ret_fault, ret_ours, e);
    return rc;
}

/* Takes the answer about a compiled baseline; the caller holds the lock. A reason that lies in the task is cached,
 * one of missing memory is not. */
static void baseline_compile_answered(struct baseline *b, const char *mode, const struct frame *f)
{
    char why[400];

    if (!strcmp(json_str(f->head, "op", ""), "ok")) {
        b->compile_made = true;
        log_debug("compiled in %.1f s, with %lld times the device after %.1f s of waiting",
                  json_f64(f->head, "seconds", 0), (long long)json_i64(f->head, "asked", 0),
                  json_f64(f->head, "waited_s", 0));
        if (json_i64(f->head, "asked", 0) == 0)
            log_warn("torch.compile ran a model without asking for the device");
        return;
    }
    snprintf(why, sizeof why, "%.80s: %.300s", json_str(f->head, "type", "?"), json_str(f->head, "message", ""));
    baseline_no_compile(b, why);
    if (!json_flag(f->head, "memory", false))
        baseline_cache_save(b, mode, &b->compile_of_eager, b->compile_error);
}

int baseline_compile(struct baseline *b, const char *mode, struct schedule *device, struct err *e)
{
    enum frame_fault fault = FRAME_OK;
    struct device_lock share = {0};
    struct err why = ERR_INIT;
    struct frame f;
    bool ours = false;
    int rc = baseline_compile_talk(b->child->fd, mode, device, &share, &f, &fault, &ours, &why);

    ours = ours || why.kind == ERR_STOP;
    if (rc != 1 && !share.s)
        device_lock_take(device, false, &share, NULL); /* its end is work for the device */
    baseline_lock(b);
    if (rc == 1) {
        baseline_compile_answered(b, mode, &f);
        frame_free(&f);
    } else {
        if (!ours)
            baseline_no_compile(b, fault == FRAME_LATE ? "Timeout: torch.compile did not finish"
                                                       : "Crash: torch.compile ended its process");
        baseline_give_up(b); /* before others may believe that nothing of it is on the device */
    }
    b->compiling = false;
    baseline_unlock(b);
    device_lock_drop(&share);
    if (rc == 1 || !ours)
        return 0;
    *e = why;
    return -1;
}

/* Its user was stopped in the middle of an answer: that says nothing of the task, and nobody may read the answer. */
static bool baseline_given_up(struct baseline *b, const struct err *e)
{
    if (e->kind != ERR_STOP)
        return false;
    baseline_give_up(b);
    return true;
}

void baseline_time_compiled(struct baseline *b, const char *mode, const struct measure_plan *p)
{
    struct measure_fault fault = {0};
    struct err e = ERR_INIT;

    if (b->compile_known || !b->compile_made)
        return;
    if (baseline_time_other(b, "compile", p, &b->compile_of_eager, &fault, &e) < 0) {
        if (!baseline_given_up(b, &e))
            baseline_no_compile(b, e.msg);
        if (!fault.error)
            baseline_give_up(b);
    } else {
        b->compile_known = true;
        baseline_cache_save(b, mode, &b->compile_of_eager, NULL);
    }
    json_decref(fault.error);
}

/* ---- a vendor's library ---- */

void baseline_library(struct baseline *b)
{
    struct err e = ERR_INIT;
    enum frame_fault fault = FRAME_OK;
    struct frame f;

    if (b->library_known || b->library_made ||
        (b->library_known = baseline_cache_load(b, "library", &b->library_of_eager, &b->library_call)))
        return;
    if (baseline_ask(b, "library", START_S, &f, &fault, &e) < 0) {
        if (baseline_given_up(b, &e))
            return;
        log_debug("no library call: %s", e.msg);
        b->library_known = true;
        if (fault != FRAME_OK)
            baseline_give_up(b);
        return;
    }
    b->library_made = true;
    free(b->library_call);
    b->library_call = *json_str(f.head, "call", "") ? xstrdup(json_str(f.head, "call", "")) : NULL;
    if (json_flag(f.head, "eager", false))
        b->library_of_eager = (struct perf_estimate){1, 1, 1};
    b->library_known = !b->library_call || b->library_of_eager.value == 1;
    if (b->library_known)
        baseline_cache_save(b, "library", &b->library_of_eager, b->library_call);
    frame_free(&f);
}

void baseline_time_library(struct baseline *b, const struct measure_plan *p)
{
    struct measure_fault fault = {0};
    struct err e = ERR_INIT;

    if (b->library_known || !b->child)
        return;
    if (baseline_time_other(b, "library", p, &b->library_of_eager, &fault, &e) < 0) {
        if (baseline_given_up(b, &e)) {
            json_decref(fault.error);
            return;
        }
        log_debug("the library call could not be timed: %s", e.msg);
        b->library_of_eager.value = NAN;
        if (!fault.error)
            baseline_give_up(b);
    } else {
        baseline_cache_save(b, "library", &b->library_of_eager, b->library_call);
    }
    b->library_known = true;
    json_decref(fault.error);
}
