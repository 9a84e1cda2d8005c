/* mcjail.c - process 1 of a jail: carries out the plan's outer half, runs the program (or keeps the namespaces open
 * for jail_enter), reaps orphans, and reports. Started by jail_start only, with descriptors 0-2 for the program,
 * 3 = the plan, 4 = the status socket. When the other end of 4 closes, whoever wanted us is gone: everything ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "proc/jail_apply.h"

#define PLAN_FD 3
#define STATUS_FD 4

extern char **environ;

static void mcjail_report_error(const struct err *e)
{
    dprintf(STATUS_FD, "error %s\n", e->msg);
}

/* Reads the whole plan from its descriptor. */
static int mcjail_read_plan(struct buf *plan)
{
    char chunk[4096];
    ssize_t n;
    off_t at = 0;

    while ((n = pread(PLAN_FD, chunk, sizeof chunk, at)) > 0) {
        buf_add(plan, chunk, (size_t)n);
        at += n;
    }
    close(PLAN_FD);
    return n < 0 || plan->cut ? -1 : 0;
}

/* The program's side of the fork. STATUS_FD is close-on-exec: the program cannot write reports. */
static void mcjail_run_program(const struct buf *plan, char **argv)
{
    struct err e = ERR_INIT;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (jail_inner(plan->p, plan->n, &e) == 0) {
        execvp(argv[0], argv);
        err_sys(&e, "cannot run '%s'", argv[0]);
    }
    mcjail_report_error(&e);
    _exit(127);
}

/* Ends everything in the jail, then itself with that code. */
static void mcjail_finish(int code)
{
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(code);
}

/* Reaps until the program ends or the other end of the status socket goes away. */
static void mcjail_watch(pid_t program, int sigfd)
{
    struct pollfd p[2] = {{.fd = sigfd, .events = POLLIN}, {.fd = STATUS_FD, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo si;
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == program) {
                dprintf(STATUS_FD, "exit %d\n", status);
                mcjail_finish(0);
            }
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            mcjail_finish(1);
        if (p[1].revents)
            mcjail_finish(1);
        if (p[0].revents && read(sigfd, &si, sizeof si) < 0 && errno != EINTR && errno != EAGAIN)
            mcjail_finish(1);
    }
}

/* mcjail: reads a plan from its descriptor, builds the jail and runs the program in it. Exit 126: the jail failed. */
int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct buf plan;
    sigset_t chld;
    pid_t program = -1;
    int sigfd;

    fcntl(STATUS_FD, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    buf_init(&plan, 1 << 20);
    if (mcjail_read_plan(&plan) < 0 || jail_outer(plan.p, plan.n, &e) < 0) {
        if (!e.msg[0])
            err_set(&e, ERR_ENV, "jail: cannot read the plan");
        mcjail_report_error(&e);
        return 126;
    }
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (argc > 1) {
        signal(SIGPIPE, SIG_DFL);
        program = fork();
        if (program == 0)
            mcjail_run_program(&plan, argv + 1);
        signal(SIGPIPE, SIG_IGN);
        if (program < 0) {
            err_sys(&e, "jail: cannot fork");
            mcjail_report_error(&e);
            return 126;
        }
        close(0);
        close(1);
        close(2);
    }
    dprintf(STATUS_FD, "ready\n");
    mcjail_watch(program, sigfd);
}
