/* jail.c - see jail.h: specs to plans, starting and entering jails, cgroups. The operations are in jail_apply.c,
 * the probe in jail_probe.c. */
#include "proc/jail.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "proc/jail_apply.h"
#include "proc/spawn.h"

_Static_assert(sizeof(struct err) == 1032, "runner/jail.py has a twin of struct err");

/* Spec to plan -------------------------------------------------------------------------------------------------- */

#define MIB ((size_t)1 << 20)
#define FIRST_UID 0x70000000u /* above what distributions and container managers hand out */

static bool jail_printable_path(const char *p)
{
    return p[0] == '/' && !strpbrk(p, "\t\n");
}

/* Is path inside (or equal to) one of the n folders? */
static bool jail_covered(char *const *have, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(have[i]);
        if (!strncmp(have[i], path, k) && (path[k] == 0 || path[k] == '/'))
            return true;
    }
    return false;
}

struct shown { /* what has been bound so far */
    char *path[64];
    size_t n;
};

/* A standard entry: a symbolic link stays one (/bin on merged-usr systems), missing ones are skipped. */
static void jail_plan_standard(struct buf *b, struct shown *s, const char *path)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t n;

    if (lstat(path, &st) < 0)
        return;
    if (S_ISLNK(st.st_mode) && (n = readlink(path, target, sizeof target - 1)) > 0) {
        target[n] = 0;
        if (target[0] != '/') {
            buf_addf(b, "link\t%s\t%s\n", target, path);
            return;
        }
    }
    if (!realpath(path, target)) /* a link into a folder that is not here */
        return;
    buf_addf(b, "ro\t%s\t%s\n", target, path);
    s->path[s->n++] = xstrdup(path);
}

/* Adds folders and files of a list that are shown read-only, each once. ERR_INPUT: a path cannot be shown. */
static int jail_plan_ro(struct buf *b, struct shown *s, const char *const *list, struct err *e)
{
    char real[PATH_MAX];

    for (; list && *list; list++) {
        if (!jail_printable_path(*list))
            return err_set(e, ERR_INPUT, "the jail cannot show '%s'; use an absolute path without tabs", *list);
        if (!realpath(*list, real))
            return err_sys(e, "the jail cannot show '%s'", *list);
        if (jail_covered(s->path, s->n, *list))
            continue;
        if (s->n == sizeof s->path / sizeof s->path[0])
            return err_set(e, ERR_BUG, "too many folders in one jail");
        buf_addf(b, "ro\t%s\t%s\n", real, *list);
        s->path[s->n++] = xstrdup(*list);
    }
    return 0;
}

/* Adds folders that the program may write; outside they belong to us. */
static int jail_plan_rw(struct buf *b, const char *const *list, unsigned uid, struct err *e)
{
    char real[PATH_MAX];

    for (; list && *list; list++) {
        if (!jail_printable_path(*list))
            return err_set(e, ERR_INPUT, "the jail cannot show '%s'; use an absolute path without tabs", *list);
        if (!realpath(*list, real))
            return err_sys(e, "the jail cannot show '%s'", *list);
        buf_addf(b, "rw\t%s\t%s\t%u\n", real, *list, uid);
    }
    return 0;
}

/* Writes the plan's part that runs outside: mounts, devices, files, user. */
static int jail_plan_outer(const struct jail_spec *s, const struct jail_layers *l, unsigned uid, struct buf *b,
                           struct err *e)
{
    static const char *const standard[] = {
        "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc/ld.so.cache", "/etc/ld.so.conf",
        "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/ssl/openssl.cnf",
    };
    static const char *const dev[] = {"null", "zero", "full", "random", "urandom"};
    struct shown shown = {{NULL}, 0};
    int rc;

    buf_addf(b, "ns\tmount,pid,net,ipc,uts%s\n", l->held & JAIL_ROOT ? "" : ",user");
    buf_addf(b, "root\t%zu\n", 4 * MIB);
    buf_addf(b, "tmpfs\t/tmp\t%zu\t1777\n", s->tmp_bytes ? s->tmp_bytes : 64 * MIB);
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        jail_plan_standard(b, &shown, standard[i]);
    buf_addf(b, "file\t/etc/passwd\tuser:x:%u:%u::/tmp:/bin/sh\nfile\t/etc/group\tuser:x:%u:\n", uid, uid, uid);
    for (size_t i = 0; i < sizeof dev / sizeof dev[0]; i++)
        buf_addf(b, "dev\t/dev/%s\n", dev[i]);
    for (const char *const *p = s->devices; p && *p; p++)
        buf_addf(b, "dev\t%s\n", *p);
    buf_adds(b, "link\t/tmp\t/dev/shm\nlink\t/proc/self/fd\t/dev/fd\nlink\t/proc/self/fd/0\t/dev/stdin\n"
                "link\t/proc/self/fd/1\t/dev/stdout\nlink\t/proc/self/fd/2\t/dev/stderr\n");
    if (l->held & JAIL_PROCFS)
        buf_adds(b, "proc\t/proc\n");
    rc = jail_plan_ro(b, &shown, s->ro, e) < 0 || jail_plan_rw(b, s->rw, uid, e) < 0 ? -1 : 0;
    buf_adds(b, "seal\n");
    for (size_t i = 0; i < shown.n; i++)
        free(shown.path[i]);
    return rc;
}

