/* test_queue.c - leases, idempotence, lost workers; and the verdict service with a worker of the test's own,
 * which is this program run again with "--queue": it answers with the candidate's text, and dies where the
 * text says so. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/queue.h"
#include "queue/sql.h"
#include "verdicts/verdict_service.h"
#include "postgres.h"

static char *dir;
static struct postgres pg;
static bool on_postgres; /* the same tests run on both */

static int make_dir(void **state)
{
    return (dir = dir_temp("test-queue", NULL)) ? postgres_start(&pg) : -1;
}

static int drop_dir(void **state)
{
    postgres_stop(&pg);
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static int use_sqlite(void **state)
{
    on_postgres = false;
    return 0;
}

static int use_postgres(void **state)
{
    on_postgres = true;
    return 0;
}

static char *url_of(const char *name)
{
    static int n;
    char base[64];

    snprintf(base, sizeof base, "%s%d", name, n++);
    return on_postgres ? postgres_database(&pg, base) : path_join(dir, base);
}

static struct queue *open_url(const char *url)
{
    struct err e = ERR_INIT;
    struct queue *q = NULL;

    if (queue_open(url, &q, &e) < 0)
        fail_msg("%s", e.msg);
    return q;
}

static struct queue *fresh(const char *name)
{
    char *url;
    struct queue *q;

    if (on_postgres && !pg.bin)
        skip(); /* PostgreSQL is not installed: apt-get install postgresql */
    url = url_of(name);
    q = open_url(url);
    free(url);
    return q;
}

static int64_t put(struct queue *q, const char *key, const char *payload)
{
    struct queue_item it = {.key = key, .payload = payload};
    struct err e = ERR_INIT;
    int64_t id = -1;

    if (queue_put(q, &it, &id, &e) < 0)
        fail_msg("%s", e.msg);
    return id;
}

static int claim(struct queue *q, const char *worker, double lease_s, double wait_s, struct queue_job *j)
{
    struct err e = ERR_INIT;
    int got = queue_claim(q, NULL, worker, lease_s, wait_s, j, &e);

    if (got < 0)
        fail_msg("%s", e.msg);
    return got;
}

/* A job's state, and its result beside the expected one. */
static void assert_result(struct queue *q, int64_t id, int state, const char *expected)
{
    struct err e = ERR_INIT;
    char *text = NULL;

    assert_int_equal(queue_result(q, id, &text, &e), state);
    if (expected)
        assert_string_equal(text, expected);
    free(text);
}

static void a_job_is_leased_and_finished_once(void **state)
{
    struct queue *q = fresh("a");
    struct err e = ERR_INIT;
    struct queue_job j, k;
    int64_t id = put(q, "key", "work"), found = 0;

    assert_int_equal(put(q, "key", "other"), id);
    assert_int_equal(queue_find(q, "key", &found, &e), 1);
    assert_int_equal(found, id);
    assert_int_equal(queue_find(q, "none", &found, &e), 0);
    assert_int_equal(claim(q, "w", 10, 0, &j), 1);
    assert_string_equal(j.payload, "work");
    assert_int_equal(claim(q, "w", 10, 0, &k), 0);
    assert_result(q, id, QUEUE_LEASED, NULL);
    assert_int_equal(queue_finish(q, &j, "first", &e), 1);
    assert_int_equal(queue_finish(q, &j, "second", &e), 1); /* said again by the holder: the first stays */
    assert_result(q, id, QUEUE_DONE, "first");
    assert_int_equal(put(q, "key", "work"), id); /* its result is there already */
    assert_int_equal(claim(q, "w", 10, 0, &k), 0);
    queue_job_free(&j);
    queue_close(q);
}

static void an_expired_lease_goes_to_another(void **state)
{
    struct queue *q = fresh("b");
    struct err e = ERR_INIT;
    struct queue_job slow, quick, third;
    int64_t id = put(q, "key", "work");

    assert_int_equal(claim(q, "slow", 0.3, 0, &slow), 1);
    assert_int_equal(queue_heartbeat(q, &slow, 0.3, &e), 1);
    assert_int_equal(claim(q, "quick", 30, 4, &quick), 1);
    assert_int_equal(quick.attempt, 2);
    assert_int_equal(queue_heartbeat(q, &slow, 10, &e), 0);  /* lost */
    assert_int_equal(queue_fail(q, &slow, "late", &e), 0);   /* must not touch the new lease */
    assert_int_equal(queue_finish(q, &slow, "late", &e), 0); /* fenced */
    assert_result(q, id, QUEUE_LEASED, NULL);
    assert_int_equal(queue_heartbeat(q, &quick, 10, &e), 1);
    assert_int_equal(queue_release_worker(q, "quick", "it died", &e), 1);
    assert_int_equal(queue_finish(q, &quick, "late", &e), 0);
    assert_int_equal(claim(q, "third", 10, 0, &third), 1);
    assert_int_equal(queue_finish(q, &quick, "late", &e), 0);
    assert_int_equal(queue_fail(q, &third, "cannot", &e), 0); /* its third attempt: the last */
    assert_result(q, id, QUEUE_FAILED, "cannot");
    queue_job_free(&slow), queue_job_free(&quick), queue_job_free(&third);
    queue_close(q);
}

static void a_job_that_silences_its_workers_ends(void **state)
{
    struct queue *q = fresh("silent");
    struct err e = ERR_INIT;
    struct queue_job j;
    int64_t id = put(q, "key", "work");
    char *why = NULL;

    for (int i = 0; i < QUEUE_ATTEMPTS; i++) {
        assert_int_equal(claim(q, "w", 0.01, 3, &j), 1);
        queue_job_free(&j);
    }
    assert_int_equal(claim(q, "w", 10, 1.5, &j), 0);
    assert_int_equal(queue_result(q, id, &why, &e), QUEUE_FAILED);
    assert_non_null(strstr(why, "silent"));
    free(why);
    queue_close(q);
}

static void a_job_given_back_has_lost_no_attempt(void **state)
{
    struct queue *q = fresh("back");
    struct err e = ERR_INIT;
    struct queue_job j;

    put(q, "key", "work");
    for (int i = 0; i < 2 * QUEUE_ATTEMPTS; i++) {
        assert_int_equal(claim(q, "w", 10, 0, &j), 1);
        assert_int_equal(j.attempt, 1);
        assert_int_equal(queue_give_back(q, &j, &e), 0);
        queue_job_free(&j);
    }
    queue_close(q);
}

static void cancelled_jobs_end(void **state)
{
    struct queue *q = fresh("cancel");
    struct err e = ERR_INIT;
    struct queue_job j;
    int64_t waiting, running;

    running = put(q, "running", "work");
    assert_int_equal(claim(q, "w", 10, 0, &j), 1);
    waiting = put(q, "waiting", "work");
    assert_int_equal(queue_cancel(q, waiting, &e), QUEUE_CANCELLED);
    assert_int_equal(queue_cancel(q, running, &e), QUEUE_CANCELLED);
    assert_int_equal(queue_heartbeat(q, &j, 10, &e), 0);
    assert_int_equal(queue_finish(q, &j, "too late", &e), 0);
    assert_int_equal(queue_give_back(q, &j, &e), 0);
    assert_result(q, running, QUEUE_CANCELLED, NULL);
    queue_job_free(&j);
    assert_int_equal(claim(q, "w", 10, 0, &j), 0);
    queue_close(q);
}

static void put_for(struct queue *q, const char *owner, int n, int priority, const char *lane)
{
    for (int i = 0; i < n; i++) {
        static int serial;
        char key[32];
        struct queue_item it = {
            .key = key, .payload = owner, .owner = owner, .priority = priority, .lane = lane};
        struct err e = ERR_INIT;
        int64_t id;
        snprintf(key, sizeof key, "%s%d", owner, serial++);
        assert_int_equal(queue_put(q, &it, &id, &e), 1);
    }
}

/* The first letters of the next n jobs' owners. */
static void assert_order(struct queue *q, const char *lane, const char *expected)
{
    char got[64] = "";

    for (size_t i = 0; i < strlen(expected); i++) {
        struct queue_job j;
        struct err e = ERR_INIT;
        if (queue_claim(q, lane, "w", 100, 0, &j, &e) == 1) {
            got[i] = j.payload[0];
            queue_job_free(&j);
        }
    }
    assert_string_equal(got, expected);
}

static void owners_take_turns_and_lanes_are_apart(void **state)
{
    struct queue *q = fresh("turns");

    put_for(q, "a", 6, 0, "run:sim");
    assert_order(q, "run:sim", "aa");
    put_for(q, "b", 2, 0, "run:sim"); /* comes late, has few: stands beside the first of a's */
    put_for(q, "c", 1, 5, "run:sim");
    put_for(q, "d", 1, 9, "build");
    assert_order(q, "run:sim", "c");
    assert_order(q, "run:sim", "ababaa");
    assert_order(q, "build", "d");
    queue_close(q);
}

static void what_ended_is_told_and_swept(void **state)
{
    struct queue *q = fresh("ended");
    struct err e = ERR_INIT;
    struct queue_job j, builds;
    struct queue_item build = {.key = "b1", .payload = "", .lane = "build:sim", .owner = "build"}, other = build;
    struct queue_stats st;
    int64_t id = put(q, "key", "work"), ids[4];
    double cursor = 0;

    put(q, "later", "work");
    assert_int_equal(queue_ended(q, &cursor, ids, 4, &e), 0);
    assert_int_equal(claim(q, "w", 10, 0, &j), 1);
    assert_int_equal(queue_finish(q, &j, "r", &e), 1);
    assert_int_equal(queue_ended(q, &cursor, ids, 4, &e), 1);
    assert_int_equal(ids[0], id);
    other.key = "b2";
    assert_int_equal(queue_put(q, &build, ids, &e), 1);
    assert_int_equal(queue_put(q, &other, ids, &e), 1);
    assert_int_equal(queue_claim(q, "build:sim", "w", 10, 0, &builds, &e), 1);
    assert_int_equal(queue_stats(q, &st, &e), 0);
    assert_int_equal(st.waiting, 1); /* builds are parts of jobs that are counted */
    assert_int_equal(st.leased, 0);
    assert_int_equal(st.done, 1);
    assert_int_equal(queue_finish(q, &builds, "built", &e), 1);
    assert_int_equal(queue_cancel(q, ids[0], &e), QUEUE_CANCELLED);
    assert_int_equal(queue_stats(q, &st, &e), 0);
    assert_int_equal(st.done, 1);
    assert_int_equal(st.cancelled, 0);
    queue_job_free(&builds);
    assert_true(st.oldest_s >= 0 && st.oldest_s < 60);
    assert_int_equal(queue_owner_load(q, "", &e), 1);
    assert_int_equal(queue_sweep(q, 3600, &e), 0);
    usleep(20000);
    assert_int_equal(queue_sweep(q, 0.001, &e), 3); /* and the builds */
    assert_int_equal(queue_result(q, id, NULL, &e), -1);
    queue_job_free(&j);
    queue_close(q);
}

static int64_t finish_one(struct queue *q, int *serial)
{
    struct err e = ERR_INIT;
    struct queue_job j;
    char key[32];
    int64_t id;

    snprintf(key, sizeof key, "fast %d", (*serial)++);
    id = put(q, key, "work");
    assert_int_equal(claim(q, "w", 10, 0, &j), 1);
    assert_int_equal(queue_finish(q, &j, "r", &e), 1);
    queue_job_free(&j);
    return id;
}

/* The clock steps back by an hour after a job has ended: the next one is told all the same, by a cursor that was
 * there and by one that begins now. */
static void a_clock_that_steps_back_loses_nothing(void **state)
{
    char *url = url_of("steps");
    struct queue *q = open_url(url);
    struct err e = ERR_INIT;
    double cursor = 0, now;
    int64_t ids[4], id;
    struct sql *db;
    int serial = 0;

    (void)state;
    id = finish_one(q, &serial);
    assert_int_equal(sql_open(url, "", QUEUE_VERSION, &db, &e), 0);
    assert_int_equal(sql_run(db, NULL, &e, "UPDATE job SET ended = ended + 3600", ""), 1);
    sql_close(db);
    assert_int_equal(queue_ended(q, &cursor, ids, 4, &e), 1);
    assert_int_equal(queue_ended_now(q, &now, &e), 0);
    id = finish_one(q, &serial);
    assert_int_equal(queue_ended(q, &now, ids, 4, &e), 1);
    assert_int_equal(ids[0], id);
    assert_int_equal(queue_ended(q, &cursor, ids, 4, &e), 2); /* what ended lately comes again */
    assert_int_equal(ids[1], id);
    queue_close(q);
    free(url);
}

/* A result that somebody altered, or that is another job's, is nobody's verdict: the job is done again. */
static void altered_results_are_none(void **state)
{
    static const char *const harm[] = {"UPDATE job SET result = replace(result, 'failed', 'passed')",
                                       "UPDATE job SET result = (SELECT result FROM job WHERE key = 'two')"};
    char *url = url_of("altered");
    struct err e = ERR_INIT;

    if (on_postgres && !pg.bin)
        skip();
    for (int i = 0; i < 2; i++) {
        struct queue *q = open_url(url);
        int64_t id[2] = {put(q, "one", "work"), put(q, "two", "more")};
        struct sql *db;
        struct queue_job j;

        for (int k = 0; k < 2; k++) {
            char *said = xasprintf("{\"status\":\"failed\",\"n\":%d}", k);

            assert_int_equal(claim(q, "w", 30, 0, &j), 1);
            assert_int_equal(queue_finish(q, &j, said, &e), 1);
            assert_result(q, id[k], QUEUE_DONE, said);
            queue_job_free(&j);
            free(said);
        }
        assert_int_equal(sql_open(url, "", QUEUE_VERSION, &db, &e), 0);
        assert_int_equal(sql_run(db, NULL, &e, harm[i], ""), 2);
        sql_close(db);
        assert_result(q, id[0], QUEUE_WAITING, NULL);
        assert_int_equal(claim(q, "w", 30, 0, &j), 1);
        assert_int_equal(j.id, id[0]);
        assert_int_equal(queue_finish(q, &j, "{\"status\":\"failed\"}", &e), 1);
        assert_result(q, id[0], QUEUE_DONE, "{\"status\":\"failed\"}");
        queue_job_free(&j);
        assert_true(queue_forget(q, id[0], &e) == 0 && queue_forget(q, id[1], &e) == 0);
        queue_close(q);
    }
    free(url);
}

/* Jobs that end within one tick of the clock, where the first of them fill what one call returns. */
static void none_is_missed_between_two_full_answers(void **state)
{
    struct queue *q = fresh("full");
    struct err e = ERR_INIT;
    double cursor = 0;
    int serial = 0;

    for (int i = 0; i < 200; i++) {
        int64_t ids[64], one = finish_one(q, &serial), two = finish_one(q, &serial), three;
        bool seen = false;
        assert_int_equal(queue_ended_now(q, &cursor, &e), 0);
        cursor -= 5;
        while (queue_ended(q, &cursor, ids, 2, &e) == 2 && ids[1] < two)
            ;
        three = finish_one(q, &serial);
        for (int k = 0, n = queue_ended(q, &cursor, ids, 64, &e); k < n; k++)
            seen |= ids[k] == three;
        assert_true(seen);
        queue_forget(q, one, &e), queue_forget(q, two, &e), queue_forget(q, three, &e);
    }
    queue_close(q);
}

static void workers_are_leased_rows(void **state)
{
    struct queue *q = fresh("workers");
    struct err e = ERR_INIT;
    json_t *all;

    assert_int_equal(queue_worker_announce(q, "w1", "{\"device\": 1}", 30, &e), 1);
    assert_int_equal(queue_worker_announce(q, "w2", "{}", 0.01, &e), 1);
    usleep(50000);
    all = queue_workers(q, &e);
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(json_str(json_array_get(all, 0), "name", ""), "w1");
    json_decref(all);
    assert_int_equal(queue_worker_drain(q, "w1", &e), 1);
    assert_int_equal(queue_worker_announce(q, "w1", "{}", 30, &e), 0);
    assert_int_equal(queue_worker_gone(q, "w1", &e), 0);
    assert_int_equal(queue_worker_drain(q, "w1", &e), 0);
    queue_close(q);
}

static void the_first_to_ask_makes_the_secret(void **state)
{
    struct queue *q = fresh("secret");
    struct err e = ERR_INIT;
    char *a = queue_setting(q, "secret", "one", &e), *b = queue_setting(q, "secret", "two", &e);

    assert_string_equal(a, "one");
    assert_string_equal(b, "one");
    free(a), free(b);
    queue_close(q);
}

static size_t claims_of(int w)
{
    char *log = xasprintf("%s/c.%d.%d", dir, on_postgres, w);
    size_t n;
    struct buf b;

    buf_init(&b, 1000);
    file_read(log, &b, NULL);
    n = b.n;
    buf_free(&b);
    free(log);
    return n;
}

static void one_claimer(const char *url, int w)
{
    char name[16], *log = xasprintf("%s/c.%d.%d", dir, on_postgres, w);
    struct queue *own = open_url(url);
    struct queue_job j;
    struct err e = ERR_INIT;

    snprintf(name, sizeof name, "w%d", w);
    while (claim(own, name, 30, 0.3, &j) == 1) {
        file_append(log, "x", 1, &e);
        queue_finish(own, &j, j.payload, &e);
    }
    _exit(0);
}

static void many_processes_lose_and_double_nothing(void **state)
{
    char *url = NULL;
    struct queue *q;
    struct err e = ERR_INIT;
    struct queue_stats st;
    size_t claims = 0;

    if (on_postgres && !pg.bin)
        skip();
    url = url_of("many");
    q = open_url(url);
    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        put(q, key, key);
    }
    for (int w = 0; w < 4; w++)
        if (fork() == 0)
            one_claimer(url, w);
    while (wait(NULL) > 0)
        ;
    for (int w = 0; w < 4; w++)
        claims += claims_of(w);
    assert_int_equal(claims, 200);
    assert_int_equal(queue_stats(q, &st, &e), 0);
    assert_int_equal(st.done, 200);
    queue_close(q);
    free(url);
}

