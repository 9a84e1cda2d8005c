/* openai.c - see openai.h. Requests stream, so that a long answer shows life and a stop is heard; a server that
 * answers without streaming is understood too. */
#include "remote/openai.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/dl.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRY_S 600.0
#define SILENCE_S 600.0
#define CONNECT_S 20L
#define PAUSE_MIN_S 1.0
#define PAUSE_MAX_S 30.0
#define BODY_MAX ((size_t)64 << 20)
#define TORN_MAX 3 /* answers that arrive broken: a server that sends one each time will not send a whole one */

#define CURL_CALLS(X)                                                                                                \
    X(curl_global_init)                                                                                              \
    X(curl_easy_init) X(curl_easy_cleanup) X(curl_easy_perform) X(curl_easy_strerror) X(curl_slist_append)           \
        X(curl_slist_free_all)
#define CURL_MEMBER(name) __typeof__(&name) name;
static struct {
    CURL_CALLS(CURL_MEMBER)
    CURLcode (*setopt)(CURL *h, CURLoption o, ...);
    CURLcode (*getinfo)(CURL *h, CURLINFO i, ...);
} lib;

#define CURL_ROW(name) {#name, (void **)&lib.name},
static const struct dl_name lib_names[] = {CURL_CALLS(CURL_ROW){"curl_easy_setopt", (void **)&lib.setopt},
                                           {"curl_easy_getinfo", (void **)&lib.getinfo},
                                           {NULL, NULL}};

struct openai {
    char *url, *model, *key;
    double retry_s, pause_s, silence_s;
    atomic_bool answered; /* a dialogue, at some time */
    atomic_bool told;     /* that it answers under another name */
};

struct openai_exchange { /* one request and what comes back */
    struct buf body; /* not streamed, or an error */
    struct buf line; /* of the stream, so far */
    struct buf text, thought;
    bool streamed, ended, cut;
    bool error_event; /* the stream's lines up to the next empty one belong to an event "error" */
    char broken[320]; /* what went wrong by the server's own words, or what is wrong with what it sent; "": nothing */
    bool torn;        /* it is no JSON, or too large */
    json_t *whole;    /* an answer that was not streamed; owned */
    struct openai_sample *samples; /* (ask->n) of a prompt, owned; or NULL */
    int prompt_tokens, completion_tokens;
    double heard, silence_s; /* when the server last sent anything */
    const struct openai_ask *ask;
    char model[128]; /* whose answer it is, as the server says; "": it does not */
    double retry_after_s;
    bool no_room; /* the refusal says that the dialogue is too long */
    char refused[320]; /* the server's words, where it refuses this dialogue and not the caller; "": it does not */
    bool declined; /* it ended an answer that the model had not ended */
};

bool openai_is_url(const char *text)
{
    return text && (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8));
}

/* ---- what comes back ---- */

/* Appends a piece of the answer and shows it to the caller. */
static void openai_take_text(struct openai_exchange *x, const char *s)
{
    buf_adds(&x->text, s);
    if (x->ask && x->ask->on_text && *s)
        x->ask->on_text(s, strlen(s), x->ask->ctx);
}

/* Notes why the reply is no whole answer; 'torn': it ended too early. */
static void openai_break_off(struct openai_exchange *x, bool torn, const char *why)
{
    if (!*x->broken)
        snprintf(x->broken, sizeof x->broken, "%.300s", why);
    x->torn |= torn;
}

/* Servers that fail behind their header say so inside the answer, and end it as if it were whole: by "error", as an
 * object "error", or in an event of that name. */
static void openai_take_failure(struct openai_exchange *x, const json_t *v)
{
    const json_t *error = json_object_get(v, "error");
    bool said = error && !json_is_null(error) && !json_is_false(error);
    const char *why = json_str(v, "message", json_str(v, "detail", "it failed while it answered"));

    if (said)
        openai_break_off(x, false, json_str(error, "message", json_is_string(error) ? json_string_value(error) : why));
    else if (x->error_event || !strcmp(json_str(v, "object", ""), "error") || !strcmp(json_str(v, "type", ""), "error"))
        openai_break_off(x, false, why);
}

