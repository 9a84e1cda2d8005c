/* serve.c - the server's life: its table of routes, what it does when jobs end, and when nothing happens. */
#include "serve/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/serve_private.h"

#define BODY_MAX ((size_t)16 << 20)
#define BODIES_MAX ((size_t)512 << 20)
#define IDLE_S 30
#define HEAD_S 45
#define CONNECTIONS 4096
#define SWEEP_S 60.0
#define LOOK_S 1.0
#define LOOK_MAX_S 10.0
#define LOOK_SHARE 20 /* looks take a twentieth of the time at most */

static const struct http_route routes[] = {
    /* KernelGYM's, behind --compat: the table begins at OURS without it */
    {"POST", "/evaluate", kernelgym_evaluate, false},
    {"POST", "/workflow/submit", kernelgym_evaluate, false},
    {"GET", "/status/{id}", kernelgym_status, false},
    {"GET", "/results/{id}", kernelgym_result, false},
    {"GET", "/workflow/results/{id}", kernelgym_result, false},
    {"DELETE", "/tasks/{id}", kernelgym_cancel, false},
    {"GET", "/health", kernelgym_health, true},
    {"GET", "/health/live", kernelgym_health, true},
    {"GET", "/queue/status", kernelgym_queue, false},
    {"GET", "/workers/status", kernelgym_workers, false},
#define OURS 10
    {"POST", "/v1/eval", route_eval, false},
    {"GET", "/", route_page, true},
    {"GET", "/openapi.json", route_openapi, true},
    {"GET", "/docs", route_docs, true},
    {"GET", "/v1/jobs", route_jobs, false},
    {"GET", "/v1/runs", route_runs, false},
    {"POST", "/v1/retry/draw", route_retry_draw, false},
    {"GET", "/v1/jobs/{id}", route_job, false},
    {"DELETE", "/v1/jobs/{id}", route_job_cancel, false},
    {"GET", "/v1/verdicts/{sha}", route_verdict, false},
    {"GET", "/v1/events", route_events, false},
    {"GET", "/v1/stats", route_stats, false},
    {"POST", "/v1/workers/{name}/drain", route_drain, false},
    {"GET", "/healthz", route_health, true},
    {"GET", "/readyz", route_ready, true},
    {"GET", "/metrics", route_metrics, true},
    {0},
};

/* The owner of a token, "local" where no tokens are asked for; NULL: unknown. */
static const char *serve_who(const char *token, void *ctx)
{
    const struct serve *s = ctx;

    return s->tokens ? tokens_owner(s->tokens, token) : "local";
}

/* What a stream says of a job that ended: no text of a candidate's. */
static json_t *serve_summary(int64_t id, int state, const json_t *v)
{
    return json_pack("{s:I,s:s,s:s,s:o,s:s,s:O?,s:O?,s:O?}", "id", (json_int_t)id, "task", json_str(v, "task", ""),
                     "status", state == QUEUE_CANCELLED ? "cancelled" : json_str(v, "status", "infra"), "category",
                     json_object_get(v, "category") ? json_incref(json_object_get(v, "category")) : json_null(),
                     "backend", json_str(v, "backend", ""), "reward", json_object_get(v, "reward"), "stage_ms",
                     json_object_get(v, "stage_ms"), "code", json_object_get(v, "code"));
}

/* A callback of waiters: counts a job that has ended and tells whoever listens. */
static void serve_on_ended(int64_t id, int state, const char *text, void *ctx)
{
    struct serve *s = ctx;
    json_t *v = state == QUEUE_DONE ? json_parse(text, strlen(text), "verdict", NULL) : NULL, *said;
    struct err e = ERR_INIT;
    struct queue *q;
    char *owner;

    metrics_verdict(s->metrics, state, v);
    retry_ended(s->retry, id, v);
    runs_ended(s->runs, id, v);
    owner = s->tokens && (q = serve_queue(s, &e)) ? queue_owner(q, id, &e) : NULL;
    if ((said = serve_summary(id, state, v)))
        events_say(s->events, s->tokens ? owner ? owner : "" : NULL, "verdict", said);
    json_decref(said);
    free(owner);
    json_decref(v);
}

