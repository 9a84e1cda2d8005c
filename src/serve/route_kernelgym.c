/* route_kernelgym.c - KernelGYM's endpoints over our queue: 'serve --compat kernelgym'. Their task ids are other names
 * of jobs (queue_alias), so a result is found by any server of the queue, also after a restart. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/queue_ask.h"
#include "serve/compat_kernelgym.h"
#include "serve/serve_private.h"

#define SHARE_WAITED 0.9 /* of a task's time-out: then the answer is 'processing', and the client polls */

/* Replies with an error in KernelGYM's form, and counts it. */
static void route_kernelgym_refuse(struct serve *s, struct http_call *c, int status, const char *code, const char *id,
                                   const char *why)
{
    char at[32];
    time_t now = time(NULL);

    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    metrics_refused(s->metrics, status);
    http_header_add(c, "X-Error-Code", code);
    if (status == 503 || status == 429)
        http_header_add(c, "Retry-After", "5");
    http_reply_json(c, status, json_pack("{s:s,s:s,s:s,s:s,s:s}", "error", code, "message", why, "error_code", code,
                                         "task_id", id ? id : "", "timestamp", at));
}

/* Replies 404 in the form that KernelGYM has for unknown tasks. */
static void route_kernelgym_unknown(struct serve *s, struct http_call *c, const char *id)
{
    json_t *says = json_sprintf("Task %s not found", id);

    metrics_refused(s->metrics, 404);
    http_reply_json(c, 404, json_pack("{s:o}", "detail", says ? says : json_string("Task not found")));
}

/* ---- POST /evaluate ---- */

struct parked { /* a call that waits for its job */
    struct waiter *r;
    char *id;
};

static void route_kernelgym_wake(void *call)
{
    http_wake(call);
}

/* Frees the slot of a call whose client left. */
static void route_kernelgym_gone(void *slot)
{
    struct parked *p = slot;

    waiter_free(p->r);
    free(p->id);
    free(p);
}

/* Answers a parked call in KernelGym's form. */
static void route_kernelgym_answer(struct serve *s, struct http_call *c, const struct parked *p)
{
    const char *text;
    int state = waiter_result(p->r, 0, &text);
    json_t *v = state == QUEUE_DONE ? json_parse(text, strlen(text), "verdict", NULL) : NULL;

    if (kg_unscored(state, v) || (state < QUEUE_DONE && http_stopping(c)))
        route_kernelgym_refuse(s, c, 503, "SYSTEM_ERROR", p->id,
                               state < QUEUE_DONE ? "the server is being stopped"
                               : json_str(v, "feedback", "the judge could not say"));
    else
        http_reply_json(c, 200, kg_result(p->id, state < QUEUE_DONE ? QUEUE_LEASED : state, v,
                                          state == QUEUE_DONE ? NULL : text));
    json_decref(v);
}

static char *route_kernelgym_alias_of(const struct http_call *c, const char *id)
{
    return xasprintf("kernelgym:%s:%s", http_owner(c), id);
}

/* Judged anew is what another task id asks for; the same one is a request that was sent again. */
static void route_kernelgym_forget_old(struct queue *q, const char *alias, const json_t *payload)
{
    char *text = json_text(payload), key[65];
    int64_t named = 0, id = 0;

    ask_key(text, key);
    if (queue_find(q, key, &id, NULL) == 1 && (queue_alias_find(q, alias, &named, NULL) != 1 || named != id))
        queue_forget(q, id, NULL);
    free(text);
}

/* Puts KernelGym's request into the queue; *ret_id is its job. */
static int route_kernelgym_put(struct serve *s, struct http_call *c, struct queue *q, const struct kg_request *r,
                               int64_t *ret_id, struct err *e)
{
    json_t *options = json_pack("{s:s}", "backend", s->c.backend);
    char *hosted = strcmp(s->c.backend, "sim") ? NULL : kg_reference_on_host(r->reference);
    json_t *payload = ask_payload(hosted ? hosted : r->reference, "task", r->program, false, options, NULL);
    char *lane = xasprintf("run:%s", s->c.backend), *alias = route_kernelgym_alias_of(c, r->task_id);
    struct queue_item how = {.lane = lane, .owner = http_owner(c), .priority = r->priority};
    int rc;

    serve_sign(s, c, payload);
    if (r->force_refresh)
        route_kernelgym_forget_old(q, alias, payload);
    rc = ask_put(q, payload, &how, ret_id, NULL, e);
    if (rc == 0)
        atomic_fetch_sub(&s->load, 1);
    if (rc >= 0)
        rc = queue_alias(q, alias, *ret_id, e);
    free(hosted);
    free(alias);
    free(lane);
    json_decref(payload);
    json_decref(options);
    return rc;
}

