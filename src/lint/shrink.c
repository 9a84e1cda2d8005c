/* shrink.c - the judge's end of runner/shrink.py; see shrink.h. */
#include "lint/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/forkserver.h"
#include "proc/frame.h"

#define SHRINK_TIMEOUT_S 300.0

static int shrink_refusal(const struct task *t, const json_t *head, struct err *e)
{
    if (!strcmp(json_str(head, "type", ""), "refused"))
        return err_set(e, ERR_INPUT, "task '%s': %.800s", t->name, json_str(head, "message", ""));
    return err_set(e, ERR_INPUT, "task '%s' raises %s: %.500s (line %lld: %.120s)", t->name, json_str(head, "type", ""),
                   json_str(head, "message", ""), (long long)json_i64(head, "line", 0), json_str(head, "text", ""));
}

static int shrink_ask(struct child *c, const struct task *t, int64_t max, struct shrunk *ret, struct err *e)
{
    json_t *req = json_pack("{s:s,s:s,s:I}", "op", "shrink", "source", t->code, "max_elements", (json_int_t)max);
    struct rpc r = {.fd = c->fd, .deadline = now_s() + SHRINK_TIMEOUT_S};
    enum frame_fault fault = FRAME_OK;
    struct frame f;
    int rc = 0;

    if (!req)
        return err_set(e, ERR_INPUT, "task '%s' is not UTF-8 text", t->name);
    if (rpc(&r, req, &f, &fault, e) < 0)
        return fault == FRAME_STOPPED ? -1
             : err_set(e, ERR_INPUT, "task '%s' cannot be tried out: its process %s", t->name,
                       fault == FRAME_LATE ? "does not finish" : "died (out of memory?)");
    if (json_flag(f.head, "ok", false)) {
        ret->source = xstrdup(json_str(f.head, "source", ""));
        ret->changes = json_incref(json_object_get(f.head, "changes"));
        ret->before = json_i64(f.head, "before", 0);
        ret->after = json_i64(f.head, "largest", 0);
    } else {
        rc = shrink_refusal(t, f.head, e);
    }
    frame_free(&f);
    return rc;
}

struct shrinker {
    struct forkserver *fs;
};

int shrinker_open(bool no_jail, struct shrinker **ret, struct err *e)
{
    struct forkserver_spec server = {.no_jail = no_jail};
    struct forkserver *fs;

    if (forkserver_start(&server, &fs, e) < 0)
        return -1;
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->fs = fs;
    return 0;
}

void shrinker_close(struct shrinker *s)
{
    if (s)
        forkserver_stop(s->fs);
    free(s);
}

int shrinker_task(struct shrinker *s, const struct task *t, int64_t max_elements, struct shrunk *ret, struct err *e)
{
    struct child_spec spec = {.role = "shrink", .jail = {.memory_bytes = (size_t)8 << 30}};
    struct child *c;
    int rc;

    if (max_elements < 1)
        return err_set(e, ERR_INPUT, "max-elements must be at least 1");
    if (forkserver_spawn(s->fs, &spec, &c, e) < 0)
        return -1;
    rc = shrink_ask(c, t, max_elements, ret, e);
    child_free(c);
    return rc;
}

int shrink_task(const struct task *t, int64_t max_elements, bool no_jail, struct shrunk *ret, struct err *e)
{
    struct shrinker *s;
    int rc;

    if (max_elements < 1)
        return err_set(e, ERR_INPUT, "max-elements must be at least 1");
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
