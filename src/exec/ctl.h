/* ctl.h - between the judge (exec.c) and its executor (serve_ctl.c): one fixed-size message each way over a
 * SOCK_SEQPACKET socket, values in a bulk area that both map. The two are builds of one tree: no versions. */
#ifndef MC_EXEC_CTL_H
#define MC_EXEC_CTL_H

#include <stdint.h>

#include "exec/wire.h"

#define CTL_BULK ((uint64_t)16 << 20) /* EXECUTOR_PART */
#define CTL_FD 3      /* of the program: its socket, */
#define CTL_BULK_FD 4 /* the bulk area */

enum ctl_op {
    CTL_HELLO,      /* bulk: struct wire_info */
    CTL_CONTEXT,    /* a: bytes that the client may hold, at most; 0: all. Descriptors: area, bell */
    CTL_IMAGE,      /* a: bytes; descriptor: the image. The answer's hash says what it is known as */
    CTL_ALLOC,      /* a: bytes. v[0]: address */
    CTL_BIND,       /* a: address, b: bytes here, c: offset of these, d: bytes in all, tag; bulk: the bytes */
    /* a: bytes, b: of these so many are a candidate's inputs (0: the judge's alone); descriptor: the memory. v[0]:
     * address */
    CTL_SHARE,
    CTL_BOUND,      /* a: address, d: bytes, tag: the judge has written there by another mapping of shared memory */
    CTL_PULL,       /* a: address, b: bytes: shared memory is as kernels left it, for other mappings too */
    CTL_TILE,       /* bulk: struct wire_strided, a copy into shared memory; a: span of its source */
    CTL_RANDOM,     /* bulk: struct wire_random; tag */
    CTL_PEEK,       /* a: address, b: bytes; bulk: the bytes */
    CTL_TYPED,      /* a: address, b: bytes, c: dtype */
    CTL_PAUSE,      /* the client is not served until the next call begins */
    CTL_DRY,        /* a: launches of the calls that follow are logged and not played */
    CTL_CALL_BEGIN, /* a: index */
    CTL_CALL_END,   /* bulk: struct executor_call */
    CTL_LOG,        /* descriptor: the log's bytes; v[0]: how many, v[1]: full; bulk: struct log_counts */
    CTL_ADOPT,      /* a: bytes; descriptor: a log */
    CTL_FINDINGS,   /* v[0]: bytes of text in bulk */
    CTL_LACKS,      /* v[0]: bits, enum wire_lack */
    CTL_REPLAY,     /* a: poison, b: leave launches out, c: from the saved state, d: 1 for timing; else
                       bits: 2 in another order of streams (shuffle.h), 4 of blocks; tag: the first call that is
                       played though it asks for the same as one before it (0: all are played) */
    /* stop: LOG_BIND (v: address, bytes, tag, call), LOG_CALL_BEGIN, LOG_CALL_END (v[0]: call, v[1]: the log's last),
     * 0 */
    CTL_NEXT,
    CTL_TIME,       /* a: ns of pad. After a replay stopped at the last CALL_BEGIN: that call, timed. v[0]: host's ns;
                       or stop: LOG_BIND as for CTL_NEXT, and again */
    CTL_OPS
};

struct ctl_request {
    uint32_t op, tag;
    uint64_t a, b, c, d;
};

struct ctl_reply {
    int32_t code;  /* 0, or enum err_kind: why says it */
    int32_t error; /* the device's sticky error */
    uint32_t stop, zero;
    uint64_t v[6];
    double ms, clock_ms;
    uint8_t sha256[32];
    char why[256];
};

#endif
