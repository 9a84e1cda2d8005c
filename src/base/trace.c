/* trace.c - see trace.h. */
#include "base/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int trace_fd = -1;

#define TRACE_HEAD "[\n"
#define TRACE_ROW "{\"name\":\""

/* Appends a line to the trace; a failure ends tracing. */
static void trace_write_line(const char *line, size_t n)
{
    if (write(trace_fd, line, n) != (ssize_t)n) {
        log_warn("cannot write the trace: no more of it");
        trace_fd = -1;
    }
}

/* What a file of ours begins with, as far as it goes: somebody's file is not written to. */
static bool trace_is_ours(int fd, off_t size)
{
    static const char head[] = TRACE_HEAD TRACE_ROW;
    size_t n = size < (off_t)(sizeof head - 1) ? (size_t)size : sizeof head - 1;
    char began[sizeof head];

    return pread(fd, began, n, 0) == (ssize_t)n && !memcmp(began, head, n);
}

int trace_check(struct err *e)
{
    const char *path = getenv("MUSACODER_TRACE");
    int fd = path && *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1, rc = 0;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && !trace_is_ours(fd, st.st_size))
        rc = err_set(e, ERR_INPUT, "MUSACODER_TRACE names '%s', which is no trace; name another file", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Opens the file of MUSACODER_TRACE, if that is set. */
static void trace_open(void)
{
    const char *path = getenv("MUSACODER_TRACE");
    struct stat st;

    if (!path || !*path)
        return;
    trace_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (trace_fd < 0) {
        log_warn("cannot write the trace to '%s'", path);
    } else if (fstat(trace_fd, &st) == 0 && st.st_size == 0) {
        trace_write_line(TRACE_HEAD, 2);
    } else if (!trace_is_ours(trace_fd, st.st_size)) {
        log_warn("'%s' is no trace, and is left as it is; name another file in MUSACODER_TRACE", path);
        close(trace_fd);
        trace_fd = -1;
    }
}

bool trace_on(void)
{
    pthread_once(&once, trace_open);
    return trace_fd >= 0;
}

/* Names are ours or a candidate's: nothing but plain characters gets into the JSON. */
static void trace_plain(char *s)
{
    for (; *s; s++)
        if (*s == '"' || *s == '\\' || (unsigned char)*s < 32 || (unsigned char)*s > 126)
            *s = '_';
}

void trace_span(double since, const char *category, const char *fmt, ...)
{
    char name[160], line[400];
    va_list ap;
    double now;
    int n;

    if (!trace_on() || (now = now_s()) - since < TRACE_LEAST_S)
        return;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    trace_plain(name);
    n = snprintf(line, sizeof line, TRACE_ROW "%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.0f,\"dur\":%.0f,\"pid\":%d,"
                                    "\"tid\":%d},\n", name,
                 category, since * 1e6, (now - since) * 1e6, (int)getpid(), (int)gettid());
    trace_write_line(line, (size_t)n);
}
