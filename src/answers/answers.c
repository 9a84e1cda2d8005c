/* answers.c - one call over two sources: the sampler on a model of ours, and a server's chat completions. */
#include "answers/answers.h"

#include <stdlib.h>
#include <string.h>

#include "answers/rollout_engine.h"
#include "base/mem.h"
#include "nn/model.h"
#include "remote/many.h"

#define PARALLEL 32

struct answers {
    char *name;
    struct openai *server; /* or */
    struct tokenizer *tok;
    struct model *model;
    struct rollout_engine *engine;
};

/* Loads the model of a folder and puts it on its device. */
static int answers_open_folder(struct answers *a, const struct answers_config *c, struct err *e)
{
    if (!(a->tok = tokenizer_load(c->model, e)) || !(a->model = model_load(c->model, e)) ||
        model_use_tokenizer(a->model, a->tok, e) < 0 ||
        model_to_device(a->model, c->device ? c->device : "cpu", c->dtype, e) < 0)
        return -1;
    a->engine = rollout_engine_own(a->model);
    a->name = xstrdup(c->model);
    return 0;
}

/* Opens a client of the server. */
static int answers_open_server(struct answers *a, const struct answers_config *c, struct err *e)
{
    struct openai_config remote = {.url = c->model, .model = c->model_name, .retry_s = c->retry_s};

    if (openai_open(&remote, &a->server, e) < 0)
        return -1;
    a->name = xstrdup(openai_model(a->server));
    return 0;
}

/* *ret is closed by answers_close. c->model: a folder, or a server's URL. */
int answers_open(const struct answers_config *c, struct answers **ret, struct err *e)
{
    struct answers *a = xcalloc(1, sizeof *a);

    if ((openai_is_url(c->model) ? answers_open_server(a, c, e) : answers_open_folder(a, c, e)) < 0) {
        answers_close(a);
        return -1;
    }
    *ret = a;
    return 0;
}

void answers_close(struct answers *a)
{
    if (!a)
        return;
    rollout_engine_close(a->engine);
    openai_close(a->server);
    model_free(a->model);
    tokenizer_free(a->tok);
    free(a->name);
    free(a);
}

struct tokenizer *answers_tokenizer(const struct answers *a)
{
    return a->tok;
}

const char *answers_model(const struct answers *a)
{
    return a->name;
}

/* One call. The sampler knows only the requests that have room. */
struct answers_call {
    const struct answers *source;
    const struct answers_options *o;
    const struct answers_request *reqs;
    int *request; /* the sampler's request -> the caller's */
    int done, total;
    uint64_t tokens;
    bool failed;
    struct err *e;
};

/* ---- a model here ---- */

/* A callback of the sampler: gives a finished sample as an answer to the caller. */
static void answers_on_sample(void *ctx, const struct sample *s)
{
    struct answers_call *c = ctx;
    int request = c->request[s->request];
    struct answer a = {.ids = s->tokens, .n = s->n, .cut = s->finish == FINISH_LENGTH, .tokens = s->n,
                       .prompt_tokens = (int)c->reqs[request].dialogue->chat.ids.n};
    char *text;

    if (c->failed || s->finish == FINISH_CANCELLED)
        return;
    a.text = text = tokenizer_text(c->source->tok, s->tokens, (size_t)s->n, true);
    if (c->o->on_text)
        c->o->on_text(text, strlen(text), c->o->ctx);
    c->failed = c->o->on_answer(c->o->ctx, request, s->index, &a, c->e) < 0;
    free(text);
}

/* A callback of the source: hands its progress to the caller's own callback, if there is one. */
static void answers_on_progress(void *ctx, uint64_t tokens, int done, int total)
{
    const struct answers_call *c = ctx;

    if (c->o->on_progress)
        c->o->on_progress(c->o->ctx, tokens, done, total);
}

