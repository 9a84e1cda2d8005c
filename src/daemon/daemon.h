/* daemon.h - one process owns a device: it judges for all callers of one user, and leaves when it has been idle.
 *
 * An owner is known by a digest of all that its answers depend on besides the request: program, libraries, compiler,
 * device, secret, jail, cache folder, environment. Another digest is another owner. Its socket lies in the user's
 * runtime folder (mode 0700); both ends check the other's user. A connection carries one request and its reply, as
 * frames (proc/frame.h). A caller that closes it, or dies, cancels its request. A reply that does not come because the
 * owner died is asked for again, of the next owner: at least once. */
#ifndef MC_DAEMON_DAEMON_H
#define MC_DAEMON_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define DAEMON_IDLE_S 60.0 /* most edits and the next try are within a minute; torch takes seconds to import */
#define DAEMON_ASKED 20   /* so many owners are asked: those that die each time cannot work here */
/* if so many daemons die while judging this request alone, the request is blamed */
#define DAEMON_KILLED 2

struct daemon_place {
    char digest[65];
    char socket[108]; /* as long as a Unix address may be */
    char lock[128];   /* held by who starts one */
    char log[128];    /* its standard error */
};

/* digest: 64 hexadecimal digits. ERR_ENV: there is no folder that is the user's alone. */
int daemon_place(const char *backend, const char *digest, struct daemon_place *ret, struct err *e);

/* ---- callers ---- */

struct daemon_command { /* starts an owner: it writes a byte to its descriptor 3 once it listens, and closes it */
    char *const *argv, *const *env;
};

/* Sends the request, which names the place's digest, and waits for the reply (new). Where no owner lives, starts one.
 * After an owner's death the request is marked, "again": marked ones are judged one at a time. Thread-safe. ERR_BUG: it
 * ends its judges. ERR_STOP: Ctrl-C, and the request is cancelled. ERR_ENV: none could be started, or it died
 * again and again; the message names its log. */
int daemon_ask(const struct daemon_place *p, const struct daemon_command *c, json_t *request, json_t **ret,
               struct err *e);

/* Removes the lock, log and socket of each owner that is dead since a day; its log may be read until then. */
void daemon_sweep(void);
/* What each living owner of this user says of itself: new [{"backend","pid","since_s","requests","calls","log"}]. */
json_t *daemon_list(struct err *e);
/* Asks all of them to finish what they have and leave. How many, or -1. */
int daemon_stop_all(struct err *e);

/* ---- the owner ---- */

struct daemon_work {
    /* A new reply to a request, or NULL with *e. Called from many threads; stop_requested() there is true once the
     * caller has gone. caller: its process. */
    json_t *(*answer)(void *ctx, const json_t *request, pid_t caller, struct err *e);
    void *ctx;
    const char *backend; /* for daemon_list */
    double idle_s;       /* leaves after so long without a request */
};

struct daemon;
/* ERR_ENV: another one lives there */
int daemon_listen(const struct daemon_place *p, struct daemon **ret, struct err *e);
/* Until it has been idle, is asked to leave, or SIGTERM. */
int daemon_serve(struct daemon *o, const struct daemon_work *w, struct err *e);
void daemon_close(struct daemon *o); /* NULL is fine */

/* Makes this process the only one of the user's that judges on a device, for as long as the descriptor is open: waits
 * until the one that has it ends, and asks it to leave if it is an owner. socket: ours, or NULL. -1: Ctrl-C, or no
 * folder. */
int daemon_device(const char *uuid, const char *socket, struct err *e);

/* A failure as a reply, and back: -1 with *e if the reply is one. */
json_t *daemon_error(const struct err *why);
int daemon_check(const json_t *reply, struct err *e);

#endif
