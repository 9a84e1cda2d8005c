/* build_remote.c - see build_remote.h. First the side that asks, then the side that builds. */
#include "eval/build/build_remote.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build_target.h"
#include "queue/queue.h"
#include "store/blob.h"
#include "store/store.h"

#define ASK_S 900.0 /* how long a build may wait for a builder: then it is nobody's verdict */
#define SAY_S 10.0  /* after so long without an answer a line says what is waited for */
#define LOOK_S 0.25
#define PRIORITY 100 /* a candidate whose build is late holds its place meanwhile */
#define TOOLCHAINS 4

static const char *const file_names[] = {"module.so", "device.so", "device.cubin", "device.mubin"};

struct build_remote {
    char *url, *artefacts;
    struct build_place place;
    pthread_mutex_t lock;
    struct queue *idle[64]; /* connections between two builds */
    int n_idle;
    struct {
        char *asked, *id;
    } toolchains[TOOLCHAINS];
    int n_toolchains;
};

/* ---- connections ---- */

/* A queue that is away for a while is no build's fault, and no candidate's. Waits a moment; false: it is not that, it
 * was long enough, or we have to leave. */
static bool build_remote_sit_out(const struct err *why, double until)
{
    if (why->kind != ERR_ENV || now_s() > until || stop_requested())
        return false;
    log_warn("%s; the build that waits for an answer asks again", why->msg);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return true;
}

/* A connection to the queue, idle or new; waits up to ASK_S for a queue that does not answer. */
static struct queue *build_remote_connection(struct build_remote *b, struct err *e)
{
    double until = now_s() + ASK_S;
    struct queue *q = NULL;

    pthread_mutex_lock(&b->lock);
    if (b->n_idle)
        q = b->idle[--b->n_idle];
    pthread_mutex_unlock(&b->lock);
    while (!q && queue_open(b->url, &q, e) < 0)
        if (!build_remote_sit_out(e, until))
            return NULL;
    return q;
}

/* Keeps the connection for the next call, or closes it. */
static void build_remote_connection_back(struct build_remote *b, struct queue *q)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_idle < (int)(sizeof b->idle / sizeof *b->idle)) {
        b->idle[b->n_idle++] = q;
        q = NULL;
    }
    pthread_mutex_unlock(&b->lock);
    queue_close(q);
}

/* ---- asking ---- */

/* The job of a build queue. New. */
static json_t *build_remote_job_of(const json_t *request, const struct build_opts *o)
{
    return json_pack("{s:s,s:s?,s:b,s:b,s:f,s:O?}", "target", o->target ? o->target : "sim", "arch", o->arch,
                     "no_check", o->no_check, "whole", o->whole, "timeout", ceil(o->timeout_s), "request", request);
}

/* 1: it is new, 0: it was there, -1. */
static int build_remote_put(struct queue *q, const char *payload, const char *key, const char *lane, int64_t *id,
                            struct err *e)
{
    struct queue_item it = {.key = key, .payload = payload, .lane = lane, .owner = "build", .priority = PRIORITY};

    return queue_put(q, &it, id, e);
}

/* A job that ended without an answer: its reason, once it is forgotten. */
static int build_remote_gave_up(struct queue *q, int64_t id, const char *why, struct err *e)
{
    queue_forget(q, id, NULL);
    return err_set(e, ERR_ENV, "no worker could build it: %.600s", why && *why ? why : "the build was cancelled");
}

/* Until the job is answered. One that another asker has read and forgotten is put again: the builder knows it.
 * *ret_old: it had ended before we asked; its asker is gone, and so may be its artefacts. */
