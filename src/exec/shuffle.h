/* shuffle.h - a call's entries in another order that its streams, events and waits allow: what was asked for last comes
 * first. A program whose answer then changes has a race between streams, which its own order hides.
 *
 * Entries are kept in the order in which they were asked for, and played when the log stops. Host memory only. */
#ifndef MC_EXEC_SHUFFLE_H
#define MC_EXEC_SHUFFLE_H

#include "exec/context.h"
#include "exec/exec_log.h"

/* Queues: one a stream; what happens at once when the host asks (allocations, waits of the host); releases, which come
 * behind all that was asked for before them; and what changes a handle. */
enum { SHUFFLE_HOST = CONTEXT_STREAMS, SHUFFLE_FREES, SHUFFLE_CHANGES, SHUFFLE_QUEUES };

struct shuffle_node {
    struct log_entry en;
    uint32_t queue, next;           /* index + 1 of the next one in its queue; 0: none */
    uint32_t first_need, n_needs;
};
struct shuffle_need { /* so many nodes of a queue have been played */
    uint32_t queue, count;
};
/* A stream, an event or a function. An entry that uses it comes behind the one that changed it last; an entry that
 * changes it comes behind all that used it before. */
struct shuffle_handle {
    struct shuffle_need changed; /* count 0: nothing */
    uint32_t first_user;         /* index + 1 in users; 0: none */
    int32_t attr, value;         /* a function's limit that was set last; attr 0: none */
};
struct shuffle_user { /* the last one in a queue */
    struct shuffle_need at;
    uint32_t next;
};
enum { SHUFFLE_EVENT, SHUFFLE_FUNCTION = CONTEXT_EVENTS, SHUFFLE_STREAM = SHUFFLE_FUNCTION + CONTEXT_FUNCTIONS,
       SHUFFLE_HANDLES = SHUFFLE_STREAM + CONTEXT_STREAMS };
struct shuffle_freed {
    uint64_t addr, bytes;
    uint32_t count; /* of SHUFFLE_FREES */
};
struct shuffle {
    struct shuffle_node *nodes;
    struct shuffle_need *needs;
    struct shuffle_handle *handles; /* SHUFFLE_HANDLES */
    struct shuffle_user *users;
    struct shuffle_freed *freed;
    size_t n_nodes, cap_nodes, n_needs, cap_needs, n_users, cap_users, n_freed, cap_freed;
    uint32_t asked[SHUFFLE_QUEUES], played[SHUFFLE_QUEUES], head[SHUFFLE_QUEUES], tail[SHUFFLE_QUEUES];
    bool apart[CONTEXT_STREAMS]; /* does not wait for the legacy stream, nor it for this one */
};

void shuffle_init(struct shuffle *s);  /* a recording's start */
void shuffle_free(struct shuffle *s);
/* bytes: of the block that a WIRE_FREE gives back, else 0. en points into a log that stays. */
void shuffle_add(struct shuffle *s, const struct log_entry *en, uint64_t bytes);
/* Plays all that was added, and forgets it. */
void shuffle_play(struct shuffle *s, void (*play)(void *ctx, const struct log_entry *en), void *ctx);

#endif
