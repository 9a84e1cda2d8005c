/* test_forkserver.c - children of the fork server: frames, jails seen from the inside, every kind of end, speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/forkserver.h"
#include "proc/frame.h"

static struct forkserver *fs;

static int start(void **state)
{
    struct forkserver_spec s = {.no_jail = !jail_probe()->enough};
    struct err e = ERR_INIT;
    char *python = path_python(&e);
    double t = now_s();
    (void)state;

    free(python);
    if (!python) {
        print_message("skipped: %s\n", e.msg);
        exit(0);
    }
    if (forkserver_start(&s, &fs, &e) < 0) {
        print_message("%s\n", e.msg);
        return -1;
    }
    print_message("fork server ready after %.1f s\n", now_s() - t);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    forkserver_stop(fs);
    return 0;
}

static struct child *spawn_child(const struct jail_spec *jail, size_t max_output)
{
    json_t *args = json_pack("{s:i}", "n", 42);
    struct child_spec s = {.role = "selftest", .args = args, .max_output = max_output};
    struct child *c;
    struct err e = ERR_INIT;

    if (jail)
        s.jail = *jail;
    if (forkserver_spawn(fs, &s, &c, &e) < 0)
        fail_msg("%s", e.msg);
    json_decref(args);
    return c;
}

/* Sends {"do":verb, key:value} and returns the answer, or NULL when the child is gone. */
static json_t *ask(struct child *c, json_t *req)
{
    struct frame f;
    struct err e = ERR_INIT;
    json_t *head;

    assert_int_equal(frame_send(c->fd, req, NULL, 0, now_s() + 10, NULL, &e), 0);
    json_decref(req);
    if (frame_recv(c->fd, 0, 0, now_s() + 20, &f, NULL, &e) < 0) {
        struct child_end end;
        if (child_wait(c, now_s() + 5, &end, &e) == 0) {
            print_message("  ended: why %d %d %d %s\n", (int)end.why, end.code, end.signal, end.output.p);
            buf_free(&end.output);
        }
        return NULL;
    }
    head = json_incref(f.head);
    frame_free(&f);
    return head;
}

static struct child_end end_of(struct child *c)
{
    struct child_end end;
    struct err e = ERR_INIT;

    if (child_wait(c, now_s() + 20, &end, &e) < 0)
        fail_msg("%s", e.msg);
    return end;
}

static void test_echo_and_exit(void **state)
{
    struct child *c = spawn_child(NULL, 0);
    json_t *a = ask(c, json_pack("{s:s}", "do", "echo"));
    struct child_end end;
    (void)state;

    assert_non_null(a);
    assert_int_equal(json_i64(json_object_get(a, "args"), "n", 0), 42);
    json_decref(a);
    a = ask(c, json_pack("{s:s}", "do", "torch")); /* the parent ran no tensor operation: this must not hang */
    assert_true(json_f64(a, "sum", 0) == 1e8);
    json_decref(a);
    a = ask(c, json_pack("{s:s}", "do", "fds"));
    assert_true(json_array_size(json_object_get(a, "fds")) <= 5); /* 0-3, and the listing's own */
    json_decref(a);
    assert_null(ask(c, json_pack("{s:s,s:i}", "do", "exit", "code", 7)));
    end = end_of(c);
    assert_int_equal(end.why, PROC_EXITED);
    assert_int_equal(end.code, 7);
    buf_free(&end.output);
    child_free(c);
}

/* How many processes the kernel has killed because memory was short; -1: it does not say. */
static long oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    char name[64];
    long n, found = -1;

    while (f && found < 0 && fscanf(f, "%63s %ld", name, &n) == 2)
        found = strcmp(name, "oom_kill") ? -1 : n;
    if (f)
        fclose(f);
    return found;
}

