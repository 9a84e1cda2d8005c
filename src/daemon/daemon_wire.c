/* daemon_wire.c - see daemon_wire.h. */
#include "daemon/daemon_wire.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/frame.h"

int daemon_peer(int fd)
{
    struct ucred c;
    socklen_t n = sizeof c;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0 || c.uid != geteuid())
        return -1;
    return c.pid;
}

int daemon_dial(const char *socket_path, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return err_sys(e, "no socket");
    snprintf(at.sun_path, sizeof at.sun_path, "%s", socket_path);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && daemon_peer(fd) >= 0)
        return fd;
    err_sys(e, "nobody answers at '%s'", socket_path);
    close(fd);
    return -1;
}

/* The time at which waiting ends; 0: never. */
static double daemon_wire_until(double most_s)
{
    return most_s > 0 ? now_s() + most_s : 0;
}

/* *ret_gone (may be NULL): whether the fault means that the other side left. */
static void daemon_wire_tell_gone(enum frame_fault fault, bool *ret_gone)
{
    if (ret_gone)
        *ret_gone = fault == FRAME_CLOSED || fault == FRAME_BROKEN;
}

int daemon_send(int fd, const json_t *v, double most_s, bool *ret_gone, struct err *e)
{
    enum frame_fault fault = FRAME_OK;
    int rc = frame_send(fd, v, NULL, 0, daemon_wire_until(most_s), &fault, e);

    daemon_wire_tell_gone(fault, ret_gone);
    return rc;
}

json_t *daemon_recv(int fd, double most_s, bool *ret_gone, struct err *e)
{
    enum frame_fault fault = FRAME_OK;
    struct frame f;
    json_t *v;

    if (frame_recv(fd, 0, 1, daemon_wire_until(most_s), &f, &fault, e) < 0) {
        daemon_wire_tell_gone(fault, ret_gone);
        return NULL;
    }
    v = json_incref(f.head);
    frame_free(&f);
    return v;
}
