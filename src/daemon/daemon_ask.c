/* daemon_ask.c - the caller's side: reach an owner, or start one, and hand a request over until there is a reply. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/daemon_wire.h"

#define START_S 30.0 /* from exec to a socket that listens: milliseconds, but machines may be busy */

json_t *daemon_error(const struct err *why)
{
    return json_pack("{s:{s:i,s:i,s:o}}", "error", "kind", (int)why->kind, "lack", (int)why->lack, "text",
                     json_utf8(why->msg, strlen(why->msg)));
}

int daemon_check(const json_t *reply, struct err *e)
{
    const json_t *why = json_object_get(reply, "error");
    int64_t kind = json_i64(why, "kind", ERR_ENV), lack = json_i64(why, "lack", LACK_NONE);

    if (!why)
        return 0;
    err_set(e, kind > ERR_NONE && kind <= ERR_BUG ? (enum err_kind)kind : ERR_ENV, "%s",
            json_str(why, "text", "no reason"));
    return lack > LACK_NONE && lack <= LACK_HOST ? err_lack(e, (enum err_lack)lack) : -1;
}

static void daemon_ask_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* In the forked child: a session of its own, no descriptor of ours but log and pipe, no blocked signal. */
static _Noreturn void daemon_ask_become(const struct daemon_place *p, const struct daemon_command *c, int ready)
{
    int null, log;
    sigset_t none;

    ready = fcntl(ready, F_DUPFD, 10); /* out of the way of what follows, and without its flag */
    null = open("/dev/null", O_RDONLY);
    log = open(p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    setsid();
    if (chdir("/") < 0)
        _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    dup2(ready, 3);
    close_range(4, ~0U, 0);
    if (fork() == 0)
        execve(c->argv[0], c->argv, c->env);
    _exit(127);
}

/* Copies the last line of the log, for a message. */
static void daemon_ask_last_line(const char *path, char *ret, size_t n)
{
    struct buf b;
    char *line;

    buf_init(&b, 1 << 20);
    if (file_exists(path))
        file_read(path, &b, NULL);
    while (b.n && strchr("\r\n", b.p[b.n - 1]))
        b.p[--b.n] = 0;
    line = b.n ? strrchr(b.p, '\n') : NULL;
    snprintf(ret, n, "%.300s", line ? line + 1 : b.n ? b.p : "it said nothing");
    buf_free(&b);
}

/* One byte: it listens. An end without one: it is gone. */
static int daemon_ask_await_ready(const struct daemon_place *p, int fd, struct err *e)
{
    struct pollfd w = {.fd = fd, .events = POLLIN};
    double late = now_s() + START_S;
    char byte, why[400];

    while (poll(&w, 1, 100) <= 0 && now_s() < late)
        if (stop_requested())
            return err_set(e, ERR_STOP, "interrupted");
    if (w.revents && read(fd, &byte, 1) == 1)
        return 0;
    daemon_ask_last_line(p->log, why, sizeof why);
    return err_set(e, ERR_ENV, "the process that is to judge did not start: %s ('%s')", why, p->log);
}

/* Starts the daemon and waits until it serves. -1 with the words that it ended with. */
static int daemon_ask_start(const struct daemon_place *p, const struct daemon_command *c, struct err *e)
{
    int pipes[2], rc, got;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_sys(e, "no pipe");
    pid = fork();
    if (pid == 0)
        daemon_ask_become(p, c, pipes[1]);
    close(pipes[1]);
    if (pid < 0)
        rc = err_sys(e, "cannot start a process");
    else {
        while ((got = waitpid(pid, NULL, 0)) < 0 && errno == EINTR)
            ;
        rc = got < 0 && errno != ECHILD ? err_sys(e, "cannot wait for a process")
            : daemon_ask_await_ready(p, pipes[0], e);
    }
    close(pipes[0]);
    return rc;
}

/* -1 with ERR_STOP: not now. The file may have been swept (daemon_sweep) before we had its lock: then it is nobody's
 * any more. */
static int daemon_ask_try_lock(const struct daemon_place *p, struct err *e)
{
    int fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", p->lock);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
        return fd;
    close(fd);
    return err_set(e, ERR_STOP, "interrupted");
}

/* One caller starts it, the others wait for that. */
static int daemon_ask_lock_start(const struct daemon_place *p, struct err *e)
{
    struct err why = ERR_INIT;
    int fd;

    while ((fd = daemon_ask_try_lock(p, &why)) < 0 && why.kind == ERR_STOP && !stop_requested()) {
        daemon_ask_sleep_ms(10);
        why = (struct err)ERR_INIT;
    }
    if (fd < 0 && e)
        *e = why;
    return fd;
}

/* A connection to the owner that lives, or to a new one. */
static int daemon_ask_reach(const struct daemon_place *p, const struct daemon_command *c, struct err *e)
{
    int fd = daemon_dial(p->socket, NULL), lock;

    if (fd >= 0 || (lock = daemon_ask_lock_start(p, e)) < 0)
        return fd;
    if ((fd = daemon_dial(p->socket, NULL)) < 0) {
        daemon_sweep();
        if (daemon_ask_start(p, c, e) == 0)
            fd = daemon_dial(p->socket, e);
    }
    close(lock);
    return fd;
}

/* 0: *ret is the reply; 1: ask another; -1. *ret_begun: it was the only marked request that was judged. */
static int daemon_ask_talk(int fd, const json_t *request, json_t **ret, bool *ret_begun, struct err *e)
{
    bool gone = false;

    *ret_begun = false;
    if (daemon_send(fd, request, 0, &gone, e) < 0)
        return gone && !stop_requested() ? 1 : -1;
    while ((*ret = daemon_recv(fd, 0, &gone, e)) && json_object_get(*ret, "begun")) {
        *ret_begun = true;
        json_decref(*ret);
    }
    if (!*ret)
        return gone && !stop_requested() ? 1 : -1;
    if (!json_object_get(*ret, "leaving"))
        return 0;
    json_decref(*ret);
    return 1;
}

/* Longer each time: an owner that ends needs a moment. False on Ctrl-C. */
static bool daemon_ask_pause_after(int asked)
{
    for (int ms = asked < 5 ? 20 << asked : 1000; ms > 0 && !stop_requested(); ms -= 20)
        daemon_ask_sleep_ms(20);
    return !stop_requested();
}

int daemon_ask(const struct daemon_place *p, const struct daemon_command *c, json_t *request, json_t **ret,
               struct err *e)
{
    int killed = 0, fd, rc;
    bool begun;

    for (int asked = 0; asked < DAEMON_ASKED && killed < DAEMON_KILLED; asked++) {
        if ((fd = daemon_ask_reach(p, c, e)) < 0)
            return -1;
        rc = daemon_ask_talk(fd, request, ret, &begun, e);
        close(fd);
        if (rc <= 0)
            return rc;
        if (e)
            *e = (struct err)ERR_INIT; /* of the one that has gone */
        killed += begun;
        json_object_set_new(request, "again", json_true());
        log_debug("the owner has gone; asking the next one");
        if (!daemon_ask_pause_after(asked))
            return err_set(e, ERR_STOP, "interrupted");
    }
    return err_set(e, killed == DAEMON_KILLED ? ERR_BUG : ERR_ENV, "the process that judges died %s; its log is '%s'",
                   killed == DAEMON_KILLED ? "twice while it judged this" : "again and again", p->log);
}
