/* chat_ask.c - see chat_ask.h. What the engine does not offer is refused by name; members that nobody knows are
 * ignored. */
#include "chat/chat_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"

#define TEMPERATURE_MIN 0.01 /* below, logits over it have no digits left for a log-probability */
#define TOP_P_MIN 1e-9

struct chat_ask_reader {
    const json_t *body;
    struct tokenizer *tok;
    const struct ask_limits *l;
    struct chat_ask *a;
    const char *param, *code;
    struct err *e;
};

#define BAD(r, name, ...) ((r)->param = (name), err_set((r)->e, ERR_INPUT, __VA_ARGS__))

/* Members that would change the answer, and the only value of them that we can serve. */
static const struct {
    const char *name;
    double neutral;
} not_offered[] = {
    {"presence_penalty", 0}, {"frequency_penalty", 0}, {"repetition_penalty", 1}, {"length_penalty", 1},
    {"min_p", 0},            {"min_tokens", 0},        {"top_logprobs", 0},       {"prompt_logprobs", 0},
    {"use_beam_search", 0},  {"ignore_eos", 0},        {"echo", 0},
};
static const char *const not_offered_at_all[] = {"tools", "functions", "logit_bias", "suffix", "guided_json", "audio"};

static double chat_ask_as_number(const json_t *v)
{
    return json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
}

static bool chat_ask_is_empty(const json_t *v)
{
    return !v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_object(v) && json_object_size(v) == 0) || (json_is_string(v) && json_string_length(v) == 0);
}

/* Refuses fields that ask for what this engine lacks. */
static int chat_ask_read_not_offered(struct chat_ask_reader *r)
{
    for (size_t i = 0; i < sizeof not_offered / sizeof *not_offered; i++) {
        const json_t *v = json_object_get(r->body, not_offered[i].name);
        if (!chat_ask_is_empty(v) && chat_ask_as_number(v) != not_offered[i].neutral)
            return BAD(r, not_offered[i].name, "'%s' is not offered by this engine; leave it out", not_offered[i].name);
    }
    for (size_t i = 0; i < sizeof not_offered_at_all / sizeof *not_offered_at_all; i++)
        if (!chat_ask_is_empty(json_object_get(r->body, not_offered_at_all[i])))
            return BAD(r, not_offered_at_all[i], "'%s' is not offered by this engine; leave it out",
                       not_offered_at_all[i]);
    if (strcmp(json_str(json_object_get(r->body, "response_format"), "type", "text"), "text"))
        return BAD(r, "response_format", "'response_format' other than text is not offered by this engine");
    return 0;
}

/* A number within [low, high]; absent and null leave what is there. */
static int chat_ask_read_number(struct chat_ask_reader *r, const char *name, double low, double high, bool whole,
                                double *ret)
{
    const json_t *v = json_object_get(r->body, name);
    double x;

    if (!v || json_is_null(v))
        return 0;
    x = json_number_value(v);
    if (!json_is_number(v) || !(x >= low && x <= high) || (whole && x != floor(x)))
        return BAD(r, name, "'%s' must be %s from %g to %g", name, whole ? "a whole number" : "a number", low, high);
    *ret = x;
    return 0;
}

/* Members of one type each: a misread "stream": "no" would be another answer than was asked for. */
static int chat_ask_read_types(struct chat_ask_reader *r)
{
    static const char *const flags[] = {"stream", "return_token_ids", "skip_special_tokens"};
    static const char *const objects[] = {"stream_options", "chat_template_kwargs", "response_format"};
    const json_t *lp = json_object_get(r->body, "logprobs"), *model = json_object_get(r->body, "model");

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_t *v = json_object_get(r->body, flags[i]);
        if (v && !json_is_null(v) && !json_is_boolean(v))
            return BAD(r, flags[i], "'%s' must be true or false", flags[i]);
    }
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const json_t *v = json_object_get(r->body, objects[i]);
        if (v && !json_is_null(v) && !json_is_object(v))
            return BAD(r, objects[i], "'%s' must be an object", objects[i]);
    }
    if (model && !json_is_null(model) && !json_is_string(model))
        return BAD(r, "model", "'model' must be a name");
    if (lp && !json_is_null(lp) && !json_is_boolean(lp) && !json_is_integer(lp))
        return BAD(r, "logprobs", "'logprobs' must be true, false, 0 or 1");
    return 0;
}

