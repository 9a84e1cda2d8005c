/* play_queue.h - the device works through the log behind the client's back: a thread that plays entries as they are
 * written, or nothing at all where the device has a queue of its own. So how long a kernel takes shows in no reply that
 * is not a read. */
#ifndef MC_EXEC_PLAY_QUEUE_H
#define MC_EXEC_PLAY_QUEUE_H

#include <pthread.h>

#include "exec/player.h"
#include "exec/ring.h"

struct play_queue {
    struct player *player;
    struct exec_log *log;
    struct ring *ring;
    size_t done, wanted; /* offsets in the log */
    bool stop, has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
};

int play_queue_start(struct play_queue *q, struct player *p, struct exec_log *log, struct ring *ring, struct err *e);
void play_queue_stop(struct play_queue *q);
void play_queue_go(struct play_queue *q);    /* plays what was logged since */
void play_queue_drain(struct play_queue *q); /* until all of it was handed to the device */
void play_queue_skip(struct play_queue *q);  /* drained; what was logged since has been done already */
void play_queue_reset(struct play_queue *q); /* drained; the log starts again */

#endif
