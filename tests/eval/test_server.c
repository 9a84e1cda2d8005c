/* test_server.c - does the device still answer? Without a device: processes of others stand for it, and there is no
 * fork server, so that one of our own cannot be made. And: a fork server that fails, beside one that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/server/judge_server.h"
#include "proc/jail.h"

static struct judge_servers servers = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct judge_server sv;

enum other { NOBODY, BEGINS, FAILS };

/* Somebody else's process: after 0.2 s it has begun, or it has not. */
static void *other_main(void *arg)
{
    usleep(200000);
    if (*(enum other *)arg == BEGINS)
        sv.begun_at = now_s();
    sv.beginning--;
    return NULL;
}

/* Seconds that the answer takes; *ret_ok: it was yes. */
static double check(enum other other, double begun_at, bool *ret_ok)
{
    double t0 = now_s();
    struct err e = ERR_INIT;
    pthread_t thread;

    sv = (struct judge_server){.backend = backend_find("cuda"), .all = &servers, .beginning = other != NOBODY,
                               .begun_at = begun_at};
    if (other != NOBODY)
        assert_int_equal(pthread_create(&thread, NULL, other_main, &other), 0);
    *ret_ok = server_check(&sv, &e) == 0;
    t0 = now_s() - t0;
    if (other != NOBODY)
        pthread_join(thread, NULL);
    assert_int_equal(e.kind, *ret_ok ? ERR_NONE : ERR_ENV);
    return t0;
}

static void test_who_answers(void **state)
{
    bool ok;

    (void)state;
    assert_true(check(NOBODY, 0, &ok) < 0.1); /* nobody to wait for: it is asked at once */
    assert_false(ok);
    assert_true(check(NOBODY, now_s(), &ok) < 0.1); /* what was before says nothing */
    assert_false(ok);
    assert_true(check(BEGINS, now_s(), &ok) > 0.15);
    assert_true(ok);
    assert_true(check(FAILS, now_s(), &ok) > 0.15); /* then it is asked */
    assert_false(ok);
}

/* What imports torch's compiler ends before it says anything, is gone, or was never made: baselines come from the
 * other. */
static void test_a_server_for_compilers_that_fails(void **state)
{
    struct forkserver_spec s = {.no_jail = !jail_probe()->enough}, bad = {.no_jail = true, .python = "/bin/false"};
    struct server_child kind = {.role = "selftest", .compiles = true};
    struct err e = ERR_INIT;
    char *python = path_python(&e);
    struct child *c;

    (void)state;
    free(python);
    if (!python)
        skip();
    sv = (struct judge_server){.backend = backend_find("sim"), .all = &servers};
    if (forkserver_start(&s, &sv.fs, &e) < 0 || forkserver_launch(&bad, &sv.compilers, &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < 3; i++) {
        if (server_spawn(&sv, &kind, &c, &e) < 0)
            fail_msg("%s", e.msg);
        assert_ptr_equal(c->fs, sv.fs);
        child_free(c);
        if (i == 1) {
            forkserver_stop(sv.compilers);
            sv.compilers = NULL;
        }
    }
    assert_int_equal(sv.beginning, 0);
    kind.role = "nobody"; /* neither can */
    assert_int_equal(server_spawn(&sv, &kind, &c, &e), -1);
    assert_non_null(strstr(e.msg, "nobody"));
    assert_int_equal(sv.beginning, 0);
    forkserver_stop(sv.fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_answers),
                                       cmocka_unit_test(test_a_server_for_compilers_that_fails)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
