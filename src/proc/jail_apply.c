/* jail_apply.c - see jail_apply.h. Mounts are arranged as bubblewrap does: a tmpfs becomes the root, the old root
 * hangs under it while binds are made, then the new root is pivoted in and the old one let go. jail_apply_op_NAME
 * does the operation NAME of the plan on its words a. */
#include "proc/jail_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

int plan_each(const char *plan, size_t n, int (*f)(int argc, char **argv, void *ctx, struct err *e), void *ctx,
              struct err *e)
{
    char *copy = xstrndup(plan, n), *save = NULL;
    int rc = 0;

    for (char *line = strtok_r(copy, "\n", &save); line && rc == 0; line = strtok_r(NULL, "\n", &save)) {
        char *argv[JAIL_MAX_FIELDS + 1], *p = line;
        int argc = 0;
        while (p && argc < JAIL_MAX_FIELDS)
            argv[argc++] = strsep(&p, "\t");
        argv[argc] = NULL;
        rc = p ? err_set(e, ERR_BUG, "a line of the jail's plan has too many fields") : f(argc, argv, ctx, e);
    }
    free(copy);
    return rc;
}

/* One row of the operation table: how many arguments, and what to do. */
struct jail_apply_op {
    const char *name;
    int n_args; /* -1: any */
    int (*run)(char **a, struct err *e);
};

struct half {
    const struct jail_apply_op *ops;
    size_t n_ops;
};

/* A callback for a plan's lines: carries one out, in the half that knows it. */
static int jail_apply_run_line(int argc, char **argv, void *ctx, struct err *e)
{
    const struct half *h = ctx;

    for (size_t i = 0; i < h->n_ops; i++) {
        if (strcmp(h->ops[i].name, argv[0]))
            continue;
        if (h->ops[i].n_args >= 0 && h->ops[i].n_args != argc - 1)
            return err_set(e, ERR_BUG, "jail operation '%s' has %d arguments", argv[0], argc - 1);
        return h->ops[i].run(argv + 1, e);
    }
    return 0; /* the other half's */
}

/* Outer half ---------------------------------------------------------------------------------------------------- */

static const char *NEW = "/newroot", *OLD = "/oldroot"; /* where the new and the old root are while we build */
static int chrooted; /* we are in a chroot, where pivot_root is refused */

static char *jail_apply_at(const char *root, const char *path)
{
    return xasprintf("%s%s", root, path);
}

/* Makes the folders above path (and path itself if 'whole') under NEW. */
static int jail_apply_make_dirs(const char *full, int whole, struct err *e)
{
    char *copy = xstrdup(full);
    int rc = 0;

    for (char *p = copy + 1; rc == 0 && *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                rc = err_sys(e, "jail: cannot make '%s'", copy);
            *p = '/';
        }
    if (rc == 0 && whole && mkdir(copy, 0755) < 0 && errno != EEXIST)
        rc = err_sys(e, "jail: cannot make '%s'", copy);
    free(copy);
    return rc;
}

/* Makes an empty file with its folders. */
static int jail_apply_make_file(const char *full, struct err *e)
{
    int fd;

    if (jail_apply_make_dirs(full, 0, e) < 0)
        return -1;
    if ((fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) < 0)
        return err_sys(e, "jail: cannot make '%s'", full);
    close(fd);
    return 0;
}

struct mount_attr_v0 {
    uint64_t set, clear, propagation, userns_fd;
};

#define ATTR_RDONLY 0x01u
#define ATTR_NOSUID 0x02u
#define ATTR_NODEV 0x04u

/* Mount flags that an unprivileged remount must repeat. */
static unsigned long jail_apply_kept_flags(const char *path)
{
    static const struct {
        unsigned long st, ms;
    } rows[] = {{ST_NOEXEC, MS_NOEXEC}, {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME},
                {ST_RELATIME, MS_RELATIME}};
    struct statvfs v;
    unsigned long flags = 0;

    if (statvfs(path, &v) == 0)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            flags |= v.f_flag & rows[i].st ? rows[i].ms : 0;
    return flags;
}

