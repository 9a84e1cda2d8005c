/* executors.c - see executors.h. */
#include "eval/server/executors.h"

#include <string.h>
#include <unistd.h>

void executors_init(struct executors *all, bool used_again)
{
    *all = (struct executors){.used_again = used_again};
    pthread_mutex_init(&all->lock, NULL);
}

/* An idle executor, now the caller's; NULL: none. */
static struct executor *executors_pop(struct executors *all)
{
    struct executor *x;

    pthread_mutex_lock(&all->lock);
    x = all->n ? all->idle[--all->n] : NULL;
    pthread_mutex_unlock(&all->lock);
    return x;
}

/* Begins a new client; fds are its ends. memory 0: its share. */
static int executors_begin(const struct executors *all, struct executor *x, uint64_t memory, int fds[2], struct err *e)
{
    uint64_t part = all->used_again ? executor_info(x)->memory / EXECUTORS_PART : 0;

    executor_limit(x, memory ? memory : part);
    return executor_context(x, fds, e);
}

int executors_take(struct executors *all, const struct executor_options *o, uint64_t memory, struct executor **ret,
                   int fds[2], struct err *e)
{
    struct executor_options planned = *o;
    struct err ignored = ERR_INIT;
    struct executor *x = NULL;

    while (!*ret && (x = executors_pop(all))) {
        executor_wait(x, o->timeout_s);
        if (executor_info(x)->memory >= memory && executors_begin(all, x, memory, fds, &ignored) == 0)
            *ret = x;
        else
            executor_stop(x);
    }
    if (memory)
        executors_end(all);
    if (*ret)
        return 0;
    if (memory)
        planned.memory = memory; /* not a part of what happens to be free by now */
    if (executor_start(&planned, ret, e) < 0)
        return -1;
    return executors_begin(all, *ret, memory, fds, e);
}

void executors_give(struct executors *all, struct executor *x, bool sound)
{
    if (!x)
        return;
    if (sound && all->used_again && !executor_timed_out(x)) {
        pthread_mutex_lock(&all->lock);
        if (all->n < EXECUTORS_IDLE) {
            all->idle[all->n++] = x;
            x = NULL;
        }
        pthread_mutex_unlock(&all->lock);
    }
    executor_stop(x);
}

void executors_end(struct executors *all)
{
    struct executor *x;

    while ((x = executors_pop(all)))
        executor_stop(x);
}

bool executors_harmless(const void *image, size_t n)
{
    static const char *const names[] = {"vprintf", "malloc", "__assertfail", "cudaLaunchDevice"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (memmem(image, n, names[i], strlen(names[i]) + 1))
            return false;
    return true;
}
