/* route_eval.c - POST /v1/eval: a task and candidates go into the queue; the call waits for their verdicts, or takes
 * tickets. The same content asked twice is one job, so a client may send a request again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/queue_ask.h"
#include "serve/serve_private.h"
#include "task/bundle.h"
#include "task/task.h"

#define CANDIDATES_MAX 256
#define PRIORITY_MAX 100
#define GROUP_MAX 4096
#define LONELY_S 20.0 /* a call waits no longer where no worker is there; one that starts up is there by then */
#define PAYLOADS_MAX ((size_t)64 << 20) /* bytes of a request in the queue: every candidate has its task there */

struct route_eval_asked {
    int64_t id[CANDIDATES_MAX];
    char key[CANDIDATES_MAX][65]; /* stays when a job that failed for our reasons is asked for again */
    int n;
};

static void route_eval_wake(void *call)
{
    http_wake(call);
}

static void route_eval_gone(void *slot)
{
    waiter_free(slot);
}

/* "waiting", ... of enum queue_state */
static const char *serve_state_name(int state)
{
    static const char *const names[] = {"waiting", "running", "done", "failed", "cancelled"};

    return names[state];
}

/* A job with its verdict if it is done, or its error if it failed. New. */
static json_t *route_eval_job_json(int64_t id, int state, const char *text)
{
    json_t *j = json_pack("{s:I,s:s}", "id", (json_int_t)id, "state", serve_state_name(state));
    json_t *v = state == QUEUE_DONE ? json_parse(text, strlen(text), "verdict", NULL) : NULL;

    if (v)
        json_object_set_new(j, "verdict", v);
    else if (state == QUEUE_FAILED)
        json_object_set_new(j, "error", json_utf8(text ? text : "", text ? strlen(text) : 0));
    return j;
}

/* jobs is taken over. What has not ended says so if nobody is there to end it. */
static void route_eval_reply(struct serve *s, struct http_call *c, int status, json_t *jobs)
{
    json_t *body = json_pack("{s:o}", "jobs", jobs);
    struct buf why;

    if (status == 202 && !backends_served(s->backends, s->c.backend)) {
        buf_init(&why, BUF_MAX_TEXT);
        backends_say_lack(s->c.backend, s->c.own_workers, &why);
        json_object_set_new(body, "warning", json_string(why.p));
        buf_free(&why);
    }
    http_reply_json(c, status, body);
}

/* The jobs of a woken call: 200 if all have ended, else 202: come again. */
static void route_eval_answer(struct serve *s, struct http_call *c, struct waiter *r)
{
    json_t *jobs = json_array();
    bool all = true;

    for (int i = 0; i < waiter_count(r); i++) {
        const char *text;
        int state = waiter_result(r, i, &text);
        all &= state >= QUEUE_DONE;
        json_array_append_new(jobs, route_eval_job_json(waiter_id(r, i), state, text));
    }
    if (!all && http_stopping(c)) {
        json_decref(jobs);
        http_header_add(c, "Retry-After", "5");
        http_refuse(c, 503, "stopping", "the server is being stopped; ask again: nothing is lost");
        return;
    }
    route_eval_reply(s, c, all ? 200 : 202, jobs);
}

/* wait=SECONDS; without it as long as the server allows. -1 with 400 set: it is no such number. */
static double route_eval_wait(struct serve *s, struct http_call *c)
{
    const char *text = http_arg(c, "wait");
    char *end = NULL;
    double wait = text ? strtod(text, &end) : s->c.wait_s;

    if (text && (end == text || *end || !(wait >= 0))) {
        serve_refuse(s, c, 400, "bad_request", "'wait' is a number of seconds, 0 for tickets at once");
        return -1;
    }
    return fmin(wait, s->c.wait_s);
}

/* Suspends the call until its jobs are done or the wait is over. */
static void route_eval_park(struct serve *s, struct http_call *c, struct queue *q, const struct route_eval_asked *a,
                            double wait_s)
{
    struct waiter *r = waiter_new(s->waiters, a->id, a->n, wait_s, route_eval_wake, c);

    for (int i = 0; i < a->n; i++) { /* what had ended before anybody waited for it */
        char *text = NULL;
        int state = queue_result(q, a->id[i], &text, NULL);
        if (state >= QUEUE_DONE)
            waiter_seed(r, i, state, text);
        free(text);
    }
    http_park(c, r, route_eval_gone);
}