/* Makes a mount without setuid and, as asked, read-only and without devices. */
static int jail_apply_restrict_mount(const char *path, int rdonly, int nodev, struct err *e)
{
    struct mount_attr_v0 a = {.set = ATTR_NOSUID | (rdonly ? ATTR_RDONLY : 0) | (nodev ? ATTR_NODEV : 0)};

    if (syscall(SYS_mount_setattr, AT_FDCWD, path, 0x8000 /* AT_RECURSIVE */, &a, sizeof a) == 0)
        return 0;
    if (mount(NULL, path, NULL,
              MS_REMOUNT | MS_BIND | MS_NOSUID | (rdonly ? MS_RDONLY : 0ul) | (nodev ? MS_NODEV : 0ul) |
              jail_apply_kept_flags(path), NULL) < 0)
        return err_sys(e, "jail: cannot restrict '%s'", path);
    return 0;
}

/* Shows src of the old root at dst of the new one. */
static int jail_apply_bind_path(const char *src, const char *dst, int rdonly, int nodev, struct err *e)
{
    char *from = jail_apply_at(OLD, src), *to = jail_apply_at(NEW, dst);
    struct stat st;
    int rc;

    if (stat(from, &st) < 0)
        rc = err_sys(e, "jail: cannot show '%s'", src);
    else if ((S_ISDIR(st.st_mode) ? jail_apply_make_dirs(to, 1, e) : jail_apply_make_file(to, e)) < 0)
        rc = -1;
    else if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        rc = err_sys(e, "jail: cannot bind '%s'", src);
    else
        rc = jail_apply_restrict_mount(to, rdonly, nodev, e);
    free(from);
    free(to);
    return rc;
}

/* Under a plain chroot (a build root, some containers) pivot_root is refused: then the new root is made under /mnt
 * and entered with chroot, which holds because no capability, no chroot(2) and no descriptor of a folder outside is
 * left to what runs inside. */
static int jail_apply_root_in_chroot(const char *opts, struct err *e)
{
    umount2("/tmp" "/newroot", MNT_DETACH);
    umount2("/tmp", MNT_DETACH);
    if (mount("tmpfs", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV, opts) < 0 || mkdir("/mnt/newroot", 0755) < 0 ||
        mount("/mnt/newroot", "/mnt/newroot", NULL, MS_BIND | MS_REC | MS_SILENT, NULL) < 0)
        return err_sys(e, "jail: cannot pivot to a new root, nor make one in /mnt");
    NEW = "/mnt/newroot";
    OLD = "";
    chrooted = 1;
    return 0;
}

/* Plan's "root SIZE": mounts an empty root of that size. */
static int jail_apply_op_root(char **a, struct err *e)
{
    char opts[96];

    if (mount(NULL, "/", NULL, MS_SILENT | MS_SLAVE | MS_REC, NULL) < 0 && errno != EINVAL) /* EINVAL: a chroot */
        return err_sys(e, "jail: cannot detach the mounts");
    snprintf(opts, sizeof opts, "mode=0755,size=%s,nr_inodes=4096", a[0]);
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, opts) < 0)
        return err_sys(e, "jail: cannot mount a root");
    if (mkdir("/tmp/newroot", 0755) < 0 || mount("/tmp/newroot", "/tmp/newroot", NULL, MS_BIND | MS_REC | MS_SILENT,
                                                 NULL) < 0 ||
        mkdir("/tmp/oldroot", 0755) < 0)
        return err_sys(e, "jail: cannot make a new root");
    if (syscall(SYS_pivot_root, "/tmp", "/tmp/oldroot") < 0)
        return errno == EINVAL ? jail_apply_root_in_chroot(opts, e) : err_sys(e, "jail: cannot pivot to a new root");
    return chdir("/") < 0 ? err_sys(e, "jail: cannot enter the new root") : 0;
}

/* Plan's "tmpfs PATH SIZE MODE". */
static int jail_apply_op_tmpfs(char **a, struct err *e)
{
    char *to = jail_apply_at(NEW, a[0]), opts[96];
    int rc = jail_apply_make_dirs(to, 1, e);

    snprintf(opts, sizeof opts, "mode=%s,size=%s,nr_inodes=16384", a[2], a[1]);
    if (rc == 0 && mount("tmpfs", to, "tmpfs", MS_NOSUID | MS_NODEV, opts) < 0)
        rc = err_sys(e, "jail: cannot mount '%s'", a[0]);
    free(to);
    return rc;
}

