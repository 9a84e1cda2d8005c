/* many.c - see many.h. Threads take asks from a counter and put answers into a list; the caller's thread delivers. */
#include "remote/many.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

#define REFUSED_MAX 8 /* without one answer: the server refuses what all dialogues have in common */

struct many_answer {
    int i, rc;
    struct openai_reply reply;
    struct err e;
    struct many_answer *next;
};

struct crowd {
    struct openai *a;
    const struct openai_ask *asks;
    int n, taken, running;
    bool stop;
    struct many_answer *first;
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* The next request's number; -1: none is left, or it was called off. */
static int many_take(struct crowd *c)
{
    int i;

    pthread_mutex_lock(&c->lock);
    i = c->stop || c->taken == c->n || stop_requested() ? -1 : c->taken++;
    pthread_mutex_unlock(&c->lock);
    return i;
}

/* Hands an answer to the thread that delivers. */
static void many_put(struct crowd *c, struct many_answer *w)
{
    pthread_mutex_lock(&c->lock);
    w->next = c->first;
    c->first = w;
    pthread_cond_signal(&c->change);
    pthread_mutex_unlock(&c->lock);
}

/* A thread that asks the server until no request is left. */
static void *many_ask_thread(void *arg)
{
    struct crowd *c = arg;
    int i;

    while ((i = many_take(c)) >= 0) {
        struct many_answer *w = xcalloc(1, sizeof *w);
        w->i = i;
        w->rc = openai_chat(c->a, &c->asks[i], &w->reply, &w->e);
        many_put(c, w);
    }
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_cond_signal(&c->change);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The next answer, or NULL when all threads are done. */
static struct many_answer *many_next_answer(struct crowd *c)
{
    struct many_answer *w;

    pthread_mutex_lock(&c->lock);
    while (!c->first && c->running > 0)
        pthread_cond_wait(&c->change, &c->lock);
    if ((w = c->first))
        c->first = w->next;
    pthread_mutex_unlock(&c->lock);
    return w;
}

/* Tells all threads to stop. */
static void many_call_off(struct crowd *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_mutex_unlock(&c->lock);
}

/* Refusals wait until one dialogue is answered: a server that answers none refuses what all of them have in common. */
struct many_refusals {
    struct many_answer *first;
    bool answered;
    int n;
};

static void many_answer_free(struct many_answer *w)
{
    if (w->rc == 0)
        openai_reply_free(&w->reply);
    free(w);
}

/* -1: so many were refused, and none answered. */
static int many_put_off(struct many_refusals *r, struct many_answer *w, struct err *e)
{
    if (r->n++ == 0)
        log_warn("the server refuses a dialogue, which counts as one without an answer: %s", w->reply.refused);
    w->next = r->first;
    r->first = w;
    return r->n < REFUSED_MAX ? 0 : err_set(e, ERR_INPUT, "the server refuses each dialogue, the last with %s",
                                            w->reply.refused);
}

/* Hands out the refused dialogues. ERR_INPUT: all were refused. */
static int many_deliver_refusals(struct many_refusals *r, int (*each)(int, const struct openai_reply *, void *,
                                 struct err *), void *ctx, struct err *e)
{
    struct many_answer *w;
    int rc = 0;

    while ((w = r->first)) {
        r->first = w->next;
        if (rc == 0 && r->answered)
            rc = each(w->i, &w->reply, ctx, e);
        else if (rc == 0)
            rc = err_set(e, ERR_INPUT, "the server refuses each dialogue, the last with %s", w->reply.refused);
        many_answer_free(w);
    }
    return rc;
}

/* Gives the answers to 'each' in the caller's thread as they come. The first failure calls the rest off. */
static int many_deliver(struct crowd *c, int (*each)(int, const struct openai_reply *, void *, struct err *), void *ctx,
                        struct err *e)
{
    struct many_refusals refused = {.answered = openai_has_answered(c->a)};
    struct many_answer *w;
    int rc = 0;

    while ((w = many_next_answer(c))) {
        bool waits = rc == 0 && w->rc == 0 && w->reply.refused && !refused.answered;

        if (rc == 0 && w->rc < 0)
            rc = err_set(e, w->e.kind, "%s", w->e.msg);
        else if (waits)
            rc = many_put_off(&refused, w, e);
        else if (rc == 0)
            rc = each(w->i, &w->reply, ctx, e);
        refused.answered |= w->rc == 0 && !w->reply.refused;
        if (rc < 0)
            many_call_off(c);
        if (!waits)
            many_answer_free(w);
    }
    if (many_deliver_refusals(&refused, each, ctx, rc == 0 ? e : NULL) < 0)
        rc = -1;
    return rc == 0 && stop_requested() ? err_set(e, ERR_STOP, "interrupted") : rc;
}

int openai_many(struct openai *a, const struct openai_ask *asks, int n, int parallel,
                int (*each)(int, const struct openai_reply *, void *, struct err *), void *ctx, struct err *e)
{
    struct crowd c = {
        .a = a, .asks = asks, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    int threads = parallel < n ? parallel : n, started = 0, rc;
    pthread_t *t = xcalloc((size_t)threads + 1, sizeof *t);

    c.running = threads;
    while (started < threads && pthread_create(&t[started], NULL, many_ask_thread, &c) == 0)
        started++;
    pthread_mutex_lock(&c.lock);
    c.running -= threads - started;
    pthread_mutex_unlock(&c.lock);
    rc = n > 0 && !started ? err_set(e, ERR_ENV, "cannot start a thread") : many_deliver(&c, each, ctx, e);
    for (int i = 0; i < started; i++)
        pthread_join(t[i], NULL);
    free(t);
    return rc;
}