/* What the server was started with, where a request does not say. */
static void route_eval_add_defaults(const struct serve *s, json_t *o)
{
    struct reward_params p = s->c.reward;

    if (!json_object_get(o, "backend"))
        json_object_set_new(o, "backend", json_string(s->c.backend));
    if (reward_is_default(p))
        return;
    if (!json_object_get(o, "speed-weight"))
        json_object_set_new(o, "speed-weight", json_real(p.lambda));
    if (!json_object_get(o, "speed-cap"))
        json_object_set_new(o, "speed-cap", json_real(p.nu_max));
}

/* Options with a backend of their own, checked as a worker will read them: new; NULL with an answer set. */
static json_t *route_eval_options_of(struct serve *s, struct http_call *c, const json_t *body)
{
    json_t *given = json_object_get(body, "options"), *o;
    struct err e = ERR_INIT;

    if (given && !json_is_object(given)) {
        serve_refuse(s, c, 400, "bad_request", "'options' is an object of eval's flags");
        return NULL;
    }
    o = given ? json_deep_copy(given) : json_object();
    route_eval_add_defaults(s, o);
    if (!json_is_string(json_object_get(o, "backend"))) {
        serve_refuse(s, c, 400, "bad_request", "'backend' is a word");
        json_decref(o);
        return NULL;
    }
    if (s->c.check_options && s->c.check_options(o, &e) < 0) {
        serve_refuse(s, c, 400, "bad_request", "'options': %s", e.msg);
        json_decref(o);
        return NULL;
    }
    return o;
}

/* Puts one candidate into the queue; *ret_id is its job, ret_key names its verdict. */
static int route_eval_put_one(struct serve *s, struct http_call *c, struct queue *q, const json_t *body,
                              const json_t *one, const json_t *options, const struct queue_item *how, int64_t *ret_id,
                              char ret_key[65], struct err *e)
{
    const json_t *task = json_object_get(body, "task");
    bool is_response;
    const char *text = ask_candidate(one, &is_response);
    json_t *p = ask_payload(json_str(task, "code", ""), json_str(task, "name", "task"), text, is_response, options,
                            json_object_get(body, "sidecar"));
    int rc;

    serve_sign(s, c, p);
    rc = ask_put(q, p, how, ret_id, ret_key, e);
    json_decref(p);
    return rc;
}

/* A key of v that is not among the known, or NULL: a misspelt one must not be lost. */
static const char *route_eval_unknown_key(const json_t *v, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)v, key, value) {
        size_t i = 0;
        while (known[i] && strcmp(key, known[i]))
            i++;
        if (!known[i])
            return key;
    }
    return NULL;
}

/* False: the body has an unknown key, and the reply names it. */
static bool route_eval_known_keys(struct serve *s, struct http_call *c, const json_t *body)
{
    static const char *const of_body[] = {"task",     "candidates", "options",    "sidecar", "priority",
                                          "group",    "group_size", "prompt_id",  "run",     "turn",     NULL};
    static const char *const of_task[] = {"name", "code", NULL}, *const of_candidate[] = {"code", "response", "files",
                                                                                          NULL};
    const char *key = route_eval_unknown_key(body, of_body);
    json_t *one;
    size_t i;

    if (!key)
        key = route_eval_unknown_key(json_object_get(body, "task"), of_task);
    if (key) {
        serve_refuse(s, c, 400, "bad_request", "'%.80s' is no part of a request; docs/openapi.json lists them", key);
        return false;
    }
    json_array_foreach(json_object_get(body, "candidates"), i, one)
        if ((key = route_eval_unknown_key(one, of_candidate))) {
            serve_refuse(s, c, 400, "bad_request",
                         "candidate %zu has '%.80s'; it is {\"code\": ...}, {\"response\": ...} or {\"files\": ...}", i,
                         key);
            return false;
        }
    return true;
}

