/* exec_server.h - the executor's program: a recording, the device that plays it, and who asks (a client, the judge). */
#ifndef MC_EXEC_EXEC_SERVER_H
#define MC_EXEC_EXEC_SERVER_H

#include <time.h>

#include "exec/alike.h"
#include "exec/context.h"
#include "exec/play_queue.h"
#include "exec/player.h"
#include "exec/ring.h"
#include "exec/shuffle.h"

/* The device as the last call but one left it, in the latest replay of a whole recording: blocks, variables of
 * programs, and which streams and events there were. */
struct saved {
    bool valid;
    size_t at; /* in the log, behind that call's end */
    struct pool pool;
    struct context_symbol *variables; /* of all programs that are loaded, asked for or not */
    size_t n_variables, cap_variables;
    uint8_t *bytes; /* of the blocks in order, then of the variables */
    uint64_t n;
    uint8_t streams[CONTEXT_STREAMS], *events;
};

struct replaying {
    bool on;
    bool times;       /* the last call's launches are to be timed: nothing is kept of the calls before */
    size_t at;        /* in the log */
    uint32_t call;    /* running; 0: construction or between calls */
    uint32_t last;    /* the log's last call */
    struct pool pool; /* what lives at this point of the replay */
    struct saved saved;
    bool shuffled;    /* streams run in another order than the program's own, */
    bool blocks_vary; /* and blocks than their numbers' */
    struct shuffle shuffle;
    uint32_t played_from; /* calls before it may be alike (alike.h); 0: all are played */
    struct alike alike;
    bool passes_over; /* the call that runs is like one before it */
    backend_handle timer[2]; /* events */
};

#define SERVER_SHARES 4

struct shared { /* the judge's memory, mapped here too; addr 0: none */
    uint64_t addr, bytes, inputs; /* inputs: so many bytes are a candidate's, 0: it is the judge's alone */
};

struct exec_server {
    const struct backend_ops *ops;
    struct exec_backend *b;
    struct wire_info info;
    struct images images;
    struct client_context context;
    struct player player;
    struct play_queue queue;
    struct ring ring;
    struct replaying replay;
    struct shared shared[SERVER_SHARES]; /* of this recording */
    bool dry;      /* calls' launches are logged and not played */
    uint32_t unanswered; /* questions for values since */
    bool paused;   /* between calls the client is not served: nothing of it would be counted */
    uint64_t changed; /* elements that casts changed before the first call */
    int ctl;       /* the judge's socket */
    uint8_t *bulk; /* CTL_BULK bytes shared with the judge */
    uint8_t *msg;  /* RING_MESSAGE bytes: the request that is looked at */
    uint8_t *down; /* WIRE_CHUNK bytes */
};

/* Monotonic time in ns. */
static inline uint64_t clock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* exec_serve.c: requests of the client. */
bool serve_holds(const struct exec_server *s, uint64_t addr, uint64_t n); /* memory of the recording, or its replay */
bool serve_log_own(struct exec_server *s, unsigned op, const void *body, size_t n);
void serve_settle(struct exec_server *s); /* what reached the ring is served, and has been handed to the device */
int serve_some(struct exec_server *s, int most); /* how many there were */

/* serve_ctl.c: one request of the judge. False: the judge has gone. */
bool serve_ctl(struct exec_server *s, int recv_flags);

/* serve_shared.c: memory of the judge's that this recording maps too. */
struct ctl_request;
struct ctl_reply;
int shared_add(struct exec_server *s, const struct ctl_request *q, int fd, struct ctl_reply *out, struct err *e);
int shared_bound(struct exec_server *s, const struct ctl_request *q, struct err *e);
int shared_pull(struct exec_server *s, const struct ctl_request *q, struct err *e);
int shared_tile(struct exec_server *s, const struct wire_strided *m, uint64_t span, struct err *e);
void shared_clear(struct exec_server *s);

/* serve_replay.c */
/* *ret_moved: executor_replay's, where the request asks to go on. */
int replay_begin(struct exec_server *s, const struct ctl_request *q, uint64_t *ret_moved, struct err *e);
void replay_next(struct exec_server *s, struct ctl_reply *r);
int replay_time(struct exec_server *s, uint64_t pad_ns, struct ctl_reply *r, struct err *e);
void saved_take(struct exec_server *s);
int saved_restore(struct exec_server *s, struct err *e);
/* What the latest play left, of blocks that outlive the call and of variables, takes the place of what is kept. True:
 * it differs. */
bool saved_follow(struct exec_server *s);
void saved_drop(struct exec_server *s);
void saved_clean(struct exec_server *s); /* fills what kernels can reach and no block holds */
bool replay_holds(const struct exec_server *s, uint64_t addr, uint64_t n);
int context_adopt(struct exec_server *s, int fd, uint64_t n, struct err *e);

#endif
