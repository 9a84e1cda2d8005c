/* interim.c - fork server and proc_run without a jail, so that the judge can be used while src/proc grows its real ones.
 * Remove this file and runner/interim_main.py when forkserver.c and proc.c land. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/forkserver.h"
#include "proc/frame.h"
#include "proc/proc.h"

#define MAX_CHILDREN 4096

struct forkserver {
    pid_t pid;
    int fd, next;
    json_t *info;
    pthread_mutex_t lock;
    int pids[MAX_CHILDREN], status[MAX_CHILDREN]; /* by id % MAX_CHILDREN; status -1: running */
};

static void drain(struct forkserver *fs, double deadline)
{
    struct frame f;

    while (frame_recv(fs->fd, 0, 0, deadline, &f, NULL, NULL) == 0) {
        int id = (int)json_i64(f.head, "id", 0) % MAX_CHILDREN;

        if (json_object_get(f.head, "pid"))
            fs->pids[id] = (int)json_i64(f.head, "pid", 0);
        else
            fs->status[id] = (int)json_i64(f.head, "status", 0);
        frame_free(&f);
        deadline = now_s();
    }
}

int forkserver_start(const struct forkserver_spec *s, struct forkserver **ret, struct err *e)
{
    char *python = path_python(e), *script = path_share("runner/interim_main.py");
    struct forkserver *fs;
    struct frame f;
    int sv[2];

    if (!python || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return -1;
    (void)s;
    fs = xcalloc(1, sizeof *fs);
    pthread_mutex_init(&fs->lock, NULL);
    fs->fd = sv[0];
    if ((fs->pid = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(sv[1], 3);
        execl(python, python, script, NULL);
        _exit(127);
    }
    close(sv[1]);
    free(python);
    free(script);
    if (frame_recv(fs->fd, 0, 0, now_s() + 120, &f, NULL, e) < 0) {
        forkserver_stop(fs);
        return -1;
    }
    fs->info = json_incref(f.head);
    frame_free(&f);
    *ret = fs;
    return 0;
}

void forkserver_stop(struct forkserver *fs)
{
    if (!fs)
        return;
    kill(fs->pid, SIGKILL);
    waitpid(fs->pid, NULL, 0);
    close(fs->fd);
    json_decref(fs->info);
    free(fs);
}

bool forkserver_alive(struct forkserver *fs)
{
    return fs && kill(fs->pid, 0) == 0;
}

json_t *forkserver_info(struct forkserver *fs)
{
    return fs->info;
}

int forkserver_spawn(struct forkserver *fs, const struct child_spec *s, struct child **ret, struct err *e)
{
    struct child *c = xcalloc(1, sizeof *c);
    json_t *req;
    int sv[2], rc;
    double t0 = now_s();

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return err_sys(e, "cannot make a socket");
    pthread_mutex_lock(&fs->lock);
    c->id = ++fs->next % MAX_CHILDREN;
    fs->pids[c->id] = 0;
    fs->status[c->id] = -1;
    req = json_pack("{s:s,s:i}", "role", s->role, "id", c->id);
    rc = frame_send_fds(fs->fd, req, &sv[1], 1, now_s() + 20, e);
    json_decref(req);
    while (rc == 0 && fs->pids[c->id] == 0 && now_s() < t0 + 20)
        drain(fs, now_s() + 1);
    c->pid = fs->pids[c->id];
    pthread_mutex_unlock(&fs->lock);
    close(sv[1]);
    c->fd = sv[0];
    c->fs = fs;
    c->spawn_s = now_s() - t0;
    *ret = c;
    return c->pid ? 0 : err_set(e, ERR_ENV, "the fork server does not answer");
}

int child_wait(struct child *c, double deadline, struct child_end *ret, struct err *e)
{
    int st;

    do {
        pthread_mutex_lock(&c->fs->lock);
        drain(c->fs, now_s() + 0.005);
        st = c->fs->status[c->id];
        pthread_mutex_unlock(&c->fs->lock);
        if (st < 0)
            usleep(2000);
    } while (st < 0 && (deadline == 0 || now_s() < deadline));
    if (st < 0)
        return err_set(e, ERR_ENV, "a child does not end");
    c->pid = 0;
    if (ret) {
        memset(ret, 0, sizeof *ret);
        buf_init(&ret->output, 4096);
        ret->why = WIFSIGNALED(st) ? PROC_SIGNALED : PROC_EXITED;
        ret->signal = WIFSIGNALED(st) ? WTERMSIG(st) : 0;
        ret->code = WIFEXITED(st) ? WEXITSTATUS(st) : 0;
    }
    return 0;
}

void child_kill(struct child *c)
{
    if (c->pid) {
        kill(-c->pid, SIGKILL);
        kill(c->pid, SIGKILL);
    }
}

void child_free(struct child *c)
{
    if (!c)
        return;
    child_kill(c);
    close(c->fd);
    free(c);
}

static int take(int fd, struct buf *b)
{
    char chunk[8192];
    ssize_t n = read(fd, chunk, sizeof chunk);

    if (n > 0)
        buf_add(b, chunk, (size_t)n);
    return n > 0 ? fd : (close(fd), -1);
}

int proc_run(const struct proc_spec *s, struct proc_result *r, struct err *e)
{
    int o[2], q[2], st;
    double t0 = now_s(), end = s->timeout_s > 0 ? t0 + s->timeout_s : t0 + 3600;
    pid_t pid;

    if (pipe(o) < 0 || pipe(q) < 0)
        return err_sys(e, "cannot make a pipe");
    if ((pid = fork()) == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(o[1], 1), dup2(q[1], 2);
        close(o[0]), close(q[0]), close(o[1]), close(q[1]);
        if (s->cwd && chdir(s->cwd) < 0)
            _exit(126);
        execvp(s->argv[0], s->argv);
        _exit(127);
    }
    close(o[1]), close(q[1]);
    memset(r, 0, sizeof *r);
    buf_init(&r->out, s->max_out ? s->max_out : 1 << 20);
    buf_init(&r->err, s->max_err ? s->max_err : 1 << 20);
    while (o[0] >= 0 || q[0] >= 0) {
        struct pollfd f[2] = {{o[0], POLLIN, 0}, {q[0], POLLIN, 0}};

        if (now_s() > end) {
            kill(-pid, SIGKILL);
            r->why = PROC_TIMEOUT;
            end = now_s() + 3600;
        }
        poll(f, 2, 200);
        if (f[0].revents)
            o[0] = take(o[0], &r->out);
        if (f[1].revents)
            q[0] = take(q[0], &r->err);
    }
    waitpid(pid, &st, 0);
    if (r->why != PROC_TIMEOUT)
        r->why = WIFSIGNALED(st) ? PROC_SIGNALED : PROC_EXITED;
    r->code = WIFEXITED(st) ? WEXITSTATUS(st) : 0;
    r->signal = WIFSIGNALED(st) ? WTERMSIG(st) : 0;
    r->wall_s = now_s() - t0;
    return 0;
}

void proc_result_free(struct proc_result *r)
{
    buf_free(&r->out);
    buf_free(&r->err);
}

const char *proc_result_text(const struct proc_result *r)
{
    return r->why == PROC_TIMEOUT ? "stopped after its time limit" : r->why == PROC_SIGNALED ? "killed by a signal" : "failed";
}

struct jail_spec proc_jail_compiler(const char *const *ro, const char *const *rw)
{
    return (struct jail_spec){.ro = ro, .rw = rw};
}