/* Suspends the call until its job is done. */
static void route_kernelgym_park(struct serve *s, struct http_call *c, struct queue *q, const struct kg_request *r,
                                 int64_t id)
{
    struct parked *p = xcalloc(1, sizeof *p);
    char *text = NULL;
    int state;

    p->id = xstrdup(r->task_id);
    p->r = waiter_new(s->waiters, &id, 1, SHARE_WAITED * r->timeout_s, route_kernelgym_wake, c);
    if ((state = queue_result(q, id, &text, NULL)) >= QUEUE_DONE)
        waiter_seed(p->r, 0, state, text);
    free(text);
    http_park(c, p, route_kernelgym_gone);
}

/* POST /evaluate: queues a request and parks the call. */
static void route_kernelgym_take(struct serve *s, struct http_call *c, const json_t *body)
{
    const json_t *inner = json_object_get(body, "payload"); /* of /workflow/submit */
    json_t *flat = json_is_object(inner) ? json_copy((json_t *)inner) : json_incref((json_t *)body);
    struct kg_request r = {0};
    struct err e = ERR_INIT;
    struct queue *q;
    int64_t id;

    if (json_is_object(inner) && json_object_get(body, "task_id"))
        json_object_set(flat, "task_id", json_object_get(body, "task_id"));
    if (kg_request_read(flat, &r, &e) < 0)
        route_kernelgym_refuse(s, c, 400, "VALIDATION_ERROR", json_str(flat, "task_id", ""), e.msg);
    else if ((q = serve_queue_or_refuse(s, c)) && serve_room(s, c, q, 1)) {
        if (route_kernelgym_put(s, c, q, &r, &id, &e) < 0)
            route_kernelgym_refuse(s, c, 503, "SYSTEM_ERROR", r.task_id, e.msg);
        else
            route_kernelgym_park(s, c, q, &r, id);
    }
    kg_request_free(&r);
    json_decref(flat);
}

void kernelgym_evaluate(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    const char *text;
    json_t *body;
    size_t n;

    if (http_woken(c)) {
        route_kernelgym_answer(s, c, http_woken(c));
        return;
    }
    metrics_request(s->metrics, "/evaluate");
    text = http_body(c, &n);
    body = json_parse(text, n, "the request", &e);
    if (!json_is_object(body))
        route_kernelgym_refuse(s, c, 400, "VALIDATION_ERROR", "", *e.msg ? e.msg : "the request is an object");
    else
        route_kernelgym_take(s, c, body);
    json_decref(body);
}

/* ---- one task ---- */

/* Finds the job of a task's id: 1: *ret_id; 0: none; -1 with e. */
static int route_kernelgym_find_task(const struct http_call *c, struct queue *q, const char *task_id, int64_t *ret_id,
                                     struct err *e)
{
    char *alias = route_kernelgym_alias_of(c, task_id);
    int found = queue_alias_find(q, alias, ret_id, e);

    free(alias);
    return found;
}

/* Theirs is split into the tasks ID_kernel and ID_ref, which their clients ask after while ID runs; ours is one job.
 * Owned; NULL: this is no part of a task. */
static char *route_kernelgym_whole_of(const char *task_id)
{
    static const char *const parts[] = {"_kernel", "_ref"};
    size_t n = strlen(task_id);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (n > strlen(parts[i]) && !strcmp(task_id + n - strlen(parts[i]), parts[i]))
            return xstrndup(task_id, n - strlen(parts[i]));
    return NULL;
}

