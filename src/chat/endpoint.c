/* endpoint.c - see endpoint.h. */
#include "chat/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "chat/answer.h"
#include "nn/model.h"

#define MAX_LEN 8192
#define MAX_WAITING 4096
#define STREAM_MAX ((size_t)64 << 20)

struct endpoint {
    char *name;
    struct model *model;
    struct tokenizer *tok;
    pthread_mutex_t encoding; /* one thread encodes at a time */
    struct ask_limits limits;
    struct batcher *batcher;
    int64_t since;
};

/* A call with its job. */
struct talk {
    struct endpoint *p;
    struct http_call *call;
    struct chat_job *job;
    struct buf out; /* of a stream: made, not yet sent */
    size_t sent;
    bool ended;
};

/* ---- answers ---- */

/* Replies with an error in OpenAI's form. */
static void endpoint_refuse(struct http_call *c, int status, const char *type, const char *param, const char *code,
                            const char *message)
{
    http_reply_json(c, status, answer_error(type, param, code, message));
}

/* A callback of the job: there is more to send. */
static void endpoint_wake(struct chat_job *j, void *ctx)
{
    struct talk *t = ctx;

    if (j->ask.stream || j->left == 0)
        http_wake(t->call);
}

/* The client is gone: nobody wants the job any more. */
static void endpoint_gone(void *ctx)
{
    struct talk *t = ctx;

    pthread_mutex_lock(&t->job->lock);
    t->job->moved = NULL;
    t->job->unwanted = true;
    pthread_mutex_unlock(&t->job->lock);
    chat_job_release(t->job);
    buf_free(&t->out);
    free(t);
}

/* A callback of http: copies up to n bytes of the stream to 'to'. 0: none yet; -1: it has ended. */
static long endpoint_stream_next(void *ctx, char *to, size_t n)
{
    struct talk *t = ctx;
    size_t left = t->out.n - t->sent;

    if (left == 0 && t->ended)
        return -1;
    if (left == 0) {
        buf_clear(&t->out);
        t->sent = 0;
        pthread_mutex_lock(&t->job->lock);
        t->ended = answer_stream(t->job, t->p->name, t->p->tok, &t->out);
        pthread_mutex_unlock(&t->job->lock);
        left = t->out.n;
    }
    n = left < n ? left : n;
    memcpy(to, t->out.p + t->sent, n);
    t->sent += n;
    return (long)n;
}

/* True where a sample was cut off since the server stops. */
static bool endpoint_was_cancelled(const struct chat_job *j)
{
    for (int i = 0; i < j->n; i++)
        if (j->drawn[i].finish == FINISH_CANCELLED && !j->drawn[i].words.stopped)
            return true;
    return false;
}

/* Replies with the finished job; 503 where the server stopped before its end. */
static void endpoint_reply_whole(struct http_call *c, struct talk *t)
{
    json_t *v = NULL;

    pthread_mutex_lock(&t->job->lock);
    if (t->job->left == 0 && !endpoint_was_cancelled(t->job))
        v = answer_whole(t->job, t->p->name, t->p->tok);
    pthread_mutex_unlock(&t->job->lock);
    if (v)
        http_reply_json(c, 200, v);
    else
        endpoint_refuse(c, 503, "server_error", NULL, "stopping", "the engine stopped before the answer was whole; ask "
                                                                  "again");
}

/* ---- asking ---- */

/* Reads the request's body; -1: it was refused, and the reply is on its way. */
static int endpoint_read_ask(struct http_call *c, struct endpoint *p, bool chat, struct chat_ask *ret)
{
    size_t n;
    const char *body = http_body(c, &n), *param = NULL, *code = NULL;
    struct err e = ERR_INIT;
    json_t *v = json_parse(body, n, "the body", &e);
    int rc = -1;

    if (v) {
        pthread_mutex_lock(&p->encoding);
        rc = ask_read(v, chat, p->tok, &p->limits, ret, &param, &code, &e);
        pthread_mutex_unlock(&p->encoding);
    }
    if (rc < 0)
        endpoint_refuse(c, code && !strcmp(code, "model_not_found") ? 404 : 400, "invalid_request_error", param, code,
                        e.msg);
    json_decref(v);
    return rc;
}

