/* kernels.h - the process in which kernels of 'sim' run: what the executor asks it over a socket, one message each way.
 *
 * That process holds the candidate's native code and may be anything after its first launch. It shares device memory
 * with the executor and nothing else; of its answers only the fixed fields and a text are taken. */
#ifndef MC_EXEC_KERNELS_H
#define MC_EXEC_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum kernels_op {
    KERNELS_MODULE,   /* data: path below the folder, "/..." . v[0]: module */
    KERNELS_FUNCTION, /* a: module; data: name. v[0]: function */
    KERNELS_SYMBOL,   /* a: module; data: name. v[0]: address, v[1]: bytes */
    KERNELS_ATTR,     /* a: function, b: attribute, c: value */
    /* a: function, b: cooperative, c: how blocks run (simt_set_blocks), grid, block, shared, poison; data: arguments */
    KERNELS_LAUNCH,
    KERNELS_BLOCK,    /* a: address, b: bytes; 0: it ends. No answer */
    KERNELS_READ,     /* a: address, b: bytes <= KERNELS_DATA; answer's data */
    KERNELS_WRITE,    /* a: address; data */
    KERNELS_FINDINGS, /* answer's data: JSON, cut where it does not fit */
    KERNELS_STOP      /* while a kernel runs: it says where it stands, answers its launch, and ends. No answer */
};

#define KERNELS_DATA (64u << 10)
struct kernels_ask {
    uint32_t op, n; /* n: bytes of data */
    uint64_t a, b, c;
    uint32_t grid[3], block[3], shared, poison;
    uint8_t data[KERNELS_DATA + 8]; /* room for the end of a string */
};
struct kernels_answer {
    int32_t code;
    uint32_t n;
    uint64_t v[2];
    uint8_t data[KERNELS_DATA];
};

/* The process from which such processes are forked: it has libsimt and device memory at its addresses, and starts
 * before any client exists, so that every one of them has the same layout. */
struct kernels_source {
    pid_t pid;
    int fd;
};
struct kernels_place {
    const char *libsimt;
    const char *folder; /* becomes their root: images lie there, and nothing else can be opened */
    int memory_fd, written_fd; /* of device memory; of its bits for simt_set_written */
    uint64_t reserved;
    bool check;
};
int kernels_source_start(const struct kernels_place *p, struct kernels_source *ret, struct err *e);
void kernels_source_end(struct kernels_source *s);
/* A new process: its socket, or -1. It ends when the socket is closed. */
int kernels_start(const struct kernels_source *s, struct err *e);

/* One question. False: it does not answer any more. */
bool kernels_ask(int fd, struct kernels_ask *q, struct kernels_answer *ret);
/* KERNELS_STOP, from a signal handler of the process that asks. */
void kernels_stop(int fd);

#endif