/* Writes the plan's part that runs inside: folder, limits, Landlock, seccomp. */
static void jail_plan_inner(const struct jail_spec *s, const struct jail_layers *l, unsigned uid, struct buf *b)
{
    int pids = s->pids ? s->pids : 64;

    buf_addf(b, "cwd\t%s\n", s->cwd ? s->cwd : "/tmp");
    buf_adds(b, "limit\tcore\t0\nlimit\tnofile\t1024\nlimit\tmsgqueue\t0\nlimit\tsigpending\t256\n");
    buf_addf(b, "limit\tfsize\t%zu\n", s->file_bytes ? s->file_bytes : 256 * MIB);
    if (s->cpu_s)
        buf_addf(b, "limit\tcpu\t%d\n", s->cpu_s);
    if (l->held & JAIL_ROOT)
        buf_addf(b, "limit\tnproc\t%d\nuid\t%u\n", pids, uid); /* the uid is this jail's own, so the limit is too */
    buf_adds(b, "caps\nnnp\n");
    if (l->held & JAIL_LANDLOCK) {
        buf_addf(b, "landlock\t%d\t/tmp\t/dev/null\t/dev/zero\t/dev/full\t/dev/random\t/dev/urandom", l->landlock_abi);
        for (const char *const *p = s->rw; p && *p; p++)
            buf_addf(b, "\t%s", *p);
        for (const char *const *p = s->devices; p && *p; p++)
            buf_addf(b, "\t%s", *p);
        if (s->devices && s->devices[0] && (l->held & JAIL_PROCFS))
            buf_adds(b, "\t/proc/self/task");
        buf_addc(b, '\n');
    }
    if (l->held & JAIL_SECCOMP)
        buf_addf(b, "seccomp\t%s\n", s->no_exec ? "noexec" : "exec");
}

int jail_plan(const struct jail_spec *s, const struct jail_layers *l, struct buf *ret_plan, struct err *e)
{
    static atomic_uint count;
    unsigned uid = 0;

    if (!(l->held & JAIL_NAMESPACES))
        return err_set(e, ERR_ENV, "no jail: %s", l->missing);
    if (l->held & JAIL_ROOT)
        uid = FIRST_UID + (((unsigned)getpid() << 8) + atomic_fetch_add(&count, 1) % 256) % 0x1000000u;
    if (jail_plan_outer(s, l, uid, ret_plan, e) < 0)
        return -1;
    jail_plan_inner(s, l, uid, ret_plan);
    return 0;
}

/* Starting ------------------------------------------------------------------------------------------------------ */

/* mcjail lies beside libjail.so, or in lib/ of the build folder that holds the running binary. */
char *jail_tool_folder(void)
{
    Dl_info info;
    char exe[PATH_MAX], *slash, *tool;

    if (dladdr((void *)(intptr_t)jail_tool_folder, &info) && info.dli_fname && strstr(info.dli_fname, "libjail.so") &&
        realpath(info.dli_fname, exe) && (slash = strrchr(exe, '/'))) {
        *slash = 0;
        return xstrdup(exe);
    }
    tool = path_lib("mcjail");
    if (tool && (slash = strrchr(tool, '/')))
        *slash = 0;
    return tool;
}

/* mcjail's path, owned; NULL: it is missing. */
static char *jail_tool_path(void)
{
    char *folder = jail_tool_folder(), *path = folder ? path_join(folder, "mcjail") : NULL;

    free(folder);
    return path;
}

/* A callback for a plan's lines: notes the namespaces that are wanted. */
static int jail_ns_line(int argc, char **argv, void *ctx, struct err *e)
{
    (void)e;
    if (argc == 2 && !strcmp(argv[0], "ns") && strstr(argv[1], "user"))
        *(int *)ctx |= CLONE_NEWUSER;
    return 0;
}

