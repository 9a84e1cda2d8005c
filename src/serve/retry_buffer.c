/* retry_buffer.c - see retry_buffer.h. A member's verdict may come before it has joined (it was known): the route
 * tells it then. */
#include "serve/retry_buffer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "objective/bdr.h"
#include "objective/reward.h"

#define SETTING "retry-buffer"
#define GROUPS_MAX 4096               /* not complete; who has most of them, or of their bytes, loses its oldest */
#define BYTES_MAX ((size_t)256 << 20) /* of their programs */

#define CLOSED_MAX 4096               /* complete groups that are known again when their request comes again */

struct shelf { /* an owner's buffer */
    char *owner; /* NULL: everybody's */
    struct bdr b;
    int n_groups;
    size_t bytes; /* of their members' programs */
    struct shelf *after;
};

struct member {
    int64_t id;
    char key[65];
    bool ended, scored;
    char *response;
};

struct retry_buffer_group {
    struct shelf *shelf;
    char *name, *prompt_id;
    struct member *v;
    int n, size, failed, out; /* out: ended without a score, or passed */
    char *response, *feedback; /* of the first that failed */
    struct retry_buffer_group *after;
};

struct retry {
    pthread_mutex_t lock; /* of all, the connection too */
    struct shelf *shelves;
    struct rng rng;
    struct retry_buffer_group *first;
    int n_groups;
    size_t bytes;
    uint64_t closed[CLOSED_MAX]; /* digests of groups that were complete, the newest at (n_closed - 1) % CLOSED_MAX */
    size_t n_closed;
    struct queue *q;
};

struct retry *retry_new(void)
{
    struct retry *r = xcalloc(1, sizeof *r);
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    pthread_mutex_init(&r->lock, NULL);
    rng_seed(&r->rng, (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20, 0);
    return r;
}

static void retry_buffer_group_free(struct retry_buffer_group *g)
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
    for (struct retry_buffer_group *g = r->first, *after; g; g = after) {
        after = g->after;
        retry_buffer_group_free(g);
    }
    for (struct shelf *s = r->shelves, *after; s; s = after) {
        after = s->after;
        bdr_free(&s->b);
        free(s->owner);
        free(s);
    }
    queue_close(r->q);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int retry_open(struct retry *r, const char *queue_url, struct err *e)
{
    return queue_open(queue_url, &r->q, e);
}

static char *retry_buffer_setting_of(const char *owner)
{
    return owner ? xasprintf(SETTING ":%s", owner) : xstrdup(SETTING);
}

/* Loads an owner's shelf from the queue's settings. */
static int retry_buffer_load(struct retry *r, struct shelf *s, struct err *e)
{
    char *name = retry_buffer_setting_of(s->owner), *text = queue_setting(r->q, name, "", e);
    json_t *state = NULL;
    int rc = text ? 0 : -1;

    if (text && *text)
        rc = (state = json_parse(text, strlen(text), "retry buffer", e)) ? bdr_load(&s->b, state, e) : -1;
    json_decref(state);
    free(text);
    free(name);
    return rc;
}

/* Writes one owner's buffer as a setting of the queue. */
static int retry_buffer_save(struct retry *r, struct shelf *s, struct err *e)
{
    json_t *state = bdr_save(&s->b);
    char *text = json_text(state), *name = retry_buffer_setting_of(s->owner);
    int rc = queue_setting_set(r->q, name, text, e);

    free(name);
    free(text);
    json_decref(state);
    return rc;
}

/* An owner's buffer, from the queue at its first use. NULL: *e. */
static struct shelf *retry_buffer_shelf_of(struct retry *r, const char *owner, struct err *e)
{
    struct shelf *s = r->shelves;

    while (s && (owner ? !s->owner || strcmp(s->owner, owner) : s->owner != NULL))
        s = s->after;
    if (s)
        return s;
    s = xcalloc(1, sizeof *s);
    s->owner = owner ? xstrdup(owner) : NULL;
    bdr_init(&s->b, BDR_CAP);
    if (retry_buffer_load(r, s, e) < 0) {
        bdr_free(&s->b);
        free(s->owner);
        free(s);
        return NULL;
    }
    s->after = r->shelves;
    return r->shelves = s;
}

/* Takes the group out of the list. */
static void retry_buffer_drop(struct retry *r, struct retry_buffer_group *g)
{
    struct retry_buffer_group **at = &r->first;

    while (*at != g)
        at = &(*at)->after;
    *at = g->after;
    r->n_groups--;
    g->shelf->n_groups--;
    for (int i = 0; i < g->n; i++) {
        r->bytes -= strlen(g->v[i].response);
        g->shelf->bytes -= strlen(g->v[i].response);
    }
    retry_buffer_group_free(g);
}

/* The shelf's group of that name, made where it is new. */
static struct retry_buffer_group *retry_buffer_group_of(struct retry *r, struct shelf *s, const char *name, int size,
                                                        const char *prompt_id)
{
    struct retry_buffer_group *g;

    for (g = r->first; g; g = g->after)
        if (g->shelf == s && !strcmp(g->name, name))
            return g;
    g = xcalloc(1, sizeof *g);
    *g = (struct retry_buffer_group){
        .shelf = s, .name = xstrdup(name), .prompt_id = xstrdup(prompt_id), .size = size, .after = r->first};
    r->first = g;
    r->n_groups++;
    s->n_groups++;
    return g;
}

/* A request that was sent again, or two equal programs. Another id: it is asked for again. */
static void retry_buffer_same_member(struct retry_buffer_group *g, struct member *m, int64_t id)
{
    if (m->id != id && m->ended && !m->scored) {
        m->ended = false;
        g->out--;
    }
    m->id = id;
}

/* Adds an answer to its group; the same program counts once. */
static void retry_buffer_add_member(struct retry *r, struct retry_buffer_group *g, const char *key, int64_t id,
                                    const char *response)
{
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->v[i].key, key)) {
            retry_buffer_same_member(g, &g->v[i], id);
            return;
        }
    g->v = xrealloc(g->v, (size_t)(g->n + 1) * sizeof *g->v);
    g->v[g->n] = (struct member){.id = id, .response = xstrdup(response)};
    snprintf(g->v[g->n++].key, sizeof g->v->key, "%s", key);
    r->bytes += strlen(response);
    g->shelf->bytes += strlen(response);
}