/* Why an answer ended, in the words of the servers that we know. Only the model's own end leaves it whole. */
static const struct {
    const char *word;
    enum { ENDED_WHOLE = 1, ENDED_CUT, ENDED_FAILED, ENDED_DECLINED } how;
} openai_ends[] = {
    {"stop", ENDED_WHOLE},          {"eos", ENDED_WHOLE},         {"eos_token", ENDED_WHOLE},
    {"end_turn", ENDED_WHOLE},      {"stop_sequence", ENDED_WHOLE}, {"length", ENDED_CUT},
    {"max_tokens", ENDED_CUT},      {"model_length", ENDED_CUT},  {"repetition", ENDED_CUT},
    {"abort", ENDED_FAILED},        {"error", ENDED_FAILED},
    {"insufficient_system_resource", ENDED_FAILED}, /* DeepSeek */
    {"content_filter", ENDED_DECLINED}, /* a filter's end, and calls of tools that nobody gave it */
    {"tool_calls", ENDED_DECLINED}, {"tool_use", ENDED_DECLINED}, {"function_call", ENDED_DECLINED},
};

/* True where the choice says how it ended; a failure, and what nobody knows, break x off. "" is said in chunks. */
static bool openai_take_end(struct openai_exchange *x, const json_t *choice, bool *cut)
{
    const json_t *end = json_object_get(choice, "finish_reason");
    const char *word = json_is_string(end) ? json_string_value(end) : NULL;
    char why[120];
    int how = 0;

    if (!end || json_is_null(end) || (word && !*word))
        return false;
    for (size_t i = 0; word && i < sizeof openai_ends / sizeof *openai_ends; i++)
        if (!strcasecmp(word, openai_ends[i].word))
            how = (int)openai_ends[i].how;
    snprintf(why, sizeof why, how ? "it gave its answer up (finish_reason '%.60s')"
                                  : "its finish_reason '%.60s' is none that we know", word ? word : "(no text)");
    x->declined |= how == ENDED_DECLINED;
    if (how != ENDED_WHOLE && how != ENDED_CUT)
        openai_break_off(x, how == 0 || how == ENDED_DECLINED, why);
    *cut = how == ENDED_CUT;
    return true;
}

/* Chunks of two models are no answer of either. */
static void openai_take_model(struct openai_exchange *x, const json_t *v)
{
    const char *name = json_str(v, "model", "");

    if (*name && *x->model && strncmp(x->model, name, sizeof x->model - 1))
        openai_break_off(x, true, "its answer names two models");
    else if (*name)
        snprintf(x->model, sizeof x->model, "%s", name);
}

/* A string, or a list of parts, as Mistral sends: their texts. Parts of another type hold no text of the answer. */
static void openai_take_content(struct openai_exchange *x, const json_t *content, bool thought)
{
    const json_t *part, *own;
    size_t i;

    if (json_is_string(content) && thought)
        buf_adds(&x->thought, json_string_value(content));
    else if (json_is_string(content))
        openai_take_text(x, json_string_value(content));
    else if (json_is_array(content))
        json_array_foreach(content, i, part) {
            if ((own = json_object_get(part, "thinking")))
                openai_take_content(x, own, true);
            else if (json_is_string(part) || (own = json_object_get(part, "text")))
                openai_take_content(x, own ? own : part, thought);
        }
    else if (content && !json_is_null(content))
        openai_break_off(x, true, "the 'content' of its answer is no text");
}

/* False for what a server repeats of the dialogue. Its names for the model differ, so that those of others count. */
static bool openai_is_said_by_model(const json_t *delta)
{
    static const char *const others[] = {"user", "system", "developer", "tool"};
    const char *role = json_str(delta, "role", "");

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(role, others[i]))
            return false;
    return true;
}

/* Takes text and thinking of a choice. part: "delta" or "message". */
static void openai_take_choice(struct openai_exchange *x, const json_t *choice, const char *part)
{
    const json_t *delta = json_object_get(choice, part);
    const char *thought = json_str(delta, "reasoning_content", json_str(delta, "reasoning", NULL));
    size_t before = x->text.n + x->thought.n;
    bool ended = x->ended;

    if (json_i64(choice, "index", 0) != 0 || !openai_is_said_by_model(delta)) /* of a second answer, or an echo */
        return;
    if (thought)
        buf_adds(&x->thought, thought);
    openai_take_content(x, json_object_get(delta, "content"), false);
    openai_take_content(x, json_object_get(delta, "refusal"), false); /* the model's answer, too */
    if (ended && x->text.n + x->thought.n > before)
        openai_break_off(x, true, "it sent text behind its answer's end");
    x->ended |= openai_take_end(x, choice, &x->cut);
}