static char *build_remote_await_answer(struct queue *q, const char *payload, const char *key, const char *lane,
                                       bool *ret_old, struct err *e)
{
    double began = now_s();
    struct err why = ERR_INIT;
    bool said = false, looked = false;
    char *text = NULL;
    int64_t id;
    int state, is_new;

    *ret_old = false;
    while ((is_new = build_remote_put(q, payload, key, lane, &id, e)) < 0)
        if (!build_remote_sit_out(e, began + ASK_S))
            return NULL;
    for (;; looked = true, queue_wait_change(q, LOOK_S)) {
        state = queue_result(q, id, &text, &why);
        *ret_old = state >= QUEUE_DONE && !is_new && !looked;
        if (state == QUEUE_DONE)
            break;
        if (state > QUEUE_DONE) {
            build_remote_gave_up(q, id, text, e);
            free(text);
            return NULL;
        }
        if (state < 0 && (why.kind != ERR_INPUT || build_remote_put(q, payload, key, lane, &id, &why) < 0) &&
            !build_remote_sit_out(&why, began + ASK_S)) {
            err_set(e, stop_requested() ? ERR_STOP : why.kind, "%s", why.msg);
            return NULL;
        }
        if (stop_requested()) {
            err_set(e, ERR_STOP, "interrupted while a build waited for its worker");
            return NULL;
        }
        if (now_s() > began + ASK_S) {
            err_set(e, ERR_ENV,
                    "no worker took a build of lane '%s' in %.0f s; start 'musacoder worker --kind build'", lane,
                    ASK_S);
            return NULL;
        }
        if (!said && now_s() > began + SAY_S) {
            log_info("a build waits for a worker of lane '%s' ('musacoder worker --kind build')", lane);
            said = true;
        }
    }
    queue_forget(q, id, NULL);
    return text;
}

/* The queue's key of a build: "build-" and the payload's SHA-256. */
static void build_remote_key_of(const char *payload, char ret[80])
{
    char sha[65];

    sha256_hex(payload, strlen(payload), sha);
    snprintf(ret, 80, "build-%s", sha);
}

/* New; NULL: *e says why. The job is forgotten in both cases; ret_old: build_remote_await_answer's. */
static json_t *build_remote_ask(struct build_remote *b, const char *payload, const char *target, bool *ret_old,
                                struct err *e)
{
    struct queue *q = build_remote_connection(b, e);
    char key[80], *text = NULL, *lane = xasprintf("build:%s", target ? target : "sim");
    json_t *v = NULL;

    build_remote_key_of(payload, key);
    if (q)
        text = build_remote_await_answer(q, payload, key, lane, ret_old, e);
    if (text && !(v = json_parse(text, strlen(text), "a builder's answer", e)) && e)
        e->kind = ERR_ENV;
    if (q)
        build_remote_connection_back(b, q);
    free(text);
    free(lane);
    return v;
}

/* ---- the toolchain ---- */

/* What the builders answered to that question before; owned by the caller, NULL if nobody asked. */
static char *build_remote_known_toolchain(struct build_remote *b, const char *asked)
{
    char *id = NULL;

    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < b->n_toolchains && !id; i++)
        if (!strcmp(b->toolchains[i].asked, asked))
            id = xstrdup(b->toolchains[i].id);
    pthread_mutex_unlock(&b->lock);
    return id;
}

/* Remembers a toolchain's identity. */
static void build_remote_learn_toolchain(struct build_remote *b, const char *asked, const char *id)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_toolchains < TOOLCHAINS) {
        b->toolchains[b->n_toolchains].asked = xstrdup(asked);
        b->toolchains[b->n_toolchains++].id = xstrdup(id);
    }
    pthread_mutex_unlock(&b->lock);
}

/* The toolchain's identity as a build worker says it; asked once for each target and architecture. The caller frees;
 * NULL with e. */
static char *remote_toolchain(void *ctx, const struct build_opts *o, struct err *e)
{
    struct build_remote *b = ctx;
    struct build_opts named = {.target = o->target, .arch = o->arch};
    json_t *job = build_remote_job_of(NULL, &named), *v = NULL;
    char *asked = json_text(job), *id = build_remote_known_toolchain(b, asked);
    bool old = false;

    if (!id && ((v = build_remote_ask(b, asked, o->target, &old, e)) ||
                (old && (v = build_remote_ask(b, asked, o->target, &old, e))))) {
        id = xstrdup(json_str(v, "toolchain", ""));
        build_remote_learn_toolchain(b, asked, id);
    }
    json_decref(v);
    json_decref(job);
    free(asked);
    return id;
}

