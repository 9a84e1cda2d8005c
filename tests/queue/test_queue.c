/* test_queue.c - leases, idempotence, lost workers; and the verdict service with a worker of the test's own, which is
 * this program run again with "--queue": it answers with the candidate's text, and dies where the text says so. */
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
#include "queue/verdict.h"

static char *dir;

static int make_dir(void **state)
{
    return (dir = dir_temp("test-queue", NULL)) ? 0 : -1;
}

static int drop_dir(void **state)
{
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static struct queue *fresh(const char *name)
{
    char *path = path_join(dir, name);
    struct err e = ERR_INIT;
    struct queue *q = NULL;

    assert_int_equal(queue_open(path, &q, &e), 0);
    free(path);
    return q;
}

static void a_job_is_leased_and_finished_once(void **state)
{
    struct queue *q = fresh("a.db");
    struct err e = ERR_INIT;
    struct queue_job j, k;
    int64_t id, same;
    bool failed = true;
    char *result;

    assert_int_equal(queue_put(q, "key", "work", &id, &e), 0);
    assert_int_equal(queue_put(q, "key", "other", &same, &e), 0);
    assert_int_equal(id, same);
    assert_int_equal(queue_claim(q, "w", 10, 0, &j, &e), 1);
    assert_string_equal(j.payload, "work");
    assert_int_equal(queue_claim(q, "w", 10, 0, &k, &e), 0);
    assert_int_equal(queue_result(q, id, &result, &failed, &e), 0);
    assert_int_equal(queue_finish(q, id, "first", &e), 0);
    assert_int_equal(queue_finish(q, id, "second", &e), 0);
    assert_int_equal(queue_result(q, id, &result, &failed, &e), 1);
    assert_string_equal(result, "first");
    assert_false(failed);
    free(result);
    queue_job_free(&j);
    queue_close(q);
}

static void an_expired_lease_goes_to_another(void **state)
{
    struct queue *q = fresh("b.db");
    struct err e = ERR_INIT;
    struct queue_job slow, quick;
    int64_t id;

    queue_put(q, "key", "work", &id, &e);
    assert_int_equal(queue_claim(q, "slow", 0.05, 0, &slow, &e), 1);
    assert_int_equal(queue_heartbeat(q, &slow, 0.05, &e), 1);
    assert_int_equal(queue_claim(q, "quick", 10, 2, &quick, &e), 1);
    assert_int_equal(quick.attempt, 2);
    assert_int_equal(queue_heartbeat(q, &slow, 10, &e), 0); /* lost */
    assert_int_equal(queue_fail(q, &slow, "late", 1, &e), 0); /* must not touch the new lease */
    assert_int_equal(queue_heartbeat(q, &quick, 10, &e), 1);
    assert_int_equal(queue_release_worker(q, "quick", &e), 1);
    queue_job_free(&quick);
    assert_int_equal(queue_claim(q, "third", 10, 0, &quick, &e), 1);
    assert_int_equal(queue_fail(q, &quick, "cannot", 3, &e), 0);
    bool failed = false;
    char *why;
    assert_int_equal(queue_result(q, id, &why, &failed, &e), 1);
    assert_true(failed);
    assert_string_equal(why, "cannot");
    free(why);
    queue_job_free(&slow), queue_job_free(&quick);
    queue_close(q);
}

static void many_processes_lose_and_double_nothing(void **state)
{
    struct queue *q = fresh("c.db");
    struct err e = ERR_INIT;
    struct queue_stats st;
    int64_t ids[200];

    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(queue_put(q, key, key, &ids[i], &e), 0);
    }
    for (int w = 0; w < 4; w++)
        if (fork() == 0) {
            char name[16], *log = xasprintf("%s/c.%d", dir, w);
            struct queue *own = fresh("c.db");
            struct queue_job j;
            snprintf(name, sizeof name, "w%d", w);
            while (queue_claim(own, name, 30, 0.1, &j, &e) == 1) {
                file_append(log, "x", 1, &e);
                queue_finish(own, j.id, j.payload, &e);
            }
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    size_t claims = 0;
    for (int w = 0; w < 4; w++) {
        char *log = xasprintf("%s/c.%d", dir, w);
        struct buf b;
        buf_init(&b, 1000);
        file_read(log, &b, NULL);
        claims += b.n;
        buf_free(&b);
        free(log);
    }
    assert_int_equal(claims, 200);
    assert_int_equal(queue_stats(q, &st, &e), 0);
    assert_int_equal(st.done, 200);
    queue_close(q);
}

#define CROWD 10
#define EACH 15

/* Makes the file with the others, puts jobs of its own and does whoever's it gets, with heartbeats and a look at all. */
static int one_of_a_crowd(const char *path, int go, int me)
{
    struct queue_stats st;
    struct queue_job j;
    struct err e = ERR_INIT;
    struct queue *q;
    char name[16], key[32], byte;
    int bad = read(go, &byte, 1), got = 0; /* 0 when the gate opens */
    int64_t id;

    snprintf(name, sizeof name, "w%d", me);
    if (bad || queue_open(path, &q, &e) < 0)
        bad = 1;
    for (int i = 0; i < EACH && !bad; i++) {
        snprintf(key, sizeof key, "%d-%d", me, i);
        bad = queue_put(q, key, key, &id, &e) < 0 || (got = queue_claim(q, name, 30, 0, &j, &e)) < 0 ||
              queue_stats(q, &st, &e) < 0;
        if (bad || got == 0)
            continue;
        bad = queue_heartbeat(q, &j, 30, &e) != 1 || queue_finish(q, j.id, j.payload, &e) < 0;
        queue_job_free(&j);
    }
    if (bad)
        fprintf(stderr, "process %d: %s\n", me, e.msg);
    return bad;
}

static void a_crowd_is_never_locked_out(void **state)
{
    for (int round = 0; round < 25; round++) {
        char *path = xasprintf("%s/crowd%d.db", dir, round);
        struct queue_stats st;
        struct err e = ERR_INIT;
        struct queue *q;
        int gate[2], bad = 0;

        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < CROWD; i++)
            if (fork() == 0) {
                close(gate[1]);
                _exit(one_of_a_crowd(path, gate[0], i));
            }
        close(gate[1]);
        close(gate[0]);
        for (int i = 0, status; i < CROWD; i++) {
            wait(&status);
            bad += status != 0;
        }
        assert_int_equal(bad, 0);
        assert_int_equal(queue_open(path, &q, &e), 0);
        assert_int_equal(queue_stats(q, &st, &e), 0);
        assert_int_equal(st.waiting + st.done, CROWD * EACH);
        assert_int_equal(st.leased + st.failed, 0);
        queue_close(q);
        free(path);
    }
}