/* Is it a request that the sampler takes? Asked of its first prompt: lengths and ids were looked at. */
static int endpoint_check_ask(struct http_call *c, struct endpoint *p, const struct chat_ask *a)
{
    struct sampler_options o = {.temperature = 1, .max_new = p->limits.max_len};
    struct sample_request q = {.prompt = a->prompt[0].v, .n_prompt = (int)a->prompt[0].n, .n_samples = a->n,
                               .max_new = a->max_new, .choice = &a->choice};
    struct err e = ERR_INIT;

    if (sampler_check(p->model, &o, &q, &e) == 0)
        return 0;
    endpoint_refuse(c, 400, "invalid_request_error", NULL, NULL, e.msg);
    return -1;
}

/* Gives the request to the batcher and suspends the call, or begins its stream. Takes a. */
static void endpoint_begin(struct http_call *c, struct endpoint *p, struct chat_ask *a)
{
    struct talk *t = xcalloc(1, sizeof *t);
    bool stream = a->stream;

    *t = (struct talk){.p = p, .call = c, .job = chat_job_new(a)};
    buf_init(&t->out, STREAM_MAX);
    t->job->moved = endpoint_wake;
    t->job->ctx = t;
    if (batcher_add(p->batcher, t->job) < 0) {
        endpoint_gone(t);
        http_header_add(c, "Retry-After", "2");
        endpoint_refuse(c, 429, "rate_limit_error", NULL, "busy", "too many samples wait for the engine; come again");
        return;
    }
    if (stream)
        http_stream(c, "text/event-stream", endpoint_stream_next, t, endpoint_gone);
    else
        http_park(c, t, endpoint_gone);
}

/* Answers a call, or the call that was woken since its job has ended. */
static void endpoint_answer(struct http_call *c, struct endpoint *p, bool chat)
{
    struct talk *t = http_woken(c);
    struct chat_ask a = {0};

    if (t) {
        endpoint_reply_whole(c, t);
        return;
    }
    if (endpoint_read_ask(c, p, chat, &a) < 0)
        return;
    if (endpoint_check_ask(c, p, &a) < 0)
        ask_free(&a);
    else
        endpoint_begin(c, p, &a);
}

static void endpoint_route_chat(struct http_call *c, void *ctx)
{
    endpoint_answer(c, ctx, true);
}

static void endpoint_route_plain(struct http_call *c, void *ctx)
{
    endpoint_answer(c, ctx, false);
}

/* The model as /v1/models lists it. New. */
static json_t *endpoint_model_json(const struct endpoint *p)
{
    return json_pack("{s:s,s:s,s:I,s:s,s:i}", "id", p->name, "object", "model", "created", (json_int_t)p->since,
                     "owned_by", "musacoder", "max_model_len", p->limits.max_len);
}

static void endpoint_route_models(struct http_call *c, void *ctx)
{
    http_reply_json(c, 200, json_pack("{s:s,s:[o]}", "object", "list", "data", endpoint_model_json(ctx)));
}

/* GET /v1/models/NAME: this model, or 404 for another name. */
static void endpoint_route_model(struct http_call *c, void *ctx)
{
    const struct endpoint *p = ctx;

    if (!strcmp(http_part(c), p->name))
        http_reply_json(c, 200, endpoint_model_json(p));
    else
        endpoint_refuse(c, 404, "invalid_request_error", "model", "model_not_found", "this model is not here");
}

const struct http_route *endpoint_routes(void)
{
    static const struct http_route routes[] = {
        {"GET", "/v1/models", endpoint_route_models, false},
        {"GET", "/v1/models/{id+}", endpoint_route_model, false},
        {"POST", "/v1/chat/completions", endpoint_route_chat, false},
        {"POST", "/v1/completions", endpoint_route_plain, false},
        {0},
    };

    return routes;
}

