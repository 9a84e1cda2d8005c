/* crash.c - a library to preload: the process that it is loaded into ends by SIGKILL in its n-th call that changes
 * files below a folder. What that process starts does not load it, and sees the environment that it would see without.
 *
 * CRASH_UNDER: the folder's path. CRASH_AT: n, from 1; 0 or absent: nothing ends. CRASH_LIST: a file that gets a
 * line "CALL PATH" for each such call. CRASH_ONLY: a word that the path must hold. Calls: write, pwrite, fsync,
 * fdatasync, rename, unlink, remove, link, ftruncate; a write is cut in half first. What stdio writes by itself is not
 * seen: the fsync and rename behind it are. CRASH_HALT: it is stopped by SIGSTOP there, before the call, and may go
 * on. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char under[4096], list[4096], only[256];
static long at;
static int halt;
static atomic_long count;

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("CRASH_UNDER"), *n = getenv("CRASH_AT"), *to = getenv("CRASH_LIST");
    const char *word = getenv("CRASH_ONLY");

    snprintf(under, sizeof under, "%s", folder ? folder : "");
    snprintf(list, sizeof list, "%s", to ? to : "");
    snprintf(only, sizeof only, "%s", word ? word : "");
    at = n ? atol(n) : 0;
    halt = getenv("CRASH_HALT") != NULL;
    unsetenv("LD_PRELOAD"); /* verdicts are kept by it, among others */
    unsetenv("CRASH_UNDER");
    unsetenv("CRASH_AT");
    unsetenv("CRASH_LIST");
    unsetenv("CRASH_ONLY");
    unsetenv("CRASH_HALT");
}

static void note(const char *call, const char *path)
{
    char line[4200];
    int n = snprintf(line, sizeof line, "%s %s\n", call, path), fd;

    if (!*list || (fd = (int)syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return;
    syscall(SYS_write, fd, line, (size_t)n);
    syscall(SYS_close, fd);
}

/* Is this the call to end in? */
static int now(const char *call, const char *path)
{
    if (!*under || strncmp(path, under, strlen(under)) || !strstr(path, only))
        return 0;
    note(call, path);
    if (atomic_fetch_add(&count, 1) + 1 != at)
        return 0;
    if (halt)
        kill(getpid(), SIGSTOP);
    return !halt;
}

static int now_fd(const char *call, int fd)
{
    char link[64], path[4096];
    ssize_t n;

    if (!*under)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return now(call, path);
}

/* Paths as they are given may be relative to the working directory. */
static int now_path(const char *call, const char *path)
{
    char full[8200], cwd[4096];

    if (!*under || *path == '/')
        return now(call, path);
    if (!getcwd(cwd, sizeof cwd))
        return 0;
    snprintf(full, sizeof full, "%s/%s", cwd, path);
    return now(call, full);
}

static void end(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (now_fd("write", fd)) {
        syscall(SYS_write, fd, p, n / 2);
        end();
    }
    return syscall(SYS_write, fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t to)
{
    if (now_fd("pwrite", fd)) {
        syscall(SYS_pwrite64, fd, p, n / 2, to);
        end();
    }
    return syscall(SYS_pwrite64, fd, p, n, to);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t to)
{
    return pwrite(fd, p, n, to);
}

int fdatasync(int fd)
{
    if (now_fd("fdatasync", fd))
        end();
    return 0;
}

int fsync(int fd)
{
    if (now_fd("fsync", fd))
        end();
    return 0; /* what a killed process wrote is there; this saves the disk's time */
}

int ftruncate(int fd, off_t n)
{
    if (now_fd("ftruncate", fd))
        end();
    return (int)syscall(SYS_ftruncate, fd, n);
}

int rename(const char *from, const char *to)
{
    if (now_path("rename", to))
        end();
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    if (now_path("rename", to))
        end();
    return (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

int unlink(const char *path)
{
    if (now_path("unlink", path))
        end();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int fd, const char *path, int flags)
{
    if (fd == AT_FDCWD ? now_path("unlink", path) : now_fd("unlink", fd))
        end();
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int remove(const char *path)
{
    if (now_path("remove", path))
        end();
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0 ? 0 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int link(const char *from, const char *to)
{
    if (now_path("link", to))
        end();
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