/* Verdicts are kept under the name of the toolchain that was asked for at the start. */
static int build_remote_same_toolchain(struct build_remote *b, const struct build_opts *o, const json_t *v,
                                       struct err *e)
{
    const char *now = json_str(v, "toolchain", "");
    char *id = remote_toolchain(b, o, e);
    int rc = !id               ? -1
             : strcmp(id, now) ? err_set(e, ERR_ENV,
                                         "a worker built with '%s', but this one began with '%s'; "
                                         "start it again",
                                         now, id)
                               : 0;

    free(id);
    return rc;
}

/* ---- unpacking ---- */

/* Appends an artefact's bytes to out, from the answer itself or from the store of artefacts. ERR_ENV: missing, or its
 * SHA-256 differs. */
static int build_remote_fetch(struct build_remote *b, const json_t *file, struct buf *out, struct err *e)
{
    const char *text = json_str(file, "base64", NULL), *want = json_str(file, "sha256", "");
    char sha[65];

    if (!text && !b->artefacts)
        return err_set(e, ERR_ENV,
                       "a build's artefact of %lld bytes is too large for the queue; give --artefacts to the workers "
                       "that build and to those that run",
                       (long long)json_i64(file, "size", 0));
    if ((text ? base64_read(text, out, e) : blob_get(b->artefacts, want, out, e)) < 0)
        return -1;
    sha256_hex(out->p, out->n, sha);
    return strcmp(sha, want)
               ? err_set(e, ERR_ENV, "a build's artefact is damaged: it should be %.16s and is %.16s", want, sha)
               : 0;
}

/* Writes one artefact of an answer to dir/name, readable and executable. */
static int build_remote_unpack_file(struct build_remote *b, const char *dir, const char *name, const json_t *file,
                                    struct err *e)
{
    char *path = path_join(dir, name);
    struct buf bytes;
    int rc;

    buf_init(&bytes, BUILD_MAX_IMAGE);
    rc = build_remote_fetch(b, file, &bytes, e);
    if (rc == 0)
        rc = file_write(path, bytes.p, bytes.n, e);
    if (rc == 0 && chmod(path, 0755) < 0)
        rc = err_sys(e, "cannot make '%s' readable", path);
    buf_free(&bytes);
    free(path);
    return rc;
}

/* Into a folder beside dir, which takes dir's name when all of it is there. */
static int build_remote_unpack_all(struct build_remote *b, const json_t *v, const char *dir, struct err *e)
{
    const json_t *files = json_object_get(v, "files"), *file;
    char *work = xasprintf("%s.work", dir), *result = path_join(work, "result.json");
    int rc;

    dir_remove(work, NULL);
    rc = dir_make(work, e);
    for (size_t i = 0; rc == 0 && i < sizeof file_names / sizeof *file_names; i++)
        if ((file = json_object_get(files, file_names[i])))
            rc = build_remote_unpack_file(b, work, file_names[i], file, e);
    if (rc == 0)
        rc = json_write(result, json_object_get(v, "build"), e);
    if (rc == 0)
        rc = build_publish(work, dir, e);
    dir_remove(work, NULL);
    free(result);
    free(work);
    return rc;
}

/* What does not come whole is never the candidate's fault. */
static int build_remote_unpack(struct build_remote *b, const json_t *v, const char *dir, struct err *e)
{
    struct err why = ERR_INIT;

    if (build_remote_unpack_all(b, v, dir, &why) == 0)
        return 0;
    return err_set(e, why.kind == ERR_STOP ? ERR_STOP : ERR_ENV, "%s", why.msg);
}

/* Turns a worker's answer into *ret and its files into dir. ERR_INPUT: the request was refused; ERR_ENV: the answer
 * is broken. */
static int build_remote_take_answer(struct build_remote *b, const json_t *v, const char *dir, struct build_result *ret,
                                    struct err *e)
{
    const json_t *build = json_object_get(v, "build");
    const char *refused = json_str(v, "refused", NULL);

