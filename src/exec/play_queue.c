/* play_queue.c - see play_queue.h. */
#include "exec/play_queue.h"

/* Plays entries up to 'end' and tells the client's ring about errors. */
static void play_queue_up_to(struct play_queue *q, size_t end)
{
    const struct exec_log view = {.p = q->log->p, .n = end, .max = q->log->max};
    struct log_entry en;
    int before = q->player->error;
    size_t at = q->done;

    while (exec_log_next(&view, &at, &en) > 0)
        player_play(q->player, &en);
    if (!before && q->player->error)
        ring_error(q->ring, q->player->error);
}

/* The thread that plays logged entries on the device up to the wanted end. */
static void *play_queue_work(void *arg)
{
    struct play_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        size_t end = q->wanted;

        if (q->done == end) {
            pthread_cond_broadcast(&q->idle);
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        pthread_mutex_unlock(&q->lock);
        play_queue_up_to(q, end);
        pthread_mutex_lock(&q->lock);
        q->done = end; /* now: who waits may use the device */
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Starts the queue, with a thread where the backend does not play at once. */
int play_queue_start(struct play_queue *q, struct player *p, struct exec_log *log, struct ring *ring, struct err *e)
{
    *q = (struct play_queue){.player = p, .log = log, .ring = ring, .has_thread = !p->ops->inline_play};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->idle, NULL);
    if (q->has_thread && pthread_create(&q->thread, NULL, play_queue_work, q)) {
        q->has_thread = false;
        return err_set(e, ERR_ENV, "cannot start a thread");
    }
    return 0;
}

/* Ends the thread; what is queued is not played. */
void play_queue_stop(struct play_queue *q)
{
    if (!q->has_thread)
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
}

void play_queue_go(struct play_queue *q)
{
    if (!q->has_thread) {
        play_queue_up_to(q, q->log->n);
        q->done = q->log->n;
        return;
    }
    pthread_mutex_lock(&q->lock);
    q->wanted = q->log->n;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

void play_queue_drain(struct play_queue *q)
{
    if (!q->has_thread)
        return;
    pthread_mutex_lock(&q->lock);
    while (q->done != q->wanted)
        pthread_cond_wait(&q->idle, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void play_queue_skip(struct play_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->done = q->wanted = q->log->n;
    pthread_mutex_unlock(&q->lock);
}

void play_queue_reset(struct play_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->done = q->wanted = 0;
    pthread_mutex_unlock(&q->lock);
}