/* Is it a task, as far as its text says? No worker has to see what is none. */
static bool route_eval_good_task(struct serve *s, struct http_call *c, const json_t *task, const json_t *sidecar)
{
    const char *code = json_str(task, "code", "");
    struct task t;
    struct err e = ERR_INIT;
    int rc = task_make(json_str(task, "name", "task"), code, json_string_length(json_object_get(task, "code")), &t, &e);

    if (rc == 0) {
        rc = task_attach(&t, sidecar, "sidecar", &e);
        task_free(&t);
    }
    if (rc < 0)
        serve_refuse(s, c, 400, "bad_task", "%s", e.msg);
    return rc == 0;
}

/* Bytes of what is put into the queue. */
static bool route_eval_small_enough(struct serve *s, struct http_call *c, const json_t *body)
{
    const json_t *candidates = json_object_get(body, "candidates");
    char *sidecar = json_text(json_object_get(body, "sidecar")), *options = json_text(json_object_get(body, "options"));
    size_t n = strlen(sidecar) + strlen(options), total = 0;

    n += json_string_length(json_object_get(json_object_get(body, "task"), "code"));
    n += json_string_length(json_object_get(json_object_get(body, "task"), "name"));
    for (size_t i = 0; i < json_array_size(candidates); i++) {
        bool is_response;
        const char *text = ask_candidate(json_array_get(candidates, i), &is_response);
        total += n + (text ? strlen(text) : 0);
    }
    free(sidecar);
    free(options);
    if (total <= PAYLOADS_MAX)
        return true;
    serve_refuse(s, c, 413, "too_large",
                 "the task, once with each candidate, may have %zu bytes in all; send fewer at once", PAYLOADS_MAX);
    return false;
}

/* Checks the shape of a request; false with an answer set. */
static bool route_eval_well_formed(struct serve *s, struct http_call *c, const json_t *task, const json_t *candidates,
                                   const json_t *sidecar)
{
    size_t n = json_array_size(candidates);
    bool is_response;

    if (!json_is_string(json_object_get(task, "code"))) {
        serve_refuse(s, c, 400, "bad_request", "'task' needs 'code': the text of a KernelBench-format Python file");
        return false;
    }
    if (n == 0 || n > CANDIDATES_MAX) {
        serve_refuse(s, c, 400, "bad_request", "'candidates' is a list of 1 to %d programs", CANDIDATES_MAX);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!ask_candidate(json_array_get(candidates, i), &is_response)) {
            serve_refuse(s, c, 400, "bad_request", "candidate %zu is neither {\"code\": ...} nor {\"response\": ...}",
                         i);
            return false;
        }
    return route_eval_good_task(s, c, task, sidecar);
}

/* False: "group_size" is no size, and the reply says so. */
static bool route_eval_good_group(struct serve *s, struct http_call *c, const json_t *body)
{
    const json_t *size = json_object_get(body, "group_size");
    json_int_t n = json_integer_value(size);

    if (!size || (json_is_integer(size) && n >= 1 && n <= GROUP_MAX))
        return true;
    serve_refuse(s, c, 400, "bad_request", "'group_size' is 1 to %d", GROUP_MAX);
    return false;
}

/* False: "run" or "turn" is unfit, and the reply says so. */
static bool route_eval_good_run(struct serve *s, struct http_call *c, const json_t *body)
{
    const json_t *run = json_object_get(body, "run"), *turn = json_object_get(body, "turn");
    json_int_t n = json_integer_value(turn);

    if ((!run || (json_is_string(run) && *json_string_value(run) && json_string_length(run) <= RUNS_NAME_MAX)) &&
        (!turn || (run && json_is_integer(turn) && n >= 1 && n <= RUNS_TURN_MAX)))
        return true;
    serve_refuse(s, c, 400, "bad_request", "'run' is a name of 1 to %d bytes, 'turn' one of its turns, 1 to %d",
                 RUNS_NAME_MAX, RUNS_TURN_MAX);
    return false;
}

bool serve_room(struct serve *s, struct http_call *c, struct queue *q, int n)
{
    long load = atomic_fetch_add(&s->load, n);
    int64_t own = s->c.owner_max ? queue_owner_load(q, http_owner(c), NULL) : 0;

    if (load + n <= s->c.queue_max && (!s->c.owner_max || own + n <= s->c.owner_max))
        return true;
    atomic_fetch_sub(&s->load, n);
    http_header_add(c, "Retry-After", "5");
    serve_refuse(s, c, 429, "busy", "%s; try again in a few seconds",
                 load + n > s->c.queue_max ? "the queue is full" : "you have as many jobs in the queue as you may");
    return false;
}

