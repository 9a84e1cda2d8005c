/* frame.c - see frame.h. All waiting is poll(2) in slices, so that a deadline and Ctrl-C are seen. */
#include "proc/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#define PREFIX 16 /* magic 4, header length 4, blob length 8 */

static const char magic[4] = {'M', 'C', 'F', '1'};

struct io {
    int fd;
    double deadline;
    enum frame_fault fault;
    struct err *e;
};

/* Sets the fault and its words. Always -1. */
static int frame_io_fail(struct io *io, enum frame_fault fault, const char *what)
{
    io->fault = fault;
    return err_set(io->e, fault == FRAME_STOPPED ? ERR_STOP : ERR_ENV, "%s", what);
}

/* Waits until fd is ready. The slice bounds how late another thread's Ctrl-C is noticed. */
static int frame_io_wait(struct io *io, short events)
{
    for (;;) {
        struct pollfd p = {.fd = io->fd, .events = events};
        double left = io->deadline > 0 ? io->deadline - now_s() : 0.25;
        int n;

        if (stop_requested())
            return frame_io_fail(io, FRAME_STOPPED, "stopped");
        if (io->deadline > 0 && left <= 0)
            return frame_io_fail(io, FRAME_LATE, "the peer did not answer in time");
        n = poll(&p, 1, left > 0.25 ? 250 : (int)(left * 1000) + 1);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return frame_io_fail(io, FRAME_BROKEN, "the socket failed");
    }
}

/* What errno means: 0 to try again after waiting; -1: it failed. */
static int frame_io_errno(struct io *io, short events)
{
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return frame_io_wait(io, events);
    if (errno == EPIPE || errno == ECONNRESET)
        return frame_io_fail(io, FRAME_CLOSED, "the peer closed the connection");
    return frame_io_fail(io, FRAME_BROKEN, strerror(errno));
}

