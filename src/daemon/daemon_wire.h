/* daemon_wire.h - one request or reply over the socket. Inside src/daemon only. */
#ifndef MC_DAEMON_DAEMON_WIRE_H
#define MC_DAEMON_DAEMON_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* A connection to the process that listens there, which is the same user's; -1: there is none. */
int daemon_dial(const char *socket, struct err *e);
/* most_s: 0 is for ever. *ret_gone as daemon_recv's; may be NULL. */
int daemon_send(int fd, const json_t *v, double most_s, bool *ret_gone, struct err *e);
/* New; NULL: *ret_gone says that the other end closed or died. */
json_t *daemon_recv(int fd, double most_s, bool *ret_gone, struct err *e);
/* Whose process is at the other end: its id, or -1 where it is another user's. */
int daemon_peer(int fd);

#endif
