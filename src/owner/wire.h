/* wire.h - one request or reply over the socket. Inside src/owner only. */
#ifndef MC_OWNER_WIRE_H
#define MC_OWNER_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* A connection to the process that listens there, which is the same user's; -1: there is none. */
int wire_dial(const char *socket, struct err *e);
/* most_s: 0 is for ever. *ret_gone as wire_recv's; may be NULL. */
int wire_send(int fd, const json_t *v, double most_s, bool *ret_gone, struct err *e);
/* New; NULL: *ret_gone says that the other end closed or died. */
json_t *wire_recv(int fd, double most_s, bool *ret_gone, struct err *e);
/* Whose process is at the other end: its id, or -1 where it is another user's. */
int wire_peer(int fd);

#endif