/* Takes the counts of tokens. */
static void openai_take_usage(struct openai_exchange *x, const json_t *v)
{
    const json_t *u = json_object_get(v, "usage");

    if (!json_is_object(u))
        return;
    x->prompt_tokens = (int)json_i64(u, "prompt_tokens", 0);
    x->completion_tokens = (int)json_i64(u, "completion_tokens", 0);
}

/* JSON knows a NUL and our strings do not: its escape becomes that of U+FFFD, which is as long. */
static void openai_hide_nul(char *s)
{
    while ((s = strchr(s, '\\'))) {
        if (!strncmp(s, "\\u0000", 6))
            memcpy(s, "\\ufffd", 6);
        s += s[1] ? 2 : 1;
    }
}

/* New; NULL with x broken off. Bytes that are not UTF-8 become U+FFFD. */
static json_t *openai_parse(struct openai_exchange *x, const char *s, size_t n)
{
    struct buf clean;
    json_t *v;

    buf_init(&clean, 4 * BODY_MAX);
    utf8_sanitize(&clean, s, n);
    openai_hide_nul(clean.p);
    if (!(v = json_parse(clean.p, clean.n, "the server's answer", NULL)))
        openai_break_off(x, true, "it sent what is no JSON");
    buf_free(&clean);
    return v;
}

/* A line of the stream: "data: {...}", "data: [DONE]", or the event's name; others are comments. */
static void openai_take_line(struct openai_exchange *x)
{
    const char *s = x->line.p;
    json_t *v;

    if (!*s || !strncmp(s, "event:", 6))
        x->error_event = *s && !strcmp(s + 6 + strspn(s + 6, " "), "error");
    if (strncmp(s, "data:", 5))
        return;
    s += 5 + strspn(s + 5, " ");
    x->streamed = true;
    if (!strncmp(s, "[DONE]", 6)) {
        if (!x->ended)
            openai_break_off(x, x->text.n || x->thought.n, "its answer ends without a finish_reason");
        return;
    }
    if (x->error_event && *s != '{')
        openai_break_off(x, false, s);
    if (!(v = openai_parse(x, s, strlen(s))))
        return;
    openai_take_failure(x, v);
    openai_take_model(x, v);
    openai_take_choice(x, json_array_get(json_object_get(v, "choices"), 0), "delta");
    openai_take_usage(x, v);
    json_decref(v);
}

/* Takes a line of a stream. */
static void openai_end_line(struct openai_exchange *x)
{
    while (x->line.n && x->line.p[x->line.n - 1] == '\r')
        x->line.p[--x->line.n] = 0;
    openai_take_line(x);
    buf_clear(&x->line);
}

/* A callback of curl: takes a piece of the answer. 0 breaks the transfer off. */
static size_t openai_on_data(char *data, size_t size, size_t n, void *ctx)
{
    struct openai_exchange *x = ctx;

    n *= size;
    x->heard = now_s();
    if (!x->streamed)
        buf_add(&x->body, data, n);
    for (size_t i = 0; i < n; i++)
        if (data[i] == '\n')
            openai_end_line(x);
        else
            buf_addc(&x->line, data[i]);
    if (x->body.cut || x->line.cut || x->text.cut || x->thought.cut)
        openai_break_off(x, true, "its answer is larger than 64 MiB");
    return *x->broken ? 0 : n;
}

/* ---- one object ---- */

/* Without text it is an answer where that was said: by an empty string, or by an end that is not the model's own. */
static bool openai_is_answer(const struct openai_exchange *x, const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message");

    return x->text.n || x->thought.n || x->cut || json_is_string(json_object_get(message, "content"));
}

