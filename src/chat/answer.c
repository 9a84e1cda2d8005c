/* answer.c - see answer.h. */
#include "chat/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Tokens [from, to) of a sample, and its text from byte 'text' on: all of it, or a chunk. */
struct answer_piece {
    const struct batcher_drawn *d;
    size_t from, to, text, n_text;
};

/* OpenAI's finish_reason; NULL: the sample goes on. */
static const char *answer_reason(const struct batcher_drawn *d)
{
    if (d->words.stopped)
        return "stop";
    return d->finish == FINISH_STOP ? "stop" : d->finish == FINISH_LENGTH ? "length" : "abort";
}

/* Rounding at a low temperature leaves a certain token's a hair above 0. */
static json_t *answer_logp_json(float x)
{
    x = x > 0 && isfinite(x) ? 0 : x;
    return isfinite(x) ? json_real((double)x) : json_real(-9999.0);
}

/* New array of a token's bytes, as "logprobs" has them. */
static json_t *answer_bytes_json(const char *p, size_t n)
{
    json_t *a = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer((unsigned char)p[i]));
    return a;
}

/* The "logprobs" of a chat's answer for a piece of its tokens. New. */
static json_t *answer_chat_logprobs(const struct answer_piece *p, const struct tokenizer *tok)
{
    json_t *list = json_array();

    for (size_t i = p->from; i < p->to; i++) {
        size_t n = 0;
        const char *bytes = tokenizer_bytes(tok, p->d->ids.v[i], &n);
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:[]}", "token", json_utf8(bytes ? bytes : "", n),
                                              "logprob",
                                              answer_logp_json(p->d->logp[i]), "bytes", answer_bytes_json(bytes, n),
                                              "top_logprobs"));
    }
    return json_pack("{s:o,s:n}", "content", list, "refusal");
}

/* The "logprobs" of a plain completion for a piece of its tokens. New. */
static json_t *answer_plain_logprobs(const struct answer_piece *p, const struct tokenizer *tok)
{
    json_t *tokens = json_array(), *logps = json_array(), *at = json_array();
    size_t offset = 0;

    for (size_t i = 0; i < p->to; i++) {
        size_t n = 0;
        const char *bytes = tokenizer_bytes(tok, p->d->ids.v[i], &n);
        if (i >= p->from) {
            json_array_append_new(tokens, json_utf8(bytes ? bytes : "", n));
            json_array_append_new(logps, answer_logp_json(p->d->logp[i]));
            json_array_append_new(at, json_integer((json_int_t)offset));
        }
        offset += n;
    }
    return json_pack("{s:o,s:o,s:n,s:o}", "tokens", tokens, "token_logprobs", logps, "top_logprobs", "text_offset", at);
}

static json_t *answer_logprobs_json(const struct chat_job *j, const struct answer_piece *p, const struct tokenizer *tok)
{
    if (!j->ask.logprobs)
        return json_null();
    return j->ask.chat ? answer_chat_logprobs(p, tok) : answer_plain_logprobs(p, tok);
}

/* What all choices have, whole or in chunks. ends: with its reason. */
static json_t *answer_choice_json(const struct chat_job *j, int i, const struct answer_piece *p,
                                  const struct tokenizer *tok, bool ends)
{
    json_t *c = json_pack("{s:i,s:o,s:o}", "index", i, "logprobs", answer_logprobs_json(j, p, tok), "finish_reason",
                          ends ? json_string(answer_reason(p->d)) : json_null());

    if (j->ask.ids)
        json_object_set_new(c, "token_ids", json_ints(p->d->ids.v + p->from, p->to - p->from));
    return c;
}

static json_t *answer_text_json(const struct answer_piece *p)
{
    return json_utf8(p->d->words.text.p + p->text, p->n_text);
}

/* The "usage" of a job: tokens of prompts and answers. New. */
static json_t *answer_usage_json(const struct chat_job *j)
{
    size_t prompt = 0, drawn = 0;

    for (int i = 0; i < j->ask.n_prompts; i++)
        prompt += j->ask.prompt[i].n;
    for (int i = 0; i < j->n; i++)
        drawn += j->drawn[i].ids.n;
    return json_pack("{s:I,s:I,s:I}", "prompt_tokens", (json_int_t)prompt, "completion_tokens", (json_int_t)drawn,
                     "total_tokens", (json_int_t)(prompt + drawn));
}

/* The members with which each reply and each chunk begins. New. */
static json_t *answer_head(const struct chat_job *j, const char *object, const char *model)
{
    return json_pack("{s:s,s:s,s:I,s:s}", "id", j->id, "object", object, "created", (json_int_t)j->created, "model",
                     model);
}

static json_t *answer_prompt_ids(const struct chat_job *j, int sample)
{
    const struct ivec *p = &j->ask.prompt[sample / j->ask.n];

    return json_ints(p->v, p->n);
}