    if (refused)
        return err_set(e, ERR_INPUT, "%s", refused);
    if (!json_is_object(build))
        return err_set(e, ERR_ENV, "a builder's answer holds no build");
    if (json_flag(build, "ok", false)) {
        if (!json_object_get(json_object_get(v, "files"), file_names[0]))
            return err_set(e, ERR_ENV, "a builder's answer holds no library");
        if (build_remote_unpack(b, v, dir, e) < 0)
            return -1;
    }
    build_result_read(ret, build, dir);
    ret->cached = json_flag(build, "cached", false);
    return 0;
}

/* Asks for one build. *ret_old: the answer was of an earlier toolchain. */
static int build_remote_ask_build(struct build_remote *b, const char *payload, const struct build_opts *o,
                                  const char *dir, struct build_result *ret, bool *ret_old, struct err *e)
{
    json_t *v = build_remote_ask(b, payload, o->target, ret_old, e);
    int rc = v ? build_remote_same_toolchain(b, o, v, e) : -1;

    if (rc == 0 && *ret_old && json_flag(json_object_get(v, "build"), "timed_out", false))
        rc = err_set(e, ERR_ENV, "its compiler ran out of time then");
    if (rc == 0)
        rc = build_remote_take_answer(b, v, dir, ret, e);
    json_decref(v);
    return rc;
}

/* What an old answer lacks (its files were tidied away, its builder had another toolchain, or gave up) says nothing
 * of today: the build is asked for once more. */
static int build_remote_run_locked(struct build_remote *b, const char *payload, const struct build_opts *o,
                                   const char *dir, struct build_result *ret, struct err *e)
{
    struct err why = ERR_INIT;
    bool old = false;

    if (!o->no_cache && build_cache_get(dir, ret))
        return 0;
    if (build_remote_ask_build(b, payload, o, dir, ret, &old, &why) == 0)
        return 0;
    if (!old || why.kind != ERR_ENV)
        return err_set(e, why.kind, "%s", why.msg);
    log_info("an old answer to a build was of no use (%.200s); it is asked for again", why.msg);
    return build_remote_ask_build(b, payload, o, dir, ret, &old, e);
}

/* Builds through the queue: takes the cached folder or asks a worker and unpacks its answer. As build_run. */
static int build_remote_run(void *ctx, const json_t *request, const struct build_opts *o, struct build_result *ret,
                            struct err *e)
{
    struct build_remote *b = ctx;
    struct build_result out = {.findings = json_array()};
    json_t *job = build_remote_job_of(request, o);
    char *payload = json_text(job), *toolchain = remote_toolchain(b, o, e), *dir, *lock, *root = path_cache("build");
    struct sha256 h;
    int fd = -1, rc = -1;

    sha256_start(&h);
    sha256_adds(&h, toolchain ? toolchain : "");
    sha256_adds(&h, payload);
    sha256_end(&h, out.key);
    dir = path_join(root, out.key);
    lock = xasprintf("%s.lock", dir);
    if (toolchain && dir_make(root, e) == 0 && (fd = lock_file(lock, BUILD_LOCK_WAIT_S, e)) >= 0)
        rc = build_remote_run_locked(b, payload, o, dir, &out, e);
    if (fd >= 0)
        close(fd);
    free(lock);
    free(dir);
    free(root);
    free(toolchain);
    free(payload);
    json_decref(job);
    if (rc < 0)
        build_result_free(&out);
    else
        *ret = out;
    return rc;
}

int build_remote_open(const char *queue, const char *artefacts, struct build_remote **ret, struct err *e)
{
    struct build_remote *b;
    struct queue *q;

    if ((artefacts && blob_check(artefacts, e) < 0) || queue_open(queue, &q, e) < 0)
        return -1;
    b = xcalloc(1, sizeof *b);
    b->url = xstrdup(queue);
    b->artefacts = artefacts ? xstrdup(artefacts) : NULL;
    b->place = (struct build_place){.ctx = b, .run = build_remote_run, .toolchain_id = remote_toolchain};
    pthread_mutex_init(&b->lock, NULL);
    build_remote_connection_back(b, q);
    build_elsewhere(&b->place);
    *ret = b;
    return 0;
}

