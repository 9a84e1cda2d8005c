/* log.h - what people see while we work: levels on stderr, and one progress line. stdout is for data only. */
#ifndef MC_LOG_H
#define MC_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level); /* default LOG_INFO, or $MUSACODER_LOG=debug|info|warn|error */
int log_tee(const char *path);            /* also append to this file; -1 if it cannot be opened */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

double now_s(void); /* monotonic seconds */

/* A progress line "name 120/400 30% note ETA 1m20s". On a terminal it is redrawn in place, elsewhere a line is
 * printed every ten seconds. ETA comes from the work done since start, so a resumed job passes 'done' at start. */
struct progress {
    const char *name;
    uint64_t total, first, done;
    double start, last;
    char note[128];
    bool drawn;
};
void progress_start(struct progress *p, const char *name, uint64_t done, uint64_t total);
void progress_note(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_at(struct progress *p, uint64_t done);
void progress_end(struct progress *p);
void format_duration(double seconds, char *out, size_t n); /* "1h02m", "3m20s", "4.2s" */

/* Ctrl-C: the first SIGINT or SIGTERM sets a flag that long work polls; another, half a second later, ends the process
 * at once. */
void stop_install(void);
bool stop_requested(void);
/* This thread also stops when *flag is true (NULL: no more): one job of many is to end. The flag outlives its use. */
void stop_also(const atomic_bool *flag);
/* A signal reaches one thread only. So who waits for a condition or a semaphore waits until then at most
 * (pthread_cond_clockwait, sem_clockwait; CLOCK_MONOTONIC), looks whether it is to stop, and waits again. */
struct timespec stop_look_again(void);

#endif
