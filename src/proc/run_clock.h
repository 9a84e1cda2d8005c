/* run_clock.h - the time that processes would have needed with the machine's processors for themselves: a limit that
 * counts it says the same on a busy machine.
 *
 * Linux tells of each thread how long it ran and how long it waited for a processor
 * (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). Waiting is not counted; sleeping is. Where
 * the kernel does not tell, the clock is the wall's. */
#ifndef MC_RUN_CLOCK_H
#define MC_RUN_CLOCK_H

#include <stddef.h>
#include <sys/types.h>

#define RUN_CLOCK_MOST 20.0  /* a limit lasts at most so many times as long by the wall's clock */
#define RUN_CLOCK_SHORT 0.1  /* seconds: what is over so soon is not looked at, as a look costs as much as a call */

/* of an error: who (text), the seconds that it ran, the seconds that passed */
#define RUN_CLOCK_STARVED "the machine is too busy: %s got %.1f s of run time in %.0f s; run less beside it"

/* Of a wait for 'asked' seconds that took longer: those in which this process did not run, as all were stopped (a
 * paused container, SIGSTOP, a suspended machine). 0: it came back as late as on a busy machine. Pure. */
double run_clock_stopped(double asked, double took);

struct run_thread;

struct run_clock { /* zeroed: of nobody but the caller */
    pid_t pids[2]; /* with their descendants; 0: none */
    struct run_thread *threads; /* as seen last, of all of them and the calling one */
    size_t n_threads;
    double begun, wall_s, run_s; /* now_s() of the start; seconds from there until the last look */
    double waited_s, all_s, busiest_s; /* of threads: waited, and ran, all together; the one that ran most */
};

/* Begins; run_clock_end frees. The waiting of the calling thread is not counted either: it may see an answer late. */
void run_clock_start(struct run_clock *c, const pid_t pids[2]);
/* Seconds of run time from the start until now. Call it at least once a second: threads that ended since the last
 * look are not seen. */
double run_clock_look(struct run_clock *c);
void run_clock_end(struct run_clock *c);

/* Run time of a process that began so many wall seconds ago: less what it, and those of its descendants that live,
 * waited for processors. At most wall. While one of them has a processor or stands in line for one it is what they
 * worked: the kernel counts a wait when it is over. */
double run_clock_of(pid_t pid, double wall);

/* What wall seconds were alone, if threads waited for processors so long, ran so long all together, and the busiest one
 * ran so long. Between the work of it and wall. Pure. */
double run_clock_alone(double wall, double waited, double all, double busiest, int processors);

/* Waits until fd can be read, or 'left' seconds of c's run time are over, or RUN_CLOCK_MOST times as long by the wall's
 * clock, or Ctrl-C. Time in which the caller was stopped counts for neither. c begins here, unless the answer comes at
 * once (RUN_CLOCK_SHORT): then it stays zeroed. 1: there is something to read; 0: not. *ret_s: the run time that this
 * took. The caller ends c. */
int run_clock_poll(struct run_clock *c, const pid_t pids[2], int fd, double left, double *ret_s);

#endif