/* Plan's "dir PATH". */
static int jail_apply_op_dir(char **a, struct err *e)
{
    char *to = jail_apply_at(NEW, a[0]);
    int rc = jail_apply_make_dirs(to, 1, e);

    free(to);
    return rc;
}

static int jail_apply_op_ro(char **a, struct err *e)
{
    return jail_apply_bind_path(a[0], a[1], 1, 1, e);
}

/* Plan's "rw FROM TO UID": shows a folder that may be written. */
static int jail_apply_op_rw(char **a, struct err *e)
{
    char *from = jail_apply_at(OLD, a[0]);
    int rc = 0;
    uid_t uid = (uid_t)strtoul(a[2], NULL, 10);

    if (uid && chown(from, uid, uid) < 0)
        rc = err_sys(e, "jail: cannot hand over '%s'", a[0]);
    free(from);
    return rc < 0 ? rc : jail_apply_bind_path(a[0], a[1], 0, 1, e);
}

static int jail_apply_op_dev(char **a, struct err *e)
{
    return jail_apply_bind_path(a[0], a[0], 0, 0, e);
}

/* Plan's "proc": mounts this namespace's processes. */
static int jail_apply_op_proc(char **a, struct err *e)
{
    char *to = jail_apply_at(NEW, a[0]);
    int rc = jail_apply_make_dirs(to, 1, e);
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

    if (rc == 0 && mount("proc", to, "proc", flags, "subset=pid,hidepid=invisible") < 0 &&
        mount("proc", to, "proc", flags, NULL) < 0)
        rc = err_sys(e, "jail: cannot mount /proc");
    free(to);
    return rc;
}

/* Plan's "link TARGET PATH". */
static int jail_apply_op_link(char **a, struct err *e)
{
    char *to = jail_apply_at(NEW, a[1]);
    int rc = jail_apply_make_dirs(to, 0, e);

    if (rc == 0 && symlink(a[0], to) < 0 && errno != EEXIST)
        rc = err_sys(e, "jail: cannot link '%s'", a[1]);
    free(to);
    return rc;
}

/* Plan's "file PATH TEXT": writes a small file into the new root. */
static int jail_apply_op_file(char **a, struct err *e)
{
    char *to = jail_apply_at(NEW, a[0]);
    int rc = jail_apply_make_file(to, e), fd;

    if (rc == 0) {
        fd = open(to, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%s\n", a[1]) < 0)
            rc = err_sys(e, "jail: cannot write '%s'", a[0]);
        if (fd >= 0)
            close(fd);
    }
    free(to);
    return rc;
}

/* Plan's "seal": enters the new root and makes it read-only. */
static int jail_apply_op_seal(char **a, struct err *e)
{
    (void)a;
    if (chrooted) {
        if (mount(NULL, NEW, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0 ||
            chdir(NEW) < 0 ||
            chroot(".") < 0 || chdir("/") < 0)
            return err_sys(e, "jail: cannot enter the new root");
        return 0;
    }
    if (umount2(OLD, MNT_DETACH) < 0 || chdir(NEW) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_sys(e, "jail: cannot leave the old root");
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return err_sys(e, "jail: cannot make the root read-only");
    return 0;
}

int jail_outer(const char *plan, size_t n, struct err *e)
{
    static const struct jail_apply_op ops[] = {
        {"root", 1, jail_apply_op_root}, {"tmpfs", 3, jail_apply_op_tmpfs}, {"dir", 1, jail_apply_op_dir},
        {"ro", 2, jail_apply_op_ro},     {"rw", 3, jail_apply_op_rw},
        {"dev", 1, jail_apply_op_dev},   {"proc", 1, jail_apply_op_proc},   {"link", 2, jail_apply_op_link},
        {"file", 2, jail_apply_op_file}, {"seal", 0, jail_apply_op_seal},
    };
    struct half h = {ops, sizeof ops / sizeof ops[0]};
    mode_t old = umask(0022);
    int rc = plan_each(plan, n, jail_apply_run_line, &h, e);

    umask(old);
    return rc;
}

/* Inner half ---------------------------------------------------------------------------------------------------- */

static int jail_apply_op_cwd(char **a, struct err *e)
{
    return chdir(a[0]) < 0 ? err_sys(e, "jail: no folder '%s'", a[0]) : 0;
}

/* Plan's "limit NAME VALUE": sets a resource limit; one that is lower already stays. */
static int jail_apply_op_limit(char **a, struct err *e)
{
    static const struct {
        const char *name;
        int id;
    } rows[] = {{"core", RLIMIT_CORE},       {"cpu", RLIMIT_CPU},         {"fsize", RLIMIT_FSIZE},
                {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},     {"memlock", RLIMIT_MEMLOCK},
                {"msgqueue", RLIMIT_MSGQUEUE}, {"sigpending", RLIMIT_SIGPENDING}};
    rlim_t v = strtoull(a[1], NULL, 10);
    struct rlimit l = {v, v}, now;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].name, a[0])) {
            if (getrlimit(rows[i].id, &now) == 0 && now.rlim_max < v)
                l.rlim_cur = l.rlim_max = now.rlim_max;
            return setrlimit(rows[i].id, &l) < 0 ? err_sys(e, "jail: cannot limit '%s'", a[0]) : 0;
        }
    return err_set(e, ERR_BUG, "jail: no limit '%s'", a[0]);
}

