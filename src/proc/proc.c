/* proc.c - see proc.h. One struct proc is a little state machine fed by poll(2): input, two outputs, the end. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/run_clock.h"
#include "proc/spawn.h"

#define LATE_S 0.05  /* between two looks at a program whose wall seconds are over */
#define WATCH_S 0.05 /* how often resident memory is looked at where no cgroup does it */

struct proc {
    pid_t pid; /* of the program, or of its mcjail */
    int pidfd, status, in, out, err;
    bool jailed, ended, output_kills;
    struct jail_cgroup cgroup;
    size_t memory_limit; /* for the watch; 0: a cgroup does it, or there is no jail */
    double start, deadline, last_watch, timeout_s; /* deadline: when it is looked whether its time is over; 0: none */
    double stopped_s; /* so long this process was stopped meanwhile */
    char *input;
    size_t n_in, at_in;
    struct buf text; /* what mcjail says */
    enum proc_why killed_for;
    bool killed;
    struct proc_result r;
};

const char *proc_result_text(const struct proc_result *r)
{
    static _Thread_local char text[128];

    switch (r->why) {
    case PROC_EXITED: snprintf(text, sizeof text, "exit code %d", r->code); break;
    case PROC_SIGNALED: snprintf(text, sizeof text, "signal %d (%s)", r->signal, strsignal(r->signal)); break;
    case PROC_TIMEOUT: snprintf(text, sizeof text, "stopped after %.1f s", r->wall_s); break;
    case PROC_OUTPUT: snprintf(text, sizeof text, "stopped: too much output"); break;
    case PROC_MEMORY: snprintf(text, sizeof text, "out of memory"); break;
    case PROC_STOPPED: snprintf(text, sizeof text, "stopped"); break;
    }
    return text;
}

char **proc_env(const char *const *extra, size_t *ret_n)
{
    static const char *const base[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
                                       "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"};
    size_t n = sizeof base / sizeof base[0], n_extra = 0, k;
    char **env;

    while (extra && extra[n_extra])
        n_extra++;
    env = xcalloc(n + n_extra + 1, sizeof *env);
    for (size_t i = 0; i < n_extra; i++)
        env[i] = xstrdup(extra[i]);
    k = n_extra;
    for (size_t i = 0; i < n; i++) { /* what the caller sets is not set twice */
        bool set = false;
        for (size_t j = 0; j < n_extra; j++)
            set |= !strncmp(extra[j], base[i], strcspn(base[i], "=") + 1);
        if (!set)
            env[k++] = xstrdup(base[i]);
    }
    *ret_n = k;
    return env;
}

struct jail_spec proc_jail_compiler(const char *const *ro, const char *const *rw)
{
    return (struct jail_spec){.ro = ro, .rw = rw, .memory_bytes = (size_t)2 << 30, .tmp_bytes = (size_t)256 << 20,
                              .file_bytes = (size_t)256 << 20, .pids = 32};
}

/* Starting ------------------------------------------------------------------------------------------------------ */

/* The program's path by env's PATH; the caller frees; NULL: there is none. */
static char *proc_find_program(const char *name, char *const *env)
{
    const char *path = "/usr/bin:/bin";
    char *copy, *save = NULL, *found = NULL;

    if (strchr(name, '/'))
        return xstrdup(name);
    for (; *env; env++)
        if (!strncmp(*env, "PATH=", 5))
            path = *env + 5;
    copy = xstrdup(path);
    for (char *d = strtok_r(copy, ":", &save); d && !found; d = strtok_r(NULL, ":", &save)) {
        found = path_join(d, name);
        if (access(found, X_OK) < 0) {
            free(found);
            found = NULL;
        }
    }
    free(copy);
    return found;
}

char *proc_find(const char *name)
{
    size_t n;
    char **env = proc_env(NULL, &n), *path = proc_find_program(name, env);

    names_free(env, n);
    return path;
}