#define CROWD 10
#define EACH 15

/* Opens the database with the others, puts jobs of its own and does whatever it gets, with heartbeats and a
 * look at all. */
static int one_of_a_crowd(const char *url, int go, int me)
{
    struct queue_stats st;
    struct queue_job j;
    struct err e = ERR_INIT;
    struct queue *q;
    char name[16], key[32], byte;
    struct queue_item it = {.key = key, .payload = key};
    int bad = read(go, &byte, 1), got = 0; /* 0 when the gate opens */
    int64_t id;

    snprintf(name, sizeof name, "w%d", me);
    if (bad || queue_open(url, &q, &e) < 0)
        bad = 1;
    for (int i = 0; i < EACH && !bad; i++) {
        snprintf(key, sizeof key, "%d-%d", me, i);
        bad = queue_put(q, &it, &id, &e) < 0 || (got = queue_claim(q, NULL, name, 30, 0, &j, &e)) < 0 ||
              queue_stats(q, &st, &e) < 0;
        if (bad || got == 0)
            continue;
        bad = queue_heartbeat(q, &j, 30, &e) != 1 || queue_finish(q, &j, j.payload, &e) != 1;
        queue_job_free(&j);
    }
    if (bad)
        fprintf(stderr, "process %d: %s\n", me, e.msg);
    return bad;
}

