/* batcher.h - the engine's thread: samples of all requests are drawn in one batch, which new ones join as rows free up.
 *
 * A job belongs to its call and to the batcher; who lets go last frees it. */
#ifndef MC_CHAT_BATCHER_H
#define MC_CHAT_BATCHER_H

#include <pthread.h>

#include "base/err.h"
#include "chat/chat_ask.h"
#include "chat/words.h"

struct batcher_drawn {
    struct chat_words words;
    struct ivec ids;  /* with the id that ended it */
    float *logp;      /* (ids.n) of ids: struct sample's */
    size_t logp_cap;
    enum finish finish;
    bool done, opened; /* opened, sent_x: the stream's own marks */
    size_t sent_ids, sent_text;
    bool said_end;
};

struct chat_job {
    struct chat_ask ask;   /* unchanged after batcher_add */
    int n;                 /* samples: ask.n of each prompt */
    int64_t created;       /* seconds since 1970 */
    char id[48];
    pthread_mutex_t lock;  /* what follows */
    struct batcher_drawn *drawn; /* (n) */
    int left;              /* samples that are not done */
    bool unwanted;         /* the caller has left */
    /* Something is new. Called with the lock held, from the batcher's thread; NULL when the caller has left. */
    void (*moved)(struct chat_job *j, void *ctx);
    void *ctx;
    int refs;
};

struct chat_job *chat_job_new(struct chat_ask *a /* taken over */);
void chat_job_release(struct chat_job *j);

struct batcher;
struct batcher_config {
    struct model *model;
    const struct tokenizer *tok;
    int max_len;     /* tokens of a prompt and its answer */
    int max_batch;   /* rows; 0: 16 */
    int max_waiting; /* samples that wait for a row */
};
struct batcher_stats {
    int running, waiting;                 /* samples */
    uint64_t requests, prompt_tokens, tokens;
};

int batcher_start(const struct batcher_config *c, struct batcher **ret, struct err *e);
void batcher_halt(struct batcher *b); /* samples that are drawn end where they are, later ones are not taken */
void batcher_stop(struct batcher *b); /* and waits for that; NULL is fine */
/* 0; -1: too many wait already, and the job is as it was. */
int batcher_add(struct batcher *b, struct chat_job *j);
void batcher_stats(struct batcher *b, struct batcher_stats *ret);

#endif