/* Takes an answer that came whole. */
static void openai_take_message(struct openai_exchange *x)
{
    const json_t *choice = json_array_get(json_object_get(x->whole, "choices"), 0);
    const char *why = json_str(x->whole, "message", json_str(x->whole, "detail", "its answer has no 'choices'"));

    openai_take_usage(x, x->whole);
    if (!choice)
        openai_break_off(x, true, why);
    else if (!openai_take_end(x, choice, &x->cut))
        openai_break_off(x, true, "its answer has no finish_reason");
    if (*x->broken)
        return;
    openai_take_choice(x, choice, "message");
    if (!openai_is_answer(x, choice))
        openai_break_off(x, true, "its answer has no content");
}

/* ---- samples as ids ---- */

/* What is wrong with a drawn token; NULL: nothing. A log-prob of nearly one token may be a little above 0. */
static const char *openai_token_fault(const struct openai_ask *ask, const json_t *id, const json_t *logp)
{
    json_int_t v = json_integer_value(id);

    if (!json_is_integer(id))
        return "is no number";
    if (v < 0 || v > INT32_MAX || (ask->n_vocab && v >= ask->n_vocab))
        return "is outside the vocabulary";
    if (!json_is_number(logp))
        return "has no log-prob";
    return json_number_value(logp) > 1e-3 ? "has a log-prob above 0" : NULL;
}

/* Takes token ids and log-probabilities of a choice; breaks off where they are missing. */
static void openai_take_ids(struct openai_exchange *x, struct openai_sample *s, const json_t *choice)
{
    const json_t *ids = json_object_get(choice, "token_ids");
    const json_t *logp = json_object_get(json_object_get(choice, "logprobs"), "token_logprobs");
    size_t n = json_array_size(ids);
    char why[160];

    if (n == 0 || json_array_size(logp) != n) {
        openai_break_off(x, true, "its answer has no 'token_ids' and 'token_logprobs', as many; it must know "
                                  "'return_token_ids' (vLLM from 0.10.2 on, 'musacoder serve --model')");
        return;
    }
    if (x->ask->max_tokens > 0 && n > (size_t)x->ask->max_tokens)
        openai_break_off(x, true, "it drew more tokens than it was asked for");
    s->ids = xcalloc(n, sizeof *s->ids);
    s->logp = xcalloc(n, sizeof *s->logp);
    s->n = (int)n;
    for (size_t i = 0; i < n && !*x->broken; i++) {
        const char *fault = openai_token_fault(x->ask, json_array_get(ids, i), json_array_get(logp, i));

        s->ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
        s->logp[i] = (float)json_number_value(json_array_get(logp, i));
        snprintf(why, sizeof why, "token %zu of a sample, id %lld, %s", i,
                 (long long)json_integer_value(json_array_get(ids, i)), fault ? fault : "");
        if (fault)
            openai_break_off(x, true, why);
    }
}

/* Each sample once, and whole. */
static void openai_take_samples(struct openai_exchange *x)
{
    const json_t *choices = json_object_get(x->whole, "choices"), *choice;
    size_t i;
    int n = 0;

    openai_take_usage(x, x->whole);
    x->samples = xcalloc((size_t)x->ask->n, sizeof *x->samples);
    json_array_foreach(choices, i, choice) {
        int64_t index = json_i64(choice, "index", -1);

        if (index < 0 || index >= x->ask->n || x->samples[index].n || *x->broken)
            continue;
        if (!openai_take_end(x, choice, &x->samples[index].cut))
            openai_break_off(x, true, "a sample has no finish_reason");
        openai_take_ids(x, &x->samples[index], choice);
        n++;
    }
    if (n < x->ask->n) {
        char why[80];
        snprintf(why, sizeof why, "it drew %d samples of %d", n, x->ask->n);
        openai_break_off(x, true, why);
    }
}

static void openai_samples_free(struct openai_sample *samples, int n)
{
    for (int i = 0; samples && i < n; i++) {
        free(samples[i].ids);
        free(samples[i].logp);
    }
    free(samples);
}

/* Takes an answer that came as one object. */
static void openai_take_object(struct openai_exchange *x)
{
    openai_take_failure(x, x->whole);
    openai_take_model(x, x->whole);
    if (*x->broken || !x->ask)
        return;
    if (x->ask->prompt)
        openai_take_samples(x);
    else
        openai_take_message(x);
}

/* After the last byte: a last line without its end, or, where one is expected, the one object of an answer that
 * was not streamed. */
