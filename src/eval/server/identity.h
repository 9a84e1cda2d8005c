/* identity.h - what a fork server is, known without starting one.
 *
 * A verdict's key names the compiler, PyTorch, our own code and the device (judge_server.h, toolchain). To learn
 * these takes seconds: torch is imported, the driver is asked. So who has started a server writes the answer down
 * under path_cache("server"), together with the state (size, times, inode) of all that it was learned from; as long
 * as that is unchanged, the answer holds. */
#ifndef MC_EVAL_IDENTITY_H
#define MC_EVAL_IDENTITY_H

#include <jansson.h>
#include <stdbool.h>

#include "eval/build/judge_backend.h"

struct identity { /* zeroed: not looked at yet */
    bool looked;
    char facts[65];  /* hash of the state of everything that can be looked at in a millisecond */
    char *toolchain; /* NULL: nobody wrote it down, or something changed since */
};

/* Looks, once. Milliseconds; starts no process and does not touch the driver. */
void identity_look(const struct judge_backend *b, struct identity *id);
/* A server was started after identity_look: this is what it is. paths: its Python's folders (forkserver_info). Written
 * down if it is news; a cache folder that cannot be written is only said in the log. */
void identity_learn(const struct judge_backend *b, struct identity *id, const char *toolchain, const json_t *paths);
void identity_free(struct identity *id);
/* {path: its state} of the PyTorch in these folders (forkserver_info's paths); new, empty where there is none. */
json_t *identity_watch(const json_t *paths);
/* Are they what they were? False for an empty object and NULL. */
bool identity_unchanged(const json_t *watched);

#endif