/* Reads temperature, top_p, top_k, n and best_of. */
static int chat_ask_read_choice(struct chat_ask_reader *r)
{
    double temperature = 1, top_p = 1, top_k = 0, n = 1, best_of;

    if (chat_ask_read_number(r, "temperature", 0, 100, false, &temperature) < 0 ||
        chat_ask_read_number(r, "top_p", 0, 1, false, &top_p) < 0 ||
        chat_ask_read_number(r, "top_k", -1, 1e6, true, &top_k) < 0 ||
        chat_ask_read_number(r, "n", 1, ASK_SAMPLES, true, &n) < 0)
        return -1;
    if (temperature != 0 && temperature < TEMPERATURE_MIN)
        return BAD(r, "temperature", "'temperature' must be 0, which is greedy, or a number from %g to 100",
                   TEMPERATURE_MIN);
    best_of = n;
    if (chat_ask_read_number(r, "best_of", 1, ASK_SAMPLES, true, &best_of) < 0)
        return -1;
    if (best_of != n)
        return BAD(r, "best_of", "'best_of' is not offered by this engine but as 'n'; leave it out");
    temperature = temperature != 0 ? temperature : 0; /* -0.0 too */
    top_p = top_p > 0 ? top_p : TOP_P_MIN; /* 0 asks for the likeliest id; in a struct sample_choice it means 1 */
    r->a->choice = (struct sample_choice){(float)temperature, (float)top_p, top_k > 0 ? (int)top_k : 0};
    r->a->n = (int)n;
    return 0;
}

/* Reads the seed; a random one where there is none. */
static int chat_ask_read_seed(struct chat_ask_reader *r)
{
    const json_t *v = json_object_get(r->body, "seed");

    if (!v || json_is_null(v))
        return getrandom(&r->a->seed, sizeof r->a->seed, 0) == sizeof r->a->seed
                   ? 0
                   : err_set(r->e, ERR_ENV, "no random numbers");
    if (!json_is_integer(v))
        return BAD(r, "seed", "'seed' must be a whole number");
    r->a->seed = (uint64_t)json_integer_value(v);
    return 0;
}

/* Adds a stop word. */
static int chat_ask_add_stop(struct chat_ask_reader *r, const json_t *v)
{
    if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) > 1024)
        return BAD(r, "stop", "'stop' is a string, or a list of strings, of 1 to 1024 bytes");
    if (r->a->n_stop == ASK_STOPS)
        return BAD(r, "stop", "'stop' may have %d strings", ASK_STOPS);
    r->a->stop[r->a->n_stop++] = xstrdup(json_string_value(v));
    return 0;
}

/* Reads stop_token_ids. */
static int chat_ask_read_stop_ids(struct chat_ask_reader *r, const json_t *ids)
{
    const json_t *v;
    size_t i;

    if ((ids && !json_is_null(ids) && !json_is_array(ids)) || json_array_size(ids) > ASK_STOPS)
        return BAD(r, "stop_token_ids", "'stop_token_ids' is a list of at most %d ids", ASK_STOPS);
    json_array_foreach((json_t *)ids, i, v)
    {
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id >= r->l->vocab)
            return BAD(r, "stop_token_ids", "'stop_token_ids' are whole numbers below %d", r->l->vocab);
        r->a->stop_ids[r->a->n_stop_ids++] = (int32_t)id;
    }
    return 0;
}

/* Reads 'stop': a word or a list. */
static int chat_ask_read_stops(struct chat_ask_reader *r)
{
    const json_t *stop = json_object_get(r->body, "stop"), *v;
    size_t i;

    if (json_is_array(stop)) {
        json_array_foreach((json_t *)stop, i, v)
            if (chat_ask_add_stop(r, v) < 0)
                return -1;
    } else if (stop && !json_is_null(stop) && chat_ask_add_stop(r, stop) < 0) {
        return -1;
    }
    return chat_ask_read_stop_ids(r, json_object_get(r->body, "stop_token_ids"));
}

