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

struct runs_line { /* a turn of a run */
    uint64_t serial;
    char *owner, run[RUNS_NAME_MAX + 1]; /* owner NULL: there are no tokens */
    int turn;
    uint64_t asked, judged, passed, unscored;
    double reward; /* the sum */
    struct runs_line *after; /* an older one */
};

enum { BY_ID, BY_KEY, N_CHAINS };

struct runs_asked {
    int64_t id; /* 0: none */
    uint64_t line, key;
    bool ended, scored;
    uint32_t next[N_CHAINS];
};

struct runs {
    pthread_mutex_t lock;
    struct runs_line *first;
    int n;
    uint64_t serial, n_asked;
    struct runs_asked ring[ASKED_MAX];
    uint32_t chain[N_CHAINS][ASKED_MAX];
};

struct runs *runs_new(void)
{
    struct runs *r = xcalloc(1, sizeof *r);

    pthread_mutex_init(&r->lock, NULL);
    memset(r->chain, 0xff, sizeof r->chain);
    return r;
}

static void runs_line_free(struct runs_line *l)
{
    free(l->owner);
    free(l);
}

void runs_free(struct runs *r)
{
    if (!r)
        return;
    for (struct runs_line *l = r->first, *after; l; l = after) {
        after = l->after;
        runs_line_free(l);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static bool runs_is_owner(const struct runs_line *l, const char *owner)
{
    return owner ? l->owner && !strcmp(l->owner, owner) : !l->owner;
}

/* How many of the kept lines belong to the owner of 'like'. */
static int runs_lines_of(const struct runs *r, const struct runs_line *like)
{
    int n = 0;

    for (const struct runs_line *l = r->first; l; l = l->after)
        n += runs_is_owner(l, like->owner);
    return n;
}

/* The oldest line of whoever has most. */
static void runs_forget_one(struct runs *r)
{
    struct runs_line **at = NULL;
    const struct runs_line *most = r->first;

    for (const struct runs_line *l = r->first; l; l = l->after)
        if (!runs_is_owner(l, most->owner) && runs_lines_of(r, l) > runs_lines_of(r, most))
            most = l;
    for (struct runs_line **p = &r->first; *p; p = &(*p)->after)
        if (runs_is_owner(*p, most->owner))
            at = p;
    most = *at;
    *at = most->after;
    runs_line_free((struct runs_line *)most);
    r->n--;
}

/* The line of a run's turn, made where it is new; the oldest one goes where there are too many. */
static struct runs_line *runs_line_of(struct runs *r, const char *owner, const char *run, int turn)
{
    struct runs_line *l = r->first;

    while (l && (l->turn != turn || strcmp(l->run, run) || !runs_is_owner(l, owner)))
        l = l->after;
    if (l)
        return l;
    if (r->n == LINES_MAX)
        runs_forget_one(r);
    l = xcalloc(1, sizeof *l);
    *l = (struct runs_line){.serial = ++r->serial, .turn = turn, .owner = owner ? xstrdup(owner) : NULL,
                            .after = r->first};
    snprintf(l->run, sizeof l->run, "%s", run);
    r->n++;
    return r->first = l;
}

/* The head of a chain of lines, by id or by key. */
static uint32_t *runs_chain_of(struct runs *r, int by, uint64_t what)
{
    return &r->chain[by][what * 0x9e3779b97f4a7c15ull >> 48];
}

static uint32_t *runs_chain_with(struct runs *r, int by, const struct runs_asked *a)
{
    return runs_chain_of(r, by, by == BY_ID ? (uint64_t)a->id : a->key);
}

/* Puts ring entry i into its chain of that kind. */
static void runs_chain_in(struct runs *r, int by, uint32_t i)
{
    uint32_t *at = runs_chain_with(r, by, &r->ring[i]);

    r->ring[i].next[by] = *at;
    *at = i;
}

/* Takes ring entry i out of its chain. */
static void runs_chain_out(struct runs *r, int by, uint32_t i)
{
    uint32_t *at = runs_chain_with(r, by, &r->ring[i]);

    while (*at != i)
        at = &r->ring[*at].next[by];
    *at = r->ring[i].next[by];
}

/* Notes a job of a line; the oldest note goes. */
static void runs_add(struct runs *r, struct runs_line *l, uint64_t key, int64_t id)
{
    uint32_t i = (uint32_t)(r->n_asked++ % ASKED_MAX);

    for (int by = 0; r->ring[i].id && by < N_CHAINS; by++)
        runs_chain_out(r, by, i);
    r->ring[i] = (struct runs_asked){.id = id, .line = l->serial, .key = key};
    for (int by = 0; by < N_CHAINS; by++)
        runs_chain_in(r, by, i);
    l->asked++;
}

/* It is asked for again: what ended for our reasons has not ended. */
static void runs_again(struct runs *r, struct runs_line *l, uint32_t i, int64_t id)
{
    struct runs_asked *a = &r->ring[i];

    if (a->ended && !a->scored) {
        a->ended = false;
        l->unscored--;
    }
    runs_chain_out(r, BY_ID, i);
    a->id = id;
    runs_chain_in(r, BY_ID, i);
}

void runs_join(struct runs *r, const char *owner, const char *run, int turn, const char *key, int64_t id)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    struct runs_line *l;
    uint32_t i;

    for (const char *c = key; *c; c++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    pthread_mutex_lock(&r->lock);
    l = runs_line_of(r, owner, run, turn);
    for (i = *runs_chain_of(r, BY_KEY, hash); i != NONE; i = r->ring[i].next[BY_KEY])
        if (r->ring[i].key == hash && r->ring[i].line == l->serial)
            break;
    if (i == NONE)
        runs_add(r, l, hash, id);
    else if (r->ring[i].id != id)
        runs_again(r, l, i, id);
    pthread_mutex_unlock(&r->lock);
}

/* Has it a score? */
static bool runs_count(struct runs_line *l, const json_t *v)
{
    double reward;

    if (!reward_recorded(v, &reward)) {
        l->unscored++;
        return false;
    }
    l->judged++;
    l->passed += !strcmp(json_str(v, "status", ""), "passed");
    l->reward += reward;
    return true;
}

void runs_ended(struct runs *r, int64_t id, const json_t *v)
{
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = *runs_chain_of(r, BY_ID, (uint64_t)id); i != NONE; i = r->ring[i].next[BY_ID]) {
        struct runs_line *l = r->first;
        if (r->ring[i].id != id || r->ring[i].ended)
            continue;
        r->ring[i].ended = true;
        while (l && l->serial != r->ring[i].line)
            l = l->after;
        r->ring[i].scored = l && runs_count(l, v);
    }
    pthread_mutex_unlock(&r->lock);
}

json_t *runs_json(struct runs *r, const char *owner)
{
    json_t *all = json_array();

    pthread_mutex_lock(&r->lock);
    for (const struct runs_line *l = r->first; l; l = l->after)
        if (!owner || runs_is_owner(l, owner))
            json_array_append_new(
                all, json_pack("{s:s,s:s,s:i,s:I,s:I,s:I,s:I,s:o}", "run", l->run, "owner", l->owner ? l->owner : "",
                               "turn", l->turn, "asked", (json_int_t)l->asked, "judged", (json_int_t)l->judged,
                               "passed", (json_int_t)l->passed, "unscored", (json_int_t)l->unscored, "reward",
                               l->judged ? json_real(l->reward / (double)l->judged) : json_null()));
    pthread_mutex_unlock(&r->lock);
    return all;
}
