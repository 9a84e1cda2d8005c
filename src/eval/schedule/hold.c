/* hold.c - see hold.h. A taker passes the gate first, one at a time; who will be alone, and has been patient, keeps the gate
 * closed behind it until the sharers inside have left. In a process one thread at a time does that for all that want to
 * be alone: the lock is handed from one to the next. */
#include "eval/schedule/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/trace.h"

static const char *name_of(const char *device)
{
    return *device ? device : "device";
}

static int open_file(const char *folder, const char *device, const char *suffix, struct err *e)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s.%s", folder, name_of(device), suffix);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 ? err_sys(e, "cannot open '%s'", path) : fd;
}

#define GATE_MS 50 /* longest sleep between two looks at the gate; there may be many that look */
#define LOCK_MS 10 /* at the lock, by the one that has the gate */

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

double hold_patience_s = 8.0;
static _Atomic int lasting; /* shares of this process that are kept for seconds */

/* Keeping others out for the sake of who came at t0 would only make them wait too. */
static bool one_stays(double t0)
{
    return lasting && now_s() - t0 < HOLD_LASTS_S;
}

/* flock, but a wait in the kernel would end on Ctrl-C in one thread only: looks again, after 1 ms first, then less
 * and less often, every most_ms at last. 1: locked; 0: given up, because one_stays(t0). t0: NAN, never. */
static int lock_file(int fd, int how, int most_ms, double t0, struct err *e)
{
    for (int ms = 1; flock(fd, how | LOCK_NB) < 0; ms = ms * 2 < most_ms ? ms * 2 : most_ms) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(e, "cannot lock a device");
        if (stop_requested())
            return err_set(e, ERR_STOP, "interrupted");
        if (one_stays(t0))
            return 0;
        sleep_ms(ms);
    }
    return 1;
}

/* What this thread holds: how often, and of which device. */
static _Thread_local struct {
    int depth;
    char device[128];
} mine;

/* ---- one process's queue of those that want to be alone ---- */

struct waiter {
    struct waiter *next;
    char device[128];
    double since;
    enum { WAITS, GOT_LOCK, LEADS } state;
    int fd; /* GOT_LOCK */
};

struct leader { /* of a device: who has the lock alone or is about to take it */
    char device[128]; /* "": nobody's */
    double since;     /* when the batch began */
};

#define LEADERS 16
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct waiter *first;
    struct leader leaders[LEADERS];
} line = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static struct leader *leader_of(const char *device)
{
    struct leader *empty = NULL;

    for (int i = 0; i < LEADERS; i++) {
        if (!strcmp(line.leaders[i].device, device))
            return &line.leaders[i];
        if (!line.leaders[i].device[0])
            empty = &line.leaders[i];
    }
    return empty;
}

/* Takes w out of the line. */
static void leave_line(struct waiter *w)
{
    struct waiter **p = &line.first;

    while (*p && *p != w)
        p = &(*p)->next;
    if (*p)
        *p = w->next;
}

/* The next one for this device gets the lock, or the task of taking it when fd is -1. False: there is none. */
static bool hand_on(const char *device, int fd)
{
    struct waiter *w = line.first;

    while (w && (w->state != WAITS || strcmp(w->device, device)))
        w = w->next;
    if (!w)
        return false;
    w->state = fd >= 0 ? GOT_LOCK : LEADS;
    w->fd = fd;
    pthread_cond_broadcast(&line.change);
    return true;
}

/* Of all that wait for this device, in this process. */
static double waited_together(const char *device)
{
    double sum = 0, now = now_s();

    pthread_mutex_lock(&line.lock);
    for (const struct waiter *w = line.first; w; w = w->next)
        sum += strcmp(w->device, device) ? 0 : now - w->since;
    pthread_mutex_unlock(&line.lock);
    return sum;
}

static void wait_for_change(void)
{
    struct timespec t = stop_look_again();

    pthread_cond_clockwait(&line.change, &line.lock, CLOCK_MONOTONIC, &t);
}

/* Until this thread leads (*ret_fd is -1), or has been handed the lock: its descriptor. */
static int stand_in_line(const char *name, int *ret_fd, struct err *e)
{
    struct waiter w = {.fd = -1, .state = LEADS, .since = now_s()}, **p;
    struct leader *l;

    snprintf(w.device, sizeof w.device, "%s", name);
    pthread_mutex_lock(&line.lock);
    l = leader_of(name);
    if (l && l->device[0]) {
        for (p = &line.first; *p; p = &(*p)->next)
            ;
        *p = &w;
        w.state = WAITS;
        while (w.state == WAITS && !stop_requested())
            wait_for_change();
        leave_line(&w);
    } else if (l) {
        snprintf(l->device, sizeof l->device, "%s", name);
    }
    pthread_mutex_unlock(&line.lock);
    *ret_fd = w.fd;
    return w.state == WAITS ? err_set(e, ERR_STOP, "interrupted") : 0;
}

/* fd: the lock, which the next one gets as long as the batch is young; else it is closed and the next one leads. */
static void end_lead(const char *name, int fd)
{
    struct leader *l;
    bool young;

    pthread_mutex_lock(&line.lock);
    l = leader_of(name);
    young = fd >= 0 && l && now_s() - l->since < HOLD_BATCH_S && !stop_requested();
    if (!young || !hand_on(name, fd)) {
        if (fd >= 0)
            close(fd);
        if (!hand_on(name, -1) && l)
            l->device[0] = 0;
    }
    pthread_mutex_unlock(&line.lock);
}

