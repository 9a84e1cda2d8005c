/* exec.c - see exec.h. */
#include "eval/exec.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "eval/job.h"

#define PATIENCE_S 2.0

static enum call_fault in_frames(struct job *j, const struct exec_call *c, struct frame *ret, struct err *e)
{
    const struct ref_draw *d = c->draw;
    json_t *req = json_pack("{s:s,s:O,s:b,s:b,s:s*}", "op", "run", "inputs", d->inputs.tree, "ablation", c->ablation,
                            "same_memory", c->same_memory, "watch", c->watch);
    enum call_fault fault = session_call(j->session, req, d->inputs.bytes, d->inputs.n, ret, e);

    json_decref(req);
    return fault;
}

/* Hands areas over that are new. A child that cannot map them is the machine's: the next try goes without, unless it was
 * for lack of memory, or others could. */
static enum call_fault hand_over(struct job *j, const int fds[2], struct err *e)
{
    json_t *req = json_pack("{s:s,s:o,s:o}", "op", "areas", "inputs", desk_spec(&j->room.inputs), "outputs",
                            desk_spec(&j->room.outputs));
    struct frame f;
    enum call_fault fault = session_give(j->session, req, fds, 2, &f, e);

    json_decref(req);
    if (fault != CALL_OK)
        return fault;
    if (strcmp(json_str(f.head, "op", ""), "ok")) {
        err_set(e, ERR_ENV, "the candidate's process cannot map shared memory: %.300s",
                json_str(f.head, "message", ""));
        if (json_flag(f.head, "memory", false))
            err_lack(e, LACK_DEVICE);
        else
            desk_refuse(j->ref->desk, json_str(f.head, "message", "no reason given"));
        fault = CALL_INFRA;
    } else {
        j->ref->desk->common->mapped = true;
    }
    frame_free(&f);
    return fault;
}

static int larger(struct desk *k, size_t n, struct device_buf *b, struct err *e)
{
    if (b->dev && b->size >= n)
        return 0;
    desk_free(k, b);
    return desk_alloc(k, n, DEVICE_PLAIN, b, e);
}

/* Snapshot and, where they are too small, areas; fds: of new areas, else -1. On failure nothing of them is left. */
static int take_memory(struct desk *k, struct exec_room *r, size_t inputs, size_t outputs, int fds[2], struct err *e)
{
    fds[0] = fds[1] = -1;
    if (larger(k, outputs, &r->copy, e) < 0)
        return -1;
    if (r->inputs.dev && r->inputs.size >= inputs && r->outputs.size >= outputs)
        return 0;
    desk_free(k, &r->inputs);
    desk_free(k, &r->outputs);
    if (desk_area(k, inputs, &r->inputs, &fds[0], e) == 0 && desk_area(k, outputs, &r->outputs, &fds[1], e) == 0)
        return 0;
    if (fds[0] >= 0)
        close(fds[0]);
    desk_free(k, &r->inputs);
    return -1;
}

/* The device is full for a while: others may be about to give memory back. When they do not, but the end of this
 * candidate's process does, then it was the candidate; or somebody else ended just then, so that only who was alone is
 * blamed for it (retry_others). */
static enum call_fault out_of_memory(struct job *j, size_t inputs, size_t outputs, struct err *e)
{
    struct session *s = j->session;
    struct desk *k = j->desk;
    int fds[2];

    child_kill(s->child);
    if (device_lost(k->dev) || s->ended || child_wait(s->child, now_s() + 10, &s->end, NULL) < 0)
        return CALL_INFRA;
    s->ended = true;
    if (take_memory(k, &j->room, inputs, outputs, fds, e) < 0)
        return CALL_INFRA;
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    s->end.why = PROC_MEMORY;
    j->device_short = true;
    *e = (struct err)ERR_INIT;
    return CALL_DIED;
}

/* Areas and snapshot have room for so many bytes at least. */
static enum call_fault make_room(struct job *j, size_t inputs, size_t outputs, struct err *e)
{
    struct desk *k = j->ref->desk;
    struct exec_room *r = &j->room;
    enum call_fault fault = CALL_OK;
    double until = now_s() + PATIENCE_S;
    int fds[2], rc;

    j->desk = k;
    inputs = inputs > r->inputs.size ? inputs : r->inputs.size;
    outputs = outputs > r->outputs.size ? outputs : r->outputs.size;
    while ((rc = take_memory(k, r, inputs, outputs, fds, e)) < 0 && now_s() < until && !device_lost(k->dev) &&
           !stop_requested())
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    if (rc < 0)
        return out_of_memory(j, inputs, outputs, e);
    if (fds[0] < 0)
        return CALL_OK;
    fault = hand_over(j, fds, e);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    if (fault != CALL_OK) {
        desk_free(k, &r->inputs);
        desk_free(k, &r->outputs);
    }
    return fault;
}

static int lay_out(struct job *j, const struct ref_draw *d, struct err *e)
{
    struct desk *k = j->ref->desk;
    int rc;

    desk_lock(k);
    rc = device_copy(&j->room.inputs, 0, d->inputs.mem, d->inputs.at, d->inputs.n, e) < 0 ||
                 device_memset(&j->room.outputs, 0, 0xff, d->eager.n, e) < 0 || device_sync(k->dev, e) < 0
             ? -1
             : 0;
    desk_unlock(k);
    return rc;
}

struct changes {
    struct job *j;
    const struct ref_draw *d;
    json_t *list;
    size_t i; /* of the tensor */
};

