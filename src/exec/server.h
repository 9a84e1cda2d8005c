/* server.h - the executor's program: a life, the device that plays it, and who asks (a front, the judge). */
#ifndef MC_EXEC_SERVER_H
#define MC_EXEC_SERVER_H

#include "exec/life.h"
#include "exec/play_queue.h"
#include "exec/player.h"
#include "exec/ring.h"

/* The device as the last call but one left it, in the latest replay of a whole life: blocks, variables of programs,
 * and which streams and events there were. */
struct saved {
    bool valid;
    size_t at; /* in the log, behind that call's end */
    struct pool pool;
    uint8_t *bytes; /* of the blocks in order, then of the life's symbols */
    uint64_t n;
    uint8_t streams[LIFE_STREAMS], *events;
};

struct replaying {
    bool on;
    size_t at;        /* in the log */
    uint32_t call;    /* running; 0: construction or between calls */
    uint32_t last;    /* the log's last call */
    struct pool pool; /* what lives at this point of the replay */
    struct saved saved;
    backend_handle timer[2]; /* events */
};

struct server {
    const struct backend_ops *ops;
    struct backend *b;
    struct wire_info info;
    struct images images;
    struct life life;
    struct player player;
    struct play_queue queue;
    struct ring ring;
    struct replaying replay;
    int ctl;       /* the judge's socket */
    uint8_t *bulk; /* CTL_BULK bytes shared with the judge */
    uint8_t *msg;  /* RING_MESSAGE bytes: the request that is looked at */
    uint8_t *down; /* WIRE_CHUNK bytes */
};

/* serve.c: requests of the front. */
int serve_some(struct server *s, int most); /* how many there were */
uint64_t now_ns(void);

/* serve_ctl.c: one request of the judge. False: the judge has gone. */
bool serve_ctl(struct server *s, int recv_flags);

/* serve_replay.c */
struct ctl_request;
struct ctl_reply;
int replay_begin(struct server *s, const struct ctl_request *q, struct err *e);
void replay_next(struct server *s, struct ctl_reply *r);
int replay_time(struct server *s, uint64_t pad_ns, struct ctl_reply *r, struct err *e);
void saved_take(struct server *s);
int saved_restore(struct server *s, struct err *e);
void saved_drop(struct server *s);
bool replay_holds(const struct server *s, uint64_t addr, uint64_t n);
int life_adopt(struct server *s, int fd, uint64_t n, struct err *e);

#endif
