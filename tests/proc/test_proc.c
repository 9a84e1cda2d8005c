/* test_proc.c - programs: results, caps, deadlines, survivors, jails; with and without root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "proc/jail_apply.h"
#include "proc/proc.h"

static struct proc_result run_in(const char *script, const struct jail_spec *jail, const char *in, double timeout)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct proc_spec s = {.argv = argv, .in = in, .n_in = in ? strlen(in) : 0, .timeout_s = timeout, .jail = jail};
    struct proc_result r;
    struct err e = ERR_INIT;

    if (proc_run(&s, &r, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

static void test_results(void **state)
{
    struct proc_result r = run_in("cat; echo bad >&2; exit 3", NULL, "hello", 10);
    (void)state;

    assert_int_equal(r.why, PROC_EXITED);
    assert_int_equal(r.code, 3);
    assert_string_equal(r.out.p, "hello");
    assert_string_equal(r.err.p, "bad\n");
    proc_result_free(&r);
    r = run_in("kill -SEGV $$", NULL, NULL, 10);
    assert_int_equal(r.why, PROC_SIGNALED);
    assert_int_equal(r.signal, SIGSEGV);
    proc_result_free(&r);
    r = run_in("exec 0<&-; sleep 0.1", NULL, "nobody reads this", 10); /* and no SIGPIPE for us */
    assert_int_equal(r.why, PROC_EXITED);
    proc_result_free(&r);
}

static void test_missing_program(void **state)
{
    char *argv[] = {"no-such-program-here", NULL};
    struct jail_spec j = {0};
    struct proc_spec s = {.argv = argv, .timeout_s = 10};
    struct proc_result r;
    struct err e = ERR_INIT;
    (void)state;

    assert_int_equal(proc_run(&s, &r, &e), -1);
    assert_non_null(strstr(e.msg, "no-such-program-here"));
    if (jail_probe()->enough) {
        s.jail = &j;
        e.msg[0] = 0;
        assert_int_equal(proc_run(&s, &r, &e), -1);
        assert_non_null(strstr(e.msg, "no-such-program-here"));
    }
}

static void test_environment(void **state)
{
    struct proc_result r;
    (void)state;

    setenv("MUSACODER_SECRET", "x", 1);
    r = run_in("env", NULL, NULL, 10);
    assert_null(strstr(r.out.p, "MUSACODER_SECRET"));
    assert_non_null(strstr(r.out.p, "HOME=/tmp"));
    proc_result_free(&r);
}

/* There and not a zombie that nobody has reaped yet. */
static bool runs(int pid)
{
    char path[64], state = 'Z';
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!(f = fopen(path, "re")))
        return false;
    if (fscanf(f, "%*d %*s %c", &state) != 1)
        state = 'Z';
    fclose(f);
    return state != 'Z';
}

static void test_timeout_and_survivors(void **state)
{
    struct proc_result r;
    struct jail_spec j = {0};
    double t = now_s();
    (void)state;

    r = run_in("sleep 60 & sleep 60", NULL, NULL, 0.3);
    assert_int_equal(r.why, PROC_TIMEOUT);
    assert_true(now_s() - t < 3);
    proc_result_free(&r);
    r = run_in("sleep 60 & echo $!", NULL, NULL, 10); /* ends at once; what it left is killed */
    assert_int_equal(r.why, PROC_EXITED);
    for (int i = 0; i < 40 && runs(atoi(r.out.p)); i++)
        usleep(50000);
    assert_false(runs(atoi(r.out.p)));
    proc_result_free(&r);
    if (jail_probe()->enough) {
        r = run_in("setsid sleep 60 & sleep 60", &j, NULL, 0.3);
        assert_int_equal(r.why, PROC_TIMEOUT);
        proc_result_free(&r);
    }
    assert_true(now_s() - t < 5);
}

