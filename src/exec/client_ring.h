/* client_ring.h - within the client's library: how a message gets into the ring and a reply out of a slot. */
#ifndef MC_EXEC_CLIENT_RING_H
#define MC_EXEC_CLIENT_RING_H

#include "exec/client.h"

struct client {
    struct wire_area *area;
    struct wire_slot *slots;
    uint8_t *down, *ring; /* down: WIRE_CHUNK bytes a slot */
    int bell;
    struct wire_info info; /* a copy: proxies hand out pointers into it */
    uint32_t lock;         /* of the ring's writing end */
    uint64_t head;         /* under lock */
    uint32_t ticket;
    uint32_t busy[WIRE_SLOTS];
    client_recorder *record; /* NULL: nothing is recorded */
};

/* Queues one message: the op's struct, then the tail in up to two parts. WIRE_OK, or the device's sticky error. */
int client_post(struct client *c, unsigned op, const void *body, struct client_part a, struct client_part b);
/* The same, and waits. *ret: the slot's copy. With 'down', its bytes are copied there (at most n_down). */
int client_ask(struct client *c, unsigned op, const void *body, struct client_part tail, struct wire_slot *ret,
               void *down, size_t n_down);

#endif
