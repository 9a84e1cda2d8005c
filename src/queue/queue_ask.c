/* queue_ask.c - see queue_ask.h. */
#include "queue/queue_ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"

/* A verdict job's payload, new; borrows options and sidecar, which may be NULL. */
json_t *ask_payload(const char *task_code, const char *task_name, const char *candidate, bool is_response,
                    const json_t *options, const json_t *sidecar)
{
    json_t *p = json_object();

    json_object_set_new(p, "task_code", json_utf8(task_code, strlen(task_code)));
    json_object_set_new(p, "task_name", json_utf8(task_name, strlen(task_name)));
    json_object_set_new(p, "candidate", json_utf8(candidate, strlen(candidate)));
    json_object_set_new(p, "is_response", json_boolean(is_response));
    if (utf8_bad_at(candidate, strlen(candidate)) < strlen(candidate))
        json_object_set_new(p, "mended", json_true());
    json_object_set_new(p, "options", options ? json_deep_copy(options) : json_object());
    if (sidecar)
        json_object_set_new(p, "sidecar", json_deep_copy(sidecar));
    return p;
}

const char *ask_candidate(const json_t *one, bool *ret_is_response)
{
    const char *code = json_str(one, "code", NULL);

    *ret_is_response = !code;
    return code ? code : json_is_string(one) ? json_string_value(one) : json_str(one, "response", NULL);
}

json_t *ask_of_body(const json_t *body, size_t i, struct err *e)
{
    const json_t *task = json_object_get(body, "task"), *options = json_object_get(body, "options");
    const char *code = json_str(task, "code", NULL), *text;
    bool is_response;

    text = ask_candidate(json_array_get(json_object_get(body, "candidates"), i), &is_response);
    if (!code || !text || (options && !json_is_object(options))) {
        err_set(e, ERR_INPUT, "a request has \"task\" with \"code\", and \"candidates\" with \"code\" or \"response\"");
        return NULL;
    }
    return ask_payload(code, json_str(task, "name", "task"), text, is_response, options,
                       json_object_get(body, "sidecar"));
}

void ask_key(const char *payload_text, char ret[65])
{
    sha256_hex(payload_text, strlen(payload_text), ret);
}

/* True if asking again may end otherwise: no result, or one about the machine. */
static bool queue_ask_worth_another(int state, const char *result)
{
    return state > QUEUE_DONE || (state == QUEUE_DONE && strstr(result, "\"status\":\"infra\""));
}

int ask_put(struct queue *q, const json_t *payload, const struct queue_item *how, int64_t *ret_id, char ret_key[65],
            struct err *e)
{
    char *text = json_text(payload), *old = NULL, key[65];
    struct queue_item it = *how;
    int rc, state = QUEUE_WAITING;

    ask_key(text, key);
    it.key = key;
    it.payload = text;
    rc = queue_put(q, &it, ret_id, e);
    if (rc == 0 && (state = queue_result(q, *ret_id, &old, e)) < 0)
        rc = -1;
    if (rc == 0 && queue_ask_worth_another(state, old ? old : ""))
        rc = queue_forget(q, *ret_id, e) < 0 ? -1 : queue_put(q, &it, ret_id, e);
    if (ret_key)
        memcpy(ret_key, key, sizeof key);
    free(old);
    free(text);
    return rc;
}