json_t *answer_whole(const struct chat_job *j, const char *model, const struct tokenizer *tok)
{
    json_t *v = answer_head(j, j->ask.chat ? "chat.completion" : "text_completion", model), *choices = json_array();

    for (int i = 0; i < j->n; i++) {
        const struct batcher_drawn *d = &j->drawn[i];
        struct answer_piece p = {d, 0, d->ids.n, 0, d->words.text.n};
        json_t *c = answer_choice_json(j, i, &p, tok, true);
        if (j->ask.chat)
            json_object_set_new(c, "message",
                                json_pack("{s:s,s:o,s:n}", "role", "assistant", "content", answer_text_json(&p),
                                                        "refusal"));
        else
            json_object_set_new(c, "text", answer_text_json(&p));
        if (j->ask.ids && !j->ask.chat)
            json_object_set_new(c, "prompt_token_ids", answer_prompt_ids(j, i));
        json_array_append_new(choices, c);
    }
    json_object_set_new(v, "choices", choices);
    json_object_set_new(v, "usage", answer_usage_json(j));
    if (j->ask.ids && j->ask.chat)
        json_object_set_new(v, "prompt_token_ids", answer_prompt_ids(j, 0));
    return v;
}

/* ---- streams ---- */

/* Appends v as a server-sent event; takes v. */
static void answer_event(struct buf *out, json_t *v)
{
    char *text = json_text(v);

    buf_adds(out, "data: ");
    buf_adds(out, text);
    buf_adds(out, "\n\n");
    free(text);
    json_decref(v);
}

/* Appends a chunk of the stream; takes choice and usage, each may be NULL. */
static void answer_chunk(const struct chat_job *j, const char *model, json_t *choice, json_t *usage, bool first,
                         struct buf *out)
{
    json_t *v = answer_head(j, j->ask.chat ? "chat.completion.chunk" : "text_completion", model), *list = json_array();

    if (choice)
        json_array_append_new(list, choice);
    json_object_set_new(v, "choices", list);
    if (j->ask.usage)
        json_object_set_new(v, "usage", usage ? usage : json_null());
    if (first && j->ask.ids && j->ask.chat)
        json_object_set_new(v, "prompt_token_ids", answer_prompt_ids(j, 0));
    answer_event(out, v);
}

/* The first chunk of a choice of a dialogue says who speaks. */
static void answer_open_choice(struct chat_job *j, int i, const char *model, const struct tokenizer *tok,
                               struct buf *out)
{
    struct answer_piece none = {&j->drawn[i], 0, 0, 0, 0};
    json_t *c;

    if (j->drawn[i].opened)
        return;
    j->drawn[i].opened = true;
    if (!j->ask.chat)
        return;
    c = answer_choice_json(j, i, &none, tok, false);
    json_object_set_new(c, "delta", json_pack("{s:s,s:s}", "role", "assistant", "content", ""));
    answer_chunk(j, model, c, NULL, i == 0, out);
}

/* Appends what sample i has drawn since the last piece, as a chunk of the stream. */
static void answer_say_new(struct chat_job *j, int i, const char *model, const struct tokenizer *tok, struct buf *out)
{
    struct batcher_drawn *d = &j->drawn[i];
    struct answer_piece p = {d, d->sent_ids, d->ids.n, d->sent_text, d->words.safe - d->sent_text};
    bool ids = j->ask.ids || j->ask.logprobs, first = d->sent_ids == 0 && !j->ask.chat;
    json_t *c;

    if (p.n_text == 0 && !(ids && p.from < p.to) && !d->done)
        return;
    c = answer_choice_json(j, i, &p, tok, d->done);
    if (j->ask.chat)
        json_object_set_new(c, "delta", p.n_text ? json_pack("{s:o}", "content", answer_text_json(&p)) : json_object());
    else
        json_object_set_new(c, "text", answer_text_json(&p));
    if (first && j->ask.ids)
        json_object_set_new(c, "prompt_token_ids", answer_prompt_ids(j, i));
    d->sent_ids = p.to;
    d->sent_text += p.n_text;
    d->said_end = d->done;
    answer_chunk(j, model, c, NULL, false, out);
}

bool answer_stream(struct chat_job *j, const char *model, const struct tokenizer *tok, struct buf *out)
{
    for (int i = 0; i < j->n; i++) {
        if (j->drawn[i].said_end || (j->drawn[i].ids.n == 0 && !j->drawn[i].done))
            continue;
        answer_open_choice(j, i, model, tok, out);
        answer_say_new(j, i, model, tok, out);
    }
    if (j->left > 0)
        return false;
    if (j->ask.usage)
        answer_chunk(j, model, NULL, answer_usage_json(j), false, out);
    buf_adds(out, "data: [DONE]\n\n");
    return true;
}

static json_t *answer_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

json_t *answer_error(const char *type, const char *param, const char *code, const char *message)
{
    return json_pack("{s:{s:o,s:s,s:o,s:o}}", "error", "message", json_utf8(message, strlen(message)), "type", type,
                     "param", answer_or_null(param), "code", answer_or_null(code));
}