/* The job of the path's task id; -1 with an answer set. */
static int64_t route_kernelgym_job_of(struct serve *s, struct http_call *c, struct queue **ret_q)
{
    char *whole = route_kernelgym_whole_of(http_part(c));
    struct err e = ERR_INIT;
    int64_t id = -1;
    int found = 0;

    metrics_request(s->metrics, "/status");
    if ((*ret_q = serve_queue_or_refuse(s, c))) {
        if ((found = route_kernelgym_find_task(c, *ret_q, http_part(c), &id, &e)) == 0 && whole)
            found = route_kernelgym_find_task(c, *ret_q, whole, &id, &e);
        if (found < 0)
            route_kernelgym_refuse(s, c, 503, "SYSTEM_ERROR", http_part(c), e.msg);
        else if (found == 0)
            route_kernelgym_unknown(s, c, http_part(c));
    }
    free(whole);
    return found == 1 ? id : -1;
}

/* GET of a task: what 'as' makes of its state and verdict. */
static void route_kernelgym_answer_task(struct serve *s, struct http_call *c,
                                        json_t *(*as)(const char *, int, const json_t *, const char *))
{
    struct queue *q;
    int64_t id = route_kernelgym_job_of(s, c, &q);
    struct err e = ERR_INIT;
    char *text = NULL;
    json_t *v = NULL;
    int state;

    if (id < 0)
        return;
    if ((state = queue_result(q, id, &text, &e)) < 0) {
        if (e.kind == ERR_INPUT)
            route_kernelgym_unknown(s, c, http_part(c));
        else
            route_kernelgym_refuse(s, c, 503, "SYSTEM_ERROR", http_part(c), e.msg);
        return;
    }
    if (state == QUEUE_DONE)
        v = json_parse(text, strlen(text), "verdict", NULL);
    http_reply_json(c, 200, as(http_part(c), state, v, state == QUEUE_DONE ? NULL : text));
    json_decref(v);
    free(text);
}

void kernelgym_status(struct http_call *c, void *ctx)
{
    route_kernelgym_answer_task(ctx, c, kg_status);
}

void kernelgym_result(struct http_call *c, void *ctx)
{
    route_kernelgym_answer_task(ctx, c, kg_result);
}

void kernelgym_cancel(struct http_call *c, void *ctx)
{
    struct queue *q;
    int64_t id = route_kernelgym_job_of(ctx, c, &q);

    if (id < 0)
        return;
    queue_cancel(q, id, NULL);
    route_kernelgym_answer_task(ctx, c, kg_status);
}

/* ---- the whole ---- */

/* New object: a device a worker, named as KernelGYM does. */
static json_t *route_kernelgym_devices(const json_t *workers)
{
    json_t *all = json_object();
    char name[32];

    for (size_t i = 0; i < json_array_size(workers); i++) {
        snprintf(name, sizeof name, "cuda:%zu", i);
        json_object_set_new(all, name,
                            json_pack("{s:b,s:s}", "available", 1, "worker",
                                      json_str(json_array_get(workers, i), "name", "")));
    }
    return all;
}

void kernelgym_health(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    struct queue *q = serve_queue(s, &e);
    json_t *workers = q ? queue_workers(q, &e) : NULL;

    http_reply_json(c, 200, json_pack("{s:s,s:o,s:i,s:s}", "status", workers ? "healthy" : "unhealthy", "gpu_status",
                                      route_kernelgym_devices(workers), "workers", (int)json_array_size(workers),
                                      "version", "musacoder"));
    json_decref(workers);
}

void kernelgym_queue(struct http_call *c, void *ctx)
{
    struct queue_stats st;
    struct err e = ERR_INIT;
    struct queue *q = serve_queue_or_refuse(ctx, c);

    if (q && queue_stats(q, &st, &e) < 0)
        route_kernelgym_refuse(ctx, c, 503, "SYSTEM_ERROR", NULL, e.msg);
    else if (q)
        http_reply_json(c, 200, json_pack("{s:I,s:I,s:I,s:I}", "pending", (json_int_t)st.waiting, "processing",
                                          (json_int_t)st.leased, "completed", (json_int_t)st.done, "failed",
                                          (json_int_t)st.failed));
}

void kernelgym_workers(struct http_call *c, void *ctx)
{
    struct err e = ERR_INIT;
    struct queue *q = serve_queue_or_refuse(ctx, c);
    json_t *workers = q ? queue_workers(q, &e) : NULL;

    if (workers)
        http_reply_json(c, 200, json_pack("{s:o}", "workers", workers));
    else if (q)
        route_kernelgym_refuse(ctx, c, 503, "SYSTEM_ERROR", NULL, e.msg);
}
