/* request.c - see request.h. */
#include "eval/request.h"

#include "base/json.h"

/* Judges the candidate of a request p whose task is read; 'more' holds defaults. *ret is the new verdict. */
static int request_do_judge(struct eval *ev, const json_t *p, const json_t *more, int64_t caller, const struct task *t,
                            json_t **ret, struct err *e)
{
    const json_t *text = json_object_get(p, "candidate");
    struct eval_candidate c = {.name = "candidate", .text = json_string_value(text), .n = json_string_length(text),
                               .mended = json_flag(p, "mended", json_flag(more, "mended", false)),
                               .kind = json_flag(p, "is_response", true) ? EXTRACT_RESPONSE : EXTRACT_FILE};
    struct eval_options o;

    if (eval_options_parse(json_object_get(p, "options"), &o, e) < 0)
        return -1;
    o.caller = caller;
    o.fresh = json_flag(more, "fresh", false);
    o.capsule = json_str(more, "capsule", NULL);
    o.repro = json_str(more, "repro", NULL);
    return eval_one(ev, t, &c, &o, ret, e);
}

int request_judge(struct eval *ev, const json_t *p, const json_t *more, int64_t caller, json_t **ret,
                  struct err *e)
{
    const json_t *code = json_object_get(p, "task_code");
    struct task t;
    int rc;

    if (!json_is_string(code) || !json_is_string(json_object_get(p, "candidate")))
        return err_set(e, ERR_INPUT, "a verdict request needs task_code and candidate");
    if (task_make(json_str(p, "task_name", "task"), json_string_value(code), json_string_length(code), &t, e) < 0)
        return -1;
    rc = task_attach(&t, json_object_get(p, "sidecar"), "sidecar", e);
    if (rc == 0)
        rc = request_do_judge(ev, p, more, caller, &t, ret, e);
    task_free(&t);
    return rc;
}