static int route_eval_priority_of(const json_t *body)
{
    int64_t p = json_i64(body, "priority", 0);

    return p > PRIORITY_MAX ? PRIORITY_MAX : p < -PRIORITY_MAX ? -PRIORITY_MAX : (int)p;
}

/* Equal candidates are one job. */
static int route_eval_doubles(const struct route_eval_asked *a)
{
    int n = 0;

    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < i; k++)
            if (a->id[k] == a->id[i]) {
                n++;
                break;
            }
    return n;
}

/* A request that names a group, whose candidates may feed the retry buffer, or a run. What had ended before it joined
 * is told. */
static void route_eval_join(struct serve *s, struct http_call *c, struct queue *q, const json_t *body,
                            const struct route_eval_asked *a)
{
    const json_t *task = json_object_get(body, "task"), *candidates = json_object_get(body, "candidates");
    const char *group = json_str(body, "group", NULL), *run = json_str(body, "run", NULL);
    const char *owner = s->tokens ? http_owner(c) : NULL;
    const char *prompt_id = json_str(body, "prompt_id", json_str(task, "name", "task"));
    int size = (int)json_i64(body, "group_size", a->n) - (group ? route_eval_doubles(a) : 0);
    bool is_response;

    for (int i = 0; group && i < a->n; i++)
        retry_join(s->retry, owner, group, size, prompt_id, a->key[i], a->id[i],
                   ask_candidate(json_array_get(candidates, (size_t)i), &is_response));
    for (int i = 0; run && i < a->n; i++)
        runs_join(s->runs, owner, run, (int)json_i64(body, "turn", 1), a->key[i], a->id[i]);
    for (int i = 0; (group || run) && i < a->n; i++) {
        char *text = NULL;
        int state = queue_result(q, a->id[i], &text, NULL);
        json_t *v = state == QUEUE_DONE ? json_parse(text, strlen(text), "verdict", NULL) : NULL;
        if (state >= QUEUE_DONE) {
            retry_ended(s->retry, a->id[i], v);
            runs_ended(s->runs, a->id[i], v);
        }
        json_decref(v);
        free(text);
    }
}

/* Puts all candidates into the queue. False: one could not be, and the reply says why. */
static bool route_eval_put_all(struct serve *s, struct http_call *c, struct queue *q, const json_t *body,
                               const json_t *options, struct route_eval_asked *ret)
{
    const json_t *candidates = json_object_get(body, "candidates");
    char *lane = xasprintf("run:%s", json_str(options, "backend", ""));
    struct queue_item how = {.lane = lane, .owner = http_owner(c), .priority = route_eval_priority_of(body)};
    struct err e = ERR_INIT;
    int rc = 0;

    for (ret->n = 0; rc >= 0 && ret->n < (int)json_array_size(candidates); ret->n++) {
        rc = route_eval_put_one(s, c, q, body, json_array_get(candidates, (size_t)ret->n), options, &how,
                                &ret->id[ret->n], ret->key[ret->n], &e);
        if (rc == 0)
            atomic_fetch_sub(&s->load, 1); /* it was there */
    }
    free(lane);
    if (rc < 0)
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    return rc >= 0;
}

/* An answer of several files becomes the one text that queue and judge know. */
static bool route_eval_bundle(struct serve *s, struct http_call *c, const json_t *body)
{
    const char *task = json_str(json_object_get(body, "task"), "code", NULL);
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(body, "candidates"), i, one) {
        const json_t *files = json_object_get(one, "files");
        struct err e = ERR_INIT;
        struct buf text;
        int rc;

        if (!files)
            continue;
        buf_init(&text, BUF_MAX_TEXT);
        rc = json_object_size(one) > 1 ? err_set(&e, ERR_INPUT, "'files' stands alone")
           : bundle_of_json(files, task, &text, &e);
        if (rc == 0)
            json_object_set_new(one, "code", json_utf8(text.p, text.n));
        buf_free(&text);
        if (rc < 0) {
            serve_refuse(s, c, 400, "bad_request", "candidate %zu: %s", i, e.msg);
            return false;
        }
    }
    return true;
}

