/* fdpass.c - see fdpass.h. */
#include "exec/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int) * FDPASS_MAX)];
};

int fdpass_send(int sock, const void *data, size_t n, const int *fds, int n_fds)
{
    struct iovec v = {(void *)data, n};
    union control u = {0};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    ssize_t sent;

    if (n_fds) {
        struct cmsghdr *c;

        m.msg_control = &u;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n_fds);
    }
    do
        sent = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n ? 0 : -1;
}

ssize_t fdpass_recv(int sock, void *data, size_t n, int fds[FDPASS_MAX], int flags)
{
    struct iovec v = {data, n};
    union control u;
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u};
    ssize_t got;

    for (int i = 0; i < FDPASS_MAX; i++)
        fds[i] = -1;
    do
        got = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got > 0 && CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), CMSG_FIRSTHDR(&m)->cmsg_len - CMSG_LEN(0));
    return got;
}

void fdpass_close(int fds[FDPASS_MAX])
{
    for (int i = 0; i < FDPASS_MAX; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}