static void begin_batch(const char *name)
{
    struct leader *l;

    pthread_mutex_lock(&line.lock);
    if ((l = leader_of(name)))
        l->since = now_s();
    pthread_mutex_unlock(&line.lock);
}

/* ---- taking ---- */

/* Both without waiting: who waits behind the gate is not overtaken. 1: fd is locked, and the gate; 0: neither. */
static int try_both(int gate, int fd, struct err *e)
{
    if (flock(gate, LOCK_EX | LOCK_NB) == 0) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 1;
        if (errno == EWOULDBLOCK || errno == EINTR)
            return flock(gate, LOCK_UN) < 0 ? err_sys(e, "cannot lock a device") : 0;
    }
    return errno == EWOULDBLOCK || errno == EINTR ? 0 : err_sys(e, "cannot lock a device");
}

/* The more wait, the sooner it is worth the while to keep others out. */
static bool been_patient(const char *name, double t0)
{
    double waited = now_s() - t0;

    return waited >= hold_patience_s / 4 && waited + waited_together(name) >= hold_patience_s;
}

/* A moment without anybody inside, without keeping anybody out. 1: fd is locked, and the gate; 0: who came at t0 has been
 * patient. */
static int wait_for_a_gap(const char *name, int gate, int fd, double t0, struct err *e)
{
    int rc;

    for (;;) {
        if ((rc = try_both(gate, fd, e)) != 0)
            return rc;
        if (stop_requested())
            return err_set(e, ERR_STOP, "interrupted");
        if (been_patient(name, t0) && !one_stays(t0))
            return 0;
        sleep_ms(5);
    }
}

/* The gate is opened again when a share turns out to be one that lasts. 1, or -1. */
static int lock_alone(const char *name, int gate, int fd, struct err *e)
{
    double t0 = now_s(), closed;
    int rc;

    while ((rc = wait_for_a_gap(name, gate, fd, t0, e)) == 0 && (rc = lock_file(gate, LOCK_EX, GATE_MS, NAN, e)) == 1) {
        closed = now_s();
        rc = lock_file(fd, LOCK_EX, LOCK_MS, t0, e);
        trace_span(closed, "wait", "for those inside, keeping others out");
        if (rc != 0)
            break;
        if (flock(gate, LOCK_UN) < 0)
            return err_sys(e, "cannot lock a device");
    }
    return rc;
}

static int lock_shared(int gate, int fd, struct err *e)
{
    return lock_file(gate, LOCK_EX, GATE_MS, NAN, e) < 0 ? -1 : lock_file(fd, LOCK_SH, LOCK_MS, NAN, e);
}

/* The lock's descriptor, or -1. */
static int pass(const char *device, bool alone, struct err *e)
{
    char *folder = path_cache("device");
    int rc = dir_make(folder, e), gate = -1, fd = -1;

    if (rc == 0 && ((fd = open_file(folder, device, "lock", e)) < 0 || (gate = open_file(folder, device, "gate", e)) < 0))
        rc = -1;
    if (rc == 0)
        rc = alone ? lock_alone(name_of(device), gate, fd, e) : lock_shared(gate, fd, e);
    if (gate >= 0)
        close(gate);
    if (rc < 0 && fd >= 0)
        close(fd);
    free(folder);
    return rc < 0 ? -1 : fd;
}

int hold_take(const char *device, bool alone, struct hold *h, struct err *e)
{
    const char *name = name_of(device);
    int fd = -1;

    if (mine.depth && (alone || strcmp(mine.device, device)))
        return err_set(e, ERR_BUG, "a thread that holds device '%s' asks for '%s'", mine.device, device);
    if (mine.depth) {
        mine.depth++;
        h->fd = -1;
        return 0;
    }
    if (alone && stand_in_line(name, &fd, e) < 0)
        return -1;
    if (fd < 0) {
        fd = pass(device, alone, e);
        if (alone && fd >= 0)
            begin_batch(name);
        else if (alone)
            end_lead(name, -1);
    }
    if (fd < 0)
        return -1;
    snprintf(mine.device, sizeof mine.device, "%s", device);
    *h = (struct hold){.fd = fd + 1, .alone = alone, .since = now_s()};
    mine.depth = 1;
    return 0;
}

bool hold_wanted(const char *device)
{
    char *folder = path_cache("device");
    int gate = open_file(folder, device, "gate", NULL);
    bool wanted = gate >= 0 && flock(gate, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

    if (gate >= 0)
        close(gate);
    free(folder);
    return wanted;
}

bool hold_lasts(struct hold *h, bool lasts)
{
    bool before = h->lasts;

    h->lasts = lasts && h->fd > 0;
    lasting += h->lasts - before;
    return before;
}

bool hold_any_lasts(void)
{
    return lasting > 0;
}

bool hold_awaited(const char *device)
{
    const struct leader *l;
    bool awaited;

    pthread_mutex_lock(&line.lock);
    l = leader_of(name_of(device));
    awaited = l && l->device[0];
    pthread_mutex_unlock(&line.lock);
    return awaited;
}

void hold_drop(struct hold *h)
{
    hold_lasts(h, false);
    if (h->fd > 0 && h->alone)
        trace_span(h->since, "hold", "alone");
    if (h->fd > 0 && h->alone)
        end_lead(name_of(mine.device), h->fd - 1);
    else if (h->fd > 0)
        close(h->fd - 1);
    mine.depth -= h->fd != 0;
    *h = (struct hold){0};
}