/* The plan in a memfd; -1 with errno. */
static int jail_plan_fd(const char *plan, size_t n)
{
    int fd = memfd_create("plan", MFD_CLOEXEC);

    if (fd >= 0 && pwrite(fd, plan, n, 0) != (ssize_t)n) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The tool in front of argv. The caller frees the list alone. */
static char **jail_tool_argv(char *tool, char *const *argv)
{
    size_t n = 0;
    char **v;

    while (argv && argv[n])
        n++;
    v = xcalloc(n + 2, sizeof *v);
    v[0] = tool;
    for (size_t i = 0; i < n; i++)
        v[i + 1] = argv[i];
    return v;
}

int jail_start(const char *plan, size_t n_plan, char *const *argv, char *const *env, const int stdio[3],
               const struct jail_cgroup *g, pid_t *ret_pid, int *ret_status, struct err *e)
{
    struct spawn s = {.env = env, .cgroup = g, .n_fds = 5,
                      .ns_flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS};
    int sv[2] = {-1, -1}, null = open("/dev/null", O_RDWR | O_CLOEXEC), pfd = jail_plan_fd(plan, n_plan), rc = -1;
    char *tool = jail_tool_path(), **v = jail_tool_argv(tool, argv);

    plan_each(plan, n_plan, jail_ns_line, &s.ns_flags, NULL);
    if (!tool) {
        err_set(e, ERR_ENV, "'lib/mcjail' is missing from the build folder; run 'make'");
    } else if (null < 0 || pfd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0) {
        err_sys(e, "cannot start a jail");
    } else {
        for (int i = 0; i < 3; i++)
            s.fds[i] = stdio[i] < 0 ? null : stdio[i];
        s.fds[3] = pfd;
        s.fds[4] = sv[1];
        s.path = tool;
        s.argv = v;
        rc = spawn(&s, ret_pid, e);
    }
    if (sv[1] >= 0)
        close(sv[1]);
    if (sv[0] >= 0 && rc < 0)
        close(sv[0]);
    if (pfd >= 0)
        close(pfd);
    if (null >= 0)
        close(null);
    free(v);
    free(tool);
    if (rc == 0)
        *ret_status = sv[0];
    return rc;
}

int jail_enter(pid_t box, struct err *e)
{
    static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts"};
    int fds[6], rc = 0, root;
    char root_path[64];

    snprintf(root_path, sizeof root_path, "/proc/%d/root", (int)box);
    root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 6; i++) {
        char path[64], own[64];
        struct stat a, b;
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)box, names[i]);
        snprintf(own, sizeof own, "/proc/self/ns/%s", names[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (fds[i] >= 0 && fstat(fds[i], &a) == 0 && stat(own, &b) == 0 && a.st_ino == b.st_ino &&
            a.st_dev == b.st_dev) {
            close(fds[i]);
            fds[i] = -1; /* already there: joining our own user namespace is an error */
        }
    }
    for (int i = 0; i < 6; i++) {
        if (fds[i] >= 0 && rc == 0 && setns(fds[i], 0) < 0)
            rc = err_sys(e, "cannot join the jail's %s namespace", names[i]);
        if (fds[i] >= 0)
            close(fds[i]);
    }
    /* joining a mount namespace means its first root; process 1 may have moved on with chroot */
    if (rc == 0 && (root < 0 || fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0))
        rc = err_sys(e, "cannot enter the jail's root");
    if (root >= 0)
        close(root);
    return rc;
}

/* The process in between: shares the caller's memory while that waits, so it leaves by _exit alone. Returns 0 in the
 * fork inside, which has a copy of all of it. */
static void jail_fork_between(pid_t box, volatile pid_t *ret_inside, struct err *e)
{
    pid_t inside;

    if (jail_enter(box, e) == 0) {
        inside = fork();
        if (inside == 0)
            return;
        if (inside < 0)
            err_sys(e, "cannot fork into the jail");
        *ret_inside = inside;
    }
    _exit(0);
}

pid_t jail_fork(pid_t box, struct err *e)
{
    volatile pid_t inside = -1;
    pid_t between;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) /* who inherits the fork inside */
        return err_sys(e, "cannot fork into the jail");
    between = vfork();
    if (between == 0) {
        jail_fork_between(box, &inside, e);
        return 0;
    }
    if (between < 0)
        err_sys(e, "cannot fork into the jail");
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
        continue;
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    return inside;
}

int jail_close(const char *plan, size_t n_plan, struct err *e)
{
    return jail_inner(plan, n_plan, e);
}