/* Starts a program through mcjail, in a control group where that is possible. */
static int proc_start_jailed(struct proc *p, const struct proc_spec *s, char **env, const int stdio[3], struct err *e)
{
    const struct jail_layers *l = jail_probe();
    struct jail_spec spec = *s->jail;
    struct buf plan;
    int rc;

    if (s->cwd)
        spec.cwd = s->cwd;
    buf_init(&plan, 1 << 20);
    rc = jail_plan(&spec, l, &plan, e);
    if (rc == 0) {
        jail_cgroup_make(&p->cgroup, spec.memory_bytes, spec.pids);
        if (!p->cgroup.memory[0])
            p->memory_limit = spec.memory_bytes ? spec.memory_bytes : JAIL_MEMORY;
        rc = jail_start(plan.p, plan.n, s->argv, env, stdio, &p->cgroup, &p->pid, &p->status, e);
        if (rc < 0)
            jail_cgroup_remove(&p->cgroup);
    }
    buf_free(&plan);
    return rc;
}

/* Starts a program without a jail. */
static int proc_start_plain(struct proc *p, const struct proc_spec *s, char **env, const int stdio[3], struct err *e)
{
    struct spawn sp = {.argv = s->argv, .env = env, .cwd = s->cwd, .n_fds = 3, .group = true, .die_with_us = true};
    char *path = proc_find_program(s->argv[0], env);
    int rc;

    if (!path)
        return err_set(e, ERR_ENV, "no program '%s'; install it or check PATH", s->argv[0]);
    memcpy(sp.fds, stdio, 3 * sizeof(int));
    sp.path = path;
    rc = spawn(&sp, &p->pid, e);
    free(path);
    return rc;
}

static void proc_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Pipes for the child's three streams; theirs[] are the child's ends. input: stdin is written, else empty. -1 with
 * errno. */