static void test_ends(void **state)
{
    struct child *c = spawn_child(NULL, 0);
    struct child_end end;
    long kills;
    struct err e = ERR_INIT;
    (void)state;

    assert_null(ask(c, json_pack("{s:s}", "do", "abort")));
    end = end_of(c);
    assert_int_equal(end.why, PROC_SIGNALED);
    assert_int_equal(end.signal, SIGABRT);
    assert_false(end.outside);
    buf_free(&end.output);
    child_free(c);

    c = spawn_child(NULL, 0);
    assert_int_equal(child_wait(c, now_s() + 0.05, NULL, &e), -1); /* still there */
    child_kill(c);
    end = end_of(c);
    assert_int_equal(end.why, PROC_STOPPED);
    buf_free(&end.output);
    child_free(c);

    for (int i = 0; i < 8; i++) { /* however early: on its way into the jail, or just inside */
        c = spawn_child(NULL, 0);
        usleep((useconds_t)i * 500);
        child_kill(c);
        end = end_of(c);
        assert_int_equal(end.why, PROC_STOPPED);
        assert_false(end.outside);
        buf_free(&end.output);
        child_free(c);
    }

    kills = oom_kills();
    c = spawn_child(NULL, 0); /* as the kernel does when the machine's memory is full, but it says that it did not */
    kill(c->pid, SIGKILL);
    end = end_of(c);
    assert_int_equal(end.why, PROC_SIGNALED);
    assert_true(end.outside == (!(jail_probe()->held & JAIL_CGROUP_MEMORY) && (kills < 0 || oom_kills() != kills)));
    buf_free(&end.output);
    child_free(c);

    c = spawn_child(NULL, 0); /* the judge closing its end is the normal end */
    shutdown(c->fd, SHUT_RDWR);
    end = end_of(c);
    assert_int_equal(end.why, PROC_EXITED);
    assert_int_equal(end.code, 0);
    buf_free(&end.output);
    child_free(c);
}

/* What a child has had of the machine's memory is known while it lives and when it is gone, and is not what it has
 * now. */
static void test_peak(void **state)
{
    const size_t mib = (size_t)1 << 20;
    struct jail_spec jail = {.memory_bytes = 600 * mib};
    struct child *c = spawn_child(&jail, 0), *idle = spawn_child(&jail, 0);
    struct child_end end;
    json_t *a;

    (void)state;
    json_decref(ask(idle, json_pack("{s:s}", "do", "echo")));
    a = ask(c, json_pack("{s:s,s:s}", "do", "exec", "code", "import time\nx = bytearray(b'1') * (300 << 20)\n"
                                                            "time.sleep(0.3)\n"
                         "del x\nvalue = 0"));
    assert_non_null(a);
    json_decref(a);
    child_kill(c);
    end = end_of(c);
    assert_in_range(end.peak, 300 * mib, 450 * mib);
    buf_free(&end.output);
    child_free(c);
    child_kill(idle);
    end = end_of(idle);
    assert_in_range(end.peak, 0, 150 * mib);
    buf_free(&end.output);
    child_free(idle);
}

static void test_output(void **state)
{
    struct child *c = spawn_child(NULL, 1000);
    struct child_end end;
    json_t *a = ask(c, json_pack("{s:s,s:i}", "do", "print", "n", 2000000)); /* more than a pipe holds */
    (void)state;

    assert_non_null(a);
    json_decref(a);
    child_kill(c);
    end = end_of(c);
    assert_int_equal(end.output.n, 1000);
    assert_true(end.output.cut);
    buf_free(&end.output);
    child_free(c);
}

/* Python in the child; true if it raised. The value of 'value' comes back as its repr. */
static bool raises(struct child *c, const char *code, char *value, size_t n)
{
    json_t *a = ask(c, json_pack("{s:s,s:s}", "do", "exec", "code", code));
    bool ok;

    assert_non_null(a);
    ok = json_flag(a, "ok", false);
    if (value)
        snprintf(value, n, "%s", json_str(a, "value", ""));
    if (!ok)
        print_message("  %s\n", json_str(a, "error", ""));
    json_decref(a);
    return !ok;
}

