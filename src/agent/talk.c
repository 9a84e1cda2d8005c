/* talk.c - see talk.h. */
#include "agent/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "nn/sampler.h"
#include "remote/openai.h"

struct talker {
    struct talk_config c;
    int said;
    struct openai *server; /* or */
    struct model *model;
    struct tokenizer *tok;
};

static int talk_open_folder(struct talker *t, struct err *e)
{
    if (!(t->tok = tokenizer_load(t->c.model, e)) || !(t->model = model_load(t->c.model, e)))
        return -1;
    return model_use_tokenizer(t->model, t->tok, e);
}

int talker_open(const struct talk_config *c, struct talker **ret, struct err *e)
{
    struct talker *t = xcalloc(1, sizeof *t);
    struct openai_config remote = {.url = c->model, .model = c->model_name, .retry_s = c->retry_s};
    int rc;

    t->c = *c;
    rc = openai_is_url(c->model) ? openai_open(&remote, &t->server, e) : talk_open_folder(t, e);
    if (rc < 0)
        talker_close(t);
    else
        *ret = t;
    return rc;
}

void talker_close(struct talker *t)
{
    if (!t)
        return;
    openai_close(t->server);
    model_free(t->model);
    tokenizer_free(t->tok);
    free(t);
}

static int talk_say_remote(struct talker *t, const json_t *messages, void (*on_text)(const char *, size_t, void *),
                           void *ctx, struct talk_answer *ret, struct err *e)
{
    struct openai_ask ask = {.messages = messages,
                             .temperature = t->c.temperature,
                             .top_p = t->c.top_p,
                             .max_tokens = t->c.max_new,
                             .seed = t->c.seed + t->said,
                             .on_text = on_text,
                             .ctx = ctx};
    struct openai_reply r;

    if (openai_chat(t->server, &ask, &r, e) < 0)
        return -1;
    *ret = (struct talk_answer){.text = xstrdup(r.text), .cut = r.cut, .tokens = r.completion_tokens};
    openai_reply_free(&r);
    return 0;
}

static int talk_make_chat(struct talker *t, const json_t *messages, struct chat *c, struct err *e)
{
    const json_t *m;
    size_t i;
    int rc = chat_begin(c, t->tok, CHAT_THINK_DEFAULT, e);

    json_array_foreach((json_t *)messages, i, m)
    {
        const char *text = json_str(m, "content", "");
        const char *role = json_str(m, "role", "user");
        if (rc == 0)
            rc = !strcmp(role, "assistant") ? chat_past(c, text, strlen(text), e)
                : chat_message(c, role, text, strlen(text), e);
    }
    return rc == 0 ? chat_prompt(c, e) : -1;
}

static int talk_draw(struct talker *t, const struct chat *c, struct talk_answer *ret, struct err *e)
{
    int room = t->model->config.max_positions - (int)c->ids.n;
    struct sampler_options so = {.temperature = (float)t->c.temperature, .top_p = (float)t->c.top_p, .max_batch = 1};
    struct sample_request r = {.prompt = c->ids.v,
                               .n_prompt = (int)c->ids.n,
                               .n_samples = 1,
                               .max_new = room < t->c.max_new ? room : t->c.max_new,
                               .seed = (uint64_t)(t->c.seed + t->said)};
    struct sample *s = NULL;
    size_t n = 0;
    int rc;

    if (room < 1)
        return err_set(e, ERR_INPUT, "the dialogue has %zu tokens and the model holds %d: no room for an answer",
                       c->ids.n, t->model->config.max_positions);
    rc = sampler_run(t->model, &so, &r, 1, &s, &n, e);
    if (rc == 0)
        *ret = (struct talk_answer){.text = tokenizer_text(t->tok, s->tokens, (size_t)s->n, true),
                                    .cut = s->finish == FINISH_LENGTH,
                                    .tokens = s->n};
    samples_free(s, n);
    return rc;
}

static int talk_say_local(struct talker *t, const json_t *messages, void (*on_text)(const char *, size_t, void *),
                          void *ctx, struct talk_answer *ret, struct err *e)
{
    struct chat c = {0};
    int rc = talk_make_chat(t, messages, &c, e);

    if (rc == 0)
        rc = talk_draw(t, &c, ret, e);
    chat_free(&c);
    if (rc == 0 && on_text)
        on_text(ret->text, strlen(ret->text), ctx);
    return rc;
}

int talker_say(struct talker *t, const json_t *messages, void (*on_text)(const char *, size_t, void *), void *ctx,
               struct talk_answer *ret, struct err *e)
{
    int rc = t->server ? talk_say_remote(t, messages, on_text, ctx, ret, e)
        : talk_say_local(t, messages, on_text, ctx, ret, e);

    t->said += rc == 0;
    return rc;
}

void talk_answer_free(struct talk_answer *a)
{
    free(a->text);
    memset(a, 0, sizeof *a);
}