/* Whoever has most of what is too much. */
static struct shelf *retry_buffer_fullest(struct retry *r)
{
    struct shelf *most = r->shelves;

    for (struct shelf *s = most; s; s = s->after)
        if (r->n_groups > GROUPS_MAX ? s->n_groups > most->n_groups : s->bytes > most->bytes)
            most = s;
    return most;
}

/* Forgets groups of the fullest shelf until the limits hold. */
static void retry_buffer_forget_oldest(struct retry *r)
{
    while (r->n_groups > GROUPS_MAX || r->bytes > BYTES_MAX) {
        struct shelf *s = retry_buffer_fullest(r);
        struct retry_buffer_group *last = NULL;
        for (struct retry_buffer_group *g = r->first; g; g = g->after)
            last = g->shelf == s ? g : last;
        retry_buffer_drop(r, last);
    }
}

void retry_join(struct retry *r, const char *owner, const char *group, int size, const char *prompt_id,
                const char *key, int64_t id, const char *response)
{
    struct err e = ERR_INIT;
    struct shelf *s;

    pthread_mutex_lock(&r->lock);
    if ((s = retry_buffer_shelf_of(r, owner, &e))) {
        retry_buffer_add_member(r, retry_buffer_group_of(r, s, group, size, prompt_id), key, id, response);
        retry_buffer_forget_oldest(r);
    } else {
        log_warn("%s", e.msg);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Owner, name and programs, in whatever order they came. */
static uint64_t retry_buffer_digest_of(const struct retry_buffer_group *g)
{
    const char *owner = g->shelf->owner ? g->shelf->owner : "";
    uint64_t h = hash64(g->name, strlen(g->name), hash64(owner, strlen(owner), 1)), programs = 0;

    for (int i = 0; i < g->n; i++)
        programs += hash64(g->v[i].key, strlen(g->v[i].key), h);
    return h ^ programs;
}

/* Notes that the group is complete. False where it was before: asking again is safe and adds nothing. */
static bool retry_buffer_closes(struct retry *r, const struct retry_buffer_group *g)
{
    uint64_t digest = retry_buffer_digest_of(g);

    for (size_t i = 0; i < r->n_closed && i < CLOSED_MAX; i++)
        if (r->closed[i] == digest)
            return false;
    r->closed[r->n_closed++ % CLOSED_MAX] = digest;
    return true;
}

/* Counts a member's end; the group is full when all have ended. */
static void retry_buffer_member_ended(struct retry *r, struct retry_buffer_group *g, struct member *m, const json_t *v)
{
    double reward;
    bool scored = reward_recorded(v, &reward);
    bool failed = scored && strcmp(json_str(v, "status", ""), "passed");

    m->ended = true;
    m->scored = scored;
    g->failed += failed;
    g->out += !failed;
    if (failed && !g->response) {
        g->response = xstrdup(m->response);
        g->feedback = xstrdup(json_str(v, "feedback", ""));
    }
    if (g->failed + g->out < g->n || g->n < g->size)
        return;
    if (g->out == 0 && retry_buffer_closes(r, g)) {
        struct err e = ERR_INIT;
        bdr_push(&g->shelf->b, g->prompt_id, g->response, g->feedback);
        if (retry_buffer_save(r, g->shelf, &e) < 0)
            log_warn("%s", e.msg);
    }
    retry_buffer_drop(r, g);
}

void retry_ended(struct retry *r, int64_t id, const json_t *v)
{
    pthread_mutex_lock(&r->lock);
    for (struct retry_buffer_group *g = r->first, *after; g; g = after) {
        after = g->after;
        for (int i = 0; i < g->n; i++)
            if (g->v[i].id == id && !g->v[i].ended) {
                retry_buffer_member_ended(r, g, &g->v[i], v);
                break;
            }
    }
    pthread_mutex_unlock(&r->lock);
}

json_t *retry_draw(struct retry *r, const char *owner, double probability, struct err *e)
{
    struct bdr_item it;
    json_t *ret = NULL;
    struct shelf *s;

    pthread_mutex_lock(&r->lock);
    if (!(s = retry_buffer_shelf_of(r, owner, e))) {
        ret = NULL;
    } else if (!bdr_draw(&s->b, probability, &r->rng, &it)) {
        ret = json_null();
    } else if (retry_buffer_save(r, s, e) < 0) {
        bdr_push(&s->b, it.prompt_id, it.response, it.feedback);
        bdr_item_free(&it);
    } else {
        ret = json_pack("{s:s,s:s,s:s}", "prompt_id", it.prompt_id, "response", it.response, "feedback", it.feedback);
        bdr_item_free(&it);
    }
    pthread_mutex_unlock(&r->lock);
    return ret;
}