/* Fills the sampler's requests; a dialogue without room is answered at once, by nothing. Returns how many, or -1. */
static int answers_make_requests(struct answers_call *c, const struct answers_request *reqs, int n,
                                 struct sample_request *out, struct err *e)
{
    int room = c->source->model->config.max_positions, m = 0;

    if (c->o->max_context > 0 && c->o->max_context < room)
        room = c->o->max_context;
    for (int i = 0; i < n; i++) {
        const struct ivec *ids = &reqs[i].dialogue->chat.ids;
        int left = room - (int)ids->n;
        for (int k = 0; left < 1 && k < reqs[i].n; k++)
            if (c->o->on_answer(c->o->ctx, i, k, NULL, e) < 0)
                return -1;
        if (left < 1)
            continue;
        out[m] = (struct sample_request){.prompt = ids->v, .n_prompt = (int)ids->n, .n_samples = reqs[i].n,
                                         .max_new = left < c->o->max_new ? left : c->o->max_new,
                                         .seed = reqs[i].seed};
        c->request[m++] = i;
    }
    return m;
}

/* Draws all answers with the model in this process. */
static int answers_draw_here(struct answers_call *c, const struct answers_request *reqs, int n, struct err *e)
{
    struct sampler_options so = {.temperature = (float)c->o->temperature, .top_p = (float)c->o->top_p,
                                 .max_batch = c->o->max_batch, .max_new = c->o->max_new,
                                 .on_sample = answers_on_sample, .progress = answers_on_progress, .ctx = c};
    struct sample_request *out = xcalloc((size_t)n + 1, sizeof *out);
    struct sample *samples = NULL;
    size_t n_samples = 0;
    int m, rc;

    c->request = xcalloc((size_t)n + 1, sizeof *c->request);
    rc = m = answers_make_requests(c, reqs, n, out, e);
    if (m > 0)
        rc = rollout_engine_run(c->source->engine, &so, out, m, &samples, &n_samples, e);
    samples_free(samples, n_samples);
    free(c->request);
    free(out);
    return rc < 0 || c->failed ? -1 : 0;
}

/* ---- a server ---- */

/* A callback of the server's client: gives a reply as an answer to the caller. */
static int answers_on_reply(int i, const struct openai_reply *r, void *ctx, struct err *e)
{
    struct answers_call *c = ctx;
    struct answer a = {.text = r->text, .cut = r->cut, .prompt_tokens = r->prompt_tokens,
                       .tokens = r->completion_tokens};

    c->done++;
    c->tokens += (uint64_t)r->completion_tokens;
    if (c->o->on_progress)
        c->o->on_progress(c->o->ctx, c->tokens, c->done, c->total);
    return c->o->on_answer(c->o->ctx, i, 0, r->no_room || r->refused ? NULL : &a, e);
}

/* Asks the server for all answers, several at a time. */
static int answers_draw_there(struct answers_call *c, const struct answers_request *reqs, int n, struct err *e)
{
    struct openai_ask *asks = xcalloc((size_t)n + 1, sizeof *asks);
    int rc;

    for (int i = 0; i < n; i++)
        asks[i] = (struct openai_ask){.messages = reqs[i].dialogue->messages, .temperature = c->o->temperature,
                                      .top_p = c->o->top_p, .max_tokens = c->o->max_new,
                                      .seed = (int64_t)reqs[i].seed, .on_text = c->o->on_text, .ctx = c->o->ctx};
    c->total = n;
    rc = openai_many(c->source->server, asks, n, c->o->parallel > 0 ? c->o->parallel : PARALLEL, answers_on_reply, c,
                     e);
    free(asks);
    return rc;
}

int answers_draw(struct answers *a, const struct answers_options *o, const struct answers_request *reqs, int n,
                 struct err *e)
{
    struct answers_call c = {.source = a, .o = o, .reqs = reqs, .e = e};

    if (n == 0)
        return 0;
    return a->server ? answers_draw_there(&c, reqs, n, e) : answers_draw_here(&c, reqs, n, e);
}