void build_remote_close(struct build_remote *b)
{
    if (!b)
        return;
    build_elsewhere(NULL);
    for (int i = 0; i < b->n_idle; i++)
        queue_close(b->idle[i]);
    for (int i = 0; i < b->n_toolchains; i++) {
        free(b->toolchains[i].asked);
        free(b->toolchains[i].id);
    }
    pthread_mutex_destroy(&b->lock);
    free(b->artefacts);
    free(b->url);
    free(b);
}

/* ---- building for others ---- */

/* A built file as {"sha256", "size"} with "base64" where it is small; larger ones go to artefacts. New; NULL with e.
 * */
static json_t *build_remote_pack_file(const char *path, const char *artefacts, struct err *e)
{
    struct buf bytes;
    char sha[65], *text;
    json_t *file = NULL;

    buf_init(&bytes, BUILD_MAX_IMAGE);
    if (file_read(path, &bytes, e) == 0) {
        sha256_hex(bytes.p, bytes.n, sha);
        file = json_pack("{s:s,s:I}", "sha256", sha, "size", (json_int_t)bytes.n);
        if (bytes.n < BUILD_INLINE_MAX) {
            text = base64_text(bytes.p, bytes.n);
            json_object_set_new(file, "base64", json_string(text));
            free(text);
        } else if (artefacts && blob_put(artefacts, bytes.p, bytes.n, sha, e) < 0) {
            json_decref(file);
            file = NULL;
        }
    }
    buf_free(&bytes);
    return file;
}

/* Adds the built library and its device image to 'into'. */
static int build_remote_pack_files(const struct build_result *r, const char *artefacts, json_t *into, struct err *e)
{
    const char *const paths[] = {r->so, r->image};
    json_t *file;

    for (int i = 0; i < 2; i++) {
        if (!paths[i])
            continue;
        if (!(file = build_remote_pack_file(paths[i], artefacts, e)))
            return -1;
        json_object_set_new(into, strrchr(paths[i], '/') + 1, file);
    }
    return 0;
}

/* Builds a request here and puts the answer, or the refusal, into 'into'. -1 where another worker might succeed. */
static int build_remote_answer_build(const json_t *request, const struct build_opts *o, const char *artefacts,
                                     json_t *into, struct err *e)
{
    struct build_result r;
    struct err why = ERR_INIT;
    json_t *files = json_object();
    int rc = build_run(request, o, &r, &why);

    if (rc < 0 && why.kind == ERR_INPUT) { /* nobody could build it: that is an answer */
        json_object_set_new(into, "refused", json_utf8(why.msg, strlen(why.msg)));
        json_decref(files);
        return 0;
    }
    if (rc < 0) {
        json_decref(files);
        return err_set(e, why.kind, "%s", why.msg);
    }
    rc = build_remote_pack_files(&r, artefacts, files, e);
    json_object_set_new(into, "build", build_result_json(&r));
    json_object_set_new(into, "files", files);
    build_result_free(&r);
    return rc;
}

char *build_remote_answer(const char *payload, const char *artefacts, bool no_jail, struct err *e)
{
    json_t *job = json_parse(payload, strlen(payload), "a build job", e), *v = json_object();
    const json_t *request = json_object_get(job, "request");
    struct build_opts o = {.target = json_str(job, "target", "sim"),
                           .arch = json_str(job, "arch", NULL),
                           .timeout_s = json_f64(job, "timeout", 0),
                           .no_check = json_flag(job, "no_check", false),
                           .whole = json_flag(job, "whole", false),
                           .no_jail = no_jail};
    char *id = job ? build_toolchain_id(&o, e) : NULL, *text = NULL;

    if (id) {
        json_object_set_new(v, "toolchain", json_string(id));
        if ((json_is_object(request) ? build_remote_answer_build(request, &o, artefacts, v, e)
             : build_prepare(&o, e)) == 0)
            text = json_text(v);
    }
    free(id);
    json_decref(v);
    json_decref(job);
    return text;
}
