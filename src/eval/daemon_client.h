/* daemon_client.h - candidates judged by the process that owns the device (daemon/daemon.h), and what that process
 * answers. */
#ifndef MC_EVAL_DAEMON_CLIENT_H
#define MC_EVAL_DAEMON_CLIENT_H

#include "eval/eval.h"
#include "daemon/daemon.h"

struct daemon_client; /* how to reach the owner of one backend */

/* NULL: there can be none here (no folder for its socket), or $MUSACODER_OWNER is "none"; the caller judges itself. */
struct daemon_client *daemon_client_open(const struct eval_config *c, const char *backend, const char *facts,
                                         const char *secret);
void daemon_client_free(struct daemon_client *w); /* NULL is fine */
/* As eval_one. */
int daemon_client_one(const struct daemon_client *w, const struct task *task, const struct eval_candidate *c,
                      const struct eval_options *o, json_t **ret, struct err *e);
/* Makes sure that the owner can judge: it has started its processes. Seconds. */
int daemon_client_begin(const struct daemon_client *w, struct err *e);

#endif
