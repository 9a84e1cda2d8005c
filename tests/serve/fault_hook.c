/* fault_hook.c - preloaded into a server or a worker: the process dies, or halts, at a named moment, once.
 *
 *   FAULT_AT    sql:TEXT[:after]  a statement of SQLite whose text has TEXT, before or after it ran
 *               write:N           the N-th write into a SQLite WAL file: in the midst of a commit
 *               send:N            the N-th message to a server: PostgreSQL's client
 *   FAULT_ONCE  a file that does not exist; it is made when the moment comes, and then nothing happens again
 *   FAULT_DO    kill | halt       SIGKILL or SIGSTOP to the process itself
 *   FAULT_CLOCK a file with seconds: the machine's clock is off by them */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void strike(void)
{
    const char *once = getenv("FAULT_ONCE"), *what = getenv("FAULT_DO");
    int fd = once ? open(once, O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;

    if (fd < 0)
        return;
    close(fd);
    kill(getpid(), what && !strcmp(what, "halt") ? SIGSTOP : SIGKILL);
}

/* Does FAULT_AT begin with this word? What follows it. */
static const char *moment(const char *word)
{
    const char *at = getenv("FAULT_AT");
    size_t n = strlen(word);

    return at && !strncmp(at, word, n) ? at + n : NULL;
}

static int fits(sqlite3_stmt *s, int after)
{
    const char *want = moment("sql:"), *end = want ? strstr(want, ":after") : NULL, *text = sqlite3_sql(s);
    char word[200] = "";

    if (!want || !text || (end != NULL) != after)
        return 0;
    strncat(word, want, end ? (size_t)(end - want) : sizeof word - 1);
    return strstr(text, word) != NULL;
}

int sqlite3_step(sqlite3_stmt *s)
{
    static int (*real)(sqlite3_stmt *);
    int rc;

    if (!real)
        real = (int (*)(sqlite3_stmt *))dlsym(RTLD_NEXT, "sqlite3_step");
    if (fits(s, 0))
        strike();
    rc = real(s);
    if (rc == SQLITE_DONE && fits(s, 1))
        strike();
    return rc;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    static atomic_int count;
    const char *want = moment("write:");
    char name[4200] = "", link[64];

    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    if (want) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, name, sizeof name - 1) > 0 && strstr(name, "-wal") &&
            atomic_fetch_add(&count, 1) + 1 == atoi(want)) {
            real(fd, p, n / 2, at);
            strike();
        }
    }
    return real(fd, p, n, at);
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    static atomic_int count;
    const char *want = moment("send:");
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;

    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    if (want && getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.ss_family == AF_UNIX &&
        atomic_fetch_add(&count, 1) + 1 == atoi(want))
        strike();
    return real(fd, p, n, flags);
}

/* FAULT_CLOCK: a file with seconds that the machine's clock is off by, read again and again: the clock jumps. */
static long shift(void)
{
    static atomic_long at, seconds;
    static int (*real)(clockid_t, struct timespec *);
    const char *path = getenv("FAULT_CLOCK");
    struct timespec now;
    char text[32] = "";
    int fd;

    if (!path)
        return 0;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    if (atomic_exchange(&at, now.tv_sec * 20 + now.tv_nsec / 50000000) == now.tv_sec * 20 + now.tv_nsec / 50000000)
        return atomic_load(&seconds);
    if ((fd = open(path, O_RDONLY)) >= 0) {
        if (read(fd, text, sizeof text - 1) > 0)
            atomic_store(&seconds, atol(text));
        close(fd);
    }
    return atomic_load(&seconds);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    int rc;

    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    rc = real(id, t);
    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += shift();
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