static void test_output_caps(void **state)
{
    char *argv[] = {"sh", "-c", "yes | head -c 3000000", NULL};
    struct proc_spec s = {.argv = argv, .max_out = 1000, .timeout_s = 20};
    struct proc_result r;
    struct err e = ERR_INIT;
    (void)state;

    assert_int_equal(proc_run(&s, &r, &e), 0);
    assert_int_equal(r.why, PROC_EXITED);
    assert_int_equal(r.out.n, 1000);
    assert_true(r.out.cut);
    proc_result_free(&r);
    argv[2] = "yes";
    s.output_kills = true;
    assert_int_equal(proc_run(&s, &r, &e), 0);
    assert_int_equal(r.why, PROC_OUTPUT);
    proc_result_free(&r);
}

static void test_pool(void **state)
{
    struct proc *ps[4];
    struct err e = ERR_INIT;
    double t = now_s();
    int seen = 0;
    (void)state;

    for (int i = 0; i < 4; i++) {
        char script[64], *argv[] = {"sh", "-c", script, NULL};
        struct proc_spec s = {.argv = argv, .timeout_s = 10};
        snprintf(script, sizeof script, "sleep 0.%d; exit %d", 4 - i, i);
        assert_int_equal(proc_start(&s, &ps[i], &e), 0);
    }
    for (int k = 0; k < 4; k++) {
        struct proc_result r;
        int i = proc_poll(ps, 4, 10);
        assert_true(i >= 0);
        assert_int_equal(proc_end(ps[i], &r, &e), 0);
        assert_int_equal(r.code, i);
        proc_result_free(&r);
        ps[i] = NULL;
        seen |= 1 << i;
    }
    assert_int_equal(seen, 15);
    assert_true(now_s() - t < 3);
}

/* Runs a script in a jail that must answer "ok": each line names the thing it tries. */
static void expect_ok(const char *script, const struct jail_spec *j)
{
    struct proc_result r = run_in(script, j, NULL, 20);

    if (r.why != PROC_EXITED || strcmp(r.out.p, "ok\n"))
        fail_msg("%s\n-> %s: %s%s", script, proc_result_text(&r), r.out.p, r.err.p);
    proc_result_free(&r);
}

static void test_jail_sees_little(void **state)
{
    struct jail_spec j = {0};
    (void)state;

    if (!jail_probe()->enough)
        skip();
    expect_ok("[ \"$(ls -A /tmp)\" = '' ] && echo ok", &j);
    expect_ok("[ ! -e /root ] && [ ! -e /home ] && [ ! -e /etc/shadow ] && [ ! -e /sys/kernel ] && echo ok", &j);
    expect_ok("touch /usr/x 2>/dev/null || touch /x 2>/dev/null || touch /etc/x 2>/dev/null || echo ok", &j);
    expect_ok("touch /tmp/x && [ \"$(ls /tmp)\" = x ] && echo ok", &j);
    expect_ok("[ ! -e /proc/kcore ] && [ ! -e /proc/cmdline ] && echo ok", &j);
    expect_ok("mount -t tmpfs x /tmp 2>/dev/null || unshare -U true 2>/dev/null || echo ok", &j);
    expect_ok("[ \"$(ls /proc | grep -c '^[0-9]')\" -le 4 ] && echo ok", &j);
    expect_ok("head -c 4 /dev/urandom >/dev/null && echo x >/dev/null && echo ok", &j);
    expect_ok("kill -9 1 2>/dev/null || echo ok", &j);
    expect_ok("grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'CapBnd:.0000000000000000' /proc/self/status && "
              "grep -q 'Seccomp:.2' /proc/self/status && echo ok", &j);
    expect_ok("head -c 100000000 /dev/zero >/tmp/big 2>/dev/null || echo ok", &j);
}

static atomic_bool stop_allocating;

static void *allocate(void *arg)
{
    static _Thread_local void *kept[4096];
    (void)arg;

    while (!stop_allocating) { /* more than a thread's own store: the part under the lock has work */
        for (int i = 0; i < 4096; i++)
            kept[i] = malloc(16u << i % 8);
        for (int i = 0; i < 4096; i++)
            free(kept[i]);
    }
    return NULL;
}

