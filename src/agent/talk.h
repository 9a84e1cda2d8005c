/* talk.h - one answer of a model to a dialogue: of a server, or of a model folder in this process. */
#ifndef MC_AGENT_TALK_H
#define MC_AGENT_TALK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct talker;

struct talk_config {
    const char *model;      /* "http://HOST:PORT/v1", or a model folder */
    const char *model_name; /* of a server that has several; NULL: its first */
    double temperature, top_p;
    int max_new;    /* tokens of one answer */
    int64_t seed;   /* answer i is drawn from seed + i */
    double retry_s; /* of a server that is away; 0: its default */
};

struct talk_answer {
    char *text; /* owned: talk_answer_free */
    bool cut;   /* hit max_new */
    int tokens; /* 0: not said */
};

int talker_open(const struct talk_config *c, struct talker **ret, struct err *e);
void talker_close(struct talker *t); /* NULL is fine */

/* messages: prompt.h's. on_text (may be NULL) gets the answer as it comes. */
int talker_say(struct talker *t, const json_t *messages, void (*on_text)(const char *text, size_t n, void *ctx),
               void *ctx, struct talk_answer *ret, struct err *e);
void talk_answer_free(struct talk_answer *a);

#endif