static int proc_open_pipes(struct proc *p, int theirs[3], bool input)
{
    int a[2], b[2], c[2];

    theirs[0] = theirs[1] = theirs[2] = -1;
    if (input) {
        if (pipe2(a, O_CLOEXEC) < 0)
            return -1;
        theirs[0] = a[0];
        p->in = a[1];
        fcntl(p->in, F_SETFL, O_NONBLOCK);
    } else if ((theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
        return -1;
    }
    if (pipe2(b, O_CLOEXEC) < 0)
        return -1;
    p->out = b[0];
    theirs[1] = b[1];
    if (pipe2(c, O_CLOEXEC) < 0)
        return -1;
    p->err = c[0];
    theirs[2] = c[1];
    fcntl(p->out, F_SETFL, O_NONBLOCK);
    fcntl(p->err, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Closes the descriptors and frees p; the child must have been waited for. */
static void proc_release(struct proc *p)
{
    proc_close_fd(&p->in);
    proc_close_fd(&p->out);
    proc_close_fd(&p->err);
    proc_close_fd(&p->status);
    proc_close_fd(&p->pidfd);
    buf_free(&p->text);
    free(p->input);
    free(p);
}

int proc_start(const struct proc_spec *s, struct proc **ret, struct err *e)
{
    struct proc *p = xcalloc(1, sizeof *p);
    int theirs[3], rc;
    size_t n_env;
    char **env = proc_env(s->env, &n_env);

    p->pidfd = p->status = p->in = p->out = p->err = -1;
    p->jailed = s->jail != NULL;
    p->output_kills = s->output_kills;
    buf_init(&p->text, 4096);
    buf_init(&p->r.out, s->max_out ? s->max_out : 1 << 20);
    buf_init(&p->r.err, s->max_err ? s->max_err : 1 << 20);
    if (s->in) {
        p->input = xmalloc(s->n_in + 1);
        memcpy(p->input, s->in, s->n_in);
        p->n_in = s->n_in;
    }
    p->start = now_s();
    p->timeout_s = s->timeout_s;
    p->deadline = s->timeout_s > 0 ? p->start + s->timeout_s : 0;
    if (proc_open_pipes(p, theirs, s->in != NULL) < 0)
        rc = err_sys(e, "cannot start '%s'", s->argv[0]);
    else
        rc = s->jail ? proc_start_jailed(p, s, env, theirs, e) : proc_start_plain(p, s, env, theirs, e);
    for (int i = 0; i < 3; i++)
        proc_close_fd(&theirs[i]);
    names_free(env, n_env);
    if (rc < 0) {
        buf_free(&p->r.out);
        buf_free(&p->r.err);
        proc_release(p);
        return -1;
    }
    p->pidfd = pidfd_open(p->pid, 0);
    *ret = p;
    return 0;
}

/* Running ------------------------------------------------------------------------------------------------------- */

/* Kills the program and its children, once; 'why' is what will be told. */
static void proc_kill_all(struct proc *p, enum proc_why why)
{
    if (p->killed || p->ended)
        return;
    p->killed = true;
    p->killed_for = why;
    kill(p->jailed ? p->pid : -p->pid, SIGKILL); /* process 1 takes its whole namespace along */
}

void proc_kill(struct proc *p)
{
    proc_kill_all(p, PROC_STOPPED);
}

/* Reads what is there; at the end of the stream *fd is closed and -1. */
static void proc_drain(struct proc *p, int *fd, struct buf *to)
{
    char chunk[65536];
    ssize_t n;

    while (*fd >= 0 && (n = read(*fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        buf_add(to, chunk, (size_t)n);
        if (to->cut && p->output_kills)
            proc_kill_all(p, PROC_OUTPUT);
    }
    if (*fd >= 0 && n == 0)
        proc_close_fd(fd);
}

/* Writes input as far as the pipe takes it; closes it at the end. */
static void proc_feed(struct proc *p)
{
    while (p->in >= 0 && p->at_in < p->n_in) {
        ssize_t n = write(p->in, p->input + p->at_in, p->n_in - p->at_in);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break; /* it does not want the rest */
        p->at_in += (size_t)n;
    }
    proc_close_fd(&p->in);
}

/* Reads mcjail's report; at its end it is parsed. */
static void proc_read_status(struct proc *p)
{
    char chunk[1024];
    ssize_t n = recv(p->status, chunk, sizeof chunk, MSG_DONTWAIT);

    if (n > 0)
        buf_add(&p->text, chunk, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        proc_close_fd(&p->status);
}

/* Kills the program where its resident memory exceeds the limit; once each WATCH_S. */
static void proc_watch_memory(struct proc *p)
{
    double now = now_s();

    if (!p->memory_limit || now - p->last_watch < WATCH_S)
        return;
    p->last_watch = now;
    if (jail_resident(p->pid) > p->memory_limit)
        proc_kill_all(p, PROC_MEMORY);
}

/* Fills v, which has room for five, with what is waited for; returns how many there are. */
static int proc_add_polls(struct proc *p, struct pollfd *v)
{
    int n = 0;

    v[n++] = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
    if (p->status >= 0)
        v[n++] = (struct pollfd){.fd = p->status, .events = POLLIN};
    if (p->out >= 0)
        v[n++] = (struct pollfd){.fd = p->out, .events = POLLIN};
    if (p->err >= 0)
        v[n++] = (struct pollfd){.fd = p->err, .events = POLLIN};
    if (p->in >= 0)
        v[n++] = (struct pollfd){.fd = p->in, .events = POLLOUT};
    return n;
}

/* SIGPIPE would end us when the program closes its input early: it is blocked while we write, then thrown away. */
static void proc_feed_quietly(struct proc *p)
{
    sigset_t pipe_set, old, pending;
    bool was;

    if (p->in < 0)
        return;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    was = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    proc_feed(p);
    if (!was)
        while (sigtimedwait(&pipe_set, NULL, &(struct timespec){0, 0}) > 0)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Is its time over? What it waited for processors is none of it, up to RUN_CLOCK_MOST times its limit. */
static bool proc_is_late(struct proc *p)
{
    double wall = now_s() - p->start - p->stopped_s, left;

    if (p->deadline == 0 || now_s() <= p->deadline)
        return false;
    left = p->timeout_s - run_clock_of(p->pid, wall);
    if (left <= 0 || wall >= RUN_CLOCK_MOST * p->timeout_s)
        return true;
    p->deadline = now_s() + fmax(left, LATE_S);
    return false;
}

/* Moves bytes, looks at the clock and the memory. True when the program has ended. */
static bool proc_step(struct proc *p)
{
    siginfo_t si = {0};

    proc_drain(p, &p->out, &p->r.out);
    proc_drain(p, &p->err, &p->r.err);
    proc_feed_quietly(p);
    if (p->status >= 0)
        proc_read_status(p);
    if (!p->killed && proc_is_late(p))
        proc_kill_all(p, PROC_TIMEOUT);
    proc_watch_memory(p);
    if (!p->ended && waitid(P_PID, (id_t)p->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid == p->pid)
        p->ended = true;
    return p->ended;
}

/* The programs were stopped as long as this process was: that is none of their time. */
static void proc_move_deadlines(struct proc *const *ps, int n, double stopped)
{
    for (int i = 0; i < n && stopped > 0; i++)
        if (ps[i] && ps[i]->deadline > 0)
            ps[i]->deadline += stopped, ps[i]->stopped_s += stopped;
}

/* Waits for one of the descriptors until 'wake', at most a slice: another thread may have seen the Ctrl-C. */
static void proc_wait_slice(struct pollfd *v, int k, double wake, struct proc *const *ps, int n)
{
    double now = now_s(), wait = fmin(fmax(wake - now, 0), 0.25);

    poll(v, (nfds_t)k, wake > now ? (int)(wait * 1000) + 1 : 0);
    proc_move_deadlines(ps, n, run_clock_stopped(wait, now_s() - now));
}

int proc_poll(struct proc *const *ps, int n, double wait_s)
{
    double until = now_s() + wait_s;
    struct pollfd *v = xmalloc(sizeof *v * (size_t)(n > 0 ? n : 1) * 5);
    int found = -1;

    for (;;) {
        double wake = until, now;
        int k = 0;
        for (int i = 0; i < n; i++) {
            if (!ps[i])
                continue;
            if (proc_step(ps[i]) && found < 0)
                found = i;
            if (ps[i]->deadline > 0 && !ps[i]->killed && ps[i]->deadline < wake)
                wake = ps[i]->deadline;
            if (ps[i]->memory_limit && now_s() + WATCH_S < wake)
                wake = now_s() + WATCH_S;
            k += proc_add_polls(ps[i], v + k);
        }
        now = now_s();
        if (found >= 0 || now >= until || stop_requested())
            break;
        proc_wait_slice(v, k, wake, ps, n);
    }
    free(v);
    return found;
}

/* Ending -------------------------------------------------------------------------------------------------------- */

/* Translates the status of waitid into why, signal and code. */
static void proc_set_status(struct proc_result *r, int status)
{
    r->why = WIFSIGNALED(status) ? PROC_SIGNALED : PROC_EXITED;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* What mcjail reported. -1 when the jail or the program could not be started. */
static int proc_read_report(struct proc *p, int status, struct err *e)
{
    char *error = strstr(p->text.p, "error "), *end = strstr(p->text.p, "exit ");

    if (error) {
        error[strcspn(error, "\n")] = 0;
        return err_set(e, ERR_ENV, "%s", error + 6);
    }
    proc_set_status(&p->r, end ? atoi(end + 5) : status);
    return 0;
}

int proc_end(struct proc *p, struct proc_result *ret, struct err *e)
{
    struct rusage ru;
    int status = 0, rc = 0;

    if (!proc_step(p))
        proc_kill_all(p, PROC_STOPPED);
    if (!p->jailed)
        kill(-p->pid, SIGKILL); /* what it left behind in its group; the leader is not reaped yet, so the id is ours */
    while (wait4(p->pid, &status, 0, &ru) < 0 && errno == EINTR)
        ;
    proc_drain(p, &p->out, &p->r.out);
    proc_drain(p, &p->err, &p->r.err);
    while (p->status >= 0) {
        size_t before = p->text.n;
        proc_read_status(p);
        if (p->text.n == before)
            break;
    }
    p->r.wall_s = now_s() - p->start;
    p->r.cpu_s = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) + 1e-6 *
        (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
    p->r.max_rss = (size_t)ru.ru_maxrss * 1024;
    if (p->jailed)
        rc = proc_read_report(p, status, e);
    else
        proc_set_status(&p->r, status);
    if (p->killed)
        p->r.why = p->killed_for;
    else if (p->jailed && jail_cgroup_kills(&p->cgroup) > 0 && !(p->r.why == PROC_EXITED && p->r.code == 0))
        p->r.why = PROC_MEMORY;
    jail_cgroup_remove(&p->cgroup);
    if (rc == 0) {
        *ret = p->r;
    } else {
        buf_free(&p->r.out);
        buf_free(&p->r.err);
    }
    proc_release(p);
    return rc;
}

int proc_run(const struct proc_spec *s, struct proc_result *ret, struct err *e)
{
    struct proc *p;

    if (proc_start(s, &p, e) < 0)
        return -1;
    while (proc_poll(&p, 1, 3600) < 0)
        if (stop_requested()) {
            proc_kill(p);
            break;
        }
    return proc_end(p, ret, e);
}

void proc_result_free(struct proc_result *r)
{
    buf_free(&r->out);
    buf_free(&r->err);
}
