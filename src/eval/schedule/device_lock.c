/* device_lock.c - the device itself, shared or alone: see schedule.h. */
#include "base/log.h"
#include "base/trace.h"
#include "eval/schedule/schedule.h"

static _Thread_local struct schedule *mine; /* what this thread has a share of */

/* Under the lock. Are those who want to share kept out, for the sake of one that wants to be alone? */
static bool device_lock_is_closed(const struct schedule *s)
{
    return s->want_alone && (!s->lasting || now_s() - s->alone_since > SCHEDULE_TURN_S);
}

static bool device_lock_may_share(const struct schedule *s)
{
    return !s->alone && (s->let_in || !device_lock_is_closed(s));
}

static bool device_lock_may_be_alone(const struct schedule *s)
{
    return !s->alone && !s->sharing && !s->let_in;
}

/* Under the lock. False on Ctrl-C. */
static bool device_lock_wait_until(struct schedule *s, bool (*may)(const struct schedule *s))
{
    struct timespec t;

    while (!may(s) && !stop_requested()) {
        t = stop_look_again();
        pthread_cond_clockwait(&s->change, &s->lock, CLOCK_MONOTONIC, &t);
    }
    return may(s);
}

/* Waits until the device may be shared. False: the wait was stopped. */
static bool device_lock_take_share(struct schedule *s)
{
    bool got;

    s->want_share++;
    got = device_lock_wait_until(s, device_lock_may_share);
    s->want_share--;
    if (s->let_in > s->want_share)
        s->let_in = s->want_share;
    s->sharing += got;
    if (got)
        s->batch_since = 0;
    return got;
}

/* Waits until nobody else uses the device and takes it. False: the wait was stopped. The caller holds s's lock. */
static bool device_lock_take_alone(struct schedule *s)
{
    bool got;

    if (s->want_alone++ == 0)
        s->alone_since = now_s();
    got = device_lock_wait_until(s, device_lock_may_be_alone);
    s->want_alone--;
    if (!got)
        return false;
    s->alone = true;
    s->alone_since = now_s(); /* of the next one */
    if (s->batch_since == 0)
        s->batch_since = s->alone_since;
    return true;
}

int device_lock_take(struct schedule *s, bool alone, struct device_lock *h, struct err *e)
{
    bool got;

    if (mine && (alone || mine != s))
        return err_set(e, ERR_BUG, "a thread that holds a device asks for %s", mine == s ? "it alone" : "another");
    *h = (struct device_lock){.s = s, .alone = alone, .nested = mine != NULL, .since = now_s()};
    if (h->nested)
        return 0;
    pthread_mutex_lock(&s->lock);
    got = alone ? device_lock_take_alone(s) : device_lock_take_share(s);
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    trace_span(h->since, "wait", "device");
    *h = got ? (struct device_lock){.s = s, .alone = alone, .since = now_s()} : (struct device_lock){0};
    mine = got ? s : NULL;
    return got ? 0 : err_set(e, ERR_STOP, "interrupted");
}

bool device_lock_wanted(struct schedule *s)
{
    bool wanted;

    pthread_mutex_lock(&s->lock);
    wanted = device_lock_is_closed(s);
    pthread_mutex_unlock(&s->lock);
    return wanted;
}

bool device_lock_lasts(struct device_lock *h, bool lasts)
{
    bool before = h->lasts;

    if (!h->s || h->nested || h->alone || lasts == before)
        return before;
    h->lasts = lasts;
    pthread_mutex_lock(&h->s->lock);
    h->s->lasting += lasts ? 1 : -1;
    pthread_cond_broadcast(&h->s->change);
    pthread_mutex_unlock(&h->s->lock);
    return before;
}

void device_lock_drop(struct device_lock *h)
{
    struct schedule *s = h->s;

    device_lock_lasts(h, false);
    if (s && !h->nested) {
        pthread_mutex_lock(&s->lock);
        if (h->alone && !s->want_alone)
            s->batch_since = 0;
        else if (h->alone && s->want_share && now_s() - s->batch_since > SCHEDULE_TURN_S)
            s->let_in = s->want_share;
        if (h->alone)
            s->alone = false;
        else
            s->sharing--;
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->lock);
        if (h->alone)
            trace_span(h->since, "hold", "alone");
        mine = NULL;
    }
    *h = (struct device_lock){0};
}

double share_time(struct schedule *s, double now, int more)
{
    double had;

    pthread_mutex_lock(&s->lock);
    if (s->running > 0 && now > s->at)
        s->had += (now - s->at) / s->running;
    if (now > s->at)
        s->at = now;
    s->running += more;
    had = s->had;
    pthread_mutex_unlock(&s->lock);
    return had;
}

double share_lasts(struct schedule *s, double left)
{
    int n;

    pthread_mutex_lock(&s->lock);
    n = s->running > 1 ? s->running : 1;
    pthread_mutex_unlock(&s->lock);
    return left * n;
}