/* POST /v1/eval: queues the candidates and answers, at once or when they are judged. */
static void route_eval_take(struct serve *s, struct http_call *c, const json_t *body)
{
    const json_t *task = json_object_get(body, "task"), *candidates = json_object_get(body, "candidates");
    double wait = route_eval_wait(s, c);
    struct err e = ERR_INIT;
    struct queue *q;
    struct route_eval_asked a;
    json_t *options, *jobs;
    bool all, served;

    if (wait < 0 || !route_eval_known_keys(s, c, body) || !route_eval_bundle(s, c, body) ||
        !route_eval_small_enough(s, c, body) ||
        !route_eval_well_formed(s, c, task, candidates, json_object_get(body, "sidecar")) ||
        !route_eval_good_group(s, c, body) || !route_eval_good_run(s, c, body) ||
        !(options = route_eval_options_of(s, c, body)))
        return;
    if (!(q = serve_queue(s, &e))) {
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
        json_decref(options);
        return;
    }
    all = serve_room(s, c, q, (int)json_array_size(candidates)) && route_eval_put_all(s, c, q, body, options, &a);
    served = backends_served(s->backends, json_str(options, "backend", ""));
    json_decref(options);
    if (!all)
        return;
    route_eval_join(s, c, q, body, &a);
    if (wait > 0) {
        route_eval_park(s, c, q, &a, served ? wait : fmin(wait, LONELY_S));
        return;
    }
    jobs = json_array();
    for (int i = 0; i < a.n; i++)
        json_array_append_new(jobs, json_pack("{s:I}", "id", (json_int_t)a.id[i]));
    route_eval_reply(s, c, 202, jobs);
}

void route_eval(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    const char *text;
    json_t *body;
    size_t n;

    if (http_woken(c)) {
        route_eval_answer(s, c, http_woken(c));
        return;
    }
    metrics_request(s->metrics, "/v1/eval");
    text = http_body(c, &n);
    if (!(body = json_parse(text, n, "the request", &e)))
        serve_refuse(s, c, 400, "bad_request", "%s", e.msg);
    else
        route_eval_take(s, c, body);
    json_decref(body);
}

/* ---- one job ---- */

/* The id of a path; -1 with 404 set. */
static int64_t route_eval_id_of(struct serve *s, struct http_call *c)
{
    char *end;
    int64_t id = strtoll(http_part(c), &end, 10);

    if (*end == 0 && id > 0)
        return id;
    serve_refuse(s, c, 404, "not_found", "a job's number is digits");
    return -1;
}

/* What was asked, in the words of POST /v1/eval: {"task", "code" or "response", "options"}; null where it is gone. */
static json_t *route_eval_request_json(struct queue *q, int64_t id)
{
    char *text = queue_payload(q, id, NULL);
    json_t *p = text ? json_parse(text, strlen(text), "payload", NULL) : NULL, *asked;

    free(text);
    if (!p)
        return json_null();
    asked = json_pack("{s:{s:O?,s:O?},s:O?,s:O?}", "task", "name", json_object_get(p, "task_name"), "code",
                      json_object_get(p, "task_code"), json_flag(p, "is_response", true) ? "response" : "code",
                      json_object_get(p, "candidate"), "options", json_object_get(p, "options"));
    json_decref(p);
    return asked ? asked : json_null();
}

/* GET /v1/jobs/ID: the job's state, and its verdict once it is there. */
static void route_eval_answer_job(struct serve *s, struct http_call *c, struct queue *q, int64_t id)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    int state = queue_result(q, id, &text, &e);
    json_t *job = state >= 0 ? route_eval_job_json(id, state, text) : NULL;

    if (job && http_arg(c, "request"))
        json_object_set_new(job, "request", route_eval_request_json(q, id));
    if (job)
        http_reply_json(c, 200, job);
    else if (e.kind == ERR_INPUT)
        serve_refuse(s, c, 404, "not_found", "there is no job %lld: results are kept for %.0f hours", (long long)id,
                     s->c.keep_s / 3600);
    else
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    free(text);
}

