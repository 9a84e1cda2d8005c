/* reservation.c - memory of a device: see schedule.h. Who leaves or grows less lets the next ones in. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/schedule/schedule.h"
#include "exec/memory_plan.h"

struct note { /* what a task needs */
    uint64_t task;
    struct need need;
};

void schedule_init(struct schedule *s, uint64_t memory, int most)
{
    *s = (struct schedule){.memory = memory, .most = most};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
}

void schedule_free(struct schedule *s)
{
    free(s->notes);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
}

/* ---- what tasks need; under the lock ---- */

/* What is known of the task's memory; NULL: nothing. */
static struct note *reservation_note_of(struct schedule *s, uint64_t task)
{
    for (size_t i = 0; i < s->n_notes; i++)
        if (s->notes[i].task == task)
            return &s->notes[i];
    return NULL;
}

/* Of a task that nobody has seen: most are small, and a reference says how large it is before it makes anything. */
static struct need reservation_known(struct schedule *s, uint64_t task)
{
    const struct note *n = reservation_note_of(s, task);
    size_t guess = s->memory / 32;

    return (struct need){n && n->need.own ? n->need.own : guess, n && n->need.shared ? n->need.shared : guess};
}

static size_t reservation_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void reservation_learn(const struct reservation *c, const struct need *need)
{
    struct schedule *s = c->s;
    struct note *n;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (!(n = reservation_note_of(s, c->task))) {
        s->notes = xrealloc(s->notes, (s->n_notes + 1) * sizeof *n);
        n = &s->notes[s->n_notes++];
        *n = (struct note){.task = c->task};
    }
    n->need = (struct need){reservation_larger(n->need.own, need->own),
                            reservation_larger(n->need.shared, need->shared)};
    pthread_mutex_unlock(&s->lock);
}

struct need need_estimate(size_t state, size_t in, size_t out)
{
    const struct plan_sizes s = {.inputs = in, .state = state, .outputs = out};
    struct memory_plan p;

    memory_plan_make(&s, SIZE_MAX, &p);
    return (struct need){.own = SCHEDULE_CONTEXT + 2 * p.least,
                         .shared = p.judge + reservation_larger(p.reference, p.timing)};
}

/* ---- who is next; under the lock ---- */

/* What claim c adds for its task, if it is the first of those in (or 'who') that have it: the most that one of them
 * wants. */
static uint64_t reservation_shared_part(const struct schedule *s, const struct reservation *c,
                                        const struct reservation *who)
{
    bool before = true;
    uint64_t most = 0;

    for (const struct reservation *k = s->first; k; k = k->next) {
        before = before && k != c;
        if (k->task != c->task || (!k->in && k != who))
            continue;
        if (before)
            return 0;
        most = reservation_larger(most, k->need.shared);
    }
    return most;
}

/* Bytes of those that are in, and of c (NULL: of nobody else). */
static uint64_t reservation_sum_with(const struct schedule *s, const struct reservation *c)
{
    uint64_t sum = 0;

    for (const struct reservation *k = s->first; k; k = k->next)
        if (k->in || k == c)
            sum += k->need.own + reservation_shared_part(s, k, c);
    return sum;
}

/* Beside those that are in; one that needs more than there is, with nobody. */
static bool reservation_fits(const struct schedule *s, const struct reservation *c)
{
    int others = 0;
    bool all = c->all;

    for (const struct reservation *k = s->first; k; k = k->next)
        if (k->in && k != c) {
            others++;
            all = all || k->all;
        }
    if (!others)
        return true;
    return !all && others < s->most && (!s->memory || reservation_sum_with(s, c) <= s->memory);
}

/* How many reservations of that caller are granted. */
static int reservation_in_of(const struct schedule *s, int64_t caller)
{
    int n = 0;

    for (const struct reservation *k = s->first; k; k = k->next)
        n += k->in && k->caller == caller;
    return n;
}

/* The first of those that wait whose caller has the fewest in. */
static struct reservation *reservation_next(const struct schedule *s)
{
    struct reservation *best = NULL;
    int fewest = 0, n;

    for (struct reservation *k = s->first; k; k = k->next)
        if (!k->in && ((n = reservation_in_of(s, k->caller)) < fewest || !best)) {
            best = k;
            fewest = n;
        }
    return best;
}

/* Grants waiting reservations in their order, as long as they fit. */
static void reservation_let_in(struct schedule *s)
{
    struct reservation *c;

    while ((c = reservation_next(s)) && reservation_fits(s, c)) {
        c->in = true;
        pthread_cond_signal(&c->turn);
    }
}

/* True where nobody else who is in judges the same task. */
static bool reservation_is_fresh(const struct schedule *s, const struct reservation *c)
{
    for (const struct reservation *k = s->first; k; k = k->next)
        if (k != c && k->in && k->task == c->task)
            return false;
    return true;
}

/* Under the lock. */
static void reservation_take_out(struct reservation *c)
{
    struct reservation **at = &c->s->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    reservation_let_in(c->s);
}

/* ---- coming and going ---- */

int reservation_enter(struct schedule *s, const char *task, int64_t caller, bool all, struct reservation *c,
                      bool *ret_fresh, struct err *e)
{
    struct reservation **end = &s->first;
    struct timespec t;

    *c = (struct reservation){.s = s, .task = hash64(task, strlen(task), 2), .caller = caller, .all = all};
    pthread_cond_init(&c->turn, NULL);
    pthread_mutex_lock(&s->lock);
    c->need = reservation_known(s, c->task);
    while (*end)
        end = &(*end)->next;
    *end = c;
    reservation_let_in(s);
    while (!c->in && !stop_requested()) {
        t = stop_look_again();
        pthread_cond_clockwait(&c->turn, &s->lock, CLOCK_MONOTONIC, &t);
    }
    *ret_fresh = reservation_is_fresh(s, c);
    all = c->in;
    if (!all)
        reservation_take_out(c);
    pthread_mutex_unlock(&s->lock);
    if (all)
        return 0;
    pthread_cond_destroy(&c->turn);
    *c = (struct reservation){0};
    return err_set(e, ERR_STOP, "interrupted");
}

bool reservation_grow(struct reservation *c)
{
    struct schedule *s = c->s;
    struct need before = c->need;
    bool fit;

    if (!s)
        return true;
    pthread_mutex_lock(&s->lock);
    c->need = reservation_known(s, c->task);
    if (!(fit = reservation_fits(s, c)))
        c->need = before;
    reservation_let_in(s);
    pthread_mutex_unlock(&s->lock);
    return fit;
}

bool reservation_learned(const struct reservation *c)
{
    struct need n;

    if (!c->s)
        return false;
    pthread_mutex_lock(&c->s->lock);
    n = reservation_known(c->s, c->task);
    pthread_mutex_unlock(&c->s->lock);
    return n.own > c->need.own || n.shared > c->need.shared;
}

size_t schedule_room(struct schedule *s)
{
    uint64_t sum;

    pthread_mutex_lock(&s->lock);
    sum = reservation_sum_with(s, NULL);
    pthread_mutex_unlock(&s->lock);
    return !s->memory ? SIZE_MAX : sum < s->memory ? (size_t)(s->memory - sum) : 0;
}

void reservation_leave(struct reservation *c)
{
    struct schedule *s = c->s;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    reservation_take_out(c);
    pthread_mutex_unlock(&s->lock);
    pthread_cond_destroy(&c->turn);
    *c = (struct reservation){0};
}
