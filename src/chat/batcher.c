/* batcher.c - see batcher.h. */
#include "chat/batcher.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "nn/model.h"

#define ROWS 16
#define MAX_STOP 10
#define PAUSE_S 1.0 /* after the engine failed */

/* A prompt of a job, while its samples wait or are drawn. */
struct batcher_part {
    struct chat_job *job;
    int prompt, left;
    struct batcher_part *next;
};

struct batcher {
    struct batcher_config c;
    int32_t stop[MAX_STOP];
    int n_stop;
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t came;
    struct batcher_part *first, **last;
    struct batcher_stats stats;
};

/* ---- jobs ---- */

/* A job with one reference that takes what a owns. */
struct chat_job *chat_job_new(struct chat_ask *a)
{
    static atomic_ulong number;
    struct chat_job *j = xcalloc(1, sizeof *j);

    j->ask = *a;
    *a = (struct chat_ask){0};
    j->n = j->left = j->ask.n * j->ask.n_prompts;
    j->created = (int64_t)time(NULL);
    j->refs = 1;
    snprintf(j->id, sizeof j->id, "%s-%llx-%lx", j->ask.chat ? "chatcmpl" : "cmpl", (unsigned long long)j->created,
             atomic_fetch_add(&number, 1));
    pthread_mutex_init(&j->lock, NULL);
    j->drawn = xcalloc((size_t)j->n, sizeof *j->drawn);
    for (int i = 0; i < j->n; i++)
        words_begin(&j->drawn[i].words);
    return j;
}

