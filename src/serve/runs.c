/* runs.c - see runs.h. Lines are few and looked at in order; jobs are many: a ring of the latest, with chains by id. */
#include "serve/runs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "objective/reward.h"

#define LINES_MAX 1024 /* of all owners */
#define ASKED_MAX 65536 /* jobs that are remembered; a power of two, as the chains are */
#define NONE UINT32_MAX

struct line { /* a turn of a run */
    uint64_t serial;
    char *owner, run[RUNS_NAME_MAX + 1]; /* owner NULL: there are no tokens */
    int turn;
    uint64_t asked, judged, passed, unscored;
    double reward; /* the sum */
    struct line *after; /* an older one */
};

struct asked {
    int64_t id; /* 0: none */
    uint64_t line;
    bool ended;
    uint32_t next; /* of the chain */
};

struct runs {
    pthread_mutex_t lock;
    struct line *first;
    int n;
    uint64_t serial, n_asked;
    struct asked ring[ASKED_MAX];
    uint32_t chain[ASKED_MAX];
};

struct runs *runs_new(void)
{
    struct runs *r = xcalloc(1, sizeof *r);

    pthread_mutex_init(&r->lock, NULL);
    memset(r->chain, 0xff, sizeof r->chain);
    return r;
}

static void line_free(struct line *l)
{
    free(l->owner);
    free(l);
}

void runs_free(struct runs *r)
{
    if (!r)
        return;
    for (struct line *l = r->first, *after; l; l = after) {
        after = l->after;
        line_free(l);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static bool is_owner(const struct line *l, const char *owner)
{
    return owner ? l->owner && !strcmp(l->owner, owner) : !l->owner;
}

static int lines_of(const struct runs *r, const struct line *like)
{
    int n = 0;

    for (const struct line *l = r->first; l; l = l->after)
        n += is_owner(l, like->owner);
    return n;
}

/* The oldest line of whoever has most. */
static void forget_one(struct runs *r)
{
    struct line **at = NULL;
    const struct line *most = r->first;

    for (const struct line *l = r->first; l; l = l->after)
        if (!is_owner(l, most->owner) && lines_of(r, l) > lines_of(r, most))
            most = l;
    for (struct line **p = &r->first; *p; p = &(*p)->after)
        if (is_owner(*p, most->owner))
            at = p;
    most = *at;
    *at = most->after;
    line_free((struct line *)most);
    r->n--;
}

static struct line *line_of(struct runs *r, const char *owner, const char *run, int turn)
{
    struct line *l = r->first;

    while (l && (l->turn != turn || strcmp(l->run, run) || !is_owner(l, owner)))
        l = l->after;
    if (l)
        return l;
    if (r->n == LINES_MAX)
        forget_one(r);
    l = xcalloc(1, sizeof *l);
    *l = (struct line){.serial = ++r->serial, .turn = turn, .owner = owner ? xstrdup(owner) : NULL, .after = r->first};
    snprintf(l->run, sizeof l->run, "%s", run);
    r->n++;
    return r->first = l;
}

static uint32_t *chain_of(struct runs *r, int64_t id)
{
    return &r->chain[(uint64_t)id * 0x9e3779b97f4a7c15ull >> 48];
}

static void unlink_asked(struct runs *r, uint32_t i)
{
    uint32_t *at = chain_of(r, r->ring[i].id);

    while (*at != i)
        at = &r->ring[*at].next;
    *at = r->ring[i].next;
}

void runs_join(struct runs *r, const char *owner, const char *run, int turn, int64_t id)
{
    struct line *l;
    uint32_t i;

    pthread_mutex_lock(&r->lock);
    l = line_of(r, owner, run, turn);
    for (i = *chain_of(r, id); i != NONE; i = r->ring[i].next)
        if (r->ring[i].id == id && r->ring[i].line == l->serial)
            break;
    if (i == NONE) {
        i = (uint32_t)(r->n_asked++ % ASKED_MAX);
        if (r->ring[i].id)
            unlink_asked(r, i);
        r->ring[i] = (struct asked){.id = id, .line = l->serial, .next = *chain_of(r, id)};
        *chain_of(r, id) = i;
        l->asked++;
    }
    pthread_mutex_unlock(&r->lock);
}

static void count(struct line *l, const json_t *v)
{
    double reward;

    if (!v || !reward_of(v, REWARD_DEFAULT, &reward)) {
        l->unscored++;
        return;
    }
    l->judged++;
    l->passed += !strcmp(json_str(v, "status", ""), "passed");
    l->reward += reward;
}

void runs_ended(struct runs *r, int64_t id, const json_t *v)
{
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = *chain_of(r, id); i != NONE; i = r->ring[i].next) {
        struct line *l = r->first;
        if (r->ring[i].id != id || r->ring[i].ended)
            continue;
        r->ring[i].ended = true;
        while (l && l->serial != r->ring[i].line)
            l = l->after;
        if (l)
            count(l, v);
    }
    pthread_mutex_unlock(&r->lock);
}

json_t *runs_json(struct runs *r, const char *owner)
{
    json_t *all = json_array();

    pthread_mutex_lock(&r->lock);
    for (const struct line *l = r->first; l; l = l->after)
        if (!owner || is_owner(l, owner))
            json_array_append_new(
                all, json_pack("{s:s,s:s,s:i,s:I,s:I,s:I,s:I,s:o}", "run", l->run, "owner", l->owner ? l->owner : "",
                               "turn", l->turn, "asked", (json_int_t)l->asked, "judged", (json_int_t)l->judged,
                               "passed", (json_int_t)l->passed, "unscored", (json_int_t)l->unscored, "reward",
                               l->judged ? json_real(l->reward / (double)l->judged) : json_null()));
    pthread_mutex_unlock(&r->lock);
    return all;
}