static void a_crowd_round(void)
{
    char *url = url_of("crowd");
    struct queue_stats st;
    struct err e = ERR_INIT;
    struct queue *q;
    int gate[2], bad = 0;

    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < CROWD; i++)
        if (fork() == 0) {
            close(gate[1]);
            _exit(one_of_a_crowd(url, gate[0], i));
        }
    close(gate[1]);
    close(gate[0]);
    for (int i = 0, status; i < CROWD; i++) {
        wait(&status);
        bad += status != 0;
    }
    assert_int_equal(bad, 0);
    q = open_url(url);
    assert_int_equal(queue_stats(q, &st, &e), 0);
    assert_int_equal(st.waiting + st.done, CROWD * EACH);
    assert_int_equal(st.leased + st.failed, 0);
    queue_close(q);
    free(url);
}

static void a_crowd_is_never_locked_out(void **state)
{
    if (on_postgres && !pg.bin)
        skip();
    for (int round = 0; round < (on_postgres ? 3 : 25); round++)
        a_crowd_round();
}

/* The server is killed between a claim and its result: the client waits for it and loses nothing. */
static void a_killed_server_loses_nothing(void **state)
{
    struct queue *q = fresh("killed");
    struct err e = ERR_INIT;
    struct queue_job j;
    int64_t id = put(q, "key", "work");

    assert_int_equal(claim(q, "w", 60, 0, &j), 1);
    assert_int_equal(postgres_ctl(&pg, "stop -m immediate"), 0);
    if (fork() == 0) {
        usleep(700000);
        _exit(postgres_ctl(&pg, "start") != 0);
    }
    if (queue_finish(q, &j, "done", &e) != 1)
        fail_msg("%s", e.msg);
    assert_result(q, id, QUEUE_DONE, "done");
    while (wait(NULL) > 0)
        ;
    queue_job_free(&j);
    queue_close(q);
}