static void openai_take_rest(struct openai_exchange *x, bool object)
{
    if (x->line.n)
        openai_end_line(x);
    if (object && !x->streamed && !*x->broken && (x->whole = openai_parse(x, x->body.p, x->body.n)))
        openai_take_object(x);
}

/* A callback of curl: notes Retry-After. */
static size_t openai_on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct openai_exchange *x = ctx;

    n *= size;
    if (n > 13 && !strncasecmp(data, "retry-after:", 12))
        x->retry_after_s = strtod(data + 12, NULL);
    return n;
}

static int openai_on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct openai_exchange *x = ctx;

    return stop_requested() || now_s() > x->heard + x->silence_s;
}

/* Prepares for one request's answer; openai_exchange_end frees it. */
static void openai_exchange_begin(struct openai_exchange *x, const struct openai *a, const struct openai_ask *ask)
{
    memset(x, 0, sizeof *x);
    buf_init(&x->body, BODY_MAX);
    buf_init(&x->line, BODY_MAX);
    buf_init(&x->text, BODY_MAX);
    buf_init(&x->thought, BODY_MAX);
    x->ask = ask;
    x->heard = now_s();
    x->silence_s = a->silence_s;
}

static void openai_exchange_end(struct openai_exchange *x)
{
    buf_free(&x->body);
    buf_free(&x->line);
    buf_free(&x->text);
    buf_free(&x->thought);
    json_decref(x->whole);
    openai_samples_free(x->samples, x->ask ? x->ask->n : 0);
}

/* ---- one try ---- */

/* The request's headers; the caller frees the list. */
static struct curl_slist *openai_headers_of(const struct openai *a)
{
    struct curl_slist *h = lib.curl_slist_append(NULL, "Content-Type: application/json");

    if (a->key) {
        char *line = xasprintf("Authorization: Bearer %s", a->key);
        h = lib.curl_slist_append(h, line);
        free(line);
    }
    return h;
}

