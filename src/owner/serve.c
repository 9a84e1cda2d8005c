/* serve.c - the owner's loop: a thread for each connection, and one that listens, sees callers go away, and ends it all
 * when nobody has asked for a while. */
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
#include "owner/owner.h"
#include "owner/wire.h"

#define LOOK_MS 1000      /* how often it looks whether it has been idle */
#define REQUEST_S 60.0    /* for a request to arrive */

struct call { /* one connection */
    struct owner *o;
    struct call *next;
    pthread_t thread;
    int fd;
    pid_t caller;
    bool counted;           /* it was a request */
    atomic_bool gone, done; /* the caller has closed it; the thread has ended */
};

struct owner {
    struct owner_place place;
    const struct owner_work *w;
    struct call *calls; /* the loop's alone */
    int fd, wake[2];
    atomic_int n;
    double began, idle_since;
    atomic_ullong requests;
    atomic_bool leaving;
    struct stat made; /* the socket, as it was bound */
    pthread_mutex_t again; /* of those that have seen an owner die: one at a time */
};

/* ---- one call ---- */

static json_t *state(const struct owner *o)
{
    return json_pack("{s:s,s:i,s:f,s:I,s:i,s:s}", "backend", o->w->backend, "pid", (int)getpid(), "since_s",
                     now_s() - o->began, "requests", (json_int_t)atomic_load(&o->requests), "calls", o->n, "log",
                     o->place.log);
}

/* Once, and only what we made: another owner may have its socket at this path by now. */
static void forget_socket(struct owner *o)
{
    struct stat st;

    if (atomic_exchange(&o->leaving, true) || lstat(o->place.socket, &st) < 0)
        return;
    if (st.st_dev == o->made.st_dev && st.st_ino == o->made.st_ino)
        unlink(o->place.socket);
}

static json_t *leave(struct owner *o)
{
    forget_socket(o);
    return state(o);
}

/* What may have ended another owner: with no other such one, and its caller hears that it begins. */
static json_t *answer_again(struct call *c, const json_t *request, struct err *e)
{
    struct owner *o = c->o;
    json_t *begun, *reply;

    while (pthread_mutex_trylock(&o->again) != 0) {
        if (stop_requested()) {
            err_set(e, ERR_STOP, "interrupted");
            return NULL;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    begun = json_pack("{s:b}", "begun", 1);
    wire_send(c->fd, begun, REQUEST_S, NULL, NULL);
    json_decref(begun);
    reply = o->w->answer(o->w->ctx, request, c->caller, e);
    pthread_mutex_unlock(&o->again);
    return reply;
}

static json_t *answer(struct call *c, const json_t *request)
{
    struct owner *o = c->o;
    const char *op = json_str(request, "op", "");
    struct err why = ERR_INIT;
    json_t *reply;

    if (!strcmp(op, "state"))
        return state(o);
    if (!strcmp(op, "leave"))
        return leave(o);
    if (atomic_load(&o->leaving) || strcmp(json_str(request, "digest", ""), o->place.digest))
        return json_pack("{s:b}", "leaving", 1);
    atomic_fetch_add(&o->requests, 1);
    c->counted = true;
    reply = json_flag(request, "again", false) ? answer_again(c, request, &why)
                                               : o->w->answer(o->w->ctx, request, c->caller, &why);
    return reply || why.kind == ERR_STOP ? reply : owner_error(&why);
}

static void *call_thread(void *arg)
{
    struct call *c = arg;
    json_t *request, *reply;

    stop_also(&c->gone);
    if ((request = wire_recv(c->fd, REQUEST_S, NULL, NULL)) && (reply = answer(c, request))) {
        wire_send(c->fd, reply, REQUEST_S, NULL, NULL);
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

static void take_call(struct owner *o)
{
    int fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC);
    struct call *c;

    if (fd < 0) { /* out of descriptors: the caller still waits, and so do we, a little */
        if (errno == EMFILE || errno == ENFILE)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        return;
    }
    c = xcalloc(1, sizeof *c);
    *c = (struct call){.o = o, .fd = fd, .caller = wire_peer(fd), .next = o->calls};
    if (c->caller < 0 || pthread_create(&c->thread, NULL, call_thread, c) != 0) {
        close(fd);
        free(c);
        return;
    }
    o->calls = c;
    o->n++;
}

/* Calls that have ended leave the list. */
static void end_calls(struct owner *o)
{
    struct call **at = &o->calls, *c;

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
static void wait_for_change(struct owner *o)
{
    struct pollfd *p = xcalloc((size_t)o->n + 2, sizeof *p);
    char drop[64];
    int n = 2;

    p[0] = (struct pollfd){.fd = o->fd, .events = POLLIN};
    p[1] = (struct pollfd){.fd = o->wake[0], .events = POLLIN};
    for (struct call *c = o->calls; c; c = c->next) /* of a caller that has gone there is nothing more to hear */
        p[n++] = (struct pollfd){.fd = atomic_load(&c->gone) ? -1 : c->fd, .events = POLLRDHUP};
    if (poll(p, (nfds_t)n, LOOK_MS) > 0) {
        n = 2;
        for (struct call *c = o->calls; c; c = c->next, n++)
            if (p[n].revents)
                atomic_store(&c->gone, true);
        if (p[1].revents)
            while (read(o->wake[0], drop, sizeof drop) > 0)
                ;
        if (p[0].revents)
            take_call(o);
    }
    free(p);
}

static bool goes_on(const struct owner *o)
{
    if (o->n)
        return true;
    return !stop_requested() && !atomic_load(&o->leaving) && now_s() - o->idle_since < o->w->idle_s;
}

/* At once, before anything else is ended: who still comes shall find another owner. */
static void stop_listening(struct owner *o)
{
    if (o->fd >= 0) {
        forget_socket(o);
        close(o->fd);
    }
    o->fd = -1;
}

int owner_serve(struct owner *o, const struct owner_work *w, struct err *e)
{
    (void)e;
    o->w = w;
    o->idle_since = now_s();
    while (goes_on(o)) {
        if (stop_requested())
            stop_listening(o);
        wait_for_change(o);
        end_calls(o);
    }
    stop_listening(o);
    return 0;
}

/* ---- its place ---- */

int owner_listen(const struct owner_place *p, struct owner **ret, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct owner *o = xcalloc(1, sizeof *o);
    int other = wire_dial(p->socket, NULL);

    *o = (struct owner){.again = PTHREAD_MUTEX_INITIALIZER, .place = *p, .wake = {-1, -1}, .fd = -1, .began = now_s()};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", p->socket);
    if (other >= 0) {
        close(other);
        owner_close(o);
        return err_set(e, ERR_ENV, "an owner lives at '%s' already", p->socket);
    }
    unlink(p->socket); /* of one that was killed */
    if ((o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0 ||
        bind(o->fd, (struct sockaddr *)&at, sizeof at) < 0 || chmod(p->socket, 0600) < 0 || listen(o->fd, 1024) < 0 ||
        lstat(p->socket, &o->made) < 0 || pipe2(o->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
        err_sys(e, "cannot listen at '%s'", p->socket);
        owner_close(o);
        return -1;
    }
    *ret = o;
    return 0;
}

void owner_close(struct owner *o)
{
    if (!o)
        return;
    stop_listening(o);
    for (int i = 0; i < 2; i++)
        if (o->wake[i] >= 0)
            close(o->wake[i]);
    free(o);
}