static void test_jail_from_inside(void **state)
{
    struct child *c;
    char v[256];
    (void)state;

    if (!jail_probe()->enough)
        skip();
    c = spawn_child(NULL, 0);
    assert_true(raises(c, "import socket; socket.socket(socket.AF_INET)", NULL, 0));
    assert_true(raises(c, "import subprocess; subprocess.run(['/bin/true'])", NULL, 0));
    assert_true(raises(c, "import os; os.listdir(os.path.expanduser('~root'))+os.listdir('/home')", NULL, 0));
    assert_true(raises(c, "open('/usr/x', 'w')", NULL, 0));
    assert_true(raises(c, "open('/etc/shadow')", NULL, 0));
    assert_true(raises(c, "import ctypes\nif ctypes.CDLL(None, use_errno=True).ptrace(16, 1, 0, 0) < 0: raise "
                          "OSError(ctypes.get_errno())", NULL, 0));
    assert_true(raises(c, "import ctypes\nif ctypes.CDLL(None, use_errno=True).unshare(0x10000000) < 0: raise "
                          "OSError(ctypes.get_errno())", NULL, 0));
    assert_true(raises(c, "open('/tmp/big','wb').write(b'x' * (100 << 20))", NULL, 0));
    assert_true(raises(c, "open('/proc/1/mem','rb').read(1)", NULL, 0));
    assert_false(raises(c, "open('/tmp/a','w').write('x'); import os; value = os.listdir('/tmp')", v, sizeof v));
    assert_false(raises(c, "import os; value = [os.getppid(), max(int(p) for p in os.listdir('/proc') if p.isdigit()) "
                           "< 9]", v, sizeof v));
    assert_string_equal(v, "[0, True]");
    assert_false(raises(c, "import os; value = os.environ.get('HOME')", v, sizeof v));
    assert_string_equal(v, "'/tmp'");
    assert_false(raises(c, "import threading; t = threading.Thread(target=lambda: None); t.start(); t.join()",
                        NULL, 0));
    child_free(c);
    c = spawn_child(NULL, 0); /* a private /tmp: nothing is left of the last one's */
    assert_false(raises(c, "import os; value = os.listdir('/tmp')", v, sizeof v));
    assert_true(strcmp(v, "['a']") != 0);
    child_free(c);
}