/* Raw system calls change this thread only: glibc's wrappers would signal threads that exist on paper in a fork. */
static int jail_apply_op_uid(char **a, struct err *e)
{
    unsigned id = (unsigned)strtoul(a[0], NULL, 10);

    for (int cap = 0; cap <= 63; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, id, id, id) < 0 ||
        syscall(SYS_setresuid, id, id, id) < 0)
        return err_sys(e, "jail: cannot become user %u", id);
    return 0;
}

/* Plan's "caps": gives up all capabilities. */
static int jail_apply_op_caps(char **a, struct err *e)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{0}};

    (void)a;
    for (int cap = 0; cap <= 63; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    prctl(PR_SET_SECUREBITS, 0x2f /* noroot, no setuid fixup, keep-caps off; all locked */, 0, 0, 0);
    if (syscall(SYS_capset, &h, d) < 0)
        return err_sys(e, "jail: cannot drop capabilities");
    return 0;
}

static int jail_apply_op_nnp(char **a, struct err *e)
{
    (void)a;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_sys(e, "jail: no_new_privs failed") : 0;
}

/* Landlock: our own copy of the ABI, since Debian 12's kernel headers stop at version 2. */
struct ll_ruleset {
    uint64_t fs, net, scoped;
};
struct ll_path {
    uint64_t access;
    int32_t fd;
} __attribute__((packed));

#define LL_EXECUTE (1ull << 0)
#define LL_WRITE_FILE (1ull << 1)
#define LL_READ_FILE (1ull << 2)
#define LL_READ_DIR (1ull << 3)
#define LL_TRUNCATE (1ull << 14)
#define LL_IOCTL_DEV (1ull << 15)
#define LL_ON_FILES (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

int jail_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

    return abi < 0 ? 0 : (int)abi;
}