/* HTTP status, or 0 with *ret_why when nothing was answered. post NULL: GET. */
static long openai_try_once(const struct openai *a, const char *path, const char *post, struct openai_exchange *x,
                            const char **ret_why)
{
    CURL *h = lib.curl_easy_init();
    char *url = xasprintf("%s%s", a->url, path);
    struct curl_slist *headers = openai_headers_of(a);
    CURLcode rc;
    long status = 0;

    lib.setopt(h, CURLOPT_URL, url);
    lib.setopt(h, CURLOPT_HTTPHEADER, headers);
    lib.setopt(h, CURLOPT_NOSIGNAL, 1L);
    lib.setopt(h, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    lib.setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    lib.setopt(h, CURLOPT_WRITEFUNCTION, openai_on_data);
    lib.setopt(h, CURLOPT_WRITEDATA, x);
    lib.setopt(h, CURLOPT_HEADERFUNCTION, openai_on_header);
    lib.setopt(h, CURLOPT_HEADERDATA, x);
    lib.setopt(h, CURLOPT_NOPROGRESS, 0L);
    lib.setopt(h, CURLOPT_XFERINFOFUNCTION, openai_on_progress);
    lib.setopt(h, CURLOPT_XFERINFODATA, x);
    if (post)
        lib.setopt(h, CURLOPT_POSTFIELDS, post);
    rc = lib.curl_easy_perform(h);
    lib.getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    *ret_why = rc == CURLE_OK ? "" : rc == CURLE_ABORTED_BY_CALLBACK ? "it fell silent" : lib.curl_easy_strerror(rc);
    lib.curl_slist_free_all(headers);
    lib.curl_easy_cleanup(h);
    free(url);
    return rc == CURLE_OK ? status : 0;
}

/* True for statuses that may pass. */
static bool openai_worth_retrying(long status)
{
    return status == 0 || status == 408 || status == 409 || status == 429 || status >= 500;
}

/* What the server says of a refusal, as one line. */
static void openai_reason(const struct openai_exchange *x, char *out, size_t n)
{
    json_t *v = json_parse(x->body.p, x->body.n, "answer", NULL);
    const json_t *error = json_object_get(v, "error");
    const char *said = json_str(error, "message", json_str(v, "message", json_str(v, "detail", NULL)));

    snprintf(out, n, "%.300s", said ? said : x->body.p);
    json_decref(v);
}

static void openai_pause_for(double s)
{
    for (double until = now_s() + s; now_s() < until && !stop_requested();)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* In the words of OpenAI, vLLM, SGLang and llama.cpp; "context" stands in all of them. */
static bool openai_says_no_room(long status, const char *said)
{
    static const char *const words[] = {"maximum context length", "context length", "context_length_exceeded",
                                        "context window", "available context size"};
    bool is = false;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is |= strcasestr(said, words[i]) != NULL;
    return is && (status == 400 || status == 413 || status == 422);
}

/* 400, 413, 414, 415, 422, 451: this dialogue is refused. Others, such as 401, 403 and 404, refuse who asks, or all. */
static bool openai_refuses_dialogue(long status)
{
    return status == 400 || (status >= 413 && status <= 415) || status == 422 || status == 451;
}

/* Why there is no answer in x. Returns whether it is worth to ask again. */
static bool openai_refused(const struct openai *a, struct openai_exchange *x, long status, const char *why,
                           struct err *e)
{
    char said[320];

    openai_reason(x, said, sizeof said);
    x->no_room = openai_says_no_room(status, said);
    if (openai_refuses_dialogue(status))
        snprintf(x->refused, sizeof x->refused, "%ld: %.300s", status, said);
    else if (x->declined && !stop_requested())
        snprintf(x->refused, sizeof x->refused, "%.300s", x->broken);
    if (stop_requested())
        err_set(e, ERR_STOP, "interrupted");
    else if (*x->broken)
        err_set(e, ERR_ENV, "'%s' gives no whole answer: %s", a->url, x->broken);
    else if (status == 200)
        err_set(e, ERR_ENV, "'%s' does not answer: it broke its answer off", a->url);
    else if (status)
        err_set(e, openai_worth_retrying(status) ? ERR_ENV : ERR_INPUT, "'%s' answers %ld: %s", a->url, status, said);
    else
        err_set(e, ERR_ENV, "'%s' does not answer: %s", a->url, why);
    return !stop_requested() && (*x->broken || status == 200 || openai_worth_retrying(status));
}

/* What the server asks for counts as far as our patience goes. */
static void openai_pause_before(double asked_for, double *wait, double until)
{
    double left = until - now_s(), s = asked_for > 0 ? asked_for : *wait;

    openai_pause_for(s < left ? s : left);
    *wait = 2 * *wait < PAUSE_MAX_S ? 2 * *wait : PAUSE_MAX_S;
}

/* Asks until there is a whole answer of status 200; x holds it. What failed or was torn on the way is asked for
 * again, unless somebody has read along: what was streamed is not taken back. */
static int openai_exchange_run(const struct openai *a, const char *path, const char *post, const struct openai_ask *ask,
                               struct openai_exchange *x, struct err *e)
{
    double until = now_s() + a->retry_s, wait = a->pause_s;
    struct err own = ERR_INIT;

    e = e ? e : &own;
    for (int torn = 0, warned = 0;; warned = 1) {
        const char *why;
        long status;

        openai_exchange_begin(x, a, ask);
        status = openai_try_once(a, path, post, x, &why);
        if (status == 200)
            openai_take_rest(x, ask || !post);
        if (status == 200 && !*x->broken && (!x->streamed || x->ended))
            return 0;
        torn += x->torn;
        bool again = openai_refused(a, x, status, why, e) && now_s() < until && torn < TORN_MAX &&
                     !(ask && ask->on_text && x->text.n);
        double asked_for = x->retry_after_s;
        openai_exchange_end(x);
        if (!again)
            return -1;
        if (!warned)
            log_warn("%s; asking again for up to %.0f s", e->msg, a->retry_s);
        openai_pause_before(asked_for, &wait, until);
    }
}

/* ---- the server ---- */

/* The URL without slashes at its end, with /v1 where it has no path. Owned. */
static char *openai_base_url(const char *given)
{
    const char *path = strchr(strstr(given, "://") + 3, '/');
    size_t n = strlen(given);

    while (n && given[n - 1] == '/')
        n--;
    return !path || !path[1] ? xasprintf("%.*s/v1", (int)n, given) : xstrndup(given, n);
}

/* Asks the server for its first model's name. */
static int openai_first_model(struct openai *a, struct err *e)
{
    struct openai_exchange x;
    json_t *v;
    const char *id;

    if (openai_exchange_run(a, "/models", NULL, NULL, &x, e) < 0)
        return -1;
    v = json_incref(x.whole);
    id = json_str(json_array_get(json_object_get(v, "data"), 0), "id", NULL);
    if (id)
        a->model = xstrdup(id);
    else
        err_set(e, ERR_ENV, "'%s' names no model; say which with --model-name", a->url);
    json_decref(v);
    openai_exchange_end(&x);
    return id ? 0 : -1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void openai_init_once(void)
{
    lib.curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Opens a client; nothing is asked yet. ERR_INPUT: the URL is none; ERR_ENV: libcurl is missing. */
int openai_open(const struct openai_config *c, struct openai **ret, struct err *e)
{
    const char *key = getenv("OPENAI_API_KEY");
    struct openai *a;

    if (!openai_is_url(c->url))
        return err_set(e, ERR_INPUT, "'%s' is no server; http://HOST:PORT/v1 is", c->url);
    if (dl_load("libcurl.so.4", "libcurl4", lib_names, e) < 0)
        return -1;
    pthread_once(&once, openai_init_once);
    a = xcalloc(1, sizeof *a);
    *a = (struct openai){.url = openai_base_url(c->url),
                         .model = c->model ? xstrdup(c->model) : NULL,
                         .key = key && *key ? xstrdup(key) : NULL,
                         .retry_s = c->retry_s > 0 ? c->retry_s : RETRY_S,
                         .pause_s = c->pause_s > 0 ? c->pause_s : PAUSE_MIN_S,
                         .silence_s = c->timeout_s > 0 ? c->timeout_s : SILENCE_S};
    if (!a->model && openai_first_model(a, e) < 0) {
        openai_close(a);
        return -1;
    }
    *ret = a;
    return 0;
}

void openai_close(struct openai *a)
{
    if (!a)
        return;
    free(a->url);
    free(a->model);
    free(a->key);
    free(a);
}

const char *openai_model(const struct openai *a)
{
    return a->model;
}

/* The request's body of a prompt of token ids, owned. */
static char *openai_prompt_body(const struct openai *a, const struct openai_ask *ask)
{
    json_t *v = json_pack("{s:s,s:o,s:i,s:i,s:f,s:f,s:I,s:i,s:b,s:b}", "model", a->model, "prompt",
                          json_ints(ask->prompt, (size_t)ask->n_prompt), "n", ask->n, "max_tokens", ask->max_tokens,
                          "temperature", ask->temperature, "top_p", ask->top_p > 0 ? ask->top_p : 1.0, "seed",
                          (json_int_t)ask->seed, "logprobs", 1, "return_token_ids", 1, "skip_special_tokens", 0);
    char *text;

    if (ask->n_stop)
        json_object_set_new(v, "stop_token_ids", json_ints(ask->stop_ids, (size_t)ask->n_stop));
    text = json_text(v);
    json_decref(v);
    return text;
}

/* The request's body of a dialogue, owned. */
static char *openai_body_of(const struct openai *a, const struct openai_ask *ask)
{
    json_t *v = json_pack("{s:s,s:O,s:b,s:{s:b},s:f}", "model", a->model, "messages", ask->messages, "stream", 1,
                          "stream_options", "include_usage", 1, "temperature", ask->temperature);
    char *text;

    if (ask->top_p > 0)
        json_object_set_new(v, "top_p", json_real(ask->top_p));
    if (ask->max_tokens > 0)
        json_object_set_new(v, "max_tokens", json_integer(ask->max_tokens));
    if (ask->seed >= 0)
        json_object_set_new(v, "seed", json_integer(ask->seed));
    text = json_text(v);
    json_decref(v);
    return text;
}

/* Asks for completions of a prompt of token ids. */
static int openai_complete(struct openai *a, const struct openai_ask *ask, struct openai_reply *ret, struct err *e)
{
    char *body = openai_prompt_body(a, ask);
    struct openai_exchange x;
    int rc = openai_exchange_run(a, "/completions", body, ask, &x, e);

    free(body);
    if (rc < 0)
        return -1;
    *ret = (struct openai_reply){.samples = x.samples, .n_samples = ask->n, .prompt_tokens = x.prompt_tokens,
                                 .completion_tokens = x.completion_tokens};
    x.samples = NULL;
    openai_exchange_end(&x);
    return 0;
}

int openai_load_weights(struct openai *a, const char *folder, struct err *e)
{
    size_t n = strlen(a->url);
    struct openai root = {.model = a->model, .key = a->key, .retry_s = a->retry_s, .pause_s = a->pause_s,
                          .silence_s = a->silence_s};
    struct openai_exchange x;
    json_t *v = json_pack("{s:s}", "model_path", folder);
    char *body = json_text(v);

    json_decref(v);
    root.url = xstrndup(a->url, n > 3 && !strcmp(a->url + n - 3, "/v1") ? n - 3 : n);
    int rc = openai_exchange_run(&root, "/update_weights_from_disk", body, NULL, &x, e);
    if (rc == 0)
        openai_exchange_end(&x);
    else
        err_prefix(e, "the server was told to load '%s'", folder);
    free(root.url);
    free(body);
    return rc;
}

/* Moves what came into *ret; thinking is put in front in <think>. */
static void openai_reply_of(const struct openai_exchange *x, struct openai_reply *ret)
{
    *ret = (struct openai_reply){
        .text = x->thought.n ? xasprintf("<think>\n%s\n</think>\n\n%s", x->thought.p, x->text.p) : xstrdup(x->text.p),
        .cut = x->cut,
        .prompt_tokens = x->prompt_tokens,
        .completion_tokens = x->completion_tokens};
}

int openai_read(const char *body, size_t n, size_t piece, struct openai_reply *ret, struct err *e)
{
    const struct openai none = {.url = "a file", .silence_s = SILENCE_S};
    const struct openai_ask ask = {.seed = -1};
    struct openai_exchange x;
    int rc = 0;

    openai_exchange_begin(&x, &none, &ask);
    for (size_t at = 0; at < n && !*x.broken; at += piece)
        openai_on_data((char *)body + at, 1, n - at < piece ? n - at : piece, &x);
    if (!*x.broken)
        openai_take_rest(&x, true);
    if (*x.broken || (x.streamed && !x.ended))
        rc = err_set(e, ERR_ENV, "'%s' gives no whole answer: %s", none.url, *x.broken ? x.broken : "it ends early");
    if (rc == 0)
        openai_reply_of(&x, ret);
    openai_exchange_end(&x);
    return rc;
}

/* Once: another model may have answered than the one asked. "gpt-4o" may call itself "gpt-4o-2024-08-06". */
static void openai_tell_model(struct openai *a, const char *name)
{
    bool same = !*name || !strncmp(name, a->model, strlen(a->model)) || !strcmp(path_name(a->model), name);

    if (!same && !atomic_exchange(&a->told, true))
        log_warn("'%s' answers as '%.100s' where '%s' was asked; its answers are noted as those of '%s'", a->url, name,
                 a->model, a->model);
}

/* Asks once, with retries. 0 with no_room where the dialogue is too long; *ret is freed by openai_reply_free. */
int openai_chat(struct openai *a, const struct openai_ask *ask, struct openai_reply *ret, struct err *e)
{
    if (ask->prompt)
        return openai_complete(a, ask, ret, e);
    char *body = openai_body_of(a, ask);
    struct openai_exchange x;
    int rc = openai_exchange_run(a, "/chat/completions", body, ask, &x, e);

    free(body);
    if (rc < 0 && (x.no_room || *x.refused)) {
        *ret = (struct openai_reply){.text = xstrdup(""), .no_room = x.no_room,
                                     .refused = x.no_room ? NULL : xstrdup(x.refused)};
        return 0;
    }
    if (rc < 0)
        return -1;
    openai_tell_model(a, x.model);
    openai_reply_of(&x, ret);
    openai_exchange_end(&x);
    a->answered = true;
    return 0;
}

bool openai_has_answered(const struct openai *a)
{
    return a->answered;
}

void openai_reply_free(struct openai_reply *r)
{
    openai_samples_free(r->samples, r->n_samples);
    free(r->text);
    free(r->refused);
    memset(r, 0, sizeof *r);
}