/* Only who says so may start programs, and only those that its jail shows. */
static void test_a_role_that_compiles(void **state)
{
    struct child_spec s = {.role = "selftest", .may_exec = true};
    struct child *c;
    struct err e = ERR_INIT;
    char v[256];
    (void)state;

    if (!jail_probe()->enough)
        skip();
    if (forkserver_spawn(fs, &s, &c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_false(raises(c,
                        "import subprocess; value = subprocess.run(['/bin/sh', '-c', 'echo 5 > /tmp/x; cat /tmp/x'], "
                           "capture_output=True, check=True).stdout", v, sizeof v));
    assert_string_equal(v, "b'5\\n'");
    assert_true(raises(c, "import subprocess; subprocess.run(['/bin/sh', '-c', 'echo 5 > /usr/x'], check=True)",
                       NULL, 0));
    assert_true(raises(c, "import socket; socket.socket(socket.AF_INET)", NULL, 0));
    child_free(c);
}

static void test_bombs(void **state)
{
    struct jail_spec j = {.memory_bytes = 300u << 20, .pids = 32};
    struct child *c, *other = spawn_child(NULL, 0);
    struct child_end end;
    json_t *a;
    (void)state;

    if (!jail_probe()->enough)
        skip();
    c = spawn_child(&j, 0);
    assert_null(ask(c, json_pack("{s:s}", "do", "eat")));
    end = end_of(c);
    assert_int_equal(end.why, PROC_MEMORY);
    assert_false(end.outside);
    buf_free(&end.output);
    child_free(c);
    c = spawn_child(&j, 0);
    a = ask(c, json_pack("{s:s,s:s}", "do", "exec", "code", "import os\nwhile True:\n  if os.fork() == 0:\n"
                                                            "    import time; time.sleep(1000)"));
    if (a) /* the limit is an exception in the child that reached it */
        json_decref(a);
    child_kill(c);
    end = end_of(c);
    buf_free(&end.output);
    child_free(c);
    a = ask(other, json_pack("{s:s}", "do", "echo")); /* nobody else notices */
    assert_non_null(a);
    json_decref(a);
    /* and who kills itself did that itself, although the kernel has killed somebody in its time */
    assert_null(ask(other, json_pack("{s:s,s:s}", "do", "exec", "code", "import os\nos.kill(os.getpid(), 9)")));
    end = end_of(other);
    assert_int_equal(end.why, PROC_SIGNALED);
    assert_int_equal(end.signal, SIGKILL);
    if (jail_probe()->held & JAIL_CGROUP_MEMORY)
        assert_false(end.outside);
    buf_free(&end.output);
    child_free(other);
}

static void *churn(void *arg)
{
    for (int i = 0; i < 5; i++) {
        struct child *c = spawn_child(NULL, 0);
        json_t *a = ask(c, json_pack("{s:s}", "do", "echo"));
        *(int *)arg += a != NULL;
        json_decref(a);
        child_free(c);
    }
    return NULL;
}

static void test_threads_and_speed(void **state)
{
    pthread_t t[4];
    int n[4] = {0};
    double best = 1e9, sum = 0, start_s;
    (void)state;

    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, &n[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(n[0] + n[1] + n[2] + n[3], 20);
    start_s = now_s();
    for (int i = 0; i < 20; i++) {
        struct child *c = spawn_child(NULL, 0);
        json_t *a = ask(c, json_pack("{s:s}", "do", "echo"));
        assert_non_null(a);
        json_decref(a);
        sum += c->spawn_s;
        if (c->spawn_s < best)
            best = c->spawn_s;
        child_free(c);
    }
    print_message("spawn %.1f ms (best %.1f), spawn + echo + kill %.1f ms\n", sum / 20 * 1e3, best * 1e3,
                  (now_s() - start_s) / 20 * 1e3);
}

static void test_bad_role(void **state)
{
    struct child_spec s = {.role = "nobody"};
    struct child *c;
    struct err e = ERR_INIT;
    (void)state;

    assert_int_equal(forkserver_spawn(fs, &s, &c, &e), -1);
    assert_non_null(strstr(e.msg, "nobody"));
    assert_true(forkserver_alive(fs));
}

static int open_files(void)
{
    char **names;
    size_t n;

    assert_int_equal(dir_list("/proc/self/fd", &names, &n, NULL), 0);
    names_free(names, n);
    return (int)n;
}

/* A process that has no descriptors left says so, and loses none of those that it has. */
static void test_no_descriptors_left(void **state)
{
    struct child_spec s = {.role = "selftest"};
    struct rlimit old, low;
    struct child *c;
    struct err e = ERR_INIT;
    int filler[4096], n = 0, before, fd;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        filler[n++] = fd;
    close(filler[--n]);
    close(filler[--n]);
    close(filler[--n]); /* enough for the socket, too few for the pipe */
    before = open_files();
    assert_int_equal(forkserver_spawn(fs, &s, &c, &e), -1);
    assert_non_null(strstr(e.msg, "pipe"));
    assert_int_equal(open_files(), before);
    while (n)
        close(filler[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void test_bad_python(void **state)
{
    struct forkserver_spec s = {.python = "/bin/false", .no_jail = true};
    struct forkserver *x;
    struct err e = ERR_INIT;
    (void)state;

    assert_int_equal(forkserver_start(&s, &x, &e), -1);
    assert_non_null(strstr(e.msg, "did not start"));
}

static const char asks_modules[] = "import sys, torch\n"
                                   "value = [m in sys.modules for m in ('torch._dynamo', 'torch._inductor.compile_fx')"
                                   "], "
                                   "'cpp_extension' in str(sys.modules.get('torch.utils.cpp_extension')), "
                                   "torch.cuda.is_initialized(), __import__('threading').active_count()";

/* It is not waited for; what compilers need is there when a child is, and nothing of a device was touched. */
static void test_a_server_for_compilers(void **state)
{
    struct forkserver_spec s = {.no_jail = !jail_probe()->enough, .compiles = true};
    struct child_spec kind = {.role = "selftest"};
    struct forkserver *x;
    struct child *c;
    struct err e = ERR_INIT;
    double t0 = now_s();
    json_t *a;

    (void)state;
    assert_int_equal(forkserver_launch(&s, &x, &e), 0);
    assert_true(now_s() - t0 < 1 && forkserver_alive(x));
    forkserver_stop(x); /* nor does its end wait for what it imports */
    assert_int_equal(forkserver_launch(&s, &x, &e), 0);
    assert_true(now_s() - t0 < 2);
    if (forkserver_spawn(x, &kind, &c, &e) < 0)
        fail_msg("%s", e.msg);
    a = ask(c, json_pack("{s:s,s:s}", "do", "exec", "code", asks_modules));
    assert_string_equal(json_str(a, "value", ""), "([True, True], False, False, 1)");
    json_decref(a);
    child_free(c);
    forkserver_stop(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_and_exit), cmocka_unit_test(test_ends),  cmocka_unit_test(test_peak),
        cmocka_unit_test(test_output), cmocka_unit_test(test_jail_from_inside),
        cmocka_unit_test(test_a_role_that_compiles), cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_threads_and_speed), cmocka_unit_test(test_no_descriptors_left),
        cmocka_unit_test(test_bad_role),      cmocka_unit_test(test_bad_python),
        cmocka_unit_test(test_a_server_for_compilers),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
