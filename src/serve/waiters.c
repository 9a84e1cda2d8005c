/* waiters.c - see waiters.h. Jobs are looked up in a table of chains by id; a job that ended is looked up once, however
 * often the queue tells it (queue_ended repeats what ended lately). */
#include "serve/waiters.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"

#define SLOTS 4096 /* of the table: a power of two */
#define TICK_S 0.25
#define BATCH 1024 /* at first; more than end within what queue_ended repeats */
#define GATHER_NS 5000000L /* changes come in crowds: one look for all of them */
#define CHECK_S 5.0 /* how often jobs that somebody waits for are asked after, should a change have been missed */
#define SEEN_S 10.0 /* how long an id is remembered as told; longer than queue_ended repeats */

struct wait_job {
    struct waiter *of;
    struct wait_job *next; /* of the chain */
    int64_t id;
    int state;
    char *text;
};

struct waiter {
    struct waiters *w;
    struct wait_job *jobs;
    int n, left;
    bool woken;
    double until;
    void (*wake)(void *);
    void *arg;
    struct waiter *before, *after;
};

struct id_set { /* of ids that were told: two generations, so that old ones go */
    int64_t *id; /* open addressing */
    size_t n, cap;
};

struct waiters {
    struct queue *q;
    waiters_listener *heard;
    waiters_tick *tick;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    struct wait_job *slot[SLOTS];
    struct waiter *first;
    bool stop;
    int64_t *ids; /* room for 'batch' that ended */
    int batch;
    double cursor, ticked, checked, turned;
    struct id_set seen[2];
};

static struct wait_job **waiters_chain(struct waiters *w, int64_t id)
{
    return &w->slot[(uint64_t)id * 0x9e3779b97f4a7c15ull >> 52];
}

/* Calls the waiter's function, the first time only. */
static void waiters_wake_once(struct waiter *r)
{
    if (!r->woken) {
        r->woken = true;
        r->wake(r->arg);
    }
}

/* Under the lock. */
static void waiters_job_ended(struct waiters *w, int64_t id, int state, const char *text)
{
    for (struct wait_job *j = *waiters_chain(w, id); j; j = j->next)
        if (j->id == id && j->state < QUEUE_DONE) {
            j->state = state;
            j->text = xstrdup(text);
            if (--j->of->left == 0)
                waiters_wake_once(j->of);
        }
}

/* Where an id is, or where it would go. 0 is no id. */
static int64_t *waiters_set_find(const struct id_set *s, int64_t id)
{
    size_t i = (uint64_t)id * 0x9e3779b97f4a7c15ull >> 32;

    while (s->id[i % s->cap] && s->id[i % s->cap] != id)
        i++;
    return &s->id[i % s->cap];
}

/* Doubles the set and enters its ids anew. */
static void waiters_set_grow(struct id_set *s)
{
    struct id_set old = *s;

    s->cap = old.cap ? 2 * old.cap : 1024;
    s->id = xcalloc(s->cap, sizeof *s->id);
    for (size_t i = 0; i < old.cap; i++)
        if (old.id[i])
            *waiters_set_find(s, old.id[i]) = old.id[i];
    free(old.id);
}

static bool waiters_set_has(const struct id_set *s, int64_t id)
{
    return s->n && *waiters_set_find(s, id) == id;
}

/* Enters an id that is not in the set. */
static void waiters_set_add(struct id_set *s, int64_t id)
{
    if (2 * (s->n + 1) > s->cap)
        waiters_set_grow(s);
    *waiters_set_find(s, id) = id;
    s->n++;
}

/* Told before? Remembers it. */
static bool waiters_told(struct waiters *w, int64_t id)
{
    bool before;

    if (waiters_set_has(&w->seen[0], id))
        return true;
    before = waiters_set_has(&w->seen[1], id);
    waiters_set_add(&w->seen[0], id); /* what is still asked about stays known */
    return before;
}

/* Forgets ids that ended long ago, once each SEEN_S. */
static void waiters_forget_old_ids(struct waiters *w)
{
    if (now_s() < w->turned + SEEN_S)
        return;
    w->turned = now_s();
    free(w->seen[1].id);
    w->seen[1] = w->seen[0];
    w->seen[0] = (struct id_set){0};
}

/* Takes a job's result, if it has ended, to whoever waits for it, and to the listener if 'aloud'. */
static void waiters_tell(struct waiters *w, int64_t id, bool aloud)
{
    char *text = NULL;
    struct err ignored = ERR_INIT;
    int state = queue_result(w->q, id, &text, &ignored);

    if (state >= QUEUE_DONE) {
        if (aloud)
            w->heard(id, state, text, w->ctx);
        pthread_mutex_lock(&w->lock);
        waiters_job_ended(w, id, state, text);
        pthread_mutex_unlock(&w->lock);
    }
    free(text);
}

/* Takes the jobs that have ended since the cursor and wakes who waits for them. */
static void waiters_take_ended(struct waiters *w)
{
    struct err e = ERR_INIT;
    int n;

    do {
        double from = w->cursor;
        n = queue_ended(w->q, &w->cursor, w->ids, w->batch, &e);
        for (int i = 0; i < n; i++)
            if (!waiters_told(w, w->ids[i]))
                waiters_tell(w, w->ids[i], true);
        if (n < w->batch)
            break;
        if (w->cursor <= from) /* so many ended at once that the next look would show the same ones */
            w->ids = xrealloc(w->ids, (size_t)(w->batch *= 2) * sizeof *w->ids);
    } while (!w->stop);
    if (n < 0)
        log_warn("%s", e.msg);
}

