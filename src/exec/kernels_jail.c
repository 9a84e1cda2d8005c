/* kernels_jail.c - see kernels_jail.h. */
#include "exec/kernels_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sys/prctl.h>

static const int allowed[] = {
    SCMP_SYS(read),        SCMP_SYS(write),          SCMP_SYS(recvfrom),     SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),      SCMP_SYS(sendmsg),        SCMP_SYS(mmap),         SCMP_SYS(munmap),
    SCMP_SYS(mprotect),    SCMP_SYS(madvise),        SCMP_SYS(mremap),       SCMP_SYS(brk),
    SCMP_SYS(futex),       SCMP_SYS(exit),           SCMP_SYS(exit_group),   SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(sigaltstack),  SCMP_SYS(close),
    SCMP_SYS(fstat),       SCMP_SYS(newfstatat),     SCMP_SYS(lseek),        SCMP_SYS(pread64),
    SCMP_SYS(getpid),      SCMP_SYS(gettid),         SCMP_SYS(clock_gettime), SCMP_SYS(getrandom),
    SCMP_SYS(sched_yield), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),        SCMP_SYS(restart_syscall),
};

/* Reading only: no access mode but O_RDONLY, nothing is created. */
static int kernels_jail_allow_reading(scmp_filter_ctx f)
{
    return seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY));
}

static const int forbidden[] = {
    SCMP_SYS(execve),  SCMP_SYS(execveat), SCMP_SYS(fork),    SCMP_SYS(vfork),             SCMP_SYS(ptrace),
    SCMP_SYS(socket),  SCMP_SYS(connect),  SCMP_SYS(bind),    SCMP_SYS(process_vm_readv),  SCMP_SYS(process_vm_writev),
    SCMP_SYS(mount),   SCMP_SYS(umount2),  SCMP_SYS(setns),   SCMP_SYS(unshare),           SCMP_SYS(pidfd_open),
    SCMP_SYS(bpf),     SCMP_SYS(keyctl),   SCMP_SYS(reboot),  SCMP_SYS(init_module),       SCMP_SYS(finit_module),
    SCMP_SYS(symlink), SCMP_SYS(link),     SCMP_SYS(chmod),   SCMP_SYS(chown),             SCMP_SYS(perf_event_open),
};

/* An empty folder that every system has and no program here needs: memory is mounted there. */
static const char *const places[] = {"/boot", "/srv", "/media"};

bool executor_apart(bool is_sim)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    if (!is_sim) /* processes of others are not there any more */
        return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (mount("executor", places[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=1g,mode=700") == 0)
            return setenv("TMPDIR", places[i], 1) == 0;
    return false;
}

/* All capabilities: namespaces and mounts are made. */
static bool kernels_jail_drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0}};

    return syscall(SYS_capset, &head, none) == 0;
}

bool executor_jail(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    bool ok = f != NULL;

    for (size_t i = 0; ok && i < sizeof forbidden / sizeof forbidden[0]; i++)
        ok = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), forbidden[i], 0) == 0;
    ok = kernels_jail_drop_capabilities() && ok && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && seccomp_load(f) == 0;
    if (f)
        seccomp_release(f);
    return ok;
}

/* abort() of a failed assertion: a signal to this process alone. Without it abort ends in a fault of another kind. */
static int kernels_jail_allow_abort(scmp_filter_ctx f)
{
    return seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

bool kernels_jail(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    bool ok = f && kernels_jail_allow_reading(f) == 0 && kernels_jail_allow_abort(f) == 0;

    for (size_t i = 0; ok && i < sizeof allowed / sizeof allowed[0]; i++)
        ok = seccomp_rule_add(f, SCMP_ACT_ALLOW, allowed[i], 0) == 0;
    ok = ok && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && seccomp_load(f) == 0;
    if (f)
        seccomp_release(f);
    return ok;
}
