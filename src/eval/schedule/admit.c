/* admit.c - see admit.h. */
#include "eval/schedule/admit.h"

#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/log.h"
#include "proc/memory.h"

void admit_idle(const struct admit *a)
{
    if (room_wanted(a->device, a->budget))
        a->give_way(a->ctx);
}

static void make_room(void *ctx)
{
    admit_idle(ctx);
}

static struct room_need needed(const struct admit *a, const struct room_budget *b, const char *task,
                               const char *protocol, enum retry_step how)
{
    struct room_need seen = {0}, need;

    room_recall(task, protocol, &seen);
    need = room_expect(&seen, b, &a->most);
    if (how >= RETRY_ALONE)
        need.own = b->device;
    else if (how == RETRY_WIDE && need.own < b->device / 4)
        need.own = b->device / 4;
    if (how == RETRY_ALL)
        need.host_own = ROOM_ALL;
    return need;
}

/* The others look for who wants everything now and then (admit_idle). */
static void settle(const struct admit *a)
{
    struct timespec t = {.tv_sec = (time_t)a->settle_s};

    t.tv_nsec = (long)((a->settle_s - (double)t.tv_sec) * 1e9);
    a->give_way(a->ctx);
    nanosleep(&t, NULL);
}

int admit_enter(const struct admit *a, const char *task, const char *protocol, enum retry_step how, struct room *r,
                struct err *e)
{
    struct room_budget b = {a->budget, room_host_budget(memory_left(""))};
    struct room_need need = needed(a, &b, task, protocol, how);
    struct err why = ERR_INIT;

    if (room_take(a->device, &b, &need, hash64(task, strlen(task), 2), make_room, (void *)a, r, &why) == 0) {
        r->wide = how >= RETRY_WIDE;
        if (how >= RETRY_ALONE)
            settle(a);
    } else if (why.kind == ERR_STOP) {
        return err_set(e, ERR_STOP, "interrupted");
    } else {
        log_debug("room on the device: %s", why.msg);
    }
    return 0;
}

bool admit_learned(const char *task, const char *protocol, const struct room *r)
{
    struct room_need known = {0};

    return r->fd && room_recall(task, protocol, &known) && !room_covers(&r->need, &known);
}

void admit_leave(const struct admit *a, struct room *r)
{
    if (!r->fd)
        return;
    room_drop(r);
    admit_idle(a);
}