void endpoint_metrics(void *endpoint, struct buf *out)
{
    struct endpoint *p = endpoint;
    struct batcher_stats s;

    batcher_stats(p->batcher, &s);
    buf_addf(out,
             "# HELP musacoder_model_samples Samples of the model endpoint.\n# TYPE musacoder_model_samples gauge\n");
    buf_addf(out, "musacoder_model_samples{state=\"running\"} %d\n", s.running);
    buf_addf(out, "musacoder_model_samples{state=\"waiting\"} %d\n", s.waiting);
    buf_addf(out, "# HELP musacoder_model_requests_total Requests that the engine took.\n"
                  "# TYPE musacoder_model_requests_total counter\nmusacoder_model_requests_total %llu\n",
             (unsigned long long)s.requests);
    buf_addf(out, "# HELP musacoder_model_tokens_total Tokens read and drawn.\n"
                  "# TYPE musacoder_model_tokens_total counter\n");
    buf_addf(out, "musacoder_model_tokens_total{kind=\"prompt\"} %llu\n", (unsigned long long)s.prompt_tokens);
    buf_addf(out, "musacoder_model_tokens_total{kind=\"drawn\"} %llu\n", (unsigned long long)s.tokens);
}

/* ---- life ---- */

/* The last part of the folder's path, owned. */
static char *endpoint_name_of(const char *dir)
{
    size_t n = strlen(dir);
    const char *slash;

    while (n > 1 && dir[n - 1] == '/')
        n--;
    slash = memrchr(dir, '/', n);
    return slash && n > 1 ? xstrndup(slash + 1, (size_t)(dir + n - slash - 1)) : xstrndup(dir, n);
}

/* Loads tokenizer and model and settles the limits. */
static int endpoint_load(struct endpoint *p, const struct endpoint_config *c, struct err *e)
{
    int most;

    if (!(p->tok = tokenizer_load(c->dir, e)) || !(p->model = model_load(c->dir, e)) ||
        model_use_tokenizer(p->model, p->tok, e) < 0)
        return -1;
    most = p->model->config.max_positions;
    if (c->max_len > most)
        return err_set(e, ERR_INPUT, "--max-len %d is more than the model's %d positions", c->max_len, most);
    p->limits = (struct ask_limits){.model = p->name,
                                    .max_len = c->max_len ? c->max_len : most < MAX_LEN ? most : MAX_LEN,
                                    .vocab = p->model->config.vocab_size};
    return strcmp(c->device, "cpu") ? model_to_device(p->model, c->device, c->dtype, e) : 0;
}

/* Loads a model and starts to serve it; *ret is closed by endpoint_close. */
int endpoint_open(const struct endpoint_config *c, struct endpoint **ret, struct err *e)
{
    struct endpoint *p = xcalloc(1, sizeof *p);
    struct batcher_config b;

    p->name = c->name ? xstrdup(c->name) : endpoint_name_of(c->dir);
    p->since = (int64_t)time(NULL);
    pthread_mutex_init(&p->encoding, NULL);
    if (endpoint_load(p, c, e) < 0) {
        endpoint_close(p);
        return -1;
    }
    b = (struct batcher_config){.model = p->model, .tok = p->tok, .max_len = p->limits.max_len,
                                .max_batch = c->max_batch, .max_waiting = MAX_WAITING};
    if (batcher_start(&b, &p->batcher, e) < 0) {
        endpoint_close(p);
        return -1;
    }
    *ret = p;
    return 0;
}

const char *endpoint_name(const struct endpoint *p)
{
    return p->name;
}

void endpoint_stop(struct endpoint *p)
{
    if (p)
        batcher_halt(p->batcher);
}

void endpoint_close(struct endpoint *p)
{
    if (!p)
        return;
    batcher_stop(p->batcher);
    model_free(p->model);
    tokenizer_free(p->tok);
    pthread_mutex_destroy(&p->encoding);
    free(p->name);
    free(p);
}