/* Reads how the answer is to look: stream, usage, logprobs, ids. */
static int chat_ask_read_shape(struct chat_ask_reader *r)
{
    const json_t *o = json_object_get(r->body, "stream_options"), *lp = json_object_get(r->body, "logprobs");

    r->a->stream = json_flag(r->body, "stream", false);
    r->a->usage = json_flag(o, "include_usage", false);
    if (o && !json_is_null(o) && !r->a->stream)
        return BAD(r, "stream_options", "'stream_options' needs \"stream\": true");
    if (json_is_integer(lp) && json_integer_value(lp) > 1)
        return BAD(r, "logprobs", "only the drawn token's log-probability is offered: 'logprobs' may be true, 0 or 1");
    r->a->logprobs = json_is_true(lp) || json_is_integer(lp);
    r->a->ids = json_flag(r->body, "return_token_ids", false);
    r->a->special = !json_flag(r->body, "skip_special_tokens", true);
    return 0;
}

/* Refuses another model than the one that is served. */
static int chat_ask_read_model(struct chat_ask_reader *r)
{
    const char *name = json_str(r->body, "model", r->l->model);

    if (!strcmp(name, r->l->model))
        return 0;
    r->code = "model_not_found";
    return BAD(r, "model", "the model '%.200s' is not here; this server has '%s'", name, r->l->model);
}

/* ---- prompts ---- */

/* The text of a message: a string, or a list of {"type": "text", "text": ...}. */
static int chat_ask_content_of(struct chat_ask_reader *r, const json_t *v, struct buf *ret)
{
    const json_t *part;
    size_t i;

    if (json_is_string(v))
        buf_add(ret, json_string_value(v), json_string_length(v));
    json_array_foreach((json_t *)v, i, part)
    {
        if (strcmp(json_str(part, "type", ""), "text"))
            return BAD(r, "messages", "a message's content may hold text alone, not '%.100s'",
                       json_str(part, "type", "?"));
        buf_adds(ret, json_str(part, "text", ""));
    }
    return json_is_string(v) || json_is_array(v) ? 0 : BAD(r, "messages", "a message has no content");
}

/* Adds one message of the dialogue. Text parts are joined, other parts refused. */
static int chat_ask_add_message(struct chat_ask_reader *r, struct chat *c, const json_t *m)
{
    const char *role = json_str(m, "role", "");
    struct buf text;
    int rc;

    role = !strcmp(role, "developer") ? "system" : role;
    if (strcmp(role, "system") && strcmp(role, "user") && strcmp(role, "assistant"))
        return BAD(r, "messages", "a role is system, user or assistant, not '%.100s'", role);
    buf_init(&text, BUF_MAX_TEXT);
    rc = chat_ask_content_of(r, json_object_get(m, "content"), &text);
    if (rc == 0)
        rc = !strcmp(role, "assistant") ? chat_past(c, text.p, text.n, r->e)
            : chat_message(c, role, text.p, text.n, r->e);
    buf_free(&text);
    return rc;
}

/* A new prompt without ids. */
static struct ivec *chat_ask_add_prompt(struct chat_ask *a)
{
    a->prompt = xrealloc(a->prompt, (size_t)(a->n_prompts + 1) * sizeof *a->prompt);
    a->prompt[a->n_prompts] = (struct ivec){0};
    return &a->prompt[a->n_prompts++];
}

/* Encodes 'messages' as the one prompt. */
static int chat_ask_read_messages(struct chat_ask_reader *r)
{
    const json_t *messages = json_object_get(r->body, "messages"), *m;
    const json_t *kwargs = json_object_get(r->body, "chat_template_kwargs"),
        *asked = json_object_get(kwargs, "enable_thinking");
    struct chat c = {0};
    struct ivec *ids;
    size_t i;
    int rc;

    if (json_array_size(messages) == 0)
        return BAD(r, "messages", "'messages' must be a list with at least one message");
    rc = chat_begin(&c, r->tok, !json_is_boolean(asked) ? CHAT_THINK_DEFAULT : json_is_true(asked) ? CHAT_THINK_ON
                                                                                       : CHAT_THINK_EMPTY, r->e);
    json_array_foreach((json_t *)messages, i, m)
        rc = rc == 0 ? chat_ask_add_message(r, &c, m) : rc;
    if (rc == 0 && (rc = chat_prompt(&c, r->e)) == 0) {
        ids = chat_ask_add_prompt(r->a);
        ivec_append(ids, c.ids.v, c.ids.n);
    }
    chat_free(&c);
    return rc;
}

/* Appends the ids of a text as a prompt. */
static int chat_ask_add_text(struct chat_ask_reader *r, const json_t *v)
{
    return tokenizer_encode(r->tok, json_string_value(v), json_string_length(v), TOK_SPECIAL, chat_ask_add_prompt(r->a),
                            r->e);
}

