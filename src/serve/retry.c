/* retry.c - see retry.h. A member's verdict may come before it has joined (it was known): the route tells it then. */
#include "serve/retry.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "objective/bdr.h"
#include "objective/reward.h"

#define SETTING "retry-buffer"
#define GROUPS_MAX 4096 /* not complete; the oldest is forgotten */

struct member {
    int64_t id;
    bool ended;
    char *response;
};

struct group {
    char *name, *prompt_id;
    struct member *v;
    int n, size, failed, out; /* out: ended without a score, or passed */
    char *response, *feedback; /* of the first that failed */
    struct group *after;
};

struct retry {
    pthread_mutex_t lock;
    struct bdr b;
    struct rng rng;
    struct group *first;
    int n_groups;
    struct queue *q; /* the waiters' thread saves through it */
};

struct retry *retry_new(void)
{
    struct retry *r = xcalloc(1, sizeof *r);
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    pthread_mutex_init(&r->lock, NULL);
    bdr_init(&r->b, BDR_CAP);
    rng_seed(&r->rng, (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20, 0);
    return r;
}

static void group_free(struct group *g)
{
    for (int i = 0; i < g->n; i++)
        free(g->v[i].response);
    free(g->v);
    free(g->name);
    free(g->prompt_id);
    free(g->response);
    free(g->feedback);
    free(g);
}

void retry_free(struct retry *r)
{
    if (!r)
        return;
    for (struct group *g = r->first, *after; g; g = after) {
        after = g->after;
        group_free(g);
    }
    bdr_free(&r->b);
    queue_close(r->q);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int retry_load(struct retry *r, const char *queue_url, struct err *e)
{
    json_t *state = NULL;
    char *text;
    int rc = 0;

    if (queue_open(queue_url, &r->q, e) < 0 || !(text = queue_setting(r->q, SETTING, "", e)))
        return -1;
    if (*text && (!(state = json_parse(text, strlen(text), "retry buffer", e)) || bdr_load(&r->b, state, e) < 0))
        rc = -1;
    json_decref(state);
    free(text);
    return rc;
}

static int save(struct retry *r, struct queue *q, struct err *e)
{
    json_t *state = bdr_save(&r->b);
    char *text = json_text(state);
    int rc = queue_setting_set(q, SETTING, text, e);

    free(text);
    json_decref(state);
    return rc;
}

/* Takes the group out of the list. */
static void drop(struct retry *r, struct group *g)
{
    struct group **at = &r->first;

    while (*at != g)
        at = &(*at)->after;
    *at = g->after;
    r->n_groups--;
    group_free(g);
}

static struct group *group_of(struct retry *r, const char *name, int size, const char *prompt_id)
{
    struct group *g, *last = NULL;

    for (g = r->first; g; last = g, g = g->after)
        if (!strcmp(g->name, name))
            return g;
    if (r->n_groups == GROUPS_MAX)
        drop(r, last);
    g = xcalloc(1, sizeof *g);
    *g = (struct group){.name = xstrdup(name), .prompt_id = xstrdup(prompt_id), .size = size, .after = r->first};
    r->first = g;
    r->n_groups++;
    return g;
}

void retry_join(struct retry *r, const char *group, int size, const char *prompt_id, int64_t id, const char *response)
{
    struct group *g;

    pthread_mutex_lock(&r->lock);
    g = group_of(r, group, size, prompt_id);
    for (int i = 0; i < g->n; i++)
        if (g->v[i].id == id) { /* a request that was sent again, or two equal programs */
            pthread_mutex_unlock(&r->lock);
            return;
        }
    g->v = xrealloc(g->v, (size_t)(g->n + 1) * sizeof *g->v);
    g->v[g->n++] = (struct member){.id = id, .response = xstrdup(response)};
    pthread_mutex_unlock(&r->lock);
}

/* Counts a member's end; the group is full when all have ended. */
static void member_ended(struct retry *r, struct group *g, struct member *m, const json_t *v)
{
    double score;
    bool scored = v && reward_of(v, REWARD_DEFAULT, &score);
    bool failed = scored && strcmp(json_str(v, "status", ""), "passed");

    m->ended = true;
    g->failed += failed;
    g->out += !failed;
    if (failed && !g->response) {
        g->response = xstrdup(m->response);
        g->feedback = xstrdup(json_str(v, "feedback", ""));
    }
    if (g->failed + g->out < g->n || g->n < g->size)
        return;
    if (g->out == 0) {
        struct err e = ERR_INIT;
        bdr_push(&r->b, g->prompt_id, g->response, g->feedback);
        if (save(r, r->q, &e) < 0)
            log_warn("%s", e.msg);
    }
    drop(r, g);
}

void retry_ended(struct retry *r, int64_t id, const json_t *v)
{
    pthread_mutex_lock(&r->lock);
    for (struct group *g = r->first, *after; g; g = after) {
        after = g->after;
        for (int i = 0; i < g->n; i++)
            if (g->v[i].id == id && !g->v[i].ended) {
                member_ended(r, g, &g->v[i], v);
                break;
            }
    }
    pthread_mutex_unlock(&r->lock);
}

json_t *retry_draw(struct retry *r, struct queue *q, double probability, struct err *e)
{
    struct bdr_item it;
    json_t *ret = NULL;

    pthread_mutex_lock(&r->lock);
    if (!bdr_draw(&r->b, probability, &r->rng, &it)) {
        ret = json_null();
    } else if (save(r, q, e) < 0) {
        bdr_push(&r->b, it.prompt_id, it.response, it.feedback);
        bdr_item_free(&it);
    } else {
        ret = json_pack("{s:s,s:s,s:s}", "prompt_id", it.prompt_id, "response", it.response, "feedback", it.feedback);
        bdr_item_free(&it);
    }
    pthread_mutex_unlock(&r->lock);
    return ret;
}
