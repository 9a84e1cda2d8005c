/* share.c - see share.h. */
#include "eval/schedule/share.h"

void share_init(struct share_clock *c)
{
    *c = (struct share_clock){.running = 0};
    pthread_mutex_init(&c->lock, NULL);
}

void share_free(struct share_clock *c)
{
    pthread_mutex_destroy(&c->lock);
}

/* Under the lock. */
static void advance(struct share_clock *c, double now)
{
    if (c->running > 0 && now > c->at)
        c->v += (now - c->at) / c->running;
    if (now > c->at)
        c->at = now;
}

static double change(struct share_clock *c, double now, int by)
{
    double v;

    pthread_mutex_lock(&c->lock);
    advance(c, now);
    c->running += by;
    v = c->v;
    pthread_mutex_unlock(&c->lock);
    return v;
}

double share_begin(struct share_clock *c, double now)
{
    return change(c, now, 1);
}

double share_end(struct share_clock *c, double now)
{
    return change(c, now, -1);
}

double share_time(struct share_clock *c, double now)
{
    return change(c, now, 0);
}

double share_lasts(struct share_clock *c, double left)
{
    double s;

    pthread_mutex_lock(&c->lock);
    s = left * (c->running > 1 ? c->running : 1);
    pthread_mutex_unlock(&c->lock);
    return s;
}