/* Adds a prompt that is given as token ids. */
static int chat_ask_add_ids(struct chat_ask_reader *r, const json_t *list)
{
    struct ivec *ids = chat_ask_add_prompt(r->a);
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)list, i, v)
    {
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id >= r->l->vocab)
            return BAD(r, "prompt", "a prompt's token ids are whole numbers below %d", r->l->vocab);
        ivec_push(ids, (int32_t)id);
    }
    return 0;
}

/* Adds a prompt of text or of ids. */
static int chat_ask_add_any(struct chat_ask_reader *r, const json_t *v)
{
    if (json_is_string(v))
        return chat_ask_add_text(r, v);
    if (json_is_array(v))
        return chat_ask_add_ids(r, v);
    return BAD(r, "prompt", "'prompt' is a text, a list of token ids, or a list of either");
}

/* Reads 'prompt': one, or a list of such. */
static int chat_ask_read_prompts(struct chat_ask_reader *r)
{
    const json_t *p = json_object_get(r->body, "prompt"), *v;
    size_t i;

    if (!json_is_array(p) || json_is_integer(json_array_get(p, 0)))
        return chat_ask_add_any(r, p);
    json_array_foreach((json_t *)p, i, v)
        if (i >= ASK_SAMPLES || chat_ask_add_any(r, v) < 0)
            return i >= ASK_SAMPLES ? BAD(r, "prompt", "a request may have %d prompts", ASK_SAMPLES) : -1;
    return 0;
}

/* Checks count and lengths of the prompts and settles the most new tokens. */
static int chat_ask_check_prompts(struct chat_ask_reader *r)
{
    struct chat_ask *a = r->a;
    double most = a->chat ? r->l->max_len : 16; /* OpenAI's default of plain completions */
    int room = r->l->max_len;

    if (a->n_prompts == 0 || (size_t)a->n_prompts * (size_t)a->n > ASK_SAMPLES)
        return BAD(r, a->n_prompts ? "n" : "prompt", "a request draws 1 to %d samples, all prompts together",
                   ASK_SAMPLES);
    for (int i = 0; i < a->n_prompts; i++) {
        int left = r->l->max_len - (int)a->prompt[i].n;
        if (a->prompt[i].n == 0)
            return BAD(r, "prompt", "a prompt has no tokens");
        if (left < 1) {
            r->code = "context_length_exceeded";
            return BAD(r, a->chat ? "messages" : "prompt", "the prompt has %zu tokens; prompt and answer may have %d",
                       a->prompt[i].n, r->l->max_len);
        }
        room = left < room ? left : room;
    }
    if (chat_ask_read_number(r, "max_tokens", 1, 1e9, true, &most) < 0 ||
        chat_ask_read_number(r, "max_completion_tokens", 1, 1e9, true, &most) < 0)
        return -1;
    a->max_new = most < room ? (int)most : room;
    return 0;
}

int ask_read(const json_t *body, bool chat, struct tokenizer *tok, const struct ask_limits *l, struct chat_ask *ret,
             const char **ret_param, const char **ret_code, struct err *e)
{
    struct chat_ask a = {.chat = chat};
    struct chat_ask_reader r = {.body = body, .tok = tok, .l = l, .a = &a, .e = e};
    int rc = json_is_object(body) ? 0 : BAD(&r, NULL, "the body must be a JSON object");

    if (rc == 0)
        rc = chat_ask_read_types(&r) < 0 || chat_ask_read_model(&r) < 0 || chat_ask_read_not_offered(&r) < 0 ||
            chat_ask_read_choice(&r) < 0 ||
                     chat_ask_read_seed(&r) < 0 || chat_ask_read_stops(&r) < 0 || chat_ask_read_shape(&r) < 0 ||
                         (chat ? chat_ask_read_messages(&r) : chat_ask_read_prompts(&r)) < 0 ||
                     chat_ask_check_prompts(&r) < 0
                 ? -1
                 : 0;
    *ret_param = r.param;
    *ret_code = r.code;
    if (rc < 0)
        ask_free(&a);
    else
        *ret = a;
    return rc;
}

void ask_free(struct chat_ask *a)
{
    for (int i = 0; i < a->n_prompts; i++)
        ivec_free(&a->prompt[i]);
    free(a->prompt);
    for (int i = 0; i < a->n_stop; i++)
        free(a->stop[i]);
    *a = (struct chat_ask){0};
}
