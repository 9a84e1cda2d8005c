/* ring.h - the executor's end of the area that it shares with a client. What it decides by is in struct ring. */
#ifndef MC_EXEC_RING_H
#define MC_EXEC_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "exec/wire.h"

#define RING_MESSAGE (WIRE_CHUNK + 4096u) /* most bytes of a message */

struct ring {
    uint8_t *area; /* NULL: no client */
    int area_fd, bell;
    uint64_t tail;
};

int ring_open(struct ring *r, const struct wire_info *info, struct err *e);
void ring_close(struct ring *r); /* the client is told that nobody answers any more; closed already: fine */
/* Copies the next message. 1, 0: none, -1: the client has broken its head or a length. msg: RING_MESSAGE bytes. */
int ring_take(struct ring *r, void *msg, size_t *ret_n);
void ring_reply(struct ring *r, const struct wire_head *h, int code, const uint64_t v[4], const void *down, size_t n);
void ring_error(struct ring *r, int code); /* the device's sticky error */
/* Says that the bell is needed from now on. False: a message has come meanwhile. */
bool ring_sleep(struct ring *r);
void ring_wake(struct ring *r);

#endif