/* The probe is made by processes with threads, whose allocator may be locked at any time. */
static void test_seccomp_probe_beside_threads(void **state)
{
    pthread_t threads[4];
    double t = now_s();
    int n = 0;
    (void)state;

    stop_allocating = false;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, NULL), 0);
    alarm(60);
    for (; n < 300 && now_s() - t < 5; n++)
        assert_true(jail_seccomp_holds() == !!(jail_probe()->held & JAIL_SECCOMP));
    alarm(0);
    stop_allocating = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    print_message("%d probes in %.1f s\n", n, now_s() - t);
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0); /* we ourselves stay as we were */
    assert_int_equal(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
}

static void test_jail_folders(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("mcjailtest", &e), *ro, *rw, *file, script[1024];
    const char *ros[2] = {NULL, NULL}, *rws[2] = {NULL, NULL};
    struct jail_spec j = {.ro = ros, .rw = rws};
    struct buf b;
    (void)state;

    if (!jail_probe()->enough)
        skip();
    ro = path_join(dir, "ro");
    rw = path_join(dir, "rw");
    assert_int_equal(dir_make(ro, &e) | dir_make(rw, &e), 0);
    file = path_join(ro, "in");
    assert_int_equal(file_write(file, "data\n", 5, &e), 0);
    free(file);
    ros[0] = ro;
    rws[0] = rw;
    snprintf(script, sizeof script, "cat %s/in >%s/out && { touch %s/x 2>/dev/null || echo ok; }", ro, rw, ro);
    expect_ok(script, &j);
    file = path_join(rw, "out");
    buf_init(&b, 100);
    assert_int_equal(file_read(file, &b, &e), 0);
    assert_string_equal(b.p, "data\n");
    buf_free(&b);
    free(file);
    assert_int_equal(dir_remove(dir, &e), 0);
    free(ro);
    free(rw);
    free(dir);
}

static void test_jail_limits(void **state)
{
    struct jail_spec j = {.memory_bytes = 64 << 20, .tmp_bytes = 200 << 20, .pids = 16};
    struct proc_result r;
    double t = now_s();
    (void)state;

    if (!jail_probe()->enough)
        skip();
    r = run_in("head -c 300000000 /dev/zero | tail >/dev/null; sleep 0.2; exit 1", &j, NULL, 20);
    assert_true(r.why == PROC_MEMORY);
    proc_result_free(&r);
    r = run_in("b() { b | b & }; b; sleep 1", &j, NULL, 5); /* a fork bomb */
    proc_result_free(&r);
    assert_true(now_s() - t < 12);
}

static void test_plan_text(void **state)
{
    struct jail_layers l = {.held = JAIL_NAMESPACES | JAIL_ROOT | JAIL_LANDLOCK | JAIL_SECCOMP, .landlock_abi = 2};
    struct jail_spec s = {.pids = 7, .cpu_s = 9, .no_exec = true};
    const char *bad[] = {"relative", NULL}, *tab[] = {"/a\tb", NULL};
    struct err e = ERR_INIT;
    struct buf b;
    (void)state;

    buf_init(&b, 1 << 16);
    assert_int_equal(jail_plan(&s, &l, &b, &e), 0);
    assert_non_null(strstr(b.p, "ns\tmount,pid,net,ipc,uts\n"));
    assert_non_null(strstr(b.p, "\nseal\ncwd\t/tmp\n"));
    assert_non_null(strstr(b.p, "limit\tcpu\t9\nlimit\tnproc\t7\nuid\t"));
    assert_non_null(strstr(b.p, "caps\nnnp\nlandlock\t2\t/tmp"));
    assert_non_null(strstr(b.p, "seccomp\tnoexec\n"));
    assert_null(strstr(b.p, "proc\t/proc")); /* that layer is not held */
    l.held = JAIL_NAMESPACES | JAIL_USERNS;
    buf_clear(&b);
    assert_int_equal(jail_plan(&s, &l, &b, &e), 0);
    assert_non_null(strstr(b.p, ",user\n"));
    assert_null(strstr(b.p, "\nuid\t"));
    s.ro = bad;
    assert_int_equal(jail_plan(&s, &l, &b, &e), -1);
    s.ro = tab;
    assert_int_equal(jail_plan(&s, &l, &b, &e), -1);
    l.held = 0;
    assert_int_equal(jail_plan(&s, &l, &b, &e), -1);
    buf_free(&b);
}