static int look_at_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct changes *c = ctx;
    size_t at = (size_t)json_i64(leaf, "offset", 0), n = (size_t)json_i64(leaf, "nbytes", 0);
    int64_t differ = 0, first;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (n && device_bytes_differ(&c->j->room.inputs, at, c->d->inputs.mem, c->d->inputs.at + at, n, &differ, &first,
                                 e) < 0)
        return -1;
    if (differ)
        json_array_append_new(c->list, json_integer((json_int_t)c->i));
    c->i++;
    return 0;
}

/* The outputs as they are now, and which inputs are not what they were; the candidate's own list is added to. */
static int look(struct job *j, const struct ref_draw *d, struct frame *f, struct err *e)
{
    struct desk *k = j->ref->desk;
    struct changes c = {.j = j, .d = d, .list = json_array()};
    int64_t differ = 0, first;
    int rc;

    desk_lock(k);
    rc = device_copy(&j->room.copy, 0, &j->room.outputs, 0, d->eager.n, e);
    if (rc == 0 && d->inputs.n)
        rc = device_bytes_differ(&j->room.inputs, 0, d->inputs.mem, d->inputs.at, d->inputs.n, &differ, &first, e);
    if (rc == 0 && differ)
        rc = tree_each(d->inputs.tree, look_at_leaf, &c, e);
    if (rc == 0)
        rc = device_sync(k->dev, e);
    desk_unlock(k);
    json_array_extend(c.list, json_object_get(f->head, "changed"));
    json_object_set_new(f->head, "changed", c.list);
    return rc;
}

static enum call_fault in_areas(struct job *j, const struct exec_call *c, struct frame *ret, struct err *e)
{
    const struct ref_draw *d = c->draw;
    enum call_fault fault = make_room(j, d->inputs.n, d->eager.n, e);
    json_t *req;

    if (fault != CALL_OK)
        return fault;
    if (lay_out(j, d, e) < 0)
        return CALL_INFRA;
    req = json_pack("{s:s,s:O,s:b,s:b,s:b,s:s*}", "op", "run", "inputs", d->inputs.tree, "ablation", c->ablation,
                    "same_memory", c->same_memory, "area", 1, "watch", c->watch);
    fault = session_call(j->session, req, NULL, 0, ret, e);
    json_decref(req);
    if (fault == CALL_OK && !strcmp(json_str(ret->head, "op", ""), "result") && look(j, d, ret, e) < 0) {
        frame_free(ret);
        return CALL_INFRA;
    }
    return fault;
}

enum call_fault exec_run(struct job *j, const struct exec_call *c, struct frame *ret, struct err *e)
{
    if (j->life)
        return life_call(j, c->draw, ret, e);
    return c->draw->inputs.mem ? in_areas(j, c, ret, e) : in_frames(j, c, ret, e);
}

static enum call_fault send_in_area(struct job *j, json_t *req, struct frame *ret, struct err *e)
{
    json_object_set_new(req, "area", json_true());
    return session_call(j->session, req, NULL, 0, ret, e);
}

enum call_fault exec_put(struct job *j, const struct ref_draw *d, json_t *req, struct frame *ret, struct err *e)
{
    enum call_fault fault;

    if (!d->inputs.mem) {
        fault = session_call(j->session, req, d->inputs.bytes, d->inputs.n, ret, e);
    } else if ((fault = make_room(j, d->inputs.n, d->eager.n, e)) == CALL_OK) {
        fault = lay_out(j, d, e) < 0 ? CALL_INFRA : send_in_area(j, req, ret, e);
    }
    json_decref(req);
    return fault;
}

enum call_fault exec_bytes(struct job *j, const struct section *s, json_t *req, struct frame *ret, struct err *e)
{
    struct desk *k = j->ref->desk;
    enum call_fault fault;
    int rc;

    if (!k || !s->n) {
        fault = session_call(j->session, req, s->bytes, s->n, ret, e);
    } else if ((fault = make_room(j, s->n, 0, e)) == CALL_OK) {
        desk_lock(k);
        rc = s->mem ? device_copy(&j->room.inputs, 0, s->mem, s->at, s->n, e) < 0 || device_sync(k->dev, e) < 0 ? -1 : 0
                    : device_upload(&j->room.inputs, 0, s->bytes, s->n, e);
        desk_unlock(k);
        fault = rc < 0 ? CALL_INFRA : send_in_area(j, req, ret, e);
    }
    json_decref(req);
    return fault;
}

enum call_fault exec_reveal(struct job *j, const struct ref_draw *want, uint32_t slot, struct frame *ret, struct err *e)
{
    json_t *req = json_pack("{s:s,s:i}", "op", "reveal", "slot", (int)slot);
    enum call_fault fault;
    struct desk *k = j->ref->desk;
    int rc;

    if (!want->eager.mem) {
        fault = session_call(j->session, req, NULL, 0, ret, e);
    } else if ((fault = make_room(j, 0, want->eager.n, e)) == CALL_OK) {
        desk_lock(k);
        rc = device_memset(&j->room.outputs, 0, 0xff, want->eager.n, e) < 0 || device_sync(k->dev, e) < 0 ? -1 : 0;
        desk_unlock(k);
        fault = rc < 0 ? CALL_INFRA : send_in_area(j, req, ret, e);
        if (fault == CALL_OK && desk_copy(k, &j->room.copy, &j->room.outputs, 0, want->eager.n, e) < 0) {
            frame_free(ret);
            fault = CALL_INFRA;
        }
    }
    json_decref(req);
    return fault;
}

void exec_free(struct job *j)
{
    struct desk *k = j->desk;

    if (!k)
        return;
    desk_free(k, &j->room.inputs);
    desk_free(k, &j->room.outputs);
    desk_free(k, &j->room.copy);
}
