/* answers.h - answers of a model to dialogues: of a model folder in this process, or of an OpenAI-compatible server. */
#ifndef MC_ANSWERS_ANSWERS_H
#define MC_ANSWERS_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "answers/dialogue.h"
#include "base/err.h"

struct answers;

struct answers_config {
    const char *model;          /* a model folder, or "http://HOST:PORT/v1" */
    const char *model_name;     /* of a server that has several; NULL: its first */
    const char *device, *dtype; /* of a folder: nn/engine_device.h's; NULL: the host */
    double retry_s;             /* of a server that is away; 0: its default */
};

int answers_open(const struct answers_config *c, struct answers **ret, struct err *e);
void answers_close(struct answers *a); /* NULL is fine */
/* What dialogues for this source are begun with: NULL of a server. Borrowed. */
struct tokenizer *answers_tokenizer(const struct answers *a);
const char *answers_model(const struct answers *a); /* the server's name of it, or the folder; borrowed */

struct answer { /* borrowed, while on_answer runs */
    const char *text;
    const int32_t *ids; /* (n) as they were sampled; of a server NULL */
    int n;
    bool cut;                  /* hit the longest length */
    int prompt_tokens, tokens; /* 0: the server does not say */
};

struct answers_request {
    const struct dialogue *dialogue;
    int n;         /* answers, with independent draws. A server is asked for one each: n is 1 */
    uint64_t seed; /* a server gets it as a signed number */
};

struct answers_options {
    double temperature, top_p; /* temperature 0: greedy; top_p 0 means 1 */
    int max_new;               /* tokens of an answer */
    int max_context;           /* of a model here: longest dialogue with its answer; 0: its positions */
    int max_batch;             /* of a model here: rows decoded together; 0: the sampler's */
    int parallel;              /* of a server: requests at once; 0: 32 */
    void *ctx;                 /* of all that follow */
    /* Answer 'index' of a request, as it is there. a NULL: the dialogue leaves no room for one. -1 ends the call, with
     * what is on its way. */
    int (*on_answer)(void *ctx, int request, int index, const struct answer *a, struct err *e);
    void (*on_progress)(void *ctx, uint64_t tokens, int done, int total);  /* NULL is fine */
    void (*on_text)(const char *text, size_t n, void *ctx); /* of one answer as it comes, or at once; NULL is fine */
};

/* Asks for all. ERR_STOP after Ctrl-C; what was there by then has been delivered. */
int answers_draw(struct answers *a, const struct answers_options *o, const struct answers_request *reqs, int n,
                 struct err *e);

#endif
