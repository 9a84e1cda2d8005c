/* spares.c - see spares.h. */
#include "eval/server/spares.h"

#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "eval/server/judge_server.h"
#include "proc/frame.h"

#define CLEAN_S 10.0

void spares_end(struct child *child, const char *role)
{
    struct child_end end = {0};

    child_kill(child);
    if (child_wait(child, now_s() + 10, &end, NULL) == 0) {
        if (end.output.n)
            log_debug("%s printed: %.2000s", role, end.output.p);
        buf_free(&end.output);
    }
    child_free(child);
}

/* Under the lock: the most recent one of that kind; its place is closed. */
static struct child *spares_pick(struct spares *s, const struct server_child *c)
{
    for (size_t i = s->n; i-- > 0;) {
        struct child *child = s->each[i].child;

        if (strcmp(s->each[i].role, c->role) || s->each[i].published != c->published)
            continue;
        s->n--;
        memmove(&s->each[i], &s->each[i + 1], (s->n - i) * sizeof *s->each);
        return child;
    }
    return NULL;
}

/* Killed, or lost with its fork server? */
static bool spares_ended(struct child *child)
{
    struct child_end end = {0};

    if (!forkserver_alive(child->fs))
        return true;
    if (child_wait(child, now_s(), &end, NULL) < 0)
        return false;
    buf_free(&end.output);
    return true;
}

bool spares_take(struct judge_kept *k, const struct server_child *c, struct child **ret)
{
    struct child *child;

    do {
        pthread_mutex_lock(&k->lock);
        child = spares_pick(&k->spares, c);
        pthread_mutex_unlock(&k->lock);
        if (child && !spares_ended(child))
            return *ret = child, true;
        child_free(child);
    } while (child);
    return false;
}

/* Its answer to "clean". */
static bool spares_is_clean(struct child *child, const char *role)
{
    struct err e = ERR_INIT;
    struct rpc r = {.fd = child->fd, .who = role, .deadline = now_s() + CLEAN_S};
    const char *left;
    struct frame f;
    bool clean;

    if (rpc(&r, json_pack("{s:s}", "op", "clean"), &f, NULL, &e) < 0)
        return false;
    left = json_str(f.head, "left", NULL);
    clean = json_flag(f.head, "ok", false) && !left;
    if (!clean)
        log_debug("%s is not used again: %s", role, left ? left : json_str(f.head, "message", "?"));
    frame_free(&f);
    return clean;
}

void spares_give(struct judge_kept *k, const struct server_child *c, struct child *child)
{
    bool clean = !stop_requested() && forkserver_alive(child->fs) && spares_is_clean(child, c->role);
    struct spare out = {.child = clean ? NULL : child, .role = c->role};

    pthread_mutex_lock(&k->lock);
    if (clean && k->spares.n == SPARES) {
        out = k->spares.each[0];
        memmove(k->spares.each, k->spares.each + 1, --k->spares.n * sizeof *k->spares.each);
    }
    if (clean)
        k->spares.each[k->spares.n++] = (struct spare){child, c->role, c->published};
    pthread_mutex_unlock(&k->lock);
    if (out.child)
        spares_end(out.child, out.role);
}

void spares_fit(struct judge_kept *k, size_t most)
{
    struct spare out;
    bool any;

    do {
        pthread_mutex_lock(&k->lock);
        any = k->spares.n > most;
        if (any) {
            out = k->spares.each[0];
            memmove(k->spares.each, k->spares.each + 1, --k->spares.n * sizeof *k->spares.each);
        }
        pthread_mutex_unlock(&k->lock);
        if (any)
            spares_end(out.child, out.role);
    } while (any);
}

size_t spares_count(struct judge_kept *k)
{
    size_t n;

    pthread_mutex_lock(&k->lock);
    n = k->spares.n;
    pthread_mutex_unlock(&k->lock);
    return n;
}