void chat_job_release(struct chat_job *j)
{
    int left;

    pthread_mutex_lock(&j->lock);
    left = --j->refs;
    pthread_mutex_unlock(&j->lock);
    if (left > 0)
        return;
    for (int i = 0; i < j->n; i++) {
        words_free(&j->drawn[i].words);
        ivec_free(&j->drawn[i].ids);
        free(j->drawn[i].logp);
    }
    free(j->drawn);
    ask_free(&j->ask);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* Tells the job's owner that there is something new. */
static void batcher_tell(struct chat_job *j)
{
    if (j->moved)
        j->moved(j, j->ctx);
}

/* ---- what the sampler calls, on the batcher's thread ---- */

static bool batcher_has(const int32_t *ids, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Appends a token to what was drawn. */
static void batcher_keep(struct batcher_drawn *d, int32_t id, float logp)
{
    if (d->ids.n == d->logp_cap) {
        d->logp_cap = 2 * d->logp_cap + 64;
        d->logp = xrealloc(d->logp, d->logp_cap * sizeof *d->logp);
    }
    d->logp[d->ids.n] = logp;
    ivec_push(&d->ids, id);
}

/* A callback of the sampler: adds a token's text to its sample. False ends the sample. */
static bool batcher_on_token(void *ctx, const struct sample *s)
{
    struct batcher *b = ctx;
    struct batcher_part *p = s->user;
    struct chat_job *j = p->job;
    struct batcher_drawn *d = &j->drawn[p->prompt * j->ask.n + s->index];
    int32_t id = s->tokens[s->n - 1];
    bool ends = batcher_has(j->ask.stop_ids, j->ask.n_stop_ids, id), goes_on;
    size_t n = 0;
    const char *bytes = tokenizer_bytes(b->c.tok, id, &n);

    if (!bytes || ends || batcher_has(b->stop, b->n_stop, id) ||
        (!j->ask.special && tokenizer_is_special(b->c.tok, id)))
        n = 0;
    pthread_mutex_lock(&j->lock);
    batcher_keep(d, id, s->logp[s->n - 1]);
    words_add(&d->words, bytes ? bytes : "", n, j->ask.stop, j->ask.n_stop);
    goes_on = !ends && !d->words.stopped && !j->unwanted && !atomic_load(&b->stopping);
    if (j->ask.stream)
        batcher_tell(j);
    pthread_mutex_unlock(&j->lock);
    return goes_on;
}

/* A sample's prompt is done: gives up its job and counts its tokens. */
static void batcher_let_go(struct batcher *b, struct batcher_part *p, int tokens)
{
    struct chat_job *j = p->job;

    pthread_mutex_lock(&b->lock);
    b->stats.tokens += (uint64_t)tokens;
    b->stats.running--;
    pthread_mutex_unlock(&b->lock);
    if (--p->left > 0)
        return;
    free(p);
    chat_job_release(j);
}

/* A callback of the sampler: a sample has ended. */
static void batcher_on_sample(void *ctx, const struct sample *s)
{
    struct batcher *b = ctx;
    struct batcher_part *p = s->user;
    struct chat_job *j = p->job;
    struct batcher_drawn *d = &j->drawn[p->prompt * j->ask.n + s->index];

    pthread_mutex_lock(&j->lock);
    d->finish = atomic_load(&b->stopping) ? FINISH_CANCELLED : s->finish;
    words_end(&d->words);
    d->done = true;
    j->left--;
    batcher_tell(j);
    pthread_mutex_unlock(&j->lock);
    batcher_let_go(b, p, s->n);
}

/* True once the batcher or the program is to stop. */
static bool batcher_over(struct batcher *b)
{
    return atomic_load(&b->stopping) || stop_requested();
}

/* Waits for a prompt, looking for the stop ten times a second. The caller holds the lock. */
static void batcher_await(struct batcher *b)
{
    while (!b->first && !batcher_over(b)) {
        struct timespec until = stop_look_again();

        pthread_cond_clockwait(&b->came, &b->lock, CLOCK_MONOTONIC, &until);
    }
}

/* The next waiting prompt; NULL: none. The caller holds the lock. */
static struct batcher_part *batcher_take(struct batcher *b)
{
    struct batcher_part *p = b->first;

    if (p && !(b->first = p->next))
        b->last = &b->first;
    if (p) {
        b->stats.waiting -= p->job->ask.n;
        b->stats.running += p->job->ask.n;
    }
    return p;
}

/* A callback of the sampler: *ret is the next prompt. 1: there is one; 0: none now; -1: the batcher stops. */
static int batcher_more(void *ctx, bool idle, struct sample_request *ret)
{
    struct batcher *b = ctx;
    struct batcher_part *p;

    pthread_mutex_lock(&b->lock);
    if (idle)
        batcher_await(b);
    p = batcher_over(b) ? NULL : batcher_take(b);
    pthread_mutex_unlock(&b->lock);
    if (!p)
        return batcher_over(b) ? -1 : 0;
    *ret = (struct sample_request){.prompt = p->job->ask.prompt[p->prompt].v,
                                   .n_prompt = (int)p->job->ask.prompt[p->prompt].n,
                                   .n_samples = p->job->ask.n,
                                   .max_new = p->job->ask.max_new,
                                   .seed = p->job->ask.seed + (uint64_t)p->prompt,
                                   .choice = &p->job->ask.choice,
                                   .user = p};
    return 1;
}

/* ---- the thread ---- */

/* Whoever still waits hears that nothing will come. */
static void batcher_cancel_waiting(struct batcher *b)
{
    struct batcher_part *p;

    for (;;) {
        pthread_mutex_lock(&b->lock);
        p = batcher_take(b);
        pthread_mutex_unlock(&b->lock);
        if (!p)
            return;
        for (int i = 0, n = p->job->ask.n; i < n; i++)
            batcher_on_sample(b, &(struct sample){.index = i, .finish = FINISH_CANCELLED, .user = p});
    }
}

/* The thread that samples for all jobs until the batcher stops. */
static void *batcher_work(void *ctx)
{
    struct batcher *b = ctx;
    struct sampler_options o = {.temperature = 1, .max_batch = b->c.max_batch ? b->c.max_batch : ROWS,
                                .max_new = b->c.max_len, .max_prompt = b->c.max_len, .stop_ids = b->stop,
                                .n_stop = b->n_stop, .on_token = batcher_on_token, .on_sample = batcher_on_sample,
                                .more = batcher_more,
                                .ctx = b};

    while (!batcher_over(b)) {
        struct sample *none;
        size_t n;
        struct err e = ERR_INIT;
        if (sampler_run(b->c.model, &o, NULL, 0, &none, &n, &e) < 0 && !batcher_over(b)) {
            log_warn("the engine failed: %s", e.msg);
            batcher_cancel_waiting(b);
            nanosleep(&(struct timespec){.tv_sec = (time_t)PAUSE_S}, NULL);
        }
    }
    batcher_cancel_waiting(b);
    return NULL;
}

/* Starts the thread; the model belongs to it until batcher_stop. */
int batcher_start(const struct batcher_config *c, struct batcher **ret, struct err *e)
{
    struct batcher *b = xcalloc(1, sizeof *b);
    int32_t end = tokenizer_id(c->tok, "<|im_end|>");

    b->c = *c;
    b->last = &b->first;
    for (int i = 0; i < c->model->config.n_eos; i++)
        b->stop[b->n_stop++] = c->model->config.eos[i];
    if (end >= 0 && !batcher_has(b->stop, b->n_stop, end))
        b->stop[b->n_stop++] = end;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->came, NULL);
    if (pthread_create(&b->thread, NULL, batcher_work, b) != 0) {
        free(b);
        return err_set(e, ERR_ENV, "no thread for the engine");
    }
    *ret = b;
    return 0;
}

void batcher_halt(struct batcher *b)
{
    atomic_store(&b->stopping, true);
    pthread_mutex_lock(&b->lock);
    pthread_cond_signal(&b->came);
    pthread_mutex_unlock(&b->lock);
}

void batcher_stop(struct batcher *b)
{
    if (!b)
        return;
    batcher_halt(b);
    pthread_join(b->thread, NULL);
    batcher_cancel_waiting(b); /* what came while the thread ended */
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->came);
    free(b);
}

/* Queues one prompt of a job. */
static void batcher_put_part(struct batcher *b, struct chat_job *j, int prompt)
{
    struct batcher_part *p = xcalloc(1, sizeof *p);

    *p = (struct batcher_part){.job = j, .prompt = prompt, .left = j->ask.n};
    *b->last = p;
    b->last = &p->next;
    b->stats.prompt_tokens += j->ask.prompt[prompt].n;
}

int batcher_add(struct batcher *b, struct chat_job *j)
{
    int rc = -1;

    pthread_mutex_lock(&b->lock);
    if (!batcher_over(b) && (b->stats.waiting == 0 || b->stats.waiting + j->n <= b->c.max_waiting)) {
        j->refs += j->ask.n_prompts; /* nobody else has it yet */
        for (int i = 0; i < j->ask.n_prompts; i++)
            batcher_put_part(b, j, i);
        b->stats.waiting += j->n;
        b->stats.requests++;
        pthread_cond_signal(&b->came);
        rc = 0;
    }
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void batcher_stats(struct batcher *b, struct batcher_stats *ret)
{
    pthread_mutex_lock(&b->lock);
    *ret = b->stats;
    pthread_mutex_unlock(&b->lock);
}
