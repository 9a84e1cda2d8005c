/* owned.h - candidates judged by the process that owns the device (owner/owner.h), and what that process answers. */
#ifndef MC_EVAL_OWNED_H
#define MC_EVAL_OWNED_H

#include "eval/eval.h"
#include "owner/owner.h"

struct owned; /* how to reach the owner of one backend */

/* NULL: there can be none here (no folder for its socket), or $MUSACODER_OWNER is "none"; the caller judges itself. */
struct owned *owned_open(const struct eval_config *c, const char *backend, const char *facts, const char *secret);
void owned_free(struct owned *w); /* NULL is fine */
/* As eval_one. */
int owned_one(const struct owned *w, const struct task *task, const struct eval_candidate *c,
              const struct eval_options *o, json_t **ret, struct err *e);
/* Makes sure that the owner can judge: it has started its processes. Seconds. */
int owned_begin(const struct owned *w, struct err *e);

#endif
