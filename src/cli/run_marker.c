/* run_marker.c - what is done and how long it took; see run.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/run.h"

#define TICK_S 5

static char *run_marker_path(const char *out, const char *name)
{
    return xasprintf("%s/stages/%s.json", out, name);
}

int run_marker_read(const char *out, const char *name, struct run_marker *ret, struct err *e)
{
    char *path = run_marker_path(out, name);
    bool there = file_exists(path);
    json_t *v = there ? json_read(path, NULL) : NULL;
    int rc = there && !*json_str(v, "key", "")
                 ? err_set(e, ERR_ENV, "'%s' is damaged; remove it and give --anew, and its stage starts anew in an "
                                       "emptied folder", path)
                 : 0;

    *ret = (struct run_marker){.done = json_flag(v, "done", false), .seconds = json_f64(v, "seconds", 0)};
    snprintf(ret->key, sizeof ret->key, "%s", json_str(v, "key", ""));
    snprintf(ret->inputs, sizeof ret->inputs, "%s", json_str(v, "inputs", ""));
    snprintf(ret->result, sizeof ret->result, "%s", json_str(v, "result", ""));
    json_decref(v);
    free(path);
    return rc;
}

int run_marker_write(const char *out, const char *name, const struct run_marker *m, struct err *e)
{
    char *path = run_marker_path(out, name);
    json_t *v = json_pack("{s:s,s:s,s:b,s:f}", "key", m->key, "inputs", m->inputs, "done", (int)m->done,
                          "seconds", m->seconds);
    int rc;

    if (*m->result)
        json_object_set_new(v, "result", json_string(m->result));
    rc = json_write(path, v, e);

    json_decref(v);
    free(path);
    return rc;
}

struct ticker {
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool over;
    const char *out, *name;
    struct run_marker m;
    double start, before;
};

/* A thread that writes the stage's time into its marker, so that a kill loses little. */
static void *run_marker_tick(void *arg)
{
    struct ticker *t = arg;

    pthread_mutex_lock(&t->lock);
    while (!t->over) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += TICK_S;
        pthread_cond_clockwait(&t->end, &t->lock, CLOCK_MONOTONIC, &until);
        if (!t->over) {
            t->m.seconds = t->before + now_s() - t->start;
            run_marker_write(t->out, t->name, &t->m, NULL);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int run_timed(const char *out, const char *name, struct run_marker *m, int (*f)(void *ctx, struct err *e),
              void (*result)(const void *ctx, char ret[65]), void *ctx, struct err *e)
{
    struct ticker t = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER, .out = out, .name = name,
                       .m = *m, .start = now_s(), .before = m->seconds};
    pthread_t thread;
    bool threaded = pthread_create(&thread, NULL, run_marker_tick, &t) == 0;
    int rc = f(ctx, e);

    pthread_mutex_lock(&t.lock);
    t.over = true;
    pthread_cond_signal(&t.end);
    pthread_mutex_unlock(&t.lock);
    if (threaded)
        pthread_join(thread, NULL);
    m->seconds = t.before + now_s() - t.start;
    m->done = rc == 0;
    if (m->done) /* in one write: a marker that is done says what was made */
        result(ctx, m->result);
    if (run_marker_write(out, name, m, rc == 0 ? e : NULL) < 0)
        return -1;
    return rc;
}