/* Lets a Landlock ruleset allow these accesses below path. */
static int jail_apply_ll_allow(int ruleset, const char *path, uint64_t access, struct err *e)
{
    struct ll_path rule = {access, open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    int rc = 0;

    if (rule.fd < 0)
        return err_sys(e, "jail: Landlock cannot open '%s'", path);
    if (fstat(rule.fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.access &= LL_ON_FILES;
    if (syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0) < 0)
        rc = err_sys(e, "jail: Landlock refuses '%s'", path);
    close(rule.fd);
    return rc;
}

/* Plan's "landlock ABI PATHS": forbids files and network but for these paths. */
static int jail_apply_op_landlock(char **a, struct err *e)
{
    static const uint64_t fs_of_abi[] = {0, (1u << 13) - 1, (1u << 14) - 1, (1u << 15) - 1, (1u << 15) - 1,
                                         (1u << 16) - 1};
    int abi = atoi(a[0]), top = abi > 5 ? 5 : abi, fd, rc;
    struct ll_ruleset r = {fs_of_abi[top], abi >= 4 ? 3 : 0, abi >= 6 ? 3 : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;

    if (abi < 1)
        return 0;
    fd = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
    if (fd < 0)
        return err_sys(e, "jail: Landlock failed");
    rc = jail_apply_ll_allow(fd, "/", LL_EXECUTE | LL_READ_FILE | LL_READ_DIR, e);
    for (int i = 1; rc == 0 && a[i]; i++)
        rc = jail_apply_ll_allow(fd, a[i], r.fs & ~(strncmp(a[i], "/dev", 4) ? 0 : LL_EXECUTE), e);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        rc = err_sys(e, "jail: Landlock failed");
    close(fd);
    return rc;
}

static const char *const denied[] = {
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "quotactl", "quotactl_fd", "swapon", "swapoff", "acct",
    "unshare", "setns", "personality",
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd",
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "iopl", "ioperm", "modify_ldt", "syslog", "vhangup", "nfsservctl", "lookup_dcookie",
    "name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark", "move_pages", "migrate_pages",
    "mknod", "mknodat", "memfd_secret", "vmsplice", "sched_setattr", "sched_setscheduler", "ioprio_set",
};

#define KNOWN_SYSCALLS 451 /* later numbers are unknown to libseccomp 2.5.4, so to us: ENOSYS, as on an older kernel */

/* Adds the denied system calls to a filter. 0 or libseccomp's error. */
static int jail_apply_seccomp_rules(scmp_filter_ctx f, int no_exec)
{
    static const uint64_t ns[] = {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
                                  CLONE_NEWNET};
    const uint32_t no = SCMP_ACT_ERRNO(EPERM);
    int rc = 0, nr;

    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++)
        if ((nr = seccomp_syscall_resolve_name(denied[i])) >= 0)
            rc |= seccomp_rule_add(f, no, nr, 0);
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
        rc |= seccomp_rule_add(f, no, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, ns[i], ns[i]));
    /* flags in memory: libc falls back to clone */
    rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, 1 /* AF_UNIX */));
    rc |= seccomp_rule_add(f, no, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI));
    if (no_exec) {
        rc |= seccomp_rule_add(f, no, SCMP_SYS(execve), 0);
        rc |= seccomp_rule_add(f, no, SCMP_SYS(execveat), 0);
        rc |= seccomp_rule_add(f, no, SCMP_SYS(fork), 0); /* threads are fine; a process would compute out of sight */
        rc |= seccomp_rule_add(f, no, SCMP_SYS(vfork), 0);
        rc |= seccomp_rule_add(f, no, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    }
    for (nr = KNOWN_SYSCALLS; nr < KNOWN_SYSCALLS + 45; nr++)
        rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
    return rc;
}

/* Plan's "seccomp": loads the filter of system calls. */
static int jail_apply_op_seccomp(char **a, struct err *e)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    int rc = -1;

    if (f) {
        seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 0);
        seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
        seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
        rc = jail_apply_seccomp_rules(f, !strcmp(a[0], "noexec"));
        if (rc == 0)
            rc = seccomp_load(f);
        seccomp_release(f);
    }
    return rc ? err_set(e, ERR_ENV, "jail: the seccomp filter failed: %s", strerror(rc < 0 ? -rc : rc)) : 0;
}

int jail_inner(const char *plan, size_t n, struct err *e)
{
    static const struct jail_apply_op ops[] = {
        {"cwd", 1, jail_apply_op_cwd}, {"limit", 2, jail_apply_op_limit},        {"uid", 1, jail_apply_op_uid},
        {"caps", 0, jail_apply_op_caps},
        {"nnp", 0, jail_apply_op_nnp}, {"landlock", -1, jail_apply_op_landlock}, {"seccomp", 1, jail_apply_op_seccomp},
    };
    struct half h = {ops, sizeof ops / sizeof ops[0]};

    return plan_each(plan, n, jail_apply_run_line, &h, e);
}
