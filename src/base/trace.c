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

/* Appends a line to the trace; a failure ends tracing. */
static void trace_write_line(const char *line, size_t n)
{
    if (write(trace_fd, line, n) != (ssize_t)n) {
        log_warn("cannot write the trace: no more of it");
        trace_fd = -1;
    }
}

/* Opens the file of MUSACODER_TRACE, if that is set. */
static void trace_open(void)
{
    const char *path = getenv("MUSACODER_TRACE");
    struct stat st;

    if (!path || !*path)
        return;
    trace_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (trace_fd < 0)
        log_warn("cannot write the trace to '%s'", path);
    else if (fstat(trace_fd, &st) == 0 && st.st_size == 0)
        trace_write_line("[\n", 2);
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
    n = snprintf(line, sizeof line, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.0f,\"dur\":%.0f,\"pid\":%d,"
                                    "\"tid\":%d},\n", name,
                 category, since * 1e6, (now - since) * 1e6, (int)getpid(), (int)gettid());
    trace_write_line(line, (size_t)n);
}
