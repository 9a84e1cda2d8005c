/* switch.c - control goes back to the host. */
#include "sched.h"

void to_host(void **save, enum launch_end end)
{
    run.end = end;
    run.current = NULL;
    fiber_switch(save, run.host_sp);
}

void leave_to_host(struct fiber *me, enum launch_end end)
{
    to_host(&me->sp, end);
}

void abort_kernel(void)
{
    void *gone;

    to_host(&gone, LAUNCH_ABORTED);
    __builtin_unreachable();
}