/* ---- the service ---- */

static void fake_worker(const char *path, const char *name)
{
    struct err e = ERR_INIT;
    struct queue *q;
    struct queue_job j;

    if (queue_open(path, &q, &e) < 0)
        _exit(3);
    while (queue_claim(q, name, 30, 5, &j, &e) == 1) {
        json_t *p = json_parse(j.payload, strlen(j.payload), "p", &e), *v;
        const char *text = json_str(p, "candidate", "");
        if (!strcmp(text, "die") || (!strcmp(text, "die once") && j.attempt == 1))
            raise(SIGKILL);
        if (!strcmp(text, "slow"))
            usleep(300000);
        v = json_pack("{s:s,s:s,s:i}", "status", "passed", "text", text, "attempt", j.attempt);
        char *s = json_text(v);
        queue_finish(q, j.id, s, &e);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_leased_and_finished_once),
        cmocka_unit_test(an_expired_lease_goes_to_another),
        cmocka_unit_test(many_processes_lose_and_double_nothing),
        cmocka_unit_test(a_crowd_is_never_locked_out),
        cmocka_unit_test(verdicts_come_in_order_and_survive_dying_workers),
        cmocka_unit_test(a_worker_that_cannot_start_is_an_error),
    };

    if (argc == 5 && !strcmp(argv[1], "--queue"))
        fake_worker(argv[2], argv[4]);
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
