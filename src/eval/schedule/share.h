/* share.h - run time on a device that several candidates of this process share. The device serves them in turn, so who
 * runs beside k - 1 others gets about a k-th of it: the clock of each runs at 1 / k. A limit on run time then means about
 * the same on a busy device as on an idle one. (The virtual time of processor sharing; who only waits for the host counts
 * too, other judges' candidates and references do not.) Those that are constructed on the host share another clock. */
#ifndef MC_EVAL_SHARE_H
#define MC_EVAL_SHARE_H

#include <pthread.h>

struct share_clock {
    pthread_mutex_t lock;
    int running;
    double v;  /* seconds of virtual time up to at */
    double at; /* now_s() of the last change */
};

#define SHARE_MOST 3.0 /* a limit lasts at most so many times as long as alone: all may hang */

void share_init(struct share_clock *c);
void share_free(struct share_clock *c);
/* One more, one fewer runs from now on (seconds of now_s()). Both return the virtual time; its difference is what was used. */
double share_begin(struct share_clock *c, double now);
double share_end(struct share_clock *c, double now);
/* Virtual time now, and how long 'left' seconds of it last if nothing changes. */
double share_time(struct share_clock *c, double now);
double share_lasts(struct share_clock *c, double left);

#endif
