/* test_run_clock.c - run time: waiting for a processor is left out, work and sleep are counted. Every claim is about
 * what the kernel counted, so that it holds on a busy machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/proc.h"
#include "proc/run_clock.h"

#define RIVALS 3
#define WORK_S 0.15 /* of a processor's time */

static void test_alone(void **state)
{
    (void)state;
    assert_true(run_clock_alone(10, 0, 0, 0, 2) == 10);   /* it slept */
    assert_true(run_clock_alone(10, 9, 1, 1, 2) == 1);    /* it ran a second, and waited for more */
    assert_true(run_clock_alone(10, 40, 4, 3, 2) == 3);   /* threads that wait at once: the busiest one's work */
    assert_true(run_clock_alone(10, 600, 20, 0.5, 2) == 10); /* 40 threads of its own on two processors: no rivals */
    assert_true(run_clock_alone(1, 0, 8, 1.1, 2) == 1);   /* never more than passed */
}

/* A child on the first processor that the parent may use: it works until it is killed, or sleeps. */
static pid_t start_child(bool works)
{
    cpu_set_t may, one;
    volatile unsigned n = 0;
    pid_t pid = fork();
    int first = 0;

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_getaffinity(0, sizeof may, &may);
    while (!CPU_ISSET(first, &may))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
    while (works)
        n++;
    for (;;)
        pause();
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static double cpu_of(pid_t pid)
{
    struct timespec t;
    clockid_t id;

    assert_int_equal(clock_getcpuclockid(pid, &id), 0);
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Looks at pid until it has had WORK_S of a processor. */
static void watch(struct run_clock *c, pid_t pid)
{
    while (cpu_of(pid) < WORK_S) {
        usleep(5000);
        run_clock_look(c);
    }
    run_clock_look(c);
}

static void test_rivals_are_left_out(void **state)
{
    struct run_clock c = {0};
    pid_t rivals[RIVALS], pid;

    (void)state;
    for (int i = 0; i < RIVALS; i++)
        rivals[i] = start_child(true);
    pid = start_child(true);
    run_clock_start(&c, (pid_t[]){pid, 0});
    watch(&c, pid);
    end_child(pid);
    for (int i = 0; i < RIVALS; i++)
        end_child(rivals[i]);
    assert_true(c.wall_s > 2 * c.run_s); /* it had a quarter of a processor at most */
    assert_true(c.run_s > 0.5 * WORK_S && c.run_s < 2 * WORK_S);
    run_clock_end(&c);
}

/* What is in a jail is a grandchild: the fork server's child waits for it. */
static void test_descendants_count(void **state)
{
    struct run_clock c = {0};
    int told[2];
    pid_t outer, inner = 0;

    (void)state;
    assert_int_equal(pipe(told), 0);
    if ((outer = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        inner = start_child(true);
        if (write(told[1], &inner, sizeof inner) != sizeof inner)
            _exit(1);
        waitpid(inner, NULL, 0);
        _exit(0);
    }
    assert_int_equal(read(told[0], &inner, sizeof inner), sizeof inner);
    run_clock_start(&c, (pid_t[]){0, outer});
    watch(&c, inner);
    assert_true(c.n_threads >= 3); /* the caller's, the outer one's, the inner one's */
    assert_true(c.run_s > 0.5 * WORK_S);
    kill(inner, SIGKILL);
    waitpid(outer, NULL, 0);
    run_clock_end(&c);
    close(told[0]);
    close(told[1]);
}

static void test_poll(void **state)
{
    struct run_clock c = {0};
    pid_t sleeper = start_child(false);
    int told[2];
    double ran;

    (void)state;
    assert_int_equal(pipe(told), 0);
    assert_int_equal(run_clock_poll(&c, (pid_t[]){sleeper, 0}, told[0], 0.2, &ran), 0);
    assert_true(ran >= 0.2); /* a sleep is its own time, and comes to an end */
    run_clock_end(&c);
    assert_int_equal(write(told[1], "x", 1), 1);
    assert_int_equal(run_clock_poll(&c, (pid_t[]){sleeper, 0}, told[0], 30, &ran), 1);
    assert_true(ran <= RUN_CLOCK_SHORT && c.n_threads == 0); /* nobody was looked at */
    end_child(sleeper);
    close(told[0]);
    close(told[1]);
}

#define LIMIT_S 1.0
#define STOP_S 1.4

struct stop { /* shared: by now_s() */
    double from, until, begun, ended;
};

/* Waits LIMIT_S for an answer that does not come. Did it end for that? */
static bool wait_in_vain(void)
{
    struct run_clock c = {0};
    int told[2];
    double ran;

    return pipe(told) == 0 && run_clock_poll(&c, (pid_t[]){0, 0}, told[0], LIMIT_S, &ran) == 0 && ran >= LIMIT_S;
}

/* Runs a program that does not end. */
static bool run_in_vain(void)
{
    struct proc_spec s = {.argv = (char *[]){"sleep", "60", NULL}, .timeout_s = LIMIT_S};
    struct proc_result r;

    return proc_run(&s, &r, NULL) == 0 && r.why == PROC_TIMEOUT;
}

/* A process that is stopped as a whole, as a paused container is, loses nothing of its limits. */
static void check_stopped(bool (*work)(void))
{
    struct stop *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    pid_t pid;

    do { /* again where the stop came too late */
        *s = (struct stop){0};
        if ((pid = fork()) == 0) {
            s->begun = now_s();
            status = !work();
            s->ended = now_s();
            _exit(status);
        }
        usleep(300000);
        kill(pid, SIGSTOP);
        s->from = now_s();
        usleep((unsigned)(STOP_S * 1e6));
        s->until = now_s();
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    } while (s->begun == 0 || s->begun > s->from || s->ended < s->until);
    assert_int_equal(status, 0);
    assert_true(s->ended - s->begun >= s->until - s->from + 0.9 * LIMIT_S - 0.25);
    munmap(s, sizeof *s);
}

static void test_stopped_processes(void **state)
{
    (void)state;
    check_stopped(wait_in_vain);
    check_stopped(run_in_vain);
    assert_true(run_clock_stopped(0.25, 0.6) == 0 && run_clock_stopped(0.25, 2.25) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_rivals_are_left_out),
        cmocka_unit_test(test_descendants_count),
        cmocka_unit_test(test_poll),
        cmocka_unit_test(test_stopped_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
