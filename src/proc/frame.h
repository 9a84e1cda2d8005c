/* frame.h - one message between processes: a JSON header and a blob of bytes, over a Unix stream socket.
 *
 * Wire: "MCF1", u32 header length, u64 blob length (little endian), header (a UTF-8 JSON object), blob.
 * Tensors travel as raw bytes in the blob, described in the header by {"dtype","shape","strides","offset","nbytes"}.
 * The peer may be hostile: lengths are checked against caps before anything is allocated, the header goes through
 * json_parse (duplicate keys refused), and every wait has a deadline. runner/frame.py is the other end. */
#ifndef MC_FRAME_H
#define MC_FRAME_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define FRAME_MAX_HEAD ((size_t)64 << 20)
#define FRAME_MAX_BLOB ((size_t)4 << 30)

enum frame_fault {
    FRAME_OK,
    FRAME_CLOSED, /* the peer closed or died; also in the middle of a frame */
    FRAME_LATE,   /* the deadline passed */
    FRAME_BAD,    /* not our protocol: magic, caps, JSON, or not an object */
    FRAME_BROKEN, /* the socket itself failed */
    FRAME_STOPPED /* Ctrl-C */
};

struct frame {
    json_t *head; /* an object, owned */
    char *blob;   /* owned; never NULL, 64-byte aligned */
    size_t n_blob;
};

/* deadline: now_s() value, 0 = wait for ever. blob may be NULL when n_blob is 0. Both work on blocking and on
 * non-blocking sockets, never raise SIGPIPE, and are called from one thread per direction.
 * On failure -1 with *e set (kind ERR_ENV; ERR_STOP for Ctrl-C) and *ret_fault, if not NULL, says which kind. */
int frame_send(int fd, const json_t *head, const void *blob, size_t n_blob, double deadline,
               enum frame_fault *ret_fault, struct err *e);
/* max_head, max_blob: 0 = the limits above. On success the caller frees *ret with frame_free. */
int frame_recv(int fd, size_t max_head, size_t max_blob, double deadline, struct frame *ret,
               enum frame_fault *ret_fault, struct err *e);
void frame_free(struct frame *f);

#define FRAME_MAX_FDS 64

/* As frame_send without a blob, with file descriptors riding along (SCM_RIGHTS) on the first byte: at most
 * FRAME_MAX_FDS. The caller keeps its own. runner/frame.py: recv_fds. frame_recv() of such a frame drops them. */
int frame_send_fds(int fd, const json_t *head, const int *fds, int n_fds, double deadline, struct err *e);

struct rpc {
    int fd;
    const char *who; /* of the span in a trace; NULL: none */
    const void *blob;
    size_t n_blob;
    const int *fds;  /* in place of a blob, as frame_send_fds */
    int n_fds;
    double deadline; /* for both ways */
};
/* One request and its answer: every conversation of that form. req: reference taken. Errors as frame_send,
 * frame_recv. */
int rpc(const struct rpc *r, json_t *req, struct frame *ret, enum frame_fault *ret_fault, struct err *e);


#endif
