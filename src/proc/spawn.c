/* spawn.c - see spawn.h. The child shares our memory until exec (as vfork), so it is cheap however large we are, may
 * come from a process with threads, and reports its errno by just writing it. It must not allocate. */
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct spawn_child {
    const struct spawn *s;
    char uid_map[32], gid_map[32];
    pid_t parent;
    int error;
    int report; /* -1; in a build with AddressSanitizer a pipe for the error */
};

/* Writes text to a file of /proc. -1: the kernel refused. */
static int spawn_write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), ok;

    if (fd < 0)
        return -1;
    ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return ok ? 0 : -1;
}

/* A process that maps its own user may do so without privileges; setgroups must be given up first. */
static int spawn_map_user(const struct spawn_child *c)
{
    if (!(c->s->ns_flags & CLONE_NEWUSER))
        return 0;
    return spawn_write_text("/proc/self/setgroups", "deny") < 0 ||
           spawn_write_text("/proc/self/uid_map", c->uid_map) < 0 ||
                   spawn_write_text("/proc/self/gid_map", c->gid_map) < 0
               ? -1
               : 0;
}

/* In the child: moves the descriptors to 0, 1, .. and closes all others. -1 with errno. */
static int spawn_place_fds(struct spawn_child *c)
{
    const struct spawn *s = c->s;
    int high[8], first = s->n_fds;

    for (int i = 0; i < s->n_fds; i++)
        if ((high[i] = fcntl(s->fds[i], F_DUPFD, 16)) < 0)
            return -1;
    if (c->report >= 0 && (c->report = fcntl(c->report, F_DUPFD, 16)) < 0)
        return -1;
    for (int i = 0; i < s->n_fds; i++)
        if (dup2(high[i], i) < 0)
            return -1;
    if (c->report >= 0 && (c->report = dup3(c->report, first++, O_CLOEXEC)) < 0)
        return -1;
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) < 0)
        for (int i = first; i < 1024; i++)
            close(i);
    return 0;
}

/* The child between clone and exec: signals, death with us, group, user, cgroup, folder, descriptors. What fails is
 * reported through c->report as an errno. */
static int spawn_child_main(void *arg)
{
    struct spawn_child *c = arg;
    const struct spawn *s = c->s;
    sigset_t none;

    for (int i = 1; i < 65; i++)
        if (i != SIGKILL && i != SIGSTOP)
            signal(i, SIG_DFL);
    sigemptyset(&none);
    if (s->die_with_us && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != c->parent))
        goto fail;
    if (s->group && setpgid(0, 0) < 0)
        goto fail;
    if (spawn_map_user(c) < 0 || (s->cgroup && jail_cgroup_add(s->cgroup, 0) < 0))
        goto fail;
    if ((s->cwd && chdir(s->cwd) < 0) || spawn_place_fds(c) < 0)
        goto fail;
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(s->path, s->argv, s->env);
fail:
    c->error = errno ? errno : EINVAL;
    if (c->report >= 0 && write(c->report, &c->error, sizeof c->error) < 0)
        _exit(125);
    _exit(126);
}

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer keeps books on stacks and memory that a child sharing them would upset: a copy, then, and a pipe. */
static pid_t spawn_begin(struct spawn_child *c, int ns_flags)
{
    int p[2], error;
    pid_t pid;

    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    c->report = p[1];
    pid = (pid_t)syscall(SYS_clone, SIGCHLD | ns_flags, NULL, NULL, NULL, NULL);
    if (pid == 0)
        spawn_child_main(c);
    close(p[1]);
    if (pid > 0 && read(p[0], &error, sizeof error) == sizeof error)
        c->error = error;
    close(p[0]);
    return pid;
}
#else
static pid_t spawn_begin(struct spawn_child *c, int ns_flags)
{
    size_t size = 256 << 10;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pid_t pid;

    if (stack == MAP_FAILED)
        return -1;
    pid = clone(spawn_child_main, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD | ns_flags, c);
    munmap(stack, size);
    return pid;
}
#endif

int spawn(const struct spawn *s, pid_t *ret_pid, struct err *e)
{
    struct spawn_child c = {.s = s, .parent = getpid(), .report = -1};
    sigset_t all, old;
    pid_t pid;

    snprintf(c.uid_map, sizeof c.uid_map, "0 %u 1", (unsigned)geteuid());
    snprintf(c.gid_map, sizeof c.gid_map, "0 %u 1", (unsigned)getegid());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* no handler of ours may run in the child */
    pid = spawn_begin(&c, s->ns_flags);
    if (pid < 0)
        c.error = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (c.error) {
        if (pid > 0)
            waitpid(pid, NULL, 0);
        errno = c.error;
        return err_sys(e, "cannot start '%s'", s->path);
    }
    *ret_pid = pid;
    return 0;
}
