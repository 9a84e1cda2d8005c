/* log.c - see log.h. */
#include "base/log.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum log_level level_min = LOG_INFO;
static bool level_known;
static FILE *tee_file;
static bool line_open; /* a progress line is on the terminal and must be cleared before other text */

/* The level of MUSACODER_LOG, read at the first use. */
static enum log_level log_level_now(void)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    const char *env;

    if (!level_known) {
        level_known = true;
        env = getenv("MUSACODER_LOG");
        for (int i = 0; env && i < 4; i++)
            if (!strcmp(env, names[i]))
                level_min = (enum log_level)i;
    }
    return level_min;
}

void log_set_level(enum log_level level)
{
    level_known = true;
    level_min = level;
}

int log_tee(const char *path)
{
    FILE *f = fopen(path, "ae");

    if (!f)
        return -1;
    if (tee_file)
        fclose(tee_file);
    tee_file = f;
    setvbuf(f, NULL, _IOLBF, 0);
    return 0;
}

/* Writes a message of that level to stderr and to the log file, if there is one. */
static void log_vlog(enum log_level level, const char *fmt, va_list ap)
{
    static const char *const prefix[] = {"debug: ", "", "warning: ", "error: "};
    char line[4096], stamp[32];
    struct tm tm;
    time_t t;

    if (level < log_level_now())
        return;
    vsnprintf(line, sizeof line, fmt, ap);
    if (line_open)
        fputs("\r\033[K", stderr);
    line_open = false;
    fprintf(stderr, "%s%s\n", prefix[level], line);
    if (tee_file) {
        t = time(NULL);
        gmtime_r(&t, &tm);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm);
        fprintf(tee_file, "%s %s%s\n", stamp, prefix[level], line);
    }
}

#define LOG_FN(name, level)                                                                                           \
    void name(const char *fmt, ...)                                                                                   \
    {                                                                                                                 \
        va_list ap;                                                                                                   \
        va_start(ap, fmt);                                                                                            \
        log_vlog(level, fmt, \
                 ap);                                                                                         \
        va_end(ap);                                                                                                   \
    }
LOG_FN(log_debug, LOG_DEBUG)
LOG_FN(log_info, LOG_INFO)
LOG_FN(log_warn, LOG_WARN)
LOG_FN(log_error, LOG_ERROR)

double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void format_duration(double s, char *out, size_t n)
{
    if (s < 0 || s > 1e7)
        snprintf(out, n, "?");
    else if (s >= 3600)
        snprintf(out, n, "%dh%02dm", (int)s / 3600, (int)s / 60 % 60);
    else if (s >= 60)
        snprintf(out, n, "%dm%02ds", (int)s / 60, (int)s % 60);
    else
        snprintf(out, n, "%.1fs", s);
}

void progress_start(struct progress *p, const char *name, uint64_t done, uint64_t total)
{
    memset(p, 0, sizeof *p);
    p->name = name;
    p->first = p->done = done;
    p->total = total;
    p->start = p->last = now_s();
}

void progress_note(struct progress *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->note, sizeof p->note, fmt, ap);
    va_end(ap);
}

/* Draws a progress line with its remaining time. tty: over the line before. */
static void log_draw(struct progress *p, bool tty)
{
    double spent = now_s() - p->start;
    double eta = p->done > p->first ? spent * (double)(p->total - p->done) / (double)(p->done - p->first) : -1;
    char left[32];

    if (p->total < p->done)
        eta = 0;
    format_duration(eta, left, sizeof left);
    fprintf(stderr, "%s%s %llu/%llu %d%%%s%s  ETA %s%s", tty ? "\r\033[K" : "", p->name, (unsigned long long)p->done,
            (unsigned long long)p->total, p->total ? (int)(100 * p->done / p->total) : 100, *p->note ? "  " : "",
            p->note, left, tty ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
    line_open = tty;
}

void progress_at(struct progress *p, uint64_t done)
{
    bool tty = isatty(2);
    double t = now_s();

    p->done = done;
    if (t - p->last < (tty ? 0.1 : 10.0) || log_level_now() > LOG_INFO)
        return;
    p->last = t;
    log_draw(p, tty);
}

void progress_end(struct progress *p)
{
    char spent[32];

    if (log_level_now() > LOG_INFO)
        return;
    if (line_open)
        fputs("\r\033[K", stderr);
    line_open = false;
    format_duration(now_s() - p->start, spent, sizeof spent);
    fprintf(stderr, "%s %llu/%llu%s%s  in %s\n", p->name, (unsigned long long)p->done, (unsigned long long)p->total,
            *p->note ? "  " : "", p->note, spent);
}

static volatile sig_atomic_t stop_flag;

#define SAME_WISH_MS 500
static atomic_llong stop_first_ms;

/* The signal's handler: the first one asks to stop, the second one ends the process. What comes at once is one wish: a
 * terminal and timeout(1) both send it. */
static void log_on_stop(int sig)
{
    struct timespec t;
    long long ms;

    clock_gettime(CLOCK_MONOTONIC, &t);
    ms = (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (!stop_flag)
        atomic_store(&stop_first_ms, ms);
    else if (ms - atomic_load(&stop_first_ms) > SAME_WISH_MS) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    stop_flag = 1;
}

void stop_install(void)
{
    struct sigaction sa = {.sa_handler = log_on_stop};

    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

static _Thread_local const atomic_bool *also;

void stop_also(const atomic_bool *flag)
{
    also = flag;
}

bool stop_requested(void)
{
    return stop_flag != 0 || (also && atomic_load(also));
}

#define LOOK_NS 100000000

struct timespec stop_look_again(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