/* Reads exactly n bytes; a closed peer or a passed deadline is a failure. */
static int frame_io_read(struct io *io, void *to, size_t n)
{
    char *p = to;

    while (n) {
        ssize_t k = recv(io->fd, p, n > (1u << 30) ? 1u << 30 : n, MSG_DONTWAIT);
        if (k == 0)
            return frame_io_fail(io, FRAME_CLOSED, "the peer closed the connection");
        if (k < 0 && frame_io_errno(io, POLLIN) < 0)
            return -1;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return 0;
}

/* Sends the parts one after the other; descriptors ride on the first byte that leaves. */
static int frame_io_write(struct io *io, struct iovec *v, int n_v, const int *fds, int n_fds)
{
    union {
        char b[CMSG_SPACE(FRAME_MAX_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;

    while (n_v) {
        struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n_v};
        ssize_t k;

        if (n_fds) {
            struct cmsghdr *c;
            memset(&control, 0, sizeof control);
            m.msg_control = control.b;
            m.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
            c = CMSG_FIRSTHDR(&m);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
            memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
        }
        k = sendmsg(io->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k < 0) {
            if (frame_io_errno(io, POLLOUT) < 0)
                return -1;
            continue;
        }
        n_fds = 0;
        while (n_v && (size_t)k >= v->iov_len) {
            k -= (ssize_t)v->iov_len;
            v++;
            n_v--;
        }
        if (n_v) {
            v->iov_base = (char *)v->iov_base + k;
            v->iov_len -= (size_t)k;
        }
    }
    return 0;
}

static void frame_put_le(unsigned char *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(x >> (8 * i));
}

/* A little-endian integer of n bytes. */
static uint64_t frame_get_le(const unsigned char *p, int n)
{
    uint64_t x = 0;

    for (int i = n; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

/* Sends a frame: magic, lengths, header in JSON, blob, and descriptors with the first byte. */
static int frame_send_all(struct io *io, const json_t *head, const void *blob, size_t n_blob, const int *fds, int n_fds)
{
    unsigned char prefix[PREFIX];
    char *text = json_text(head);
    size_t n_text = text ? strlen(text) : 0;
    struct iovec v[3] = {{prefix, PREFIX}, {text, n_text}, {(void *)blob, n_blob}};
    int rc;

    if (!text || !json_is_object(head) || n_text > FRAME_MAX_HEAD || n_blob > FRAME_MAX_BLOB) {
        free(text);
        return frame_io_fail(io, FRAME_BAD, "a frame to send is not an object or too large");
    }
    memcpy(prefix, magic, 4);
    frame_put_le(prefix + 4, n_text, 4);
    frame_put_le(prefix + 8, n_blob, 8);
    rc = frame_io_write(io, v, n_blob ? 3 : 2, fds, n_fds);
    free(text);
    return rc;
}

int frame_send(int fd, const json_t *head, const void *blob, size_t n_blob, double deadline,
               enum frame_fault *ret_fault, struct err *e)
{
    struct io io = {fd, deadline, FRAME_OK, e};
    int rc = frame_send_all(&io, head, blob, n_blob, NULL, 0);

    if (ret_fault)
        *ret_fault = io.fault;
    return rc;
}

int frame_send_fds(int fd, const json_t *head, const int *fds, int n_fds, double deadline, struct err *e)
{
    struct io io = {fd, deadline, FRAME_OK, e};

    if (n_fds < 0 || n_fds > FRAME_MAX_FDS)
        return err_set(e, ERR_BUG, "%d descriptors in one frame", n_fds);
    return frame_send_all(&io, head, NULL, 0, fds, n_fds);
}

/* Reads a header of n bytes; *ret is a new object. */
static int frame_recv_head(struct io *io, size_t n, json_t **ret)
{
    char *text = malloc(n + 1);
    int rc = -1;

    if (!text)
        return frame_io_fail(io, FRAME_BAD, "a frame's header does not fit in memory");
    if (frame_io_read(io, text, n) == 0) {
        text[n] = 0;
        *ret = json_parse(text, n, "a frame's header", io->e);
        rc = *ret ? 0 : -1;
        if (!*ret)
            io->fault = FRAME_BAD;
        else if (!json_is_object(*ret)) {
            json_decref(*ret);
            rc = frame_io_fail(io, FRAME_BAD, "a frame's header is not an object");
        }
    }
    free(text);
    return rc;
}

/* Grows with what really arrives: a header that announces gigabytes must not make us reserve them. */
static int frame_recv_blob(struct io *io, size_t n, char **ret)
{
    size_t have = 0, cap = n < (64u << 20) ? n : (64u << 20);
    char *p = NULL, *q;

    do {
        if (posix_memalign((void **)&q, 64, cap + 64) != 0) {
            free(p);
            return frame_io_fail(io, FRAME_BAD, "a frame's blob does not fit in memory");
        }
        if (have)
            memcpy(q, p, have);
        free(p);
        p = q;
        if (frame_io_read(io, p + have, cap - have) < 0) {
            free(p);
            return -1;
        }
        have = cap;
        cap = n - have < have ? n : have * 2;
    } while (have < n);
    memset(p + n, 0, 64);
    *ret = p;
    return 0;
}

/* Reads one frame into *ret. FRAME_BAD: it is malformed, or larger than the limits. */
static int frame_recv_all(struct io *io, size_t max_head, size_t max_blob, struct frame *ret)
{
    unsigned char prefix[PREFIX];
    uint64_t n_head, n_blob;
    json_t *head;
    char *blob = NULL;

    if (frame_io_read(io, prefix, PREFIX) < 0)
        return -1;
    n_head = frame_get_le(prefix + 4, 4);
    n_blob = frame_get_le(prefix + 8, 8);
    if (memcmp(prefix, magic, 4) != 0)
        return frame_io_fail(io, FRAME_BAD, "the peer does not speak our protocol");
    if (n_head > (max_head ? max_head : FRAME_MAX_HEAD) || n_blob > (max_blob ? max_blob : FRAME_MAX_BLOB))
        return frame_io_fail(io, FRAME_BAD, "a frame is larger than allowed");
    if (frame_recv_head(io, (size_t)n_head, &head) < 0)
        return -1;
    if (frame_recv_blob(io, (size_t)n_blob, &blob) < 0) {
        json_decref(head);
        return -1;
    }
    ret->head = head;
    ret->blob = blob;
    ret->n_blob = (size_t)n_blob;
    return 0;
}

int frame_recv(int fd, size_t max_head, size_t max_blob, double deadline, struct frame *ret,
               enum frame_fault *ret_fault, struct err *e)
{
    struct io io = {fd, deadline, FRAME_OK, e};
    int rc = frame_recv_all(&io, max_head, max_blob, ret);

    if (ret_fault)
        *ret_fault = io.fault;
    return rc;
}

int rpc(const struct rpc *r, json_t *req, struct frame *ret, enum frame_fault *ret_fault, struct err *e)
{
    struct io io = {r->fd, r->deadline, FRAME_OK, e};
    double t0 = now_s();
    int rc = frame_send_all(&io, req, r->blob, r->n_blob, r->fds, r->n_fds);

    if (rc == 0 && stop_requested()) /* whether the answer is there already or not: a stop reads none */
        rc = frame_io_fail(&io, FRAME_STOPPED, "stopped");
    if (rc == 0)
        rc = frame_recv_all(&io, 0, 0, ret);
    if (r->who)
        trace_span(t0, r->who, "%s", json_str(req, "op", "?"));
    json_decref(req);
    if (ret_fault)
        *ret_fault = io.fault;
    return rc;
}

void frame_free(struct frame *f)
{
    json_decref(f->head);
    free(f->blob);
    memset(f, 0, sizeof *f);
}
