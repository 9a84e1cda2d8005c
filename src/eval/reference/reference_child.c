/* reference_child.c - see reference_child.h. */
#include "eval/reference/reference_child.h"

#include <string.h>

#include "base/json.h"
#include "base/log.h"

/* Turns a reference's failure into an error: ERR_INPUT blames the task, ERR_ENV the machine. Always -1. */
static int reference_child_task_error(const struct reference_want *w, const json_t *head, struct err *e)
{
    const char *text = json_str(head, "text", "");
    int64_t line = json_i64(head, "line", -1);

    if (!strcmp(json_str(head, "type", ""), "memory") || json_flag(head, "memory", false)) {
        err_set(e, ERR_ENV, "%s: the reference does not find room on the device: %.400s", w->title,
                json_str(head, "message", ""));
        return err_lack(e, LACK_DEVICE);
    }
    if (!strcmp(json_str(head, "type", ""), "refused"))
        return err_set(e, ERR_INPUT, "%s: %.700s", w->title, json_str(head, "message", ""));
    if (line > 0)
        return err_set(e, ERR_INPUT, "%s raises %s: %.500s (line %lld%s%.120s)", w->title,
                       json_str(head, "type", ""), json_str(head, "message", ""), (long long)line, *text ? ": " : "",
                       text);
    return err_set(e, ERR_INPUT, "%s raises %s: %.600s", w->title, json_str(head, "type", ""),
                   json_str(head, "message", ""));
}

json_t *reference_request(const struct reference_want *w)
{
    const struct eval_options *o = w->o;
    const json_t *variant = task_variant(w->t, w->variant);
    json_t *req = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:I,s:I}", "op", "task", "source", w->t->code, "name", w->t->name,
                            "protocol", o->protocol, "params", w->params, "trials", o->trials, "seed",
                            (json_int_t)w->seed,
                            "max_elements", (json_int_t)eval_max_elements(o));

    if (req && w->small)
        json_object_set_new(req, "small", json_integer(w->small));
    if (req && variant)
        json_object_set_new(req, "variant", json_deep_copy(variant));
    if (req && task_setting(w->t, w->variant, "regimes") && protocol_find(o->protocol)->sidecar)
        json_object_set_new(req, "regimes", json_deep_copy(task_setting(w->t, w->variant, "regimes")));
    if (req && task_setting(w->t, w->variant, "effects") && protocol_find(o->protocol)->sidecar)
        json_object_set_new(req, "effects", json_deep_copy(task_setting(w->t, w->variant, "effects")));
    return req;
}

/* Why its process is not there any more. At its own limit it is too large; else it may have been the others. */
static int reference_child_process_died(struct child *c, const struct reference_want *w, struct err *e)
{
    struct child_end end = {0};

    if (child_wait(c, now_s() + 5, &end, NULL) < 0)
        return err_set(e, ERR_ENV, "%s: the reference's process was lost with the fork server", w->title);
    buf_free(&end.output);
    if (end.why == PROC_MEMORY)
        return err_set(e, ERR_INPUT, "%s: the reference takes more of the machine's memory than its process may have; "
                       "make it smaller with 'musacoder shrink'", w->title);
    err_set(e, ERR_INPUT, "%s: the reference's process died; is it too large? see 'musacoder shrink'", w->title);
    return err_lack(e, LACK_HOST);
}

int reference_ask(struct child *c, const struct reference_want *w, json_t *req, const int *fds, int n_fds,
                  double deadline, struct frame *ret, bool *ret_lost, struct err *e)
{
    enum frame_fault fault = FRAME_OK;
    struct rpc r = {.fd = c->fd, .who = "reference", .fds = fds, .n_fds = n_fds, .deadline = deadline};
    int rc;

    if (!req)
        return err_set(e, ERR_INPUT, "%s is not UTF-8 text", w->title);
    rc = rpc(&r, req, ret, &fault, e);
    if (ret_lost)
        *ret_lost = rc < 0;
    if (rc == 0 && !json_flag(ret->head, "ok", false)) {
        rc = reference_child_task_error(w, ret->head, e);
        frame_free(ret);
    } else if (rc < 0 && fault == FRAME_LATE) {
        err_set(e, ERR_INPUT, "%s: the reference did not finish in %.0f s; make it smaller with 'musacoder shrink'",
                w->title, REFERENCE_TIMEOUT_S);
    } else if (rc < 0 && fault == FRAME_CLOSED) {
        reference_child_process_died(c, w, e);
    }
    return rc;
}

/* What the server starts for a streamed reference: its role, jail, and whether the published rules hold. */
static struct server_child reference_spec(const struct reference_want *w)
{
    const char *place = w->sv->backend->place;

    return (struct server_child){.role = place && strcmp(place, "cpu") ? "streamed_cuda" : "streamed", .queues = 1,
                                 .published = protocol_find(w->o->protocol)->published,
                                 .jail = {.memory_bytes = w->sv->backend->reference_memory_bytes}};
}

int reference_start(const struct reference_want *w, struct child **ret, struct err *e)
{
    struct server_child spec = reference_spec(w);

    if (w->anew || !spares_take(w->sv->kept, &spec, ret))
        return server_spawn(w->sv, &spec, ret, e);
    if (w->used)
        *w->used = true;
    return 0;
}

int reference_start_alone(const struct reference_want *w, struct child **ret, struct err *e)
{
    struct server_child spec = reference_spec(w);

    spec.role = w->sv->backend->reference;
    return server_spawn(w->sv, &spec, ret, e);
}

void reference_end(const struct reference_want *w, struct child *child)
{
    struct server_child spec = reference_spec(w);

    spares_give(w->sv->kept, &spec, child);
}