/* A queue that was moved or removed is no queue that others find: nothing is written there, and no second one begun. */
static void a_moved_queue_is_an_error(void **state)
{
    char *path = path_join(dir, "moved/q.db"), *from = path_join(dir, "moved"), *to = path_join(dir, "away");
    struct queue *q, *other = NULL;
    struct err e = ERR_INIT;
    int64_t id;

    (void)state;
    assert_int_equal(queue_open(path, &q, &e), 0);
    assert_int_equal(queue_put(q, &(struct queue_item){.key = "a", .payload = "{}"}, &id, &e), 1);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(queue_put(q, &(struct queue_item){.key = "b", .payload = "{}"}, &id, &e), -1);
    assert_non_null(strstr(e.msg, "moved or removed"));
    assert_int_equal(queue_open(path, &other, &e), -1);
    assert_false(file_exists(from));
    assert_int_equal(rename(to, from), 0);
    assert_int_equal(queue_put(q, &(struct queue_item){.key = "b", .payload = "{}"}, &id, &e), 1);
    assert_int_equal(queue_open(path, &other, &e), 0);
    queue_close(other);
    queue_close(q);
    free(path), free(from), free(to);
}

static void a_wrong_url_is_one_clear_error(void **state)
{
    struct queue *q;
    struct err e = ERR_INIT;

    assert_int_equal(queue_open("postgres://nobody@/none?host=/nonexistent", &q, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_null(strchr(e.msg, '\n'));
}

/* ---- the service ---- */

static void fake_worker(const char *path, const char *name)
{
    struct err e = ERR_INIT;
    struct queue *q;
    struct queue_job j;

    if (queue_open(path, &q, &e) < 0)
        _exit(3);
    while (queue_claim(q, NULL, name, 30, 5, &j, &e) == 1) {
        json_t *p = json_parse(j.payload, strlen(j.payload), "p", &e), *v;
        const char *text = json_str(p, "candidate", "");
        if (!strcmp(text, "die") || (!strcmp(text, "die once") && j.attempt == 1))
            raise(SIGKILL);
        if (!strcmp(text, "slow"))
            usleep(300000);
        if (!strcmp(text, "cut")) { /* messages are cut at a length, maybe inside a character */
            queue_fail(q, &j, "no memory for \xC3", &e);
            json_decref(p);
            queue_job_free(&j);
            continue;
        }
        v = json_pack("{s:s,s:s,s:i,s:s}", "status", "passed", "text", text, "attempt", j.attempt, "worker", name);
        char *s = json_text(v);
        queue_finish(q, &j, s, &e);
        free(s);
        json_decref(v), json_decref(p);
        queue_job_free(&j);
    }
    _exit(0);
}

static char *self_argv[] = {"/proc/self/exe", NULL};

static void verdicts_come_in_order_and_survive_dying_workers(void **state)
{
    const char *texts[] = {"slow", "a", "die", "b", "a", "die once"};
    struct verdict_config c = {.workers = 2, .worker_argv = self_argv};
    struct verdict_request r[6];
    struct verdict_service *s;
    struct err e = ERR_INIT;
    json_t *v;

    assert_int_equal(verdict_service_start(&c, &s, &e), 0);
    for (int i = 0; i < 6; i++)
        r[i] = (struct verdict_request){.task_code = "t", .task_name = "n", .candidate = texts[i]};
    assert_int_equal(verdict_many(s, r, 6, &v, &e), 0);
    for (int i = 0; i < 6; i++) {
        json_t *one = json_array_get(v, i);
        if (i == 2) {
            assert_string_equal(json_str(one, "status", ""), "infra");
            assert_string_equal(json_str(one, "task", ""), "n");
        } else {
            assert_string_equal(json_str(one, "text", ""), texts[i]);
        }
    }
    assert_int_equal(json_i64(json_array_get(v, 5), "attempt", 0), 2);
    json_decref(v);
    assert_int_equal(verdict_many(s, r, 2, &v, &e), 0); /* again: from the queue, at once */
    json_decref(v);
    verdict_service_stop(s);
}

static void a_worker_that_cannot_start_is_an_error(void **state)
{
    char *argv[] = {"/bin/false", NULL};
    struct verdict_config c = {.workers = 1, .worker_argv = argv};
    struct verdict_request r = {.task_code = "t", .task_name = "n", .candidate = "x"};
    struct verdict_service *s;
    struct err e = ERR_INIT;
    json_t *v;

    assert_int_equal(verdict_service_start(&c, &s, &e), 0);
    assert_int_equal(verdict_many(s, &r, 1, &v, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "doctor"));
    verdict_service_stop(s);
}

static void *start_in_thread(void *arg)
{
    struct verdict_config c = {.workers = 1, .worker_argv = self_argv};
    struct err e = ERR_INIT;

    assert_int_equal(verdict_service_start(&c, arg, &e), 0);
    return NULL;
}

/* The thread that started them ends, and the workers go on: their names count their starts. */
static void workers_outlive_the_thread_that_started_them(void **state)
{
    struct verdict_request r[2] = {{.task_code = "t", .task_name = "n", .candidate = "one"},
                                   {.task_code = "t", .task_name = "n", .candidate = "cut"}};
    struct verdict_service *s = NULL;
    struct err e = ERR_INIT;
    const char *worker;
    pthread_t thread;
    json_t *v;

    assert_int_equal(pthread_create(&thread, NULL, start_in_thread, &s), 0);
    pthread_join(thread, NULL);
    assert_int_equal(verdict_many(s, r, 2, &v, &e), 0);
    worker = json_str(json_array_get(v, 0), "worker", "");
    assert_string_equal(worker + strlen(worker) - 4, ".0.1");
    assert_string_equal(json_str(json_array_get(v, 1), "status", ""), "infra");
    assert_string_equal(json_str(json_array_get(v, 1), "feedback", ""), "no memory for \xEF\xBF\xBD");
    json_decref(v);
    verdict_service_stop(s);
}

#define ON_BOTH(f)                                                                                           \
    {#f " (sqlite)", f, use_sqlite, NULL, NULL},                                                             \
    {                                                                                                        \
#f " (postgres)", f, use_postgres, NULL, NULL                                                        \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_job_is_leased_and_finished_once),
        ON_BOTH(an_expired_lease_goes_to_another),
        ON_BOTH(a_job_that_silences_its_workers_ends),
        ON_BOTH(a_job_given_back_has_lost_no_attempt),
        ON_BOTH(cancelled_jobs_end),
        ON_BOTH(owners_take_turns_and_lanes_are_apart),
        ON_BOTH(what_ended_is_told_and_swept),
        ON_BOTH(altered_results_are_none),
        ON_BOTH(a_clock_that_steps_back_loses_nothing),
        ON_BOTH(none_is_missed_between_two_full_answers),
        ON_BOTH(workers_are_leased_rows),
        ON_BOTH(the_first_to_ask_makes_the_secret),
        ON_BOTH(many_processes_lose_and_double_nothing),
        ON_BOTH(a_crowd_is_never_locked_out),
        {"a_killed_server_loses_nothing (postgres)", a_killed_server_loses_nothing, use_postgres, use_sqlite,
         NULL},
        cmocka_unit_test(a_wrong_url_is_one_clear_error),
        cmocka_unit_test(a_moved_queue_is_an_error),
        cmocka_unit_test(verdicts_come_in_order_and_survive_dying_workers),
        cmocka_unit_test(a_worker_that_cannot_start_is_an_error),
        cmocka_unit_test(workers_outlive_the_thread_that_started_them),
    };

    if (argc == 5 && !strcmp(argv[1], "--queue"))
        fake_worker(argv[2], argv[4]);
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
