/* dialogue.h - a conversation that goes on: a request, an answer, what is said of it, the next answer.
 *
 * For a model here it is token ids, append only (nn/chat.h): an answer enters as the ids that were sampled. For a
 * server it is messages as text. The other form is not there. */
#ifndef MC_ANSWERS_DIALOGUE_H
#define MC_ANSWERS_DIALOGUE_H

#include <jansson.h>

#include "base/err.h"
#include "nn/chat.h"

struct dialogue {
    struct chat chat; /* tok NULL: it is for a server */
    json_t *messages; /* NULL: it is for a model here */
};

/* messages: [{"role","content"},..] ending with a user message; they are copied. tok NULL: for a server. */
int dialogue_begin(struct dialogue *d, struct tokenizer *tok, const json_t *messages, struct err *e);
void dialogue_free(struct dialogue *d);

/* The answer, ids (n) or for a server text, and what is said of it: the next request. */
int dialogue_go_on(struct dialogue *d, const int32_t *ids, size_t n, const char *text, const char *say, struct err *e);

/* The two steps on ids alone: a prompt from messages, and its next turn. Both end with the generation prompt. */
int dialogue_chat_begin(struct chat *c, struct tokenizer *tok, const json_t *messages, struct err *e);
int dialogue_chat_go_on(struct chat *c, const int32_t *ids, size_t n, const char *say, struct err *e);

#endif
