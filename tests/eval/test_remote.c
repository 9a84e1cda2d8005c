/* test_remote.c - builds that a queue's worker makes: an answer that lay in the queue before anybody asked is of use,
 * or is asked for once more; what is missing is never the program's fault. The builder is this test's. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "eval/build/build_remote.h"
#include "queue/queue.h"

#define LIBRARY "a library"

static struct {
    char *dir, *queue, *artefacts;
    struct build_remote *remote;
    pthread_t thread;
    atomic_bool stop, useless; /* useless: the builder's own answers name a file that is nowhere */
    atomic_int built;
    pthread_mutex_t lock;
    char key[80], *payload; /* of the last build job */
} t = {.lock = PTHREAD_MUTEX_INITIALIZER};

static json_t *library(const char *bytes, bool there)
{
    char sha[65], *text = base64_text(bytes, strlen(bytes));
    json_t *file;

    sha256_hex(bytes, strlen(bytes), sha);
    file = json_pack("{s:s,s:i}", "sha256", sha, "size", (int)strlen(bytes));
    if (there)
        json_object_set_new(file, "base64", json_string(text));
    free(text);
    return file;
}

static char *answer(const char *toolchain, bool there)
{
    json_t *v = json_pack("{s:s,s:{s:b,s:i,s:s},s:{s:o}}", "toolchain", toolchain, "build", "ok", 1, "ms", 1, "log", "",
                          "files", "module.so", library(LIBRARY, there));
    char *text = json_text(v);

    json_decref(v);
    return text;
}

static char *build_one(const struct queue_job *j)
{
    pthread_mutex_lock(&t.lock);
    snprintf(t.key, sizeof t.key, "%s", j->key);
    free(t.payload);
    t.payload = xstrdup(j->payload);
    pthread_mutex_unlock(&t.lock);
    atomic_fetch_add(&t.built, 1);
    return answer("ours", !atomic_load(&t.useless));
}

static void *builder(void *arg)
{
    struct err e = ERR_INIT;
    struct queue *q;
    struct queue_job j;

    if (queue_open(t.queue, &q, &e) < 0)
        return NULL;
    while (!atomic_load(&t.stop)) {
        char *text;
        if (queue_claim(q, "build:sim", "builder", 30, 0.05, &j, &e) != 1)
            continue;
        text = strstr(j.payload, "load_inline") ? build_one(&j) : xstrdup("{\"toolchain\":\"ours\"}");
        queue_finish(q, &j, text, &e);
        free(text);
        queue_job_free(&j);
    }
    queue_close(q);
    return arg;
}

static int start(void **state)
{
    struct err e = ERR_INIT;

    t.dir = dir_temp("test-remote", NULL);
    t.queue = path_join(t.dir, "q.db");
    t.artefacts = path_join(t.dir, "artefacts");
    setenv("MUSACODER_CACHE_DIR", t.dir, 1);
    return build_remote_open(t.queue, t.artefacts, &t.remote, &e) < 0 || pthread_create(&t.thread, NULL, builder, NULL);
}

static int stop(void **state)
{
    atomic_store(&t.stop, true);
    pthread_join(t.thread, NULL);
    build_remote_close(t.remote);
    dir_remove(t.dir, NULL);
    free(t.payload);
    free(t.artefacts);
    free(t.queue);
    free(t.dir);
    return 0;
}

/* 1: a library with these bytes, 0: no program, -1: nobody's verdict, with the reason. */
static int build(const char *source, bool no_cache, struct err *e)
{
    struct build_opts o = {.target = "sim", .timeout_s = 60, .no_cache = no_cache};
    json_t *request = json_pack("{s:s,s:s}", "kind", "load_inline", "cuda_sources", source);
    struct build_result r;
    int rc = build_run(request, &o, &r, e);
    struct buf got;

    json_decref(request);
    if (rc < 0)
        return -1;
    rc = r.ok;
    buf_init(&got, 1 << 20);
    if (rc) {
        assert_int_equal(file_read(r.so, &got, NULL), 0);
        assert_int_equal(got.n, strlen(LIBRARY));
        assert_memory_equal(got.p, LIBRARY, got.n);
    }
    buf_free(&got);
    build_result_free(&r);
    return rc;
}

/* The last build's job again, as one that ended long ago and that nobody read: with this answer, NULL: nobody could. */
static void leave_row(const char *text)
{
    struct err e = ERR_INIT;
    struct queue *q;
    struct queue_job j;
    struct queue_item it = {.key = t.key, .payload = t.payload, .lane = "of the past", .owner = "build", .attempts = 1};
    int64_t id;

    assert_int_equal(queue_open(t.queue, &q, &e), 0);
    assert_int_equal(queue_put(q, &it, &id, &e), 1);
    assert_int_equal(queue_claim(q, "of the past", "w", 30, 0, &j, &e), 1);
    assert_int_equal(text ? queue_finish(q, &j, text, &e) : queue_fail(q, &j, "it was killed", &e) + 1, 1);
    queue_job_free(&j);
    queue_close(q);
}

static void leave_answer(const char *toolchain, bool there)
{
    char *text = answer(toolchain, there);

    leave_row(text);
    free(text);
}

static void an_old_answer_serves(void **state)
{
    struct err e = ERR_INIT;
    int built;

    assert_int_equal(build("one", false, &e), 1);
    assert_int_equal(build("one", false, &e), 1); /* from the cache of this machine */
    built = atomic_load(&t.built);
    assert_int_equal(built, 1);
    leave_answer("ours", true);
    assert_int_equal(build("one", true, &e), 1);
    assert_int_equal(atomic_load(&t.built), built);
}

static void an_old_answer_without_its_file_is_asked_for_again(void **state)
{
    struct err e = ERR_INIT;
    int built;

    assert_int_equal(build("two", false, &e), 1);
    built = atomic_load(&t.built);
    leave_answer("ours", false);
    assert_int_equal(build("two", true, &e), 1);
    leave_answer("another's", true);
    assert_int_equal(build("two", true, &e), 1);
    leave_row(NULL);
    assert_int_equal(build("two", true, &e), 1);
    leave_row("{\"toolchain\":\"ours\"}");
    assert_int_equal(build("two", true, &e), 1);
    leave_row("{\"toolchain\":\"ours\",\"build\":{\"ok\":false,\"timed_out\":true}}");
    assert_int_equal(build("two", true, &e), 1);
    assert_int_equal(atomic_load(&t.built), built + 5);
    leave_row("{\"toolchain\":\"ours\",\"build\":{\"ok\":false,\"error\":\"no such name\"}}");
    assert_int_equal(build("two", true, &e), 0); /* what is wrong with a program stays so */
    assert_int_equal(atomic_load(&t.built), built + 5);
}

static void what_stays_away_is_nobodys_verdict(void **state)
{
    struct err e = ERR_INIT;
    int built;

    assert_int_equal(build("three", false, &e), 1);
    built = atomic_load(&t.built);
    atomic_store(&t.useless, true);
    leave_answer("ours", false);
    assert_int_equal(build("three", true, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "artefacts"));
    assert_int_equal(atomic_load(&t.built), built + 1); /* once more, and not a third time */
    assert_int_equal(build("three", true, &e), -1);     /* a fresh answer is not asked for again */
    assert_int_equal(e.kind, ERR_ENV);
    assert_int_equal(atomic_load(&t.built), built + 2);
    atomic_store(&t.useless, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_answer_serves),
        cmocka_unit_test(an_old_answer_without_its_file_is_asked_for_again),
        cmocka_unit_test(what_stays_away_is_nobodys_verdict),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
