/* test_ask.c - an owner that only echoes: it is started once, is asked again after its death, and ends no other's
 * request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/daemon.h"

#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CALLERS 6

static struct daemon_place place;
static char *argv_of[] = {"/proc/self/exe", "serve", NULL};
extern char **environ;

/* ---- the owner: this program again ---- */

static json_t *echo(void *ctx, const json_t *request, pid_t caller, struct err *e)
{
    const char *what = json_str(request, "what", "");

    (void)ctx, (void)caller, (void)e;
    if (!strcmp(what, "kill"))
        _exit(9);
    for (int i = 0; i < json_i64(request, "ms", 0) / 10 && !stop_requested(); i++)
        usleep(10000);
    if (stop_requested()) {
        err_set(e, ERR_STOP, "interrupted");
        return NULL;
    }
    if (!strcmp(what, "refuse")) {
        err_set(e, ERR_INPUT, "not %s", what);
        return NULL;
    }
    return json_pack("{s:s,s:i}", "echo", what, "pid", (int)getpid());
}

static int serve(void)
{
    const struct daemon_work w = {.answer = echo, .backend = "echo", .idle_s = 3};
    struct err e = ERR_INIT;
    struct daemon *o;

    stop_install();
    if (daemon_place("echo", DIGEST, &place, &e) < 0 || daemon_listen(&place, &o, &e) < 0)
        return 1;
    if (write(3, "", 1) == 1)
        close(3);
    daemon_serve(o, &w, &e);
    daemon_close(o);
    return 0;
}

/* ---- callers ---- */

struct asks {
    const char *what;
    int ms, rc;
    char said[32];
    pid_t pid;
    pthread_t thread;
    struct err e;
};

static void *ask(void *arg)
{
    const struct daemon_command c = {argv_of, environ};
    struct asks *a = arg;
    json_t *reply, *request = json_pack("{s:s,s:s,s:i}", "digest", DIGEST, "what", a->what, "ms", a->ms);

    if ((a->rc = daemon_ask(&place, &c, request, &reply, &a->e)) == 0) {
        assert_int_equal(a->e.kind, ERR_NONE); /* who asked a dead one first has an answer, and no error */
        a->rc = daemon_check(reply, &a->e);
        snprintf(a->said, sizeof a->said, "%s", json_str(reply, "echo", ""));
        a->pid = (pid_t)json_i64(reply, "pid", 0);
        json_decref(reply);
    }
    json_decref(request);
    return NULL;
}

static void begin(struct asks *a, const char *what, int ms)
{
    *a = (struct asks){.what = what, .ms = ms};
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static struct asks once(const char *what, int ms)
{
    struct asks a;

    begin(&a, what, ms);
    pthread_join(a.thread, NULL);
    return a;
}

static pid_t living(void)
{
    json_t *all = daemon_list(NULL);
    pid_t pid = (pid_t)json_i64(json_array_get(all, 0), "pid", 0);

    assert_true(json_array_size(all) <= 1);
    json_decref(all);
    return pid;
}

static void one_for_all(void **state)
{
    struct asks a[CALLERS], refused;

    (void)state;
    for (int i = 0; i < CALLERS; i++)
        begin(&a[i], "hello", 50);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(a[i].thread, NULL);
        if (a[i].rc < 0)
            fail_msg("%s", a[i].e.msg);
        assert_string_equal(a[i].said, "hello");
        assert_int_equal(a[i].pid, a[0].pid);
    }
    refused = once("refuse", 0);
    assert_int_equal(refused.rc, -1);
    assert_int_equal(refused.e.kind, ERR_INPUT);
    assert_string_equal(refused.e.msg, "not refuse");
}

/* One request ends its owner each time: it is told so, and the others get their answers. */
static void one_that_kills(void **state)
{
    struct asks a[CALLERS];

    (void)state;
    for (int i = 0; i < CALLERS; i++)
        begin(&a[i], i == 2 ? "kill" : "hello", 300);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(a[i].thread, NULL);
        if (i != 2 && a[i].rc < 0)
            fail_msg("%d: %s", i, a[i].e.msg);
        if (i != 2)
            assert_string_equal(a[i].said, "hello");
    }
    assert_int_equal(a[2].rc, -1);
    assert_int_equal(a[2].e.kind, ERR_BUG);
}

