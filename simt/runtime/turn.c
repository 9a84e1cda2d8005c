/* turn.c - launches take turns; a fault of host code may leave one. */
#include <pthread.h>

#include "runtime.h"

bool launch_torn = true;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
THREAD_LOCAL bool my_turn;

void turn_take(void)
{
    pthread_mutex_lock(&turn);
    my_turn = true;
}

void turn_give(void)
{
    my_turn = false;
    pthread_mutex_unlock(&turn);
}

void launch_abandon(void)
{
    if (!my_turn)
        return;
    check_now = false;
    run.launch = NULL;
    run.in_kernel = false;
    launch_torn = true;
    fibers_forget();
    turn_give();
}
