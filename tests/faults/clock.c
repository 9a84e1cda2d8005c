/* clock.c - a library to preload: the machine's clock steps. CLOCK_STEP: by so many seconds, CLOCK_AFTER: from the
 * n-th look at it on, counted in each process. Clocks that only run are left alone, as a real step leaves them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long looks;

static long step(void)
{
    const char *by = getenv("CLOCK_STEP"), *after = getenv("CLOCK_AFTER");

    return by && atomic_fetch_add(&looks, 1) >= (after ? atol(after) : 0) ? atol(by) : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += step();
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