/* SIGTERM while it is busy, SIGKILL, and the wish that it leaves: the next one answers. */
static void a_daemon_that_ends(void **state)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    struct asks a;
    pid_t pid;

    (void)state;
    for (int i = 0; i < 2; i++) {
        once("hello", 0);
        pid = living();
        begin(&a, "hello", 500);
        usleep(200000);
        kill(pid, signals[i]);
        pthread_join(a.thread, NULL);
        if (a.rc < 0)
            fail_msg("%s", a.e.msg);
        assert_int_not_equal(a.pid, pid);
    }
    pid = living();
    begin(&a, "hello", 500);
    usleep(200000);
    assert_int_equal(daemon_stop_all(NULL), 1);
    assert_int_not_equal(once("hello", 0).pid, pid);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.pid, pid); /* what it had, it finished */
}

/* To look at it is no request: it leaves all the same. */
static void it_leaves(void **state)
{
    (void)state;
    once("hello", 0);
    for (int i = 0; i < 100 && living(); i++)
        usleep(100000);
    assert_int_equal(living(), 0);
}

/* Who leaves takes its own socket away, and not that of who has come since. */
static void a_leaving_owner_takes_its_own_socket(void **state)
{
    struct daemon_place at = place;
    struct daemon *first, *next;
    struct err e = ERR_INIT;

    (void)state;
    snprintf(at.socket, sizeof at.socket, "%.90s.next", place.socket);
    assert_int_equal(daemon_listen(&at, &first, &e), 0);
    unlink(at.socket); /* as its 'leave' does */
    assert_int_equal(daemon_listen(&at, &next, &e), 0);
    daemon_close(first);
    assert_true(file_exists(at.socket));
    daemon_close(next);
    assert_false(file_exists(at.socket));
}

static void put_old(const char *path, int days)
{
    struct timespec t[2] = {{.tv_sec = time(NULL) - days * 86400 - 60}, {.tv_sec = time(NULL) - days * 86400 - 60}};

    assert_int_equal(file_write(path, "", 0, NULL), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* What owners left that are dead since a day goes; what a starter holds, and what lives, stays. */
static void what_the_dead_left_goes(void **state)
{
    static const char *const names[] = {"dead", "fresh", "held", "live"};
    struct daemon_place at[4];
    struct daemon *live;
    char *foreign;
    int fd = -1;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(daemon_place(names[i], DIGEST, &at[i], NULL), 0);
        put_old(at[i].lock, i == 1 ? 0 : 2);
        put_old(at[i].log, 2);
    }
    put_old(at[0].socket, 2);
    foreign = xasprintf("%.*s/apt.lock", (int)(strrchr(at[0].lock, '/') - at[0].lock), at[0].lock);
    put_old(foreign, 2);
    assert_true((fd = open(at[2].lock, O_RDWR | O_CLOEXEC)) >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(daemon_listen(&at[3], &live, NULL), 0);
    daemon_sweep();
    assert_false(file_exists(at[0].lock) || file_exists(at[0].log) || file_exists(at[0].socket));
    for (int i = 1; i < 4; i++)
        assert_true(file_exists(at[i].lock) && file_exists(at[i].log));
    assert_true(file_exists(at[3].socket));
    assert_true(file_exists(foreign));
    daemon_close(live);
    close(fd);
    free(foreign);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_for_all), cmocka_unit_test(one_that_kills),
                                       cmocka_unit_test(a_daemon_that_ends), cmocka_unit_test(it_leaves),
                                       cmocka_unit_test(a_leaving_owner_takes_its_own_socket),
                                       cmocka_unit_test(what_the_dead_left_goes)};
    char folder[] = "/tmp/test_ask.XXXXXX";
    struct err e = ERR_INIT;
    int failed;

    if (argc > 1 && !strcmp(argv[1], "serve"))
        return serve();
    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_RUN_DIR", folder, 1);
    if (daemon_place("echo", DIGEST, &place, &e) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    daemon_stop_all(NULL);
    dir_remove(folder, NULL);
    return failed;
}