static void report_speed(void **state)
{
    char *argv[] = {"true", NULL};
    struct jail_spec j = {0};
    struct proc_spec s = {.argv = argv, .timeout_s = 10};
    struct err e = ERR_INIT;
    (void)state;

    for (int jailed = 0; jailed < 2; jailed++) {
        double t = now_s();
        if (jailed && !jail_probe()->enough)
            break;
        s.jail = jailed ? &j : NULL;
        for (int i = 0; i < 20; i++) {
            struct proc_result r;
            assert_int_equal(proc_run(&s, &r, &e), 0);
            assert_int_equal(r.why, PROC_EXITED);
            proc_result_free(&r);
        }
        print_message("proc_run %s: %.1f ms\n", jailed ? "jailed" : "plain", (now_s() - t) / 20 * 1e3);
    }
}

/* ---- a processor that others want as well ---- */

#define WORK_S "0.3"

/* As a program: works for so many seconds of a processor. */
static int burn(double seconds)
{
    struct timespec t;

    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while ((double)t.tv_sec + (double)t.tv_nsec * 1e-9 < seconds);
    return 0;
}

/* Works for ever on the processors of its parent. */
static pid_t start_rival(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return burn(1e9);
}

/* Binds the caller, and what it starts, to the first processor that it may use. *was: for sched_setaffinity. */
static void bind_to_one(cpu_set_t *was)
{
    cpu_set_t one;
    int first = 0;

    sched_getaffinity(0, sizeof *was, was);
    while (!CPU_ISSET(first, was))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static enum proc_why end_of_burning(const char *seconds, double timeout_s)
{
    char *self = realpath("/proc/self/exe", NULL);
    char *argv[] = {self, "burn", (char *)seconds, NULL};
    struct proc_spec spec = {.argv = argv, .timeout_s = timeout_s};
    struct err e = ERR_INIT;
    struct proc_result r;
    enum proc_why why;

    assert_int_equal(proc_run(&spec, &r, &e), 0);
    why = r.why;
    proc_result_free(&r);
    free(self);
    return why;
}

/* Seconds in which a program waits for a processor are none of its limit's; one that works on is ended all the same. */
static void test_rivals(void **s)
{
    cpu_set_t was;
    pid_t rivals[3];

    (void)s;
    bind_to_one(&was);
    for (int i = 0; i < 3; i++)
        rivals[i] = start_rival();
    assert_int_equal(end_of_burning(WORK_S, 0.6), PROC_EXITED); /* 1.2 s by the wall's clock */
    assert_int_equal(end_of_burning("1e9", 0.2), PROC_TIMEOUT);
    for (int i = 0; i < 3; i++) {
        kill(rivals[i], SIGKILL);
        waitpid(rivals[i], NULL, 0);
    }
    sched_setaffinity(0, sizeof was, &was);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),          cmocka_unit_test(test_missing_program),
        cmocka_unit_test(test_environment),      cmocka_unit_test(test_timeout_and_survivors),
        cmocka_unit_test(test_output_caps),      cmocka_unit_test(test_pool),
        cmocka_unit_test(test_plan_text),        cmocka_unit_test(test_jail_sees_little),
        cmocka_unit_test(test_jail_folders),     cmocka_unit_test(test_jail_limits),
        cmocka_unit_test(test_seccomp_probe_beside_threads), cmocka_unit_test(test_rivals),
        cmocka_unit_test(report_speed),
    };

    if (argc == 3 && !strcmp(argv[1], "burn"))
        return burn(atof(argv[2]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