/* Looks at queue and workers, for the metrics and the page. */
static void serve_look(struct serve *s, struct queue *q)
{
    struct queue_stats st;
    struct err e = ERR_INIT;
    json_t *workers = NULL, *said;
    bool up = queue_stats(q, &st, &e) == 0 && (workers = queue_workers(q, &e)) != NULL;

    if (up) {
        atomic_store(&s->load, st.waiting + st.leased);
        metrics_queue(s->metrics, &st, (int)json_array_size(workers));
        backends_look(s->backends, workers);
        said = metrics_json(s->metrics);
        json_object_set(said, "worker", workers);
        events_say(s->events, NULL, "stats", said);
        json_decref(said);
    } else if (atomic_load(&s->queue_up)) {
        log_warn("%s", e.msg);
    }
    json_decref(workers);
    atomic_store(&s->queue_up, up);
}

/* A callback of waiters, each second: looks and sweeps when it is time. */
static void serve_on_tick(struct queue *q, void *ctx)
{
    struct serve *s = ctx;
    double now = now_s();

    if (now < s->looked + fmin(fmax(LOOK_S, LOOK_SHARE * s->look_took), LOOK_MAX_S)) /* a million jobs take a while */
        return;
    serve_look(s, q);
    s->looked = now_s();
    s->look_took = s->looked - now;
    if (now_s() > s->swept + SWEEP_S) {
        s->swept = now_s();
        queue_sweep(q, s->c.keep_s, NULL);
    }
}

static bool serve_is_local(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* Starts the server; *ret is stopped by serve_stop. */
int serve_start(const struct serve_config *c, struct serve **ret, struct err *e)
{
    struct serve *s = xcalloc(1, sizeof *s);
    struct http_config h = {.address = c->address,
                            .port = c->port,
                            .threads = c->threads,
                            .body_max = BODY_MAX,
                            .bodies_max = BODIES_MAX,
                            .owner_bodies = c->tokens ? BODIES_MAX / 4 : 0,
                            .idle_s = IDLE_S,
                            .head_s = HEAD_S,
                            .owner_calls = c->tokens ? CONNECTIONS / 2 : 0,
                            .connections = CONNECTIONS,
                            .routes = routes + (c->kernelgym ? 0 : OURS),
                            .more = c->more,
                            .more_ctx = c->more_ctx,
                            .who = serve_who,
                            .hosts = c->tokens ? NULL : c->host ? c->host : "",
                            .ctx = s};

    s->c = *c;
    s->metrics = metrics_new();
    s->events = events_new();
    s->retry = retry_new();
    s->runs = runs_new();
    s->backends = backends_new();
    s->swept = now_s();
    atomic_store(&s->queue_up, true);
    if (!c->tokens && !serve_is_local(c->address)) {
        err_set(e, ERR_INPUT,
                "'%s' is reached from other machines, so callers need tokens; give --tokens FILE, or listen "
                "on 127.0.0.1",
                c->address);
        goto fail;
    }
    if (retry_open(s->retry, c->queue, e) < 0 || (c->tokens && tokens_read(c->tokens, &s->tokens, e) < 0) ||
        waiters_start(c->queue, serve_on_ended, serve_on_tick, s, &s->waiters, e) < 0 ||
        http_start(&h, &s->http, e) < 0)
        goto fail;
    *ret = s;
    return 0;
fail:
    serve_stop(s);
    return -1;
}

int serve_port(const struct serve *s)
{
    return http_port(s->http);
}

void serve_stop(struct serve *s)
{
    if (!s)
        return;
    if (s->c.more_stop)
        s->c.more_stop(s->c.more_ctx);
    http_stop(s->http);
    waiters_stop(s->waiters);
    events_free(s->events);
    retry_free(s->retry);
    runs_free(s->runs);
    backends_free(s->backends);
    metrics_free(s->metrics);
    tokens_free(s->tokens);
    free(s);
}