/* Wakes all whose time is over. */
static void waiters_wake_the_late(struct waiters *w)
{
    double now = now_s();

    pthread_mutex_lock(&w->lock);
    for (struct waiter *r = w->first; r; r = r->after)
        if (now > r->until)
            waiters_wake_once(r);
    pthread_mutex_unlock(&w->lock);
}

/* Ids of all jobs that are waited for; owned. */
static int64_t *waiters_waited_for(struct waiters *w, int *ret_n)
{
    int64_t *ids = NULL;
    int n = 0;

    pthread_mutex_lock(&w->lock);
    for (struct waiter *r = w->first; r; r = r->after)
        for (int i = 0; i < r->n; i++)
            if (r->jobs[i].state < QUEUE_DONE) {
                if (n % 256 == 0)
                    ids = xrealloc(ids, (size_t)(n + 256) * sizeof *ids);
                ids[n++] = r->jobs[i].id;
            }
    pthread_mutex_unlock(&w->lock);
    *ret_n = n;
    return ids;
}

/* Asks the queue about all waited jobs, in case a notice was lost. */
static void waiters_check_all(struct waiters *w)
{
    int n;
    int64_t *ids;

    if (now_s() < w->checked + CHECK_S)
        return;
    w->checked = now_s();
    ids = waiters_waited_for(w, &n);
    for (int i = 0; i < n && !w->stop; i++)
        waiters_tell(w, ids[i], false);
    free(ids);
}

/* The thread that follows the queue until stopped. */
static void *waiters_follow(void *arg)
{
    struct waiters *w = arg;

    while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
        queue_wait_change(w->q, TICK_S);
        nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
        waiters_take_ended(w);
        waiters_wake_the_late(w);
        waiters_forget_old_ids(w);
        waiters_check_all(w);
        if (now_s() > w->ticked + TICK_S) {
            w->ticked = now_s();
            w->tick(w->q, w->ctx);
        }
    }
    return NULL;
}

/* Opens the queue and starts the thread; *ret is stopped by waiters_stop. */
int waiters_start(const char *queue_url, waiters_listener *heard, waiters_tick *tick, void *ctx, struct waiters **ret,
                  struct err *e)
{
    struct waiters *w = xcalloc(1, sizeof *w);
    double now = now_s();

    *w = (struct waiters){.heard = heard, .tick = tick, .ctx = ctx, .checked = now, .turned = now, .batch = BATCH};
    w->ids = xcalloc(BATCH, sizeof *w->ids);
    pthread_mutex_init(&w->lock, NULL);
    if (queue_open(queue_url, &w->q, e) < 0 || queue_ended_now(w->q, &w->cursor, e) < 0) {
        queue_close(w->q); /* what ended before this server began is nobody's news */
        free(w->ids);
        free(w);
        return -1;
    }
    if (pthread_create(&w->thread, NULL, waiters_follow, w) != 0) {
        queue_close(w->q);
        free(w->ids);
        free(w);
        return err_set(e, ERR_ENV, "cannot start a thread");
    }
    *ret = w;
    return 0;
}

void waiters_stop(struct waiters *w)
{
    if (!w)
        return;
    __atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
    pthread_join(w->thread, NULL);
    queue_close(w->q);
    free(w->seen[0].id);
    free(w->seen[1].id);
    free(w->ids);
    free(w);
}

/* ---- waiters ---- */

struct waiter *waiter_new(struct waiters *w, const int64_t *ids, int n, double wait_s, void (*wake)(void *), void *arg)
{
    struct waiter *r = xcalloc(1, sizeof *r);

    *r = (struct waiter){.w = w, .n = n, .left = n, .until = now_s() + wait_s, .wake = wake, .arg = arg};
    r->jobs = xcalloc((size_t)n, sizeof *r->jobs);
    pthread_mutex_lock(&w->lock);
    r->after = w->first;
    if (w->first)
        w->first->before = r;
    w->first = r;
    for (int i = 0; i < n; i++) {
        struct wait_job **c = waiters_chain(w, ids[i]);
        r->jobs[i] = (struct wait_job){.of = r, .id = ids[i], .next = *c};
        *c = &r->jobs[i];
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

void waiter_seed(struct waiter *r, int i, int state, const char *text)
{
    pthread_mutex_lock(&r->w->lock);
    if (r->jobs[i].state < QUEUE_DONE) {
        r->jobs[i].state = state;
        r->jobs[i].text = xstrdup(text);
        if (--r->left == 0)
            waiters_wake_once(r);
    }
    pthread_mutex_unlock(&r->w->lock);
}

int waiter_result(struct waiter *r, int i, const char **ret_text)
{
    int state;

    pthread_mutex_lock(&r->w->lock);
    state = r->jobs[i].state;
    *ret_text = r->jobs[i].text;
    pthread_mutex_unlock(&r->w->lock);
    return state;
}

int waiter_count(const struct waiter *r)
{
    return r->n;
}

int64_t waiter_id(const struct waiter *r, int i)
{
    return r->jobs[i].id;
}

/* Takes the job out of its chain. */
static void waiters_unlink_job(struct waiters *w, struct wait_job *j)
{
    struct wait_job **at = waiters_chain(w, j->id);

    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
}

void waiter_free(struct waiter *r)
{
    struct waiters *w = r->w;

    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < r->n; i++) {
        waiters_unlink_job(w, &r->jobs[i]);
        free(r->jobs[i].text);
    }
    *(r->before ? &r->before->after : &w->first) = r->after;
    if (r->after)
        r->after->before = r->before;
    pthread_mutex_unlock(&w->lock);
    free(r->jobs);
    free(r);
}
