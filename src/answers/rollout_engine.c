/* rollout_engine.c - the table of engines: the sampler on the learner's weights or a copy, and a server. */
#include "answers/rollout_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "remote/many.h"

#define PARALLEL 64
#define SILENCE_S 7200.0 /* an answer of 32K tokens comes in one piece */

struct rollout_engine {
    const struct engine *engine;
    struct rollout_engine_config c;
    struct model *m;       /* own: what draws */
    struct openai *server; /* openai */
};

struct engine {
    const char *name;
    int (*open)(struct rollout_engine *d, struct err *e);
    int (*run)(struct rollout_engine *d, const struct sampler_options *o, const struct sample_request *reqs, int n,
               struct sample **ret, size_t *ret_n, struct err *e);
    int (*renew)(struct rollout_engine *d, struct err *e);
    void (*close)(struct rollout_engine *d);
};

/* *ret is what the word says. ERR_INPUT for another word. */
int rollout_engine_sync_of(const char *name, enum rollout_engine_sync *ret, struct err *e)
{
    static const char *const names[] = {"none", "disk"};

    for (int i = 0; i < 2; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum rollout_engine_sync)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "'%s' is neither none nor disk", name);
}

/* ---- own ---- */

/* The learner's own weights, or a copy where it samples beside training. */
static int rollout_engine_own_open(struct rollout_engine *d, struct err *e)
{
    d->m = d->c.learner;
    if (!d->c.apart)
        return 0;
    if (!(d->m = model_clone(d->c.learner)))
        return err_set(e, ERR_ENV, "no memory for the weights that draw");
    return model_to_device(d->m, d->c.device ? d->c.device : "cpu", d->c.dtype, e);
}

/* Samples with the engine's own model; as struct rollout_engine's run. */
static int rollout_engine_own_run(struct rollout_engine *d, const struct sampler_options *o,
                                  const struct sample_request *reqs, int n, struct sample **ret, size_t *ret_n,
                                  struct err *e)
{
    return sampler_run(d->m, o, reqs, n, ret, ret_n, e);
}

/* Copies the learner's weights, unless the model is the learner itself. */
static int rollout_engine_own_renew(struct rollout_engine *d, struct err *e)
{
    return d->m == d->c.learner ? 0 : model_copy(d->m, d->c.learner, e);
}

/* Frees the model, unless it is the learner. */
static void rollout_engine_own_close(struct rollout_engine *d)
{
    if (d->m && d->m != d->c.learner)
        model_free(d->m);
}

/* ---- a server ---- */

/* Opens a client of the server that samples. */
static int rollout_engine_openai_start(struct rollout_engine *d, struct err *e)
{
    struct openai_config c = {.url = d->c.url, .model = d->c.model, .timeout_s = SILENCE_S};

    if (!d->c.url)
        return err_set(e, ERR_INPUT, "'--rollout-engine openai' needs '--rollout-url http://HOST:PORT/v1'");
    return openai_open(&c, &d->server, e);
}

struct rollout_engine_drawn {
    const struct sampler_options *o;
    const struct sample_request *reqs;
    struct sample *samples;
    int *first; /* (n) of a request's samples */
    int done, total;
    uint64_t tokens;
};

/* Takes a server's sample: token ids and log-probabilities under the drawing distribution. */
static void rollout_engine_take_sample(struct rollout_engine_drawn *w, int request, int index,
                                       const struct openai_sample *a)
{
    struct sample *s = &w->samples[w->first[request] + index];

    s->tokens = xmalloc((size_t)a->n * sizeof *s->tokens);
    s->logp = xmalloc((size_t)a->n * sizeof *s->logp);
    memcpy(s->tokens, a->ids, (size_t)a->n * sizeof *s->tokens);
    memcpy(s->logp, a->logp, (size_t)a->n * sizeof *s->logp);
    s->n = a->n;
    s->finish = a->cut ? FINISH_LENGTH : FINISH_STOP;
    w->done++;
    w->tokens += (uint64_t)a->n;
    if (w->o->on_sample)
        w->o->on_sample(w->o->ctx, s);
}

/* A callback of the client: takes a request's samples. */
static int rollout_engine_on_answer(int i, const struct openai_reply *r, void *ctx, struct err *e)
{
    struct rollout_engine_drawn *w = ctx;

    (void)e;
    for (int k = 0; k < r->n_samples; k++)
        rollout_engine_take_sample(w, i, k, &r->samples[k]);
    if (w->o->progress)
        w->o->progress(w->o->ctx, w->tokens, w->done, w->total);
    return 0;
}

