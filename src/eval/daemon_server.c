/* daemon_server.c - the process that owns a device: judges what callers (daemon_client.c) hand over, until it has
 * been idle for a while. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "eval/eval.h"
#include "eval/request.h"
#include "daemon/daemon.h"
#include "queue/queue_ask.h"

struct daemon_server {
    struct eval *ev; /* NULL: it could not be opened, and why says so to all who ask */
    struct err why;
};

/* As the service answers: {"jobs":[{"state","verdict"}]}. */
static json_t *daemon_server_judge_body(struct eval *ev, const json_t *request, pid_t caller, struct err *e)
{
    const json_t *body = json_object_get(request, "job");
    json_t *jobs = json_array(), *payload, *rec;
    size_t n = json_array_size(json_object_get(body, "candidates"));
    int rc = n ? 0 : err_set(e, ERR_INPUT, "a request without candidates");

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (!(payload = ask_of_body(body, i, e))) {
            rc = -1;
            break;
        }
        rc = request_judge(ev, payload, request, caller, &rec, e);
        json_decref(payload);
        if (rc == 0)
            json_array_append_new(jobs, json_pack("{s:s,s:o}", "state", "done", "verdict", rec));
    }
    if (rc == 0)
        return json_pack("{s:o}", "jobs", jobs);
    json_decref(jobs);
    return NULL;
}

/* Answers a request by its "op": begin or eval. New; NULL with e. */
static json_t *daemon_server_answer(void *ctx, const json_t *request, pid_t caller, struct err *e)
{
    struct daemon_server *w = ctx;
    const char *op = json_str(request, "op", "");

    if (!w->ev) {
        *e = w->why;
        return NULL;
    }
    if (!strcmp(op, "begin"))
        return json_object();
    if (!strcmp(op, "eval"))
        return daemon_server_judge_body(w->ev, request, caller, e);
    err_set(e, ERR_INPUT, "the owner of a device knows no '%.40s'", op);
    return NULL;
}

/* Whoever started it waits for this: it listens. */
static void daemon_server_say_ready(void)
{
    if (write(3, "", 1) == 1)
        close(3);
}

/* Seconds without a job after which the daemon leaves. */
static double daemon_server_idle_s(void)
{
    const char *text = getenv("MUSACODER_OWNER_IDLE");

    return text && *text ? strtod(text, NULL) : DAEMON_IDLE_S;
}

int eval_daemon_run(const struct eval_config *c, const char *digest, struct err *e)
{
    struct eval_config local = *c;
    struct daemon_server w = {.why = ERR_INIT};
    struct daemon_work work = {.answer = daemon_server_answer, .ctx = &w, .backend = c->backend,
                               .idle_s = daemon_server_idle_s()};
    struct daemon_place place;
    struct daemon *o = NULL;
    int rc;

    if (daemon_place(c->backend, digest, &place, e) < 0 || daemon_listen(&place, &o, e) < 0)
        return -1;
    daemon_server_say_ready();
    local.start = true;
    local.daemon_client = false;
    local.socket = place.socket;
    if ((rc = eval_open(&local, &w.ev, &w.why)) < 0)
        work.idle_s = 1; /* those who wait hear why; the next one may find it mended */
    if (rc < 0)
        log_error("%s", w.why.msg);
    rc = daemon_serve(o, &work, e);
    eval_close(w.ev);
    daemon_close(o);
    return rc;
}
