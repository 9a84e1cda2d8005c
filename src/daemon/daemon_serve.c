/* daemon_serve.c - the owner's loop: a thread for each connection, and one that listens, sees callers go away, and
 * ends it all when nobody has asked for a while. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/daemon_wire.h"

#define LOOK_MS 1000      /* how often it looks whether it has been idle */
#define REQUEST_S 60.0    /* for a request to arrive */

struct daemon_serve_call { /* one connection */
    struct daemon *o;
    struct daemon_serve_call *next;
    pthread_t thread;
    int fd;
    pid_t caller;
    bool counted;           /* it was a request */
    atomic_bool gone, done; /* the caller has closed it; the thread has ended */
};

struct daemon {
    struct daemon_place place;
    const struct daemon_work *w;
    struct daemon_serve_call *calls; /* the loop's alone */
    int fd, wake[2];
    atomic_int n;
    double began, idle_since;
    atomic_ullong requests;
    atomic_bool leaving;
    struct stat made; /* the socket, as it was bound */
    pthread_mutex_t again; /* of those that have seen an owner die: one at a time */
};

/* ---- one call ---- */

static json_t *daemon_serve_state(const struct daemon *o)
{
    return json_pack("{s:s,s:i,s:f,s:I,s:i,s:s}", "backend", o->w->backend, "pid", (int)getpid(), "since_s",
                     now_s() - o->began, "requests", (json_int_t)atomic_load(&o->requests), "calls", o->n, "log",
                     o->place.log);
}

/* Once, and only what we made: another owner may have its socket at this path by now. */
static void daemon_serve_forget_socket(struct daemon *o)
{
    struct stat st;

    if (atomic_exchange(&o->leaving, true) || lstat(o->place.socket, &st) < 0)
        return;
    if (st.st_dev == o->made.st_dev && st.st_ino == o->made.st_ino)
        unlink(o->place.socket);
}

/* Gives the socket up, so that the next caller starts another daemon; the reply is the state. */
static json_t *daemon_serve_leave(struct daemon *o)
{
    daemon_serve_forget_socket(o);
    return daemon_serve_state(o);
}

