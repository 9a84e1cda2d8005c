/* shrink.c - the judge's end of runner/shrink.py; see shrink.h. */
#include "lint/shrink.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/server/identity.h"
#include "proc/forkserver.h"
#include "proc/frame.h"
#include "store/limit.h"
#include "store/seal.h"
#include "store/store.h"

#define SHRINK_TIMEOUT_S 300.0
#define SHRINK_MAX_FILE ((size_t)64 << 20)

struct shrinker {
    pthread_mutex_t lock;  /* of fs */
    struct forkserver *fs; /* NULL until a task comes whose result is not known */
    bool no_jail;
    char version[65]; /* of the program that makes tasks small */
};

/* ---- what is known already ---- */

/* The files that decide what a task becomes, and the Python that runs them. */
static int shrink_version(char ret[65], struct err *e)
{
    static const char *const files[] = {"runner/shrink.py", "runner/sizes.py", "runner/reference.py",
                                        "runner/values.py", "runner/home.py",  "runner/structure.py",
                                        "runner/ops.py",    "runner/influence.py"};
    char *python = path_python(e);
    struct sha256 h;
    int rc = python ? 0 : -1;

    if (rc < 0)
        return -1;
    sha256_start(&h);
    sha256_adds(&h, python);
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++) {
        char *path = path_share(files[i]);
        struct buf text;

        buf_init(&text, 1 << 22);
        rc = file_read(path, &text, e);
        sha256_add(&h, text.p, rc == 0 ? text.n : 0);
        buf_free(&text);
        free(path);
    }
    sha256_end(&h, ret);
    free(python);
    return rc;
}

/* The cached result's path for this task and limit of elements; the caller frees. */
static char *shrink_known_path(const struct shrinker *s, const struct task *t, int64_t max)
{
    char *folder = path_cache("shrunk"), *limit = xasprintf("%lld", (long long)max), key[65], *path;
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, s->version);
    sha256_adds(&h, t->code);
    sha256_adds(&h, limit);
    sha256_end(&h, key);
    path = artefact_path(folder, key, ".json");
    free(limit);
    free(folder);
    return path;
}

/* The reply that was given for this text before, by this PyTorch; NULL: none, or none that holds. */
static json_t *shrink_recall(const char *path)
{
    json_t *kept = NULL, *head = NULL;
    struct err e = ERR_INIT;
    struct buf b;

    buf_init(&b, SHRINK_MAX_FILE);
    if (seal_read(path, &b))
        kept = json_parse(b.p + SEAL_HEAD, b.n - SEAL_HEAD, path, &e);
    if (kept && identity_unchanged(json_object_get(kept, "watch")))
        head = json_incref(json_object_get(kept, "reply"));
    if (head)
        cache_touch(path);
    json_decref(kept);
    buf_free(&b);
    return head;
}

/* What depends on the text alone is kept: a result, and the refusal of a task whose sizes cannot do it. */
static void shrink_remember(struct shrinker *s, const char *path, json_t *head)
{
    struct err e = ERR_INIT;
    json_t *kept;
    char *text;

    if (!json_flag(head, "ok", false) && strcmp(json_str(head, "type", ""), "refused") != 0)
        return;
    kept = json_pack("{s:o,s:O}", "watch", identity_watch(json_object_get(forkserver_info(s->fs), "paths")), "reply",
                     head);
    text = json_text(kept);
    if (seal_write(path, &(struct seal_part){text, strlen(text)}, 1, &e) < 0)
        log_debug("a shrunk task is not remembered: %s", e.msg);
    json_decref(kept);
    free(text);
}

/* ---- asking ---- */

/* Turns a refusal into ERR_INPUT. Always -1. */
static int shrink_refusal(const struct task *t, const json_t *head, struct err *e)
{
    if (!strcmp(json_str(head, "type", ""), "refused"))
        return err_set(e, ERR_INPUT, "task '%s': %.800s", t->name, json_str(head, "message", ""));
    return err_set(e, ERR_INPUT, "task '%s' raises %s: %.500s (line %lld: %.120s)", t->name, json_str(head, "type", ""),
                   json_str(head, "message", ""), (long long)json_i64(head, "line", 0), json_str(head, "text", ""));
}

