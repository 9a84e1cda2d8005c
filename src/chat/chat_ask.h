/* chat_ask.h - a request of /v1/chat/completions or /v1/completions, read and checked. */
#ifndef MC_CHAT_CHAT_ASK_H
#define MC_CHAT_CHAT_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "nn/sampler.h"
#include "nn/tokenizer.h"

#define ASK_STOPS 16
#define ASK_SAMPLES 256 /* of one request, all prompts together */

struct chat_ask {
    bool chat;            /* else plain completions */
    bool stream, usage;   /* usage: a last chunk of the stream has it */
    bool logprobs, ids;   /* ids: token ids come with the text */
    bool special;         /* special tokens are part of the text */
    int n;                /* samples of each prompt */
    struct ivec *prompt;  /* (n_prompts) */
    int n_prompts;
    int max_new;          /* at least 1, and within the server's length */
    uint64_t seed;
    struct sample_choice choice;
    char *stop[ASK_STOPS];
    int n_stop;
    int32_t stop_ids[ASK_STOPS];
    int n_stop_ids;
};

struct ask_limits {
    const char *model; /* the name that is served */
    int max_len;       /* tokens of prompt and answer */
    int vocab;
};

/* -1: *ret_param names the member that is at fault, or is NULL; *ret_code is a word for programs. tok is used. */
int ask_read(const json_t *body, bool chat, struct tokenizer *tok, const struct ask_limits *l, struct chat_ask *ret,
             const char **ret_param, const char **ret_code, struct err *e);
void ask_free(struct chat_ask *a);

#endif