/* Answers are shortened at the end of the model's positions, as the sampler does: a server refuses them. */
static struct openai_ask rollout_engine_ask_of(const struct rollout_engine *d, const struct sampler_options *o,
                                               const struct sample_request *q)
{
    int most = q->max_new ? q->max_new : o->max_new, room = d->c.learner->config.max_positions - q->n_prompt;

    return (struct openai_ask){.prompt = q->prompt, .n_prompt = q->n_prompt, .n = q->n_samples,
                               .n_vocab = d->c.learner->config.vocab_size,
                               .temperature = (double)o->temperature, .top_p = (double)o->top_p,
                               .max_tokens = most < room ? most : room, .seed = (int64_t)q->seed,
                               .stop_ids = o->stop_ids,
                               .n_stop = o->n_stop};
}

/* As sampler_run, drawn by an OpenAI-compatible server that returns ids and log-probabilities. */
static int rollout_engine_openai_run(struct rollout_engine *d, const struct sampler_options *o,
                                     const struct sample_request *reqs, int n, struct sample **ret, size_t *ret_n,
                                     struct err *e)
{
    struct openai_ask *asks = xcalloc((size_t)n + 1, sizeof *asks);
    struct rollout_engine_drawn w = {.o = o, .reqs = reqs, .first = xcalloc((size_t)n + 1, sizeof *w.first)};
    int rc;

    for (int i = 0; i < n; i++) {
        asks[i] = rollout_engine_ask_of(d, o, &reqs[i]);
        w.first[i] = w.total;
        w.total += reqs[i].n_samples;
    }
    w.samples = xcalloc((size_t)w.total + 1, sizeof *w.samples);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < reqs[i].n_samples; k++)
            w.samples[w.first[i] + k] = (struct sample){.finish = FINISH_CANCELLED, .request = i, .index = k,
                                                        .user = reqs[i].user};
    rc = openai_many(d->server, asks, n, d->c.parallel ? d->c.parallel : PARALLEL, rollout_engine_on_answer, &w, e);
    *ret = w.samples;
    *ret_n = (size_t)w.total;
    free(asks);
    free(w.first);
    return rc;
}

/* Saves the learner's weights where the server reads them, and tells it. */
static int rollout_engine_openai_renew(struct rollout_engine *d, struct err *e)
{
    struct model_save_options same = {.dtype = "bf16"};

    if (d->c.sync == ROLLOUT_ENGINE_SYNC_NONE)
        return 0;
    if (model_save_as(d->c.learner, d->c.folder, &same, e) < 0)
        return -1;
    return openai_load_weights(d->server, d->c.folder, e);
}

static void rollout_engine_openai_end(struct rollout_engine *d)
{
    openai_close(d->server);
}

/* ---- the table ---- */

static const struct engine engines[] = {
    {"own", rollout_engine_own_open, rollout_engine_own_run, rollout_engine_own_renew, rollout_engine_own_close},
    {"openai", rollout_engine_openai_start, rollout_engine_openai_run, rollout_engine_openai_renew,
     rollout_engine_openai_end},
};

/* *ret is closed by rollout_engine_close. ERR_INPUT: there is no such engine. */
int rollout_engine_open(const struct rollout_engine_config *c, struct rollout_engine **ret, struct err *e)
{
    const char *name = c->engine ? c->engine : "own";
    struct rollout_engine *d = xcalloc(1, sizeof *d);

    d->c = *c;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (!strcmp(engines[i].name, name))
            d->engine = &engines[i];
    if (!d->engine) {
        free(d);
        return err_set(e, ERR_INPUT, "rollout engine '%s' is neither own nor openai", name);
    }
    d->c.folder = c->folder ? xstrdup(c->folder) : NULL;
    if (d->engine->open(d, e) < 0 || rollout_engine_renew(d, e) < 0) {
        rollout_engine_close(d);
        return -1;
    }
    *ret = d;
    return 0;
}

struct rollout_engine *rollout_engine_own(struct model *m)
{
    struct rollout_engine *d = xcalloc(1, sizeof *d);

    *d = (struct rollout_engine){.engine = &engines[0], .c.learner = m, .m = m};
    return d;
}

void rollout_engine_close(struct rollout_engine *d)
{
    if (!d)
        return;
    d->engine->close(d);
    free((char *)d->c.folder);
    free(d);
}

int rollout_engine_run(struct rollout_engine *d, const struct sampler_options *o, const struct sample_request *reqs,
                       int n, struct sample **ret, size_t *ret_n, struct err *e)
{
    return d->engine->run(d, o, reqs, n, ret, ret_n, e);
}

int rollout_engine_renew(struct rollout_engine *d, struct err *e)
{
    return d->engine->renew(d, e);
}

bool rollout_engine_follows(const struct rollout_engine *d)
{
    return !d->server || d->c.sync != ROLLOUT_ENGINE_SYNC_NONE;
}