/* Fills *ret from the answer. */
static int shrink_take(const struct task *t, const json_t *head, struct shrunk *ret, struct err *e)
{
    if (!json_flag(head, "ok", false))
        return shrink_refusal(t, head, e);
    ret->source = xstrdup(json_str(head, "source", ""));
    ret->changes = json_incref(json_object_get(head, "changes"));
    ret->before = json_i64(head, "before", 0);
    ret->after = json_i64(head, "largest", 0);
    return 0;
}

/* *ret_head: new, the reply. */
static int shrink_ask(struct child *c, const struct task *t, int64_t max, json_t **ret_head, struct err *e)
{
    json_t *req = json_pack("{s:s,s:s,s:I}", "op", "shrink", "source", t->code, "max_elements", (json_int_t)max);
    struct rpc r = {.fd = c->fd, .deadline = now_s() + SHRINK_TIMEOUT_S};
    enum frame_fault fault = FRAME_OK;
    struct frame f;

    if (!req)
        return err_set(e, ERR_INPUT, "task '%s' is not UTF-8 text", t->name);
    if (rpc(&r, req, &f, &fault, e) < 0)
        return fault == FRAME_STOPPED ? -1
             : err_set(e, ERR_ENV, "task '%s' cannot be tried out: its process %s", t->name,
                       fault == FRAME_LATE ? "does not finish" : "died (out of memory?)");
    *ret_head = json_incref(f.head);
    frame_free(&f);
    return 0;
}

/* The server starts when it is first needed: shapes are tried on the meta device, whose imports take seconds. */
static int shrink_server(struct shrinker *s, struct forkserver **ret, struct err *e)
{
    static const char *const env[] = {"MUSACODER_IMPORTS=torch._dynamo", NULL};
    struct forkserver_spec server = {.no_jail = s->no_jail, .env = env};
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = s->fs ? 0 : forkserver_start(&server, &s->fs, e);
    *ret = s->fs;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Has a child make the task small; *ret_head is its answer, new. */
static int shrink_in_child(struct shrinker *s, const struct task *t, int64_t max, json_t **ret_head, struct err *e)
{
    struct child_spec spec = {.role = "shrink", .jail = {.memory_bytes = (size_t)8 << 30}};
    struct forkserver *fs;
    struct child *c;
    int rc;

    if (shrink_server(s, &fs, e) < 0 || forkserver_spawn(fs, &spec, &c, e) < 0)
        return -1;
    rc = shrink_ask(c, t, max, ret_head, e);
    child_free(c);
    return rc;
}

/* ---- the door ---- */

int shrinker_open(bool no_jail, struct shrinker **ret, struct err *e)
{
    struct shrinker *s = xcalloc(1, sizeof *s);

    if (shrink_version(s->version, e) < 0) {
        free(s);
        return -1;
    }
    s->no_jail = no_jail;
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return 0;
}

void shrinker_close(struct shrinker *s)
{
    if (!s)
        return;
    forkserver_stop(s->fs);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int shrinker_task(struct shrinker *s, const struct task *t, int64_t max_elements, struct shrunk *ret, struct err *e)
{
    json_t *head;
    char *path;
    int rc = 0;

    if (max_elements < 1)
        return err_set(e, ERR_INPUT, "max-elements must be at least 1");
    path = shrink_known_path(s, t, max_elements);
    head = shrink_recall(path);
    if (!head && (rc = shrink_in_child(s, t, max_elements, &head, e)) == 0)
        shrink_remember(s, path, head);
    if (rc == 0)
        rc = shrink_take(t, head, ret, e);
    json_decref(head);
    free(path);
    return rc;
}

int shrink_task(const struct task *t, int64_t max_elements, bool no_jail, struct shrunk *ret, struct err *e)
{
    struct shrinker *s;
    int rc;

    if (shrinker_open(no_jail, &s, e) < 0)
        return -1;
    rc = shrinker_task(s, t, max_elements, ret, e);
    shrinker_close(s);
    return rc;
}

void shrunk_free(struct shrunk *s)
{
    free(s->source);
    json_decref(s->changes);
    *s = (struct shrunk){0};
}
