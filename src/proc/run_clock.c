/* run_clock.c - see run_clock.h. */
#include "proc/run_clock.h"

#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"

#define SLICE_S 0.25 /* between two looks */
#define DEPTH 4      /* of descendants: a jail is one, what it holds another */
#define STOPPED_S 0.5 /* so much later than asked nobody comes back who may run */

struct run_thread {
    pid_t tid;
    double ran, waited; /* seconds of its life */
    double here;        /* of ran, those since the start */
};

/* A small file of /proc as text; false: the process is gone. */
static bool run_clock_read(const char *path, char *text, size_t n)
{
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(text, 1, n - 1, f) : 0;

    if (f)
        fclose(f);
    text[got] = 0;
    return got > 0;
}

/* What a thread had at the last look: nothing if it is new. */
static struct run_thread run_clock_had(const struct run_clock *c, pid_t tid)
{
    for (size_t i = 0; i < c->n_threads; i++)
        if (c->threads[i].tid == tid)
            return c->threads[i];
    return (struct run_thread){.tid = tid};
}

/* Adds one thread to the new list, and what it did since the last look to the sums. The kernel adds a wait when it is
 * over, so that only sums from the start on say something. ours: it works for the caller, whose work is not theirs. */
static void run_clock_add(struct run_clock *c, struct run_clock *seen, const char *path, pid_t tid, bool ours)
{
    struct run_thread now = {.tid = tid}, had = run_clock_had(c, tid);
    unsigned long long ran, waited;
    char text[96];

    if (!run_clock_read(path, text, sizeof text) || sscanf(text, "%llu %llu", &ran, &waited) != 2)
        return;
    now.ran = (double)ran * 1e-9;
    now.waited = (double)waited * 1e-9;
    now.here = had.here + (ours ? 0 : fmax(0, now.ran - had.ran));
    seen->threads = xrealloc(seen->threads, (seen->n_threads + 1) * sizeof *seen->threads);
    seen->threads[seen->n_threads++] = now;
    c->waited_s += fmax(0, now.waited - had.waited);
    c->all_s += now.here - had.here;
    c->busiest_s = fmax(c->busiest_s, now.here);
}

/* Adds all threads of a process and of its descendants. */
static void run_clock_add_process(struct run_clock *c, struct run_clock *seen, pid_t pid, int depth)
{
    char path[96], text[1024], *at = text, *end;
    struct dirent *entry;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!(d = opendir(path)))
        return;
    while ((entry = readdir(d)))
        if (*entry->d_name != '.') {
            snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, entry->d_name);
            run_clock_add(c, seen, path, (pid_t)strtol(entry->d_name, NULL, 10), false);
        }
    closedir(d);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (depth <= 0 || !run_clock_read(path, text, sizeof text))
        return;
    for (long child; (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
        run_clock_add_process(c, seen, (pid_t)child, depth - 1);
}

double run_clock_alone(double wall, double waited, double all, double busiest, int processors)
{
    double work = fmax(busiest, all / fmax(1, processors));

    return fmin(wall, fmax(wall - waited, work));
}

double run_clock_look(struct run_clock *c)
{
    struct run_clock seen = {0};

    run_clock_add(c, &seen, "/proc/thread-self/schedstat", gettid(), true);
    for (int i = 0; i < 2; i++)
        if (c->pids[i] > 0)
            run_clock_add_process(c, &seen, c->pids[i], DEPTH);
    free(c->threads);
    c->threads = seen.threads;
    c->n_threads = seen.n_threads;
    c->wall_s = now_s() - c->begun;
    c->run_s = run_clock_alone(c->wall_s, c->waited_s, c->all_s, c->busiest_s, machine_processors());
    return c->run_s;
}

void run_clock_start(struct run_clock *c, const pid_t pids[2])
{
    *c = (struct run_clock){.pids = {pids[0], pids[1]}};
    run_clock_look(c);
    for (size_t i = 0; i < c->n_threads; i++)
        c->threads[i].here = 0;
    c->waited_s = c->all_s = c->busiest_s = c->wall_s = c->run_s = 0;
    c->begun = now_s();
}

/* Has the thread a processor, or does it stand in line for one? */
static bool run_clock_is_queued(pid_t tid)
{
    char path[64], text[512], *name_end;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
    name_end = run_clock_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}

double run_clock_of(pid_t pid, double wall)
{
    struct run_clock c = {0}, seen = {0}; /* whole lives: none of its threads was seen before */
    bool queued = false;

    run_clock_add_process(&c, &seen, pid, DEPTH);
    for (size_t i = 0; i < seen.n_threads; i++)
        queued = queued || run_clock_is_queued(seen.threads[i].tid);
    free(seen.threads);
    return run_clock_alone(wall, queued ? wall : c.waited_s, c.all_s, c.busiest_s, machine_processors());
}

void run_clock_end(struct run_clock *c)
{
    free(c->threads);
    *c = (struct run_clock){0};
}

/* Waits so many seconds by the wall's clock. */
static bool run_clock_readable(int fd, double seconds)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, (int)(fmax(seconds, 0) * 1e3) + 1) > 0;
}

double run_clock_stopped(double asked, double took)
{
    return took - asked > STOPPED_S ? took - asked : 0;
}

/* Waits for a slice and looks. Where the caller was stopped meanwhile, the others were: the clock stood still. */
static bool run_clock_slice(struct run_clock *c, int fd, double seconds)
{
    double t0 = now_s(), waited = c->waited_s, took, stopped;
    bool there = run_clock_readable(fd, seconds);

    took = now_s() - t0;
    run_clock_look(c);
    stopped = run_clock_stopped(seconds, took - (c->waited_s - waited));
    c->begun += stopped;
    if (stopped > 0)
        run_clock_look(c);
    return there;
}

int run_clock_poll(struct run_clock *c, const pid_t pids[2], int fd, double left, double *ret_s)
{
    double t0 = now_s(), first;
    bool there = run_clock_readable(fd, fmin(left, RUN_CLOCK_SHORT));

    first = fmin(now_s() - t0, RUN_CLOCK_SHORT); /* the rest of it the caller was late */
    *ret_s = there ? first / machine_busy() : first;
    if (there || *ret_s >= left)
        return there;
    for (run_clock_start(c, pids); !there && *ret_s < left && c->wall_s < RUN_CLOCK_MOST * left && !stop_requested();) {
        there = run_clock_slice(c, fd, fmin(SLICE_S, left - *ret_s));
        *ret_s = first + c->run_s;
    }
    return there;
}