/* What may have ended another owner: with no other such one, and its caller hears that it begins. */
static json_t *daemon_serve_answer_again(struct daemon_serve_call *c, const json_t *request, struct err *e)
{
    struct daemon *o = c->o;
    json_t *begun, *reply;

    while (pthread_mutex_trylock(&o->again) != 0) {
        if (stop_requested()) {
            err_set(e, ERR_STOP, "interrupted");
            return NULL;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    begun = json_pack("{s:b}", "begun", 1);
    daemon_send(c->fd, begun, REQUEST_S, NULL, NULL);
    json_decref(begun);
    reply = o->w->answer(o->w->ctx, request, c->caller, e);
    pthread_mutex_unlock(&o->again);
    return reply;
}

/* Answers a call by its "op". New; {"leaving"} tells the caller to start another daemon. */
static json_t *daemon_serve_answer(struct daemon_serve_call *c, const json_t *request)
{
    struct daemon *o = c->o;
    const char *op = json_str(request, "op", "");
    struct err why = ERR_INIT;
    json_t *reply;

    if (!strcmp(op, "state"))
        return daemon_serve_state(o);
    if (!strcmp(op, "leave"))
        return daemon_serve_leave(o);
    if (atomic_load(&o->leaving) || strcmp(json_str(request, "digest", ""), o->place.digest))
        return json_pack("{s:b}", "leaving", 1);
    atomic_fetch_add(&o->requests, 1);
    c->counted = true;
    reply = json_flag(request, "again", false) ? daemon_serve_answer_again(c, request, &why)
                                               : o->w->answer(o->w->ctx, request, c->caller, &why);
    return reply || why.kind == ERR_STOP ? reply : daemon_error(&why);
}

/* A thread of one call: receives it, answers it, and wakes the accepting thread. */
static void *daemon_serve_call_thread(void *arg)
{
    struct daemon_serve_call *c = arg;
    json_t *request, *reply;

    stop_also(&c->gone);
    if ((request = daemon_recv(c->fd, REQUEST_S, NULL, NULL)) && (reply = daemon_serve_answer(c, request))) {
        daemon_send(c->fd, reply, REQUEST_S, NULL, NULL);
        json_decref(reply);
    }
    json_decref(request);
    stop_also(NULL);
    atomic_store(&c->done, true);
    if (write(c->o->wake[1], "", 1) < 0)
        log_debug("the owner's own pipe is full: it wakes up anyway");
    return NULL;
}

/* ---- the loop ---- */

/* Accepts a connection and starts its thread. */
static void daemon_serve_take_call(struct daemon *o)
{
    int fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC);
    struct daemon_serve_call *c;

    if (fd < 0) { /* out of descriptors: the caller still waits, and so do we, a little */
        if (errno == EMFILE || errno == ENFILE)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        return;
    }
    c = xcalloc(1, sizeof *c);
    *c = (struct daemon_serve_call){.o = o, .fd = fd, .caller = daemon_peer(fd), .next = o->calls};
    if (c->caller < 0 || pthread_create(&c->thread, NULL, daemon_serve_call_thread, c) != 0) {
        close(fd);
        free(c);
        return;
    }
    o->calls = c;
    o->n++;
}

/* Calls that have ended leave the list. */
static void daemon_serve_end_calls(struct daemon *o)
{
    struct daemon_serve_call **at = &o->calls, *c;

    while ((c = *at)) {
        if (!atomic_load(&c->done)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        pthread_join(c->thread, NULL);
        close(c->fd);
        if (c->counted)
            o->idle_since = now_s();
        free(c);
        o->n--;
    }
}

/* Waits for a caller, for the end of a call, or for a caller that goes away. */
static void daemon_serve_wait_for_change(struct daemon *o)
{
    struct pollfd *p = xcalloc((size_t)o->n + 2, sizeof *p);
    char drop[64];
    int n = 2;

    p[0] = (struct pollfd){.fd = o->fd, .events = POLLIN};
    p[1] = (struct pollfd){.fd = o->wake[0], .events = POLLIN};
    /* of a caller that has gone there is nothing more to hear */
    for (struct daemon_serve_call *c = o->calls; c; c = c->next)
        p[n++] = (struct pollfd){.fd = atomic_load(&c->gone) ? -1 : c->fd, .events = POLLRDHUP};
    if (poll(p, (nfds_t)n, LOOK_MS) > 0) {
        n = 2;
        for (struct daemon_serve_call *c = o->calls; c; c = c->next, n++)
            if (p[n].revents)
                atomic_store(&c->gone, true);
        if (p[1].revents)
            while (read(o->wake[0], drop, sizeof drop) > 0)
                ;
        if (p[0].revents)
            daemon_serve_take_call(o);
    }
    free(p);
}

/* True while jobs run, or until the daemon was idle for its time or is to stop. */
static bool daemon_serve_goes_on(const struct daemon *o)
{
    if (o->n)
        return true;
    return !stop_requested() && !atomic_load(&o->leaving) && now_s() - o->idle_since < o->w->idle_s;
}

/* At once, before anything else is ended: who still comes shall find another owner. */
static void daemon_serve_stop_listening(struct daemon *o)
{
    if (o->fd >= 0) {
        daemon_serve_forget_socket(o);
        close(o->fd);
    }
    o->fd = -1;
}

int daemon_serve(struct daemon *o, const struct daemon_work *w, struct err *e)
{
    (void)e;
    o->w = w;
    o->idle_since = now_s();
    while (daemon_serve_goes_on(o)) {
        if (stop_requested())
            daemon_serve_stop_listening(o);
        daemon_serve_wait_for_change(o);
        daemon_serve_end_calls(o);
    }
    daemon_serve_stop_listening(o);
    return 0;
}

/* ---- its place ---- */

int daemon_listen(const struct daemon_place *p, struct daemon **ret, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct daemon *o = xcalloc(1, sizeof *o);
    int other = daemon_dial(p->socket, NULL);

    *o = (struct daemon){.again = PTHREAD_MUTEX_INITIALIZER, .place = *p, .wake = {-1, -1}, .fd = -1, .began = now_s()};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", p->socket);
    if (other >= 0) {
        close(other);
        daemon_close(o);
        return err_set(e, ERR_ENV, "an owner lives at '%s' already", p->socket);
    }
    unlink(p->socket); /* of one that was killed */
    if ((o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0 ||
        bind(o->fd, (struct sockaddr *)&at, sizeof at) < 0 || chmod(p->socket, 0600) < 0 || listen(o->fd, 1024) < 0 ||
        lstat(p->socket, &o->made) < 0 || pipe2(o->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
        err_sys(e, "cannot listen at '%s'", p->socket);
        daemon_close(o);
        return -1;
    }
    *ret = o;
    return 0;
}

void daemon_close(struct daemon *o)
{
    if (!o)
        return;
    daemon_serve_stop_listening(o);
    for (int i = 0; i < 2; i++)
        if (o->wake[i] >= 0)
            close(o->wake[i]);
    free(o);
}