struct queue *serve_queue_or_refuse(struct serve *s, struct http_call *c)
{
    struct err e = ERR_INIT;
    struct queue *q = serve_queue(s, &e);

    if (!q)
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    return q;
}

void route_job(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct queue *q;
    int64_t id;

    metrics_request(s->metrics, "/v1/jobs");
    if ((id = route_eval_id_of(s, c)) >= 0 && (q = serve_queue_or_refuse(s, c)) && serve_owns(s, c, q, id))
        route_eval_answer_job(s, c, q, id);
}

void route_job_cancel(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct queue *q;
    int64_t id;

    metrics_request(s->metrics, "/v1/jobs");
    if ((id = route_eval_id_of(s, c)) < 0 || !(q = serve_queue_or_refuse(s, c)) || !serve_owns(s, c, q, id))
        return;
    queue_cancel(q, id, NULL);
    route_eval_answer_job(s, c, q, id);
}

/* A verdict by the hash of what was asked (ask.h). */
void route_verdict(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    struct queue *q;
    int64_t id;
    int found;

    metrics_request(s->metrics, "/v1/verdicts");
    if (!(q = serve_queue_or_refuse(s, c)))
        return;
    if ((found = queue_find(q, http_part(c), &id, &e)) == 1)
        found = serve_may_see(s, c, q, id, &e);
    if (found == 0)
        serve_refuse(s, c, 404, "not_found", "nothing was asked under this hash, or it was long ago");
    else if (found < 0)
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    else
        route_eval_answer_job(s, c, q, id);
}

/* ---- many jobs, and the retry buffer ---- */

#define LIST_MAX 1000

/* ?state=waiting&limit=100: the caller's newest jobs. */
void route_jobs(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    const char *state = http_arg(c, "state"), *limit = http_arg(c, "limit");
    long n = limit ? strtol(limit, NULL, 10) : 100;
    struct err e = ERR_INIT;
    struct queue *q;
    json_t *jobs, *j;
    size_t i;
    int k = -1;

    metrics_request(s->metrics, "/v1/jobs");
    for (k = QUEUE_WAITING; state && k <= QUEUE_CANCELLED && strcmp(state, serve_state_name(k)); k++)
        ;
    if (n < 1 || n > LIST_MAX || k > QUEUE_CANCELLED) {
        serve_refuse(s, c, 400, "bad_request",
                     "'limit' is 1 to %d; 'state' is one of waiting, running, done, failed, cancelled",
                     LIST_MAX);
        return;
    }
    if (!(q = serve_queue_or_refuse(s, c)))
        return;
    if (!(jobs = queue_list(q, serve_operates(s, c) ? NULL : http_owner(c), state ? k : -1, (int)n, &e))) {
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
        return;
    }
    json_array_foreach(jobs, i, j)
        json_object_set_new(j, "state", json_string(serve_state_name((int)json_i64(j, "state", 0))));
    http_reply_json(c, 200, json_pack("{s:o}", "jobs", jobs));
}

/* How far the caller's runs are; an operator sees all. */
void route_runs(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    const char *owner = serve_operates(s, c) ? NULL : http_owner(c);

    metrics_request(s->metrics, "/v1/runs");
    http_reply_json(c, 200, json_pack("{s:o}", "runs", runs_json(s->runs, owner)));
}

/* {"probability": 0.1}: {"retry": {"prompt_id","response","feedback"} or null}. */
void route_retry_draw(struct http_call *c, void *ctx)
{
    struct serve *s = ctx;
    struct err e = ERR_INIT;
    size_t n;
    const char *text = http_body(c, &n);
    json_t *body = json_parse(n ? text : "{}", n ? n : 2, "the request", &e), *got;
    double p = json_f64(body, "probability", 0.1);

    metrics_request(s->metrics, "/v1/retry/draw");
    if (!json_is_object(body) || !(p >= 0 && p <= 1))
        serve_refuse(s, c, 400, "bad_request", "%s", *e.msg ? e.msg : "'probability' is 0 to 1");
    else if (!(got = retry_draw(s->retry, s->tokens ? http_owner(c) : NULL, p, &e)))
        serve_refuse(s, c, 503, "queue", "%s", e.msg);
    else
        http_reply_json(c, 200, json_pack("{s:o}", "retry", got));
    json_decref(body);
}
