/* openai.h - chat completions, and completions of prompts given as ids, from an OpenAI-compatible server, as vLLM,
 * SGLang and hosted ones answer them.
 *
 * One struct openai may be used by many threads; each call has a connection of its own while it lasts. A server
 * that is busy (429), restarting (5xx), unreachable, or fails while it answers (an "error" in its stream, an
 * aborted or torn answer) is asked again with growing pauses, as long as retry_s allows; a refusal (other 4xx) is
 * final: of one dialogue as its reply, of the caller or of all as an error; and so is the third answer that no whole
 * one will follow: no JSON, no finish_reason or one that we do not know, no content, text behind its end,
 * ids that are no tokens. The third answer that a filter ended, or a call of tools that nobody offered, is a refusal
 * of the dialogue. Nothing incomplete is ever returned. The key is read from the variable OPENAI_API_KEY, is
 * sent to this server alone, and is never printed. */
#ifndef MC_REMOTE_OPENAI_H
#define MC_REMOTE_OPENAI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct openai;

struct openai_config {
    const char *url;   /* "http://host:8000/v1" ("/v1" is added where there is no path) */
    const char *model; /* NULL: the first that /models names */
    double retry_s;    /* 0: 600 */
    double pause_s;    /* before the second try, then twice that, up to 30; 0: 1 */
    double timeout_s;  /* silence of the server while it answers; 0: 600 */
};

struct openai_ask {
    const json_t *messages;    /* [{"role","content"},...]; NULL where a prompt is given */
    const int32_t *prompt;     /* (n_prompt) ids: samples come as ids with log-probs, and not as a stream */
    int n_prompt, n;           /* n: samples */
    int n_vocab;               /* ids of samples are below it; 0: unknown */
    const int32_t *stop_ids;   /* (n_stop) beside the model's own; with a prompt */
    int n_stop;
    double temperature, top_p; /* top_p 0 means 1 */
    int max_tokens;            /* 0: the server's */
    int64_t seed;              /* negative: none is sent, but with a prompt */
    void (*on_text)(const char *text, size_t n,
                    void *ctx); /* as it streams; NULL. Called again from the start never */
    void *ctx;
};

struct openai_sample {
    int32_t *ids; /* (n) */
    float *logp;  /* (n) of the ids, as the server drew them */
    int n;        /* 0: it sent none */
    bool cut;
};

struct openai_reply {
    struct openai_sample *samples; /* (n_samples) of a prompt; owned */
    int n_samples;
    char *text; /* owned: openai_reply_free. Reasoning that the server sends apart stands before it in <think> */
    bool cut;   /* finish_reason "length" */
    bool no_room; /* the server refused a dialogue that is longer than its model's context; there is no text */
    char *refused; /* the server refused this dialogue for another reason, in these words: no text; owned, or NULL */
    int prompt_tokens, completion_tokens; /* 0 where the server does not say */
};

bool openai_is_url(const char *text); /* "http://..." or "https://..." */

int openai_open(const struct openai_config *c, struct openai **ret, struct err *e);
void openai_close(struct openai *a); /* NULL is fine */
const char *openai_model(const struct openai *a);
bool openai_has_answered(const struct openai *a); /* a dialogue, since it was opened */

int openai_chat(struct openai *a, const struct openai_ask *ask, struct openai_reply *ret, struct err *e);
/* An answer's body, streamed or whole, that comes in pieces of so many bytes: what openai_chat makes of it, or why
 * it would ask again. */
int openai_read(const char *body, size_t n, size_t piece, struct openai_reply *ret, struct err *e);
/* Tells the server to load the weights of a model folder that it can read ('/update_weights_from_disk', SGLang's). */
int openai_load_weights(struct openai *a, const char *folder, struct err *e);
void openai_reply_free(struct openai_reply *r);

#endif
